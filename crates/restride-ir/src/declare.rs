//! Declarations built from others: `exact(…).reusing(…).graded(…)`.

use crate::{
    EpilogueFn, Exactness, Fails, Grad, MacsFn, OpDef, Prepacked, Reuse, RowFormFn, TileFn, TimeFn, TrailingFn,
};

impl OpDef {
    /// The declaration with results as close to PyTorch's as given.
    pub const fn held_to(self, exactness: Exactness) -> OpDef {
        OpDef { exactness, ..self }
    }
    /// The declaration with results that equal PyTorch's bit for bit.
    pub const fn exactly(self) -> OpDef {
        self.held_to(Exactness::Exact)
    }
    /// The declaration with licences for results to take over the memory of arguments.
    pub const fn reusing(self, reuse: &'static [Reuse]) -> OpDef {
        OpDef { reuse, ..self }
    }
    /// The declaration with a condition of [`crate::ReuseKind::Trailing`].
    pub const fn trailing(self, may: TrailingFn) -> OpDef {
        OpDef { trailing: Some(may), ..self }
    }
    /// The declaration with a form of calls whose operand was packed once.
    pub const fn packing(self, form: &'static Prepacked) -> OpDef {
        OpDef { prepacked: Some(form), ..self }
    }
    /// The declaration of an operator whose calls can be computed in tiles.
    pub const fn tiled(self, tiles: TileFn) -> OpDef {
        OpDef { tiles: Some(tiles), ..self }
    }
    /// The declaration of an operator whose calls on singles are functions of rows.
    pub const fn in_rows(self, rows: RowFormFn) -> OpDef {
        OpDef { rows: Some(rows), ..self }
    }
    /// The declaration of an operator whose kernel calls epilogues.
    pub const fn finishing(self, epilogue: EpilogueFn) -> OpDef {
        OpDef { epilogue: Some(epilogue), ..self }
    }
    /// The declaration with a count of multiply-adds.
    pub const fn counted(self, macs: MacsFn) -> OpDef {
        OpDef { macs: Some(macs), ..self }
    }
    /// The declaration of an operator whose time depends on layouts.
    pub const fn timed(self, time: TimeFn) -> OpDef {
        OpDef { layout_time: Some(time), ..self }
    }
    /// The declaration of an operator that fails on some elements of integers.
    pub const fn checking(self) -> OpDef {
        OpDef { fails: Fails::Integers, ..self }
    }
    /// The declaration of an operator that fails on some elements: an index out of range, a singular matrix.
    pub const fn failing(self) -> OpDef {
        OpDef { fails: Fails::Elements, ..self }
    }
    /// The declaration with a gradient.
    pub const fn graded(self, grad: Grad) -> OpDef {
        OpDef { grad: Some(grad), ..self }
    }
    /// The declaration with a sentence of documentation.
    pub const fn noted(self, doc: &'static str) -> OpDef {
        OpDef { doc, ..self }
    }
}
