//! Output that cannot be written is an error of every command, wherever it goes.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

fn restride(args: &[&str], out: Stdio) -> Output {
    let mut call = Command::new(env!("CARGO_BIN_EXE_restride"));
    call.args(args).stdout(out).stderr(Stdio::piped()).output().expect("the command")
}

fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

/// A name that leads to the full device.
struct Link(PathBuf);

impl Link {
    fn new(name: &str) -> Link {
        let path = std::env::temp_dir().join(format!("restride-full-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
        Link(path)
    }
    fn text(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn refused(args: &[&str], out: Output) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
    assert!(
        said.contains("No space left on device") && said.starts_with("error: ") && said.matches("error: ").count() == 1,
        "{args:?}: {said}"
    );
}

#[test]
fn standard_output() {
    let program = &fixture("pt2/kv_cache.pt2");
    let loss = &fixture("examples/classifier.pt2");
    let joint = std::env::temp_dir().join(format!("restride-full-{}-joint.pt2", std::process::id()));
    let joint = joint.to_str().expect("a path in UTF-8");
    for args in [
        &["show", program][..],
        &["run", program],
        &["run", program, "--via", "interp"],
        &["verify", program],
        &["compile", program],
        &["plan", program],
        &["explain", program],
        &["bench", program],
        &["ops"],
        &["grad", loss, "--keep", "none", "-o", joint],
        &["--help"],
        &["--version"],
    ] {
        refused(args, restride(args, full()));
    }
    let _ = std::fs::remove_file(joint);
}

#[test]
fn every_file() {
    let program = &fixture("pt2/kv_cache.pt2");
    let loss = &fixture("examples/classifier.pt2");
    let [pt2, fx, json, npz, html] = ["x.pt2", "x.fx", "x.json", "x.npz", "x.html"].map(Link::new);
    let tensors = Link::new("x.safetensors");
    for args in [
        &["functionalize", program, "-o", pt2.text()][..],
        &["functionalize", program, "-o", fx.text()],
        &["reinplace", program, "-o", pt2.text()],
        &["reinplace", program, "-o", "/dev/full"],
        &["compile", program, "-o", pt2.text()],
        &["compile", program, "--report", html.text()],
        &["compile", program, "--json", json.text()],
        &["grad", loss, "-o", pt2.text()],
        &["run", program, "--outputs", npz.text()],
        &["run", program, "--outputs", json.text()],
        &["run", program, "--outputs", tensors.text()],
        &["run", program, "--json", json.text()],
        &["verify", program, "--json", json.text()],
        &["plan", program, "--json", json.text()],
        &["explain", program, "--json", json.text()],
        &["bench", program, "--json", json.text()],
        &["ops", "--json", json.text()],
    ] {
        refused(args, restride(args, Stdio::null()));
    }
    // The link is still one, and the device a device.
    assert!(pt2.0.is_symlink());
    assert!(!Path::new("/dev/full").metadata().expect("it is there").is_file());
}

/// Nor is standard error of importance.
#[test]
fn standard_error() {
    let mut call = Command::new(env!("CARGO_BIN_EXE_restride"));
    call.args(["show", "/nowhere/x.pt2"]).stdout(Stdio::null()).stderr(full());
    assert_eq!(call.status().expect("the command").code(), Some(1));
}
