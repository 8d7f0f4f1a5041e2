//! Registered operators, and their handles, which nodes hold.

use crate::{Arg, Args, Expr, Kernel, Member, MemberArg, OpDef, OpError, Schema, Twin};
use std::fmt;

type Result<T> = std::result::Result<T, OpError>;

/// A registered operator.
pub struct RegisteredOp {
    name: String,
    schema: Schema,
    def: OpDef,
    twin: Option<Twin>,
    member: Option<Member>,
}

/// Handle of a registered operator. Handles are equal if their registration is the same.
#[derive(Clone, Copy)]
pub struct Op(&'static RegisteredOp);

impl RegisteredOp {
    /// An operator to register. `twin` is the resolved functional form of a mutating operator, `member` the member call of a
    /// `_foreach_*` operator.
    ///
    /// # Errors
    /// The schema of `def` is none.
    pub fn new(def: OpDef, twin: Option<Twin>, member: Option<Member>) -> Result<RegisteredOp> {
        let schema = Schema::parse(def.schema)?;
        Ok(RegisteredOp { name: schema.full_name(), schema, def, twin, member })
    }
    /// Full name: `aten.add.Tensor`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Op {
    /// Registers an operator for the life of the process.
    pub fn register(op: RegisteredOp) -> Op {
        Op(Box::leak(Box::new(op)))
    }
    /// Full name: `aten.add.Tensor`.
    pub fn name(self) -> &'static str {
        &self.0.name
    }
    /// Whether PyTorch has the operator. The namespace `restride` holds functional forms that PyTorch lacks.
    pub fn in_torch(self) -> bool {
        self.schema().namespace != "restride"
    }
    /// Parsed schema.
    pub fn schema(self) -> &'static Schema {
        &self.0.schema
    }
    /// Declaration.
    pub fn def(self) -> &'static OpDef {
        &self.0.def
    }
    /// Functional form of a mutating operator.
    pub fn twin(self) -> Option<&'static Twin> {
        self.0.twin.as_ref()
    }
    /// The operator that this `_foreach_*` one applies to each member.
    pub fn member(self) -> Option<Op> {
        self.0.member.as_ref().map(|m| m.op)
    }
    /// Whether a call of an operator on lists is a call for each member from the start: the members write, are views, or have an
    /// effect.
    pub fn is_each_member(self, mutates: bool) -> bool {
        self.member().is_some_and(|m| mutates || m.def().effectful || m.is_view())
    }
    /// Arguments of the member call `i` of a `_foreach_*` operator. `item` selects the i-th element of a 1-d tensor. Missing
    /// trailing arguments take their defaults, and an empty list gives `None` for an optional argument.
    pub fn member_args<V: Clone, S: Clone>(
        self,
        args: &[Arg<V, S>],
        i: usize,
        mut item: impl FnMut(&V, usize) -> Result<V>,
    ) -> Result<Vec<Arg<V, S>>> {
        let member = self.0.member.as_ref().ok_or_else(|| OpError::new(format!("{self} has no member operator")))?;
        let short = || OpError::new(format!("the lists of {self} are of different lengths"));
        let args = Args(args);
        let at = |k: u8| args.0.get(k as usize).unwrap_or(&Arg::None);
        let mut out = Vec::with_capacity(member.args.len());
        for from in &member.args {
            let position = out.len();
            // An empty list says that no member has the argument.
            let lacks = |empty: bool| empty && member.op.schema().args.get(position).is_some_and(|a| a.optional);
            out.push(match *from {
                MemberArg::Whole(k) => at(k).clone(),
                MemberArg::Item(k) => Arg::Value(item(args.tensor(k as usize)?, i)?),
                MemberArg::Spread(k) => match at(k) {
                    Arg::Values(vs) if lacks(vs.is_empty()) => Arg::None,
                    Arg::Scalars(ss) if lacks(ss.is_empty()) => Arg::None,
                    Arg::Values(vs) => match vs.get(i).ok_or_else(short)? {
                        Some(v) => Arg::Value(v.clone()),
                        None => Arg::None,
                    },
                    Arg::Scalars(ss) => Arg::Scalar(ss.get(i).ok_or_else(short)?.clone()),
                    _ => return Err(OpError::new(format!("argument {k} of {self} is not a list"))),
                },
            });
        }
        Ok(out)
    }
    /// Whether the schema declares a written argument. [`Twin::when`] has operators that write undeclared.
    pub fn is_mutable(self) -> bool {
        self.0.schema.is_mutable()
    }
    /// Whether the results may be views of an argument.
    pub fn is_view(self) -> bool {
        self.0.def.view.is_some()
    }
    /// Whether restride can run the operator, by a kernel, view rule, decomposition, member or twin.
    pub fn can_run(self) -> bool {
        let d = self.def();
        !matches!(d.kernel, Kernel::None)
            || d.view.is_some()
            || d.decompose.is_some()
            || d.hop.is_some()
            || self.member().is_some_and(Op::can_run)
            || self.twin().is_some_and(|t| t.op.can_run())
    }
    /// Whether a call with these arguments writes memory.
    pub fn mutates<V>(self, args: &[Arg<V, Expr>]) -> bool {
        match self.twin() {
            Some(Twin { when: Some(when), .. }) => {
                let plain: Vec<Arg<(), Expr>> = args.iter().map(|a| a.map_values(|_| ())).collect();
                when(&Args(&plain))
            }
            Some(_) => true,
            None => self.is_mutable() || self.def().metadata,
        }
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Op {}
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
