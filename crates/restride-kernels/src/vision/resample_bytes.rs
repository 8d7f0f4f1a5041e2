//! Scaling of `uint8` images: weights of 16 bits in fixed point, rounded to bytes after each dimension, as PyTorch's CPU
//! kernels compute it.

use crate::support::pack::{Stored, Target, pack, packed_room};
use crate::support::par;
use crate::support::scratch::{Temp, room};
use crate::vision::resample::{Scaling, Taps};
use restride_tensor::{View, ViewMut};

/// Taps of a dimension whose weights are multiples of `2^-shift`.
struct FixedTaps {
    /// First tap of each result index, and the number of all taps.
    start: Temp<usize>,
    /// Operand index and weight.
    taps: Temp<(usize, i64)>,
    shift: u32,
}

impl FixedTaps {
    /// The weights of `f64`, rounded with as many binary digits as leave the largest one below `2^15`.
    fn new(s: &Scaling) -> FixedTaps {
        let exact = Taps::<f64>::new(s);
        let mut largest = 0.0f64;
        let mut out =
            FixedTaps { start: Temp::filled(s.output + 1, 0), taps: Temp::filled(exact.total(), (0, 0)), shift: 0 };
        // Taps outside of the operand add to the one at its edge, one by one: sums on the way count for the largest.
        let mut merged = Temp::filled(exact.total(), (0, 0.0f64));
        let mut end = 0;
        for i in 0..s.output {
            let from = end;
            for &(at, weight) in exact.of(i) {
                if end > from && merged[end - 1].0 == at {
                    merged[end - 1].1 += weight;
                } else {
                    merged[end] = (at, weight);
                    end += 1;
                }
                largest = largest.max(merged[end - 1].1);
            }
            out.start[i + 1] = end;
        }
        while out.shift < 22 && 0.5 + largest * f64::from(1u32 << (out.shift + 1)) < 32768.0 {
            out.shift += 1;
        }
        let unit = f64::from(1u32 << out.shift);
        for (to, &(at, weight)) in out.taps.iter_mut().zip(&merged[..end]) {
            let scaled = weight * unit;
            *to = (at, (scaled + 0.5f64.copysign(scaled)) as i64);
        }
        out
    }

    fn of(&self, i: usize) -> &[(usize, i64)] {
        &self.taps[self.start[i]..self.start[i + 1]]
    }

    /// The weighted sum for result index `i`, to the nearest byte.
    fn byte(&self, i: usize, at: impl Fn(usize) -> i64) -> i64 {
        let half = (1i64 << self.shift) >> 1;
        let sum = self.of(i).iter().fold(half, |sum, &(j, weight)| sum + weight * at(j));
        (sum >> self.shift).clamp(0, 255)
    }
}

/// Scratch bytes of [`resample_bytes`].
pub fn resample_bytes_room(x: Stored<'_>, scalings: [&Scaling; 2], out: Stored<'_>) -> usize {
    let taps = |s: &Scaling| {
        let most = s.output.saturating_mul(s.most::<f64>());
        2 * room::<usize>(s.output + 1) + 2 * room::<(usize, f64)>(most) + room::<(usize, i64)>(most)
    };
    let [rows, columns] = scalings;
    let between = rows.input.saturating_mul(columns.output);
    taps(rows) + taps(columns) + packed_room(x) + packed_room(out) + room::<i64>(between)
}

/// Scales the last two dimensions of bytes, the last one first. A dimension that keeps its size stays as it is.
pub fn resample_bytes(x: &View<'_>, [rows, columns]: [&Scaling; 2], out: &ViewMut<'_>, threads: usize) {
    if out.numel() == 0 {
        return;
    }
    let taps = |s: &Scaling| (s.input != s.output).then(|| FixedTaps::new(s));
    let (down, along) = (taps(rows), taps(columns));
    let data = pack::<i64>(x);
    let mut target = Target::<i64>::new(out);
    let (plane, wide) = (rows.input * columns.input, columns.output);
    par::pieces(threads, target.slice(), rows.output * wide, &|p, dst| {
        let src = &data[p * plane..][..plane];
        let narrow;
        let lines: &[i64] = match &along {
            None => src,
            Some(along) => {
                let mut each = Temp::filled(rows.input * wide, 0);
                for (line, to) in src.chunks_exact(columns.input).zip(each.chunks_exact_mut(wide)) {
                    to.iter_mut().enumerate().for_each(|(i, to)| *to = along.byte(i, |j| line[j]));
                }
                narrow = each;
                &narrow
            }
        };
        let Some(down) = &down else { return dst.copy_from_slice(lines) };
        for (i, line) in dst.chunks_exact_mut(wide).enumerate() {
            line.iter_mut().enumerate().for_each(|(k, to)| *to = down.byte(i, |j| lines[j * wide + k]));
        }
    });
    target.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vision::resample::Filter;

    #[test]
    fn weights_of_bytes_sum_to_one_up_to_rounding() {
        for filter in
            [Filter::Linear, Filter::Cubic, Filter::LinearAntialias, Filter::CubicAntialias, Filter::LanczosAntialias]
        {
            for (input, output) in [(1, 5), (5, 1), (4, 9), (9, 4), (100, 7)] {
                let taps = FixedTaps::new(&Scaling { filter, input, output, align_corners: false, scale: None });
                for i in 0..output {
                    let total: i64 = taps.of(i).iter().map(|t| t.1).sum();
                    let off = (total - (1 << taps.shift)).unsigned_abs() as usize;
                    assert!(off <= taps.of(i).len(), "{filter:?} {input} {output} {i}: {total}");
                    assert!(taps.of(i).iter().all(|t| t.0 < input && t.1 < 1 << 15));
                    assert_eq!(taps.byte(i, |_| 255), 255);
                }
            }
        }
    }
}
