//! Dropout in its forms; outside training, the result is the input itself.

use crate::random::{draws, numbers, one, random};
use crate::support::strides::dense_like;
use crate::support::{Metas, Result, ensure};
use crate::views::{Rule, rule, view};
use restride_ir::{Args, Call, Meta, OpDef, OpError, ViewArgs, ViewOutcome};
use restride_kernels::random::{self as k, Distribution, Dropout};
use restride_tensor::{DType, Dim, Layout};
use smallvec::smallvec;

/// The forms of dropout.
#[derive(Clone, Copy, PartialEq)]
enum Drops {
    /// Drops each element or, if `whole`, each plane of the first two dimensions.
    Zero { whole: bool },
    /// Replaces dropped elements so that `selu` keeps mean and variance.
    Alpha { whole: bool },
}

impl Drops {
    fn whole(self) -> bool {
        matches!(self, Drops::Zero { whole: true } | Drops::Alpha { whole: true })
    }
    fn how(self, p: f64) -> Dropout {
        match self {
            // At p = 1 every element is dropped, and the scale only has to be finite.
            Drops::Zero { .. } => Dropout { p, scale: if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) }, shift: [0.0; 2] },
            Drops::Alpha { .. } if p == 1.0 => Dropout { p, scale: 0.0, shift: [0.0; 2] },
            Drops::Alpha { .. } => {
                const ALPHA: f64 = 1.758_099_340_847_376_6;
                let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
                Dropout { p, scale: a, shift: [ALPHA * a * p, ALPHA * a * (p - 1.0)] }
            }
        }
    }
}

fn probability(p: f64) -> Result<()> {
    ensure!((0.0..=1.0).contains(&p), "dropout probability has to be between 0 and 1, but got {p}");
    Ok(())
}

/// View rule for dropout that drops nothing: the input itself.
struct Dropped;
impl Rule for Dropped {
    fn run<D: Dim>(a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
        let t = a.tensor(0)?;
        // `known` rounds away from zero: 0 stays 0, a value in (0, 1] becomes 1, and others are refused.
        probability(a.known(1)? as f64)?;
        let nothing = a.known(1)? == 0 || a.known(2)? == 0 || t.layout.sizes.iter().any(|n| n.is(0));
        Ok(if nothing { view(t.dtype, t.layout.clone()) } else { ViewOutcome::Copy })
    }
}
fn infer_dropout(a: &Args<'_, Meta>, what: Drops) -> Metas {
    let t = a.tensor(0)?;
    let p = a.float(1)?;
    probability(p)?;
    numbers(t.dtype)?;
    // At p = 1 every element becomes zero, whatever its plane.
    let planes = what.whole() && p != 1.0;
    ensure!(!planes || t.layout.rank() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    let noise =
        Layout::contiguous(&t.sizes().iter().enumerate().map(|(d, &n)| if d < 2 { n } else { 1 }).collect::<Vec<_>>());
    let operands = if planes { vec![&t.layout, &noise] } else { vec![&t.layout] };
    one(Meta::new(t.dtype, crate::support::strides::pointwise(&operands)?))
}
fn run_dropout(c: &Call<'_>, what: Drops) -> Result<()> {
    let p = c.args.float(1)?;
    let x = c.args.tensor(0)?;
    // Shape rules see training calls only; a kernel may also run for a call that drops nothing.
    let p = if c.args.bool(2)? { p } else { 0.0 };
    let inner = if what.whole() { x.sizes().iter().skip(2).product::<i64>() as usize } else { 1 };
    k::dropout(&draws(c.ctx), x, what.how(p), inner, &c.outs[0], None, c.ctx.threads).map_err(OpError::new)
}

fn infer_native(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    let p = a.float(1)?;
    if a.opt_bool(2)?.unwrap_or(true) {
        probability(p)?;
        numbers(t.dtype)?;
    }
    let layout = dense_like(&t.layout);
    Ok(smallvec![Meta::new(t.dtype, layout.clone()), Meta::new(DType::Bool, layout)])
}
fn run_native(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    if !c.args.opt_bool(2)?.unwrap_or(true) {
        restride_kernels::movement::copy::same_order(x, &c.outs[0]).map_err(OpError::new)?;
        k::draw(&draws(c.ctx), Distribution::Bernoulli(1.0), &c.outs[1], c.ctx.threads);
        return Ok(());
    }
    let how = Drops::Zero { whole: false }.how(c.args.float(1)?);
    k::dropout(&draws(c.ctx), x, how, 1, &c.outs[0], Some(&c.outs[1]), c.ctx.threads).map_err(OpError::new)
}

fn dropout_scratch(_: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(k::dropout_room(outs[0].dtype, outs[0].layout.numel()))
}

macro_rules! dropout {
    ($schema:literal, $what:expr) => {
        dropping(random!($schema, |a| infer_dropout(a, $what), |c| run_dropout(c, $what), dropout_scratch, dropouts))
    };
}

/// An operator that returns its operand where it drops nothing.
const fn dropping(def: OpDef) -> OpDef {
    OpDef { view: Some(rule::<Dropped>()), itself: true, ..def }
}

pub(crate) static OPS: &[OpDef] = table![
    dropout!("aten::dropout(Tensor(a) input, float p, bool train) -> Tensor(a)", Drops::Zero { whole: false }),
    dropout!("aten::feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)", Drops::Zero { whole: true }),
    dropout!("aten::alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)", Drops::Alpha { whole: false }),
    dropout!(
        "aten::feature_alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)",
        Drops::Alpha { whole: true }
    ),
    random!("native_dropout", infer_native, run_native, dropout_scratch, natives),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::random::samples::forms;
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn dropouts() -> Vec<Sample> {
        let mut out = Vec::new();
        let mut tensors = forms();
        tensors.push(nhwc(F, &[2, 3, 4, 5], 1));
        tensors.push(tensor(DType::C64, &[2, 3], 1));
        for t in tensors {
            out.push(sample![&t, 0.5, true]);
            out.push(sample![&t, 0.0, true]);
            out.push(sample![&t, 0.3, false]);
            out.push(sample![&t, 1.0, true]);
        }
        out.push(sample![tensor(F, &[2, 3], 1), 1.5, false]);
        out.push(sample![tensor(F, &[2, 3], 1), -0.5, true]);
        out
    }

    pub(crate) fn natives() -> Vec<Sample> {
        let mut out: Vec<Sample> =
            dropouts().into_iter().filter(|s| !matches!(&s.args[0], Arg::Value(t) if t.numel() == 0)).collect();
        // Outside training PyTorch ignores the probability.
        out.retain(|s| !matches!(s.args[1], Arg::Scalar(Scalar::Float(p)) if p > 1.0));
        out.push(sample![tensor(F, &[2, 3], 1), 0.5, ()]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup;
    use restride_ir::{Arg, Scalar};

    #[test]
    fn dropout_is_an_alias_where_nothing_is_dropped() {
        let outcome = |p: f64, train: bool| {
            let number = |s: Scalar| Arg::Scalar(s.as_view_number());
            let x = Meta::contiguous(DType::F32, &[2, 3]);
            let args = [Arg::Value(x), number(Scalar::Float(p)), number(Scalar::Bool(train))];
            (lookup("aten.dropout.default").unwrap().def().view.unwrap().known)(&Args(&args))
        };
        assert!(matches!(outcome(0.5, false), Ok(ViewOutcome::Views(_))));
        assert!(matches!(outcome(0.0, true), Ok(ViewOutcome::Views(_))));
        assert!(matches!(outcome(0.1, true), Ok(ViewOutcome::Copy)));
        assert!(matches!(outcome(1.0, true), Ok(ViewOutcome::Copy)));
        assert!(outcome(1.5, false).is_err() && outcome(-0.1, true).is_err());
    }
}
