//! Names of computed results: the call with the names of its arguments.

use super::ReplayStop;
use super::cells::{NameRun, Runs};
use super::names::{NamedArg, TermKey};
use super::replay::{Replay, ReplayArgs, ReplayResult, ReplayTensor, ReplayValue, SMALL, skip};
use restride_ir::{Arg, Expr, Meta, Op, Scalar};

impl Replay<'_> {
    /// Names of a call's results; `None` among the types is a number.
    pub(super) fn compute(
        &mut self,
        op: Op,
        args: &ReplayArgs,
        types: &[Option<Meta>],
        key: u32,
    ) -> ReplayResult<Vec<Runs>> {
        if let ([Arg::Value(ReplayValue::Tensor(t)), ..], [Some(_)]) = (args, types) {
            let t = t.borrow().clone();
            if op == self.known.conj && t.dtype.is_complex() {
                return Ok(vec![self.conjugate(&t)?]);
            }
            if op == self.known.neg && t.dtype.is_complex() {
                return Ok(vec![self.negate_parts(&t)?]);
            }
            // Two negations cancel.
            if op == self.known.neg {
                let runs = self.read(&t)?;
                if let Some(before) = self.names.undone(op.name(), &runs) {
                    return Ok(vec![before]);
                }
            }
        }
        let draw = op.def().random.then_some(key);
        if let ([Some(ty)], true, None) = (types, op.def().pointwise, draw)
            && ty.layout.numel() <= SMALL
            && args.iter().all(|a| !matches!(a, Arg::Values(_)))
        {
            return Ok(vec![self.elements(op, args, ty)?]);
        }
        let strided = op.def().strided;
        let mut given = Vec::with_capacity(args.len());
        for a in args {
            given.push(self.given(a, strided)?);
        }
        let mut out = Vec::with_capacity(types.len());
        for (result, ty) in types.iter().enumerate() {
            let term = self.names.term(TermKey::Call { op: op.name(), args: given.clone(), result, draw });
            let (step, len) = ty.as_ref().map_or((8, 1), |t| (t.dtype.size() as i64, t.layout.numel()));
            let mut runs = Runs::default();
            runs.push(NameRun { term, first: 0, step, len });
            out.push(runs);
        }
        Ok(out)
    }

    /// Complex conjugation by parts: real parts keep their names, imaginary parts are negated.
    fn conjugate(&mut self, t: &ReplayTensor) -> ReplayResult<Runs> {
        let runs = self.read(t)?;
        let whole = self.fresh(&Meta::contiguous(t.dtype, &t.layout.sizes), &runs);
        let mut imaginary = ReplayTensor { dtype: t.dtype.real(), ..whole.clone() };
        imaginary.layout.strides.iter_mut().for_each(|s| *s *= 2);
        imaginary.layout.offset = 1;
        let ty = Meta::contiguous(imaginary.dtype, &t.layout.sizes);
        let negated =
            self.compute(self.known.neg, &[Arg::Value(ReplayValue::new(imaginary.clone()))], &[Some(ty)], 0)?;
        imaginary.cells.borrow_mut().write(&imaginary.layout, imaginary.dtype.size(), &negated[0]);
        self.read(&whole)
    }

    /// Complex negation by parts.
    fn negate_parts(&mut self, t: &ReplayTensor) -> ReplayResult<Runs> {
        let runs = self.read(t)?;
        let whole = self.fresh(&Meta::contiguous(t.dtype, &t.layout.sizes), &runs);
        let mut parts = ReplayTensor { dtype: t.dtype.real(), ..whole.clone() };
        parts.layout.strides.iter_mut().for_each(|s| *s *= 2);
        parts.layout.sizes.push(2);
        parts.layout.strides.push(1);
        let ty = Meta::contiguous(parts.dtype, &parts.layout.sizes);
        let negated = self.compute(self.known.neg, &[Arg::Value(ReplayValue::new(parts.clone()))], &[Some(ty)], 0)?;
        parts.cells.borrow_mut().write(&parts.layout, parts.dtype.size(), &negated[0]);
        self.read(&whole)
    }

    /// Pointwise: the name of each element is the call on its operands' elements.
    fn elements(&mut self, op: Op, args: &ReplayArgs, ty: &Meta) -> ReplayResult<Runs> {
        let sizes = &ty.layout.sizes;
        let mut columns = Vec::with_capacity(args.len());
        for a in args {
            columns.push(match a {
                Arg::Value(ReplayValue::Tensor(t)) => {
                    let t = t.borrow().clone();
                    let Ok(layout) = t.layout.expand(sizes) else {
                        return skip(format!("an operand of {op} does not broadcast to its result"));
                    };
                    Err((t.dtype, self.read(&ReplayTensor { layout, ..t })?))
                }
                other => Ok(self.given(other, false)?),
            });
        }
        let result = NamedArg::Other(ty.dtype.name().to_string());
        let mut out = Runs::default();
        for i in 0..ty.layout.numel() {
            let mut given = Vec::with_capacity(columns.len() + 1);
            for c in &columns {
                given.push(match c {
                    Ok(g) => g.clone(),
                    Err((dtype, runs)) => match runs.at(i) {
                        Some(name) => NamedArg::Element(*dtype, name),
                        None => return Err(ReplayStop::Fault(format!("an operand of {op} has too few elements"))),
                    },
                });
            }
            // Two negations cancel, for each element by itself.
            if op == self.known.neg
                && let [NamedArg::Element(_, name)] = given[..]
                && let Some(before) = self.names.applied_to(op.name(), name)
            {
                out.one(before);
                continue;
            }
            given.push(result.clone());
            out.one((self.names.term(TermKey::Call { op: op.name(), args: given, result: 0, draw: None }), 0));
        }
        Ok(out)
    }

    /// An argument as part of a name.
    pub(super) fn given(&mut self, arg: &Arg<ReplayValue, Expr>, strided: bool) -> ReplayResult<NamedArg> {
        Ok(match arg {
            Arg::Value(slot) => self.given_slot(slot, strided)?,
            Arg::Values(slots) => {
                let one = |s: &Option<ReplayValue>| match s {
                    Some(slot) => self.given_slot(slot, strided),
                    None => Ok(NamedArg::Other("None".into())),
                };
                NamedArg::List(slots.iter().map(one).collect::<ReplayResult<_>>()?)
            }
            Arg::Scalar(e) => self.number(e)?,
            Arg::Scalars(es) => NamedArg::List(es.iter().map(|e| self.number(e)).collect::<ReplayResult<_>>()?),
            Arg::Graph(_) => return skip("a graph is an argument of a call"),
            other => {
                let plain: Arg<(), ()> = other.try_map(|_| Ok::<_, ReplayStop>(()), |_| Ok(()))?;
                NamedArg::Other(format!("{plain:?}"))
            }
        })
    }

    fn given_slot(&mut self, slot: &ReplayValue, strided: bool) -> ReplayResult<NamedArg> {
        Ok(match slot {
            ReplayValue::Tensor(t) => {
                let t = t.borrow().clone();
                let content = self.content(&t)?;
                let strides = strided.then(|| t.layout.strides.to_vec());
                NamedArg::Tensor(t.dtype, t.layout.sizes.to_vec(), content, strides)
            }
            ReplayValue::Number(e) => self.number(e)?,
            ReplayValue::Other(text) => NamedArg::Other(text.clone()),
        })
    }

    fn number(&self, e: &Expr) -> ReplayResult<NamedArg> {
        Ok(match e.constant() {
            Some(Scalar::Int(i)) => NamedArg::Number(0, i as u64),
            Some(Scalar::Bool(b)) => NamedArg::Number(1, b as u64),
            Some(other) => NamedArg::Number(2, other.as_f64().to_bits()),
            None => {
                let mut symbols = Default::default();
                e.symbols(&mut symbols);
                let mut names = Vec::new();
                let mut text = e.to_string();
                for (i, s) in symbols.iter().enumerate() {
                    let Some(name) = self.learned.get(s.name()) else {
                        return skip(format!("the number {e} is not known"));
                    };
                    text = text.replace(s.name(), &format!("#{i}"));
                    names.push(*name);
                }
                NamedArg::Learned(text, names)
            }
        })
    }
}
