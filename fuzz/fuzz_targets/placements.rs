//! A damaged placement against a run: `cargo fuzz run placements`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::placements(data);
});
