//! Views.

use super::{GeneratedCall, Generator, int, ints, truth, value};
use restride_ir::{Arg, DType, ValueId};

impl Generator {
    pub(super) fn view(&mut self) -> GeneratedCall {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let rank = sizes.len();
        let x = value(v);
        match self.rng.below(29) {
            0 | 1 => {
                let sizes = self.factors(meta.layout.numel());
                let op = *self.rng.choose(&["aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"]);
                self.t.call(op, vec![x, ints(&sizes)])
            }
            2..=4 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize];
                let i = if n > 0 { self.rng.between(-n, n - 1) } else { 0 };
                self.t.call("aten.select.int", vec![x, int(d), int(i)])
            }
            5..=7 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize];
                let (a, b) = (self.rng.between(-1, n), self.rng.between(0, n + 1));
                let step = self.rng.between(1, 2);
                self.t.call("aten.slice.Tensor", vec![x, int(d), int(a), int(b), int(step)])
            }
            8 => {
                let (a, b) = (self.dim(rank), self.dim(rank));
                let op = *self.rng.choose(&["aten.transpose.int", "aten.swapdims.default"]);
                self.t.call(op, vec![x, int(a), int(b)])
            }
            9 => {
                let mut order: Vec<i64> = (0..rank as i64).collect();
                for i in (1..rank).rev() {
                    order.swap(i, self.rng.below(i + 1));
                }
                self.t.call("aten.permute.default", vec![x, ints(&order)])
            }
            10 => {
                let d = self.dim(rank + 1);
                self.t.call("aten.unsqueeze.default", vec![x, int(d)])
            }
            11 => {
                let d = self.dim(rank);
                self.t.call("aten.squeeze.dim", vec![x, int(d)])
            }
            12 => {
                let mut wide: Vec<i64> =
                    sizes.iter().map(|n| if *n == 1 { self.rng.between(1, 3) } else { -1 }).collect();
                if self.rng.chance(30) {
                    wide.insert(0, 2);
                }
                self.t.call("aten.expand.default", vec![x, ints(&wide)])
            }
            13 | 14 => {
                let (size, stride, offset) = self.restride(v)?;
                self.t.call("aten.as_strided.default", vec![x, ints(&size), ints(&stride), int(offset)])
            }
            15 if rank > 1 => {
                let (a, b) = (self.dim(rank), self.dim(rank));
                let offset = self.rng.between(-1, 1);
                self.t.call("aten.diagonal.default", vec![x, int(offset), int(a), int(b)])
            }
            16 | 17 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize].max(1);
                let (size, step) = (self.rng.between(1, n), self.rng.between(1, 2));
                self.t.call("aten.unfold.default", vec![x, int(d), int(size), int(step)])
            }
            18..=20 if rank > 0 => self.parts(v),
            21 => {
                let to = *self.rng.choose(&[DType::I32, DType::F32, DType::U8, DType::I64, DType::F16]);
                self.t.call("aten.view.dtype", vec![x, Arg::DType(to)])
            }
            22..=24 => {
                let complex = [
                    "aten.view_as_real.default",
                    "aten.real.default",
                    "aten.imag.default",
                    "aten._conj.default",
                    "aten.conj.default",
                    "aten.resolve_conj.default",
                    "aten.resolve_neg.default",
                    "aten._neg_view.default",
                    "aten.view_as_complex.default",
                ];
                let v = self.pick_where(|m| m.dtype.is_complex()).filter(|_| self.rng.chance(80)).unwrap_or(v);
                let op = *self.rng.choose(&complex);
                // Eager converts before it negates, which shows where there are no negative numbers.
                if op == "aten._neg_view.default" && matches!(self.t.meta(v).dtype, DType::U8 | DType::Bool) {
                    return None;
                }
                // `imag` of a real tensor and `real` of one are no views, or errors.
                self.t.call(op, vec![value(v)])
            }
            25 => {
                let op = *self.rng.choose(&["aten.detach.default", "aten.alias.default", "aten.contiguous.default"]);
                self.t.call(op, vec![x])
            }
            // A change of the tensor object shows outside: not in a body, which sees it again.
            26..=28 if self.depth == 0 => self.metadata(v),
            _ => None,
        }
    }

    /// Several views at once.
    fn parts(&mut self, v: ValueId) -> GeneratedCall {
        let sizes = self.sizes_of(v);
        let rank = sizes.len();
        let d = self.dim(rank);
        let n = sizes[d.rem_euclid(rank as i64) as usize];
        let x = value(v);
        match self.rng.below(6) {
            0 => {
                let ops = [
                    "aten.split.Tensor",
                    "aten.chunk.default",
                    "aten.unsafe_split.Tensor",
                    "aten.unsafe_chunk.default",
                ];
                let op = *self.rng.choose(&ops);
                let n = self.rng.between(1, 2);
                self.t.call(op, vec![x, int(n), int(d)])
            }
            1 => self.t.call("aten.unbind.int", vec![x, int(d)]),
            2 => {
                let first = self.rng.between(0, n);
                let op = *self.rng.choose(&["aten.split_with_sizes.default", "aten.unsafe_split_with_sizes.default"]);
                self.t.call(op, vec![x, ints(&[first, n - first]), int(d)])
            }
            3 => {
                let n = self.rng.between(1, 3);
                self.t.call("aten.tensor_split.sections", vec![x, int(n), int(d)])
            }
            4 => {
                let (a, b) = (self.rng.between(0, n), self.rng.between(-1, n + 1));
                self.t.call("aten.tensor_split.indices", vec![x, ints(&[a, b]), int(d)])
            }
            _ => self.t.call("aten.hsplit.array", vec![x, ints(&[1])]),
        }
    }

    /// Sizes, strides and offset within a tensor's range, sometimes with cells that several elements share.
    fn restride(&mut self, v: ValueId) -> Option<([i64; 2], [i64; 2], i64)> {
        let cells = self.t.meta(v).layout.cell_range();
        if cells.is_empty() {
            return None;
        }
        let offset = self.rng.between(cells.start, cells.end - 1);
        let room = cells.end - offset;
        let strides = (self.rng.between(1, 3), self.rng.between(0, 2));
        let n = self.rng.between(1, (1 + (room - 1) / strides.1.max(1)).min(4));
        let rows = 1 + (room - 1 - (n - 1) * strides.1).max(0) / strides.0;
        let rows = self.rng.between(1, rows.min(3));
        Some(([rows, n], [strides.0, strides.1], offset))
    }

    /// A change of the tensor object itself.
    fn metadata(&mut self, v: ValueId) -> GeneratedCall {
        let meta = self.t.meta(v).clone();
        let rank = meta.layout.rank();
        let x = value(v);
        match self.rng.below(14) {
            0 if rank <= 2 => self.t.call("aten.t_.default", vec![x]),
            1 => {
                let d = self.dim(rank + 1);
                self.t.call("aten.unsqueeze_.default", vec![x, int(d)])
            }
            2 | 3 => {
                let (a, b) = (self.dim(rank), self.dim(rank));
                let op =
                    *self.rng.choose(&["aten.transpose_.default", "aten.swapdims_.default", "aten.swapaxes_.default"]);
                self.t.call(op, vec![x, int(a), int(b)])
            }
            4 => self.t.call("aten.squeeze_.default", vec![x]),
            5 => {
                let d = self.dim(rank);
                self.t.call("aten.squeeze_.dim", vec![x, int(d)])
            }
            6 | 7 => {
                let (size, stride, offset) = self.restride(v)?;
                self.t.call("aten.as_strided_.default", vec![x, ints(&size), ints(&stride), int(offset)])
            }
            8 | 9 => {
                // A grown tensor has undefined memory, so it is filled at once.
                let grown = if self.rng.chance(70) {
                    let sizes: Vec<i64> = (0..1 + self.rng.below(2)).map(|_| self.rng.between(1, 4)).collect();
                    self.t.call("aten.resize_.default", vec![x, ints(&sizes)])?
                } else {
                    let like = value(self.pick());
                    self.t.call("aten.resize_as_.default", vec![x, like])?
                };
                let fill = if meta.dtype == DType::Bool { truth(true) } else { int(2) };
                self.t.call("aten.fill_.Scalar", vec![value(grown[0]), fill]).or(Some(grown))
            }
            10 => {
                let y = self.pick_where(|m| m.dtype == meta.dtype)?;
                self.t.call("aten.set_.source_Tensor", vec![x, value(y)])
            }
            11 | 12 => {
                let y = self.pick_where(|m| m.dtype == meta.dtype)?;
                let (size, stride, offset) = self.restride(y)?;
                // Offsets count from the other tensor's start.
                let from = offset - self.t.meta(y).layout.offset;
                let args = vec![x, value(y), int(from), ints(&size), ints(&stride)];
                self.t.call("aten.set_.source_Tensor_storage_offset", args)
            }
            _ => self.t.call("aten.detach_.default", vec![x]),
        }
    }

    /// Sizes of the same number of elements.
    pub(super) fn factors(&mut self, numel: i64) -> Vec<i64> {
        let mut left = numel;
        let mut out = Vec::new();
        while left > 1 && out.len() < 3 {
            let divisors: Vec<i64> = (2..=left).filter(|d| left % d == 0).collect();
            let d = *self.rng.choose(&divisors);
            out.push(d);
            left /= d;
        }
        if left != 1 || numel == 0 {
            out.push(left);
        }
        if self.rng.chance(15) {
            let at = self.rng.below(out.len() + 1);
            out.insert(at, 1);
        }
        out
    }
}
