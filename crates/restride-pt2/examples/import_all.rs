//! Imports every `.pt2` of the given files and folders, verifies it, and prints one line each:
//! `cargo run -p restride-pt2 --example import_all -- fixtures/alias`.

use restride_pt2::import::{ImportOptions, import};
use restride_tensor::Bytes;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn collect(path: &Path, out: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
        out.extend(entries.filter(|p| p.extension().is_some_and(|e| e == "pt2")));
    } else {
        out.push(path.to_path_buf());
    }
}

fn main() {
    let mut files = Vec::new();
    for arg in std::env::args().skip(1) {
        collect(Path::new(&arg), &mut files);
    }
    files.sort();
    let mut failed = 0;
    for path in &files {
        let start = Instant::now();
        let options = ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Default::default() };
        let result = Bytes::map(path)
            .map_err(|e| restride_ir::Error::new(restride_ir::ErrorKind::File, e.to_string()))
            .and_then(|bytes| import(&bytes, "program", &options));
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match result.and_then(|p| restride_ir::verify(&p).map(|()| p)) {
            Ok(p) => {
                let samples = if p.sample_inputs.is_some() { "samples" } else { "no samples" };
                println!("ok    {name} {} nodes, {samples}, {ms:.1} ms", p.graph().order.len());
                for note in &p.notes {
                    println!("      note {note}");
                }
            }
            Err(e) => {
                failed += 1;
                println!("FAIL  {name} {e}, {ms:.1} ms");
            }
        }
    }
    println!("{} files, {failed} failed", files.len());
}
