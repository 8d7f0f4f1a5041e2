//! Planned runs held against the interpreter, bit for bit: the same functional program, every switch of the placement on
//! and off, dead memory poisoned, and the checkers on.

mod control_flow;
mod decisions;
mod large;
mod memory;
mod order;
mod ranks;

use restride_exec::inputs::{Strides, bind, check_sharing};
use restride_exec::interp::{Outputs, RunOptions, interpret, written_inputs};
use restride_exec::outputs::outputs;
use restride_exec::run::{ByteArena, RunCtx, Runnable};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{Program, Reason, RemarkKind, Scalar, Step, verify};
use restride_passes::functionalize::FunctionalizeOptions as Functionalize;
use restride_passes::place::{PlaceOptions, Placed, place};
use restride_passes::plan::{PlanOptions, plan};
use restride_passes::{functionalize, lower};
use restride_tensor::{DType, Layout, RawTensor, Storage};

fn program(text: &str) -> Program {
    let program = restride_ir::text::parse(text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    if let Err(e) = verify(&program) {
        panic!("{e:?}\n{text}");
    }
    let functional = functionalize(&program, &Functionalize::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    lower(&functional).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn options() -> Vec<PlaceOptions> {
    let on = PlaceOptions::default();
    vec![
        on,
        PlaceOptions { views: false, ..on },
        PlaceOptions { reuse: false, ..on },
        PlaceOptions { scatter: false, ..on },
        PlaceOptions { straight: false, ..on },
        PlaceOptions { boundary: false, ..on },
        PlaceOptions { layouts: false, ..on },
        PlaceOptions { by_time: false, ..on },
        PlaceOptions { inputs_in_arena: true, ..on },
        PlaceOptions { outputs_in_arena: true, ..on },
        PlaceOptions { vary: Some(1), ..on },
        PlaceOptions { vary: Some(2), ..on },
        PlaceOptions {
            views: false,
            reuse: false,
            scatter: false,
            straight: false,
            boundary: false,
            layouts: false,
            by_time: false,
            revise: false,
            inputs_in_arena: true,
            outputs_in_arena: true,
            vary: None,
        },
    ]
}

fn clone_inputs(inputs: &[RawTensor]) -> Inputs {
    Inputs::new(inputs.iter().map(|t| RunValue::Tensor(t.clone()))).deep_clone()
}

/// Runs both ways under all options; gives the placement with all on.
fn agree(text: &str, inputs: &[RawTensor]) -> (Program, Placed) {
    let program = program(text);
    let mut first = None;
    for options in options() {
        let placed = agree_with(&program, inputs, &options, text);
        first.get_or_insert(placed);
    }
    (program, first.unwrap())
}

/// As `agree`; gives the placement that leaves the caller's memory alone, where nothing is computed in an output ahead.
fn agree_inside(text: &str, inputs: &[RawTensor]) -> (Program, Placed) {
    let (program, _) = agree(text, inputs);
    let placed = agree_with(&program, inputs, &PlaceOptions { boundary: false, ..PlaceOptions::default() }, text);
    (program, placed)
}

fn agree_with(program: &Program, inputs: &[RawTensor], options: &PlaceOptions, text: &str) -> Placed {
    let context = |what: &str| format!("{what}\n{options:?}\n{text}");
    let mut state = State::new(program).unwrap();
    let want_inputs = clone_inputs(inputs);
    let want =
        interpret(program, &want_inputs, &mut state, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let placed = place(program, options).unwrap_or_else(|e| panic!("{}", context(&e.to_string())));
    let shown = || restride_ir::text::print_placed(program, &placed.placement, None, &Default::default());
    if let Err(faults) = restride_check::placement(program, &placed.placement) {
        panic!("{}\n{}", context(&restride_check::error(program, &faults).to_string()), shown());
    }
    let offsets = plan(program.graph(), &placed.placement, &PlanOptions::default());
    restride_check::plan(program, &placed.placement, &offsets)
        .unwrap_or_else(|f| panic!("{}", context(&format!("{f:?}"))));
    let runnable = Runnable::checked(program, placed.placement.clone(), offsets.clone())
        .unwrap_or_else(|e| panic!("{}\n{}", context(&e.to_string()), shown()))
        .poisoned();
    let mut arena = ByteArena::default();
    for _ in 0..2 {
        let inputs = clone_inputs(inputs);
        let mut state = State::new(program).unwrap();
        let have = run(program, &runnable, &mut arena, &inputs, &mut state);
        assert!(arena.bytes() as i64 == offsets.arena_bytes, "{} {}", arena.bytes(), offsets.arena_bytes);
        compare(&have, &want, &|what| panic!("{}\n{}", context(&what), shown()));
    }
    placed
}

fn run(program: &Program, runnable: &Runnable, arena: &mut ByteArena, inputs: &Inputs, state: &mut State) -> Outputs {
    let bound = bind(program, inputs, state, Strides::AsDeclared).unwrap();
    check_sharing(program, &bound, &written_inputs(program)).unwrap();
    let results = runnable.run(arena, &bound.values, RunCtx::default()).unwrap_or_else(|e| panic!("{e}"));
    outputs(program, &bound.values, &results, &bound.symbols, state).unwrap()
}

/// Values, types, strides and sharing of outputs and of inputs after the run.
fn compare(have: &Outputs, want: &Outputs, fail: &dyn Fn(String)) {
    let all = |o: &Outputs| o.values.iter().chain(&o.inputs).cloned().collect::<Vec<_>>();
    let (have, want) = (all(have), all(want));
    if have.len() != want.len() {
        return fail(format!("{} values for {}", have.len(), want.len()));
    }
    for (i, (h, w)) in have.iter().zip(&want).enumerate() {
        match (h, w) {
            (RunValue::Tensor(h), RunValue::Tensor(w)) => {
                if h.dtype() != w.dtype() || !restride_exec::inputs::same_strides(h.layout(), w.layout()) {
                    fail(format!("value {i} is {}{} for {}{}", h.dtype(), h.layout(), w.dtype(), w.layout()));
                }
                let (a, b) = (elements(h), elements(w));
                if a != b {
                    fail(format!("value {i}:\n{a:?}\n{b:?}"));
                }
            }
            (RunValue::Scalar(a), RunValue::Scalar(b)) if a == b => {}
            (RunValue::None, RunValue::None) => {}
            _ => fail(format!("value {i} is {h:?} for {w:?}")),
        }
    }
    for i in 0..have.len() {
        for j in 0..i {
            let shared = |v: &[RunValue]| match (&v[i], &v[j]) {
                (RunValue::Tensor(a), RunValue::Tensor(b)) => a.storage().same(b.storage()),
                _ => false,
            };
            if shared(&have) != shared(&want) {
                fail(format!("values {i} and {j} share storage: {} for {}", shared(&have), shared(&want)));
            }
        }
    }
}

/// Elements in logical order, as bits; all NaNs are one.
fn elements(t: &RawTensor) -> Vec<(u64, u64)> {
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    let mut index = vec![0; t.layout().rank()];
    let mut out = Vec::new();
    for _ in 0..t.numel() {
        out.push(match t.get(&index) {
            Scalar::Bool(b) => (u64::from(b), 0),
            Scalar::Int(i) => (i as u64, 1),
            Scalar::Float(x) => (bits(x), 2),
            Scalar::Complex(z) => (bits(z.re), bits(z.im)),
        });
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < t.layout().sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    out
}

/// Not 0, 1, 2, …: values whose sums and products tell positions apart.
fn floats(sizes: &[i64]) -> RawTensor {
    let n: i64 = sizes.iter().product();
    RawTensor::from_slice(&(0..n).map(|i| ((i * 37 + 11) % 101) as f32 / 8.0 - 5.0).collect::<Vec<_>>(), sizes)
}

fn strided(sizes: &[i64], strides: &[i64], offset: i64) -> RawTensor {
    let layout = Layout::strided(sizes, strides, offset);
    let storage = floats(&[layout.cell_range().end]).storage().clone();
    RawTensor::new(storage, DType::F32, layout).unwrap()
}

fn bool_scalar(b: bool) -> RawTensor {
    let storage = Storage::zeroed(1);
    storage.write(&[u8::from(b)]);
    RawTensor::new(storage, DType::Bool, Layout::contiguous(&[])).unwrap()
}

/// What was decided about the node that makes a value.
fn decided(program: &Program, placed: &Placed, value: &str, kind: RemarkKind) -> Option<Reason> {
    let graph = program.graph();
    let (node, _) = graph
        .ordered()
        .find(|(_, n)| n.results.iter().any(|r| &*graph.values[*r].name == value))
        .unwrap_or_else(|| panic!("no node makes %{value}"));
    placed.remarks.iter().find(|r| r.node == node && r.kind == kind).map(|r| r.reason)
}

fn moves(placed: &Placed) -> usize {
    placed.placement.steps.iter().filter(|s| matches!(s, Step::Move { .. })).count()
}

/// Buffers of the arena that steps use.
fn arena_buffers(placed: &Placed) -> usize {
    let p = &placed.placement;
    let used: std::collections::BTreeSet<_> = p.steps.iter().flat_map(|s| p.touched(s)).collect();
    used.iter().filter(|b| p.buffers[**b].kind == restride_ir::BufferKind::Arena).count()
}
