use super::*;
use crate::error::FileErrorKind;
use crate::model;
use crate::zip::{Compression, ZipWriter};
use std::borrow::Cow;
use std::path::PathBuf;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut w = ZipWriter::new(Vec::new());
    for (name, bytes) in files {
        w.add(name, bytes, Compression::Deflated).unwrap();
    }
    w.finish().unwrap()
}

#[test]
fn the_three_layouts_are_told_apart() {
    for (file, layout) in [
        ("torch-2.15.pt2", ArchiveLayout::Pt2),
        ("torch-2.8.pt2", ArchiveLayout::Pt2Pickled),
        ("torch-2.6.pt2", ArchiveLayout::Flat),
    ] {
        let bytes = fixture(file);
        let a = Archive::open(&bytes).unwrap();
        assert_eq!(a.layout(), layout);
        assert_eq!(a.models(), ["model"]);
        assert_eq!(a.pick_model(None), Ok("model"));
        assert!(a.pick_model(Some("other")).is_err());
        assert_eq!(a.extra_files().map(|(n, _)| n).collect::<Vec<_>>(), ["hi.txt"]);
        let (_, path) = a.extra_files().next().unwrap();
        assert_eq!(&*a.read(path).unwrap(), b"hello");
        assert!(a.sample_inputs_path("model").is_some());
        let p = a.program("model").unwrap();
        assert_eq!(p.graph_module.signature.input_specs.len(), p.graph_module.graph.inputs.len());
        assert_eq!(layout == ArchiveLayout::Pt2, a.pickled_payload_path("model", Payload::Weights).is_none());
    }
}

#[test]
fn raw_weights_are_found_in_place() {
    let bytes = fixture("torch-2.15.pt2");
    let a = Archive::open(&bytes).unwrap();
    let weights = a.payload_config("model", Payload::Weights).unwrap();
    let tied = [&weights.config["l.weight"], &weights.config["t.weight"]];
    assert_eq!(tied[0].path_name, tied[1].path_name);
    let path = a.payload_path(Payload::Weights, &tied[0].path_name);
    let range = a.range(&path).unwrap().unwrap();
    assert_eq!(range.len(), 64);
    assert_eq!(range.start % 64, 0);
    let constants = a.payload_config("model", Payload::Constants).unwrap();
    assert!(constants.config.contains_key("np"));
    assert!(a.range("data/weights/none").is_err());
}

#[test]
fn what_is_written_reads_back_and_is_deterministic() {
    let bytes = fixture("torch-2.15.pt2");
    let a = Archive::open(&bytes).unwrap();
    let files = |p: Payload, config: &model::PayloadConfig| {
        let mut out: Vec<ArchiveFile<'_>> = Vec::new();
        for meta in config.config.values() {
            if !out.iter().any(|f| f.name == meta.path_name) {
                out.push(ArchiveFile {
                    name: meta.path_name.clone(),
                    bytes: a.read(&a.payload_path(p, &meta.path_name)).unwrap(),
                });
            }
        }
        out
    };
    let weights_config = a.payload_config("model", Payload::Weights).unwrap();
    let constants_config = a.payload_config("model", Payload::Constants).unwrap();
    let contents = ArchiveContents {
        root: "again".to_string(),
        models: vec![ModelFiles {
            name: "model".to_string(),
            program: a.program("model").unwrap(),
            weights: files(Payload::Weights, &weights_config),
            weights_config,
            constants: files(Payload::Constants, &constants_config),
            constants_config,
            sample_inputs: a.read(&a.sample_inputs_path("model").unwrap()).unwrap(),
        }],
        extra: vec![ArchiveFile { name: "hi.txt".to_string(), bytes: Cow::Borrowed(b"hello") }],
    };
    let written = write_archive(Vec::new(), &contents).unwrap();
    assert_eq!(written, write_archive(Vec::new(), &contents).unwrap());
    let b = Archive::open(&written).unwrap();
    assert_eq!(a.names().collect::<Vec<_>>(), b.names().collect::<Vec<_>>());
    assert_eq!(a.program("model").unwrap(), b.program("model").unwrap());
    for name in a.names() {
        if name.starts_with("data/") && !name.ends_with(".json") {
            assert_eq!(a.read(name).unwrap(), b.read(name).unwrap(), "{name}");
        }
    }

    let mut bad = contents.clone();
    bad.models[0].weights.pop();
    assert!(write_archive(Vec::new(), &bad).is_err());
    let mut bad = contents.clone();
    bad.models[0].constants[0].name = "c".to_string();
    assert!(write_archive(Vec::new(), &bad).is_err());
    let mut bad = contents;
    bad.root = "a/b".to_string();
    assert!(write_archive(Vec::new(), &bad).is_err());
}

#[test]
fn what_is_no_archive_is_refused_clearly() {
    let says = |files: &[(&str, &[u8])], what: &str| {
        let e = Archive::open(&zip_of(files)).unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    };
    says(&[], "empty");
    says(&[("a", b"x")], "not one that torch.export.save wrote");
    says(&[("r/archive_format", b"pt3")], "not one that torch.export.save");
    says(&[("r/archive_format", b"pt2")], "archive_version");
    let v: (&str, &[u8]) = ("r/archive_version", b"0");
    let f: (&str, &[u8]) = ("r/archive_format", b"pt2");
    says(&[f, ("r/archive_version", b"0\n")], "archive version");
    says(&[f, v], "no program");
    says(&[f, v, ("r/data/aotinductor/m/x.so", b"")], "AOTInductor");
    says(&[f, v, ("r/models/model.json", b"{}")], "weights_config");
    says(&[f, v, ("r/byteorder", b"big")], "big-endian");
    says(&[("serialized_exported_program.json", b"{}"), ("version", b"7.3")], "PyTorch 2.5 or older");
    says(&[("serialized_exported_program.json", b"{}"), ("version", b"9.0")], "schema \"9.0\"");
    assert_eq!(Archive::open(b"garbage").unwrap_err().kind(), FileErrorKind::Malformed);
}

#[test]
fn several_models_are_listed_and_other_schemas_refused() {
    let cfg: &[u8] = br#"{"config": {}}"#;
    let bytes = zip_of(&[
        ("r/archive_format", b"pt2"),
        ("r/archive_version", b"0"),
        ("r/data/weights/a_weights_config.json", cfg),
        ("r/data/weights/b_weights_config.json", cfg),
        ("r/models/a.json", br#"{"schema_version": {"major": 9, "minor": 1}}"#),
        ("r/models/b.json", b"{}"),
        ("r/data/sample_inputs/a.pt", b""),
    ]);
    let a = Archive::open(&bytes).unwrap();
    assert_eq!(a.models(), ["a", "b"]);
    assert_eq!(a.pick_model(Some("b")), Ok("b"));
    assert!(a.pick_model(None).unwrap_err().to_string().contains("a, b"));
    assert_eq!(a.sample_inputs_path("a"), None);
    let e = a.program("a").unwrap_err();
    assert!(e.to_string().contains("schema 9"), "{e}");
    let e = a.program("b").unwrap_err();
    assert_eq!(e.places(), ["models/b.json"]);
    assert!(a.payload_config("a", Payload::Weights).unwrap().config.is_empty());
}

#[test]
fn truncation_never_panics() {
    let bytes = fixture("torch-2.15.pt2");
    for n in (0..bytes.len()).step_by(97) {
        assert!(Archive::open(&bytes[..n]).is_err());
    }
}
