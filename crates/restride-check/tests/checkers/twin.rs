//! The checker's model: memory as a list of cells, each holding the name of one element of one value. Elements that a
//! program only moves keep their names.

use restride_ir::{
    Arg, Args, BufferKind, Dim, Graph, Id, Kernel, Layout, Meta, Movement, NodeId, OutputKind, Place, Placement,
    Program, ReuseKind, Scalar, Step, Tiling, ValueId, ViewOutcome, ViewRule, border_layout, fused_body, placed_args,
};
use std::collections::{BTreeMap, BTreeSet};

type Names = Vec<u32>;

/// What is wrong first.
#[derive(Debug)]
pub struct Wrong {
    pub what: String,
    /// For what is read: the first element, counted row by row, that is not there.
    pub element: Option<usize>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong { what, element: None }
    }
}

impl From<&str> for Wrong {
    fn from(what: &str) -> Wrong {
        what.to_string().into()
    }
}

struct Model<'a> {
    program: &'a Program,
    /// Names of each value's elements in row-major order.
    names: BTreeMap<ValueId, Names>,
    cells: Vec<Vec<Option<u32>>>,
    /// Cells that may be written.
    writable: Vec<bool>,
    /// Exchanges that were started and not waited for.
    flights: Vec<Flight>,
    /// Nodes that exchange elements and have not run, the next one last.
    exchanges: Vec<NodeId>,
}

/// Cells of a buffer.
type Cells = (usize, BTreeSet<usize>);

/// The memory of an exchange until the wait for it.
struct Flight {
    result: ValueId,
    reads: Vec<Option<Place>>,
    write: Option<Place>,
    operands: Vec<Cells>,
    target: Cells,
}

/// Walks the steps. All tensors are of `f32`.
pub fn check(program: &Program, placement: &Placement) -> Result<(), Wrong> {
    let (graph, model) = (program.graph(), walk(program, placement, placement.steps.len())?);
    for (i, (arg, spec)) in graph.outputs.iter().zip(&program.signature.outputs).enumerate() {
        let Arg::Value(v) = arg else { continue };
        let meta = graph.tensor(*v).known().unwrap();
        let (kind, layout) = match spec.kind {
            OutputKind::Mutation(k) => (BufferKind::Input(k), graph.tensor(graph.inputs[k]).known().unwrap().layout),
            _ => (BufferKind::Output(i), border_layout(&meta)),
        };
        let buffer = placement.buffers.iter().find(|(_, b)| b.kind == kind).ok_or("an output without memory")?.0;
        model.read(*v, &Place { buffer, layout })?;
    }
    if model.flights.is_empty() { Ok(()) } else { Err("an exchange is never waited for".into()) }
}

/// The first element of a value that a place does not hold before a step.
pub fn missed(program: &Program, placement: &Placement, step: usize, v: ValueId, place: &Place) -> Option<usize> {
    walk(program, placement, step).ok()?.read(v, place).err().and_then(|wrong| wrong.element)
}

/// No place of these small programs reaches as far.
const FAR: i64 = 1 << 16;

/// An invalid placement: it names values that do not exist, has other numbers of operands, or numbers beyond all
/// memory.
fn well_formed(program: &Program, placement: &Placement) -> Result<(), Wrong> {
    let graph = program.graph();
    let near = |numbers: &[i64]| numbers.iter().all(|n| (-FAR..=FAR).contains(n));
    for (id, b) in placement.buffers.iter() {
        let there = match b.kind {
            BufferKind::Arena => true,
            BufferKind::Input(i) => i < graph.inputs.len(),
            BufferKind::Output(i) => i < graph.outputs.len(),
        };
        if !there || b.bytes < 0 {
            return Err(format!("{id} is no memory").into());
        }
        if b.kind != BufferKind::Arena && placement.buffers.iter().any(|(o, c)| o != id && c.kind == b.kind) {
            return Err(format!("{id} is another buffer's memory").into());
        }
    }
    let place = |place: &Place| -> Result<(), Wrong> {
        let Layout { sizes, strides, offset, .. } = &place.layout;
        let whole = sizes.len() == strides.len() && near(sizes) && sizes.iter().all(|n| *n >= 0);
        // Where nothing is, or nothing follows, the numbers do not count.
        let empty = sizes.contains(&0);
        let used: Vec<i64> = sizes.iter().zip(strides).filter(|(n, _)| **n > 1).map(|(_, s)| *s).collect();
        let all = sizes.iter().fold(1i64, |n, size| n.saturating_mul(*size));
        let fits = whole && (empty || near(&used) && near(&[*offset, all]));
        if fits && place.buffer.index() < placement.buffers.len() { Ok(()) } else { Err("no place".into()) }
    };
    for step in &placement.steps {
        match step {
            Step::Run { node, reads, writes } => {
                let Some(n) = graph.nodes.get(*node) else { return Err("no node".into()) };
                if reads.len() != n.operands().count() || writes.len() != n.results.len() {
                    return Err("another number of operands or results".into());
                }
                reads.iter().chain(writes).flatten().try_for_each(place)?;
            }
            Step::Move { value, from, to } => {
                if value.index() >= graph.values.len() {
                    return Err("no value".into());
                }
                place(from).and(place(to))?;
            }
            Step::Free { node } if graph.nodes.get(*node).is_none() => return Err("no node".into()),
            Step::Free { .. } => {}
        }
    }
    Ok(())
}

/// Memory after the first steps.
fn walk<'a>(program: &'a Program, placement: &Placement, steps: usize) -> Result<Model<'a>, Wrong> {
    well_formed(program, placement)?;
    let graph = program.graph();
    let cells = placement.buffers.iter().map(|(_, b)| vec![None; (b.bytes.min(FAR) / 4) as usize]).collect();
    let writable = placement.buffers.iter().map(|(_, b)| match b.kind {
        BufferKind::Input(i) => program.signature.outputs.iter().any(|o| o.kind == OutputKind::Mutation(i)),
        _ => true,
    });
    let writable = writable.collect();
    let mut exchanges: Vec<NodeId> =
        graph.ordered().filter(|(_, n)| matches!(n.op.def().kernel, Kernel::Collective(_))).map(|(id, _)| id).collect();
    exchanges.reverse();
    let mut model = Model { program, names: names(program), cells, writable, flights: Vec::new(), exchanges };
    let mut seen = BTreeSet::new();
    for (id, b) in placement.buffers.iter() {
        if let BufferKind::Input(i) = b.kind {
            let v = graph.inputs[i];
            let layout = graph.tensor(v).known().unwrap().layout;
            let cells = model.at(&Place { buffer: id, layout })?;
            for (cell, name) in cells.iter().zip(&model.names[&v]) {
                model.cells[id.index()][*cell] = Some(*name);
            }
        }
    }
    for step in &placement.steps[..steps] {
        match step {
            Step::Free { node } => {
                if !seen.insert(*node) {
                    return Err("a node is carried out twice".into());
                }
            }
            Step::Move { value, from, to } => model.moved(*value, from, to)?,
            Step::Run { node, reads, writes } => {
                if !seen.insert(*node) {
                    return Err("a node is carried out twice".into());
                }
                model.run(*node, reads, writes)?;
            }
        }
    }
    Ok(model)
}

impl Model<'_> {
    fn at(&self, place: &Place) -> Result<Vec<usize>, Wrong> {
        let cells = place.layout.cells();
        let room = self.cells[place.buffer.index()].len() as i64;
        if cells.iter().any(|c| *c < 0 || *c >= room) {
            return Err(format!("{} {} leaves the buffer", place.buffer, place.layout).into());
        }
        Ok(cells.into_iter().map(|c| c as usize).collect())
    }

    fn read(&self, v: ValueId, place: &Place) -> Result<Vec<usize>, Wrong> {
        let at = self.at(place)?;
        let Some(names) = self.names.get(&v) else { return Err("what no step makes is read".into()) };
        self.apart(&at, place, false)?;
        if at.len() != names.len() {
            return Err(format!("%{} is read with other sizes", self.program.graph().values[v].name).into());
        }
        for (k, (cell, name)) in at.iter().zip(names).enumerate() {
            if self.cells[place.buffer.index()][*cell] != Some(*name) {
                let what = format!("%{} is not at {} {}", self.program.graph().values[v].name, place.buffer, cell);
                return Err(Wrong { what, element: Some(k) });
            }
        }
        Ok(at)
    }

    fn write(&mut self, v: ValueId, place: &Place) -> Result<(), Wrong> {
        let at = self.at(place)?;
        let Some(names) = self.names.get(&v).cloned() else { return Err("what no step makes is written".into()) };
        if at.len() != names.len() {
            return Err("written with other sizes".into());
        }
        self.apart(&at, place, true)?;
        if !at.is_empty() && !self.writable[place.buffer.index()] {
            return Err(format!("{} is only read", place.buffer).into());
        }
        for (cell, name) in at.iter().zip(names) {
            self.cells[place.buffer.index()][*cell] = Some(name);
        }
        Ok(())
    }

    fn moved(&mut self, v: ValueId, from: &Place, to: &Place) -> Result<(), Wrong> {
        let (src, dst) = (self.read(v, from)?, self.at(to)?);
        if from.buffer == to.buffer {
            // The order of the copy is not said: nothing may be written that is read as another element.
            for (i, d) in dst.iter().enumerate() {
                if src.iter().enumerate().any(|(j, s)| s == d && i != j) {
                    return Err("a move onto what it reads".into());
                }
            }
        }
        self.write(v, to)?;
        self.read(v, to).map(|_| ())
    }

    /// No cell that a step reads is received by an exchange under way, and none that it writes is sent by one.
    fn apart(&self, cells: &[usize], place: &Place, writes: bool) -> Result<(), Wrong> {
        let meets = |(buffer, own): &Cells| *buffer == place.buffer.index() && cells.iter().any(|c| own.contains(c));
        let held = |f: &Flight| meets(&f.target) || writes && f.operands.iter().any(meets);
        if self.flights.iter().any(held) { Err("memory of an exchange under way is used".into()) } else { Ok(()) }
    }

    /// The end of an exchange: its result is where it was received.
    fn wait(&mut self, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) -> Result<(), Wrong> {
        let node = &self.program.graph().nodes[id];
        let started = node.operands().next().unwrap();
        let Some(k) = self.flights.iter().position(|f| f.result == started) else {
            return Err("a wait for no exchange".into());
        };
        let flight = self.flights.remove(k);
        if reads[0] != flight.write || reads[1..] != flight.reads[..] || writes[0] != flight.write {
            return Err("a wait elsewhere".into());
        }
        self.read(started, flight.write.as_ref().unwrap()).map(|_| ())
    }

    fn run(&mut self, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) -> Result<(), Wrong> {
        let graph = self.program.graph();
        let node = &graph.nodes[id];
        if node.op.def().awaits {
            return self.wait(id, reads, writes);
        }
        let exchange = matches!(node.op.def().kernel, Kernel::Collective(_));
        if exchange && self.exchanges.pop() != Some(id) {
            return Err("exchanges in another order".into());
        }
        let operands: Vec<ValueId> = node.operands().collect();
        let args: Vec<usize> = node.args.iter().enumerate().flat_map(|(i, a)| a.values().map(move |_| i)).collect();
        for (k, (write, r)) in writes.iter().zip(&node.results).enumerate() {
            let write = write.as_ref().ok_or("a result without a place")?;
            let at = self.at(write)?;
            let index: BTreeMap<usize, usize> = at.iter().enumerate().map(|(i, c)| (*c, i)).collect();
            if index.len() != at.len() {
                return Err("a result with several elements in one cell".into());
            }
            // Which operands meet the result, and whether only element by element.
            let mut met: Vec<(usize, bool)> = Vec::new();
            for (o, (v, read)) in operands.iter().zip(reads).enumerate() {
                let read = read.as_ref().ok_or("an operand without a place")?;
                let cells = self.read(*v, read)?;
                if read.buffer != write.buffer || !cells.iter().any(|c| index.contains_key(c)) {
                    continue;
                }
                let sizes = &graph.tensor(*r).known().unwrap().layout.sizes;
                let wide = read.layout.expand(sizes).map(|l| l.cells());
                let same = wide.is_ok_and(|w| w.iter().zip(&at).all(|(a, b)| *a as usize == *b));
                met.push((o, same));
            }
            if let Some(body) = fused_body(node) {
                let body = &self.program.graphs[body];
                for &(o, same) in &met {
                    let read = reads[o].as_ref().ok_or("an operand without a place")?;
                    if !tiles_apart(body, k, &at, o, &self.at(read)?, same) {
                        return Err("a tile writes what a body reads".into());
                    }
                }
            }
            let licence = |o: usize, f: &dyn Fn(ReuseKind) -> bool| {
                let single = matches!(node.args[args[o]], Arg::Value(_));
                let mut all = node.op.def().reuse.iter();
                single && all.any(|l| l.arg as usize == args[o] && l.result as usize == k && f(l.kind))
            };
            let by_index = |kind: ReuseKind| matches!(kind, ReuseKind::SameIndex | ReuseKind::RowWise { .. });
            let alike = met.iter().all(|m| m.1) && met.iter().any(|m| licence(m.0, &by_index));
            for &(o, _) in met.iter().filter(|_| !node.op.def().fused) {
                let carried = licence(o, &|l| l == ReuseKind::Carried)
                    && met.len() == 1
                    && reads[o].as_ref().is_some_and(|p| p == write);
                // The operand's last cells, where the operator says of these operands that it copes.
                let ends = || reads[o].as_ref().is_some_and(|p| p.layout.cells().ends_with(&write.layout.cells()));
                let copes = || {
                    let args = placed_args(graph, id, reads).ok();
                    args.zip(node.op.def().trailing).is_some_and(|(args, may)| may(&Args(&args)))
                };
                let trails = licence(o, &|l| l == ReuseKind::Trailing) && met.len() == 1 && ends();
                let first = licence(o, &|l| l == ReuseKind::ReadsFirst);
                if !(alike || carried || first || trails && copes()) {
                    return Err(format!("{} writes what it reads", node.op).into());
                }
            }
            for other in &writes[..k] {
                let other = other.as_ref().ok_or("a result without a place")?;
                if other.buffer == write.buffer && self.at(other)?.iter().any(|c| index.contains_key(c)) {
                    return Err("two results in one cell".into());
                }
            }
        }
        for (write, r) in writes.iter().zip(&node.results) {
            self.write(*r, write.as_ref().ok_or("a result without a place")?)?;
        }
        if exchange {
            let cells = |p: &Place| Ok::<Cells, Wrong>((p.buffer.index(), self.at(p)?.into_iter().collect()));
            let operands = reads.iter().flatten().map(cells).collect::<Result<_, _>>()?;
            let target = cells(writes[0].as_ref().ok_or("a result without a place")?)?;
            let (result, reads, write) = (node.results[0], reads.to_vec(), writes[0].clone());
            self.flights.push(Flight { result, reads, write, operands, target });
        }
        Ok(())
    }
}

/// Whether the cells of a body's result and of an operand may be the same, element by element: no call behind the one that makes the
/// result reads a shared cell, in any tile.
fn tiles_apart(body: &Graph, result: usize, written: &[usize], operand: usize, read: &[usize], same: bool) -> bool {
    let tiling = Tiling::of(body).unwrap();
    let (r, v) = (body.output_values().nth(result).unwrap(), body.inputs[operand]);
    // The smallest tile that an element is in: its index along each dimension that is cut, if it has that dimension.
    let tile = |v: ValueId, element: usize| -> Vec<Option<i64>> {
        let sizes = &body.values[v].ty.tensor().unwrap().known().unwrap().layout.sizes;
        let mut rest = element as i64;
        let mut index = vec![0; sizes.len()];
        for d in (0..sizes.len()).rev() {
            (index[d], rest) = (rest % sizes[d], rest / sizes[d]);
        }
        let along = tiling.cut_of(v);
        let cut = (0..tiling.sizes.len()).filter(|d| tiling.cut[*d] && tiling.sizes[*d] > 1);
        cut.map(|d| along.iter().position(|a| *a == Some(d)).map(|i| index[i])).collect()
    };
    let maker = body.order.iter().position(|n| body.nodes[*n].results.contains(&r)).unwrap();
    let reads = |n: &NodeId| body.nodes[*n].operands().any(|o| o == v);
    if body.order[maker + 1..].iter().any(reads) || reads(&body.order[maker]) && !same {
        return false;
    }
    written.iter().enumerate().all(|(i, cell)| {
        let by = tile(r, i);
        read.iter()
            .enumerate()
            .filter(|(_, c)| *c == cell)
            .all(|(j, _)| tile(v, j) == by && by.iter().all(Option::is_some))
    })
}

/// Names of all elements: fresh ones for inputs and results of kernels, those of the operands for what only moves.
fn names(program: &Program) -> BTreeMap<ValueId, Names> {
    let graph = program.graph();
    let mut next = 0;
    let mut fresh = |v: ValueId| -> Names {
        let n = graph.tensor(v).known().unwrap().layout.numel() as u32;
        next += n;
        (next - n..next).collect()
    };
    let mut names: BTreeMap<ValueId, Names> = BTreeMap::new();
    for &v in &graph.inputs {
        names.insert(v, fresh(v));
    }
    for (_, node) in graph.ordered() {
        let metas: Vec<Arg<Meta, Scalar>> = node
            .args
            .iter()
            .map(|a| {
                // Row-major: the cell of an element is its number.
                let meta = |v: &ValueId| {
                    let m = graph.tensor(*v).known().unwrap();
                    Ok::<_, ()>(Meta { layout: Layout::contiguous(&m.layout.sizes), ..m })
                };
                a.try_map(meta, |e| Ok(e.constant().unwrap())).unwrap()
            })
            .collect();
        let view = |rule: &ViewRule| {
            let integers: Vec<Arg<Meta, i64>> =
                metas.iter().map(|a| a.try_map(|m| Ok::<_, ()>(m.clone()), |s| Ok(s.as_i64())).unwrap()).collect();
            match (rule.known)(&Args(&integers)).unwrap() {
                ViewOutcome::Views(v) => v[0].layout.cells(),
                _ => panic!("no view"),
            }
        };
        if node.op.def().fused {
            node.results.iter().for_each(|r| drop(names.insert(*r, fresh(*r))));
            continue;
        }
        let r = node.results[0];
        let operand = |i: u8| match &node.args[i as usize] {
            Arg::Value(v) => names[v].clone(),
            _ => panic!("no tensor"),
        };
        let def = node.op.def();
        let made = if let Some(rule) = &def.view {
            let base = operand(0);
            view(rule).iter().map(|c| base[*c as usize]).collect()
        } else {
            match &def.movement {
                Some(Movement::Same) => operand(0),
                Some(Movement::Scatter { base, src, region }) => {
                    let mut all = operand(*base);
                    for (cell, name) in view(region).iter().zip(operand(*src)) {
                        all[*cell as usize] = name;
                    }
                    all
                }
                Some(Movement::Assemble(pieces)) => {
                    let meta = graph.tensor(r).known().unwrap();
                    let operands: Vec<ValueId> = node.operands().collect();
                    let mut all = vec![u32::MAX; meta.layout.numel() as usize];
                    for piece in pieces(&Args(&metas), &Layout::contiguous(&meta.layout.sizes)).unwrap() {
                        for (cell, name) in piece.region.cells().iter().zip(&names[&operands[piece.operand]]) {
                            all[*cell as usize] = *name;
                        }
                    }
                    assert!(!all.contains(&u32::MAX));
                    all
                }
                Some(Movement::View(_)) | None => fresh(r),
            }
        };
        names.insert(r, made);
    }
    assert!(
        graph.values.iter().all(|(_, v)| v.ty.tensor().is_none_or(|t| t
            .layout
            .sizes
            .iter()
            .all(|n| n.known().is_some())))
    );
    names
}
