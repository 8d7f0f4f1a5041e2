//! Sessions: repeated runs on the same memory give the results of instances, without allocations.

use restride::{CompileOptions, Compiled, DType, Inputs, Layout, OpenOptions, RawTensor, RunOptions, RunValue};
use restride_testing::{Leftovers, difference};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::path::Path;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Scatters, a cache written in place, a `cat`, views and arithmetic.
const PROGRAM: &str = "program \"steady\"
graph(%x: f32[8, 16], %y: f32[8, 16], %k: f32[4, 8, 16]) {
  %a: f32[8, 16] = aten.mul.Tensor(%x, 2)
  %b: f32[8, 16] = aten.gelu.default(%a)
  %s: f32[8, 16] = aten.select.int(%k, 0, 1)
  %t: f32[8, 16] = aten.copy_.default(%s, %b)
  %c: f32[16, 16] = aten.cat.default([%b, %y])
  %u: f32[16, 16][1, 16] = aten.t.default(%c)
  %d: f32[16, 16] = aten.add.Tensor(%c, %u)
  %e: bool[16, 16] = aten.gt.Scalar(%d, 0)
  %f: f32[16, 16] = aten.where.self(%e, %c, %d)
  %g: f32[4, 8, 16] = aten.tanh.default(%k)
  return %f, %g
}
";

fn compiled(path: &Path) -> (Compiled, Inputs) {
    let program = restride::open(path, &OpenOptions::default()).expect("a program");
    let inputs = match Inputs::from_samples(&program) {
        Some(inputs) => inputs.expect("sample inputs"),
        None => restride::random_inputs(&program, 0).expect("random inputs"),
    };
    (Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles"), inputs)
}

fn of_text(text: &str) -> (Compiled, Inputs) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("random inputs");
    (Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles"), inputs)
}

fn left_by_instance(compiled: &Compiled, inputs: &Inputs) -> Leftovers {
    Leftovers::planned(compiled, inputs, &RunOptions::default()).expect("runs")
}

// One test: allocations are counted over all threads.
#[test]
fn sessions_leave_what_instances_leave() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut bound = 0;
    for name in
        ["examples/llama_decode", "examples/vit_small", "examples/batchnorm_train", "pt2/kv_cache", "pt2/map_rows"]
    {
        let (compiled, inputs) = compiled(&fixtures.join(name).with_extension("pt2"));
        let session = Leftovers::bound(&compiled, &inputs, &RunOptions::default(), 1).expect(name);
        assert_eq!(difference(&left_by_instance(&compiled, &inputs), &session), None, "{name}");
        bound += 1;
    }
    assert_eq!(bound, 5);

    for text in [WINDOWS, FILM] {
        let (compiled, inputs) = of_text(text);
        let session = Leftovers::bound(&compiled, &inputs, &RunOptions::default(), 1).expect(text);
        assert_eq!(difference(&left_by_instance(&compiled, &inputs), &session), None, "{text}");
    }

    // Sizes that each run tells anew.
    let (compiled_, inputs) = compiled(&fixtures.join("pt2/data_dependent.pt2"));
    let error =
        Leftovers::bound(&compiled_, &inputs, &RunOptions::default(), 1).expect_err("sizes that depend on data");
    assert!(error.to_string().contains("each run tells anew"), "{error}");

    memory_that_is_given();
    memory_that_outputs_share();
    views_of_inputs();
    memory_that_moves();
    nothing_is_allocated(&fixtures);
}

/// Outputs that are views of each other lie in the caller's memory for their base, in other memory after each rebinding.
fn memory_that_outputs_share() {
    let text = "program \"shared\"
graph(%x: f32[3, 2]) {
  %y: f32[3, 2] = aten.relu.default(%x)
  %t: f32[2, 3][1, 2] = aten.t.default(%y)
  return %y, %t
}
";
    let (compiled, inputs) = of_text(text);
    let base = || RawTensor::zeros(DType::F32, Layout::contiguous(&[3, 2]));
    let (first, second) = (base(), base());
    let instance = compiled.instance().expect("an instance");
    let given = |base: &RawTensor| [None, None, Some(base.clone())];
    let mut session = instance.session(&inputs, &given(&first), &RunOptions::default()).expect("a session");
    for memory in [&first, &second] {
        session.rebind(&inputs, &given(memory)).expect("memory of the base's type");
        session.run().expect("runs");
        let bases = session.bases().expect("bases");
        assert!(bases.len() == 1 && bases[0].tensor().is_some_and(|b| b.storage().same(memory.storage())));
        for value in &session.outputs().values {
            assert!(value.tensor().expect("a tensor").storage().same(memory.storage()));
        }
        assert!(memory.storage().to_vec().iter().any(|byte| *byte != 0));
    }
    // A base that begins inside of its memory, then one that the session makes, which begins at the start of it.
    let inside = RawTensor::zeros(DType::F32, Layout::contiguous(&[8]));
    let inside = inside.alias(DType::F32, Layout { offset: 2, ..Layout::contiguous(&[3, 2]) }).expect("fits");
    for (memory, offset) in [(given(&inside).to_vec(), 2), (Vec::new(), 0), (given(&inside).to_vec(), 2)] {
        session.rebind(&inputs, &memory).expect("memory of the base's type");
        session.run().expect("runs");
        let bases = session.bases().expect("bases");
        let base = bases[0].tensor().expect("a tensor");
        for value in session.outputs().values.iter().filter_map(RunValue::tensor) {
            assert!(value.storage().same(base.storage()) && value.layout().offset == offset);
        }
    }
    let more = [None, None, None, Some(base())];
    let error = session.rebind(&inputs, &more).expect_err("three outputs with the base");
    assert!(error.to_string().contains("memory for 4 outputs is given"), "{error}");
}

/// Outputs that are views of inputs follow them to other memory, and to other places in it; a refused rebinding changes nothing.
fn views_of_inputs() {
    let text = "program \"views\"
graph(%x: f32[3, 2]) {
  %t: f32[2, 3][1, 2] = aten.t.default(%x)
  %y: f32[3, 2] = aten.neg.default(%x)
  return %t, %y
}
";
    let (compiled, inputs) = of_text(text);
    let mut session =
        compiled.instance().expect("an instance").session(&inputs, &[], &RunOptions::default()).expect("a session");
    let numbers: Vec<u8> = (0..10u16).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    let storage = RawTensor::zeros(DType::F32, Layout::contiguous(&[10])).storage().clone();
    storage.write(&numbers);
    let at = |offset: i64| {
        RawTensor::new(storage.clone(), DType::F32, Layout::strided(&[3, 2], &[2, 1], offset)).expect("fits")
    };
    for offset in [0, 4, 4, 2] {
        let x = at(offset);
        session.rebind(&Inputs::new([RunValue::Tensor(x.clone())]), &[]).expect("the input's type");
        session.run().expect("runs");
        let values: Vec<&RawTensor> = session.outputs().values.iter().filter_map(RunValue::tensor).collect();
        assert!(values[0].storage().same(&storage) && values[0].layout().offset == offset);
        let [first, fourth] = [0, 3].map(|k| (offset + k) as f32);
        assert_eq!(values[0].to_elements::<f32>()[0], first);
        assert_eq!(values[1].to_elements::<f32>()[0], -first);
        assert_eq!(values[1].to_elements::<f32>()[3], -fourth);
    }
    let fresh = inputs.deep_clone();
    let own = fresh.values[0].tensor().expect("x").clone();
    let error = session.rebind(&fresh, &[None, Some(own)]).expect_err("the result would be written over its input");
    assert!(error.to_string().contains("give each memory of its own"), "{error}");
    session.run().expect("runs as before");
    let values: Vec<&RawTensor> = session.outputs().values.iter().filter_map(RunValue::tensor).collect();
    assert!(values[0].storage().same(&storage));
    assert_eq!(values[1].to_elements::<f32>()[..2], [-2.0, -3.0]);
}

/// Inputs at other places, on other storages, exchanged, and on the same cells: a session leaves what a run of an instance leaves.
fn memory_that_moves() {
    let views = "graph(%x: f32[3, 2], %y: f32[3, 2]) {
      %t: f32[2, 3][1, 2] = aten.t.default(%x)
      %row: f32[2]+2 = aten.select.int(%y, 0, 1)
      %bits: i32[3, 2] = aten.view.dtype(%y, i32)
      %sum: f32[3, 2] = aten.add.Tensor(%x, %y)
      %u: f32[2, 3][1, 2] = aten.t.default(%sum)
      return %t, %row, %bits, %sum, %u, %x
    }";
    let writes = "graph(%x: f32[3, 2], %y: f32[3, 2]) {
      %row: f32[2]+2 = aten.select.int(%x, 0, 1)
      %w: f32[2]+2 = aten.mul_.Tensor(%row, 2)
      %z: f32[3, 2] = aten.add.Tensor(%x, %y)
      %t: f32[2, 3][1, 2] = aten.t.default(%x)
      return %t, %z, %w, %y
    }";
    let storages: Vec<_> = (0..3u8)
        .map(|k| {
            let storage = RawTensor::zeros(DType::F32, Layout::contiguous(&[24])).storage().clone();
            storage.write(&(0..24u8).flat_map(|n| f32::from(n + 30 * k).to_le_bytes()).collect::<Vec<u8>>());
            storage
        })
        .collect();
    let mut state = 1u64;
    let mut drawn = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    for text in [views, writes] {
        let (compiled, inputs) = of_text(text);
        let instance = compiled.instance().expect("an instance");
        let mut session = instance.session(&inputs, &[], &RunOptions::default()).expect("a session");
        let mut refused = 0;
        for round in 0..200 {
            let mut tensor = || {
                let layout = Layout { offset: drawn(4) as i64 * 6, ..Layout::contiguous(&[3, 2]) };
                RunValue::Tensor(RawTensor::new(storages[drawn(3) as usize].clone(), DType::F32, layout).expect("fits"))
            };
            let inputs = Inputs::new([tensor(), tensor()]);
            let copies = inputs.deep_clone();
            let made = compiled.instance().expect("an instance").run(&copies, &RunOptions::default());
            let bound = session.rebind(&inputs, &[]);
            assert_eq!(made.is_err(), bound.is_err(), "{round}: {bound:?}");
            let Ok(made) = made else {
                refused += 1;
                continue;
            };
            session.run().expect("runs");
            let bytes = |i: &Inputs| -> Vec<Vec<u8>> {
                i.values.iter().filter_map(RunValue::tensor).map(|t| t.storage().to_vec()).collect()
            };
            assert_eq!(bytes(&copies), bytes(&inputs), "{round}");
            for (own, other) in session.outputs().values.iter().zip(&made.values) {
                let (own, other) = (own.tensor().expect("a tensor"), other.tensor().expect("a tensor"));
                assert_eq!(own.layout(), other.layout(), "{round}");
                assert_eq!(own.storage().to_vec(), other.storage().to_vec(), "{round}");
                let on = |t: &RawTensor, i: &Inputs| -> Vec<bool> {
                    i.values.iter().filter_map(RunValue::tensor).map(|x| x.storage().same(t.storage())).collect()
                };
                assert_eq!(on(own, &inputs), on(other, &copies), "{round}");
            }
        }
        assert_eq!(refused > 0, text == writes, "{refused} refused");
    }
}

/// Outputs lie in the caller's memory, and every run reads what the inputs' memory holds then.
fn memory_that_is_given() {
    let (compiled, inputs) = of_text(PROGRAM);
    let own = |sizes: &[i64]| RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
    let (f, g) = (own(&[16, 16]), own(&[4, 8, 16]));
    let given = inputs.deep_clone();
    let instance = compiled.instance().expect("an instance");
    let mut session =
        instance.session(&given, &[Some(f.clone()), Some(g.clone())], &RunOptions::default()).expect("a session");
    let first = f.storage().to_vec();
    session.run().expect("runs");
    assert_ne!(f.storage().to_vec(), first);
    // Other numbers in the same memory, then those from before.
    let x = given.values[0].tensor().expect("x").clone();
    let before = x.storage().to_vec();
    x.storage().write(&vec![0; before.len()]);
    session.run().expect("runs");
    let with_zeros = f.storage().to_vec();
    x.storage().write(&before);
    session.run().expect("runs");
    assert_ne!(f.storage().to_vec(), with_zeros);
    let want = left_by_instance(&compiled, &inputs);
    let RunValue::Tensor(want) = &want.values[0] else { panic!("a tensor") };
    assert_eq!(f.to_elements::<f32>(), want.to_elements::<f32>());

    let wrong = [
        (vec![Some(own(&[16, 15]))], "and it is"),
        (vec![Some(f.clone()), Some(f.alias(DType::F32, Layout::contiguous(&[4, 8, 16])).unwrap_or(f.clone()))], ""),
        (vec![Some(x.clone())], ""),
        (vec![None, None, Some(f)], "the program has 2"),
    ];
    for (outputs, why) in wrong {
        let instance = compiled.instance().expect("an instance");
        let error = instance.session(&given, &outputs, &RunOptions::default()).err().expect("refused");
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// Convolutions of all kinds, normalisations, pools and a classifier.
const NETWORK: &str = "program \"network\"
graph(%x: f32[1, 3, 40, 40], %w1: f32[16, 3, 3, 3], %b1: f32[16], %n: f32[16], %m: f32[16], %v: f32[16],
      %w2: f32[16, 1, 3, 3], %w3: f32[24, 16, 1, 1], %w4: f32[24, 24, 3, 3], %b4: f32[24], %l: f32[10, 24], %c: f32[10]) {
  %a: f32[1, 16, 20, 20] = aten.conv2d.default(%x, %w1, %b1, [2, 2], [1, 1])
  %d: f32[1, 16, 20, 20] = aten.batch_norm.default(%a, %n, %m, %m, %v, False, 0.1, 1e-05, True)
  %e: f32[1, 16, 20, 20] = aten.relu.default(%d)
  %f: f32[1, 16, 10, 10] = aten.max_pool2d.default(%e, [3, 3], [2, 2], [1, 1])
  %g: f32[1, 16, 10, 10] = aten.conv2d.default(%f, %w2, None, [1, 1], [1, 1], [1, 1], 16)
  %h: f32[1, 24, 10, 10] = aten.conv2d.default(%g, %w3)
  %i: f32[1, 24, 10, 10] = aten.conv2d.default(%h, %w4, %b4, [1, 1], [1, 1])
  %j: f32[1, 24, 10, 10] = aten.add.Tensor(%h, %i)
  %k: f32[1, 24, 1, 1] = aten.adaptive_avg_pool2d.default(%j, [1, 1])
  %o: f32[1, 24] = aten.flatten.using_ints(%k, 1)
  %p: f32[1, 10] = aten.linear.default(%o, %l, %c)
  %q: f32[1, 10] = aten.softmax.int(%p, 1)
  return %q
}
";

/// Windows of five dimensions, and kernels that look for elements.
const LOOKING: &str = "program \"looking\"
graph(%x: f32[2, 8, 8, 4], %k: f32[2, 8, 8, 4]) {
  %r: f32[2, 8, 8, 4] = aten.roll.default(%x, [1, 3], [1, 2])
  %v: f32[2, 2, 4, 2, 16] = aten.view.default(%r, [2, 2, 4, 2, 16])
  %p: f32[2, 2, 2, 4, 16][256, 128, 16, 32, 1] = aten.permute.default(%v, [0, 1, 3, 2, 4])
  %w: f32[8, 16, 4] = aten.reshape.default(%p, [8, 16, 4])
  %m: bool[8, 16, 4] = aten.gt.Scalar(%w, 0)
  %f: f32[8, 16, 4] = aten.masked_fill.Scalar(%w, %m, -1.5)
  %s: f32[8, 16, 4], %i: i64[8, 16, 4] = aten.sort.default(%f, 1, True)
  %u: f32[8, 16, 2], %j: i64[8, 16, 2] = aten.topk.default(%s, 2)
  %g: f32[8, 16, 2] = aten.gather.default(%s, 2, %j)
  %c: f32[8, 16, 2] = aten.cumsum.default(%g, 1)
  %d: f32[8, 16, 4] = aten.scatter.src(%s, 2, %j, %c)
  %n: f32[8, 4], %o: i64[8, 4] = aten.max.dim(%d, 1)
  %q: f32[2, 8, 8, 4] = aten.as_strided_scatter.default(%k, %n, [8, 4], [32, 1], 3)
  %e: f32[2, 8, 8, 4] = aten.fill.Scalar(%q, 2)
  %h: f32[2, 8, 8, 4] = aten.mul.Tensor(%e, %q)
  %l: f32[2, 8, 4] = aten.mean.dim(%h, [1])
  return %l, %o, %u
}
";

/// Windows of an image, in six dimensions: attention between the elements of each.
const WINDOWS: &str = "program \"windows\"
graph(%x: f32[1, 8, 8, 12], %n: f32[12], %m: f32[12], %w: f32[36, 12], %b: f32[36], %r: f32[4, 1, 3, 16, 16]) {
  %l: f32[1, 8, 8, 12] = aten.layer_norm.default(%x, [12], %n, %m)
  %s: f32[1, 8, 8, 12] = aten.roll.default(%l, [-2, -2], [1, 2])
  %v: f32[1, 2, 4, 2, 4, 12] = aten.view.default(%s, [1, 2, 4, 2, 4, 12])
  %p: f32[1, 2, 2, 4, 4, 12][768, 384, 48, 96, 12, 1] = aten.permute.default(%v, [0, 1, 3, 2, 4, 5])
  %i: f32[4, 16, 12] = aten.reshape.default(%p, [4, 16, 12])
  %q: f32[4, 16, 36] = aten.linear.default(%i, %w, %b)
  %t: f32[4, 16, 3, 1, 3, 4] = aten.view.default(%q, [4, 16, 3, 1, 3, 4])
  %u: f32[3, 4, 1, 3, 16, 4][12, 576, 12, 4, 36, 1] = aten.permute.default(%t, [2, 0, 3, 4, 1, 5])
  %a: f32[4, 1, 3, 16, 4][576, 12, 4, 36, 1] = aten.select.int(%u, 0, 0)
  %c: f32[4, 1, 3, 16, 4][576, 12, 4, 36, 1] = aten.select.int(%u, 0, 1)
  %d: f32[4, 1, 3, 16, 4][576, 12, 4, 36, 1] = aten.select.int(%u, 0, 2)
  %e: f32[4, 1, 3, 4, 16][576, 12, 4, 1, 36] = aten.transpose.int(%c, -2, -1)
  %f: f32[4, 1, 3, 16, 16] = aten.matmul.default(%a, %e)
  %g: f32[4, 1, 3, 16, 16] = aten.add.Tensor(%f, %r)
  %h: f32[4, 1, 3, 16, 16] = aten.softmax.int(%g, -1)
  %j: f32[4, 1, 3, 16, 4] = aten.matmul.default(%h, %d)
  %k: f32[4, 1, 16, 3, 4][192, 192, 4, 64, 1] = aten.transpose.int(%j, 2, 3)
  %o: f32[1, 2, 2, 4, 4, 12] = aten.reshape.default(%k, [1, 2, 2, 4, 4, 12])
  %y: f32[1, 2, 4, 2, 4, 12][768, 384, 48, 192, 12, 1] = aten.permute.default(%o, [0, 1, 3, 2, 4, 5])
  %z: f32[1, 8, 8, 12] = aten.reshape.default(%y, [1, 8, 8, 12])
  %aa: f32[1, 8, 8, 12] = aten.add.Tensor(%x, %z)
  return %aa
}
";

/// Windows of a film, in eight dimensions: more than layouts have room for, whose kernels allocate.
const FILM: &str = "program \"film\"
graph(%x: f32[2, 4, 8, 8, 3], %m: f32[2, 2, 2, 2, 1, 4, 4, 3]) {
  %v: f32[2, 2, 2, 2, 4, 2, 4, 3] = aten.view.default(%x, [2, 2, 2, 2, 4, 2, 4, 3])
  %p: f32[2, 2, 2, 2, 2, 4, 4, 3][768, 384, 96, 12, 192, 24, 3, 1] = aten.permute.default(%v, [0, 1, 3, 5, 2, 4, 6, 7])
  %g: f32[2, 2, 2, 2, 2, 4, 4, 3] = aten.gelu.default(%p)
  %a: f32[2, 2, 2, 2, 2, 4, 4, 3] = aten.add.Tensor(%g, %m)
  %s: f32[2, 2, 2, 2, 2, 4, 4, 3] = aten.softmax.int(%a, 5)
  %t: f32[2, 2, 2, 2, 2, 4, 4, 3] = aten.mul.Tensor(%s, %p)
  %q: f32[2, 2, 2, 2, 1, 4, 4, 1] = aten.mean.dim(%t, [4, 7], True)
  %c: f32[2, 2, 2, 2, 3, 4, 4, 3] = aten.cat.default([%t, %m], 4)
  %f: f32[2, 2, 2, 2, 3, 4, 4, 3] = aten.flip.default(%c, [1, 6])
  %d: f32[2, 2, 2, 2, 3, 4, 4, 3] = aten.sub.Tensor(%f, %q)
  %e: f32[2, 2, 2, 2, 3, 4, 4, 3] = aten.roll.default(%d, [1, 2], [3, 5])
  %n: f32[2, 2, 3, 2, 4, 2, 4, 3][2304, 1152, 48, 576, 12, 288, 3, 1] = aten.permute.default(%e, [0, 1, 4, 2, 5, 3, 6, 7])
  %o: f32[2, 6, 8, 8, 3] = aten.reshape.default(%n, [2, 6, 8, 8, 3])
  return %o
}
";

/// What a run allocates once it is going.
fn allocated(compiled: &Compiled, inputs: &Inputs, threads: usize) -> Option<usize> {
    let options = RunOptions { threads, ..RunOptions::default() };
    let mut session = compiled.instance().expect("an instance").session(inputs, &[], &options).ok()?;
    for _ in 0..3 {
        session.run().expect("runs");
    }
    let mut round = || {
        let region = Region::new(GLOBAL);
        for _ in 0..10 {
            session.run().expect("runs");
        }
        let change = region.change();
        change.allocations + change.reallocations
    };
    // The memory that a thread of the pool works in grows when it first gets a piece of a kernel's work, which may be late.
    let rounds = if threads > 1 { 50 } else { 1 };
    (0..rounds).map(|_| round()).min()
}

fn nothing_is_allocated(fixtures: &Path) {
    for (text, threads) in [PROGRAM, NETWORK, LOOKING, WINDOWS].into_iter().flat_map(|text| [(text, 1), (text, 2)]) {
        let (compiled, inputs) = of_text(text);
        assert_eq!(allocated(&compiled, &inputs, threads), Some(0), "{text}{threads} threads");
    }
    let (mut bound, mut found) = (0, Vec::new());
    for folder in ["examples", "pt2"] {
        let mut names: Vec<_> =
            std::fs::read_dir(fixtures.join(folder)).expect("fixtures").map(|e| e.expect("a file").path()).collect();
        names.sort();
        for path in names.iter().filter(|p| p.extension().is_some_and(|e| e == "pt2")) {
            let Ok(program) = restride::open(path, &OpenOptions::default()) else { continue };
            let Some(Ok(inputs)) = Inputs::from_samples(&program) else { continue };
            let Ok(compiled) = Compiled::new(program, Some(&inputs), &CompileOptions::default()) else { continue };
            let Some(n) = allocated(&compiled, &inputs, 1) else { continue };
            bound += 1;
            if n > 0 {
                found.push(path.file_stem().expect("a name").to_string_lossy().into_owned());
            }
        }
    }
    assert!(bound > 20, "only {bound} programs are bound");
    assert_eq!(found, Vec::<String>::new(), "programs that allocate");
}
