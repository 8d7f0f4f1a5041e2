//! A damaged plan against a run: `cargo fuzz run plans`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::plans(data);
});
