//! Rows of singles that come in parts, joined as whole ones are: the order depends on the number of elements alone.

use super::beside::RowByRow;
use super::joined::{BLOCK, side};
use super::{Tree, fold, halve, largest, smallest};
use crate::support::isa;
use crate::support::number::Number;

/// Interleaved parts of a block.
pub const SIDE: usize = side::<f32>();

/// A reduction of a row that is given part by part. The result has the bits that [`super::reduce`] gives for the whole row.
pub struct JoinedParts {
    by: &'static PartFunctions,
    /// The block that is not full.
    lanes: [f32; SIDE],
    held: usize,
    blocks: Tree<f32>,
}

/// How elements are joined, and functions that do it.
struct PartFunctions {
    unit: f32,
    join: fn(f32, f32) -> f32,
    /// Whole rows, or blocks.
    rows: fn(&[f32], &mut [f32]),
    /// Adds the elements of a part to those of a block.
    add: fn(&mut [f32; SIDE], usize, &[f32]),
    /// Joins the lanes of blocks, one behind the other. The number says how many elements each block has.
    end: fn(&mut [[f32; SIDE]], usize, &mut [f32]),
}

struct AddPart<'a, J> {
    lanes: &'a mut [f32; SIDE],
    held: usize,
    part: &'a [f32],
    join: J,
}

impl<J: Fn(f32, f32) -> f32> isa::Work for AddPart<'_, J> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let AddPart { lanes, held, part, join } = self;
        let first = held % SIDE;
        let (head, rest) = part.split_at(if first > 0 { (SIDE - first).min(part.len()) } else { 0 });
        for (lane, &x) in lanes[first..].iter_mut().zip(head) {
            *lane = join(*lane, x);
        }
        let (whole, rest) = rest.as_chunks::<SIDE>();
        let mut own = *lanes;
        for chunk in whole {
            for i in 0..SIDE {
                own[i] = join(own[i], chunk[i]);
            }
        }
        *lanes = own;
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = join(*lane, x);
        }
    }
}

struct EndBlocks<'a, J> {
    lanes: &'a mut [[f32; SIDE]],
    held: usize,
    to: &'a mut [f32],
    join: J,
}

impl<J: Fn(f32, f32) -> f32> isa::Work for EndBlocks<'_, J> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let EndBlocks { lanes, held, to, join } = self;
        // Parts of a short row without elements do not count.
        let used = held.min(SIDE).next_power_of_two();
        for (lanes, to) in lanes.iter_mut().zip(to) {
            halve(lanes, SIDE / 2, used, &join);
            halve(lanes, SIDE / 4, used, &join);
            halve(lanes, SIDE / 8, used, &join);
            halve(lanes, SIDE / 16, used, &join);
            halve(lanes, SIDE / 32, used, &join);
            halve(lanes, SIDE / 64, used, &join);
            *to = lanes[0];
        }
    }
}

macro_rules! part_functions {
    ($name:ident, $unit:expr, $join:expr) => {
        static $name: PartFunctions = PartFunctions {
            unit: $unit,
            join: $join,
            rows: |rows, to| each_row(rows, to, $unit, $join),
            add: |lanes, held, part| isa::run(AddPart { lanes, held, part, join: $join }),
            end: |lanes, held, to| isa::run(EndBlocks { lanes, held, to, join: $join }),
        };
    };
}
part_functions!(SUM, 0.0, f32::plus);
part_functions!(LARGEST, f32::NEG_INFINITY, largest::<f32>);
part_functions!(SMALLEST, f32::INFINITY, smallest::<f32>);

impl JoinedParts {
    /// A sum.
    pub fn sum() -> JoinedParts {
        JoinedParts::by(&SUM)
    }

    /// The largest element, or NaN.
    pub fn largest() -> JoinedParts {
        JoinedParts::by(&LARGEST)
    }

    /// The smallest element, or NaN.
    pub fn smallest() -> JoinedParts {
        JoinedParts::by(&SMALLEST)
    }

    fn by(by: &'static PartFunctions) -> JoinedParts {
        JoinedParts { by, lanes: [by.unit; SIDE], held: 0, blocks: Tree::new() }
    }

    /// Elements after which a branch of the tree ends: other branches can be joined by themselves.
    pub const BRANCH: usize = 16 * BLOCK;

    /// The next elements.
    pub fn push(&mut self, mut part: &[f32]) {
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(BLOCK - self.held));
            part = later;
            if now.len() == BLOCK {
                let mut block = [self.by.unit];
                (self.by.rows)(now, &mut block);
                self.blocks.push(block[0], self.by.join);
                continue;
            }
            (self.by.add)(&mut self.lanes, self.held, now);
            self.held += now.len();
            if self.held == BLOCK {
                self.end_block();
            }
        }
    }

    /// The lanes in which the next elements can be joined: element `i` of these in lane `i % SIDE`. No block ends within them, and what
    /// came before filled all lanes equally; [`JoinedParts::joined`] says then how many they were.
    pub fn lanes(&mut self) -> *mut f32 {
        debug_assert_eq!(self.held % SIDE, 0, "elements begin in the first lane");
        self.lanes.as_mut_ptr()
    }

    /// Elements were joined in the lanes.
    pub fn joined(&mut self, elements: usize) {
        self.held += elements;
        assert!(self.held <= BLOCK, "no block ends within elements that are joined in lanes");
        if self.held == BLOCK {
            self.end_block();
        }
    }

    /// The result of a branch that was joined by itself, behind whole ones of the same length: [`JoinedParts::BRANCH`] elements or
    /// that twice, four times and so on.
    pub fn push_branch(&mut self, result: f32) {
        self.blocks.push(result, self.by.join);
    }

    fn end_block(&mut self) {
        let mut end = [self.by.unit];
        (self.by.end)(std::slice::from_mut(&mut self.lanes), self.held, &mut end);
        self.blocks.push(end[0], self.by.join);
        (self.lanes, self.held) = ([self.by.unit; SIDE], 0);
    }

    /// What all elements have given; of none, what joins nothing.
    pub fn result(mut self) -> f32 {
        if self.held > 0 {
            self.end_block();
        }
        if self.blocks.values == 0 { self.by.unit } else { self.blocks.root(self.by.join) }
    }
}

/// The sums of rows of the same length, one behind the other.
pub fn row_sums(rows: &[f32], to: &mut [f32]) {
    (SUM.rows)(rows, to);
}

/// Their largest elements, or NaN.
pub fn row_maxima(rows: &[f32], to: &mut [f32]) {
    (LARGEST.rows)(rows, to);
}

/// Their smallest elements, or NaN.
pub fn row_minima(rows: &[f32], to: &mut [f32]) {
    (SMALLEST.rows)(rows, to);
}

/// The sums of rows of `len` elements, at most a block, which were added up in lanes: element `i` in lane `i % SIDE`.
pub fn lane_sums(lanes: &mut [[f32; SIDE]], len: usize, to: &mut [f32]) {
    assert!(len <= BLOCK, "rows of one block");
    (SUM.end)(lanes, len, to);
}

/// Joins as many rows as there are results.
fn each_row(rows: &[f32], to: &mut [f32], unit: f32, join: impl Fn(f32, f32) -> f32 + Copy) {
    let len = rows.len() / to.len().max(1);
    if (1..=BLOCK).contains(&len) {
        return isa::run(RowByRow { to, from: rows.as_ptr(), apart: len as isize, len, unit, join });
    }
    for (i, to) in to.iter_mut().enumerate() {
        *to = fold(&rows[i * len..][..len], unit, join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::{Reduction, reduce};
    use restride_tensor::{DType, Layout, RawTensor};

    fn whole(row: &[f32], what: Reduction) -> f32 {
        let x = RawTensor::from_slice(row, &[row.len() as i64]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[]));
        reduce(&x.read().view(), &[true], what, DType::F32, &out.write().view_mut(), 2).unwrap();
        out.to_elements::<f32>()[0]
    }

    #[test]
    fn parts_give_the_bits_of_whole_rows() {
        let all: Vec<f32> = (0..150_001).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
        for n in [1, 2, 5, 63, 64, 65, 100, 127, 2047, 2048, 2049, 5000, 70_003, 150_001] {
            let row = &all[..n];
            for by in [1, 7, 64, 100, 1024, n] {
                let mut given = [JoinedParts::sum(), JoinedParts::largest(), JoinedParts::smallest()];
                row.chunks(by).for_each(|part| given.iter_mut().for_each(|g| g.push(part)));
                let want = [Reduction::Sum, Reduction::Max, Reduction::Min].map(|what| whole(row, what).to_bits());
                assert_eq!(given.map(|g| g.result().to_bits()), want, "{n} by {by}");
                let rows = [row_sums, row_maxima, row_minima].map(|f| {
                    let mut to = [0.0; 2];
                    f(&[row, row].concat(), &mut to);
                    assert_eq!(to[0].to_bits(), to[1].to_bits());
                    to[1].to_bits()
                });
                assert_eq!(rows, want, "{n}");
            }
        }
    }

    #[test]
    fn branches_give_the_bits_of_whole_rows() {
        let row: Vec<f32> = (0..150_001).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
        let mut sum = JoinedParts::sum();
        for part in row.chunks(2 * JoinedParts::BRANCH) {
            let mut own = JoinedParts::sum();
            own.push(part);
            sum.push_branch(own.result());
        }
        assert_eq!(sum.result().to_bits(), whole(&row, Reduction::Sum).to_bits());
    }

    #[test]
    fn a_nan_is_the_largest_and_the_smallest() {
        for at in [0, 70, 3000] {
            let mut row = vec![1.0f32; 3001];
            row[at] = f32::NAN;
            let mut given = [JoinedParts::largest(), JoinedParts::smallest()];
            given.iter_mut().for_each(|g| g.push(&row));
            assert!(given.into_iter().all(|g| g.result().is_nan()), "{at}");
        }
    }
}
