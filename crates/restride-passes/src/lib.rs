//! Passes: functionalize, simplify, place, plan, materialize.
#![forbid(unsafe_code)]
