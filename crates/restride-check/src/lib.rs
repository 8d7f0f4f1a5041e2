//! Independent judges of placements, plans and functionalization.
#![forbid(unsafe_code)]
