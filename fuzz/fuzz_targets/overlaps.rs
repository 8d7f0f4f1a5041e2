//! Two layouts against enumeration: `cargo fuzz run overlaps`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::overlaps(data);
});
