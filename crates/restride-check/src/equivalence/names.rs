//! Names of elements: symbolic execution without numbers.
//!
//! The name of a byte is a term and a position in the term's result. A term is a call with the names of its arguments, made
//! once ([`TermTable::term`]). Bytes of equal names are equal for all inputs.

use super::cells::{NameRun, Runs};
use foldhash::fast::FixedState;
use restride_ir::DType;
use std::collections::HashMap;

/// A hash-consed term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TermId(u32);

/// Elements of a tensor in logical order, hash-consed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct ContentId(u32);

/// A byte: a term, and a position in its result.
pub(super) type Byte = (TermId, i64);

/// An argument of a named call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum NamedArg {
    /// A tensor: type, sizes, elements, and strides if the operator reads them.
    Tensor(DType, Vec<i64>, ContentId, Option<Vec<i64>>),
    /// One element of a tensor.
    Element(DType, Byte),
    /// A list.
    List(Vec<NamedArg>),
    /// A number: its kind and bits.
    Number(u8, u64),
    /// A number learned from data, with its terms.
    Learned(String, Vec<Byte>),
    /// Any other argument, as text.
    Other(String),
}

/// Definition of a term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum TermKey {
    /// A storage of an input.
    Input(usize),
    /// A result of a call; `draw` is the key of its random draws.
    Call { op: &'static str, args: Vec<NamedArg>, result: usize, draw: Option<u32> },
    /// A value assembled from bytes of several terms.
    Bytes(Vec<Byte>),
    /// Byte `i` of the first where the predicate holds, else byte `i + shift` of the second.
    Either { pred: Byte, then: TermId, other: TermId, shift: i64 },
    /// An input of a body.
    Parameter { depth: usize, index: usize },
    /// A body, by its results for its parameters.
    Body(Vec<NamedArg>),
}

/// All terms and contents of a comparison.
#[derive(Default)]
pub(super) struct TermTable {
    keys: Vec<TermKey>,
    terms: HashMap<TermKey, TermId, FixedState>,
    contents: HashMap<(usize, Vec<NameRun>), ContentId, FixedState>,
    /// Runs of each content.
    runs: Vec<Runs>,
}

impl TermTable {
    pub(super) fn term(&mut self, key: TermKey) -> TermId {
        if let Some(&t) = self.terms.get(&key) {
            return t;
        }
        let t = TermId(self.keys.len() as u32);
        self.keys.push(key.clone());
        self.terms.insert(key, t);
        t
    }

    /// Content of these elements, in logical order.
    pub(super) fn content(&mut self, element: usize, runs: &Runs) -> ContentId {
        let next = ContentId(self.runs.len() as u32);
        let id = *self.contents.entry((element, runs.0.clone())).or_insert(next);
        if id == next {
            self.runs.push(runs.clone());
        }
        id
    }

    /// The operand of the `op` that computed all of these elements, if one did.
    pub(super) fn undone(&self, op: &str, runs: &Runs) -> Option<Runs> {
        let given = |term: TermId| match &self.keys[term.0 as usize] {
            TermKey::Call { op: made, args, .. } if *made == op => args.first(),
            _ => None,
        };
        if let [run] = runs.0[..]
            && run.first == 0
            && let Some(NamedArg::Tensor(_, sizes, content, _)) = given(run.term)
            && sizes.iter().product::<i64>() == run.len
        {
            return Some(self.runs[content.0 as usize].clone());
        }
        let mut out = Runs::default();
        for run in &runs.0 {
            match given(run.term) {
                Some(NamedArg::Element(_, byte)) if run.first == 0 && run.len == 1 => out.one(*byte),
                _ => return None,
            }
        }
        Some(out)
    }

    /// The bytes of an assembled term.
    pub(super) fn parts(&self, term: TermId) -> Option<&[Byte]> {
        match &self.keys[term.0 as usize] {
            TermKey::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The byte that an assembled term has here, or the byte itself.
    pub(super) fn part(&self, (term, at): Byte) -> Byte {
        self.parts(term).map_or((term, at), |parts| parts[at as usize])
    }

    /// The element that the operator computed this one from.
    pub(super) fn applied_to(&self, operator: &str, (term, byte): Byte) -> Option<Byte> {
        match &self.keys[term.0 as usize] {
            TermKey::Call { op, args, .. } if *op == operator && byte == 0 => match args.first() {
                Some(NamedArg::Element(_, before)) => Some(*before),
                _ => None,
            },
            _ => None,
        }
    }

    /// One name for an element of several terms; no term is assembled.
    pub(super) fn composite(&mut self, bytes: Vec<Byte>) -> Byte {
        let whole = bytes.windows(2).all(|w| w[0].0 == w[1].0 && w[0].1 + 1 == w[1].1);
        match bytes.first() {
            Some(&first) if whole => first,
            _ => (self.term(TermKey::Bytes(bytes)), 0),
        }
    }

    /// Either of two bytes, neither of an assembled term.
    pub(super) fn either(&mut self, pred: Byte, then: Byte, other: Byte) -> Byte {
        if then == other {
            return then;
        }
        let key = TermKey::Either { pred, then: then.0, other: other.0, shift: other.1 - then.1 };
        (self.term(key), then.1)
    }

    /// A name as text: the call and its arguments, two levels deep.
    pub(super) fn show(&self, (term, byte): Byte) -> String {
        self.show_term(term, 2, Some(byte))
    }

    fn show_term(&self, term: TermId, depth: usize, byte: Option<i64>) -> String {
        let at = |name: &str| byte.map_or_else(|| name.to_string(), |b| format!("byte {b} of {name}"));
        match &self.keys[term.0 as usize] {
            TermKey::Input(i) => at(&format!("input storage {i}")),
            TermKey::Parameter { index, .. } => at(&format!("parameter {index} of a body")),
            TermKey::Bytes(bytes) => {
                let parts: Vec<String> = bytes.iter().take(2).map(|b| self.show_term(b.0, depth, Some(b.1))).collect();
                format!("bytes put together of {}", parts.join(" and "))
            }
            TermKey::Either { then, other, .. } if depth > 0 => {
                let (a, b) = (self.show_term(*then, depth - 1, byte), self.show_term(*other, depth - 1, None));
                format!("either {a} or {b}")
            }
            TermKey::Either { .. } => at("a branch"),
            TermKey::Body(_) => "a body".into(),
            TermKey::Call { op, args, .. } => {
                let inner = if depth == 0 { String::new() } else { self.show_args(args, depth - 1) };
                at(&format!("{op}({inner})"))
            }
        }
    }

    fn show_args(&self, args: &[NamedArg], depth: usize) -> String {
        let one = |g: &NamedArg| match g {
            NamedArg::Tensor(dtype, sizes, ..) => format!("{dtype}{sizes:?}"),
            NamedArg::Element(_, b) => self.show_term(b.0, depth, Some(b.1)),
            NamedArg::List(list) => format!("[{}]", list.len()),
            NamedArg::Number(0, bits) => (*bits as i64).to_string(),
            NamedArg::Number(1, bits) => (*bits != 0).to_string(),
            NamedArg::Number(_, bits) => f64::from_bits(*bits).to_string(),
            NamedArg::Learned(text, _) | NamedArg::Other(text) => text.clone(),
        };
        args.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
