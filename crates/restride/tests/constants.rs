//! What weights alone decide is computed once, and again where a weight changed: runs give the bits of a program that folds nothing.

use restride::{CompileOptions, Compiled, Inputs, Instance, OpenOptions, RawTensor, RunOptions, Storage};
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn compiled(name: &str, fold: bool) -> (Compiled, Inputs) {
    let program = restride::open(&file(name), &OpenOptions::default()).expect("a program");
    let inputs = Inputs::from_samples(&program).expect("samples").expect("samples");
    let options = CompileOptions { fold, ..CompileOptions::default() };
    (Compiled::new(program, Some(&inputs), &options).expect("it compiles"), inputs)
}

fn bits(tensors: &[restride::RunValue]) -> Vec<Vec<u8>> {
    let dense = |t: &RawTensor| restride_exec::copy::contiguous_copy(t).expect("a copy").storage().to_vec();
    tensors.iter().filter_map(|v| v.tensor()).map(dense).collect()
}

fn run(instance: &mut Instance, inputs: &Inputs) -> Vec<Vec<u8>> {
    bits(&instance.run(&inputs.deep_clone(), &RunOptions::default()).expect("it runs").values)
}

const VIT: &str = "examples/vit_small.pt2";

/// The first weight that is packed.
fn weight(instance: &Instance) -> String {
    let matrix = |t: &RawTensor| t.layout().sizes.len() == 2 && t.layout().sizes.iter().all(|n| *n >= 16);
    instance.state().iter().find(|(_, t)| matrix(t)).expect("a matrix").0.to_string()
}

/// Writes other numbers into a weight.
fn change(instance: &Instance, name: &str, by: f32) {
    let t = instance.state().get(name).expect("a weight");
    let old: Vec<u8> = t.storage().to_vec();
    let new: Vec<u8> =
        old.as_chunks::<4>().0.iter().flat_map(|b| (f32::from_le_bytes(*b) * 0.5 + by).to_le_bytes()).collect();
    t.storage().write(&new);
}

#[test]
fn folded_and_plain_runs_agree() {
    for name in [VIT, "examples/classifier.pt2", "examples/llama_decode.pt2", "examples/batchnorm_train.pt2"] {
        let ((plain, inputs), (folded, _)) = (compiled(name, false), compiled(name, true));
        let want = run(&mut plain.instance().expect("memory"), &inputs);
        let mut instance = folded.instance().expect("memory");
        assert_eq!(run(&mut instance, &inputs), want, "{name}");
        assert_eq!(run(&mut folded.instance().expect("memory"), &inputs), want, "{name}");
    }
    let report = |fold| compiled(VIT, fold).0.prepare(None).expect("static sizes").report().plan;
    assert!(report(true).packed_bytes > 0 && report(false).packed_bytes == 0);
    assert_eq!(report(false).constant_bytes, 0);
}

#[test]
fn what_no_input_decides_is_kept_where_asked() {
    let text = "graph(%x: f32[8, 8], %w: f32[8, 8]) {
  %i: i64[8] = aten.arange.default(8)
  %c: i64[8, 1] = aten.view.default(%i, [8, 1])
  %m: bool[8, 8] = aten.ge.Tensor(%c, %i)
  %low: f32[] = aten.scalar_tensor.default(-3.5)
  %y: f32[8, 8] = aten.where.self(%m, %x, %low)
  %z: f32[8, 8] = aten.mm.default(%y, %w)
  return %z, %m, %i
}
";
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("inputs");
    let steps = |fold: bool, ahead: bool| {
        let options = CompileOptions { fold, ahead, ..CompileOptions::default() };
        let compiled = Compiled::new(program.clone(), Some(&inputs), &options).expect("it compiles");
        let mut instance = compiled.instance().expect("memory");
        let first = run(&mut instance, &inputs);
        // Results are no constants: a caller may write them.
        assert_eq!(run(&mut instance, &inputs), first);
        let mut session = instance.session(&inputs, &[], &RunOptions::default()).expect("a session");
        for _ in 0..2 {
            session.run().expect("it runs");
            assert_eq!(bits(&session.outputs().values), first);
            for value in &session.outputs().values {
                let memory = value.tensor().expect("a tensor").storage();
                memory.write(&vec![0; memory.len()]);
            }
        }
        let constant = compiled.prepare(None).expect("known sizes").report().plan.constant_bytes;
        (first, constant)
    };
    let (want, none) = steps(false, false);
    let (have, kept) = steps(false, true);
    assert_eq!((&want, none), (&have, 0));
    assert!(kept > 0 && steps(true, true) == (want, kept), "{kept}");
}

#[test]
fn a_changed_weight_is_packed_again() {
    let ((plain, inputs), (folded, _)) = (compiled(VIT, false), compiled(VIT, true));
    let (mut want, mut a, mut b) =
        (plain.instance().expect("memory"), folded.instance().expect("memory"), folded.instance().expect("memory"));
    let name = weight(&a);
    let first = run(&mut want, &inputs);
    assert_eq!((run(&mut a, &inputs), run(&mut b, &inputs)), (first.clone(), first.clone()));
    for by in [0.25, -0.5] {
        change(&want, &name, by);
        change(&a, &name, by);
        let changed = run(&mut want, &inputs);
        assert_ne!(changed, first);
        assert_eq!(run(&mut a, &inputs), changed);
        assert_eq!(run(&mut b, &inputs), first, "the other instance has its own weights");
    }
    // Back to the file's weights, which the other instance has packed.
    a.reset().expect("weights");
    assert_eq!(run(&mut a, &inputs), first);
}

#[test]
fn sessions_see_changed_weights() {
    let ((plain, inputs), (folded, _)) = (compiled(VIT, false), compiled(VIT, true));
    let (mut want, a) = (plain.instance().expect("memory"), folded.instance().expect("memory"));
    let name = weight(&a);
    let mut session = a.session(&inputs.deep_clone(), &[], &RunOptions::default()).expect("a session");
    for _ in 0..2 {
        session.run().expect("it runs");
        assert_eq!(bits(&session.outputs().values), run(&mut want, &inputs));
    }
    change(&want, &name, 0.125);
    let t = session.state().get(&name).expect("a weight");
    t.storage().write(&want.state().get(&name).expect("a weight").storage().to_vec());
    session.run().expect("it runs");
    assert_eq!(bits(&session.outputs().values), run(&mut want, &inputs));
    let mut instance = session.into_instance();
    assert_eq!(run(&mut instance, &inputs), run(&mut want, &inputs));
}

/// Memory of the caller's may change without a lock of ours.
#[test]
fn weights_in_memory_of_the_caller_are_read_in_each_run() {
    let ((plain, inputs), (folded, _)) = (compiled(VIT, false), compiled(VIT, true));
    let (mut want, mut a) = (plain.instance().expect("memory"), folded.instance().expect("memory"));
    let name = weight(&a);
    run(&mut a, &inputs);
    let bytes = a.state().get(&name).expect("a weight").storage().len();
    let mut memory = vec![0f32; bytes.div_ceil(4)];
    let start = memory.as_mut_ptr();
    // SAFETY: the vector lives until the end of the test; it is written between runs only.
    let foreign = unsafe { Storage::foreign(start.cast(), memory.len() * 4, true, || {}) };
    a.state_mut().move_to(&name, foreign).expect("room");
    assert_eq!(run(&mut a, &inputs), run(&mut want, &inputs));
    change(&want, &name, 1.0);
    let new = want.state().get(&name).expect("a weight").storage().to_vec();
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), start.cast(), new.len()) };
    assert_eq!(run(&mut a, &inputs), run(&mut want, &inputs));
}
