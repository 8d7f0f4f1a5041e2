//! `docs/semantics.md` and its tests: every behaviour once, every file present and listed.

use std::collections::BTreeSet;
use std::path::Path;

/// Rows of the document's tables: the number, and the names in its last column.
fn rows(text: &str) -> Vec<(String, Vec<String>, String)> {
    let mut out = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, tests] = cells[..] else { panic!("not three cells: {line}") };
        if number.is_empty() {
            continue;
        }
        let named = tests.split('`').skip(1).step_by(2).filter(|n| is_test(n)).map(str::to_string).collect();
        out.push((number.to_string(), named, tests.to_string()));
    }
    out
}

fn is_test(name: &str) -> bool {
    number_of(name).is_some()
}

/// `84` of `b5_84_…`, `D1.5` of `d1_5_…`.
fn number_of(name: &str) -> Option<String> {
    let (block, rest) = name.split_once('_')?;
    let (list, block) = block.split_at_checked(1)?;
    let (block, number): (u32, u32) = (block.parse().ok()?, rest.split_once('_')?.0.parse().ok()?);
    match list {
        "b" => Some(number.to_string()),
        "d" => Some(format!("D{block}.{number}")),
        _ => None,
    }
}

#[test]
fn the_table_and_the_files_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../../docs/semantics.md")).expect("the document");
    let rows = rows(&text);
    let numbers: Vec<&str> = rows.iter().map(|r| r.0.as_str()).collect();
    let behaviours = (1..=162).map(|n| n.to_string());
    let lacks = [(1, 15), (2, 11)].into_iter().flat_map(|(list, n)| (1..=n).map(move |i| format!("D{list}.{i}")));
    assert_eq!(numbers, behaviours.chain(lacks).collect::<Vec<String>>(), "each behaviour once, in order");
    let mut named = BTreeSet::new();
    let mut own = BTreeSet::new();
    for (number, tests, cell) in &rows {
        assert!(!cell.is_empty(), "{number} has neither a test nor a reason");
        for test in tests {
            named.insert(test.clone());
            if number_of(test).as_ref() == Some(number) {
                own.insert(test.clone());
            }
        }
    }
    let mut files = BTreeSet::new();
    for dir in ["semantics", "placement"] {
        for file in std::fs::read_dir(root.join("filetests").join(dir)).expect("the tests") {
            let path = file.expect("a file").path();
            files.insert(path.file_stem().expect("a name").to_string_lossy().into_owned());
        }
    }
    for file in ["tape/views.rs", "tape/saved.rs", "tape/passes.rs", "functions.rs"] {
        let text = std::fs::read_to_string(root.join("../restride-exec/tests").join(file)).expect("tests of the tape");
        let functions = text.lines().filter_map(|l| l.strip_prefix("fn ")?.split_once('('));
        files.extend(functions.map(|(name, _)| name.to_string()).filter(|name| is_test(name)));
    }
    let unnamed: Vec<_> = files.difference(&named).collect();
    let missing: Vec<_> = named.difference(&files).collect();
    let elsewhere: Vec<_> = files.difference(&own).collect();
    assert!(unnamed.is_empty() && missing.is_empty(), "not in the table: {unnamed:?}; without a file: {missing:?}");
    assert!(elsewhere.is_empty(), "not in the row of their number: {elsewhere:?}");
}
