//! Splits whose parts the operator's rule does not know: `tensor_split` at indices in a tensor, expanded into slices between
//! unbacked symbols, and `split` and `chunk` of symbolic sizes.

use super::nodes::GraphImporter;
use restride_ir::{Arg, Args, DType, Dim, Expr, Layout, Op, Origin, Result, Symbol, TensorType, Type, ViewOutcome};
use std::sync::Arc;

impl GraphImporter<'_> {
    /// Adds the slices for such a call; false for any other call.
    pub(super) fn split_at(
        &mut self,
        op: Op,
        args: &[Arg],
        results: &[(String, Type)],
        origin: &Arc<Origin>,
    ) -> Result<bool> {
        let ("aten.tensor_split.tensor_indices_or_sections", [x, Arg::Value(at), dim]) = (op.name(), args) else {
            return Ok(false);
        };
        let Some(held) = self.value_type(*at).tensor().cloned().filter(|t| t.rank() == 1) else { return Ok(false) };
        if held.layout.sizes[0].known().map(|n| n + 1) != Some(results.len() as i64) {
            return Ok(false);
        }
        let (select, item) = (self.operator("aten.select.int")?, self.operator("aten.item.default")?);
        let slice = self.operator("aten.slice.Tensor")?;
        let mut bounds = vec![Expr::Int(0)];
        for k in 0..results.len() as i64 - 1 {
            let offset = held.layout.offset.plus(&held.layout.strides[0].times(&Expr::Int(k)));
            let one = TensorType::new(DType::I64, Layout::strided(&[], &[], offset));
            let index = vec![Arg::Value(*at), Arg::Scalar(Expr::Int(0)), Arg::Scalar(Expr::Int(k))];
            let named = vec![(self.fresh("split_at"), Type::Tensor(one))];
            let id = self.add(select, index, named, origin.clone());
            let one = self.value_of(id);
            let learnt = Expr::Sym(self.learns("u", None));
            let named = vec![(self.fresh("split_at"), Type::Scalar(learnt.clone()))];
            self.add(item, vec![Arg::Value(one)], named, origin.clone());
            bounds.push(learnt);
        }
        bounds.push(Expr::Int(i64::MAX));
        for ((name, ty), between) in results.iter().zip(bounds.windows(2)) {
            let mut args = vec![x.clone(), dim.clone()];
            args.extend(between.iter().cloned().map(Arg::Scalar));
            args.push(Arg::Scalar(Expr::Int(1)));
            let mut made = [(name.clone(), ty.clone())];
            self.settle_offsets(slice, &args, &mut made);
            let [(_, ty)] = made;
            let named = vec![(self.fresh(name), ty)];
            let id = self.add(slice, args, named, origin.clone());
            let part = self.value_of(id);
            self.knows(part);
            self.bind(name.clone(), part);
        }
        Ok(true)
    }

    /// A call of `split` or `chunk` as one of `split_with_sizes`, where symbolic sizes leave open how many parts there are: the
    /// program's guards ensure that they are as many as the file declares.
    pub(super) fn with_declared_parts(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        results: &[(String, Type)],
    ) -> Result<(Op, Vec<Arg>)> {
        let sized = match op.name() {
            "aten.split.Tensor" | "aten.chunk.default" => "aten.split_with_sizes.default",
            "aten.unsafe_split.Tensor" | "aten.unsafe_chunk.default" => "aten.unsafe_split_with_sizes.default",
            _ => return Ok((op, args)),
        };
        let typed =
            args.iter().map(|a| a.try_map(|v| self.value_type(*v).tensor().cloned().ok_or(()), |e| Ok(e.clone())));
        let (Some(rule), Ok(typed)) = (op.def().view, typed.collect::<std::result::Result<Vec<_>, ()>>()) else {
            return Ok((op, args));
        };
        let Ok(ViewOutcome::Unknown) = (rule.symbolic)(&Args(&typed)) else { return Ok((op, args)) };
        let (Some(Arg::Value(x)), Some(Arg::Scalar(dim))) = (typed.first(), args.get(2)) else { return Ok((op, args)) };
        let d = dim.known().and_then(|dim| x.layout.dim(dim).ok());
        let size = |r: &(String, Type)| r.1.tensor().zip(d).and_then(|(t, d)| t.layout.sizes.get(d).cloned());
        match results.iter().map(size).collect::<Option<Vec<_>>>() {
            Some(sizes) if !sizes.is_empty() => {
                Ok((self.operator(sized)?, vec![args[0].clone(), Arg::Scalars(sizes), args[2].clone()]))
            }
            _ => Ok((op, args)),
        }
    }

    /// Declares a fresh unbacked symbol.
    pub(super) fn learns(&mut self, prefix: &str, is: Option<i64>) -> Symbol {
        let taken = &self.program.symbols;
        let name = (0..).map(|k| format!("{prefix}{k}")).find(|n| !taken.contains_key(n.as_str()));
        let symbol = Symbol::new(name.expect("there are more names than symbols"), is, is);
        self.program.symbols.insert(Arc::from(symbol.name()), symbol.clone());
        symbol
    }
}
