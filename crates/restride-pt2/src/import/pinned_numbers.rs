//! Numbers from data that a recorded check pins to a known value.
//!
//! For `torch._check(u == 3)`, `u == x.shape[0]` or `u == v`, `torch.export` replaces `u` by its known value everywhere and writes
//! the check as true. PyTorch still computes the number and checks it when it runs the file. So does restride: the number gets a
//! symbol of its own, which checks and the arithmetic before them read. All other nodes read the file's value.

use super::nodes::GraphImporter;
use crate::expressions::python_function;
use restride_ir::{Arg, Dim, Expr, ExprFn, Kernel, Op, Symbol};
use std::collections::BTreeSet;
use std::sync::Arc;

impl GraphImporter<'_> {
    /// The number as a run computes it, if that differs from the file's value.
    pub(super) fn learnt(&mut self, op: Op, args: &[Arg], said: &Expr) -> Option<Expr> {
        if !matches!(op.def().kernel, Kernel::Scalar(_)) || op.def().strided {
            return None;
        }
        let mut read = args.iter().flat_map(Arg::values).peekable();
        if read.peek().is_some() {
            // Types check sizes, except for those that data decides and a check pinned.
            let of_type = op.name().starts_with("aten.sym_");
            if of_type && !read.any(|v| self.has_pinned_sizes(*v)) {
                return None;
            }
            let mut symbols = BTreeSet::new();
            said.symbols(&mut symbols);
            let teaches = symbols.iter().any(|s| s.is_unbacked() && !self.file.known.contains(s));
            return (!teaches).then(|| self.pinned(said));
        }
        let numbers: Vec<Expr> = args.iter().flat_map(|a| a.scalars().to_vec()).collect();
        let open = numbers.iter().any(|e| e.constant().is_none());
        let computed = if open { function(op.name(), &numbers) } else { None }?;
        let pins = said.constant().is_some() || self.mentions_pinned(&computed);
        (pins && computed != *said).then_some(computed)
    }

    /// A symbol for a number pinned to this value, or the comparison behind a pinned bool.
    fn pinned(&mut self, said: &Expr) -> Expr {
        let float = said.is_float();
        let bound = said.constant().filter(|_| !float).map(|c| c.as_i64());
        let fits = |s: &Symbol| bound.is_some() && !s.is_float() && (s.min(), s.max()) == (bound, bound);
        let symbol = match self.file.spare.iter().position(fits) {
            Some(i) => self.file.spare.remove(i),
            None => self.learns(if float { "zuf" } else { "u" }, bound),
        };
        self.program.symbols.insert(Arc::from(symbol.name()), symbol.clone());
        self.file.pins.push(symbol.clone());
        match said.is_bool() {
            true => Expr::call(ExprFn::Eq, vec![Expr::Sym(symbol), Expr::Int(1)]),
            false => Expr::Sym(symbol),
        }
    }

    fn mentions_pinned(&self, e: &Expr) -> bool {
        let mut symbols = BTreeSet::new();
        e.symbols(&mut symbols);
        self.file.pins.iter().any(|p| symbols.contains(p))
    }
}

/// Whether an operator only computes with numbers or checks them, and so reads the symbols of pinned numbers.
pub(super) fn reads_learnt(op: Op) -> bool {
    matches!(op.def().kernel, Kernel::Scalar(_)) || op.def().effectful && op.schema().returns.is_empty()
}

/// The result of a function of numbers, as an expression.
fn function(name: &str, args: &[Expr]) -> Option<Expr> {
    match (name, args) {
        ("_operator.sub", [a, b]) => Some(a.minus(b)),
        ("_operator.neg", [a]) => Some(a.times(&Expr::Int(-1))),
        ("_operator.and_" | "_operator.or_", _) if !args.iter().all(Expr::is_bool) => None,
        _ => python_function(name).map(|f| Expr::call(f, args.to_vec())),
    }
}
