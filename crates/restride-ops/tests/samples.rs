//! What must hold of every declared operator, seen on its sample calls: inferred and computed types are equal; results
//! depend on logical values alone, not on strides, offsets or threads; nothing is written but results; every licence to
//! lie on an operand is one; nothing panics.

use crate::run::{Outcome, call, filled, fitted, meta, on_views, resolved};
use restride_ir::{
    Arg, Args, Call, Ctx, Fails, Kernel, Layout, Meta, Movement, Op, OpError, Reuse, ReuseKind, RowForm, RowJoin,
    RowOperand, SampleArg, Scalar, TileRule,
};
use restride_kernels::reduce::parts::JoinedParts;
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{DType, Formula, FormulaFn, FormulaTerm, RawTensor, Storage, evaluate};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Result<T> = std::result::Result<T, OpError>;

/// Runs a check on every sample call and fails with all that it found.
fn every_sample(check: impl Fn(Op, &[SampleArg]) -> std::result::Result<(), String>) {
    let mut found: Vec<String> = Vec::new();
    let mut calls = 0;
    for &op in restride_ops::ops() {
        let Some(samples) = op.def().samples else { continue };
        for (i, sample) in samples().iter().enumerate() {
            calls += 1;
            let why = match catch_unwind(AssertUnwindSafe(|| {
                let args = filled(op, &sample.args).map_err(|e| e.0)?;
                check(op, &args)
            })) {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    format!("panics: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?"))
                }
            };
            found.push(format!("{op} #{i}({}): {why}", sample.args.iter().map(shown).collect::<Vec<_>>().join(", ")));
        }
    }
    assert!(calls > 5000, "only {calls} sample calls");
    assert!(found.is_empty(), "{} of {calls} calls:\n{}", found.len(), found.join("\n"));
}

fn shown(arg: &SampleArg) -> String {
    match arg {
        Arg::Value(t) => meta(t).to_string(),
        Arg::Values(ts) => {
            let ts: Vec<String> =
                ts.iter().map(|t| t.as_ref().map_or("None".into(), |t| meta(t).to_string())).collect();
            format!("[{}]", ts.join(", "))
        }
        Arg::Scalar(s) => s.to_string(),
        other => format!("{other:?}"),
    }
}

/// The elements' bytes in logical order, all NaNs alike.
fn bits(t: &RawTensor) -> Vec<u8> {
    let t = resolved(t);
    let row = RawTensor::zeros(t.dtype(), Layout::contiguous(&t.layout().sizes));
    copy_convert(t.read().view(), &row.write().view_mut());
    let mut out = row.storage().to_vec();
    let part = t.dtype().real();
    if part.is_float() {
        let cells = (out.len() / part.size()) as i64;
        let parts = row.alias(part, Layout::contiguous(&[cells])).expect("the parts of the same numbers");
        for i in 0..cells as usize {
            if parts.get(&[i as i64]).as_f64().is_nan() {
                out[i * part.size()..(i + 1) * part.size()].fill(0xff);
            }
        }
    }
    out
}

/// The same elements in another layout on memory of their own, whose other cells hold something else.
fn moved(t: &RawTensor, layout: Layout) -> RawTensor {
    let out = RawTensor::zeros(t.dtype(), layout);
    // Truth values are 0 or 1.
    let junk = if t.dtype() == DType::Bool { 1 } else { 0x5a };
    out.storage().write(&vec![junk; out.storage().len()]);
    copy_convert(t.read().view(), &out.write().view_mut());
    out
}

/// Other layouts for the same sizes: gaps and an offset, the reverse order of dimensions, and row-major.
fn layouts(sizes: &[i64]) -> [Layout; 3] {
    let mut gaps = Layout::contiguous(sizes);
    gaps.strides.iter_mut().for_each(|s| *s *= 3);
    gaps.offset = 2;
    let reversed: Vec<usize> = (0..sizes.len()).rev().collect();
    [gaps, Layout::permuted(sizes, &reversed), Layout::contiguous(sizes)]
}

fn map_tensors(args: &[SampleArg], f: impl Fn(&RawTensor) -> RawTensor) -> Vec<SampleArg> {
    args.iter().map(|a| a.map_values(&f)).collect()
}

fn metas(args: &[SampleArg]) -> Vec<Arg<Meta, Scalar>> {
    args.iter().map(|a| a.map_values(meta)).collect()
}

fn composed(op: Op, args: &[SampleArg]) -> bool {
    op.def().composed.is_some_and(|f| f(&Args(&metas(args))))
}

/// The kernel that writes results of known sizes, if this call has it.
fn fixed(op: Op, args: &[SampleArg]) -> Option<fn(&Call<'_>) -> Result<()>> {
    match op.def().kernel {
        Kernel::Fixed(kernel) if !composed(op, args) => Some(kernel),
        _ => None,
    }
}

/// Runs a kernel into given memory.
fn run_into(kernel: fn(&Call<'_>) -> Result<()>, args: &[SampleArg], outs: &[RawTensor], threads: usize) -> Result<()> {
    let ctx = Ctx { threads, ..Ctx::default() };
    on_views(args, outs, |args, outs| kernel(&fitted(args, outs, &ctx)))
}

/// Results of a call, its numbers as 0-d tensors.
fn results(op: Op, args: &[SampleArg]) -> Result<Vec<RawTensor>> {
    Ok(match call(op, args)? {
        Outcome::Tensors(ts) => ts,
        Outcome::Number(s) => vec![RawTensor::from_slice(&[s.as_c64()], &[])],
    })
}

/// What differs between results that should have equal elements.
fn differ(want: &[RawTensor], got: &[RawTensor]) -> Option<String> {
    if want.len() != got.len() {
        return Some(format!("{} results, then {}", want.len(), got.len()));
    }
    for (i, (a, b)) in want.iter().zip(got).enumerate() {
        let (x, y) = (meta(a), meta(b));
        if (x.dtype, x.sizes()) != (y.dtype, y.sizes()) {
            return Some(format!("result {i} is {x}, then {y}"));
        }
        let (p, q) = (bits(a), bits(b));
        if let Some(at) = p.iter().zip(&q).position(|(a, b)| a != b) {
            return Some(format!("result {i} differs at element {} of {x}", at / x.dtype.size()));
        }
    }
    None
}

fn storages(args: &[SampleArg]) -> Vec<Vec<u8>> {
    args.iter().flat_map(Arg::values).map(|t| t.storage().to_vec()).collect()
}

#[test]
fn inferred_types_are_the_computed_ones() {
    every_sample(|op, args| {
        let before = storages(args);
        let got = results(op, args);
        if storages(args) != before && !op.is_mutable() {
            return Err("changes an operand".into());
        }
        let (Some(infer), Ok(got)) = (op.def().infer, &got) else { return Ok(()) };
        if matches!(op.def().kernel, Kernel::Scalar(_) | Kernel::Dynamic(_)) || op.is_view() {
            return Ok(());
        }
        let inferred = match infer(&Args(&metas(args))) {
            Ok(types) => types,
            // Sizes depend on the data.
            Err(_) if composed(op, args) => return Ok(()),
            Err(e) => return Err(format!("computes, but infers: {e}")),
        };
        let computed: Vec<Meta> = got.iter().map(meta).collect();
        let types = |ms: &[Meta]| ms.iter().map(|m| (m.dtype, m.sizes().to_vec())).collect::<Vec<_>>();
        if types(&inferred) != types(&computed) {
            return Err(format!("infers {inferred:?}, computes {computed:?}"));
        }
        Ok(())
    });
}

#[test]
fn results_depend_on_logical_values_alone() {
    every_sample(|op, args| {
        let def = op.def();
        // What shows strides, and what changes its operand's own layout.
        if def.strided || def.metadata {
            return Ok(());
        }
        let Ok(want) = results(op, args) else { return Ok(()) };
        let alias = |t: &RawTensor| args.iter().flat_map(Arg::values).any(|a| a.storage().same(t.storage()));
        if op.is_view() && want.iter().all(alias) {
            return Ok(());
        }
        for k in 0..3 {
            let other = map_tensors(args, |t| moved(&resolved(t), layouts(&t.layout().sizes)[k].clone()));
            let got = match fixed(op, args) {
                None => results(op, &other).map_err(|e| format!("layout {k} of operands: {e}"))?,
                Some(kernel) => {
                    let outs: Vec<RawTensor> =
                        want.iter().map(|t| moved(t, layouts(&t.layout().sizes)[(k + 1) % 3].clone())).collect();
                    match run_into(kernel, &other, &outs, k + 1) {
                        // What a view cannot be, its copy cannot either.
                        Err(_) if matches!(def.movement, Some(Movement::View(_))) => continue,
                        ran => ran.map_err(|e| format!("layout {k} of operands: {e}"))?,
                    }
                    outs
                }
            };
            if let Some(why) = differ(&want, &got) {
                return Err(format!("layout {k} of operands: {why}"));
            }
        }
        Ok(())
    });
}

#[test]
fn kernels_write_nothing_but_results() {
    every_sample(|op, args| {
        let Some(kernel) = fixed(op, args) else { return Ok(()) };
        let Some(infer) = op.def().infer else { return Err("a kernel without a shape rule".into()) };
        let Ok(types) = infer(&Args(&metas(args))) else { return Ok(()) };
        let args = map_tensors(args, resolved);
        let outs: Vec<RawTensor> = types
            .iter()
            .map(|m| moved(&RawTensor::zeros(m.dtype, m.layout.clone()), layouts(m.sizes())[0].clone()))
            .collect();
        let before: Vec<Vec<u8>> = outs.iter().map(|t| t.storage().to_vec()).collect();
        if run_into(kernel, &args, &outs, 1).is_err() {
            return Ok(());
        }
        for (t, before) in outs.iter().zip(before) {
            let size = t.dtype().size();
            let written: std::collections::BTreeSet<i64> = t.layout().cells().into_iter().collect();
            let after = t.storage().to_vec();
            let changed = |cell: i64| {
                let at = cell as usize * size..(cell as usize + 1) * size;
                after[at.clone()] != before[at]
            };
            if let Some(cell) = (0..(after.len() / size) as i64).find(|c| !written.contains(c) && changed(*c)) {
                return Err(format!("writes cell {cell} between those of its result"));
            }
        }
        Ok(())
    });
}

#[test]
fn licensed_results_lie_on_their_operands() {
    every_sample(|op, args| {
        let Some(kernel) = fixed(op, args).filter(|_| !op.def().strided) else { return Ok(()) };
        for &Reuse { arg, result, kind } in op.def().reuse {
            let (arg, result) = (arg as usize, result as usize);
            // A number may stand in a tensor's place.
            let Ok(target) = Args::<RawTensor, Scalar>(args).tensor(arg) else { continue };
            if kind == ReuseKind::Trailing {
                continue;
            }
            for share in [false, true] {
                // All operands of the target's type and sizes are the target itself where that is licensed.
                let shared = |t: &RawTensor| {
                    share
                        && kind != ReuseKind::Carried
                        && (t.dtype(), &t.layout().sizes) == (target.dtype(), &target.layout().sizes)
                };
                let plain = map_tensors(args, |t| resolved(if shared(t) { target } else { t }));
                let Ok(want) = results(op, &plain) else { continue };
                let out = &want[result];
                let fits = (out.dtype(), &out.layout().sizes) == (target.dtype(), &target.layout().sizes);
                if !fits
                    || want.iter().any(|t| plain.iter().flat_map(Arg::values).any(|a| a.storage().same(t.storage())))
                {
                    continue;
                }
                for layout in layouts(&out.layout().sizes) {
                    let base = moved(&resolved(target), layout);
                    let mut on: Vec<SampleArg> =
                        map_tensors(args, |t| if shared(t) { base.clone() } else { resolved(t) });
                    on[arg] = Arg::Value(base.clone());
                    let mut outs: Vec<RawTensor> =
                        want.iter().map(|t| RawTensor::zeros(t.dtype(), t.layout().clone())).collect();
                    outs[result] = base;
                    run_into(kernel, &on, &outs, 1).map_err(|e| format!("on argument {arg}: {e}"))?;
                    if let Some(why) = differ(&want, &outs) {
                        return Err(format!("on argument {arg} ({kind:?}): {why}"));
                    }
                }
            }
        }
        Ok(())
    });
}

/// A range of a loop that a tile rule lets be cut is computed by itself, with the bits of the whole.
#[test]
fn tiles_have_the_bits_of_the_whole() {
    let mut cuts = std::cell::Cell::new(0);
    every_sample(|op, args| {
        let Some(kernel) = fixed(op, args) else { return Ok(()) };
        let args = map_tensors(args, resolved);
        let Ok(want) = results(op, &args) else { return Ok(()) };
        let types: Vec<Meta> = want.iter().map(meta).collect();
        let Some(rule) = TileRule::of_call(op, &metas(&args), &types) else { return Ok(()) };
        let operands: Vec<RawTensor> = args.iter().flat_map(Arg::values).cloned().collect();
        let part = |t: &RawTensor, along: &[Option<u8>], at: usize, range: (i64, i64)| {
            let mut layout = t.layout().clone();
            for d in (0..along.len()).filter(|d| along[*d] == Some(at as u8)) {
                layout.offset += range.0 * layout.strides[d];
                layout.sizes[d] = range.1 - range.0;
            }
            t.alias(t.dtype(), layout).expect("a part")
        };
        for at in (0..rule.cut.len()).filter(|l| rule.cut[*l]) {
            let size = |t: &RawTensor, along: &[Option<u8>]| {
                along.iter().position(|l| *l == Some(at as u8)).map(|d| t.layout().sizes[d])
            };
            let sizes = want.iter().zip(&rule.results).chain(operands.iter().zip(&rule.operands));
            let Some(n) = sizes.filter_map(|(t, along)| size(t, along)).max().filter(|n| *n > 1) else { continue };
            for range in [(0, 1), (1, n), (0, n / 2), (n / 2, n)] {
                let next = std::cell::RefCell::new(operands.iter().zip(&rule.operands));
                let own = map_tensors(&args, |_| {
                    let (t, along) = next.borrow_mut().next().expect("an operand");
                    part(t, along, at, range)
                });
                let outs: Vec<RawTensor> =
                    want.iter().map(|t| RawTensor::zeros(t.dtype(), Layout::contiguous(&t.layout().sizes))).collect();
                let mine = |all: &[RawTensor]| -> Vec<RawTensor> {
                    all.iter().zip(&rule.results).map(|(t, along)| part(t, along, at, range)).collect()
                };
                run_into(kernel, &own, &mine(&outs), 1).map_err(|e| format!("{range:?} of loop {at}: {e}"))?;
                if let Some(why) = differ(&mine(&want), &mine(&outs)) {
                    return Err(format!("{range:?} of loop {at}: {why}"));
                }
                cuts.set(cuts.get() + 1);
            }
        }
        Ok(())
    });
    assert!(*cuts.get_mut() > 5000, "only {} tiles", cuts.get());
}

/// A row by its formula, if that is of numbers, or of answers.
fn by_formula(f: FormulaFn, asks: bool, rows: &[&[f32]], out: &mut [f32]) {
    let formula = Formula::default();
    let operands: Vec<FormulaTerm<'_>> = (0..rows.len() as u16).map(|k| formula.operand(k)).collect();
    let result = f(&operands);
    let last = if asks { result.as_number() } else { result };
    let steps = formula.steps();
    for (i, o) in out.iter_mut().enumerate() {
        let xs: Vec<f32> = rows.iter().map(|r| r[i]).collect();
        *o = evaluate(&steps[..=usize::from(last.at())], &xs);
    }
}

/// A call on singles, computed by its function of rows in rows of several lengths, and by its formula, has the bits of its kernel.
#[test]
fn rows_have_the_bits_of_the_whole() {
    let counted = std::cell::Cell::new(0);
    let counted_formulas = std::cell::Cell::new(0);
    every_sample(|op, args| {
        let (Some(form), Some(_)) = (op.def().rows, fixed(op, args)) else { return Ok(()) };
        let args = map_tensors(args, resolved);
        let Ok(want) = results(op, &args) else { return Ok(()) };
        let types: Vec<Meta> = want.iter().map(meta).collect();
        let own = metas(&args);
        let Some(form) = form(&Args(&own), &types) else { return Ok(()) };
        let sizes = &want[0].layout().sizes;
        let elements = |t: &RawTensor| -> Vec<f32> {
            let all = t.alias(t.dtype(), t.layout().expand(sizes).expect("it broadcasts")).expect("the same cells");
            singles(&all)
        };
        let given = |operands: &[RowOperand], n: usize| -> Vec<Vec<f32>> {
            let tensor = |k: u8| elements(Args::<RawTensor, Scalar>(&args).tensor(k as usize).unwrap());
            let operand = |o: &RowOperand| match o {
                RowOperand::Number(x) => vec![*x; n],
                RowOperand::Tensor(k) => tensor(*k),
            };
            operands.iter().map(operand).collect()
        };
        let n = want[0].numel();
        let mut out = vec![0f32; n];
        for width in [1, 3, 16, 1000] {
            out.fill(7.5);
            match &form {
                RowForm::Map { map, operands } => {
                    let all = given(operands, n);
                    counted_formulas.set(counted_formulas.get() + usize::from(map.formula.is_some()));
                    for start in (0..n).step_by(width) {
                        let part = start..n.min(start + width);
                        let rows: Vec<&[f32]> = all.iter().map(|r| &r[part.clone()]).collect();
                        match map.formula.filter(|_| width == 3) {
                            Some(f) => by_formula(f, false, &rows, &mut out[part]),
                            None => (map.row)(&rows, &mut out[part]),
                        }
                    }
                }
                RowForm::Ask { row, formula, operands } => {
                    let all = given(operands, n);
                    for start in (0..n).step_by(width) {
                        let part = start..n.min(start + width);
                        let rows: Vec<&[f32]> = all.iter().map(|r| &r[part.clone()]).collect();
                        if let Some(f) = formula.filter(|_| width == 3) {
                            by_formula(f, true, &rows, &mut out[part]);
                            continue;
                        }
                        let mut answers = vec![false; part.len()];
                        row(&rows, &mut answers);
                        out[part].iter_mut().zip(answers).for_each(|(o, yes)| *o = f32::from(u8::from(yes)));
                    }
                }
                RowForm::Fold { terms, join, finish } => {
                    let x = Args::<RawTensor, Scalar>(&args).tensor(0).unwrap();
                    let rule =
                        op.def().tiles.and_then(|f| f(&Args(&own), &types)).expect("a rule of the joined dimensions");
                    let kept = |d: &usize| rule.results[0].contains(&Some(*d as u8));
                    let dims = (0..x.layout().rank()).filter(kept).chain((0..x.layout().rank()).filter(|d| !kept(d)));
                    let dims: Vec<i64> = dims.map(|d| d as i64).collect();
                    let all = singles(&x.alias(x.dtype(), x.layout().permute(&dims).unwrap()).unwrap());
                    let len = all.len() / n.max(1);
                    for (o, row) in out.iter_mut().zip(all.chunks_exact(len.max(1))) {
                        let mut joined = match join {
                            RowJoin::Sum => JoinedParts::sum(),
                            RowJoin::Largest => JoinedParts::largest(),
                            RowJoin::Smallest => JoinedParts::smallest(),
                        };
                        let mut changed = row.to_vec();
                        terms.iter().for_each(|f| (f.row)(&[row], &mut changed));
                        changed.chunks(width).for_each(|part| joined.push(part));
                        *o = finish(joined.result(), len);
                    }
                }
                RowForm::Scale { dim, count, numbers, row } => {
                    let (mut scale, mut shift) = (vec![0f32; *count], vec![0f32; *count]);
                    let outs: [RawTensor; 0] = [];
                    on_views(&args, &outs, |args, _| numbers(&Args(args), &mut scale, &mut shift)).map_err(|e| e.0)?;
                    let x = elements(Args::<RawTensor, Scalar>(&args).tensor(0).unwrap());
                    let inner = sizes[dim + 1..].iter().product::<i64>() as usize;
                    let channel = |i: usize| i / inner.max(1) % count;
                    for start in (0..n).step_by(width) {
                        let part = start..n.min(start + width);
                        let pick = |of: &[f32]| -> Vec<f32> { part.clone().map(|i| of[channel(i)]).collect() };
                        row(&x[part.clone()], &pick(&scale), &pick(&shift), &mut out[part.clone()]);
                        if part.len() > 1 && channel(part.start) == channel(part.end - 1) && inner > 1 {
                            let c = channel(part.start);
                            let mut again = vec![0f32; part.len()];
                            row(&x[part.clone()], &scale[c..=c], &shift[c..=c], &mut again);
                            assert_eq!(again, out[part], "one factor and as many");
                        }
                    }
                }
            }
            let made = RawTensor::zeros(want[0].dtype(), Layout::contiguous(sizes));
            copy_convert(RawTensor::from_slice(&out, sizes).read().view(), &made.write().view_mut());
            if let Some(why) = differ(&want, std::slice::from_ref(&made)) {
                return Err(format!("rows of {width}: {why}"));
            }
        }
        counted.set(counted.get() + 1);
        Ok(())
    });
    assert!(counted.get() > 900, "only {} calls are functions of rows", counted.get());
    assert!(counted_formulas.get() > 400, "only {} calls have formulas", counted_formulas.get());
}

/// Elements in order, converted to singles.
fn singles(t: &RawTensor) -> Vec<f32> {
    let row = RawTensor::zeros(DType::F32, Layout::contiguous(&t.layout().sizes));
    copy_convert(t.read().view(), &row.write().view_mut());
    row.to_elements::<f32>()
}

/// Elements of different sizes, those of each index beginning at the same byte.
#[test]
fn licences_by_index_hold_for_elements_of_other_sizes() {
    let counted = std::cell::Cell::new(0);
    every_sample(|op, args| {
        let Some(kernel) = fixed(op, args).filter(|_| !op.def().strided) else { return Ok(()) };
        for &Reuse { arg, result, .. } in op.def().reuse.iter().filter(|l| l.kind == ReuseKind::SameIndex) {
            let (arg, result) = (arg as usize, result as usize);
            let Ok(target) = Args::<RawTensor, Scalar>(args).tensor(arg) else { continue };
            let plain = map_tensors(args, resolved);
            let Ok(want) = results(op, &plain) else { continue };
            let (from, to) = (target.dtype().size() as i64, want[result].dtype().size() as i64);
            if from == to || want[result].layout().sizes != target.layout().sizes || target.numel() == 0 {
                continue;
            }
            let unit = from.max(to);
            for layout in layouts(&target.layout().sizes) {
                // Both in cells of the wider ones.
                let storage = Storage::zeroed((layout.cell_range().end * unit) as usize);
                let typed = |dtype: DType| {
                    let times = unit / dtype.size() as i64;
                    let mut own = layout.clone();
                    own.strides.iter_mut().for_each(|s| *s *= times);
                    own.offset *= times;
                    RawTensor::new(storage.clone(), dtype, own).expect("inside its storage")
                };
                let base = typed(target.dtype());
                copy_convert(resolved(target).read().view(), &base.write().view_mut());
                let mut on = plain.clone();
                on[arg] = Arg::Value(base);
                let mut outs: Vec<RawTensor> =
                    want.iter().map(|t| RawTensor::zeros(t.dtype(), t.layout().clone())).collect();
                outs[result] = typed(want[result].dtype());
                run_into(kernel, &on, &outs, 1).map_err(|e| format!("on argument {arg}: {e}"))?;
                if let Some(why) = differ(&want, &outs) {
                    return Err(format!("on argument {arg}: {why}"));
                }
                counted.set(counted.get() + 1);
            }
        }
        Ok(())
    });
    assert!(counted.get() > 100, "only {} calls have results of another size", counted.get());
}

/// Operators with a workspace that only oneDNN fills and reads: calls of samples would have another one, or crash PyTorch. A test of
/// programs (`traced.rs` of restride-testing) compares their results.
const OPAQUE: &[&str] = &["aten.mkldnn_rnn_layer.default", "aten.mkldnn_rnn_layer_backward.default"];

/// An operator that computes is compared with PyTorch by its sample calls; those of our own have nothing to compare with.
#[test]
fn operators_that_compute_have_samples() {
    let missing: Vec<&str> = restride_ops::ops()
        .iter()
        .filter(|op| {
            let d = op.def();
            let computes = matches!(d.kernel, Kernel::Fixed(_) | Kernel::Dynamic(_)) || d.decompose.is_some();
            computes && d.samples.is_none() && !d.effectful && !op.name().starts_with("restride.")
        })
        .filter(|op| !OPAQUE.contains(&op.name()))
        .map(|op| op.name())
        .collect();
    assert!(missing.is_empty(), "without samples: {missing:?}");
}

#[test]
fn the_counts_of_sample_calls_are_written_down() {
    let count = |op: &Op| op.def().samples.map_or(0, |samples| samples().len());
    let counts = restride_ops::ops().iter().map(|op| (op.name(), count(op))).filter(|(_, n)| *n > 0);
    let mut lines: Vec<String> = counts.map(|(name, n)| format!("{name} {n}\n")).collect();
    lines.sort();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample_counts.txt");
    if std::env::var_os("RESTRIDE_BLESS").is_some() {
        std::fs::write(path, lines.concat()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(written, lines.concat(), "run with RESTRIDE_BLESS=1 to write data/sample_counts.txt");
}

/// Elements that operators refuse: indices out of range, singular and undefined matrices, probabilities outside of [0, 1].
const HOSTILE: [f64; 6] = [0.0, -1.0, -99.0, 99.0, f64::NAN, f64::INFINITY];

#[test]
fn what_fails_on_elements_says_so() {
    every_sample(|op, args| {
        let fails = op.twin().map_or(op, |t| t.op).def().fails;
        if fails == Fails::Elements || op.def().effectful || results(op, args).is_err() {
            return Ok(());
        }
        let tensors = args.iter().flat_map(Arg::values).count();
        for which in 0..=tensors {
            for value in HOSTILE {
                let at = Cell::new(0);
                let other = map_tensors(args, |t| {
                    at.set(at.get() + 1);
                    // One operand, or all.
                    if which < tensors && which + 1 != at.get() { t.clone() } else { filled_with(t, value) }
                });
                let Err(why) = results(op, &other) else { continue };
                let types = op.def().infer.and_then(|infer| infer(&Args(&metas(args))).ok()).unwrap_or_default();
                // Of integers alone, where a shape rule tells.
                if !types.iter().any(|t| fails.at(t.dtype)) {
                    return Err(format!("fails on {value}: {why}"));
                }
            }
        }
        Ok(())
    });
}

/// The tensor with this number in all cells that its type can tell from others.
fn filled_with(t: &RawTensor, value: f64) -> RawTensor {
    let cell = RawTensor::from_slice(&[value], &[]);
    let out = RawTensor::zeros(t.dtype(), t.layout().clone());
    let wide =
        cell.alias(cell.dtype(), Layout::strided(&t.layout().sizes, &vec![0; t.layout().rank()], 0)).expect("one cell");
    copy_convert(wide.read().view(), &out.write().view_mut());
    out
}
