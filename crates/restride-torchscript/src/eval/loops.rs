//! Loops: unrolled where numbers decide, `while_loop` where data does.

use super::branches::Truth;
use super::carried::{CarriedShape, CarriedVariable};
use super::liveness::assigned;
use super::{BlockEnd, Env, Evaluator};
use crate::record::{RecordedBody, TensorRef};
use crate::syntax::ast::{Ast, AstKind, Stmt};
use crate::value::{ListRef, PyValue};
use restride_ir::{Arg, DType, Dim, Error, Expr, ExprFn, Result};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

impl Evaluator<'_, '_> {
    pub(super) fn while_statement(&mut self, env: &mut Env, condition: &Ast, body: &[Stmt]) -> Result<BlockEnd> {
        let source = env.source.clone();
        let scope = Scope::of(env);
        loop {
            self.step(1)?;
            self.at(&source, condition.line);
            let value = self.expression(env, condition)?;
            match self.truth(value)? {
                Truth::Known(false) => break,
                Truth::Known(true) => {}
                Truth::Number(_) | Truth::Data(_) => {
                    self.data_loop(env, &scope, condition, body, None)?;
                    break;
                }
            }
            match self.block(env, body)? {
                BlockEnd::Next | BlockEnd::Continue => {}
                BlockEnd::Break => break,
                other => return Ok(other),
            }
        }
        scope.leave(env);
        Ok(BlockEnd::Next)
    }

    pub(super) fn for_statement(&mut self, env: &mut Env, target: &Ast, iter: &Ast, body: &[Stmt]) -> Result<BlockEnd> {
        if let AstKind::Call { callee, args, .. } = &iter.kind
            && matches!(&callee.kind, AstKind::Name(n) if **n == *"range")
            && args.len() == 1
        {
            let trips = self.expression(env, &args[0].0)?;
            let trips = match trips {
                PyValue::Tensor(t) => PyValue::Num(self.rec.item(&t)?),
                other => other,
            };
            if let PyValue::Num(e) = &trips
                && e.is_learnt()
            {
                let trips = e.clone();
                self.data_loop(env, &Scope::of(env), target, body, Some(trips))?;
                return Ok(BlockEnd::Next);
            }
            let n = self.known_int(&trips, "the number of iterations")?;
            for i in 0..n.max(0) {
                self.step(1)?;
                self.assign(env, target, PyValue::int(i))?;
                match self.block(env, body)? {
                    BlockEnd::Next | BlockEnd::Continue => {}
                    BlockEnd::Break => break,
                    other => return Ok(other),
                }
            }
            return Ok(BlockEnd::Next);
        }
        let over = self.expression(env, iter)?;
        for item in self.unpacked(&over)? {
            self.step(1)?;
            self.assign(env, target, item)?;
            match self.block(env, body)? {
                BlockEnd::Next | BlockEnd::Continue => {}
                BlockEnd::Break => break,
                other => return Ok(other),
            }
        }
        Ok(BlockEnd::Next)
    }

    /// A loop whose end depends on data. Variables of `scope` that it assigns are carried as tensors; `at` is the condition, or with
    /// `trips` the loop's variable.
    fn data_loop(&mut self, env: &mut Env, scope: &Scope, at: &Ast, body: &[Stmt], trips: Option<Expr>) -> Result<()> {
        let mut names: Vec<Arc<str>> = Vec::new();
        assigned(body, &mut names);
        names.retain(|n| env.vars.contains_key(n) && scope.has(n));
        if trips.is_none() {
            // A condition variable is one of them.
            if let AstKind::Name(n) = &at.kind
                && !names.contains(n)
            {
                return Err(Error::unsupported("a loop on data whose condition it never changes"));
            }
        }
        let mut carried: Vec<CarriedVariable> = Vec::new();
        let mut initial: Vec<TensorRef> = Vec::new();
        for name in names {
            let value = env.vars[&name].clone();
            // Nothing reads it before the loop sets it.
            if matches!(value, PyValue::Poison(_)) && !value.is_uninitialized() {
                continue;
            }
            let first = initial.len();
            let shape = self.carried_shape(&value, &mut initial)?;
            carried.push(CarriedVariable { name, shape, first });
        }
        let seen = self.seen_besides(&carried, &initial);
        let most = match &trips {
            None if super::bounds::appends(body) => self.most_iterations(env, at, body)?,
            _ => None,
        };
        if let Some(most) = trips.as_ref().or(most.as_ref()) {
            initial.push(self.rec.scalar_tensor(&Expr::Int(0), DType::I64)?);
            let code = CountedLoop { scope, at, body, most: most.clone(), trips, seen };
            return self.counted_loop(env, &code, carried, initial);
        }
        let condition = self.while_condition(env, at, &carried, &initial)?;
        // The body.
        self.rec.enter("while_loop_body_graph")?;
        let inputs = self.carried_inputs(&initial, &seen);
        let outcome = self.loop_body(env, body, &carried, &inputs, (None, false), &[]);
        let left = self.rec.leave();
        let outcome = outcome?;
        if self.set_before(env, &outcome)? {
            return self.data_loop(env, scope, at, body, None);
        }
        let results = self.rec.while_loop(condition, (left, outcome.outputs), &initial)?;
        self.note_sharing(&results, &initial, &seen);
        self.loop_results(env, &carried, &results)
    }

    /// Records the condition of a `while`.
    fn while_condition(
        &mut self,
        env: &Env,
        at: &Ast,
        carried: &[CarriedVariable],
        initial: &[TensorRef],
    ) -> Result<(RecordedBody, TensorRef)> {
        self.rec.enter("while_loop_cond_graph")?;
        let inputs: Vec<TensorRef> = initial.iter().map(|t| self.rec.carried(t)).collect();
        let mut inside = self.inside(env, carried, &inputs, false)?;
        let value = self.expression(&mut inside, at)?;
        let flag = match self.truth(value)? {
            Truth::Known(b) => self.rec.condition_tensor(&Expr::Bool(b))?,
            Truth::Number(e) => self.rec.condition_tensor(&e)?,
            Truth::Data(t) => t,
        };
        Ok((self.rec.leave(), flag))
    }

    /// How often a `while` runs at most, if its condition has a count.
    fn most_iterations(&mut self, env: &mut Env, at: &Ast, body: &[Stmt]) -> Result<Option<Expr>> {
        let Some(found) = super::bounds::limit_of(env, at, body) else { return Ok(None) };
        let Some(PyValue::Num(start)) = env.vars.get(&found.counter).cloned() else { return Ok(None) };
        let PyValue::Num(limit) = self.expression(env, found.limit)? else { return Ok(None) };
        let left = limit.minus(&start).plus(&Expr::Int(i64::from(found.inclusive)));
        // The condition held before the count was raised.
        Ok(Some(Expr::call(ExprFn::Max, vec![Expr::Int(1), left])))
    }

    /// For each tensor that a loop starts from, whether the code sees its memory otherwise than through the variable.
    fn seen_besides(&self, carried: &[CarriedVariable], initial: &[TensorRef]) -> Vec<bool> {
        let mut seen = vec![true; initial.len()];
        for variable in carried.iter().filter(|v| v.is_tensor()) {
            // The variable itself and the loop hold it.
            seen[variable.first] = self.rec.is_seen_besides(&initial[variable.first], 2);
        }
        for variable in carried.iter().filter(|v| matches!(v.shape, CarriedShape::Number)) {
            seen[variable.first] = false;
        }
        seen
    }

    /// Inputs of a body for the tensors that a loop starts from, whose memory they have in its first iteration.
    fn carried_inputs(&mut self, initial: &[TensorRef], seen: &[bool]) -> Vec<TensorRef> {
        let inputs: Vec<TensorRef> = initial.iter().map(|t| self.rec.carried(t)).collect();
        self.note_sharing(&inputs, initial, seen);
        inputs
    }

    /// Notes that tensors may be those that a loop starts from, where those are seen.
    fn note_sharing(&mut self, tensors: &[TensorRef], initial: &[TensorRef], seen: &[bool]) {
        for ((t, from), _) in tensors.iter().zip(initial).zip(seen).filter(|(_, seen)| **seen) {
            self.rec.may_share(t, from);
        }
    }

    /// Gives variables that the code has not initialized before a loop values of the types that an iteration sets; false if there are none.
    fn set_before(&mut self, env: &mut Env, outcome: &LoopOutcome) -> Result<bool> {
        for (name, value) in &outcome.set {
            let value = self.placeholder(name, value)?;
            env.vars.insert(name.clone(), value);
        }
        Ok(!outcome.set.is_empty())
    }

    /// A loop that counts its iterations. `initial` are the carried tensors and the counter.
    fn counted_loop(
        &mut self,
        env: &mut Env,
        code: &CountedLoop<'_>,
        carried: Vec<CarriedVariable>,
        mut initial: Vec<TensorRef>,
    ) -> Result<()> {
        let (mut left, mut outcome) = self.counted_body(env, code, &carried, &initial, &[])?;
        if self.set_before(env, &outcome)? {
            return self.data_loop(env, code.scope, code.at, code.body, code.trips.clone());
        }
        let leaves = initial.len() - 1;
        let growing = outcome.growing;
        if !growing.is_empty() {
            // Once more, with room for the rows of all iterations.
            let counter = initial.pop().expect("the counter was added");
            let zero = Expr::Int(0);
            let rows = match code.most.less(&zero) {
                Some(false) => code.most.clone(),
                _ => Expr::call(ExprFn::Max, vec![zero, code.most.clone()]),
            };
            for grown in &growing {
                let sizes: Vec<Expr> = std::iter::once(rows.clone()).chain(grown.row.iter().cloned()).collect();
                let mut room =
                    self.rec.tensor("aten.zeros.default", vec![Arg::Scalars(sizes), Arg::DType(grown.dtype)])?;
                match &grown.place {
                    GrowingPlace::Variable(k) => {
                        if !grown.first.is(0) {
                            let parts = vec![Some(initial[*k].clone()), Some(room)];
                            room = self.rec.tensor("aten.cat.default", vec![Arg::Values(parts)])?;
                        }
                        initial[*k] = room;
                    }
                    GrowingPlace::List(_) => initial.push(room),
                }
            }
            initial.push(counter);
            (left, outcome) = self.counted_body(env, code, &carried, &initial, &growing)?;
        }
        let condition = match &code.trips {
            None => self.while_condition(env, code.at, &carried, &initial)?,
            Some(trips) => {
                // A tensor, which a file can give to a body; not a number.
                let n = self.rec.scalar_tensor(trips, DType::I64)?;
                self.rec.enter("while_loop_cond_graph")?;
                let inputs: Vec<TensorRef> = initial.iter().map(|t| self.rec.carried(t)).collect();
                let i = inputs.last().expect("the counter was added").clone();
                let flag = self.rec.tensor("aten.lt.Tensor", vec![Arg::Value(i), Arg::Value(n)]);
                (self.rec.leave(), flag?)
            }
        };
        let mut results = self.rec.while_loop(condition, (left, outcome.outputs), &initial)?;
        if code.trips.is_none() {
            self.cut_rows(&growing, leaves, &mut results)?;
        }
        self.note_sharing(&results, &initial, &code.seen);
        self.loop_results(env, &carried, &results)?;
        for (list, rows) in growing.iter().filter_map(Growing::list).zip(&results[leaves..]) {
            for (_, item) in outcome.shown.iter().filter(|(l, _)| Rc::ptr_eq(l, list)) {
                self.rec.may_share(rows, item);
            }
            self.note_list(list);
            list.borrow_mut().push(PyValue::Rows(rows.clone()));
        }
        Ok(())
    }

    /// Cuts rows to as many as there were iterations.
    fn cut_rows(&mut self, growing: &[Growing], leaves: usize, results: &mut [TensorRef]) -> Result<()> {
        let Some(counter) = results.last().filter(|_| !growing.is_empty()).cloned() else { return Ok(()) };
        let count = self.rec.item(&counter)?;
        let mut list = leaves;
        for grown in growing {
            let k = match grown.place {
                GrowingPlace::Variable(k) => k,
                GrowingPlace::List(_) => {
                    list += 1;
                    list - 1
                }
            };
            let bounds = [Expr::Int(0), Expr::Int(0), grown.first.plus(&count)].map(Arg::Scalar);
            let args = std::iter::once(Arg::Value(results[k].clone())).chain(bounds).collect();
            results[k] = self.rec.tensor("aten.slice.Tensor", args)?;
        }
        Ok(())
    }

    fn counted_body(
        &mut self,
        env: &Env,
        code: &CountedLoop<'_>,
        carried: &[CarriedVariable],
        initial: &[TensorRef],
        growing: &[Growing],
    ) -> Result<(RecordedBody, LoopOutcome)> {
        self.rec.enter("while_loop_body_graph")?;
        let inputs = self.carried_inputs(initial, &code.seen);
        // In the body, a list has the items of the iterations before.
        let lists: Vec<(ListRef, Vec<PyValue>)> =
            growing.iter().filter_map(Growing::list).map(|l| (l.clone(), l.borrow().clone())).collect();
        let outcome =
            self.loop_body(env, code.body, carried, &inputs, (code.trips.as_ref().map(|_| code.at), true), growing);
        for (list, items) in lists {
            *list.borrow_mut() = items;
        }
        let left = self.rec.leave();
        Ok((left, outcome?))
    }

    /// Variables after a loop.
    fn loop_results(&mut self, env: &mut Env, carried: &[CarriedVariable], results: &[TensorRef]) -> Result<()> {
        for variable in carried {
            let mut tensors = results[variable.first..].iter().cloned();
            let value = self.carried_value(&variable.shape, &mut tensors, true)?;
            env.vars.insert(variable.name.clone(), value);
        }
        Ok(())
    }

    fn inside(&mut self, env: &Env, carried: &[CarriedVariable], inputs: &[TensorRef], numbers: bool) -> Result<Env> {
        let mut inside = env.inside();
        for variable in carried {
            let mut tensors = inputs[variable.first..].iter().cloned();
            // A condition on a number is one on its tensor.
            let value = self.carried_value(&variable.shape, &mut tensors, numbers)?;
            inside.vars.insert(variable.name.clone(), value);
        }
        Ok(inside)
    }

    /// Runs the body of a loop once. `target` is the variable of a `for`; of a loop that counts its
    /// iterations, the counter is the last input. `growing` says which
    /// inputs have room for the rows of all iterations.
    fn loop_body(
        &mut self,
        env: &Env,
        body: &[Stmt],
        carried: &[CarriedVariable],
        inputs: &[TensorRef],
        (target, counted): (Option<&Ast>, bool),
        growing: &[Growing],
    ) -> Result<LoopOutcome> {
        let mut inside = self.inside(env, carried, inputs, true)?;
        let counter = inputs.last().filter(|_| counted).cloned();
        let mut rows: Vec<GrowingRows> = Vec::new();
        if let Some(counter) = &counter {
            let i = self.rec.item(counter)?;
            if let Some(target) = target {
                self.assign(&mut inside, target, PyValue::Num(i.clone()))?;
            }
            // The counter and room for the rows of lists come behind what variables are.
            let lists = growing.iter().filter(|g| g.list().is_some()).count();
            let mut list_input = inputs.len() - 1 - lists;
            for grown in growing {
                let k = match &grown.place {
                    GrowingPlace::Variable(k) => *k,
                    GrowingPlace::List(_) => {
                        list_input += 1;
                        list_input - 1
                    }
                };
                let end = grown.first.plus(&i);
                let bounds = [Expr::Int(0), Expr::Int(0), end].map(Arg::Scalar);
                let args = std::iter::once(Arg::Value(inputs[k].clone())).chain(bounds).collect();
                let before = self.rec.tensor("aten.slice.Tensor", args)?;
                match &grown.place {
                    GrowingPlace::Variable(k) => {
                        if let Some(variable) = carried.iter().find(|v| v.first == *k && v.is_tensor()) {
                            inside.vars.insert(variable.name.clone(), PyValue::Tensor(before.clone()));
                        }
                    }
                    GrowingPlace::List(list) => list.borrow_mut().push(PyValue::Rows(before.clone())),
                }
                rows.push(GrowingRows { input: inputs[k].clone(), before });
            }
        }
        let writes = self.rec.writes();
        let (flow, changes) = self.transaction(|e| e.block(&mut inside, body))?;
        match flow {
            BlockEnd::Next | BlockEnd::Continue => {}
            _ => return Err(Error::unsupported("a loop whose end depends on data is left by break, return or raise")),
        }
        let mut outcome = LoopOutcome::default();
        let mut appended: Vec<(ListRef, TensorRef)> = Vec::new();
        for (place, now) in &changes {
            let Some((list, item)) = place.appended(now).filter(|_| counter.is_some()) else {
                return Err(Error::unsupported(format!(
                    "a loop that runs as often as data decides changes {}",
                    place.described()
                ))
                .help("let each iteration append one tensor to a list that torch.stack or torch.cat joins, or assign a tensor"));
            };
            if self.rec.shows_outside(&item) {
                if self.rec.is_written_since(&item, writes) {
                    return Err(Error::unsupported(
                        "a loop that runs as often as data decides appends a tensor to a list and writes into its memory",
                    )
                    .help("append a clone of the tensor"));
                }
                outcome.shown.push((list.clone(), item.clone()));
            }
            appended.push((list, item));
        }
        for variable in carried {
            let value = inside.vars.get(&variable.name).cloned().unwrap_or(PyValue::None);
            self.left_variable(variable, &value, (inputs, counter.as_ref()), (growing, &rows), &mut outcome)?;
        }
        for (list, item) in &appended {
            let known = growing.iter().position(|g| g.list().is_some_and(|l| Rc::ptr_eq(l, list)));
            match (known, &counter) {
                (Some(g), Some(counter)) => {
                    let one = vec![Arg::Value(item.clone()), Arg::Scalar(Expr::Int(0))];
                    let row = self.rec.tensor("aten.unsqueeze.default", one)?;
                    let made = self.with_row(&rows[g].input, &growing[g], counter, &row)?;
                    outcome.outputs.push(made);
                }
                _ => {
                    let ty = item.ty();
                    let first = Expr::Int(0);
                    let place = GrowingPlace::List(list.clone());
                    outcome.growing.push(Growing { place, first, row: ty.layout.sizes.to_vec(), dtype: ty.dtype });
                }
            }
        }
        for grown in &outcome.growing {
            if let Some(size) = grown.row.iter().find(|n| !self.rec.known_before_body(n)) {
                return Err(Error::unsupported(format!(
                    "a loop that runs as often as data decides appends tensors, of which each has a size of its own: {size}"
                ))
                .help("let the tensors have equal sizes, as by torch.nn.functional.pad"));
            }
        }
        if let Some(counter) = counter {
            let one = vec![Arg::Value(counter), Arg::Scalar(Expr::Int(1))];
            outcome.outputs.push(self.rec.tensor("aten.add.Scalar", one)?);
        }
        Ok(outcome)
    }

    /// Adds what an iteration leaves in a variable to the outcome.
    fn left_variable(
        &mut self,
        variable: &CarriedVariable,
        value: &PyValue,
        (inputs, counter): (&[TensorRef], Option<&TensorRef>),
        (growing, rows): (&[Growing], &[GrowingRows]),
        outcome: &mut LoopOutcome,
    ) -> Result<()> {
        let (name, k) = (&variable.name, variable.first);
        if let CarriedShape::Fixed(old) = &variable.shape
            && old.is_uninitialized()
            && !value.is_uninitialized()
        {
            outcome.set.push((name.clone(), value.clone()));
            return Ok(());
        }
        let grown = growing.iter().position(|g| matches!(g.place, GrowingPlace::Variable(at) if at == k));
        match (&variable.shape, value, counter) {
            (CarriedShape::Tensor, PyValue::Tensor(t), Some(counter)) => {
                let out = match grown {
                    Some(g) => {
                        let row = self.rec.appended(t, &rows[g].before);
                        let row = row.ok_or_else(|| Error::invalid(format!("{name} does not grow as before")))?;
                        self.with_row(&rows[g].input, &growing[g], counter, &row)?
                    }
                    None => match self.grows(t, &inputs[k])? {
                        Some(mut found) => {
                            found.place = GrowingPlace::Variable(k);
                            outcome.growing.push(found);
                            inputs[k].clone()
                        }
                        None => t.clone(),
                    },
                };
                outcome.outputs.push(out);
            }
            _ => self.left_tensors(name, &variable.shape, value, inputs, &mut outcome.outputs)?,
        }
        for (out, input) in outcome.outputs[k..].iter().zip(&inputs[k..]) {
            let (have, want) = (out.ty(), input.ty());
            if have.rank() != want.rank() || have.layout.sizes.iter().zip(&want.layout.sizes).any(|(a, b)| a != b) {
                return Err(Error::unsupported(format!(
                    "a loop that runs as often as data decides changes the sizes of {name} in each iteration: {want} becomes {have}"
                ))
                .help("a `for` may add one row with torch.cat([tensor, row]) to a tensor, or append one tensor to a list"));
            }
        }
        Ok(())
    }

    /// How an iteration adds a row to a tensor, if that is what it does.
    fn grows(&mut self, whole: &TensorRef, start: &TensorRef) -> Result<Option<Growing>> {
        let Some(row) = self.rec.appended(whole, start) else { return Ok(None) };
        let (start, row) = (start.ty(), row.ty());
        if !row.layout.sizes.first().is_some_and(|n| n.is(1)) || row.dtype != start.dtype || row.rank() != start.rank()
        {
            return Ok(None);
        }
        let first = start.layout.sizes[0].clone();
        let (row, dtype) = (start.layout.sizes[1..].to_vec(), start.dtype);
        Ok(Some(Growing { place: GrowingPlace::Variable(0), first, row, dtype }))
    }

    /// The tensor with the row of this iteration in its place.
    fn with_row(
        &mut self,
        rows: &TensorRef,
        growing: &Growing,
        counter: &TensorRef,
        row: &TensorRef,
    ) -> Result<TensorRef> {
        let mut wanted: Vec<Option<Expr>> = growing.row.iter().cloned().map(Some).collect();
        wanted.insert(0, None);
        if row.rank() != wanted.len() || row.dtype() != growing.dtype {
            return Err(Error::unsupported(
                "a loop that runs as often as data decides appends tensors of different types",
            ));
        }
        let row = self.rec.fitted(row, &wanted)?;
        let at = vec![Arg::Value(counter.clone()), Arg::Scalar(growing.first.clone())];
        let at = self.rec.tensor("aten.add.Scalar", at)?;
        let at = self.rec.tensor("aten.reshape.default", vec![Arg::Value(at), Arg::Scalars(vec![Expr::Int(1)])])?;
        let args = vec![Arg::Value(rows.clone()), Arg::Scalar(Expr::Int(0)), Arg::Value(at), Arg::Value(row)];
        self.rec.tensor("aten.index_copy.default", args)
    }
}

/// The variables before a loop: what its body assigns besides is not read after it.
struct Scope(HashSet<Arc<str>>);

impl Scope {
    fn of(env: &Env) -> Scope {
        Scope(env.vars.keys().cloned().collect())
    }

    fn has(&self, name: &Arc<str>) -> bool {
        self.0.contains(name)
    }

    /// Forgets the variables of the loop alone.
    fn leave(self, env: &mut Env) {
        env.vars.retain(|name, _| self.has(name));
    }
}

/// A loop that counts its iterations.
struct CountedLoop<'a> {
    scope: &'a Scope,
    /// The variable of a `for`, the condition of a `while`.
    at: &'a Ast,
    body: &'a [Stmt],
    /// The number of iterations of a `for`.
    trips: Option<Expr>,
    /// No loop has more iterations.
    most: Expr,
    /// Which of the tensors that it starts from the code sees besides.
    seen: Vec<bool>,
}

/// A tensor or list that each iteration of a loop adds one row to.
struct Growing {
    place: GrowingPlace,
    /// Rows that a tensor has before the loop; 0 for a list, whose earlier items stay items.
    first: Expr,
    /// Sizes of one row.
    row: Vec<Expr>,
    dtype: DType,
}

impl Growing {
    fn list(&self) -> Option<&ListRef> {
        match &self.place {
            GrowingPlace::List(list) => Some(list),
            GrowingPlace::Variable(_) => None,
        }
    }
}

enum GrowingPlace {
    /// A carried variable, by its position.
    Variable(usize),
    List(ListRef),
}

/// The input of a body that has room for all rows, and the rows of the iterations before.
struct GrowingRows {
    input: TensorRef,
    before: TensorRef,
}

/// What one iteration leaves.
#[derive(Default)]
struct LoopOutcome {
    /// New contents of the inputs.
    outputs: Vec<TensorRef>,
    /// Tensors and lists that grow, which the inputs have no room for.
    growing: Vec<Growing>,
    /// Variables that the code has not initialized before the loop, with what the iteration sets.
    set: Vec<(Arc<str>, PyValue)>,
    /// Items that lists get which show memory from outside.
    shown: Vec<(ListRef, TensorRef)>,
}
