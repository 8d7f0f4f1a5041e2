//! Filetests, the random program generator, oracles.
#![forbid(unsafe_code)]
