//! Functions and modules of PyTorch's Python library that are more than one operator's call, as texts in its Python.
//!
//! Printed graphs call them by name; the evaluator runs the texts as it runs the code of an archive. Places in errors and origins
//! are those of the call.

use crate::source::SourceText;
use crate::syntax::ast::StmtKind;
use crate::syntax::parse;
use crate::value::CodeFunction;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A part of PyTorch's Python library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// `torch.nn.functional`
    Functional,
    /// `torch` and methods of tensors
    Torch,
    /// Classes of `torch.nn`, each as a function of the module, its inputs and its options
    Modules,
}

const TEXTS: [(Part, &str, &str); 3] = [
    (Part::Functional, "<torch.nn.functional>", include_str!("functional.py")),
    (Part::Torch, "<torch>", include_str!("torch.py")),
    (Part::Modules, "<torch.nn>", include_str!("modules.py")),
];

type Functions = HashMap<Arc<str>, Rc<CodeFunction>>;

thread_local! {
    static LIBRARY: Vec<Functions> = TEXTS.iter().map(|(_, name, text)| functions(name, text)).collect();
}

fn functions(name: &str, text: &str) -> Functions {
    let source = SourceText::new(name, text);
    let mut out = Functions::new();
    for stmt in parse(&source).expect("the library's own text parses") {
        if let StmtKind::Def(def) = &stmt.kind {
            let function = CodeFunction::new(def.clone(), source.clone());
            out.insert(def.name.clone(), Rc::new(function));
        }
    }
    out
}

/// A function of a part, by its name.
pub(crate) fn find(part: Part, name: &str) -> Option<Rc<CodeFunction>> {
    let at = TEXTS.iter().position(|t| t.0 == part)?;
    LIBRARY.with(|all| all[at].get(name).cloned())
}

/// A function that the code of a source calls by its bare name, where the source is a part of the library.
pub(crate) fn beside(source: &SourceText, name: &str) -> Option<Rc<CodeFunction>> {
    if !source.is_library() {
        return None;
    }
    let at = TEXTS.iter().position(|t| *t.1 == **source.name())?;
    LIBRARY.with(|all| all[at].get(name).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_and_options_follow_inputs() {
        for part in [Part::Functional, Part::Torch, Part::Modules] {
            let at = TEXTS.iter().position(|t| t.0 == part).unwrap();
            LIBRARY.with(|all| assert!(!all[at].is_empty()));
        }
        let pool = find(Part::Modules, "LPPool2d").unwrap();
        assert_eq!(pool.def.keyword_only, 2);
        assert_eq!(&*pool.def.params[2].name, "norm_type");
        assert!(find(Part::Functional, "unfold").is_some() && find(Part::Torch, "unfold").is_none());
    }
}
