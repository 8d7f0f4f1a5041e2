//! Archives of `torch.jit.save`: `cargo fuzz run torchscript`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::torchscript(data);
});
