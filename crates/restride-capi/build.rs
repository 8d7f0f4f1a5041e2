//! With the feature `symbol-versions`: the version script of the shared library, and the versions of its symbols.

use std::fmt::Write;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=symbols.txt");
    println!("cargo:rerun-if-changed=build.rs");
    let versioned = std::env::var_os("CARGO_FEATURE_SYMBOL_VERSIONS").is_some();
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if !versioned || !linux {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let symbols = std::fs::read_to_string("symbols.txt").expect("symbols.txt beside build.rs");
    // The compiler's own version script makes symbols global; one with a name of its own adds versions to them. lld takes both.
    let mut assembly = String::from("core::arch::global_asm!(\n");
    for symbol in symbols.lines() {
        let _ = writeln!(assembly, "    \".symver {symbol}, {symbol}@@RESTRIDE_1\",");
    }
    assembly += ");\n";
    std::fs::write(out.join("versions.rs"), assembly).expect("OUT_DIR is writable");
    let script = out.join("restride.map");
    std::fs::write(&script, "RESTRIDE_1 { };\n").expect("OUT_DIR is writable");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
}
