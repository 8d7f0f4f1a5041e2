//! Memory of the caller, threads and processes: what goes where, and what is refused.

use restride::{
    AccessError, Bytes, CompileOptions, Compiled, DType, Inputs, Instance, Layout, OpenOptions, RawTensor, RunOptions,
    RunValue, Session, State, Storage, open, open_bytes, open_reader,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A layer of a decoder: writes a row of its cache, and reads all of it.
const DECODER: &str = "program \"decoder\"
graph(%x: f32[1, 8], %at: i64[1], %k: f32[16, 8]) {
  %row: f32[1, 8] = aten.tanh.default(%x)
  %w: f32[16, 8] = aten.index_copy_.default(%k, 0, %at, %row)
  %t: f32[8, 16][1, 8] = aten.t.default(%w)
  %s: f32[1, 16] = aten.mm.default(%x, %t)
  %o: f32[1, 8] = aten.mm.default(%s, %w)
  return %o
}
";

fn of_text(text: &str) -> (Compiled, Inputs) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("random inputs");
    (Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles"), inputs)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// The program, its sample inputs.
fn of_file(name: &str) -> (Compiled, Inputs) {
    let program = open(&fixture(name), &OpenOptions::default()).expect("a program");
    let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("tensors");
    (Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles"), inputs)
}

fn bytes(values: &[RunValue]) -> Vec<Vec<u8>> {
    values.iter().filter_map(RunValue::tensor).map(|t| t.storage().to_vec()).collect()
}

/// Memory that begins at a multiple of 64 in a vector.
fn foreign(bytes: usize) -> Storage {
    let mut owner = vec![0u64; bytes.div_ceil(8)];
    let start: *mut u8 = owner.as_mut_ptr().cast();
    // SAFETY: the vector goes with the storage, and is reached through it alone.
    unsafe { Storage::foreign(start, bytes, true, move || drop(owner)) }
}

#[test]
fn what_runs_goes_to_other_threads() {
    fn send<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    send::<Instance>();
    send::<Session>();
    send::<State>();
    send::<Inputs>();
    shared::<Compiled>();
    shared::<RawTensor>();
    shared::<Storage>();
    shared::<Bytes>();
}

#[test]
fn two_threads_run_two_instances_of_a_program_that_a_third_made() {
    let (compiled, inputs) = std::thread::spawn(|| of_file("pt2/kv_cache.pt2")).join().expect("compiles");
    let run = |mut instance: Instance, inputs: &Inputs| -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        for _ in 0..20 {
            left = bytes(&instance.run(inputs, &RunOptions::default()).expect("runs").values);
        }
        left
    };
    let want = run(compiled.instance().expect("an instance"), &inputs.deep_clone());
    // Instances made here, one of them run elsewhere before; inputs that are only read are shared.
    let instances = [compiled.instance().expect("an instance"), compiled.instance().expect("an instance")];
    let shared = inputs.deep_clone();
    let left = std::thread::scope(|s| {
        instances.map(|instance| s.spawn(|| run(instance, &shared))).map(|t| t.join().expect("no panic"))
    });
    assert_eq!(left, [want.clone(), want]);

    // A session goes from thread to thread.
    let instance = compiled.instance().expect("an instance");
    let mut session = instance.session(&inputs.deep_clone(), &[], &RunOptions::default()).expect("a session");
    session.run().expect("runs");
    let session = std::thread::spawn(move || {
        session.run().expect("runs");
        session
    });
    assert!(session.join().expect("no panic").run().is_ok());
}

#[test]
fn inputs_outputs_and_state_are_computed_where_the_caller_has_them() {
    let (compiled, inputs) = of_text(DECODER);
    let at = RawTensor::from_slice(&[3i64], &[1]);
    let x = inputs.values[0].clone();
    let own = RawTensor::zeros(DType::F32, Layout::contiguous(&[16, 8]));
    let plain = Inputs::new([x.clone(), at.clone().into(), own.clone().into()]);
    let want = compiled.instance().unwrap().run(&plain, &RunOptions::default()).expect("runs");

    let cache = RawTensor::new(foreign(16 * 8 * 4), DType::F32, Layout::contiguous(&[16, 8])).unwrap();
    let address = cache.storage().address();
    let given = Inputs::new([x, at.into(), cache.clone().into()]);
    let out = RawTensor::new(foreign(8 * 4), DType::F32, Layout::contiguous(&[1, 8])).unwrap();
    let mut session =
        compiled.instance().unwrap().session(&given, &[Some(out.clone())], &RunOptions::default()).expect("a session");
    session.run().expect("runs");
    assert_eq!(cache.storage().address(), address);
    assert_eq!(cache.to_elements::<f32>(), own.to_elements::<f32>());
    assert_eq!(out.to_elements::<f32>(), want.values[0].tensor().unwrap().to_elements::<f32>());
    assert!(cache.to_elements::<f32>()[24..32].iter().all(|v| *v != 0.0));

    // State.
    let (compiled, inputs) = of_file("pt2/kv_cache.pt2");
    let mut plain = compiled.instance().unwrap();
    let mut moved = compiled.instance().unwrap();
    let bytes = moved.state().get("k").expect("a buffer").storage().len();
    let memory = foreign(bytes);
    moved.state_mut().move_to("k", memory.clone()).expect("it fits");
    for _ in 0..2 {
        plain.run(&inputs.deep_clone(), &RunOptions::default()).expect("runs");
        moved.run(&inputs.deep_clone(), &RunOptions::default()).expect("runs");
    }
    assert_eq!(memory.to_vec(), plain.state().get("k").unwrap().storage().to_vec());
    assert!(moved.state_mut().move_to("k", foreign(bytes - 1)).is_err());
    assert!(moved.state_mut().resume("none", foreign(bytes)).is_err());
}

#[test]
fn memory_that_was_resized_is_refused_before_anything_is_written() {
    let (compiled, inputs) = of_text(DECODER);
    let session = || {
        let given = inputs.deep_clone();
        given.values[1].tensor().unwrap().storage().write(&0i64.to_le_bytes());
        (compiled.instance().unwrap().session(&given, &[], &RunOptions::default()).expect("a session"), given)
    };
    let (mut s, _) = session();
    s.run().expect("runs");
    let out = s.outputs().values[0].tensor().unwrap().clone();
    let before = out.storage().to_vec();
    out.storage().grow(before.len() * 4 + (8 << 20)).expect("grows");
    let e = s.run().expect_err("the output has moved");
    assert!(e.to_string().contains("resized since"), "{e}");
    assert_eq!(out.storage().to_vec()[..before.len()], before);

    let (mut s, given) = session();
    given.values[2].tensor().unwrap().storage().grow(1 << 20).expect("grows");
    assert!(s.run().expect_err("the input has moved").to_string().contains("resized since"));
}

#[test]
fn what_somebody_else_uses_is_refused() {
    let (compiled, inputs) = of_text(DECODER);
    let given = inputs.deep_clone();
    let (at, k) = (given.values[1].tensor().unwrap().clone(), given.values[2].tensor().unwrap().clone());
    at.storage().write(&0i64.to_le_bytes());
    let mut s = compiled.instance().unwrap().session(&given, &[], &RunOptions::default()).expect("a session");
    let reading = k.read();
    let e = s.run().expect_err("the cache is being read");
    assert!(e.to_string().contains("input k") && e.to_string().contains("being read"), "{e}");
    assert!(compiled.instance().unwrap().run(&given, &RunOptions::default()).is_err());
    drop(reading);
    // What is only read may be read elsewhere, too.
    let reading = at.read();
    s.run().expect("runs");
    drop(reading);
    let writing = at.write();
    assert!(s.run().is_err());
    drop(writing);
    s.run().expect("runs");
}

#[test]
fn read_only_and_overlapping_memory_is_refused_where_it_is_written() {
    let (compiled, inputs) = of_text(DECODER);
    let mut there = vec![0f32; 16 * 8 + 8];
    let start: *mut u8 = there.as_mut_ptr().cast();
    // SAFETY: the vector outlives the storages; runs refuse those that overlap.
    let part = |first: usize, n: usize, writable: bool| unsafe {
        Storage::foreign(start.add(first * 4), n * 4, writable, || {})
    };
    let cache = |s: Storage| RawTensor::new(s, DType::F32, Layout::contiguous(&[16, 8])).unwrap();
    let row = |s: Storage| RawTensor::new(s, DType::F32, Layout::contiguous(&[1, 8])).unwrap();
    let given = |x: Option<RawTensor>, k: RawTensor| {
        let x = x.map_or_else(|| inputs.values[0].clone(), RunValue::Tensor);
        Inputs::new([x, RawTensor::from_slice(&[0i64], &[1]).into(), k.into()])
    };
    let run = |i: &Inputs| compiled.instance().unwrap().run(i, &RunOptions::default()).map(|_| ());
    let bind = |i: &Inputs, out: Option<RawTensor>| {
        compiled.instance().unwrap().session(i, &[out], &RunOptions::default()).map(|_| ())
    };

    let e = run(&given(None, cache(part(0, 128, false)))).expect_err("it is written");
    assert!(e.to_string().contains("read-only"), "{e}");
    // What is only read may be read-only.
    run(&given(Some(row(part(0, 8, false))), cache(part(8, 128, true)))).expect("runs");
    // An input on a part of the cache, an output on it.
    let e = run(&given(Some(row(part(120, 8, true))), cache(part(0, 128, true)))).expect_err("they overlap");
    assert!(e.to_string().contains("shares memory"), "{e}");
    let e = bind(&given(None, cache(part(0, 128, true))), Some(row(part(124, 8, true)))).expect_err("they overlap");
    assert!(e.to_string().contains("memory of its own"), "{e}");
    bind(&given(None, cache(part(0, 128, true))), Some(row(part(128, 8, true)))).expect("they are apart");
    assert_eq!(cache(part(0, 128, false)).storage().try_write(&[1]), Err(AccessError::ReadOnly));
}

/// A view of no elements needs no alignment: neither of a view of bytes, nor of memory of none.
#[test]
fn no_elements_may_be_anywhere() {
    let text = "graph(%x: u8[7], %y: f64[0]) {
  %none: u8[0] = aten.slice.Tensor(%x, 0, 0, 0)
  %larger: f32[0] = aten.view.dtype(%none, f32)
  %sum: f32[] = aten.sum.default(%larger)
  %product: f64[] = aten.prod.default(%y)
  return %sum, %product
}
";
    let (compiled, _) = of_text(text);
    let odd = |bytes: usize| {
        let mut owner = vec![0u64; 2];
        let start: *mut u8 = owner.as_mut_ptr().cast();
        // SAFETY: as in `foreign`; at most 15 bytes follow the first one.
        unsafe { Storage::foreign(start.wrapping_add(1), bytes, true, move || drop(owner)) }
    };
    for empty in [0, 7] {
        let x = RawTensor::new(odd(7), DType::U8, Layout::contiguous(&[7])).unwrap();
        let y = RawTensor::new(odd(empty), DType::F64, Layout::contiguous(&[0])).unwrap();
        let inputs = Inputs::new(vec![RunValue::Tensor(x), RunValue::Tensor(y)]);
        let out = compiled.instance().unwrap().run(&inputs, &RunOptions::default()).unwrap();
        let numbers: Vec<f64> = out.values.iter().map(|v| v.tensor().unwrap().get(&[]).as_f64()).collect();
        assert_eq!(numbers, [0.0, 1.0]);
    }
}

#[test]
fn programs_are_opened_from_bytes_and_readers() {
    let path = fixture("pt2/kv_cache.pt2");
    let all = std::fs::read(&path).expect("a file");
    let options = OpenOptions::default();
    let want = restride::text::print(&open(&path, &options).unwrap());
    let body = |text: &str| text.split_once('\n').expect("lines").1.to_string();
    for program in [
        open_bytes(&Bytes::from_owner(all.clone()), &options).unwrap(),
        open_reader(&all[..], &options).unwrap(),
        open(&path, &OpenOptions { no_mmap: true, ..OpenOptions::default() }).unwrap(),
    ] {
        assert_eq!(body(&restride::text::print(&program)), body(&want));
    }
    assert_eq!(open_bytes(&Bytes::copy_of(DECODER.as_bytes()), &options).unwrap().graph().inputs.len(), 3);
    assert!(open_bytes(&Bytes::copy_of(&[0xFF, 0xFE]), &options).is_err());
    assert!(open_reader(&all[..all.len() / 2], &options).is_err());
}

/// A file that is read instead of mapped may be cut while its program runs.
#[test]
fn a_file_that_is_read_may_be_cut_short() {
    let path = std::env::temp_dir().join(format!("restride-cut-{}.pt2", std::process::id()));
    std::fs::copy(fixture("pt2/kv_cache.pt2"), &path).expect("a copy");
    let program = open(&path, &OpenOptions { no_mmap: true, ..OpenOptions::default() }).expect("a program");
    let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("tensors");
    std::fs::write(&path, []).expect("cut");
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
    compiled.instance().unwrap().run(&inputs, &RunOptions::default()).expect("runs");
    std::fs::remove_file(&path).expect("removed");
}

/// Steps of the decoder whose cache is in a mapped file, from row `first` on; the last output.
fn decode(file: &Path, first: i64, steps: i64) -> Vec<f32> {
    let (compiled, _) = of_text(DECODER);
    let file = std::fs::File::options().read(true).write(true).open(file).expect("a file");
    // SAFETY: the other process has ended, or has not begun.
    let map = unsafe { memmap2::MmapMut::map_mut(&file).expect("mapped") };
    let cache = RawTensor::new(Storage::from_owner(map), DType::F32, Layout::contiguous(&[16, 8])).expect("it fits");
    let (x, at) = (RawTensor::from_slice(&[0f32; 8], &[1, 8]), RawTensor::from_slice(&[0i64], &[1]));
    let inputs = Inputs::new([x.clone().into(), at.clone().into(), cache.into()]);
    let mut session = compiled.instance().unwrap().session(&inputs, &[], &RunOptions::default()).expect("a session");
    for i in first..first + steps {
        let row: Vec<u8> = (0..8).flat_map(|j| ((i * 8 + j) as f32 * 0.37).sin().to_le_bytes()).collect();
        x.storage().write(&row);
        at.storage().write(&i.to_le_bytes());
        session.run().expect("runs");
    }
    session.outputs().values[0].tensor().expect("a tensor").to_elements::<f32>()
}

/// One process writes the first rows of a cache in a file, another one continues: this test runs itself again for that.
#[test]
fn a_mapped_file_is_the_cache_of_two_processes() {
    const FILE: &str = "RESTRIDE_TEST_CACHE";
    if let Some(file) = std::env::var_os(FILE) {
        println!("{:?}", decode(Path::new(&file), 5, 4));
        return;
    }
    let name = |n: &str| std::env::temp_dir().join(format!("restride-{n}-{}", std::process::id()));
    let (one, two) = (name("one"), name("two"));
    for path in [&one, &two] {
        std::fs::write(path, vec![0u8; 16 * 8 * 4]).expect("a file");
    }
    let want = decode(&one, 0, 9);
    decode(&two, 0, 5);
    let again = Command::new(std::env::current_exe().expect("this test"))
        .args(["memory::a_mapped_file_is_the_cache_of_two_processes", "--exact", "--nocapture"])
        .env(FILE, &two)
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && said.contains(&format!("{want:?}")), "{want:?}\n{said}");
    assert_eq!(std::fs::read(&two).expect("a file"), std::fs::read(&one).expect("a file"));
    assert!(std::fs::read(&one).expect("a file").iter().any(|b| *b != 0));
    for path in [one, two] {
        std::fs::remove_file(path).expect("removed");
    }
}
