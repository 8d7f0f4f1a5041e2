//! Why values live where they do: every decision of the placement with its reason, and every copy that stays.

use super::{Prepared, bytes_of, graph_name, memory_name, only_moves, site};
use restride_ir::{
    Arg, BufferId, BufferKind, CollectTree, Error, ErrorKind, Graph, GraphId, Movement, Node, NodeId, Place, Placement,
    Program, Reason, Remark, RemarkKind, Result, Step, ValueId, carried_over,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Decisions of placement, taken and declined, and the copies that stay: each list with the most bytes first.
///
/// ```
/// use restride::{CompileOptions, Compiled, Inputs, OpenOptions};
/// # fn main() -> restride::Result<()> {
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/box_decode.pt2");
/// let program = restride::open(&path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default())?;
/// let all = compiled.prepare(&inputs)?.explain();
/// let largest = &all.done[0];
/// println!("{}: {} saves {} bytes", largest.site, largest.kind, largest.bytes);
///
/// // What became of one node of the program as it was exported.
/// let name = largest.site.results[0].clone();
/// let one = all.about(&name, &[&program, compiled.functional()])?;
/// assert!(one.done.contains(largest) && one.done.len() <= all.done.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explanation {
    /// Name of the program.
    pub program: String,
    /// Decisions taken.
    pub done: Vec<Decision>,
    /// Decisions declined.
    pub declined: Vec<Decision>,
    /// Copies that stay.
    pub copies: Vec<Copied>,
    /// All names that are known, for [`Explanation::about`].
    names: Vec<Arc<str>>,
    /// The nodes of the placed program, in order.
    sites: Vec<Arc<Site>>,
}

/// A node of a placed program. Prints as `%name = operator`, and the body that it is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Names of its results.
    pub results: Vec<String>,
    /// Name of its operator.
    pub op: String,
    /// Line of the user's source, as `model.py:12`.
    pub line: Option<String>,
    /// Path of the module that it is in, as `layers.0.attn`.
    pub module: Option<String>,
    /// Number of the node of the imported program that it comes from.
    pub key: u32,
    /// The piece, of a program that is cut where sizes are learnt from data.
    pub piece: usize,
    /// The body of a higher-order operator that it is in, by its name.
    pub body: Option<String>,
    /// The calls of a fused node, in order.
    pub inside: Vec<Inside>,
}

/// A call in the body of a fused node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Names of its results.
    pub results: Vec<String>,
    /// Name of its operator.
    pub op: String,
    /// Number of the node of the imported program that it comes from.
    pub key: u32,
}

/// One decision of the placement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The node that it is about.
    pub site: Arc<Site>,
    /// The kind of decision.
    pub kind: RemarkKind,
    /// Whether it was taken, and why not.
    pub reason: Reason,
    /// Whose memory it is about: a value, or the caller's (`output 0`). `None` where the decision names none.
    pub over: Option<String>,
    /// For a decision that was declined as memory is still read: the next reader; `None` is the caller.
    pub reader: Option<Arc<Site>>,
    /// The view by which it reads, where it does not read the value itself.
    pub through: Option<Arc<Site>>,
    /// Bytes that it saves, or that it costs not to take it.
    pub bytes: i64,
}

/// A copy that is left in the placed program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copied {
    /// The values that are copied: for a node, its results.
    pub values: Vec<String>,
    /// The node that is run to copy, or that the copy is made for; `None` is the caller.
    pub site: Option<Arc<Site>>,
    /// The node that made the value.
    pub maker: Option<Arc<Site>>,
    /// Where the copy goes, as `input x`, `output 0` or `the arena`.
    pub to: String,
    /// Whether a node is run for it, whose operator only moves elements.
    pub run: bool,
    /// The step that copies, of its piece or body.
    pub step: usize,
    /// The piece, of a program that is cut where sizes are learnt from data.
    pub piece: usize,
    /// The body of a higher-order operator that it is in, by its name.
    pub body: Option<String>,
    /// Bytes that it writes.
    pub bytes: i64,
    /// Why it stays.
    pub why: Why,
}

/// Why a copy stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// A decision was declined.
    Declined(Decision),
    /// The value is an input, as it was given: its elements are in the caller's memory, and needed elsewhere, too.
    Given,
    /// The placement gave no reason: a gap in its remarks.
    Unknown,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, r) in self.results.iter().enumerate() {
            write!(f, "{}%{r}", if i > 0 { ", " } else { "" })?;
        }
        write!(f, "{}{}", if self.results.is_empty() { "" } else { " = " }, self.op)?;
        for (i, call) in self.inside.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { " of " } else { ", " }, call.op)?;
        }
        self.body.as_ref().map_or(Ok(()), |b| write!(f, " in @{b}"))
    }
}

impl Decision {
    /// Whether the decision was taken.
    pub fn taken(&self) -> bool {
        self.reason.taken()
    }

    /// The reason in words, with the reader and its line.
    pub fn why(&self) -> String {
        if !matches!(self.reason, Reason::StillRead { .. }) {
            return self.reason.to_string();
        }
        let view = self.through.as_ref().and_then(|v| v.results.first());
        let through = view.map_or_else(String::new, |v| format!(", through %{v}"));
        let Some(reader) = &self.reader else { return format!("still read by the caller{through}") };
        let line = reader.line.as_ref().map_or_else(String::new, |l| format!(" at {l}"));
        format!("still read by {reader}{line}{through}")
    }
}

impl Copied {
    /// Why it stays, in words.
    pub fn why(&self) -> String {
        match &self.why {
            Why::Declined(d) => {
                let own = [&self.site, &self.maker].into_iter().flatten().any(|s| *s == d.site);
                let of = if own { String::new() } else { format!(", {}", d.site) };
                format!("{}{of}: {}", d.kind.words(false), d.why())
            }
            Why::Given => "its elements are where the caller gave them".into(),
            Why::Unknown => "no reason was noted".into(),
        }
    }
}

impl Explanation {
    /// Explains one placed program: its decisions, and the copies in it.
    pub fn of(program: &Program, placement: &Placement, remarks: &[Remark]) -> Explanation {
        let mut out = Explanation { program: program.name.to_string(), ..Explanation::default() };
        out.add(0, program, placement, remarks);
        out.sort();
        out
    }

    fn add(&mut self, piece: usize, program: &Program, placement: &Placement, remarks: &[Remark]) {
        let mut bodies = vec![(program.main, placement)];
        while let Some((id, placement)) = bodies.pop() {
            Explainer::new(self, piece, program, id, placement).explain(remarks.iter().filter(|r| r.graph == id));
            bodies.extend(placement.nested.iter().map(|(id, nested)| (*id, &nested.placement)));
        }
    }

    fn sort(&mut self) {
        self.names.sort();
        self.names.dedup();
        for list in [&mut self.done, &mut self.declined] {
            list.sort_by_key(|d| std::cmp::Reverse(d.bytes));
        }
        self.copies.sort_by_key(|c| std::cmp::Reverse(c.bytes));
    }

    /// The part about one node or value: decisions for it, over its memory and because of it, and copies of it and for it. `name` is that of a value (with or without `%`), at any stage, or of an operator; `stages` are
    /// the programs before placement whose names may be meant.
    ///
    /// # Errors
    /// A name that no value has, with near ones.
    pub fn about(&self, name: &str, stages: &[&Program]) -> Result<Explanation> {
        let bare = name.strip_prefix('%').unwrap_or(name);
        let bare = bare.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(bare);
        let mut known = self.names.iter().any(|n| **n == *bare);
        let mut keys = BTreeSet::new();
        for program in stages {
            for (_, graph) in program.graphs.iter() {
                known |= graph.inputs.iter().any(|v| *graph.values[*v].name == *bare);
                let nodes = graph.ordered().filter(|(_, n)| n.results.iter().any(|r| *graph.values[*r].name == *bare));
                keys.extend(nodes.map(|(_, n)| n.origin.key));
            }
        }
        let mut sites: BTreeSet<*const Site> = BTreeSet::new();
        for site in &self.sites {
            let inside = |c: &Inside| c.op == bare || c.results.iter().any(|r| r == bare) || keys.contains(&c.key);
            let own = site.op == bare || site.results.iter().any(|r| r == bare) || keys.contains(&site.key);
            if own || site.inside.iter().any(inside) {
                sites.insert(Arc::as_ptr(site));
            }
        }
        if !known && keys.is_empty() && sites.is_empty() {
            return Err(self.unknown(bare, stages));
        }
        let site = |s: &Arc<Site>| sites.contains(&Arc::as_ptr(s));
        let named = |n: &str| n.strip_prefix('%') == Some(bare);
        let decision = |d: &&Decision| {
            let by = [Some(&d.site), d.reader.as_ref(), d.through.as_ref()].into_iter().flatten().any(site);
            by || d.over.as_deref().is_some_and(named)
        };
        let copied = |c: &&Copied| {
            let by = [&c.site, &c.maker].into_iter().flatten().any(site);
            by || c.values.iter().any(|v| v == bare)
        };
        Ok(Explanation {
            program: self.program.clone(),
            done: self.done.iter().filter(decision).cloned().collect(),
            declined: self.declined.iter().filter(decision).cloned().collect(),
            copies: self.copies.iter().filter(copied).cloned().collect(),
            names: self.names.clone(),
            sites: self.sites.clone(),
        })
    }

    fn unknown(&self, name: &str, stages: &[&Program]) -> Error {
        let mut names: BTreeSet<&str> = self.names.iter().map(|n| &**n).collect_set();
        names.extend(self.sites.iter().flat_map(|s| s.inside.iter().map(|c| c.op.as_str()).chain([s.op.as_str()])));
        let values = stages.iter().flat_map(|p| p.graphs.iter()).flat_map(|(_, g)| g.values.iter());
        names.extend(values.map(|(_, v)| &*v.name));
        let near = near(name, names);
        let error = Error::new(ErrorKind::Inputs, format!("the program has no value, node or operator {name:?}"));
        if near.is_empty() {
            return error.help("restride show prints the names");
        }
        error.help(format!("similar names: {}", near.join(", ")))
    }
}

/// The three names that take the fewest changes to become this one, if they are few.
fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|n| n.len().abs_diff(name.len()) <= 4 * most)
        .filter_map(|n| {
            let changes = strsim::levenshtein(name, n);
            (changes <= most).then_some((changes, n))
        })
        .collect();
    found.sort();
    found.into_iter().take(3).map(|f| f.1).collect()
}

/// One graph being explained.
struct Explainer<'a> {
    out: &'a mut Explanation,
    graph: &'a Graph,
    piece: usize,
    /// For the body of a higher-order operator its name.
    body: Option<String>,
    placement: &'a Placement,
    sites: BTreeMap<NodeId, Arc<Site>>,
    makers: BTreeMap<ValueId, NodeId>,
}

impl<'a> Explainer<'a> {
    fn new(
        out: &'a mut Explanation,
        piece: usize,
        program: &'a Program,
        id: GraphId,
        placement: &'a Placement,
    ) -> Explainer<'a> {
        let graph = &program.graphs[id];
        let body = (id != program.main).then(|| graph_name(graph, id));
        let mut sites = BTreeMap::new();
        let mut makers = BTreeMap::new();
        out.names.extend(graph.inputs.iter().map(|v| graph.values[*v].name.clone()));
        for (id, node) in graph.ordered() {
            out.names.extend(node.results.iter().map(|r| graph.values[*r].name.clone()));
            makers.extend(node.results.iter().map(|r| (*r, id)));
            let site = Arc::new(site(program, graph, node, piece, body.clone()));
            out.names.extend(site.inside.iter().flat_map(|c| &c.results).map(|name| name.as_str().into()));
            out.sites.push(site.clone());
            sites.insert(id, site);
        }
        Explainer { out, graph, piece, body, placement, sites, makers }
    }

    fn explain<'r>(&mut self, remarks: impl Iterator<Item = &'r Remark>) {
        let readers = self.readers();
        let mut by_node: BTreeMap<NodeId, Vec<Decision>> = BTreeMap::new();
        for r in remarks {
            let Some(site) = self.sites.get(&r.node).cloned() else { continue };
            let (reader, through) = match r.reason {
                Reason::StillRead { by: Some(node) } => self.reader(node, &readers),
                _ => (None, None),
            };
            let over = self.over(r);
            let d = Decision { site, kind: r.kind, reason: r.reason, over, reader, through, bytes: r.bytes };
            if r.missed() {
                by_node.entry(r.node).or_default().push(d.clone());
                self.out.declined.push(d);
            } else {
                self.out.done.push(d);
            }
        }
        let placement = self.placement;
        // The next node from each step on.
        let mut next = vec![None; placement.steps.len()];
        let mut after = None;
        for (at, step) in placement.steps.iter().enumerate().rev() {
            if let Step::Run { node, .. } | Step::Free { node } = step {
                after = Some(*node);
            }
            next[at] = after;
        }
        for (at, (step, next)) in placement.steps.iter().zip(next).enumerate() {
            match step {
                Step::Run { node, writes, .. } if only_moves(self.graph, &self.graph.nodes[*node]) => {
                    self.run(at, *node, None, writes, &by_node);
                }
                Step::Run { node, reads, writes } => {
                    for v in carried_over(&self.graph.nodes[*node], reads, writes) {
                        self.run(at, *node, Some(v), writes, &by_node);
                    }
                }
                Step::Move { value, to, .. } => self.moved(at, (*value, to), next, &by_node),
                _ => {}
            }
        }
    }

    /// A node that is run and only moves elements, or carries over those of one operand.
    fn run(
        &mut self,
        at: usize,
        id: NodeId,
        carried: Option<ValueId>,
        writes: &[Option<Place>],
        by_node: &BTreeMap<NodeId, Vec<Decision>>,
    ) {
        let node = &self.graph.nodes[id];
        let values = carried.map_or_else(|| node.results.to_vec(), |v| vec![v]);
        const KINDS: [RemarkKind; 5] = [
            RemarkKind::ViewOnBase,
            RemarkKind::ScatterInBase,
            RemarkKind::AssembleInPlace,
            RemarkKind::LayoutCopy,
            RemarkKind::ReuseOperand,
        ];
        let why = first(by_node.get(&id), &KINDS, None).map_or(Why::Unknown, Why::Declined);
        let to = writes.iter().flatten().next().map_or_else(String::new, |p| self.memory(p.buffer));
        self.out.copies.push(Copied {
            values: values.iter().map(|r| self.graph.values[*r].name.to_string()).collect(),
            site: self.sites.get(&id).cloned(),
            maker: self.sites.get(&id).cloned(),
            to,
            run: carried.is_none(),
            step: at,
            piece: self.piece,
            body: self.body.clone(),
            bytes: values.iter().map(|r| bytes_of(&self.graph.values[*r].ty)).sum(),
            why,
        });
    }

    /// A value that is moved, for the next node that runs, or at the end for the caller.
    fn moved(
        &mut self,
        at: usize,
        (value, to): (ValueId, &Place),
        next: Option<NodeId>,
        by_node: &BTreeMap<NodeId, Vec<Decision>>,
    ) {
        const BORDER: [RemarkKind; 2] = [RemarkKind::OutputInCaller, RemarkKind::WriteBack];
        const NEEDED: [RemarkKind; 4] =
            [RemarkKind::ScatterInBase, RemarkKind::AssembleInPlace, RemarkKind::LayoutCopy, RemarkKind::ViewOnBase];
        const SOURCE: [RemarkKind; 2] = [RemarkKind::SourceInRegion, RemarkKind::LayoutCopy];
        const MADE: [RemarkKind; 2] = [RemarkKind::SourceInRegion, RemarkKind::AssembleInPlace];
        let maker = self.makers.get(&value).copied();
        let made = maker.and_then(|m| by_node.get(&m));
        let name = format!("%{}", self.graph.values[value].name);
        let why = match next {
            None => {
                let mut kinds = BORDER;
                if matches!(self.placement.buffers[to.buffer].kind, BufferKind::Input(_)) {
                    kinds.reverse();
                }
                first(made, &kinds, None)
            }
            Some(node) => {
                let needed = by_node.get(&node);
                // A scatter's base is carried over as the scatter is not in its memory; its source is moved as it was
                // not computed in the region, and so is an operand of `cat`.
                let base = self.base_of(node, value);
                let kinds = if base.is_some() { &SOURCE[..] } else { &NEEDED };
                let moved = first(needed, kinds, Some(&name));
                // Why it was made elsewhere is said where it was made.
                let said = |over: Option<&str>| self.made(value).find_map(|m| first(by_node.get(&m), &MADE, over));
                let made = || base.as_deref().and_then(|b| said(Some(b))).or_else(|| said(None));
                match moved {
                    Some(d) if !matches!(d.reason, Reason::MadeElsewhere | Reason::IsInput) => Some(d),
                    moved => made().or(moved),
                }
            }
        };
        let why = match why {
            Some(d) => Why::Declined(d),
            None if maker.is_none() => Why::Given,
            None => Why::Unknown,
        };
        self.out.copies.push(Copied {
            values: vec![self.graph.values[value].name.to_string()],
            site: next.and_then(|n| self.sites.get(&n).cloned()),
            maker: maker.and_then(|m| self.sites.get(&m).cloned()),
            to: self.memory(to.buffer),
            run: false,
            step: at,
            piece: self.piece,
            body: self.body.clone(),
            bytes: bytes_of(&self.graph.values[value].ty),
            why,
        });
    }

    /// The base of a scatter that puts a value into it.
    fn base_of(&self, id: NodeId, value: ValueId) -> Option<String> {
        let node = &self.graph.nodes[id];
        match node.op.def().movement {
            Some(Movement::Scatter { base, src, .. }) if value_at(node, src as usize) == Some(value) => {
                value_at(node, base as usize).map(|b| format!("%{}", self.graph.values[b].name))
            }
            _ => None,
        }
    }

    /// The node that makes a value; where that is a view of all of another value, the one that makes that, too, and so on.
    fn made(&self, value: ValueId) -> impl Iterator<Item = NodeId> {
        let made = |v: ValueId| self.makers.get(&v).copied();
        std::iter::successors(made(value), move |id| {
            let node = &self.graph.nodes[*id];
            let def = node.op.def();
            let free = def.view.is_some() || matches!(def.movement, Some(Movement::View(_) | Movement::Same));
            let (&[w], base) = (&node.results[..], value_at(node, def.base as usize)?) else { return None };
            let numel = |v: ValueId| self.graph.values[v].ty.tensor().map(|t| t.layout.numel());
            (free && numel(w) == numel(base)).then(|| made(base)).flatten()
        })
    }

    /// For each view that costs nothing, the first node that reads it, if one does.
    fn readers(&self) -> BTreeMap<NodeId, Option<NodeId>> {
        let mut first: BTreeMap<ValueId, NodeId> = BTreeMap::new();
        for (id, node) in self.graph.ordered() {
            for v in node.operands() {
                first.entry(v).or_insert(id);
            }
        }
        let free = self.placement.steps.iter().filter_map(|s| match s {
            Step::Free { node } => Some(*node),
            Step::Run { .. } | Step::Move { .. } => None,
        });
        let position: BTreeMap<NodeId, usize> =
            self.graph.order.iter().enumerate().map(|(at, id)| (*id, at)).collect_map();
        let views = free.filter(|id| {
            let def = self.graph.nodes[*id].op.def();
            def.view.is_some() || matches!(def.movement, Some(Movement::View(_) | Movement::Same))
        });
        let next = |id: NodeId| {
            let users = self.graph.nodes[id].results.iter().filter_map(|r| first.get(r).copied());
            (id, users.min_by_key(|u| position[u]))
        };
        views.map(next).collect_map()
    }

    /// The node that reads elements where a remark names a view: with the view.
    fn reader(
        &self,
        named: NodeId,
        readers: &BTreeMap<NodeId, Option<NodeId>>,
    ) -> (Option<Arc<Site>>, Option<Arc<Site>>) {
        let mut id = named;
        // Later nodes only, so this ends.
        while let Some(next) = readers.get(&id) {
            match next {
                Some(next) => id = *next,
                // The caller looks at the view.
                None => return (None, self.sites.get(&named).cloned()),
            }
        }
        let through = (id != named).then_some(named);
        (self.sites.get(&id).cloned(), through.and_then(|v| self.sites.get(&v).cloned()))
    }

    /// Whose memory a decision is about.
    fn over(&self, r: &Remark) -> Option<String> {
        if let Some(v) = r.over {
            return Some(format!("%{}", self.graph.values[v].name));
        }
        // Values for the caller name its memory.
        let border = matches!(r.kind, RemarkKind::WriteBack | RemarkKind::OutputInCaller) && !r.missed();
        let buffer = |v: &ValueId| self.placement.places[*v].as_ref().map(|p| p.buffer);
        let buffer = self.graph.nodes[r.node].results.iter().find_map(buffer)?;
        border.then(|| self.memory(buffer))
    }

    /// Whose memory a buffer is.
    fn memory(&self, buffer: BufferId) -> String {
        memory_name(self.graph, self.placement, self.body.is_some(), buffer)
    }
}

fn value_at(node: &Node, i: usize) -> Option<ValueId> {
    match node.args.get(i) {
        Some(Arg::Value(v)) => Some(*v),
        _ => None,
    }
}

/// The first declined decision of the first of these kinds that has one, about that memory if one is named.
fn first(decisions: Option<&Vec<Decision>>, kinds: &[RemarkKind], over: Option<&str>) -> Option<Decision> {
    let fits = |d: &&Decision| over.is_none() || d.over.as_deref() == over;
    kinds.iter().find_map(|k| decisions?.iter().filter(fits).find(|d| d.kind == *k)).cloned()
}

impl Prepared {
    /// Why values live where they do.
    pub fn explain(&self) -> Explanation {
        let mut out = Explanation { program: self.compiled.functional().name.to_string(), ..Explanation::default() };
        for (i, s) in self.segments.iter().enumerate() {
            out.add(i, &s.program, &s.placement, &s.remarks);
        }
        out.sort();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_take_few_changes() {
        assert_eq!(near("ad_1", ["add_1", "add_2", "mul", "sub_1"]), ["add_1"]);
        assert!(near("x", ["add_1", "softmax"]).is_empty());
    }
}
