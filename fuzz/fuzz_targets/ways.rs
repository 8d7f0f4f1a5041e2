//! A random program of the input's bytes, run as imported, as functional and as planned: `cargo fuzz run ways`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::ways(data);
});
