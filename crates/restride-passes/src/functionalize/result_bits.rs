//! Lazy bits of the results of higher-order calls. A body returns elements with the bits applied; eager PyTorch's tensor still has
//! them, so that `resolve_conj` copies and `view_as_real` refuses. Where the branch that runs, or the number of iterations, decides
//! the bits, calls that depend on them are refused.

use super::bodies::BodyOperand;
use super::rewrite::{NewValue, Rewrite, Rewriter};
use super::storages::Alias;
use restride_ir::{Dim, Error, LazyBits, Node, TensorType, Twin, ValueId};

impl Rewriter<'_> {
    /// Gives the results of a higher-order call the lazy bits of eager PyTorch's tensors. `ways` has the bits of the first results
    /// for each way through the call.
    pub(super) fn set_result_bits(&mut self, node: &Node, ways: &[Vec<LazyBits>]) -> Rewrite<()> {
        for (i, &result) in node.results.iter().enumerate() {
            let mut possible = ways.iter().filter_map(|way| way.get(i));
            let (Some(&first), Some(NewValue::Object(_))) = (possible.next(), self.map[result]) else { continue };
            let alias = self.alias(result)?;
            if !possible.all(|bits| *bits == first) {
                self.open_bits.insert(self.storages[alias].storage, node.op);
            } else if self.storages[alias].eager_bits() != first {
                self.storages.set_applied(alias, first);
            }
        }
        Ok(())
    }

    /// Refuses a view whose outcome depends on bits of its base that an earlier call leaves open.
    pub(super) fn refuse_open_view(&self, node: &Node, base: ValueId) -> Rewrite<()> {
        let own = &self.storages[self.alias(base)?];
        if !self.open_bits.contains_key(&own.storage) {
            return Ok(());
        }
        let all =
            [(false, false), (true, false), (false, true), (true, true)].map(|(conj, neg)| LazyBits { conj, neg });
        let of = |to: &TensorType| all.map(|bits| bits.of_view(node.op, &own.ty, to).ok().map(|made| made.is_some()));
        let depends = |r: &ValueId| self.old.values[*r].ty.tensor().is_some_and(|to| of(to) != [of(to)[0]; 4]);
        if node.op.def().resolves || node.results.iter().any(depends) {
            self.refuse_open(own)?;
        }
        Ok(())
    }

    /// Refuses a write that PyTorch refuses or accepts by bits of its target that an earlier call leaves open.
    pub(super) fn refuse_open_write(&self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for &(arg, _) in &twin.writes {
            for &target in node.args.get(arg as usize).into_iter().flat_map(|a| a.values()) {
                let own = &self.storages[self.alias(target)?];
                let shares = |v: &ValueId| self.alias(*v).is_ok_and(|a| self.storages[a].storage == own.storage);
                let others = node.args.iter().enumerate().filter(|(i, _)| *i != arg as usize);
                let stretched = own.ty.layout.strides.iter().any(|s| s.is(0));
                if stretched || others.flat_map(|(_, a)| a.values()).any(shares) {
                    self.refuse_open(own)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a use of a tensor's bits where an earlier call leaves them open.
    pub(super) fn refuse_open(&self, alias: &Alias) -> Rewrite<()> {
        let Some(call) = self.open_bits.get(&alias.storage) else { return Ok(()) };
        let what =
            format!("the conjugate and negative bits of the results of {call} depend on data, and a call reads them");
        Err(Error::unsupported(what).help("call resolve_conj() or resolve_neg() on the results of its graphs").into())
    }
}

/// The bits of the first `count` operands.
pub(super) fn operand_bits(operands: &[BodyOperand], count: usize) -> Vec<LazyBits> {
    let of = |o: &BodyOperand| if let BodyOperand::Value(_, bits) = o { *bits } else { LazyBits::default() };
    operands.iter().take(count).map(of).collect()
}
