//! Open, functionalize, place, check and run PyTorch programs.
#![forbid(unsafe_code)]
