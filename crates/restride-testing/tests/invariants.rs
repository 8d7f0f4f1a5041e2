//! What ARCHITECTURE.md promises of the crates, read from their files.

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
fn judges_share_declarations_and_no_reasoning() {
    let own: Vec<String> = dependencies("restride-check").into_iter().filter(|d| d.starts_with("restride")).collect();
    assert!(!own.is_empty());
    assert!(own.iter().all(|d| d == "restride-ir" || d == "restride-tensor"), "restride-check depends on {own:?}");
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
        if ["restride-tensor", "restride-kernels", "restride-exec"].contains(&name.as_str()) {
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
