//! Graphs as text, in PyTorch's forms: `cargo fuzz run pasted_graphs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::pasted_graphs(data);
});
