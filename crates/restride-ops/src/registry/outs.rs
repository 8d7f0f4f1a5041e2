//! What PyTorch's `out=` forms do where `out` overlaps itself or an operand: measured, one word for each written tensor.

use restride_ir::{ArgType, OutOverlaps, OutVerdict, Schema};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The words, with the names of the forms that they are true of (`scripts/check/out_overlaps.py` writes it and says what the letters
/// mean).
static OUT_OVERLAPS: &str = include_str!("../../data/out_overlaps.txt");

fn words() -> &'static HashMap<&'static str, &'static str> {
    static WORDS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let lines = OUT_OVERLAPS.lines().filter(|l| !l.starts_with('#'));
        lines
            .filter_map(|l| l.split_once(' '))
            .flat_map(|(word, names)| names.split(' ').map(move |n| (n, word)))
            .collect()
    })
}

/// What the form does, for each of its written tensors; `args` are the functional form's, as positions among its own.
pub(super) fn overlaps(schema: &Schema, args: &[u8], written: usize) -> SmallVec<[OutOverlaps; 1]> {
    let name = format!("{}.{}.{}", schema.namespace, schema.name, schema.overload);
    let word = |k: usize| match k {
        0 => words().get(&name[..]),
        _ => words().get(&format!("{name}#{k}")[..]),
    };
    let tensor = |i: &u8| is_tensors(schema.args[*i as usize].ty);
    (0..written).map(|k| word(k).map_or_else(OutOverlaps::default, |w| parse(w, args.iter().map(tensor)))).collect()
}

fn is_tensors(ty: ArgType) -> bool {
    matches!(ty, ArgType::Tensor | ArgType::Tensors | ArgType::OptTensors)
}

/// One word: the letters of `out` alone, then those of each tensor among the arguments.
fn parse(word: &str, tensors: impl Iterator<Item = bool>) -> OutOverlaps {
    let mut parts = word.split('/');
    let mut next = || parts.next().unwrap_or_default().bytes();
    let own: SmallVec<[u8; 4]> = next().collect();
    let stretched = std::array::from_fn(|i| own.get(i).copied().map(verdict).unwrap_or_default());
    let shared = tensors.map(|is_tensor| {
        let mut letters = is_tensor.then(&mut next).into_iter().flatten().map(verdict);
        std::array::from_fn(|_| letters.next().unwrap_or_default())
    });
    OutOverlaps { stretched, copies: own.get(2) == Some(&b'c'), shared: shared.collect() }
}

fn verdict(letter: u8) -> OutVerdict {
    match letter {
        b'r' => OutVerdict::Refused,
        b'a' => OutVerdict::Apart,
        b'w' => OutVerdict::Loop,
        _ => OutVerdict::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{exists, lookup};
    use OutVerdict::{Apart, Loop, Open, Refused};

    #[test]
    fn forms_have_their_verdicts() {
        let outs = |name: &str| lookup(name).unwrap().twin().unwrap().outs.clone();
        let add = outs("aten.add.out");
        assert_eq!(add[0].stretched, [Refused, Refused]);
        assert_eq!(add[0].shared[..], [[Apart, Refused, Open, Refused], [Apart, Refused, Open, Refused], [Open; 4]]);
        assert_eq!(outs("aten.cat.out")[0].stretched, [Refused, Apart]);
        assert_eq!(outs("aten.bmm.out")[0].stretched, [Loop, Apart]);
        assert_eq!(outs("aten.max.dim_max").len(), 2);
        assert!(outs("aten.relu.out")[0].copies && !add[0].copies);
        // The shared letters belong to the tensors, wherever they stand among the arguments.
        let gather = outs("aten.gather.out");
        assert_eq!(gather[0].shared[..], [[Refused, Refused, Refused, Apart], [Open; 4], [Open; 4], [Open; 4]]);
    }

    #[test]
    fn every_word_is_of_a_form_and_has_the_letters_of_its_tensors() {
        for (name, word) in words() {
            let form = name.split('#').next().unwrap();
            assert!(exists(form), "{name}");
            let Some(twin) = lookup(form).and_then(|op| op.twin().cloned()) else { continue };
            let decls = &twin.op.schema().args;
            let tensors = decls.iter().filter(|a| is_tensors(a.ty)).count();
            let lengths: Vec<usize> = word.split('/').map(str::len).collect();
            assert_eq!(lengths[0], 3, "{name} {word}");
            assert_eq!(lengths[1..], vec![4; tensors], "{name} {word}");
        }
    }

    #[test]
    fn every_form_that_can_run_is_in_the_list() {
        let known = |n: &str| words().contains_key(n);
        // Samples tell; without any, the verdicts are open.
        let sampled = |op: restride_ir::Op| op.def().samples.is_some();
        let forms = crate::registry::torch_names().filter_map(|n| lookup(&n));
        let missing: Vec<&str> = forms
            .filter(|op| op.twin().is_some_and(|t| t.resizes && t.op.can_run() && sampled(t.op)) && !known(op.name()))
            .map(|op| op.name())
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
