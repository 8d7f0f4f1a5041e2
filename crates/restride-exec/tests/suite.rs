//! All tests of runs, in one binary.

mod alias_corpus;
mod functions;
#[path = "planned/main.rs"]
mod planned;
#[path = "tape/main.rs"]
mod tape;
