//! Users' operators in files: the functional form is written as `auto_functionalized_v2`, and read back as the operator on
//! clones of what it writes, which give the same functional form again.

use restride_ir::{Program, Stage, text};
use restride_passes::functionalize;
use restride_passes::functionalize::FunctionalizeOptions;
use restride_pt2::export::{export_bytes, program_model};
use restride_pt2::import::{ImportOptions, import};
use restride_tensor::Bytes;
use std::path::Path;

/// The programs of `filetests/semantics/b4_*` that have a functional form and take no shared inputs.
fn programs() -> Vec<(String, Program)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/semantics");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    paths.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("b4_")));
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let source = text.split("\n// == ").next().unwrap();
        if source.contains("// share:") || text.contains("// error:") {
            continue;
        }
        for schema in source.lines().filter_map(|l| l.strip_prefix("// ops:")) {
            restride_ops::register_custom(schema).unwrap();
        }
        let program = text::parse(source, &restride_ops::lookup).unwrap();
        out.push((path.file_stem().unwrap().to_string_lossy().into_owned(), program));
    }
    out
}

/// Calls of functional forms, with the numbers that say which views are written.
fn forms(p: &Program) -> Vec<String> {
    let forms = p.graph().ordered().filter(|(_, n)| restride_ops::custom_form_of(n.op).is_some());
    forms.map(|(_, n)| format!("{} {:?}", n.op, n.args[1])).collect()
}

#[test]
fn functional_forms_go_to_a_file_and_come_back() {
    let programs = programs();
    assert!(programs.len() >= 8, "only {} programs", programs.len());
    for (name, program) in programs {
        let functional =
            functionalize(&program, &FunctionalizeOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let wanted = forms(&functional);
        assert!(!wanted.is_empty(), "{name}");
        let written = program_model(&functional).unwrap_or_else(|e| panic!("{name}: {e}"));
        let nodes = &written.graph_module.graph.nodes;
        let found = nodes.iter().filter(|n| n.target == "torch.ops.higher_order.auto_functionalized_v2").count();
        assert_eq!(found, wanted.len(), "{name}");
        assert!(nodes.iter().all(|n| !n.target.starts_with("torch.ops.mylib")), "{name}");

        let bytes = Bytes::copy_of(&export_bytes(&functional).unwrap_or_else(|e| panic!("{name}: {e}")));
        let options = ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Default::default() };
        let again = import(&bytes, &name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.stage, Stage::Imported, "{name}");
        restride_ir::verify(&again).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = functionalize(&again, &FunctionalizeOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        restride_ir::verify(&again).unwrap_or_else(|e| panic!("{name}: {e}"));
        // A tensor with gaps is cloned as a view of memory of its own, by which the numbers go.
        let gaps = |p: &Program| p.graph().inputs.iter().any(|v| !p.graph().tensor(*v).layout.is_contiguous());
        let names = |f: &[String]| f.iter().filter_map(|s| s.split(' ').next().map(str::to_string)).collect::<Vec<_>>();
        if gaps(&program) {
            assert_eq!(names(&forms(&again)), names(&wanted), "{name}");
        } else {
            assert_eq!(forms(&again), wanted, "{name}");
        }
    }
}
