//! Several programs of one archive over one state, against PyTorch's module with the same calls in a row.

use restride::{CompileOptions, Compiled, Inputs, Methods, OpenOptions, RunOptions, RunValue};
use restride_pt2::tensors::{Item, NamedTensors, read_file};
use restride_tensor::{Bytes, DType, Layout, RawTensor, Storage};
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pt2").join(name)
}

fn tensor(calls: &NamedTensors, name: &str, dtype: DType) -> Option<RawTensor> {
    let Item::Tensor(t) = calls.get(name)? else { panic!("{name} is a tensor") };
    let bytes = calls.contiguous_bytes(t).expect("it is read");
    RawTensor::new(Storage::from_bytes(Bytes::copy_of(&bytes)), dtype, Layout::contiguous(&t.sizes))
}

fn numbers(t: &RawTensor) -> Vec<f64> {
    let size: i64 = t.layout().sizes.iter().product();
    let flat = Layout::contiguous(&t.layout().sizes);
    assert_eq!(t.layout().strides, flat.strides, "contiguous");
    (0..size)
        .map(|k| {
            let (mut index, mut rest) = (vec![0; t.layout().sizes.len()], k);
            for (i, n) in index.iter_mut().zip(&t.layout().sizes).rev() {
                (*i, rest) = (rest % n, rest / n);
            }
            match t.get(&index) {
                restride_tensor::Scalar::Float(x) => x,
                other => panic!("{other:?} is no float"),
            }
        })
        .collect()
}

fn close(what: &str, have: &RawTensor, want: &RawTensor) {
    let (have, want) = (numbers(have), numbers(want));
    assert_eq!(have.len(), want.len(), "{what}");
    let worst = have.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-5, "{what}: {worst}");
}

#[test]
fn a_prompt_and_three_tokens_over_one_cache() {
    let calls = read_file(&fixture("prefill_decode.calls.npz")).expect("the calls");
    let options = CompileOptions::default();
    let mut methods =
        Methods::open(&fixture("prefill_decode.pt2"), &OpenOptions::default(), &options).expect("it opens");
    assert_eq!(methods.names().collect::<Vec<_>>(), ["decode", "prefill"]);
    let mut largest = 0;
    for (i, method) in ["prefill", "decode", "decode", "decode"].into_iter().enumerate() {
        let x = tensor(&calls, &format!("{i}.{method}.0"), DType::F32).expect("a tensor");
        let position = tensor(&calls, &format!("{i}.{method}.1"), DType::I64);
        let values = [Some(x), position].into_iter().flatten().map(RunValue::Tensor).collect();
        let inputs = Inputs { values };
        let outputs = methods.run(method, &inputs, &RunOptions::default()).unwrap_or_else(|e| panic!("{method}: {e}"));
        let want = tensor(&calls, &format!("{i}.{method}.output"), DType::F32).expect("a result");
        close(&format!("call {i}"), outputs.values[0].tensor().expect("a tensor"), &want);
        let report = methods.compiled(method).expect("a method").prepare(&inputs).expect("a report").report();
        largest = largest.max(report.plan.arena_bytes);
        // The state of both methods is one: nothing of it is in the arena.
        assert!(report.plan.state_bytes >= 2 * 2 * 16 * 4 * 4, "{:?}", report.plan);
    }
    assert_eq!(methods.arena_bytes(), largest, "one arena, as large as the largest");
    for cache in ["k", "v"] {
        let want = tensor(&calls, &format!("buffer.{cache}"), DType::F32).expect("a buffer");
        close(cache, methods.state().get(&format!("attention.{cache}")).expect("a buffer"), &want);
    }
}

#[test]
fn states_that_do_not_agree_are_refused() {
    let open = |method: &str| {
        let options = OpenOptions { model: Some(method.into()), ..OpenOptions::default() };
        restride::open(&fixture("prefill_decode.pt2"), &options).expect("it opens")
    };
    let compile = |program| Compiled::new(program, None, &CompileOptions::default()).expect("it compiles");
    let refused = |other: restride::Program| {
        let programs = vec![("prefill".to_string(), compile(open("prefill"))), ("other".to_string(), compile(other))];
        Methods::new(programs).err().expect("it is refused").to_string()
    };
    let mut contents = open("decode");
    for storage in &mut std::sync::Arc::make_mut(&mut contents.weights).storages {
        *storage = Bytes::copy_of(&vec![1; storage.len()]);
    }
    assert!(refused(contents).contains("with different contents"));
}
