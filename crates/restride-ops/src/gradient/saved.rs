//! Values that PyTorch's autograd saves for backward passes. `scripts/check/saved_values.py` writes `saved.txt` from PyTorch's
//! formulas. Rules of this crate read fewer or other values; a tape as strict as PyTorch guards the saved ones.

use foldhash::fast::FixedState;
use restride_ir::Op;
use std::collections::HashMap;
use std::sync::OnceLock;

static TEXT: &str = include_str!("saved.txt");

/// The values that PyTorch saves of an operator's calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SavedByPyTorch {
    /// Saved arguments.
    pub args: Vec<KeptArg>,
    /// Positions of saved results.
    pub results: Vec<usize>,
    /// PyTorch has no gradient of this operator and says so in the backward pass.
    pub without: bool,
}

/// An argument that PyTorch saves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptArg {
    /// Position of the argument.
    pub arg: usize,
    /// PyTorch saves the argument if one of these arguments needs a gradient; an empty list means always.
    pub asked: Vec<usize>,
}

/// The values that PyTorch saves of an operator's calls.
///
/// `None` if PyTorch does not differentiate the operator or composes it, or if the values are unknown.
pub fn kept(op: Op) -> Option<&'static SavedByPyTorch> {
    static TABLE: OnceLock<HashMap<&'static str, SavedByPyTorch, FixedState>> = OnceLock::new();
    let table = TABLE.get_or_init(|| lines().filter_map(|l| parse(l).ok()).collect());
    table.get(op.name())
}

fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|l| !l.starts_with('#'))
}

/// Parses a line of the file: an operator and its saved values.
fn parse(line: &'static str) -> Result<(&'static str, SavedByPyTorch), String> {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let op = crate::lookup(name).ok_or_else(|| format!("there is no operator {name}"))?;
    let schema = op.schema();
    let position = |arg: &str| {
        let at = schema.args.iter().position(|a| &*a.name == arg);
        at.ok_or_else(|| format!("{name} has no argument {arg}"))
    };
    let mut kept = SavedByPyTorch::default();
    for word in words {
        if word == "!" {
            kept.without = true;
            continue;
        }
        if let Some(result) = word.strip_prefix('=') {
            let at = result.parse().ok().filter(|k| *k < schema.returns.len());
            kept.results.push(at.ok_or_else(|| format!("{name} has no result {result}"))?);
            continue;
        }
        let (arg, asked) = word.split_once('?').unwrap_or((word, ""));
        let asked = asked.split('|').filter(|a| !a.is_empty()).map(position).collect::<Result<_, _>>()?;
        kept.args.push(KeptArg { arg: position(arg)?, asked });
    }
    Ok((name, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_of_operators_with_a_gradient() {
        for line in lines() {
            let (name, _) = parse(line).unwrap();
            let op = crate::lookup(name).unwrap();
            assert!(op.def().grad.is_some() || op.is_mutable(), "{name} has no gradient");
        }
        assert!(lines().count() > 400);
    }

    #[test]
    fn arguments_and_results() {
        let of = |name| kept(crate::lookup(name).unwrap());
        assert_eq!(of("aten.exp.default"), Some(&SavedByPyTorch { results: vec![0], ..SavedByPyTorch::default() }));
        let mul = [(0, 1), (1, 0)].map(|(arg, other)| KeptArg { arg, asked: vec![other] });
        assert_eq!(of("aten.mul.Tensor"), Some(&SavedByPyTorch { args: mul.to_vec(), ..SavedByPyTorch::default() }));
        assert_eq!(
            of("aten.floor_divide.default"),
            Some(&SavedByPyTorch { without: true, ..SavedByPyTorch::default() })
        );
        assert_eq!(of("aten.einsum.default"), None);
    }
}
