//! Operators that write their results into memory that they are given.

use restride_ir::{Arg, Op, TwinReturn};
use restride_ops::{lookup, torch_names};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The out= forms that write straight into `out` (`scripts/make/dump_schemas.py`). PyTorch's other ones make a tensor and copy it:
/// nothing is saved by calling them.
static OUT_FORMS: &str = include_str!("../../data/out_forms.txt");

/// A writing form of a functional operator.
#[derive(Clone, Copy)]
pub struct Form {
    /// It.
    pub op: Op,
    /// The argument that is written, which is the result.
    pub target: usize,
}

impl Form {
    /// Arguments of the call that does what `functional` does with `args`, and writes `target`.
    pub fn args(&self, args: &[Arg], target: Arg) -> Vec<Arg> {
        let twin = self.op.twin().expect("a writing form has a functional twin");
        let decls = &self.op.schema().args;
        let mut out: Vec<Option<Arg>> = vec![None; decls.len()];
        for (arg, &position) in args.iter().zip(&twin.args) {
            out[position as usize] = Some(arg.clone());
        }
        out[self.target] = Some(target);
        out.into_iter().zip(decls).map(|(a, decl)| a.or_else(|| decl.default_arg()).unwrap_or(Arg::None)).collect()
    }
}

/// Writing forms of functional operators, found when they are asked for.
#[derive(Default)]
pub struct Forms {
    in_place: BTreeMap<&'static str, Option<Form>>,
    out: BTreeMap<&'static str, Option<Form>>,
}

/// Names of candidates by `namespace.name` of the functional operator.
type Names = BTreeMap<String, Vec<String>>;

fn in_place_names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = Names::new();
        for full in torch_names() {
            let base = full.rsplit_once('.').map_or("", |(base, _)| base);
            if let Some(functional) = base.strip_suffix('_').filter(|b| !b.ends_with('_')) {
                names.entry(functional.to_string()).or_default().push(full.clone());
            }
        }
        names
    })
}

fn out_names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = Names::new();
        for full in OUT_FORMS.lines() {
            let base = full.rsplit_once('.').map_or("", |(base, _)| base);
            names.entry(base.to_string()).or_default().push(full.to_string());
        }
        names
    })
}

fn find(op: Op, names: &Names, resizes: bool, target: impl Fn(usize) -> bool) -> Option<Form> {
    let schema = op.schema();
    let candidates = names.get(&format!("{}.{}", schema.namespace, schema.name)).map_or(&[][..], Vec::as_slice);
    candidates.iter().filter_map(|n| lookup(n)).find_map(|form| {
        let twin = form.twin().filter(|t| t.op == op && t.resizes == resizes)?;
        let [(written, 0)] = twin.writes[..] else { return None };
        let fits = twin.returns[..] == [TwinReturn::Arg(written)] && target(written as usize);
        fits.then_some(Form { op: form, target: written as usize })
    })
}

impl Forms {
    /// The operator that writes this one's result into its argument 0.
    pub fn in_place(&mut self, op: Op) -> Option<Form> {
        let first = |form: Form| form.op.twin().is_some_and(|t| t.args.first() == Some(&0));
        *self
            .in_place
            .entry(op.name())
            .or_insert_with(|| find(op, in_place_names(), false, |k| k == 0).filter(|f| first(*f)))
    }

    /// The operator that writes this one's result straight into memory that is given.
    pub fn out(&mut self, op: Op) -> Option<Form> {
        *self.out.entry(op.name()).or_insert_with(|| find(op, out_names(), true, |_| true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_found_by_their_twins() {
        let mut forms = Forms::default();
        let mut of = |name: &str| {
            let op = lookup(name).unwrap();
            (forms.in_place(op).map(|f| f.op.name()), forms.out(op).map(|f| f.op.name()))
        };
        assert_eq!(of("aten.add.Tensor"), (Some("aten.add_.Tensor"), Some("aten.add.out")));
        assert_eq!(of("aten.mm.default"), (None, Some("aten.mm.out")));
        // PyTorch computes it and copies it.
        assert_eq!(of("aten.relu.default"), (Some("aten.relu_.default"), None));
        assert_eq!(of("aten.convolution.default"), (None, None));
    }

    #[test]
    fn every_out_form_is_an_operator() {
        let unknown: Vec<&str> = OUT_FORMS.lines().filter(|n| !torch_names().any(|t| t == **n)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }
}
