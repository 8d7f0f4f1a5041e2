//! Filetests under `filetests`, or in the directory of `RESTRIDE_FILETESTS`. `RESTRIDE_BLESS=1` rewrites the expected
//! outputs; read the diff before you keep it.

use restride_testing::filetest;
use std::path::Path;

#[test]
fn files_give_what_they_say() {
    let given = std::env::var_os("RESTRIDE_FILETESTS");
    let dir = match &given {
        Some(dir) => dir.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"),
    };
    let bless = std::env::var("RESTRIDE_BLESS").is_ok_and(|v| v == "1");
    let files = filetest::files(&dir);
    assert!(given.is_some() || files.len() >= 130, "only {} files", files.len());
    let failed: Vec<String> = files.iter().filter_map(|f| filetest::run(f, bless).err()).collect();
    assert!(failed.is_empty(), "{} of {} fail\n{}", failed.len(), files.len(), failed.join("\n"));
}
