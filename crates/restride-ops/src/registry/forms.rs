//! Related forms of a functional operator, by PyTorch's names and schemas: the in-place and `out=` forms that write its
//! result, and the view that it copies or scatters into.

use crate::registry::{lookup, torch_names};
use restride_ir::{Arg, Op, TwinReturn};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The `out=` forms that write straight into `out` (`scripts/make/dump_schemas.py`). PyTorch's others compute a new tensor
/// and copy it, so calling them saves nothing.
static OUT_FORMS: &str = include_str!("../../data/out_forms.txt");

/// A form of a functional operator that writes its result into an argument.
#[derive(Clone, Copy)]
pub struct WritingForm {
    /// The in-place or `out=` operator.
    pub op: Op,
    /// Position of the written argument.
    pub target: usize,
}

impl WritingForm {
    /// Arguments of the call that writes the functional operator's result for `args` into `target`.
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

/// Full names of candidates, by the functional operator's `namespace.name`.
type Candidates = BTreeMap<String, Vec<String>>;

fn candidates(names: impl Iterator<Item = String>, functional: fn(&str) -> Option<&str>) -> Candidates {
    let mut out = Candidates::new();
    for full in names {
        if let Some(of) = full.rsplit_once('.').and_then(|(name, _)| functional(name)) {
            out.entry(of.to_string()).or_default().push(full);
        }
    }
    out
}

fn find(op: Op, among: &Candidates, resizes: bool) -> Option<WritingForm> {
    let schema = op.schema();
    let among = among.get(&format!("{}.{}", schema.namespace, schema.name)).map_or(&[][..], Vec::as_slice);
    among.iter().filter_map(|n| lookup(n)).find_map(|form| {
        let twin = form.twin().filter(|t| t.op == op && t.resizes == resizes)?;
        let [(target, 0)] = twin.writes[..] else { return None };
        let first = target == 0 && twin.args.first() == Some(&0);
        let fits = twin.returns[..] == [TwinReturn::Arg(target)] && (resizes || first);
        fits.then_some(WritingForm { op: form, target: target as usize })
    })
}

/// The operator that writes the result into its argument 0 (`add_` for `add`).
pub fn in_place_form(op: Op) -> Option<WritingForm> {
    static NAMES: OnceLock<Candidates> = OnceLock::new();
    fn functional(name: &str) -> Option<&str> {
        name.strip_suffix('_').filter(|plain| !plain.ends_with('_'))
    }
    find(op, NAMES.get_or_init(|| candidates(torch_names(), functional)), false)
}

/// The `out=` operator that writes the result straight into the given memory (`add.out` for `add`).
pub fn out_form(op: Op) -> Option<WritingForm> {
    static NAMES: OnceLock<Candidates> = OnceLock::new();
    find(op, NAMES.get_or_init(|| candidates(OUT_FORMS.lines().map(str::to_string), |name| Some(name))), true)
}

/// The view whose result an operator copies or whose region it writes: `permute` for `permute_copy`, `slice` for
/// `slice_scatter`.
pub fn view_form(op: Op) -> Option<Op> {
    let schema = op.schema();
    let arg_names = |op: Op, from: usize| op.schema().args.iter().skip(from).map(|a| &a.name);
    let (name, overloads, own) = match schema.name.strip_suffix("_copy") {
        Some(name) => (name, vec![op.name().rsplit_once('.').map_or("default", |(_, overload)| overload)], 1),
        None => (schema.name.strip_suffix("_scatter")?, vec!["default", "Tensor", "int"], 2),
    };
    let views = overloads.iter().filter_map(|o| lookup(&format!("{}.{name}.{o}", schema.namespace)));
    // A scatter takes its source before the view's arguments.
    views.filter(|view| view.is_view()).find(|view| arg_names(*view, 1).eq(arg_names(op, own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_forms_are_found_by_their_twins() {
        let of = |name: &str| {
            let op = lookup(name).unwrap();
            (in_place_form(op).map(|f| f.op.name()), out_form(op).map(|f| f.op.name()))
        };
        assert_eq!(of("aten.add.Tensor"), (Some("aten.add_.Tensor"), Some("aten.add.out")));
        assert_eq!(of("aten.mm.default"), (None, Some("aten.mm.out")));
        // PyTorch's `relu.out` computes a new tensor and copies it.
        assert_eq!(of("aten.relu.default"), (Some("aten.relu_.default"), None));
        assert_eq!(of("aten.convolution.default"), (None, None));
    }

    #[test]
    fn views_are_found_by_their_copies_and_scatters() {
        let of = |name: &str| view_form(lookup(name).unwrap()).map(|f| f.name());
        assert_eq!(of("aten.permute_copy.default"), Some("aten.permute.default"));
        assert_eq!(of("aten.slice_scatter.default"), Some("aten.slice.Tensor"));
        assert_eq!(of("aten.select_scatter.default"), Some("aten.select.int"));
        assert_eq!(of("aten.as_strided_scatter.default"), Some("aten.as_strided.default"));
        assert_eq!(of("aten.scatter.src"), None);
    }

    #[test]
    fn every_out_form_is_an_operator() {
        let unknown: Vec<&str> = OUT_FORMS.lines().filter(|n| !torch_names().any(|t| t == **n)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }
}
