//! Sizes of 0 and 1.
//!
//! Along a dimension of size 1 eager PyTorch's strides are others than a formula over sizes gives, and so are the layouts that operators
//! choose for their results; what is a view of such sizes may be a copy of larger ones. Where sizes of a run are 0 or 1, the program is
//! made functional once more, with the symbols of these sizes as numbers, as an exporter does.

use restride_ir::{Binding, CollectTree, Expr, Program, Stage, relay};
use restride_passes::functionalize::Share;
use restride_passes::specialize;
use std::collections::BTreeSet;

/// An imported program with symbolic sizes, and what it was compiled with.
pub(crate) struct SymbolicImport {
    program: Program,
    pub shares: Vec<Share>,
    /// The symbolic sizes of its values that inputs decide, each once.
    sizes: BTreeSet<Expr>,
}

impl SymbolicImport {
    /// A program, and the inputs that share storage; `None` where no size depends on a symbol of the inputs.
    pub fn of(program: Program, shares: Vec<Share>) -> Option<SymbolicImport> {
        if program.stage != Stage::Imported || program.symbols.is_empty() {
            return None;
        }
        let tensors = program.graph().values.iter().filter_map(|(_, v)| v.ty.tensor());
        let sizes = tensors.flat_map(|t| &t.layout.sizes).filter(|e| decided_by_inputs(e)).cloned();
        let sizes: BTreeSet<Expr> = sizes.collect_set();
        (!sizes.is_empty()).then_some(SymbolicImport { program, shares, sizes })
    }

    /// The symbols of sizes that are 0 or 1, with their values.
    pub fn units(&self, symbols: &Binding) -> Binding {
        let unit = |e: &&Expr| e.eval(symbols).is_ok_and(|n| n.as_i64() <= 1);
        let mut of = BTreeSet::new();
        self.sizes.iter().filter(unit).for_each(|e| e.symbols(&mut of));
        of.into_iter().filter_map(|s| symbols.get(&s).map(|v| (s.clone(), *v))).collect_map()
    }

    /// The program in which these symbols are numbers.
    pub fn with(&self, units: &Binding) -> Program {
        let mut own = specialize(&self.program, units);
        relay(&mut own);
        own
    }
}

/// Whether an expression has symbols, and only such as the sizes of inputs give.
fn decided_by_inputs(e: &Expr) -> bool {
    let mut symbols = BTreeSet::new();
    e.symbols(&mut symbols);
    !symbols.is_empty() && symbols.iter().all(|s| !s.is_unbacked() && !s.is_float())
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, Compiled, Inputs, RunOptions};
    use restride_exec::RunValue;
    use restride_ir::{Expr, ExprFn, Guard, Type};
    use restride_tensor::RawTensor;

    #[test]
    fn one_instance_runs_sizes_of_one_and_larger_ones() {
        let text = "symbol s0 in [1, inf]\nsymbol s1 in [1, inf]\n\
            graph(%x: f32[s0, 4, s1, 4]) {\n  \
              %p: f32[s0, s1, 4, 4][16*s1, 4, 1, 4*s1] = aten.permute.default(%x, [0, 2, 3, 1])\n  \
              %f: f32[s0*s1, 4, 4] = aten.flatten.using_ints(%p, 0, 1)\n  \
              %y: f32[s0*s1, 4, 4] = aten.mul.Tensor(%f, 2)\n  \
              return %y\n}\n";
        let mut program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
        let rows = program.graph().output_values().next().map(|y| &program.graph().values[y].ty);
        let rows = rows.and_then(Type::tensor).expect("a tensor").layout.sizes[0].clone();
        // Of a guard over both symbols one stays.
        let condition = Expr::call(ExprFn::Ge, vec![rows, Expr::Int(3)]);
        program.guards.push(Guard { condition, text: "three rows".into() });
        let compiled = Compiled::new(program, None, &CompileOptions::default()).expect("it compiles");
        let mut instance = compiled.instance().expect("an instance");
        let mut strides = |batch: i64| {
            let numbers: Vec<f32> = (0..batch * 48).map(|n| n as f32).collect();
            let x = RunValue::Tensor(RawTensor::from_slice(&numbers, &[batch, 4, 3, 4]));
            let inputs = Inputs { values: vec![x] };
            let outputs = instance.run(&inputs, &RunOptions::default()).expect("it runs");
            let y = outputs.values[0].tensor().expect("a tensor");
            assert_eq!(y.get(&[1, 2, 3]).as_f64(), 2.0 * (3 * 12 + 4 + 2) as f64);
            y.layout().strides.to_vec()
        };
        // Flattening one batch is a view, whose strides the result has.
        for _ in 0..2 {
            assert_eq!(strides(2), [16, 4, 1]);
            assert_eq!(strides(1), [4, 1, 12]);
        }
    }

    #[test]
    fn an_instance_takes_other_sizes_after_a_session_of_one() {
        let text = "symbol s0 in [1, inf]\ngraph(%x: f32[s0, 3]) {\n  \
            %y: f32[s0, 3] = aten.mul.Tensor(%x, 2)\n  return %y\n}\n";
        let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
        let compiled = Compiled::new(program, None, &CompileOptions::default()).expect("it compiles");
        let given = |rows: i64| Inputs {
            values: vec![RunValue::Tensor(RawTensor::from_slice(&vec![1f32; 3 * rows as usize], &[rows, 3]))],
        };
        let options = RunOptions::default();
        let mut session =
            compiled.instance().expect("an instance").session(&given(1), &[], &options).expect("a session");
        session.run().expect("it runs");
        let refused = session.rebind(&given(2), &[]).expect_err("other sizes");
        assert_eq!(refused.what, "the inputs have other sizes than those of the session");
        let outputs = session.into_instance().run(&given(2), &options).expect("it runs");
        assert_eq!(outputs.values[0].tensor().expect("a tensor").layout().sizes[..], [2, 3]);
    }
}
