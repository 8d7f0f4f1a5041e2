//! A program's JSON: `cargo fuzz run model_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::model_json(data);
});
