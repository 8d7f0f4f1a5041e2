//! Programs with in-place operators on views (`scripts/make/autograd_scenarios.py`) on the eager tape: their gradients against
//! differences of what the program computes, or PyTorch's refusals.

use restride::{Inputs, OpenOptions};
use restride_exec::eager::{Saved, saved_tensors};
use restride_ir::text;
use restride_tensor::RawTensor;
use restride_testing::finite_differences::against;
use restride_testing::rng::Rng;
use restride_testing::scenarios::{given, loss, programs, tensors};
use restride_testing::tape_run::taped;
use std::path::Path;

const VERSION: &str = "one of the variables needed for gradient computation has been modified by an inplace operation";
const MANY: &str = "output of a function that returns multiple views";
const NO_GRAD: &str = "A view was created in no_grad mode and is being modified inplace with grad mode enabled";
const LEAF: &str = "a view of a leaf Variable that requires grad is being used in an in-place operation";

/// What eager PyTorch refuses of the scenarios, and with what words.
const PYTORCH: &[(&str, &str)] = &[
    ("split_inplace", MANY),
    ("unbind_chain", MANY),
    ("nograd_view", NO_GRAD),
    ("view_leaf", LEAF),
    ("detach_mut_saved", VERSION),
    ("view_mut_saved_base", VERSION),
    ("exp_then_mul", VERSION),
    ("mul_scalar_inplace_ok", VERSION),
    ("sigmoid_inplace_chain", VERSION),
    ("foreach_mut_saved_nograd", VERSION),
    ("loop_scan_mul", VERSION),
];

/// Programs with writes under `no_grad`, which change values and not the gradient: `scripts/check/random_grad_check.py` holds such
/// gradients to PyTorch's.
const NOT_RECORDED: &[&str] = &["grad_of_view_grad_enabled", "nograd_view_nograd_mut_then_use"];

/// What is refused where values are guarded by their regions: a value's own cells were overwritten.
const REGIONS: &[(&str, &str)] = &[
    ("view_leaf", LEAF),
    ("detach_mut_saved", VERSION),
    ("exp_then_mul", VERSION),
    ("mul_scalar_inplace_ok", VERSION),
    ("sigmoid_inplace_chain", VERSION),
    ("foreach_mut_saved_nograd", VERSION),
];

/// A leaf is not written, whatever is kept.
const CLONING: &[(&str, &str)] = &[("view_leaf", LEAF)];

fn check(path: &Path, how: Saved) -> Result<(), String> {
    let program = restride::open(path, &OpenOptions::default()).map_err(|e| e.to_string())?;
    let inputs = Inputs::from_samples(&program).ok_or("no inputs")?.map_err(|e| e.to_string())?;
    let tensors = tensors(&inputs);
    let _how = saved_tensors(how);
    let run = taped(&program, &given(&tensors), true)?;
    let one = RawTensor::from_slice(&[1.0f64], &[]);
    let gradients = run.gradients(&[(0, one)])?;
    against(|at| loss(&program, at), &tensors, &gradients, 1e-6, &mut Rng::new(1))
}

fn scenarios(how: Saved, refused: &[(&str, &str)]) {
    let programs = programs();
    assert!(programs.len() > 40, "{}", programs.len());
    let mut found = Vec::new();
    for path in &programs {
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let expected = refused.iter().find(|(n, _)| *n == name).map(|(_, words)| words);
        match (check(path, how), expected) {
            (Ok(()), None) => {}
            (Err(why), None) if NOT_RECORDED.contains(&&*name) && why.starts_with("the rule says") => {}
            (Err(why), Some(words)) if why.contains(words) => {}
            (Ok(()), Some(_)) => found.push(format!("{name}: is not refused")),
            (Err(why), _) => found.push(format!("{name}: {why}")),
        }
    }
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), programs.len(), found.join("\n"));
}

#[test]
fn scenarios_guarded_by_regions() {
    scenarios(Saved::Regions, REGIONS);
}

#[test]
fn scenarios_with_clones_on_write() {
    scenarios(Saved::CloneOnWrite, CLONING);
}

#[test]
fn scenarios_as_strict_as_pytorch() {
    scenarios(Saved::Strict, PYTORCH);
}

/// Gradients of a program of two inputs on the tape, and differences.
fn control(text: &str) {
    let program = text::parse(text, &restride_ops::lookup).unwrap();
    let tensors = [[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]].map(|x: [f64; 3]| RawTensor::from_slice(&x, &[3]));
    for how in [Saved::Regions, Saved::Strict] {
        let _how = saved_tensors(how);
        let run = taped(&program, &given(&tensors), true).unwrap();
        let gradients = run.gradients(&[(0, RawTensor::from_slice(&[1.0f64], &[]))]).unwrap();
        against(|at| loss(&program, at), &tensors, &gradients, 1e-6, &mut Rng::new(1)).unwrap();
    }
}

#[test]
fn control_flow_is_run_as_it_goes() {
    control(
        "graph(%x: f64[3], %y: f64[3]) {
            %s: f64[] = aten.sum.default(%x)
            %p: bool[] = aten.gt.Scalar(%s, 0)
            %c: f64[3] = higher_order.cond(%p, @big, @small, [%x, %y])
            %carry: f64[], %ys: f64[3] = higher_order.scan(@step, [%s], [%c], [%y])
            %m: f64[3] = higher_order.map_impl(@each, [%ys], [%carry])
            %l: f64[] = aten.sum.default(%m)
            return %l
        }
        graph @big(%a: f64[3], %b: f64[3]) {
            %r: f64[3] = aten.mul.Tensor(%a, %b)
            return %r
        }
        graph @small(%a: f64[3], %b: f64[3]) {
            %r: f64[3] = aten.sin.default(%a)
            return %r
        }
        graph @step(%a: f64[], %b: f64[], %w: f64[3]) {
            %t: f64[] = aten.sum.default(%w)
            %u: f64[] = aten.mul.Tensor(%a, %b)
            %n: f64[] = aten.add.Tensor(%u, %t)
            %v: f64[] = aten.sin.default(%n)
            return %n, %v
        }
        graph @each(%a: f64[], %b: f64[]) {
            %r: f64[] = aten.mul.Tensor(%a, %b)
            return %r
        }",
    );
}
