//! Writes through indices and masks, repeats among them.

use super::{GeneratedCall, Generator, int, ints, truth, value, values};
use restride_ir::{Arg, DType, Meta, ValueId};

impl Generator {
    pub(super) fn indexed(&mut self) -> GeneratedCall {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        let same = |m: &Meta| m.dtype == meta.dtype;
        match self.rng.below(13) {
            0 | 1 if !sizes.is_empty() => {
                let index = self.index(sizes[0])?;
                let one: Vec<i64> = sizes[1..].to_vec();
                let full: Vec<i64> = std::iter::once(3).chain(one.iter().copied()).collect();
                let src =
                    self.pick_where(|m| same(m) && (m.layout.sizes[..] == one[..] || m.layout.sizes[..] == full[..]))?;
                let op = *self.rng.choose(&["aten.index_put_.default", "aten._index_put_impl_.default"]);
                let args = vec![x, values(&[index]), value(src), truth(self.rng.chance(30))];
                self.t.call(op, args)
            }
            2 | 3 => {
                let mask = self.mask(&sizes)?;
                let number = if meta.dtype == DType::Bool { truth(true) } else { int(7) };
                match self.pick_where(|m| same(m) && m.layout.rank() == 0).filter(|_| self.rng.chance(50)) {
                    Some(n) => self.t.call("aten.masked_fill_.Tensor", vec![x, value(mask), value(n)]),
                    None => self.t.call("aten.masked_fill_.Scalar", vec![x, value(mask), number]),
                }
            }
            4 => {
                let mask = self.mask(&sizes)?;
                let numel = meta.layout.numel();
                let src = self.pick_where(|m| same(m) && m.layout.numel() >= numel)?;
                self.t.call("aten.masked_scatter_.default", vec![x, value(mask), value(src)])
            }
            5 if !sizes.is_empty() => {
                let d = self.dim(sizes.len());
                let index = self.index(sizes[d.rem_euclid(sizes.len() as i64) as usize])?;
                self.t.call("aten.index_fill_.int_Scalar", vec![x, int(d), value(index), int(5)])
            }
            6 if !sizes.is_empty() => {
                let index = self.index(sizes[0])?;
                let full: Vec<i64> = std::iter::once(3).chain(sizes[1..].iter().copied()).collect();
                let src = self.pick_where(|m| same(m) && m.layout.sizes[..] == full[..])?;
                let op = *self.rng.choose(&["aten.index_add_.default", "aten.index_copy_.default"]);
                self.t.call(op, vec![x, int(0), value(index), value(src)])
            }
            7..=9 if !sizes.is_empty() => {
                let d = self.dim(sizes.len());
                let at = d.rem_euclid(sizes.len() as i64) as usize;
                let index = self.index(sizes[at])?;
                // The index for every row: a broadcast of the three.
                let mut shape = vec![1; sizes.len()];
                shape[at] = 3;
                let mut wide = sizes.clone();
                wide[at] = 3;
                let index = self.t.call("aten.view.default", vec![value(index), ints(&shape)])?[0];
                let index = self.t.call("aten.expand.default", vec![value(index), ints(&wide)])?[0];
                let covers = |m: &Meta| {
                    same(m) && m.layout.rank() == wide.len() && m.layout.sizes.iter().zip(&wide).all(|(a, b)| a >= b)
                };
                match (self.rng.below(4), self.pick_where(covers)) {
                    (0, Some(src)) => self.t.call("aten.scatter_.src", vec![x, int(d), value(index), value(src)]),
                    (1, Some(src)) => {
                        self.t.call("aten.scatter_add_.default", vec![x, int(d), value(index), value(src)])
                    }
                    // Products grow too fast, and means are rounded.
                    (2, Some(src)) if !meta.dtype.is_complex() && meta.dtype != DType::Bool => {
                        let how = Arg::Str((*self.rng.choose(&["sum", "amax", "amin"])).into());
                        let own = truth(self.rng.chance(50));
                        let args = vec![x, int(d), value(index), value(src), how, own];
                        self.t.call("aten.scatter_reduce_.two", args)
                    }
                    _ => self.t.call("aten.scatter_.value", vec![x, int(d), value(index), int(4)]),
                }
            }
            10 => {
                let index = self.index(meta.layout.numel())?;
                let src = self.pick_where(|m| same(m) && m.layout.numel() == 3)?;
                let accumulate = truth(self.rng.chance(30));
                self.t.call("aten.put_.default", vec![x, value(index), value(src), accumulate])
            }
            11 if sizes.len() >= 2 => {
                let n = if meta.dtype == DType::Bool { truth(true) } else { int(self.rng.between(1, 4)) };
                self.t.call("aten.fill_diagonal_.default", vec![x, n])
            }
            // A mask as an index.
            12 if !sizes.is_empty() => {
                let mask = self.mask(&sizes)?;
                if self.sizes_of(mask) != sizes {
                    return None;
                }
                let src = self.pick_where(|m| same(m) && m.layout.rank() == 0)?;
                self.t.call("aten.index_put_.default", vec![x, values(&[mask]), value(src)])
            }
            _ => None,
        }
    }

    /// Indices below `n`, repeats among them.
    pub(super) fn index(&mut self, n: i64) -> Option<ValueId> {
        if n <= 0 {
            return None;
        }
        let index = self.t.values().into_iter().find(|v| {
            let m = self.t.meta(*v);
            self.t.graph.inputs.contains(v) && m.dtype == DType::I64 && m.layout.sizes[..] == [3]
        });
        let index = match index {
            Some(v) => v,
            None => self.t.call("aten.arange.default", vec![int(3), Arg::DType(DType::I64)])?[0],
        };
        Some(self.t.call("aten.remainder.Scalar", vec![value(index), int(n)])?[0])
    }

    /// Truth values that can be broadcast into these sizes.
    fn mask(&mut self, sizes: &[i64]) -> Option<ValueId> {
        let fits = |m: &Meta| {
            let s = &m.layout.sizes;
            m.dtype == DType::Bool
                && s.len() <= sizes.len()
                && s.iter().rev().zip(sizes.iter().rev()).all(|(a, b)| a == b || *a == 1)
        };
        if let Some(mask) = self.pick_where(fits).filter(|_| self.rng.chance(60)) {
            return Some(mask);
        }
        let y = self.broadcast(sizes)?;
        Some(self.t.call("aten.gt.Scalar", vec![value(y), int(0)])?[0])
    }
}
