//! Lets the linker make the command smaller, where it can.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

/// Keeps one copy of functions with equal machine code: kernels over element types of one size compile to many such functions.
const FOLD: &str = "-Wl,--icf=all";
/// Writes the addresses that the loader moves as bits, not as 24 bytes each; for glibc 2.36 and later.
const PACK: &str = "-Wl,-z,pack-relative-relocs";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    if program(FOLD).is_some() {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
    // Loaders differ as well, and only the one of this machine can be asked.
    let runs = |program: PathBuf| Command::new(program).status().is_ok_and(|s| s.success());
    if env::var("TARGET") == env::var("HOST") && program(PACK).is_some_and(runs) {
        println!("cargo::rustc-link-arg-bins={PACK}");
    }
}

/// A program that is linked with this argument; `None` if it does not link. Linkers differ, and so do those that flags and
/// configurations choose.
fn program(argument: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, out) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.arg(&source).arg("-o").arg(&out).args(["--target", &env::var("TARGET").ok()?]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.to_str()?));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|f| !f.is_empty())).arg("-C").arg(format!("link-arg={argument}"));
    rustc.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?.success().then_some(out)
}
