//! Operators on lists, with repeated and aliasing members, and operators with `out=`.

use super::{GeneratedCall, Generator, int, ints, truth, value, values};
use restride_ir::{Arg, DType, Meta, ValueId};

impl Generator {
    pub(super) fn list(&mut self) -> GeneratedCall {
        if self.floating || self.rng.chance(50) { self.foreach() } else { self.out() }
    }

    /// One to three tensors of a type, sometimes repeated.
    fn members(&mut self, fits: impl Fn(&Meta) -> bool) -> Option<Vec<ValueId>> {
        let mut out = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let v = match out.last() {
                Some(v) if self.rng.chance(20) => *v,
                _ => self.pick_where(&fits)?,
            };
            out.push(v);
        }
        Some(out)
    }

    fn foreach(&mut self) -> GeneratedCall {
        let v = self.pick();
        let dtype = self.t.meta(v).dtype;
        if dtype == DType::Bool {
            return None;
        }
        match self.rng.below(5) {
            0 | 1 => {
                let list = self.members(|m| m.dtype == dtype)?;
                let op = *self.rng.choose(&["aten._foreach_add_.Scalar", "aten._foreach_mul_.Scalar"]);
                self.t.call(op, vec![values(&list), int(2)])
            }
            2 => {
                let list = self.members(|m| m.dtype == dtype)?;
                let ops = ["aten._foreach_zero_.default", "aten._foreach_neg_.default", "aten._foreach_abs_.default"];
                let op = *self.rng.choose(&ops[..if dtype.is_complex() { 2 } else { 3 }]);
                self.t.call(op, vec![values(&list)])
            }
            // Two lists with common members.
            _ => {
                let list = self.members(|m| m.dtype == dtype)?;
                let mut other = Vec::new();
                for v in &list {
                    let sizes = self.sizes_of(*v);
                    let from = self.pick_where(|m| m.dtype == dtype && m.layout.sizes[..] == sizes[..])?;
                    other.push(from);
                }
                let (a, b) = (values(&list), values(&other));
                match self.rng.below(3) {
                    0 => self.t.call("aten._foreach_add_.List", vec![a, b, int(1)]),
                    1 => self.t.call("aten._foreach_mul_.List", vec![a, b]),
                    // A copy onto itself returns before any check.
                    _ if list.iter().zip(&other).any(|(a, b)| self.t.same(*a, *b)) => None,
                    _ => self.t.call("aten._foreach_copy_.default", vec![a, b]),
                }
            }
        }
    }

    fn out(&mut self) -> GeneratedCall {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        match self.rng.below(9) {
            0 | 1 => {
                let (a, b) = (self.broadcast(&sizes)?, self.broadcast(&sizes)?);
                let op = *self.rng.choose(&["aten.add.out", "aten.sub.out"]);
                self.t.call(op, vec![value(a), value(b), int(1), x])
            }
            2 => {
                let (a, b) = (self.broadcast(&sizes)?, self.broadcast(&sizes)?);
                self.t.call("aten.mul.out", vec![value(a), value(b), x])
            }
            // An output of other sizes is resized. Not in a body, which sees it again.
            3 | 4 if self.depth == 0 => {
                let a = self.pick_where(|m| m.dtype == meta.dtype)?;
                let sizes = self.sizes_of(a);
                let b = self.broadcast(&sizes)?;
                self.t.call("aten.add.out", vec![value(a), value(b), int(1), x])
            }
            5 => {
                let y = self.pick_where(|m| m.dtype == meta.dtype && m.layout.rank() == sizes.len())?;
                let out = self.pick_where(|m| m.dtype == meta.dtype && m.layout.rank() == sizes.len())?;
                self.t.call("aten.cat.out", vec![values(&[v, y]), int(0), value(out)])
            }
            6 | 7 if !sizes.is_empty() => {
                // Two outputs at once, of any kind.
                let d = self.dim(sizes.len());
                let mut less = sizes.clone();
                less.remove(d.rem_euclid(sizes.len() as i64) as usize);
                let fits = |m: &Meta| m.layout.sizes[..] == less[..];
                let low = self.pick_where(|m| m.dtype == meta.dtype && fits(m))?;
                if self.rng.chance(50) {
                    let high = self.pick_where(|m| m.dtype == meta.dtype && fits(m))?;
                    if self.t.storage(low) == self.t.storage(high) {
                        return None;
                    }
                    self.t.call("aten.aminmax.out", vec![x, int(d), truth(false), value(low), value(high)])
                } else {
                    let at = match self.pick_where(|m| m.dtype == DType::I64 && fits(m)) {
                        Some(v) => v,
                        None => self
                            .t
                            .call("aten.new_zeros.default", vec![value(low), ints(&less), Arg::DType(DType::I64)])?[0],
                    };
                    let op = *self.rng.choose(&["aten.max.dim_max", "aten.min.dim_min"]);
                    self.t.call(op, vec![x, int(d), truth(false), value(low), value(at)])
                }
            }
            8 if meta.dtype != DType::Bool => {
                let y = self.pick_where(|m| m.layout.sizes[..] == sizes[..] && m.dtype == meta.dtype)?;
                let op = *self.rng.choose(&["aten.neg.out", "aten.abs.out"]);
                self.t.call(op, vec![value(y), x])
            }
            _ => None,
        }
    }
}
