//! Every operator's gradient rule against finite differences on its own samples, in double precision: first order and
//! second.

use restride_ir::{Arg, Op, SampleArg, Scalar};
use restride_testing::finite_differences::{GradientCase, REFUSED};
use restride_testing::rng::Rng;
use restride_testing::tape_run::{draws, first_order, same, second_order};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Operators whose gradient is not the derivative, as PyTorch's is not, and why.
const EXCEPT: &[(&[&str], &str)] = &[
    (&["aten.detach.default", "aten.detach_copy.default"], "they exist to stop gradients"),
    (&["aten.view.dtype", "aten.view_copy.dtype"], "bits are constants"),
    (&["torchao.dequantize_affine.default"], "its result is of singles, which differences do not resolve"),
    (
        &["aten.normal.Tensor_Tensor", "aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.binomial.default"],
        "draws are constants",
    ),
    (
        &[
            "aten.fake_quantize_per_tensor_affine.default",
            "aten.fake_quantize_per_tensor_affine.tensor_qparams",
            "aten.fake_quantize_per_tensor_affine_cachemask.default",
            "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        ],
        "the gradient goes straight through the rounding",
    ),
    (
        &[
            "aten.native_layer_norm_backward.default",
            "aten.native_group_norm_backward.default",
            "aten.native_batch_norm_backward.default",
            "aten.batch_norm_backward.default",
        ],
        "mean and deviation, which are given, count as functions of the input",
    ),
    (
        &[
            "aten.linalg_cholesky_ex.default",
            "aten.linalg_cholesky.default",
            "aten._linalg_eigh.default",
            "aten.linalg_eigh.default",
            "aten.linalg_eigvalsh.default",
            "aten.linalg_matrix_sqrth.default",
        ],
        "one half of a Hermitian matrix is read, and the gradient is that of Hermitian ones",
    ),
    (
        &["aten.cholesky_inverse.default", "aten.cholesky_solve.default"],
        "one half of the factor is read, and the gradient is of all of it",
    ),
    (&["aten.linalg_eig.default"], "vectors are determined but for their phases"),
    (&["aten.linalg_svd.default", "aten.svd.default"], "vectors beyond the singular values count as constant"),
];

/// Refusals of rules, with part of what they say; of any operator where none is named.
const REFUSALS: &[(&str, &str)] = &[
    ("aten.embedding.default", "not implemented for 'ComplexDouble'"),
    // PyTorch has none of these either.
    ("aten.nll_loss_forward.default", "no gradient for its operand 2"),
    ("torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default", "no gradient for its operand 2"),
    ("aten._fake_quantize_learnable_per_tensor_affine.default", "of Float only"),
    ("aten.nll_loss2d_forward.default", "no gradient for its operand 2"),
    ("aten.nll_loss.default", "no gradient for its operand 2"),
    ("aten.nll_loss2d.default", "no gradient for its operand 2"),
    ("aten.nll_loss_nd.default", "no gradient for its operand 2"),
    ("aten.cross_entropy_loss.default", "no gradient for its operand 2"),
    ("aten.binary_cross_entropy.default", "the weight of binary_cross_entropy"),
    ("aten.linalg_ldl_factor.default", "there is no gradient of aten.linalg_ldl_factor_ex.default: PyTorch has none"),
    ("aten.igamma.default", "the derivative for 'igamma: input'"),
    ("aten.special_gammainc.default", "the derivative for 'igamma: input'"),
    ("aten.igammac.default", "the derivative for 'igammac: input'"),
    ("aten.special_gammaincc.default", "the derivative for 'igammac: input'"),
    ("prims.igamma.default", "the derivative for 'igamma: input'"),
    ("prims.igammac.default", "the derivative for 'igammac: input'"),
    ("prims.zeta.default", "the derivative for 'zeta'"),
    ("aten.special_zeta.default", "the derivative for 'zeta'"),
    ("aten.special_zeta.other_scalar", "the derivative for 'zeta'"),
    ("aten.linalg_qr.default", "QR decomposition with mode="),
    ("aten._ctc_loss.default", "there is no gradient of aten._ctc_loss_backward.default: PyTorch has none"),
    ("aten.ctc_loss.IntList", "there is no gradient of aten._ctc_loss_backward.default: PyTorch has none"),
];

/// Functions that PyTorch does not differentiate: a gradient through them is zero.
fn constant(op: Op) -> bool {
    let name = op.name();
    name.contains("_polynomial_")
        || [
            "aten.special_airy_ai",
            "aten.special_scaled_modified_bessel",
            "aten.special_spherical_bessel",
            "prims.spherical_bessel",
            // Of the scale, which it takes as a number.
            "quantized_decomposed.dequantize_per_tensor.tensor",
        ]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether results are determined but for phases: singular vectors of complex matrices.
fn by_phase(op: Op, args: &[SampleArg]) -> bool {
    op.name() == "aten._linalg_svd.default" && matches!(&args[0], Arg::Value(t) if t.dtype().is_complex())
}

/// Whether a call asks for a gradient that is not the derivative: rows divided by how often they are looked up.
fn by_frequency(op: Op, args: &[SampleArg]) -> bool {
    let looks_up = op.name().contains("embedding_bag") || op.name() == "aten.embedding.default";
    looks_up && matches!(args.get(3), Some(Arg::Scalar(Scalar::Bool(true))))
}

fn shown(args: &[SampleArg]) -> String {
    let one = |t: &restride::RawTensor| format!("{}{:?}", t.dtype(), t.layout().sizes);
    let all: Vec<String> = args
        .iter()
        .map(|a| match a {
            Arg::Value(t) => one(t),
            Arg::Values(ts) => format!("{:?}", ts.iter().flatten().map(one).collect::<Vec<_>>()),
            Arg::Scalar(s) => s.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    all.join(", ")
}

/// What distinguishes a sample from others once it is in double precision.
fn key(args: &[SampleArg]) -> String {
    let one = |t: &restride::RawTensor| {
        let d = t.dtype();
        let kind = if d.is_complex() {
            "c"
        } else if d.is_float() {
            "f"
        } else {
            "i"
        };
        format!("{kind}{:?}", t.layout().sizes)
    };
    args.iter()
        .map(|a| match a {
            Arg::Value(t) => one(t),
            Arg::Values(ts) => format!("{:?}", ts.iter().flatten().map(one).collect::<Vec<_>>()),
            Arg::DType(_) => "dtype".to_string(),
            other => format!("{:?}", other.map_values(|_| ())),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// A check of one case: whether it says anything.
type Check = fn(&GradientCase, &mut Rng) -> Result<bool, String>;

/// Checks some samples of every operator: what was found, and how many calls of each said anything.
fn every_operator(tried: usize, check: Check) -> (Vec<String>, BTreeMap<&'static str, usize>) {
    let only = std::env::var("RESTRIDE_OP").ok();
    let mut found = Vec::new();
    let mut checked: BTreeMap<&'static str, usize> = BTreeMap::new();
    for &op in restride_ops::ops() {
        if only.as_ref().is_some_and(|o| !op.name().contains(o.as_str())) {
            continue;
        }
        let Some(samples) = op.def().samples else { continue };
        if constant(op) || EXCEPT.iter().any(|(names, _)| names.contains(&op.name())) {
            continue;
        }
        if op.is_mutable() || op.def().grad.is_none() || op.def().hop.is_some() {
            continue;
        }
        let mut seen = BTreeSet::new();
        for (i, sample) in samples().iter().enumerate() {
            if seen.len() >= tried
                || by_frequency(op, &sample.args)
                || by_phase(op, &sample.args)
                || !seen.insert(key(&sample.args))
            {
                continue;
            }
            let mut rng = Rng::new(i as u64);
            let outcome = catch_unwind(AssertUnwindSafe(|| match GradientCase::new(op, &sample.args, &mut rng)? {
                Some(case) => check(&case, &mut rng),
                None => Ok(false),
            }));
            let why = match outcome {
                Ok(Err(why)) if why.starts_with(REFUSED) => continue,
                Ok(Err(why))
                    if REFUSALS.iter().any(|(o, text)| (o.is_empty() || *o == op.name()) && why.contains(text)) =>
                {
                    continue;
                }
                Ok(Ok(true)) => {
                    *checked.entry(op.name()).or_default() += 1;
                    continue;
                }
                Ok(Ok(false)) => continue,
                Ok(Err(why)) => why,
                Err(_) => "panics".to_string(),
            };
            found.push(format!("{op} #{i}({}): {why}", shown(&sample.args)));
        }
    }
    (found, checked)
}

fn has_rule(op: Op) -> bool {
    op.def().grad.is_some()
}

/// Operators from floating numbers to floating numbers that have no gradient say why, and no others do.
#[test]
fn what_has_no_gradient_says_why() {
    let mut found = Vec::new();
    for &op in restride_ops::ops() {
        let said = restride_ops::gradient::without(op.name()).is_some();
        let smooth = || {
            let samples = op.def().samples.map(|f| f()).unwrap_or_default();
            let case = |s: &restride_ir::Sample| GradientCase::new(op, &s.args, &mut Rng::new(0));
            samples.iter().any(|s| matches!(case(s), Ok(Some(_))))
        };
        let lacks = op.def().grad.is_none() && op.def().hop.is_none() && !op.is_mutable() && smooth();
        if said != lacks {
            found.push(format!("{op}: {}", if lacks { "has no gradient and does not say why" } else { "has one" }));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_rule_is_the_derivative() {
    let (found, checked) = every_operator(4, |case, rng| case.check(1e-5, rng));
    println!("{} operators, {} calls", checked.len(), checked.values().sum::<usize>());
    assert!(found.is_empty(), "{} calls:\n{}", found.len(), found.join("\n"));
    assert!(restride_ops::ops().iter().filter(|o| has_rule(**o)).count() > 500);
}

#[test]
fn every_rule_has_a_derivative_too() {
    let (found, checked) = every_operator(2, |case, rng| match case.second(rng)? {
        Some(second) => second.check(1e-4, rng),
        None => Ok(false),
    });
    println!("{} operators, {} calls", checked.len(), checked.values().sum::<usize>());
    assert!(found.is_empty(), "{} calls:\n{}", found.len(), found.join("\n"));
}

/// The tape runs the same rules: its gradients are the graph's, which are held against differences above.
#[test]
fn the_tape_has_the_gradients_of_the_graph() {
    let (found, checked) = every_operator(3, |case, _| {
        if !case.runs() || draws(case) {
            return Ok(false);
        }
        same(&first_order(case)?, &case.gradients()?, |_| 1e-9)?;
        Ok(true)
    });
    println!("{} operators, {} calls", checked.len(), checked.values().sum::<usize>());
    assert!(found.is_empty(), "{} calls:\n{}", found.len(), found.join("\n"));
    assert!(std::env::var("RESTRIDE_OP").is_ok() || checked.len() > 350, "{}", checked.len());
}

#[test]
fn gradients_of_the_tape_have_gradients() {
    let (found, checked) = every_operator(2, |case, rng| {
        if !case.runs() || draws(case) {
            return Ok(false);
        }
        let Some(second) = case.second(rng)? else { return Ok(false) };
        if !second.runs() {
            return Ok(false);
        }
        same(&second_order(case, &second)?, &second.gradients()?, |_| 1e-8)?;
        Ok(true)
    });
    println!("{} operators, {} calls", checked.len(), checked.values().sum::<usize>());
    assert!(found.is_empty(), "{} calls:\n{}", found.len(), found.join("\n"));
}
