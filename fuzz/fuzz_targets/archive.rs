//! A `.pt2`: `cargo fuzz run archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::archive(data);
});
