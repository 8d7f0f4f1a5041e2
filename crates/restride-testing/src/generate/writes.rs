//! In-place operators on one tensor, and operators with undeclared writes.

use super::{GeneratedCall, Generator, int, ints, truth, value};
use crate::tracer::Tracer;
use restride_ir::{Arg, DType, Expr};

impl Generator {
    pub(super) fn write(&mut self) -> GeneratedCall {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        match self.rng.below(21) {
            0..=4 => {
                let y = self.operand(&sizes);
                let op =
                    *self.rng.choose(&["aten.add_.Tensor", "aten.mul_.Tensor", "aten.sub_.Tensor", "aten.add_.Tensor"]);
                match y {
                    Arg::Value(_) => self.t.call(op, vec![x, y]),
                    _ => self.t.call(&op.replace(".Tensor", ".Scalar"), vec![x, y]),
                }
            }
            5..=9 => {
                let y = self.broadcast(&sizes)?;
                // A copy onto itself returns before any check.
                if self.t.same(v, y) {
                    return None;
                }
                self.t.call("aten.copy_.default", vec![x, value(y)])
            }
            10 => {
                let n =
                    if meta.dtype == DType::Bool { truth(self.rng.chance(50)) } else { int(self.rng.between(-3, 3)) };
                self.t.call("aten.fill_.Scalar", vec![x, n])
            }
            11 => {
                let ops = ["aten.zero_.default", "aten.neg_.default", "aten.relu_.default", "aten.abs_.default"];
                let op = *self.rng.choose(&ops);
                if meta.dtype == DType::Bool && op != "aten.zero_.default"
                    || meta.dtype.is_complex() && op == "aten.abs_.default"
                {
                    return None;
                }
                self.t.call(op, vec![x])
            }
            12 => {
                let y = self.pick_where(|m| m.layout.rank() == 0)?;
                self.t.call("aten.fill_.Tensor", vec![x, value(y)])
            }
            13 => {
                let (a, b) = (self.broadcast(&sizes)?, self.broadcast(&sizes)?);
                self.t.call("aten.addcmul_.default", vec![x, value(a), value(b)])
            }
            // Keeps a loop's numbers small.
            14 | 15 if !meta.dtype.is_complex() && meta.dtype != DType::Bool => {
                let y = self.broadcast(&sizes)?;
                let sum = self.t.call("aten.add.Tensor", vec![x.clone(), value(y)])?;
                let small = self.t.call("aten.remainder.Scalar", vec![value(sum[0]), int(5)])?;
                self.t.call("aten.copy_.default", vec![x, value(small[0])])
            }
            16 => {
                let n = self.rng.between(2, 7);
                self.t.call("aten.remainder_.Scalar", vec![x, int(n)])
            }
            17 => {
                let (low, high) = (self.rng.between(-4, 0), self.rng.between(1, 5));
                self.t.call("aten.clamp_.default", vec![x, int(low), int(high)])
            }
            18 => {
                let y = self.broadcast(&sizes)?;
                let op = *self.rng.choose(&["aten.eq_.Tensor", "aten.lt_.Tensor", "aten.ge_.Scalar"]);
                if op.ends_with("Scalar") {
                    self.t.call(op, vec![x, int(1)])
                } else {
                    self.t.call(op, vec![x, value(y)])
                }
            }
            _ => self.statistics(),
        }
    }

    /// Normalisation in training mode updates running statistics. Only the statistics are used: the results round, while
    /// mean and variance of two small numbers do not.
    fn statistics(&mut self) -> GeneratedCall {
        let v = self.pick_where(|m| m.dtype == DType::F32 && m.layout.numel() >= 2 && m.layout.numel() % 2 == 0)?;
        if self.t.bound(v).0 > 64.0 {
            return None;
        }
        let channels = self.t.meta(v).layout.numel() / 2;
        let x = self.t.call("aten.reshape.default", vec![value(v), ints(&[2, channels])])?[0];
        let mut running: Vec<restride_ir::ValueId> = Vec::new();
        for _ in 0..2 {
            let fits = |m: &restride_ir::Meta| m.dtype == DType::F32 && m.layout.sizes[..] == [channels];
            // One tensor for both statistics is written twice in each channel, and the normalised input is read during the
            // writes.
            let apart = |t: &Tracer, v| running.iter().chain([&x]).all(|r| t.storage(*r) != t.storage(v));
            let found = self.pick_where(fits).filter(|v| self.t.bound(*v).0 <= 4096.0 && apart(&self.t, *v));
            let stat = match found {
                Some(v) => v,
                None => self.t.call("aten.new_ones.default", vec![value(x), ints(&[channels])])?[0],
            };
            running.push(stat);
        }
        let half = Arg::Scalar(Expr::float(0.5));
        let eps = Arg::Scalar(Expr::float(1.0));
        let [mean, var] = [value(running[0]), value(running[1])];
        let made = match self.rng.below(3) {
            0 => {
                let args = vec![value(x), Arg::None, Arg::None, mean, var, truth(true), half, eps, truth(false)];
                self.t.call("aten.batch_norm.default", args)?
            }
            1 => {
                let args = vec![value(x), Arg::None, Arg::None, mean, var, truth(true), half, eps];
                self.t.call("aten._native_batch_norm_legit.default", args)?
            }
            _ => {
                let deep = self.t.call("aten.reshape.default", vec![value(x), ints(&[1, channels, 2])])?[0];
                let args = vec![value(deep), Arg::None, Arg::None, mean, var, truth(true), half, eps, truth(false)];
                self.t.call("aten.instance_norm.default", args)?
            }
        };
        made.iter().for_each(|v| self.t.hide(*v));
        Some(made)
    }
}
