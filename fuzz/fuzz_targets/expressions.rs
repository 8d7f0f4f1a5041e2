//! Expressions: `cargo fuzz run expressions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::expressions(data);
});
