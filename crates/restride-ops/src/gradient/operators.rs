//! PyTorch's gradient operators (`upsample_bilinear2d_backward`) as compositions: the gradient of the operator that they belong to,
//! by its own rule or, if it is composed itself, by the rules of its parts.

use super::gradients;
use crate::registry::lookup;
use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{
    Arg, ArgType, Args, Emit, Expr, Grad, GradCall, GradEmit, MemoryFormat, Meta, Op, OpDef, OpError, Scalar,
    TensorType,
};
use restride_ir::{SchemaArg, Val};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};

/// Emits what a rule calls, where all sizes are known.
struct KnownSizes<'e>(&'e mut dyn Emit);

impl GradEmit for KnownSizes<'_> {
    fn call(&mut self, op: &str, args: &[Arg<Val, Expr>]) -> Result<SmallVec<[Val; 1]>> {
        let number = |e: &Expr| e.constant().ok_or_else(|| OpError::new(format!("{e} is not a known number")));
        let args: Result<Vec<Arg<Val, Scalar>>> = args.iter().map(|a| a.try_map(|v| Ok(*v), number)).collect();
        self.0.call(op, &args?)
    }

    fn ty(&self, v: Val) -> TensorType {
        let m = self.0.meta(v);
        TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d)))
    }
}

/// A call with a gradient rule.
struct TapeCall {
    op: Op,
    args: Vec<Arg<Val, Expr>>,
    results: SmallVec<[Val; 1]>,
}

/// Emits calls and records them; composed operators are recorded as their parts.
struct Tape<'e> {
    emit: &'e mut dyn Emit,
    calls: Vec<TapeCall>,
}

impl Emit for Tape<'_> {
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>> {
        let op = lookup(op).ok_or_else(|| OpError::new(format!("no operator {op}")))?;
        let mut args = args.to_vec();
        op.fill_defaults(&mut args)?;
        let exact =
            |args: &[Arg<Val, Scalar>]| args.iter().map(|a| a.try_map(|v| Ok(*v), |s| Ok((*s).into()))).collect();
        let wide: Result<Vec<Arg<Val, Expr>>> = exact(&args);
        let wide = wide?;
        match (op.def().grad, op.def().decompose) {
            (Some(Grad::Form(form)), _) => {
                let needs = vec![true; wide.iter().map(|a| a.values().count()).sum()];
                let call = GradCall { op, args: &wide, results: &[], grads: &[], needs: &needs };
                Ok(form(&mut KnownSizes(self), &call)?.into())
            }
            (Some(Grad::Composed), Some(decompose)) => decompose(self, &Args(&args)),
            _ => {
                let results = self.emit.call(op.name(), &args)?;
                self.calls.push(TapeCall { op, args: wide, results: results.clone() });
                Ok(results)
            }
        }
    }

    fn meta(&self, v: Val) -> Meta {
        self.emit.meta(v)
    }
}

/// Gradients of `wanted` through recorded calls; `None` is zero.
fn backward(e: &mut dyn Emit, calls: &[TapeCall], seeds: &[(Val, Val)], wanted: &[Val]) -> Result<Vec<Option<Val>>> {
    let floating = |e: &dyn Emit, v: Val| e.meta(v).dtype.is_float() || e.meta(v).dtype.is_complex();
    let mut depends: HashSet<Val> = wanted.iter().copied().collect();
    for call in calls {
        if call.args.iter().flat_map(Arg::values).any(|v| depends.contains(v)) {
            depends.extend(call.results.iter().copied().filter(|v| floating(e, *v)));
        }
    }
    let mut grads: HashMap<Val, Val> = seeds.iter().copied().collect();
    for call in calls.iter().rev() {
        let own: Vec<Option<Val>> = call.results.iter().map(|r| grads.get(r).copied()).collect();
        let operands: Vec<Val> = call.args.iter().flat_map(|a| a.values().copied()).collect();
        let needs: Vec<bool> = operands.iter().map(|v| depends.contains(v)).collect();
        if own.iter().all(Option::is_none) || !needs.contains(&true) {
            continue;
        }
        let of = GradCall { op: call.op, args: &call.args, results: &call.results, grads: &own, needs: &needs };
        let found = gradients(&mut KnownSizes(e), &of)?;
        for (operand, grad) in operands.into_iter().zip(found) {
            let Some(grad) = grad else { continue };
            let sum = match grads.get(&operand) {
                Some(&so_far) => emit!(e, "aten.add.Tensor", so_far, grad)?,
                None => grad,
            };
            grads.insert(operand, sum);
        }
    }
    Ok(wanted.iter().map(|v| grads.get(v).copied()).collect())
}

/// Gradients of `wanted` through the call of a composed operator, whose results have these gradients; `None` is zero.
///
/// # Errors
/// The operator does not take the arguments, or a part of it has no rule.
pub(crate) fn pullback(
    e: &mut dyn Emit,
    op: &str,
    args: &[Arg<Val, Scalar>],
    grads: &[Option<Val>],
    wanted: &[Val],
) -> Result<Vec<Option<Val>>> {
    let mut tape = Tape { emit: e, calls: Vec::new() };
    let made = tape.call(op, args)?;
    let calls = tape.calls;
    let seeds: Vec<(Val, Val)> = made.iter().zip(grads).filter_map(|(v, g)| Some((*v, (*g)?))).collect();
    backward(e, &calls, &seeds, wanted)
}

/// A gradient operator: its schema's name, the operator it belongs to, and the operands whose gradients are its results.
struct GradientOperator {
    own: &'static str,
    forward: &'static str,
    wanted: &'static [&'static str],
    /// The argument that is the forward operator's result; `None` if its rule does not read it.
    result: Option<&'static str>,
    /// Whether results are of batches as broadcast, in the sizes of the gradient before the last two; autograd sums them. Those
    /// without distances are not.
    broadcast: bool,
}

impl GradientOperator {
    /// The arguments of the forward operator: those of the same names, and memory of the right size for an operand whose
    /// elements the gradient does not depend on.
    fn forward_args(&self, e: &mut dyn Emit, a: &ValArgs<'_>, own: Op, forward: Op) -> Result<Vec<Arg<Val, Scalar>>> {
        let given = |name: &str| own.schema().args.iter().position(|x| x.name == name).map(|i| a.0[i].clone());
        let named = |name: &str| given(name).or_else(|| given(&format!("saved_{name}")));
        let mut out = Vec::new();
        for arg in &forward.schema().args {
            let sizes = || ["input_size", "input_sizes", "self_sizes"].iter().find_map(|n| named(n));
            out.push(match named(&arg.name) {
                Some(given) => given,
                None if arg.ty == ArgType::Tensor && !arg.optional => {
                    let sizes = sizes().ok_or_else(|| self.lacks(arg))?;
                    Arg::Value(emit!(e, "aten.new_empty.default", *a.tensor(0)?, sizes)?)
                }
                None => arg.default_arg().or(arg.optional.then_some(Arg::None)).ok_or_else(|| self.lacks(arg))?,
            });
        }
        Ok(out)
    }

    /// Expands the operands whose gradients are wanted to the batches of a gradient.
    fn expand(&self, e: &mut dyn Emit, grad: Val, forward: Op, args: &mut [Arg<Val, Scalar>]) -> Result<()> {
        for (arg, given) in args.iter_mut().zip(&forward.schema().args) {
            let Some(&operand) = arg.values().next().filter(|_| self.wanted.contains(&&*given.name)) else { continue };
            let (batch, own) = (e.meta(grad), e.meta(operand));
            ensure!(batch.rank() >= 2 && own.rank() >= 2, "{} takes matrices", self.own);
            if batch.layout.numel() == 0 || own.layout.numel() == 0 {
                continue;
            }
            let sizes = [&batch.sizes()[..batch.rank() - 2], &own.sizes()[own.rank() - 2..]].concat();
            *arg = Arg::Value(emit!(e, "aten.expand.default", operand, &sizes[..])?);
        }
        Ok(())
    }

    fn lacks(&self, arg: &SchemaArg) -> OpError {
        OpError::new(format!("{} does not have {} of {}", self.own, arg.name, self.forward))
    }

    fn run(&self, e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
        let missing = |name: &str| OpError::new(format!("no operator {name}"));
        let own = lookup(&super::full_name(self.own)).ok_or_else(|| missing(self.own))?;
        let forward = lookup(&super::full_name(self.forward)).ok_or_else(|| missing(self.forward))?;
        let mut args = self.forward_args(e, a, own, forward)?;
        let grad = *a.tensor(0)?;
        if self.broadcast {
            self.expand(e, grad, forward, &mut args)?;
        }
        let operand = |name: &&str| {
            let place = forward.schema().args.iter().position(|x| x.name == **name);
            place
                .and_then(|i| args[i].values().next().copied())
                .ok_or_else(|| OpError::new(format!("{name} is missing")))
        };
        let wanted: Vec<Val> = self.wanted.iter().map(operand).collect::<Result<_>>()?;
        let found = match forward.def().grad {
            Some(Grad::Rule(_)) => {
                let want = &types(forward, &args, e)?[0];
                let have = e.meta(grad);
                ensure!(
                    have.sizes() == want.sizes(),
                    "{}: expected a gradient of sizes {:?}, got {:?}",
                    self.own,
                    want.sizes(),
                    have.sizes()
                );
                let given = |n: &str| {
                    own.schema().args.iter().position(|x| x.name == n).and_then(|i| a.0[i].values().next().copied())
                };
                let result = self.result.and_then(given).unwrap_or(grad);
                let args = args.iter().map(|x| x.try_map(|v| Ok::<_, OpError>(*v), |s| Ok((*s).into())));
                let args = args.collect::<Result<Vec<_>>>()?;
                let call = TapeCall { op: forward, args, results: smallvec![result] };
                backward(e, &[call], &[(result, grad)], &wanted)?
            }
            _ => pullback(e, forward.name(), &args, &[Some(grad)], &wanted)?,
        };
        let mask = own.schema().args.iter().position(|x| x.name == "output_mask").map(|i| a.ints(i)).transpose()?;
        let left_out = mask.is_some_and(|m| m.first() == Some(&0));
        let mut out = SmallVec::new();
        for (k, (grad, of)) in found.into_iter().zip(wanted).enumerate() {
            let grad = match grad {
                // As of a convolution: a gradient that the mask leaves out has no elements. PyTorch's mask is that of the first one.
                _ if left_out && k == 0 => emit!(e, "aten.new_empty.default", of, [0])?,
                Some(grad) => grad,
                None => emit!(e, "aten.zeros_like.default", of)?,
            };
            // PyTorch computes into new memory.
            let meta = e.meta(grad);
            let row_major = meta.rank() >= 4 || meta.layout.is_contiguous();
            let packed = Arg::MemoryFormat(MemoryFormat::Contiguous);
            out.push(if row_major { grad } else { emit!(e, "aten.clone.default", grad, packed)? });
        }
        Ok(out)
    }
}

/// Types of a call's results.
fn types(op: Op, args: &[Arg<Val, Scalar>], e: &dyn Emit) -> Result<Vec<Meta>> {
    let metas: Vec<Arg<Meta, Scalar>> = args.iter().map(|a| a.map_values(|v| e.meta(*v))).collect();
    crate::types(op, &metas)
}

macro_rules! gradient {
    ($own:literal, $forward:literal, [$($wanted:literal),*], $result:expr, $samples:expr) => {
        gradient!(@ false, $own, $forward, [$($wanted),*], $result, $samples)
    };
    (@ $broadcast:literal, $own:literal, $forward:literal, [$($wanted:literal),*], $result:expr, $samples:expr) => {{
        fn run(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            let (wanted, result) = (&[$($wanted),*], $result);
            GradientOperator { own: $own, forward: $forward, wanted, result, broadcast: $broadcast }.run(e, a)
        }
        composite!(run, $samples, $own)
    }};
}

pub(crate) static OPS: &[OpDef] = table![
    gradient!("replication_pad1d_backward", "replication_pad1d", ["self"], None, pads(1)),
    gradient!("replication_pad2d_backward", "replication_pad2d", ["self"], None, pads(2)),
    gradient!("replication_pad3d_backward", "replication_pad3d", ["self"], None, pads(3)),
    gradient!("reflection_pad1d_backward", "reflection_pad1d", ["self"], None, pads(1)),
    gradient!("reflection_pad2d_backward", "reflection_pad2d", ["self"], None, pads(2)),
    gradient!("reflection_pad3d_backward", "reflection_pad3d", ["self"], None, pads(3)),
    gradient!("upsample_nearest1d_backward", "upsample_nearest1d", ["self"], None, resized(1, None)),
    gradient!("upsample_nearest2d_backward", "upsample_nearest2d", ["self"], None, resized(2, None)),
    gradient!("upsample_nearest3d_backward", "upsample_nearest3d", ["self"], None, resized(3, None)),
    gradient!("_upsample_nearest_exact1d_backward", "_upsample_nearest_exact1d", ["self"], None, resized(1, None)),
    gradient!("_upsample_nearest_exact2d_backward", "_upsample_nearest_exact2d", ["self"], None, resized(2, None)),
    gradient!("_upsample_nearest_exact3d_backward", "_upsample_nearest_exact3d", ["self"], None, resized(3, None)),
    gradient!("upsample_linear1d_backward", "upsample_linear1d", ["self"], None, resized(1, Some(false))),
    gradient!("upsample_bilinear2d_backward", "upsample_bilinear2d", ["self"], None, resized(2, Some(false))),
    gradient!("upsample_trilinear3d_backward", "upsample_trilinear3d", ["self"], None, resized(3, Some(true))),
    gradient!("upsample_bicubic2d_backward", "upsample_bicubic2d", ["self"], None, resized(2, Some(true))),
    gradient!("_upsample_bilinear2d_aa_backward", "_upsample_bilinear2d_aa", ["self"], None, resized(2, Some(false))),
    gradient!("_upsample_bicubic2d_aa_backward", "_upsample_bicubic2d_aa", ["self"], None, resized(2, Some(true))),
    gradient!("_upsample_lanczos2d_aa_backward", "_upsample_lanczos2d_aa", ["self"], None, resized(2, Some(true))),
    gradient!("grid_sampler_2d_backward", "grid_sampler_2d", ["input", "grid"], None, grids(2)),
    gradient!("grid_sampler_3d_backward", "grid_sampler_3d", ["input", "grid"], None, grids(3)),
    gradient!(@ true, "_cdist_backward", "_cdist_forward", ["x1"], Some("cdist"), distances()),
    gradient!("_weight_norm_interface_backward", "_weight_norm_interface", ["v", "g"], None, weight_norms()),
    gradient!("multi_margin_loss_backward", "multi_margin_loss", ["self"], None, margins()).failing(),
    gradient!("multilabel_margin_loss_backward", "multilabel_margin_loss_forward", ["self"], None, label_margins())
        .failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;
    use restride_ir::DType;

    const F: DType = DType::F32;

    pub(crate) fn pads(dims: usize) -> Samples {
        let shape = &[2, 3, 4, 5, 3][..dims + 2];
        let pad = &[1, 2, 2, 0, 1, 1][..2 * dims];
        // The last dimension is padded first.
        let added = |i: usize| pad.chunks(2).nth(shape.len() - 1 - i).map_or(0, |p| p.iter().sum::<i64>());
        let after: Vec<i64> = (0..shape.len()).map(|i| shape[i] + added(i)).collect();
        let mut out: Samples = forms(F, &after, 2).into_iter().map(|g| sample![g, tensor(F, shape, 1), pad]).collect();
        out.extend([
            sample![tensor(F, &after[1..], 2), tensor(F, &shape[1..], 1), pad],
            sample![tensor(DType::F64, &after, 2), tensor(DType::F64, shape, 1), pad],
            sample![tensor(F, shape, 2), tensor(F, shape, 1), pad],
        ]);
        out
    }

    /// Of interpolations; those that take `align_corners` are also sampled with the given one.
    pub(crate) fn resized(dims: usize, aligned: Option<bool>) -> Samples {
        let before = &[2, 3, 4, 5, 3][..dims + 2];
        let sizes: [&[i64]; 2] = [&[7, 3, 5], &[4, 5, 3]];
        let mut out = Samples::new();
        for to in sizes {
            let after: Vec<i64> = before[..2].iter().chain(&to[..dims]).copied().collect();
            for d in [F, DType::F64] {
                let mut args = vec![tensor(d, &after, 1).arg(), to[..dims].to_vec().arg(), before.to_vec().arg()];
                if let Some(aligned) = aligned {
                    args.push(aligned.arg());
                }
                out.push(Sample { args });
            }
        }
        out
    }

    pub(crate) fn grids(dims: usize) -> Samples {
        let (x, g) = (&[2, 3, 4, 5, 3][..dims + 2], &[2, 3, 2, 6, 4][..dims + 2]);
        let mut at: Vec<i64> = vec![2];
        at.extend(&g[2..]);
        at.push(dims as i64);
        let grid = |d| in_range(d, restride_tensor::Layout::contiguous(&at), 3, -1.2, 1.2);
        let on = |mask: [bool; 2]| SampleArg::Scalars(mask.map(Scalar::Bool).to_vec());
        let mut out = Samples::new();
        for (mode, padding) in [(0, 0), (0, 1), (1, 2)] {
            for mask in [[true, true], [true, false], [false, true]] {
                out.push(sample![tensor(F, g, 1), tensor(F, x, 2), grid(F), mode, padding, padding == 1, on(mask)]);
            }
        }
        out.push(sample![
            tensor(DType::F64, g, 1),
            tensor(DType::F64, x, 2),
            grid(DType::F64),
            0,
            0,
            true,
            on([true, true])
        ]);
        out
    }

    pub(crate) fn distances() -> Samples {
        let mut out = Samples::new();
        for p in [2.0, 1.0, 0.0, 3.0, f64::INFINITY] {
            let (x, y) = (tensor(DType::F64, &[3, 4], 2), tensor(DType::F64, &[5, 4], 3));
            // Any distances will do: the operator does not check them.
            let r = in_range(DType::F64, restride_tensor::Layout::contiguous(&[3, 5]), 4, 1.0, 2.0);
            out.push(sample![tensor(DType::F64, &[3, 5], 1), x, y, p, r]);
        }
        // Batches that broadcast.
        let batches = [
            (&[2, 1, 3, 4][..], &[3, 5, 4][..], &[2i64, 3][..]),
            (&[3, 4], &[2, 5, 4], &[2]),
            (&[1, 3, 4], &[0, 5, 4], &[0]),
        ];
        for (x, y, batch) in batches {
            let (x, y) = (tensor(DType::F64, x, 2), tensor(DType::F64, y, 3));
            let sizes = [batch, &[3, 5]].concat();
            let r = in_range(DType::F64, restride_tensor::Layout::contiguous(&sizes), 4, 1.0, 2.0);
            out.push(sample![tensor(DType::F64, &sizes, 1), x, y, 2.0, r]);
        }
        out
    }

    pub(crate) fn weight_norms() -> Samples {
        let positive = |sizes: &[i64]| in_range(DType::F64, restride_tensor::Layout::contiguous(sizes), 3, 0.5, 1.5);
        let v = tensor(DType::F64, &[3, 4, 2], 1);
        let mut out = Samples::new();
        for (dim, sizes) in [(0, [3, 1, 1]), (2, [1, 1, 2])] {
            let norms = RawTensor::from_slice(&norms_of(&v, dim), &sizes);
            out.push(sample![tensor(DType::F64, &[3, 4, 2], 2), &v, positive(&sizes), norms, dim as i64]);
        }
        out
    }

    /// Norms over all dimensions but one of a row-major tensor.
    fn norms_of(v: &RawTensor, dim: usize) -> Vec<f64> {
        let sizes = &v.layout().sizes;
        let (n, inner) = (sizes[dim] as usize, sizes[dim + 1..].iter().product::<i64>() as usize);
        let bytes = v.storage().to_vec();
        let mut sums = vec![0.0; n];
        for (i, x) in bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().expect("eight bytes"))).enumerate()
        {
            sums[i / inner % n] += x * x;
        }
        sums.into_iter().map(f64::sqrt).collect()
    }

    pub(crate) fn margins() -> Samples {
        let t = ints(&[0, 2, 1, 2], &[4]);
        let mut out = Samples::new();
        for r in 0..3 {
            let g = || if r == 0 { tensor(F, &[4], 3) } else { tensor(F, &[], 3) };
            for p in [1, 2] {
                out.push(sample![g(), tensor(F, &[4, 3], 1), &t, p, 0.7, (), r]);
                out.push(sample![g(), transposed(F, &[4, 3], 1), &t, p, 1, tensor(F, &[3], 2), r]);
            }
        }
        out
    }

    pub(crate) fn label_margins() -> Samples {
        let t = ints(&[0, 2, -1, 1, -1, 0, 2, 0, 1, -1, 0, 0], &[4, 3]);
        let named = in_range(F, restride_tensor::Layout::contiguous(&[4, 3]), 1, 0.0, 0.0);
        named.storage().write(&[1.0f32, 0., 1., 0., 1., 0., 1., 1., 1., 0., 0., 0.].map(f32::to_ne_bytes).concat());
        let mut out = Samples::new();
        for r in 0..3 {
            let g = || if r == 0 { tensor(F, &[4], 3) } else { tensor(F, &[], 3) };
            out.push(sample![g(), tensor(F, &[4, 3], 1), &t, r, &named]);
            out.push(sample![g(), transposed(F, &[4, 3], 1), &t, r, &named]);
        }
        out
    }
}
