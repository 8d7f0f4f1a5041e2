//! Symbols replaced by numbers.

use crate::{Arg, Binding, Graph, TensorType, Type};

impl Graph {
    /// Replaces symbols by their values, wherever the binding has one.
    pub fn substitute(&mut self, binding: &Binding) {
        let values: Vec<_> = self.values.ids().collect();
        for v in values {
            let ty = &mut self.values[v].ty;
            match ty {
                Type::Tensor(t) => {
                    *ty = Type::Tensor(TensorType::new(t.dtype, t.layout.map(|e| e.substitute(binding))))
                }
                Type::Scalar(e) => *e = e.substitute(binding),
                _ => {}
            }
        }
        let nodes: Vec<_> = self.nodes.ids().collect();
        for n in nodes {
            self.nodes[n].args.iter_mut().for_each(|a| arg(a, binding));
        }
        self.outputs.iter_mut().for_each(|a| arg(a, binding));
    }
}

fn arg(a: &mut Arg, binding: &Binding) {
    match a {
        Arg::Scalar(e) => *e = e.substitute(binding),
        Arg::Scalars(es) => es.iter_mut().for_each(|e| *e = e.substitute(binding)),
        _ => {}
    }
}
