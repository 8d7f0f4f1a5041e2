//! All fixtures through all layers: what PyTorch wrote is understood, and survives being written again.

use restride_ir::Symbol;
use restride_pt2::archive::{Archive, ArchiveLayout, Payload};
use restride_pt2::expressions;
use restride_pt2::import::{ImportOptions, import};
use restride_pt2::model::{self, Argument, FileGraph, SymExpr, SymNumber};
use restride_pt2::pickle::{self, PickleValue};
use restride_pt2::pytree::TreeSpec;
use restride_pt2::tensors::Format;
use restride_pt2::tensors::{self, Item, json};
use restride_tensor::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Symbols = BTreeMap<Arc<str>, Symbol>;

fn fixtures(folder: &str, extension: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let mut out: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    out.sort();
    assert!(!out.is_empty(), "{}", dir.display());
    out
}

/// Every symbolic expression in a graph and its subgraphs.
fn expressions<'g>(graph: &'g FileGraph, out: &mut Vec<&'g SymExpr>) {
    let types = graph.tensor_values.values();
    let types = types.flat_map(|t| t.sizes.iter().chain(&t.strides).chain([&t.storage_offset]));
    let numbers = [&graph.sym_int_values, &graph.sym_bool_values, &graph.sym_float_values];
    for number in types.chain(numbers.into_iter().flat_map(|n| n.values())) {
        if let SymNumber::AsExpr(e) = number {
            out.push(e);
        }
    }
    for node in &graph.nodes {
        for input in &node.inputs {
            if let Argument::AsGraph(g) = &input.arg {
                expressions(&g.graph, out);
            }
        }
    }
}

/// How many tensors, numbers and so on a value has, as a pytree counts them.
fn leaves(value: &PickleValue) -> usize {
    match value {
        PickleValue::Tuple(items) | PickleValue::List(items) => items.iter().map(leaves).sum(),
        PickleValue::Dict(items) => items.iter().map(|(_, v)| leaves(v)).sum(),
        _ => 1,
    }
}

fn check(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let archive = Archive::open(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for name in archive.models() {
        check_model(&archive, name).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

fn check_model(archive: &Archive<'_>, name: &str) -> restride_pt2::Result<()> {
    let program = archive.program(name)?;
    let again = model::print(&program)?;
    assert_eq!(model::parse::<model::ExportedProgram>(&again)?, program);
    let module = &program.graph_module;
    assert_eq!(module.graph.inputs.len(), module.signature.input_specs.len());
    assert_eq!(module.graph.outputs.len(), module.signature.output_specs.len());

    let mut found = Vec::new();
    expressions(&module.graph, &mut found);
    for e in found {
        let read = expressions::parse(&e.expr_str, &Symbols::new())?;
        let written = expressions::srepr(&read).unwrap();
        assert_eq!(expressions::parse(&written, &Symbols::new())?, read, "{}", e.expr_str);
    }
    for key in program.range_constraints.keys() {
        expressions::parse(key, &Symbols::new())?;
    }
    let call = module.module_call_graph[0].signature.as_ref().unwrap();
    let in_spec = TreeSpec::parse(&call.in_spec)?;
    let out_spec = TreeSpec::parse(&call.out_spec)?;
    assert_eq!(in_spec.leaf_paths().len(), in_spec.leaf_count());
    for (text, spec) in [(&call.in_spec, &in_spec), (&call.out_spec, &out_spec)] {
        assert_eq!(spec.print(), *text);
    }
    if let Some(path) = archive.sample_inputs_path(name) {
        let file = archive.read(&path)?;
        let saved = pickle::load(&file)?;
        if saved.value != PickleValue::None {
            assert_eq!(leaves(&saved.value), in_spec.leaf_count());
        }
    }
    for payload in [Payload::Weights, Payload::Constants] {
        match archive.pickled_payload_path(name, payload) {
            Some(path) => {
                let value = pickle::load(&archive.read(&path)?)?.value;
                assert!(matches!(value, PickleValue::Dict(_)), "{}", value.kind());
            }
            None => {
                for meta in archive.payload_config(name, payload)?.config.values() {
                    archive.range(&archive.payload_path(payload, &meta.path_name))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn programs() {
    for folder in ["alias", "pt2", "examples"] {
        fixtures(folder, "pt2").iter().for_each(|p| check(p));
    }
}

/// A guard on the base of an input is noted as unchecked: a program does not get bases.
#[test]
fn guards_become_conditions() {
    let mut conditions = 0;
    for folder in ["alias", "pt2", "examples"] {
        for path in fixtures(folder, "pt2") {
            let options = ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Default::default() };
            let bytes = Bytes::map(&path).unwrap();
            let Ok(program) = import(&bytes, "program", &options) else { continue };
            conditions += program.guards.len();
            let unchecked: Vec<_> =
                program.notes.iter().filter(|n| n.contains("is not checked") && !n.contains("._base")).collect();
            assert!(unchecked.is_empty(), "{}: {unchecked:?}", path.display());
        }
    }
    assert!(conditions >= 4, "{conditions}");
}

#[test]
fn all_layouts_are_there() {
    let mut seen = Vec::new();
    for path in fixtures("pt2", "pt2") {
        let bytes = std::fs::read(&path).unwrap();
        let layout = Archive::open(&bytes).unwrap().layout();
        if !seen.contains(&layout) {
            seen.push(layout);
        }
    }
    for layout in [ArchiveLayout::Pt2, ArchiveLayout::Pt2Pickled, ArchiveLayout::Flat] {
        assert!(seen.contains(&layout), "{layout:?}");
    }
}

/// The JSON of numbers, so that `1` and `1.0` are the same.
fn same_numbers(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => a.as_f64() == b.as_f64(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_numbers(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same_numbers(v, w)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn tensor_files_that_say_who_shares() {
    let mut after = 0;
    for path in fixtures("alias", "json") {
        let text = std::fs::read(&path).unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for (key, section) in [("inputs", json::Section::Inputs), ("after", json::Section::After)] {
            let Some(expected) = whole.get(key) else {
                assert!(json::read(&text, section).is_err());
                continue;
            };
            after += usize::from(key == "after");
            let t = json::read(&text, section).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let written: serde_json::Value = serde_json::from_slice(&json::write(&t).unwrap()).unwrap();
            assert!(same_numbers(&written, expected), "{}\n{written}\n{expected}", path.display());
        }
    }
    assert!(after > 80);
}

#[test]
fn npz_files() {
    for folder in ["pt2", "examples"] {
        for path in fixtures(folder, "npz") {
            let t = tensors::read_file(&path).unwrap();
            let again = tensors::read(Format::Npz, &tensors::write(Format::Npz, &t).unwrap()).unwrap();
            for (a, b) in t.items.iter().zip(&again.items) {
                assert_eq!(a.name, b.name);
                let (Item::Tensor(x), Item::Tensor(y)) = (&a.value, &b.value) else {
                    assert_eq!(a, b);
                    continue;
                };
                assert_eq!((x.dtype, &x.sizes), (y.dtype, &y.sizes));
                assert_eq!(t.contiguous_bytes(x), again.contiguous_bytes(y));
            }
            assert_eq!(t.items.len(), again.items.len());
        }
    }
}
