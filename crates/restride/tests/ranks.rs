//! Programs with collectives on threads as ranks: all ways of running agree bit for bit on every rank, and a fault of one rank
//! is an error of all that leaves inputs as they are.

use restride::collective::{Engine, thread_ranks, with_engine};
use restride::{CompileOptions, Compiled, DataParallel, Inputs, Program, Result, RunOptions, RunValue, Shard};
use std::sync::Arc;

fn program(text: &str) -> Program {
    restride::text::parse(text, &restride_ops::lookup).expect("a program")
}

/// Runs `rank` on threads as ranks, and returns their results.
fn on_ranks<T: Send>(size: usize, rank: impl Fn(usize, Arc<dyn Engine>) -> T + Sync) -> Vec<T> {
    let rank = &rank;
    std::thread::scope(|scope| {
        let engines = thread_ranks(size, &[]).into_iter().enumerate();
        let threads: Vec<_> = engines.map(|(r, engine)| scope.spawn(move || rank(r, engine))).collect();
        threads.into_iter().map(|t| t.join().expect("a rank")).collect()
    })
}

/// Inputs that differ from rank to rank.
fn inputs(program: &Program, rank: usize) -> Inputs {
    restride::random_inputs(program, rank as u64).expect("random inputs")
}

fn bytes(values: &[RunValue]) -> Vec<Vec<u8>> {
    values.iter().filter_map(RunValue::tensor).map(|t| t.storage().to_vec()).collect()
}

const IN_PLACE: &str = r#"program "in_place"
graph(%x: f32[4, 3]) {
  %y: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %col: f32[4][3]+1 = aten.select.int(%y, 1, 1)
  %s: f32[4] = _c10d_functional.all_reduce.default(%col, "sum", "0")
  %w: f32[4] = _c10d_functional.wait_tensor.default(%s)
  %c: f32[4][3]+1 = aten.copy_.default(%col, %w)
  %a: f32[4, 3] = _c10d_functional.all_reduce_.default(%y, "avg", "0")
  %b: f32[4, 3] = _c10d_functional.wait_tensor.default(%a)
  %x2: f32[4, 3] = aten.add_.Tensor(%x, %y)
  return %b
}"#;

const LISTS: &str = r#"program "lists"
graph(%x: f32[4, 3], %z: f32[2]) {
  %a: f32[4, 3], %b: f32[2] = _c10d_functional.all_reduce_coalesced.default([%x, %z], "max", "0")
  %c: f32[4, 3], %d: f32[2] = _c10d_functional.wait_tensors.default([%a, %b])
  %e: f32[4, 3], %f: f32[2] = _c10d_functional.all_reduce_coalesced_.default([%x, %z], "sum", "0")
  %g: f32[4, 3] = _c10d_functional.wait_tensor.default(%e)
  %h: f32[2] = _c10d_functional.wait_tensor.default(%f)
  %i: f32[4, 3] = aten.relu_.default(%c)
  return %i, %d, %a
}"#;

const MOVED: &str = r#"program "moved"
graph(%x: f32[4, 3]) {
  %t: f32[3, 4][1, 3] = aten.t.default(%x)
  %g: f32[12, 4] = _c10d_functional.all_gather_into_tensor.default(%t, 4, "0")
  %gw: f32[12, 4] = _c10d_functional.wait_tensor.default(%g)
  %r: f32[3, 4] = _c10d_functional_autograd.reduce_scatter_tensor.default(%gw, "sum", 4, "0")
  %rw: f32[3, 4] = _c10d_functional.wait_tensor.default(%r)
  %s: f32[4, 3] = _c10d_functional.all_to_all_single.default(%x, [1, 1, 1, 1], [1, 1, 1, 1], "0")
  %sw: f32[4, 3] = _c10d_functional.wait_tensor.default(%s)
  %o: f32[16, 3] = aten.empty.memory_format([16, 3])
  %p: f32[16, 3] = _c10d_functional.all_gather_into_tensor_out.default(%sw, 4, "0", out=%o)
  %pw: f32[16, 3] = _c10d_functional.wait_tensor.default(%p)
  %q: f32[4, 3] = _c10d_functional.broadcast_.default(%x, 2, "0")
  %qw: f32[4, 3] = _c10d_functional.wait_tensor.default(%q)
  return %rw, %o
}"#;

#[test]
fn all_ways_of_running_agree_on_every_rank() {
    for text in [IN_PLACE, LISTS, MOVED] {
        let program = program(text);
        on_ranks(4, |rank, engine| {
            with_engine(Some(engine), || {
                let inputs = inputs(&program, rank);
                let verdict = restride::verify(&program, &inputs, &RunOptions::default(), &CompileOptions::default());
                let verdict = verdict.unwrap_or_else(|e| panic!("{e}\n{text}"));
                assert_eq!(verdict.fault(), None, "{text}");
            });
        });
    }
}

fn run(text: &str, rank: usize, engine: Arc<dyn Engine>) -> (Result<Vec<Vec<u8>>>, bool) {
    let program = program(text);
    let inputs = inputs(&program, rank);
    let before = bytes(&inputs.values);
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
    let mut instance = compiled.instance().expect("an instance");
    instance.set_engine(engine);
    let outputs = instance.run(&inputs, &RunOptions::default()).map(|o| bytes(&o.values));
    (outputs, before == bytes(&inputs.values))
}

#[test]
fn ranks_with_other_programs_or_sizes_are_refused() {
    let other = IN_PLACE.replace("\"avg\"", "\"max\"");
    let longer = IN_PLACE.replace("4, 3]", "5, 3]").replace("f32[4]", "f32[5]");
    let none = "graph(%x: f32[4, 3]) {\n  %y: f32[4, 3] = aten.relu.default(%x)\n  return %y\n}";
    for (text, what) in [
        (&*other, "rank 1 runs another program"),
        (&*longer, "rank 1 runs another program"),
        (none, "rank 1 runs a program without exchanges in group `0`"),
    ] {
        let results = on_ranks(3, |rank, engine| run(if rank == 1 { text } else { IN_PLACE }, rank, engine));
        for (rank, (result, unharmed)) in results.into_iter().enumerate() {
            let e = result.expect_err(text).to_string();
            assert!(e.contains("the ranks do not agree"), "{e}");
            assert!(rank == 1 || e.contains(what), "{e}");
            assert!(unharmed, "{text}");
        }
    }
}

#[test]
fn an_error_of_one_rank_is_one_of_all() {
    let text = r#"graph(%x: f32[4, 3], %i: i64[2]) {
  %y: f32[2, 3] = aten.index_select.default(%x, 0, %i)
  %s: f32[2, 3] = _c10d_functional.all_reduce.default(%y, "sum", "0")
  %w: f32[2, 3] = _c10d_functional.wait_tensor.default(%s)
  return %w
}"#;
    let results = on_ranks(3, |rank, engine| {
        let program = program(text);
        let given = inputs(&program, rank);
        let mut values = given.values.clone();
        let index = if rank == 2 { [0i64, 9] } else { [0, 1] };
        values[1] = RunValue::Tensor(restride::RawTensor::from_slice(&index, &[2]));
        let given = Inputs::new(values);
        let compiled = Compiled::new(program, Some(&given), &CompileOptions::default()).expect("compiles");
        let mut instance = compiled.instance().expect("an instance");
        instance.set_engine(engine);
        instance.run(&given, &RunOptions::default()).map(|_| ()).map_err(|e| e.to_string())
    });
    assert!(results[2].as_ref().is_err_and(|e| e.contains("index_select")), "{results:?}");
    assert!(results[0].as_ref().is_err_and(|e| e.contains("rank 2 failed")), "{results:?}");
}

#[test]
fn a_group_of_more_ranks_needs_an_engine() {
    let program = program(MOVED);
    let inputs = inputs(&program, 0);
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
    let error = compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect_err("refused");
    assert!(error.to_string().contains("is of 4 ranks, and the group has 1"), "{error}");
}

/// What a training step of a rank leaves.
struct Trained {
    losses: Vec<f64>,
    /// Parameters, and what the optimizer keeps. Batch norm's running statistics are of the rank's own part of the batch, as
    /// DistributedDataParallel leaves them too.
    state: Vec<(String, Vec<u8>)>,
    copies: usize,
}

/// A few training steps on one batch.
fn trained(parallel: Option<DataParallel>, seed: u64, engine: Arc<dyn Engine>) -> Trained {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/classifier.pt2");
    let forward = restride::open(&path, &restride::OpenOptions::default()).expect("a program");
    let mut inputs = Inputs::from_samples(&forward).expect("samples").expect("tensors");
    inputs.values[0] = restride::random_inputs(&forward, seed).expect("inputs").values[0].clone();
    let forward = Compiled::new(forward, None, &CompileOptions::default()).expect("compiles");
    let adam = restride::Adam { lr: 0.01, ..Default::default() };
    let options = restride::GradOptions::default();
    let update = |step: &mut restride::UpdateStep<'_>, p: &restride::Parameter| adam.update(step, p);
    let step = match parallel {
        Some(parallel) => forward.train_parallel(&options, &parallel, &update),
        None => forward.train(&options, &update),
    };
    let compiled =
        Compiled::new(step.expect("a training step"), Some(&inputs), &CompileOptions::default()).expect("compiles");
    let report = compiled.prepare(&inputs).expect("prepared").report();
    let mut instance = compiled.instance().expect("an instance");
    instance.set_engine(engine);
    let mut loss = || {
        let outputs = instance.run(&inputs, &RunOptions::default()).expect("runs");
        outputs.values[0].tensor().expect("the loss").get(&[]).as_f64()
    };
    let losses = (0..5).map(|_| loss()).collect();
    let own = instance.state().iter().filter(|(name, _)| !name.contains("running"));
    let state = own.map(|(name, t)| (name.to_string(), restride::files::element_bytes(t))).collect();
    Trained { losses, state, copies: report.placed.copies }
}

fn buckets(bucket_bytes: usize) -> Option<DataParallel> {
    Some(DataParallel { bucket_bytes, ..DataParallel::default() })
}

#[test]
fn data_parallel_ranks_train_one_model() {
    let alone = on_ranks(1, |_, engine| trained(None, 3, engine)).remove(0);
    assert!(alone.losses[4] < alone.losses[0], "{:?}", alone.losses);
    for bytes in [0, 1 << 10, 1 << 30] {
        // The mean of two equal gradients is either of them, bit for bit.
        let same = on_ranks(2, |_, engine| trained(buckets(bytes), 3, engine));
        assert!(same.iter().all(|s| s.losses == alone.losses && s.state == alone.state), "buckets of {bytes} bytes");
        // Gradients are computed in their buckets.
        assert!(same.iter().all(|s| s.copies == alone.copies), "{} copies for {}", same[0].copies, alone.copies);
    }
    let apart = on_ranks(4, |rank, engine| trained(buckets(1 << 10), rank as u64, engine));
    assert!(apart.iter().all(|a| a.state == apart[0].state), "each rank has the same parameters");
    assert!(apart[1].losses != apart[0].losses && apart[3].state != alone.state);
}

#[test]
fn ranks_that_share_updates_train_the_same_model() {
    let apart = on_ranks(4, |rank, engine| trained(buckets(1 << 10), rank as u64, engine));
    let parameters = |t: &Trained| -> Vec<(String, Vec<u8>)> {
        t.state.iter().filter(|(name, _)| !name.starts_with("optimizer.")).cloned().collect()
    };
    let kept = |t: &Trained| -> usize {
        // The buffers of the parameters have the parameters' own memory.
        let own = |name: &String| name.starts_with("optimizer.") && !name.starts_with("optimizer.bucket.");
        t.state.iter().filter(|(name, _)| own(name)).map(|(_, bytes)| bytes.len()).sum()
    };
    for bytes in [1 << 10, 1 << 30] {
        let shared = on_ranks(4, |rank, engine| {
            let shard = Some(Shard { rank, ranks: 4 });
            trained(Some(DataParallel { shard, ..buckets(bytes).expect("buckets") }), rank as u64, engine)
        });
        for (shared, whole) in shared.iter().zip(&apart) {
            assert_eq!(shared.losses, whole.losses);
            assert_eq!(parameters(shared), parameters(whole));
            // Each rank keeps a quarter of the state, and a few elements to divide it equally.
            assert!(kept(shared) * 4 < kept(whole) + kept(whole) / 8, "{} for {}", kept(shared), kept(whole));
            assert_eq!(shared.copies, whole.copies);
        }
    }
}
