//! Entries for fuzzers, each a function of bytes: no entry may panic, and accepted inputs are compared with an oracle.
//!
//! `fuzz/` has a target for each entry; `tests/fuzz.rs` calls them with files of `fixtures`, damaged files and random
//! bytes.

use crate::damage::{KINDS, damage, damage_plan};
use crate::rng::Rng;
use crate::segment_run::{SegmentRun, turned};
use crate::{Leftovers, WaysVerdict, difference, differential, generate, metamorphic, reduce};
use restride::RunOptions;
use restride_exec::run::Runnable;
use restride_ir::{Expr, ExprFn, Layout, Scalar, Symbol, text};
use restride_pt2::archive::{Archive, Payload};
use restride_pt2::tensors::{self, Format};
use restride_pt2::{expressions, model, pickle};
use restride_tensor::{Bytes, Overlap, overlap_bytes, self_overlaps};
use std::collections::{BTreeMap, BTreeSet};

/// An entry, with the name of its target in `fuzz/`.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: [FuzzEntry; 12] = [
    ("archive", archive),
    ("model_json", model_json),
    ("pickled", pickled),
    ("tensor_files", tensor_files),
    ("program_text", program_text),
    ("expressions", expressions),
    ("overlaps", overlaps),
    ("placements", placements),
    ("plans", plans),
    ("ways", ways),
    ("torchscript", torchscript),
    ("pasted_graphs", pasted_graphs),
];

/// A `.pt2`: its entries, its parts, and its program.
pub fn archive(bytes: &[u8]) {
    let shared = Bytes::copy_of(bytes);
    if let Ok(archive) = Archive::open(&shared) {
        for name in archive.models() {
            let _ = archive.program(name);
            let _ = archive.payload_config(name, Payload::Weights);
            let _ = archive.payload_config(name, Payload::Constants);
        }
        for (_, path) in archive.extra_files() {
            let _ = archive.read(path);
        }
    }
    // The whole import, with the verifier.
    if let Ok(program) = restride::open_bytes(&shared, &restride::OpenOptions::default()) {
        printed(&program);
    }
}

/// An archive of `torch.jit.save`, recorded for the inputs that it was traced with or for small ones, with the verifier.
pub fn torchscript(bytes: &[u8]) {
    let shared = Bytes::copy_of(bytes);
    if !restride_torchscript::is_archive(&shared) {
        return;
    }
    for types in ["", "f32[4,3],[f32[2],f32[2]]", "f32[2,4],16000"] {
        let items = restride::GivenInputs::parse_types(types).expect("types");
        let inputs = restride::GivenInputs { items, ..Default::default() };
        if let Ok(program) = restride::open_bytes(&shared, &restride::OpenOptions { inputs, ..Default::default() }) {
            printed(&program);
        }
    }
}

/// A graph as text, in PyTorch's forms; an accepted one prints in each of them.
pub fn pasted_graphs(bytes: &[u8]) {
    use restride::GraphForm;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let items = restride::GivenInputs::parse_types("f32[2,3]").expect("a type");
    let inputs = restride::GivenInputs { items, ..Default::default() };
    let options = restride_torchscript::RecordOptions {
        method: None,
        lookup: &restride_ops::lookup,
        limits: restride_ir::Limits::default(),
        inputs: &inputs,
    };
    if let Ok(program) = restride_torchscript::text::import(text, "text", None, &options) {
        printed(&program);
        for form in [GraphForm::Nodes, GraphForm::Code, GraphForm::Exported, GraphForm::JitIr] {
            let _ = restride::print_graph(&program, form);
        }
    }
}

/// The printed program parses to the same text.
fn printed(program: &restride_ir::Program) {
    let once = text::print(program);
    if let Ok(read) = text::parse(&once, &restride_ops::lookup) {
        assert_eq!(once, text::print(&read), "printed, read and printed");
    }
}

/// JSON of a program: an accepted one survives a round trip.
///
/// # Panics
/// It does not.
pub fn model_json(bytes: &[u8]) {
    let Ok(program) = model::parse::<model::ExportedProgram>(bytes) else { return };
    let written = model::print(&program).expect("what was JSON");
    let again = model::parse::<model::ExportedProgram>(&written).expect("what was written");
    assert_eq!(written, model::print(&again).expect("what was JSON"), "written, read and written");
}

/// Output of `torch.save`.
pub fn pickled(bytes: &[u8]) {
    let _ = pickle::load(bytes);
}

/// Tensor files `.npz`, `.safetensors` and `.json`: accepted tensors stay in their storages and survive a round trip.
///
/// # Panics
/// One does not.
pub fn tensor_files(bytes: &[u8]) {
    for format in [Format::Npz, Format::Safetensors, Format::Json, Format::Torch] {
        let Ok(read) = tensors::read(format, bytes) else { continue };
        read.validate().expect("accepted");
        let cells = |t: &tensors::FileTensor| t.sizes.iter().try_fold(1i64, |n, s| n.checked_mul(*s));
        let small = |item: &tensors::NamedItem| match &item.value {
            tensors::Item::Tensor(t) => cells(t).is_some_and(|n| n < 1 << 20),
            tensors::Item::Scalar(_) => true,
        };
        if read.items.iter().all(small)
            && let Ok(written) = tensors::write(format, &read)
        {
            let again = tensors::read(format, &written).expect("what was written");
            assert_eq!(again.items.len(), read.items.len(), "{format:?}");
        }
    }
}

/// A program as text: an accepted one survives a round trip.
pub fn program_text(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    if let Ok(program) = text::parse(source, &restride_ops::lookup) {
        printed(&program);
    }
}

/// Expressions in PyTorch's languages, and an expression chosen by the bytes, against its value in wider numbers.
///
/// # Panics
/// An expression has another value, or one beyond its bounds.
pub fn expressions(bytes: &[u8]) {
    if let Ok(source) = std::str::from_utf8(bytes)
        && let Ok(e) = expressions::parse(source, &BTreeMap::new())
    {
        let _ = expressions::srepr(&e);
    }
    let mut rng = Rng::from_bytes(bytes);
    let symbols: Vec<(Symbol, i64)> = ["s0", "s1", "s2"]
        .iter()
        .map(|name| {
            let value = rng.between(0, 40);
            (Symbol::new(*name, Some(0), Some(40)), value)
        })
        .collect();
    let binding: BTreeMap<Symbol, Scalar> = symbols.iter().map(|(s, v)| (s.clone(), Scalar::Int(*v))).collect();
    let (expr, value) = drawn(&mut rng, &symbols, 3);
    let Some(value) = value else { return };
    assert_eq!(expr.eval(&binding), Ok(Scalar::Int(value)), "{expr:?} at {binding:?}");
    let (least, most) = expr.bounds();
    assert!(
        least.is_none_or(|n| n <= value) && most.is_none_or(|n| value <= n),
        "{expr:?}: {least:?} {value} {most:?}"
    );
    assert_eq!(expr.substitute(&binding).constant(), Some(Scalar::Int(value)), "{expr:?} at {binding:?}");
}

/// An expression with its value, if defined.
fn drawn(rng: &mut Rng, symbols: &[(Symbol, i64)], depth: usize) -> (Expr, Option<i64>) {
    if depth == 0 || rng.chance(20) {
        if rng.chance(50) {
            let n = rng.between(-6, 12);
            return (Expr::Int(n), Some(n));
        }
        let (symbol, value) = rng.choose(symbols);
        return (Expr::Sym(symbol.clone()), Some(*value));
    }
    let f = *rng.choose(&[ExprFn::Add, ExprFn::Add, ExprFn::Mul, ExprFn::FloorDiv, ExprFn::Max, ExprFn::Min]);
    let ((a, x), (b, y)) = (drawn(rng, symbols, depth - 1), drawn(rng, symbols, depth - 1));
    let value = x.zip(y).and_then(|(x, y)| match f {
        ExprFn::Add => x.checked_add(y),
        ExprFn::Mul => x.checked_mul(y),
        ExprFn::Max => Some(x.max(y)),
        ExprFn::Min => Some(x.min(y)),
        _ if y == 0 => None,
        _ => Some(x.div_euclid(y) - i64::from(y < 0 && x.rem_euclid(y) != 0)),
    });
    (Expr::call(f, vec![a, b]), value)
}

/// Two small layouts: their computed overlap against a comparison byte by byte.
///
/// # Panics
/// The overlap is wrong.
pub fn overlaps(bytes: &[u8]) {
    let mut rng = Rng::from_bytes(bytes);
    let mut layout = |rank: usize| {
        let sizes: Vec<i64> = (0..rank).map(|_| rng.between(0, 4)).collect();
        let strides: Vec<i64> = (0..rank).map(|_| rng.between(-3, 9)).collect();
        let reach: i64 = sizes.iter().zip(&strides).map(|(n, s)| (n - 1).max(0) * (*s).min(0)).sum();
        let size = *rng.choose(&[1, 1, 2, 4]);
        (Layout::strided(&sizes, &strides, rng.between(0, 8) - reach), size)
    };
    let ((a, size_a), (b, size_b)) = (layout(3), layout(2));
    let (cells_a, cells_b) = (cells(&a, size_a), cells(&b, size_b));
    let (set_a, set_b): (BTreeSet<i64>, BTreeSet<i64>) =
        (cells_a.iter().copied().collect(), cells_b.iter().copied().collect());
    let meet = set_a.intersection(&set_b).next().is_some();
    let said = overlap_bytes(&a, size_a as usize, &b, size_b as usize);
    let so = match said {
        Overlap::Disjoint => !meet,
        Overlap::Same => set_a == set_b,
        Overlap::Inside => meet && set_a.is_subset(&set_b),
        Overlap::Contains => meet && set_b.is_subset(&set_a),
        Overlap::Partial => meet,
        Overlap::Unknown => true,
    };
    assert!(so, "{a} of {size_a} bytes and {b} of {size_b}: {said:?}");
    if let Some(twice) = self_overlaps(&a) {
        let begins = cells(&a, 1);
        let once: BTreeSet<i64> = begins.iter().copied().collect();
        assert_eq!(twice, once.len() < begins.len(), "{a}");
    }
}

/// The bytes of a layout, element by element.
fn cells(layout: &Layout, size: i64) -> Vec<i64> {
    let mut out = vec![layout.offset];
    for (n, stride) in layout.sizes.iter().zip(&layout.strides) {
        out = out.iter().flat_map(|at| (0..*n).map(move |i| at + i * stride)).collect();
    }
    out.iter().flat_map(|at| (0..size).map(move |i| at * size + i)).collect()
}

/// A segment of a generated program with its placement and the interpreter's results.
fn placed(rng: &mut Rng) -> Option<(SegmentRun, restride_ir::Placement, Vec<(restride::Inputs, Leftovers)>)> {
    let sample = generate(rng.below(1 << 20) as u64);
    let piece = SegmentRun::of(&sample)?;
    let placement = piece.place(&restride::PlaceOptions::default()).ok()?;
    let left = |inputs: restride::Inputs| {
        let left = Leftovers::interp(&sample.program, &inputs, &RunOptions::default()).ok()?;
        Some((inputs, left))
    };
    let mut sets = vec![left(sample.inputs.clone())?];
    sets.extend(left(turned(&sample.inputs, 1)));
    Some((piece, placement, sets))
}

fn run(piece: &SegmentRun, runnable: &Runnable, sets: &[(restride::Inputs, Leftovers)]) {
    // Memory beyond the machine's is refused on request.
    if runnable.arena_bytes() > 1 << 26 {
        return;
    }
    for (inputs, eager) in sets {
        let left = piece.run_on(runnable, inputs).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(difference(eager, &left), None);
    }
}

/// A damaged placement: the checker does not panic, and an accepted placement gives the interpreter's results.
///
/// # Panics
/// It does not.
pub fn placements(bytes: &[u8]) {
    let mut rng = Rng::from_bytes(bytes);
    let Some((piece, placement, sets)) = placed(&mut rng) else { return };
    for _ in 0..8 {
        let kind = *rng.choose(&KINDS);
        let Some(damaged) = damage(&piece.program, &placement, kind, &mut rng) else { continue };
        if let Ok(plan) = piece.check(&damaged)
            && let Ok(runnable) = Runnable::checked(&piece.program, damaged, plan)
        {
            run(&piece, &runnable, &sets);
        }
    }
}

/// A damaged plan, likewise.
///
/// # Panics
/// As [`placements`].
pub fn plans(bytes: &[u8]) {
    let mut rng = Rng::from_bytes(bytes);
    let Some((piece, placement, sets)) = placed(&mut rng) else { return };
    let Ok(good) = piece.check(&placement) else { return };
    for _ in 0..8 {
        let Some(bad) = damage_plan(&placement, &good, &mut rng) else { continue };
        if let Ok(runnable) = Runnable::checked(&piece.program, placement.clone(), bad) {
            run(&piece, &runnable, &sets);
        }
    }
}

/// Runs the program chosen by the bytes in all ways.
///
/// # Panics
/// A way is wrong; the message has the reduced program.
pub fn ways(bytes: &[u8]) {
    let sample = crate::generate::generate_from(Rng::from_bytes(bytes), "fuzzed");
    let wrong = |s: &crate::RandomProgram| match differential(&s.program, &s.inputs, &Default::default()) {
        WaysVerdict::Wrong(way, _) => Some(way),
        _ => None,
    };
    if let Some(way) = wrong(&sample) {
        let small = reduce(&sample, |s| wrong(s) == Some(way));
        let verdict = differential(&small.program, &small.inputs, &Default::default());
        panic!("{verdict:?}\n{}", text::print(&small.program));
    }
    let (program, inputs) = (&sample.program, &sample.inputs);
    if differential(program, inputs, &Default::default()) == WaysVerdict::Agree
        && let Err(what) = metamorphic(program, inputs, &Default::default())
    {
        panic!("{what}\n{}", text::print(program));
    }
}
