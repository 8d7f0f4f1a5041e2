//! Ranks with an engine of the caller: threads whose functions meet at a shared table.
#![allow(unused_unsafe)]

use restride_capi::dlpack::{DLDataType, DLDevice, DLTensor};
use restride_capi::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Condvar, Mutex};

/// The operands of the ranks of one exchange at a time.
#[derive(Default)]
struct Table {
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Default)]
struct Meeting {
    operands: Vec<Option<Vec<f32>>>,
    taken: usize,
    failed: Option<String>,
}

struct Rank<'t> {
    table: &'t Table,
    rank: usize,
    calls: Mutex<Vec<(u32, u32, String)>>,
}

/// Meets the other ranks and gives the exchange's result.
unsafe extern "C" fn exchange(context: *mut c_void, exchange: *const restride_exchange) -> i32 {
    // SAFETY: the test's own context, and a struct that is valid during the call.
    let (own, e) = unsafe { (&*context.cast::<Rank<'_>>(), &*exchange) };
    assert_eq!((e.dtype.code, e.dtype.bits), if e.dtype.code == 0 { (0, 64) } else { (2, 32) });
    // Numbers of 64 bits are moved in two words.
    let words = usize::from(e.dtype.bits) / 32;
    // SAFETY: as the header says.
    let (group, operand) = unsafe {
        let operand = std::slice::from_raw_parts(e.send.cast::<f32>(), e.sent * words).to_vec();
        (CStr::from_ptr(e.group).to_str().expect("UTF-8").to_string(), operand)
    };
    assert_eq!(e.rank_count, 2);
    own.calls.lock().expect("a lock").push((e.pattern, e.reduce, group));
    let mut meeting = own.table.meeting.lock().expect("a lock");
    while meeting.operands.get(own.rank).is_some_and(Option::is_some) && meeting.failed.is_none() {
        meeting = own.table.changed.wait(meeting).expect("a lock");
    }
    meeting.operands.resize(2, None);
    meeting.operands[own.rank] = Some(operand);
    own.table.changed.notify_all();
    while meeting.operands.iter().any(Option::is_none) && meeting.failed.is_none() {
        meeting = own.table.changed.wait(meeting).expect("a lock");
    }
    if meeting.failed.is_some() {
        return 7;
    }
    let all: Vec<Vec<f32>> = meeting.operands.iter().flatten().cloned().collect();
    meeting.taken += 1;
    if meeting.taken == 2 {
        *meeting = Meeting::default();
        own.table.changed.notify_all();
    } else {
        while meeting.taken == 1 && meeting.failed.is_none() {
            meeting = own.table.changed.wait(meeting).expect("a lock");
        }
    }
    let result: Vec<f32> = match e.pattern {
        p if p == restride_pattern::AllGather as u32 => all.concat(),
        p if p == restride_pattern::AllReduce as u32 && e.reduce == restride_reduce::Sum as u32 => {
            all[0].iter().zip(&all[1]).map(|(a, b)| a + b).collect()
        }
        _ => return 3,
    };
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(e.receive.cast::<f32>(), e.received * words) }.copy_from_slice(&result);
    0
}

unsafe extern "C" fn abort(context: *mut c_void, why: *const c_char) {
    // SAFETY: as above.
    let (own, why) = unsafe { (&*context.cast::<Rank<'_>>(), CStr::from_ptr(why)) };
    own.table.meeting.lock().expect("a lock").failed = Some(why.to_str().expect("UTF-8").into());
    own.table.changed.notify_all();
}

/// What a rank's run leaves: its input, or the error.
fn run(table: &Table, rank: usize, source: &str) -> (Result<(), String>, Vec<f32>, Vec<(u32, u32, String)>) {
    let own = Rank { table, rank, calls: Mutex::default() };
    let mut data: Vec<f32> = (0..4).map(|i| (10 * rank + i) as f32).collect();
    let mut sizes = [4i64];
    // SAFETY: pointers are what the header asks for.
    let result = unsafe {
        let ok = |status: *mut restride_status| {
            let text =
                (!status.is_null()).then(|| CStr::from_ptr(restride_status_text(status)).to_string_lossy().into());
            restride_status_free(status);
            text.map_or(Ok(()), |t: String| Err(t))
        };
        let (mut program, mut compiled, mut instance) = (null_mut(), null_mut(), null_mut());
        ok(restride_open_bytes(source.as_ptr(), source.len(), 0, null(), &mut program)).expect("a program");
        let tensor = DLTensor {
            data: data.as_mut_ptr().cast(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: 1,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: sizes.as_mut_ptr(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let input = restride_tensor { name: null(), tensor: &tensor, managed: null_mut(), storage: 0, flags: 0 };
        ok(restride_compile(program, null(), 0, null(), &mut compiled)).expect("compiled");
        ok(restride_instance_new(compiled, &mut instance)).expect("an instance");
        let mut engine = restride_engine {
            context: (&raw const own).cast_mut().cast(),
            rank: 2,
            size: 2,
            group: None,
            exchange: Some(exchange),
            abort: Some(abort),
        };
        let refused = ok(restride_instance_set_engine(instance, &engine));
        assert!(refused.is_err_and(|e| e.contains("engine.rank is 2 of 2 ranks")));
        engine.rank = rank;
        ok(restride_instance_set_engine(instance, &engine)).expect("an engine");
        let result = ok(restride_instance_run(instance, &input, 1, null_mut()));
        restride_instance_free(instance);
        restride_compiled_free(compiled);
        restride_program_free(program);
        result
    };
    (result, data, own.calls.into_inner().expect("a lock"))
}

const SOURCE: &str = r#"graph(%x: f32[4]) {
  %y: f32[4] = aten.mul.Tensor(%x, 2)
  %s: f32[4] = _c10d_functional.all_reduce.default(%y, "sum", "tp")
  %w: f32[4] = _c10d_functional.wait_tensor.default(%s)
  %z: f32[4] = aten.add_.Tensor(%x, %w)
  return %z
}
"#;

fn both(sources: [&str; 2]) -> Vec<(Result<(), String>, Vec<f32>, Vec<(u32, u32, String)>)> {
    let table = Table::default();
    std::thread::scope(|scope| {
        let start = |rank: usize| {
            scope.spawn({
                let table = &table;
                move || run(table, rank, sources[rank])
            })
        };
        let threads: Vec<_> = (0..2).map(start).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    })
}

#[test]
fn ranks_exchange_by_the_callers_functions() {
    for (rank, (result, data, calls)) in both([SOURCE, SOURCE]).into_iter().enumerate() {
        result.expect("runs");
        let want: Vec<f32> = (0..4).map(|i| (10 * rank + i) as f32 + 2.0 * (10 + 2 * i) as f32).collect();
        assert_eq!(data, want);
        // First the ranks compare their programs.
        let last = calls.last().expect("a call");
        assert_eq!(*last, (restride_pattern::AllReduce as u32, restride_reduce::Sum as u32, "tp".to_string()));
        assert_eq!(calls[0].0, restride_pattern::AllGather as u32);
    }
}

#[test]
fn an_engine_that_fails_ends_the_run_before_memory_is_written() {
    let other = SOURCE.replace("\"sum\"", "\"max\"");
    for (rank, (result, data, _)) in both([SOURCE, &other]).into_iter().enumerate() {
        assert!(result.is_err_and(|e| e.contains("the ranks do not agree")));
        assert_eq!(data, (0..4).map(|i| (10 * rank + i) as f32).collect::<Vec<_>>());
    }
    for (result, ..) in both([&other, &other]) {
        assert!(result.is_err_and(|e| e.contains("the caller's engine failed with 3") || e.contains("failed with 7")));
    }
}
