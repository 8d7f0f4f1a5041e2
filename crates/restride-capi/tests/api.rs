//! The API called as C calls it: through its extern functions and raw structs.
#![allow(unused_unsafe)]

use restride_capi::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor};
use restride_capi::*;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

fn fixture(name: &str) -> CString {
    CString::new(format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).expect("no NUL")
}

fn text<'a>(text: *const c_char) -> &'a str {
    assert!(!text.is_null());
    // SAFETY: texts of the API end with NUL and live as long as their handle.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8")
}

/// Passes on success.
#[track_caller]
fn ok(status: *mut restride_status) {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        if !status.is_null() {
            panic!("{}", text(restride_status_text(status)));
        }
    }
}

/// The text of an error of this kind, freed.
#[track_caller]
fn refused(status: *mut restride_status, kind: restride_kind) -> String {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        assert!(!status.is_null(), "accepted");
        let all = text(restride_status_text(status)).to_string();
        assert_eq!(restride_status_kind(status), kind, "{all}");
        assert!(!all.is_empty());
        restride_status_free(status);
        all
    }
}

fn open(name: &str) -> *mut restride_program {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let mut program = null_mut();
        ok(restride_open(fixture(name).as_ptr(), null(), &mut program));
        program
    }
}

/// A tensor in memory of the test.
struct Lent<T> {
    data: Vec<T>,
    sizes: Vec<i64>,
    dtype: DLDataType,
}

impl<T> Lent<T> {
    fn new(data: Vec<T>, sizes: &[i64], code: u8) -> Lent<T> {
        let dtype = DLDataType { code, bits: size_of::<T>() as u8 * 8, lanes: 1 };
        Lent { data, sizes: sizes.to_vec(), dtype }
    }

    fn dl(&mut self) -> DLTensor {
        DLTensor {
            data: self.data.as_mut_ptr().cast::<c_void>(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: self.sizes.len() as i32,
            dtype: self.dtype,
            shape: self.sizes.as_mut_ptr(),
            strides: null_mut(),
            byte_offset: 0,
        }
    }
}

fn named(name: *const c_char, tensor: &DLTensor) -> restride_tensor {
    restride_tensor { name, tensor, managed: null_mut(), storage: 0, flags: 0 }
}

/// The elements of a tensor that the API gave, which is freed.
fn elements<T: Copy>(tensor: *mut DLManagedTensorVersioned) -> Vec<T> {
    // SAFETY: the API gave the tensor, row-major in these tests, and it is freed once.
    unsafe {
        let t = &(*tensor).dl_tensor;
        let count = std::slice::from_raw_parts(t.shape, t.ndim as usize).iter().product::<i64>() as usize;
        let out = std::slice::from_raw_parts(t.data.cast::<T>(), count).to_vec();
        (*tensor).deleter.expect("a deleter")(tensor);
        out
    }
}

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;

#[test]
fn a_decode_loop_keeps_its_cache_in_the_callers_memory() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let program = open("examples/llama_decode.pt2");
        let (mut compiled, mut instance) = (null_mut(), null_mut());
        ok(restride_compile(program, null(), 0, null(), &mut compiled));
        ok(restride_instance_new(compiled, &mut instance));

        let mut count = 0;
        ok(restride_program_count(program, restride_role::State as u32, &mut count));
        let mut caches: Vec<(CString, Lent<u8>)> = Vec::new();
        for index in 0..count {
            let mut d = std::mem::MaybeUninit::uninit();
            ok(restride_program_describe(program, restride_role::State as u32, index, d.as_mut_ptr()));
            // SAFETY: the call succeeded.
            let d: restride_description = unsafe { d.assume_init() };
            if d.mutated == 1 && d.kind == restride_value_kind::Buffer {
                let bytes = d.storage_bytes;
                caches.push((
                    CString::new(text(d.name)).expect("no NUL"),
                    Lent::new(vec![0u8; bytes], &[bytes as i64], UINT),
                ));
            }
        }
        // Keys, values and lengths of two layers.
        assert_eq!(caches.len(), 6);
        let memory: Vec<(CString, DLTensor)> = caches.iter_mut().map(|(n, c)| (n.clone(), c.dl())).collect();
        let state: Vec<restride_tensor> = memory.iter().map(|(n, t)| named(n.as_ptr(), t)).collect();
        ok(restride_instance_bind_state(instance, state.as_ptr(), state.len(), restride_contents::Copy as u32));

        let (mut token, mut position) = (Lent::new(vec![1i64], &[1, 1], INT), Lent::new(vec![0i64], &[1], INT));
        let mut logits = Lent::new(vec![0f32; 128], &[1, 1, 128], FLOAT);
        let (t, p, l) = (token.dl(), position.dl(), logits.dl());
        let (inputs, outputs) = ([named(null(), &t), named(null(), &p)], [named(c"output.0".as_ptr(), &l)]);
        let mut session = null_mut();
        ok(restride_session_new(instance, inputs.as_ptr(), 2, outputs.as_ptr(), 1, &mut session));
        // The session has the instance now.
        assert!(
            refused(restride_instance_run(instance, null(), 0, null_mut()), restride_kind::Argument).contains("freed")
        );

        let mut tokens = Vec::new();
        for at in 0..4 {
            // SAFETY: the session is not running.
            unsafe { p.data.cast::<i64>().write_volatile(at) };
            ok(restride_session_run(session));
            // SAFETY: as above.
            let now: Vec<f32> = (0..128).map(|i| unsafe { l.data.cast::<f32>().add(i).read_volatile() }).collect();
            let best = now.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i as i64);
            tokens.push(best);
            // SAFETY: as above.
            unsafe { t.data.cast::<i64>().write_volatile(best) };
        }
        assert!(tokens.iter().any(|t| *t != tokens[0]), "{tokens:?}");
        restride_session_free(session);
        assert!(caches.iter().all(|(_, c)| c.data.iter().any(|b| *b != 0)), "the caches were not written");
        restride_compiled_free(compiled);
        restride_program_free(program);
    }
}

#[test]
fn ten_training_steps_lower_the_loss() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let program = open("examples/classifier.pt2");
        let mut options = std::mem::MaybeUninit::uninit();
        restride_grad_options_init(options.as_mut_ptr());
        // SAFETY: initialised above.
        let mut options: restride_grad_options = unsafe { options.assume_init() };
        (options.optimizer, options.lr) = (restride_optimizer::Adam as u32, 0.01);
        let mut step = null_mut();
        ok(restride_grad(program, &options, &mut step));
        let (mut compiled, mut instance) = (null_mut(), null_mut());
        ok(restride_compile(step, null(), 0, null(), &mut compiled));
        ok(restride_instance_new(compiled, &mut instance));
        let mut count = 0;
        ok(restride_program_count(step, restride_role::Input as u32, &mut count));
        let mut losses = Vec::new();
        for _ in 0..10 {
            let inputs: Vec<restride_tensor> = (0..count)
                .map(|i| {
                    let mut sample = null_mut();
                    ok(restride_program_sample(step, i, &mut sample));
                    // Given away: the library frees it.
                    restride_tensor { name: null(), tensor: null(), managed: sample, storage: 0, flags: 0 }
                })
                .collect();
            let mut outputs = null_mut();
            ok(restride_instance_run(instance, inputs.as_ptr(), inputs.len(), &mut outputs));
            assert_eq!(text(restride_outputs_name(outputs, 0)), "output.0");
            let mut loss = null_mut();
            ok(restride_outputs_tensor(outputs, 0, &mut loss));
            restride_outputs_free(outputs);
            losses.push(elements::<f32>(loss)[0]);
        }
        assert!(losses[9] < losses[0], "{losses:?}");
        let mut json = null_mut();
        ok(restride_compiled_plan_json(compiled, null(), 0, &mut json));
        assert!(text(json).contains("\"arena_bytes\":"));
        restride_string_free(json);
        restride_instance_free(instance);
        restride_compiled_free(compiled);
        restride_program_free(step);
        restride_program_free(program);
    }
}

#[test]
fn methods_share_their_state() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let mut methods = null_mut();
        ok(restride_methods_open(fixture("pt2/prefill_decode.pt2").as_ptr(), null(), null(), &mut methods));
        let mut names = null_mut();
        ok(restride_methods_names(methods, &mut names));
        let all: Vec<&str> = (0..restride_strings_count(names)).map(|i| text(restride_strings_get(names, i))).collect();
        assert_eq!(all, ["decode", "prefill"]);
        let state = |methods| {
            let mut k = null_mut();
            ok(restride_methods_state(methods, c"attention.k".as_ptr(), &mut k));
            elements::<f32>(k)
        };
        let before = state(methods);
        for name in [c"prefill", c"decode"] {
            let mut program = null_mut();
            ok(restride_methods_program(methods, name.as_ptr(), &mut program));
            let mut count = 0;
            ok(restride_program_count(program, 0, &mut count));
            let inputs: Vec<restride_tensor> = (0..count)
                .map(|i| {
                    let mut sample = null_mut();
                    ok(restride_program_sample(program, i, &mut sample));
                    restride_tensor { name: null(), tensor: null(), managed: sample, storage: 0, flags: 0 }
                })
                .collect();
            ok(restride_methods_run(methods, name.as_ptr(), inputs.as_ptr(), inputs.len(), null_mut()));
            restride_program_free(program);
        }
        assert_ne!(before, state(methods));
        let error =
            refused(restride_methods_run(methods, c"train".as_ptr(), null(), 0, null_mut()), restride_kind::Inputs);
        assert_eq!(error, "no program is called \"train\"; the archive has decode, prefill");
        restride_strings_free(names);
        restride_methods_free(methods);
    }
}

#[test]
fn shared_memory_is_declared() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let source = "graph(%x: f32[2], %y: f32[2]) {\n  %z: f32[2] = aten.add_.Tensor(%x, %y)\n  return %z\n}\n";
        let mut program = null_mut();
        ok(restride_open_bytes(source.as_ptr(), source.len(), 0, null(), &mut program));
        let mut memory = Lent::new(vec![1f32, 2.0], &[2], FLOAT);
        let (x, y) = (memory.dl(), memory.dl());
        let run = |compile_with: &[restride_tensor; 2], run_with: &[restride_tensor; 2]| {
            let (mut compiled, mut instance) = (null_mut(), null_mut());
            ok(restride_compile(program, compile_with.as_ptr(), 2, null(), &mut compiled));
            ok(restride_instance_new(compiled, &mut instance));
            let status = restride_instance_run(instance, run_with.as_ptr(), 2, null_mut());
            restride_instance_free(instance);
            restride_compiled_free(compiled);
            status
        };
        let apart = [named(null(), &x), named(null(), &y)];
        refused(run(&apart, &apart), restride_kind::Inputs);
        let shared = apart.map(|t| restride_tensor { storage: 7, ..t });
        ok(run(&shared, &shared));
        assert_eq!(memory.data, [2.0, 4.0]);
        let far = DLTensor { byte_offset: 1 << 20, ..x };
        let gap = [shared[0], restride_tensor { storage: 7, ..named(null(), &far) }];
        let mut compiled = null_mut();
        let error = refused(restride_compile(program, gap.as_ptr(), 2, null(), &mut compiled), restride_kind::Argument);
        assert!(error.contains("leave a gap"), "{error}");
        restride_program_free(program);
    }
}

#[test]
fn what_c_gets_wrong_is_an_error() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        use restride_kind::{Argument, File, Inputs};
        let mut program = null_mut();
        refused(restride_open(null(), null(), &mut program), Argument);
        refused(restride_open(c"x.pt2".as_ptr(), null(), null_mut()), Argument);
        refused(restride_open(c"\xff".as_ptr(), null(), &mut program), Argument);
        refused(restride_open(c"/nowhere/x.pt2".as_ptr(), null(), &mut program), File);
        assert!(program.is_null());
        let mut options = std::mem::MaybeUninit::uninit();
        restride_open_options_init(options.as_mut_ptr());
        // SAFETY: initialised above.
        let mut options: restride_open_options = unsafe { options.assume_init() };
        options.no_mmap = 2;
        refused(restride_open(fixture("pt2/kv_cache.pt2").as_ptr(), &options, &mut program), Argument);
        (options.no_mmap, options.size) = (0, 3);
        refused(restride_open(fixture("pt2/kv_cache.pt2").as_ptr(), &options, &mut program), Argument);
        refused(restride_open_bytes(null(), 5, 0, null(), &mut program), Argument);
        refused(restride_open_bytes(b"PK".as_ptr(), 2, 7, null(), &mut program), Argument);
        refused(restride_open_bytes(b"PK".as_ptr(), usize::MAX, 0, null(), &mut program), Argument);
        refused(restride_open_bytes(b"PK".as_ptr(), 2, 1, null(), &mut program), File);

        let program = open("examples/llama_decode.pt2");
        let mut count = 1;
        refused(restride_program_count(program, 3, &mut count), Argument);
        assert_eq!(count, 0);
        refused(restride_program_count(null(), 0, &mut count), Argument);
        // A handle of another type.
        refused(restride_instance_new(program.cast(), &mut null_mut()), Argument);
        let (mut compiled, mut instance) = (null_mut(), null_mut());
        ok(restride_compile(program, null(), 0, null(), &mut compiled));
        ok(restride_instance_new(compiled, &mut instance));

        let mut wrong_type = Lent::new(vec![1f32], &[1, 1], FLOAT);
        let mut wrong_size = Lent::new(vec![1i64, 1], &[1, 2], INT);
        let (mut token, mut position) = (Lent::new(vec![1i64], &[1, 1], INT), Lent::new(vec![0i64], &[1], INT));
        let p = position.dl();
        let run = |t: &DLTensor, p: &DLTensor| {
            let inputs = [named(null(), t), named(null(), p)];
            restride_instance_run(instance, inputs.as_ptr(), 2, null_mut())
        };
        refused(run(&wrong_type.dl(), &p), Inputs);
        refused(run(&wrong_size.dl(), &p), Inputs);
        let t = token.dl();
        refused(run(&DLTensor { data: null_mut(), ..t }, &p), Argument);
        refused(run(&DLTensor { byte_offset: 1, ..t }, &p), Argument);
        refused(run(&DLTensor { byte_offset: u64::MAX, ..t }, &p), Argument);
        refused(run(&DLTensor { ndim: -1, ..t }, &p), Argument);
        refused(run(&DLTensor { ndim: 1 << 30, ..t }, &p), Argument);
        refused(run(&DLTensor { shape: null_mut(), ..t }, &p), Argument);
        refused(run(&DLTensor { dtype: DLDataType { code: 9, bits: 64, lanes: 1 }, ..t }, &p), Argument);
        refused(run(&DLTensor { dtype: DLDataType { code: 0, bits: 64, lanes: 4 }, ..t }, &p), Argument);
        refused(run(&DLTensor { device: DLDevice { device_type: 2, device_id: 0 }, ..t }, &p), Argument);
        let mut sizes = [i64::MAX, i64::MAX];
        refused(run(&DLTensor { shape: sizes.as_mut_ptr(), ..t }, &p), Argument);
        let mut sizes = [-1, 1];
        refused(run(&DLTensor { shape: sizes.as_mut_ptr(), ..t }, &p), Argument);
        refused(restride_instance_run(instance, null(), 2, null_mut()), Argument);
        refused(restride_instance_run(instance, null(), 0, null_mut()), Inputs);
        let both = [named(c"token".as_ptr(), &t), named(c"nothing".as_ptr(), &p)];
        refused(restride_instance_run(instance, both.as_ptr(), 2, null_mut()), Inputs);
        let empty = restride_tensor { name: null(), tensor: null(), managed: null_mut(), storage: 0, flags: 0 };
        refused(restride_instance_run(instance, [empty, empty].as_ptr(), 2, null_mut()), Argument);
        let flags = restride_tensor { flags: 8, ..named(null(), &t) };
        refused(restride_instance_run(instance, &flags, 1, null_mut()), Argument);
        refused(restride_instance_bind_state(instance, &named(c"key_cache_0".as_ptr(), &t), 1, 0), Inputs);
        refused(restride_instance_bind_state(instance, &named(c"nothing".as_ptr(), &t), 1, 0), Inputs);
        refused(restride_instance_bind_state(instance, &named(null(), &t), 1, 0), Argument);
        refused(restride_instance_bind_state(instance, &named(c"key_cache_0".as_ptr(), &t), 1, 9), Argument);

        // A session that cannot be bound leaves the instance as it was.
        let mut session = null_mut();
        let inputs = [named(null(), &t), named(null(), &p)];
        let outputs = [named(c"output.9".as_ptr(), &t)];
        refused(restride_session_new(instance, inputs.as_ptr(), 2, outputs.as_ptr(), 1, &mut session), Inputs);
        ok(run(&t, &p));

        // All of these take NULL.
        restride_program_free(null_mut());
        restride_status_free(null_mut());
        assert_eq!(restride_status_kind(null()), restride_kind::Ok);
        restride_instance_free(instance);
        restride_compiled_free(compiled);
        restride_program_free(program);
        // Just freed: the memory is free still, or has another owner and another first word.
        let mut count = 0;
        let error = refused(restride_program_count(program, 0, &mut count), Argument);
        assert!(error.contains("freed") || error.contains("is no restride_program"), "{error}");
        restride_program_free(program);
    }
}

#[test]
fn an_error_names_node_and_source_line() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let source = "graph(%x: f32[4], %i: i64[1]) {\n  %y: f32[1] = aten.index.Tensor(%x, [%i]) # model.py:7\n  return %y\n}\n";
        let mut program = null_mut();
        ok(restride_open_bytes(source.as_ptr(), source.len(), 1, null(), &mut program));
        let (mut compiled, mut instance) = (null_mut(), null_mut());
        ok(restride_compile(program, null(), 0, null(), &mut compiled));
        ok(restride_instance_new(compiled, &mut instance));
        let (mut x, mut i) = (Lent::new(vec![0f32; 4], &[4], FLOAT), Lent::new(vec![9i64], &[1], INT));
        let (x, i) = (x.dl(), i.dl());
        let inputs = [named(null(), &x), named(null(), &i)];
        let status = restride_instance_run(instance, inputs.as_ptr(), 2, null_mut());
        assert!(text(restride_status_message(status)).contains("out of"), "{}", text(restride_status_text(status)));
        assert_eq!(text(restride_status_node(status)), "%y = aten.index.Tensor");
        restride_status_free(status);
        restride_instance_free(instance);
        restride_compiled_free(compiled);
        restride_program_free(program);
    }
}

#[test]
fn hostile_files_are_errors() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let folder = format!("{}/../../fixtures/hostile", env!("CARGO_MANIFEST_DIR"));
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = CString::new(entry.expect("a file").path().to_string_lossy().as_bytes()).expect("no NUL");
            let (mut program, mut compiled) = (null_mut(), null_mut());
            let status = restride_open(path.as_ptr(), null(), &mut program);
            assert_eq!(status.is_null(), !program.is_null());
            if status.is_null() {
                let status = restride_compile(program, null(), 0, null(), &mut compiled);
                assert_ne!(restride_status_kind(status), restride_kind::Panic);
                restride_status_free(status);
                restride_compiled_free(compiled);
            } else {
                assert!(!matches!(restride_status_kind(status), restride_kind::Panic | restride_kind::Ok));
            }
            restride_status_free(status);
            restride_program_free(program);
            seen += 1;
        }
        assert!(seen > 8);
        // A real file, cut short and with single bytes changed.
        let whole = std::fs::read(fixture("pt2/kv_cache.pt2").to_str().expect("UTF-8")).expect("a file");
        for step in 0..60 {
            let mut bytes = whole.clone();
            match step % 2 {
                0 => bytes.truncate(whole.len() * step / 60),
                _ => bytes[whole.len() * step / 60] ^= 0x55,
            }
            let mut program = null_mut();
            let status = restride_open_bytes(bytes.as_ptr(), bytes.len(), 0, null(), &mut program);
            assert_ne!(restride_status_kind(status), restride_kind::Panic);
            restride_status_free(status);
            restride_program_free(program);
        }
    }
}

#[test]
fn a_handle_in_use_is_busy() {
    // SAFETY: pointers are what the header asks for, or wrong in a way that the library checks.
    unsafe {
        let program = open("examples/vit_small.pt2");
        let (mut compiled, mut instance) = (null_mut(), null_mut());
        ok(restride_compile(program, null(), 0, null(), &mut compiled));
        ok(restride_instance_new(compiled, &mut instance));
        let shared = instance as usize;
        let from = program as usize;
        let runs = |rounds: usize| {
            let (instance, program) = (shared as *mut restride_instance, from as *const restride_program);
            let mut done = 0;
            for _ in 0..rounds {
                let mut sample = null_mut();
                ok(restride_program_sample(program, 0, &mut sample));
                let input = restride_tensor { name: null(), tensor: null(), managed: sample, storage: 0, flags: 0 };
                let status = restride_instance_run(instance, &input, 1, null_mut());
                match restride_status_kind(status) {
                    restride_kind::Ok => done += 1,
                    // The tensor is still the caller's.
                    // SAFETY: as above; it is freed once.
                    restride_kind::Busy => unsafe { (*sample).deleter.expect("a deleter")(sample) },
                    other => panic!("{other:?}: {}", text(restride_status_text(status))),
                }
                restride_status_free(status);
            }
            done
        };
        let done: usize = std::thread::scope(|s| {
            let all: Vec<_> = (0..2).map(|_| s.spawn(|| runs(4))).collect();
            all.into_iter().map(|t| t.join().expect("no panic")).sum()
        });
        assert!(done > 0);
        restride_instance_free(instance);
        restride_compiled_free(compiled);
        restride_program_free(program);
    }
}
