//! Numbers of a graph replaced: symbols by their values, or by other symbols.

use crate::{Arg, Binding, Expr, Graph, TensorType, Type};

impl Graph {
    /// Replaces symbols by their values, wherever the binding has one.
    pub fn substitute(&mut self, binding: &Binding) {
        self.map_numbers(&|e| e.substitute(binding));
    }

    /// Replaces every number: in types, arguments and outputs.
    pub fn map_numbers(&mut self, of: &impl Fn(&Expr) -> Expr) {
        let values: Vec<_> = self.values.ids().collect();
        for v in values {
            let ty = &mut self.values[v].ty;
            match ty {
                Type::Tensor(t) => *ty = Type::Tensor(TensorType::new(t.dtype, t.layout.map(of))),
                Type::Scalar(e) => *e = of(e),
                _ => {}
            }
        }
        let nodes: Vec<_> = self.nodes.ids().collect();
        for n in nodes {
            self.nodes[n].args.iter_mut().for_each(|a| arg(a, of));
        }
        self.outputs.iter_mut().for_each(|a| arg(a, of));
    }
}

fn arg(a: &mut Arg, of: &impl Fn(&Expr) -> Expr) {
    match a {
        Arg::Scalar(e) => *e = of(e),
        Arg::Scalars(es) => es.iter_mut().for_each(|e| *e = of(e)),
        _ => {}
    }
}
