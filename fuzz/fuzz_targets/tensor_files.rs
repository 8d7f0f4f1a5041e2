//! Files of tensors: `cargo fuzz run tensor_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restride_testing::fuzz::tensor_files(data);
});
