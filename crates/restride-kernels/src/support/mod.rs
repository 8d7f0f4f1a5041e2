//! Shared by all kernels: conversion, packing, loops over layouts, arithmetic, scratch, threads.

pub(crate) mod array;
pub mod cache;
mod compute;
pub mod convert;
pub mod epilogue;
mod halves;
pub(crate) mod isa;
pub(crate) mod math;
pub mod number;
pub mod pack;
pub mod par;
pub mod rows;
pub(crate) mod runs;
pub mod scratch;
pub mod stack;
pub mod threads;
pub mod units;
