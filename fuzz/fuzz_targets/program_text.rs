//! A program as text: `cargo fuzz run program_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::program_text(data);
});
