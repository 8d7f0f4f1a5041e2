//! `docs/semantics.md` and the tests that it names: every behaviour once, every file there, no file forgotten.

use std::collections::BTreeSet;
use std::path::Path;

/// Rows of the document's tables: the number, and the names in its last column.
fn rows(text: &str) -> Vec<(u32, Vec<String>, String)> {
    let mut out = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, tests] = cells[..] else { panic!("not three cells: {line}") };
        if number.is_empty() {
            continue;
        }
        let number = number.parse().unwrap_or_else(|_| panic!("{number:?} is no number: {line}"));
        let named = tests.split('`').skip(1).step_by(2).filter(|n| is_test(n)).map(str::to_string).collect();
        out.push((number, named, tests.to_string()));
    }
    out
}

fn is_test(name: &str) -> bool {
    name.strip_prefix('b').and_then(|n| n.split_once('_')).is_some_and(|(block, _)| block.parse::<u32>().is_ok())
}

#[test]
fn the_table_and_the_files_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../../docs/semantics.md")).expect("the document");
    let rows = rows(&text);
    let numbers: Vec<u32> = rows.iter().map(|r| r.0).collect();
    assert_eq!(numbers, (1..=37).chain(69..=138).collect::<Vec<u32>>(), "each behaviour once, in order");
    let mut named = BTreeSet::new();
    let mut own = BTreeSet::new();
    for (number, tests, cell) in &rows {
        assert!(!cell.is_empty(), "{number} has neither a test nor a reason");
        for test in tests {
            named.insert(test.clone());
            let of = test.split('_').nth(1).and_then(|n| n.parse::<u32>().ok());
            assert!(of.is_some(), "{test} is named by no number");
            if of == Some(*number) {
                own.insert(test.clone());
            }
        }
    }
    let dir = std::fs::read_dir(root.join("filetests/semantics")).expect("the tests");
    let files: BTreeSet<String> =
        dir.map(|f| f.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    let unnamed: Vec<_> = files.difference(&named).collect();
    let missing: Vec<_> = named.difference(&files).collect();
    let elsewhere: Vec<_> = files.difference(&own).collect();
    assert!(unnamed.is_empty() && missing.is_empty(), "not in the table: {unnamed:?}; not there: {missing:?}");
    assert!(elsewhere.is_empty(), "not in the row of their number: {elsewhere:?}");
}
