//! Operators that only read.

use super::{GeneratedCall, Generator, int, value, values};
use restride_ir::{Arg, DType};

impl Generator {
    pub(super) fn pure(&mut self) -> GeneratedCall {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        match self.rng.below(14) {
            0..=2 => {
                let op = *self.rng.choose(&["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]);
                match self.operand(&sizes) {
                    y @ Arg::Value(_) => self.t.call(op, vec![x, y]),
                    y => self.t.call(&op.replace(".Tensor", ".Scalar"), vec![x, y]),
                }
            }
            3 if meta.dtype != DType::Bool => {
                let op = *self.rng.choose(&["aten.neg.default", "aten.relu.default", "aten.abs.default"]);
                self.t.call(op, vec![x])
            }
            4 => self.t.call("aten.clone.default", vec![x]),
            5 => {
                let to = self.dtype();
                self.t.call("aten.to.dtype", vec![x, Arg::DType(to)])
            }
            6 | 7 if !sizes.is_empty() => {
                let y = self.pick_where(|m| m.dtype == meta.dtype && m.layout.sizes.get(1..) == sizes.get(1..))?;
                self.t.call("aten.cat.default", vec![values(&[v, y]), int(0)])
            }
            8 => {
                let y = self.pick_where(|m| m.dtype == meta.dtype && m.layout.sizes[..] == sizes[..])?;
                let d = self.dim(sizes.len() + 1);
                self.t.call("aten.stack.default", vec![values(&[v, y]), int(d)])
            }
            9 => {
                let op = *self.rng.choose(&["aten.lt.Tensor", "aten.eq.Tensor"]);
                match self.operand(&sizes) {
                    y @ Arg::Value(_) => self.t.call(op, vec![x, y]),
                    y => self.t.call(&op.replace(".Tensor", ".Scalar"), vec![x, y]),
                }
            }
            10 => {
                let mask = self.pick_where(|m| m.dtype == DType::Bool)?;
                let y = self.broadcast(&sizes)?;
                self.t.call("aten.where.self", vec![value(mask), x, value(y)])
            }
            11 if !sizes.is_empty() => {
                let index = self.index(sizes[0])?;
                self.t.call("aten.index_select.default", vec![x, int(0), value(index)])
            }
            12 if !sizes.is_empty() => {
                let d = self.dim(sizes.len());
                self.t.call("aten.cumsum.default", vec![x, int(d)])
            }
            13 if meta.dtype != DType::BF16 && meta.dtype != DType::F16 => self.t.call("aten.sum.default", vec![x]),
            _ => None,
        }
    }
}
