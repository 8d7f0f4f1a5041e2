//! Building imported programs call by call, with the types that eager PyTorch would show: by the operators' view and
//! shape rules.

use restride_ir::{
    Arg, Args, Expr, Graph, Meta, Op, Origin, Scalar, TensorType, TwinReturn, Type, ValueId, ViewOutcome,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A graph that grows by calls.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// The graph so far.
    pub graph: Graph,
    /// Which tensor object each value is: an in-place call gives its target again.
    objects: BTreeMap<ValueId, usize>,
    /// How each object lies now: `t_` changes it.
    metas: Vec<Meta>,
    calls: u32,
}

impl Tracer {
    /// Adds an input.
    pub fn input(&mut self, name: &str, meta: Meta) -> ValueId {
        let v = self.graph.add_input(name, Type::Tensor(symbolic(&meta)));
        self.add(v, meta);
        v
    }

    fn add(&mut self, v: ValueId, meta: Meta) {
        self.objects.insert(v, self.metas.len());
        self.metas.push(meta);
    }

    /// All tensors so far, in order.
    pub fn values(&self) -> Vec<ValueId> {
        self.objects.keys().copied().collect()
    }

    /// How a tensor lies now.
    pub fn meta(&self, v: ValueId) -> &Meta {
        &self.metas[self.objects[&v]]
    }

    /// Adds a call with tensor results, trailing arguments filled in. `None`, and nothing is added, where the operator
    /// cannot be run or its rules refuse these arguments.
    pub fn call(&mut self, name: &str, args: Vec<Arg>) -> Option<Vec<ValueId>> {
        let op = restride_ops::lookup(name)?;
        let args = filled(op, args)?;
        if !op.can_run() {
            return None;
        }
        let results = self.results(op, &args)?;
        let names: Vec<(Arc<str>, Type)> = results
            .iter()
            .enumerate()
            .map(|(i, r)| {
                let meta = match r {
                    Made::New(meta) => meta,
                    Made::Object(o, meta) => meta.as_ref().unwrap_or(&self.metas[*o]),
                };
                let name = format!("v{}", self.graph.values.len() + i);
                (name.into(), Type::Tensor(symbolic(meta)))
            })
            .collect();
        Some(self.push(op, args, names, results))
    }

    /// Adds a call whose results are new tensors of the given types (a higher-order one).
    pub fn call_as(&mut self, op: Op, args: Vec<Arg>, types: &[Meta]) -> Vec<ValueId> {
        let n = self.graph.values.len();
        let names =
            types.iter().enumerate().map(|(i, m)| (format!("v{}", n + i).into(), Type::Tensor(symbolic(m)))).collect();
        self.push(op, args, names, types.iter().cloned().map(Made::New).collect())
    }

    fn push(&mut self, op: Op, args: Vec<Arg>, names: Vec<(Arc<str>, Type)>, made: Vec<Made>) -> Vec<ValueId> {
        self.calls += 1;
        let origin = Arc::new(Origin { key: self.calls, ..Origin::default() });
        let id = self.graph.add_node(op, args, names, origin);
        let values = self.graph.nodes[id].results.to_vec();
        for (&v, made) in values.iter().zip(made) {
            match made {
                Made::New(meta) => self.add(v, meta),
                Made::Object(o, meta) => {
                    self.objects.insert(v, o);
                    if let Some(meta) = meta {
                        self.metas[o] = meta;
                    }
                }
            }
        }
        values
    }

    fn results(&self, op: Op, args: &[Arg]) -> Option<Vec<Made>> {
        let def = op.def();
        let metas: Vec<Arg<Meta, Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| Ok(self.meta(*v).clone()), |e| e.constant().ok_or(())))
            .collect::<Result<_, ()>>()
            .ok()?;
        if op.member().is_some() {
            return op.schema().returns.is_empty().then(Vec::new);
        }
        if let (Some(twin), true) = (op.twin(), op.mutates(args)) {
            let own: Vec<_> = twin.args.iter().map(|&i| metas[i as usize].clone()).collect();
            let own = filled(twin.op, own)?;
            let inferred = twin.op.def().infer?(&Args(&own)).ok()?;
            let made = |r: &TwinReturn| match *r {
                TwinReturn::Arg(i) => Some(Made::Object(self.objects[args[i as usize].values().next()?], None)),
                TwinReturn::Result(r) => Some(Made::New(inferred.get(r as usize)?.clone())),
            };
            // What is written keeps its sizes here: `out=` of other sizes is made on purpose only.
            for &(arg, result) in &twin.writes {
                let target = args[arg as usize].values().next()?;
                let value = inferred.get(result as usize)?;
                let fits = self.meta(*target).layout.sizes == value.layout.sizes;
                if !fits || !value.dtype.can_cast(self.meta(*target).dtype) {
                    return None;
                }
            }
            return twin.returns.iter().map(made).collect();
        }
        if let Some(rule) = def.view
            && let ViewOutcome::Views(views) = rule.of(&metas).ok()?
        {
            if def.metadata {
                let object = self.objects[args[0].values().next()?];
                return Some(vec![Made::Object(object, Some(views.into_iter().next()?))]);
            }
            return Some(views.into_iter().map(Made::New).collect());
        }
        Some(def.infer?(&Args(&metas)).ok()?.into_iter().map(Made::New).collect())
    }
}

/// A result of a call.
enum Made {
    New(Meta),
    /// An object that is there, perhaps with another layout from now on.
    Object(usize, Option<Meta>),
}

/// The arguments with defaults for the trailing ones.
fn filled<V, S: From<Scalar>>(op: Op, mut args: Vec<Arg<V, S>>) -> Option<Vec<Arg<V, S>>> {
    for decl in op.schema().args.iter().skip(args.len()) {
        args.push(decl.default_arg()?);
    }
    Some(args)
}

/// A known type as programs have them.
pub fn symbolic(meta: &Meta) -> TensorType {
    TensorType::new(meta.dtype, meta.layout.map(|n| Expr::Int(*n)))
}
