//! The invariants of ARCHITECTURE.md, checked on the crates' files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/ is above this one").to_path_buf()
}

/// Names under `[dependencies]` of a crate.
fn dependencies(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a manifest");
    let section = text.split("\n[").find(|s| s.starts_with("dependencies]")).unwrap_or("");
    let names = section.lines().skip(1).filter_map(|l| l.split(['.', ' ', '=']).next());
    names.filter(|n| !n.is_empty() && !n.starts_with('#')).map(str::to_string).collect()
}

#[test]
fn checkers_share_declarations_and_no_reasoning() {
    let own: Vec<String> = dependencies("restride-check").into_iter().filter(|d| d.starts_with("restride")).collect();
    assert!(!own.is_empty());
    assert!(own.iter().all(|d| d == "restride-ir" || d == "restride-tensor"), "restride-check depends on {own:?}");
}

#[test]
fn the_c_api_stands_on_the_public_crate() {
    let own: Vec<String> = dependencies("restride-capi").into_iter().filter(|d| d.starts_with("restride")).collect();
    assert_eq!(own, ["restride"], "restride-capi depends on {own:?}");
    for entry in std::fs::read_dir(crates()).expect("crates/") {
        let name = entry.expect("a crate").file_name().to_string_lossy().into_owned();
        assert!(!dependencies(&name).contains(&"restride-capi".to_string()), "{name} depends on restride-capi");
    }
}

/// How often the sources in a folder allow unsafe code.
fn allowed(dir: &std::path::Path) -> usize {
    let files = std::fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path());
    let count = |p: std::path::PathBuf| match p.is_dir() {
        true => allowed(&p),
        false => std::fs::read_to_string(p).expect("a source file").matches("allow(unsafe_code)").count(),
    };
    files.map(count).sum()
}

#[test]
fn unsafe_code_stays_where_it_may_be() {
    for entry in std::fs::read_dir(crates()).expect("crates/") {
        let dir = entry.expect("a crate").path();
        let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
        if ["restride-tensor", "restride-kernels", "restride-exec", "restride-capi"].contains(&name.as_str()) {
            continue;
        }
        let root = ["src/lib.rs", "src/main.rs"].iter().map(|f| dir.join(f)).find(|f| f.exists()).expect("a root");
        let text = std::fs::read_to_string(root).expect("a source file");
        // The façade makes what runs a plan of its own, which its user may ask not to be checked: one call.
        if name == "restride" {
            assert!(text.contains("#![deny(unsafe_code)]"), "{name} does not deny unsafe code");
            assert_eq!(allowed(&dir.join("src")), 1, "{name} has unsafe code elsewhere");
            continue;
        }
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}

#[test]
fn only_files_and_front_ends_know_serde() {
    for name in
        ["restride-tensor", "restride-kernels", "restride-ir", "restride-ops", "restride-passes", "restride-check"]
            .into_iter()
            .chain(["restride-exec", "restride"])
    {
        let found = dependencies(name);
        assert!(found.iter().all(|d| !d.starts_with("serde")), "{name} depends on {found:?}");
    }
}

/// Folders whose code must not tell operators apart by name, and what is excepted in each.
const NAMELESS: &[(&str, &[&str])] = &[
    ("restride-passes/src", &["peephole.rs", "portable"]),
    ("restride-check/src", &[]),
    ("restride-exec/src", &[]),
    ("restride-pt2/src/export", &["graph.rs", "range_asserts.rs"]),
];

/// The sources below a folder, without comments and tests.
fn sources(dir: &Path, except: &[&str], out: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if except.contains(&name.as_str()) || name.trim_end_matches(".rs") == "tests" {
            continue;
        }
        if path.is_dir() {
            sources(&path, &[], out);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let code = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        out.push((path, code));
    }
}

/// Places in the code that compare or match an operator's name. Calls that emit an operator by its name are none.
fn matches_of_names(code: &str) -> Vec<String> {
    const NAMES: [&str; 4] = [".name()", "schema.name", "schema().name", "schema().overload"];
    const SPACES: [&str; 5] = ["aten.", "prims.", "restride.", "higher_order.", "torchvision."];
    const TESTS: [&str; 7] = ["==", "!=", ".starts_with(", ".ends_with(", ".strip_", ".contains(", ".eq("];
    let line = |at: usize| {
        let from = code[..at].rfind('\n').map_or(0, |n| n + 1);
        code[from..].lines().next().unwrap_or("").trim().to_string()
    };
    let mut found = Vec::new();
    for name in NAMES {
        for (at, _) in code.match_indices(name) {
            let rest = code[at + name.len()..].trim_start();
            let rest = rest.strip_prefix(".as_str()").unwrap_or(rest).trim_start();
            let before = &code[code[..at].rfind(['{', '}', ';']).map_or(0, |n| n + 1)..at];
            // `match op.name() {`, `match (op.name(), args) {`; a closure in the head would have a brace of its own.
            let head = before.trim_start().rfind("match ").is_some_and(|m| !before.trim_start()[m..].contains("=>"));
            if TESTS.iter().any(|t| rest.starts_with(t)) || head {
                found.push(line(at));
            }
        }
    }
    for (at, _) in code.match_indices('"').filter(|(at, _)| SPACES.iter().any(|s| code[at + 1..].starts_with(s))) {
        let after = code[at + 1..].split_once('"').map_or("", |(_, rest)| rest);
        let before = code[..at].trim_end();
        let compared = |before: &str, after: &str| {
            ["==", "!="].iter().any(|t| before.ends_with(t) || after.trim_start().starts_with(t))
                || ["starts_with(", "ends_with(", "contains(", "eq("].iter().any(|t| before.ends_with(t))
                || ["=>", "| "].iter().any(|t| after.trim_start().starts_with(t))
                || before.ends_with('|') && !before.ends_with("||") && after.trim_start().starts_with(['|', ')', '='])
        };
        // In a tuple that is a pattern: `("aten.cat.default", [a, b]) =>`, `let ("aten.cat.default", …) = …`.
        let tuple =
            before.ends_with('(') && !before[..before.len() - 1].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let mut depth = 1;
        let close = after.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let behind = close.map_or("", |c| after[c + 1..].trim_start());
        if compared(before, after) || tuple && (behind.starts_with("=>") || behind.starts_with('=')) {
            found.push(line(at));
        }
    }
    found
}

#[test]
fn no_pass_matches_on_an_operators_name() {
    for bad in [
        r#"if node.op.name() == "aten.relu.default" {"#,
        r#"match op.name() { "aten.cat.default" => 1, _ => 2 }"#,
        r#"let n = op.schema().name.strip_suffix("_copy")?;"#,
        r#"matches!(name, "aten.view.default" | "aten.t.default")"#,
        r#"let ("aten.cat.default", [a, b]) = (name, args) else { return };"#,
        r#"match (node.op.name(), x) { _ => {} }"#,
        r#"if call.starts_with("higher_order.") {"#,
    ] {
        assert_ne!(matches_of_names(bad), Vec::<String>::new(), "{bad} is not found");
    }
    for good in [
        r#"b.call("aten.slice.Tensor", args, ty)"#,
        r#"let (view, dim) = match cut { Cut::A => ("aten.slice.Tensor", 1), Cut::B => ("aten.select.int", 2) };"#,
        r#"format!("{} has no kernel", op.name())"#,
    ] {
        assert_eq!(matches_of_names(good), Vec::<String>::new(), "{good}");
    }
    let mut found = Vec::new();
    for (dir, except) in NAMELESS {
        let mut files = Vec::new();
        sources(&crates().join(dir), except, &mut files);
        assert!(!files.is_empty(), "{dir} has no sources");
        for (path, code) in files {
            found.extend(matches_of_names(&code).into_iter().map(|l| format!("{}: {l}", path.display())));
        }
    }
    assert!(
        found.is_empty(),
        "operators are told apart by flags of their declarations, not by name:\n{}",
        found.join("\n")
    );
}

/// Type names that several files declare, each in a meaning of its own; no other name may be declared twice. `Result` is a
/// module's short form of the standard type. A name goes from this list when one of its declarations gets a better one.
const DECLARED_TWICE: &str = "Result Fold Matrix Number Part Parts Rows Scalar Shared Weights";

/// Adds the types that a folder's files declare at their top level, test modules aside, with the files.
fn declared_types(dir: &Path, types: &mut BTreeMap<String, BTreeSet<PathBuf>>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_none_or(|n| n != "tests") {
                declared_types(&path, types);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_none_or(|e| e != "rs") || path.ends_with("tests.rs") || path.ends_with("test_ops.rs") {
            continue;
        }
        for line in text.lines() {
            let line = line.strip_prefix("pub(").and_then(|l| l.split_once(") ")).map_or(line, |(_, rest)| rest);
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
            let Some(rest) = kinds.iter().find_map(|k| line.strip_prefix(k)) else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            types.entry(name).or_default().insert(path.clone());
        }
    }
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut types = BTreeMap::new();
    for entry in std::fs::read_dir(crates()).expect("crates/") {
        let source = entry.expect("a crate").path().join("src");
        declared_types(&source, &mut types);
    }
    assert!(types.len() > 500, "only {} types found", types.len());
    let known: BTreeSet<&str> = DECLARED_TWICE.split_whitespace().collect();
    let twice = types.iter().filter(|(name, files)| files.len() > 1 && !known.contains(name.as_str()));
    let twice: Vec<_> = twice.collect();
    assert!(twice.is_empty(), "declared in several files: {twice:#?}");
}

/// Most lines of a source file. A longer one has parts with names of their own: make them files.
const MOST_LINES: usize = 620;

/// Adds the sources below a folder with their lines.
fn lengths(dir: &Path, out: &mut Vec<(PathBuf, usize)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            lengths(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            out.push((path, text.lines().count()));
        }
    }
}

#[test]
fn files_stay_short() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates()).expect("crates/") {
        let folder = entry.expect("a crate").path();
        ["src", "tests", "benches", "examples"].iter().for_each(|part| lengths(&folder.join(part), &mut files));
    }
    lengths(&crates().join("../bindings/python/src"), &mut files);
    assert!(files.len() > 500, "only {} files found", files.len());
    let long: Vec<_> = files.iter().filter(|(_, lines)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines: {long:#?}");
}

/// Of a borrowed literal the compiler evaluates every declaration anew for each field that another one takes over from it: the crate
/// took fourteen times as long to compile.
#[test]
fn tables_of_operators_are_arrays() {
    let mut files = Vec::new();
    sources(&crates().join("restride-ops/src"), &[], &mut files);
    let tables = files.iter().map(|(_, code)| code.matches("[OpDef] = table![").count()).sum::<usize>();
    assert!(tables > 80, "only {tables} tables found");
    let borrowed: Vec<_> = files.iter().filter(|(_, code)| code.contains("[OpDef] = &[")).map(|f| &f.0).collect();
    assert!(
        borrowed.is_empty(),
        "these tables are borrowed literals, which `table!` makes static arrays: {borrowed:#?}"
    );
}
