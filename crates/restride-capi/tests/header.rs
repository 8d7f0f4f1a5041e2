//! `include/restride.h` and `symbols.txt` say what the library has. `RESTRIDE_BLESS=1` writes them again.

use std::path::{Path, PathBuf};

fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn bless() -> bool {
    std::env::var_os("RESTRIDE_BLESS").is_some_and(|v| v == "1")
}

fn header() -> String {
    let config = cbindgen::Config::from_file(crate_dir().join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in sources() {
        builder = builder.with_src(file);
    }
    let mut out = Vec::new();
    builder.generate().expect("a header").write(&mut out);
    String::from_utf8(out).expect("a text")
}

fn sources() -> Vec<PathBuf> {
    let files = std::fs::read_dir(crate_dir().join("src")).expect("src").map(|e| e.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|f| !f.ends_with("lib.rs") && !f.ends_with("versions.rs")).collect();
    files.sort();
    files
}

fn compare(path: &Path, now: &str) {
    if bless() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, now).expect("a file");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == now, "{} is old: RESTRIDE_BLESS=1 cargo test -p restride-capi --test header", path.display());
}

#[test]
fn the_header_is_what_the_crate_exports() {
    compare(&crate_dir().join("include/restride.h"), &header());
}

/// The functions of the crate's sources that C can call.
fn functions() -> Vec<String> {
    let mut names = Vec::new();
    for file in sources() {
        let text = std::fs::read_to_string(file).expect("a source file");
        let functions = text.split("#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn ").skip(1);
        names.extend(functions.map(|f| f.split('(').next().unwrap_or("").to_string()));
        assert_eq!(
            text.matches("no_mangle").count(),
            text.matches("#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn restride_").count()
        );
    }
    names.sort();
    names
}

/// A symbol that goes, or changes its meaning, needs another `RESTRIDE_ABI` and another major version in the crate's `metadata.capi`.
#[test]
fn no_exported_symbol_changes_unseen() {
    let names = functions();
    assert!(names.len() > 40, "only {} functions found", names.len());
    compare(&crate_dir().join("symbols.txt"), &(names.join("\n") + "\n"));
    let header = header();
    for name in &names {
        assert!(header.contains(&format!("{name}(")), "the header lacks {name}");
    }
}

#[test]
fn the_abi_number_is_the_librarys_major_version() {
    let manifest = std::fs::read_to_string(crate_dir().join("Cargo.toml")).expect("Cargo.toml");
    let abi = restride_capi::RESTRIDE_ABI;
    assert!(manifest.contains(&format!("version = \"{abi}.")), "metadata.capi.library.version is not {abi}");
    let build = std::fs::read_to_string(crate_dir().join("build.rs")).expect("build.rs");
    assert!(build.contains(&format!("RESTRIDE_{abi} {{ }};")), "the version node is not RESTRIDE_{abi}");
}

/// Every function says its thread rule, or is one of those that the head of the header speaks of: reading and freeing.
#[test]
fn every_function_says_its_thread_rule() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (before, after) in text.match_indices("#[unsafe(no_mangle)]").map(|(at, _)| text.split_at(at)) {
            let name = after.split("fn ").nth(1).and_then(|n| n.split('(').next()).unwrap_or("");
            let docs: Vec<&str> = before.trim_end().lines().rev().take_while(|l| l.starts_with("///")).collect();
            assert!(!docs.is_empty(), "{name} has no documentation");
            let told = docs.iter().any(|l| l.contains("Threads:"));
            let head =
                ["restride_status_", "restride_strings_", "restride_string_free"].iter().any(|p| name.starts_with(p));
            assert!(told || head || name.ends_with("_init"), "{name} says no thread rule");
        }
    }
}
