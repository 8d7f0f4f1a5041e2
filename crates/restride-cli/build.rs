//! Lets the linker fold functions of equal code, where it can. Kernels over element types of one size have many such functions.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() == Ok("release") && linker_takes(FOLD).unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
}

/// Whether a program links with this argument: linkers differ, and so do those that flags and configurations choose.
fn linker_takes(argument: &str) -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let source = folder.join("empty.rs");
    fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.arg(&source).arg("--out-dir").arg(&folder).args(["--target", &env::var("TARGET").ok()?]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.to_str()?));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|f| !f.is_empty())).arg("-C").arg(format!("link-arg={argument}"));
    let status = rustc.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    Some(status.success())
}
