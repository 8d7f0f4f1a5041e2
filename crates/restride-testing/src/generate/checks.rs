//! Recorded checks: of numbers read from tensors and of tensors, about half of them true; of types, all true.

use super::{Generator, value};
use restride_ir::{Arg, Expr, ExprFn, Symbol, Type, ValueId};

/// Kind of check on a number.
const COMPARED: &[ExprFn] = &[ExprFn::Eq, ExprFn::Ne, ExprFn::Lt, ExprFn::Le, ExprFn::Gt, ExprFn::Ge];

impl Generator {
    /// Reads a number from an integer tensor and checks it by its range, or by assertions on it and an earlier one.
    pub(super) fn check(&mut self) -> Option<()> {
        match self.rng.below(6) {
            0 => self.check_tensor(),
            1 => self.check_type(),
            _ => self.check_number(),
        }
    }

    fn element(&mut self) -> Option<ValueId> {
        let mut v = self.pick_where(|m| {
            (m.dtype.is_int() || m.dtype == restride_ir::DType::Bool) && m.layout.sizes.iter().all(|n| *n > 0)
        })?;
        while let Some(&n) = self.sizes_of(v).first() {
            let at = self.rng.between(0, n - 1);
            v = *self.t.call("aten.select.int", vec![value(v), super::int(0), super::int(at)])?.first()?;
        }
        Some(v)
    }

    fn check_number(&mut self) -> Option<()> {
        let element = self.element()?;
        let is_bool = self.t.meta(element).dtype == restride_ir::DType::Bool;
        let pinned = self.rng.between(-1, 5);
        let (min, max) = match self.rng.below(4) {
            0 if is_bool => (Some(0), Some(1)),
            0 => (Some(pinned), Some(pinned)),
            1 => (Some(self.rng.between(-9, 2)), Some(self.rng.between(2, 9))),
            _ => (None, None),
        };
        let symbol = Symbol::new(format!("u{}", self.symbols.len()), min, max);
        self.symbols.push(symbol.clone());
        let number = Expr::Sym(symbol);
        let ty = if is_bool { Expr::call(ExprFn::Eq, vec![number.clone(), Expr::Int(1)]) } else { number.clone() };
        self.t.plain("aten.item.default", vec![value(element)], Some(Type::Scalar(ty)))?;
        for _ in 0..1 + self.rng.below(2) {
            let other = match self.rng.below(4) {
                0 if self.symbols.len() > 1 => {
                    let before = self.rng.below(self.symbols.len() - 1);
                    Expr::Sym(self.symbols[before].clone())
                }
                _ => Expr::Int(self.rng.between(-3, 6)),
            };
            let left = match self.rng.below(4) {
                0 => Expr::call(ExprFn::Mul, vec![number.clone(), number.clone()]),
                1 => Expr::call(ExprFn::Mod, vec![number.clone(), Expr::Int(self.rng.between(2, 3))]),
                2 => Expr::call(ExprFn::Add, vec![number.clone(), other.clone()]),
                _ => number.clone(),
            };
            let f = *self.rng.choose(COMPARED);
            let condition = Expr::call(f, vec![left, other]);
            let says = Arg::Str(format!("{condition}").into());
            self.t.plain("aten._assert_scalar.default", vec![Arg::Scalar(condition), says], None)?;
        }
        if self.rng.chance(20) {
            let range = vec![Arg::Scalar(number), super::int(self.rng.between(-9, 1)), super::int(9)];
            self.t.plain("aten.sym_constrain_range.default", range, None)?;
        }
        Some(())
    }

    fn check_tensor(&mut self) -> Option<()> {
        let element = self.element()?;
        let compared = super::int(self.rng.between(-1, 5));
        let name = *self.rng.choose(&["aten.ne.Scalar", "aten.le.Scalar", "aten.eq.Scalar"]);
        let verdict = *self.t.call(name, vec![value(element), compared])?.first()?;
        let says = Arg::Str("a tensor that is false".into());
        self.t.plain("aten._assert_async.msg", vec![value(verdict), says], None)
    }

    fn check_type(&mut self) -> Option<()> {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes: Vec<Expr> = meta.layout.sizes.iter().map(|n| Expr::Int(*n)).collect();
        let args = vec![value(v), Arg::Scalars(sizes), Arg::None, Arg::DType(meta.dtype)];
        self.t.plain("aten._assert_tensor_metadata.default", args, None)
    }
}
