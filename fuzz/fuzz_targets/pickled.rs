//! What `torch.save` writes: `cargo fuzz run pickled`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::pickled(data);
});
