//! Versions of the exported symbols (`RESTRIDE_1`), for the shared library alone: build it with one unit of code, as releases are.

include!(concat!(env!("OUT_DIR"), "/versions.rs"));
