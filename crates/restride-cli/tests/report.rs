//! `compile --report` writes one page that needs nothing else.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of this process that goes with the value.
struct Page(PathBuf);

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn page(name: &str) -> Page {
    Page(std::env::temp_dir().join(format!("restride-{}-{name}", std::process::id())))
}

fn compile(program: &Path, more: &[&str], to: &Page) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_restride"))
        .arg("compile")
        .arg(program)
        .args(more)
        .arg("--report")
        .arg(&to.0)
        .output()
        .expect("the command");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Progress goes to a terminal only: neither pipe has any of it.
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::read_to_string(&to.0).expect("the page")
}

/// The data that the page carries, read as a browser does: up to the first thing that ends the element.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"<script type="application/json" id="data">"#).expect("the data's element");
    let (text, _) = rest.split_once("</").expect("its end");
    serde_json::from_str(text).expect("JSON")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples")
}

#[test]
fn the_page_needs_nothing_else() {
    let file = page("llama.html");
    let text = compile(&examples().join("llama_decode.pt2"), &[], &file);
    assert!(text.starts_with("<!doctype html>") && text.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "src=", "@import", "url(", "/*style*/", "/*data*/", "/*scripts*/"] {
        assert!(!text.contains(outside), "the page has {outside}");
    }
    let links: Vec<&str> = text.split("href=\"").skip(1).filter_map(|l| l.split('"').next()).collect();
    assert!(links.iter().all(|l| l.starts_with('#') || *l == "data:,"), "{links:?}");
    assert!(text.contains("Content-Security-Policy\" content=\"default-src 'none'"));
}

#[test]
fn the_page_has_the_numbers_of_the_command() {
    let file = page("vit.html");
    let json = page("vit.json");
    let plan = page("vit-plan.json");
    let program = examples().join("vit_small.pt2");
    let found = data(&compile(&program, &["--json", &json.0.to_string_lossy()], &file));
    let read =
        |p: &Page| -> Value { serde_json::from_str(&std::fs::read_to_string(&p.0).expect("a file")).expect("JSON") };
    let expected = read(&json);
    for key in ["program", "imported", "functional", "placed", "plan", "checks"] {
        assert_eq!(found["report"][key], expected[key], "{key}");
    }
    let out =
        Command::new(env!("CARGO_BIN_EXE_restride")).arg("plan").arg(&program).arg("--json").arg(&plan.0).output();
    assert!(out.expect("the command").status.success());
    let buffers = found["parts"][0]["buffers"].as_array().expect("buffers");
    let mut blocks: Vec<[i64; 4]> =
        buffers.iter().filter(|b| b[0] == 0).map(|b| [2, 3, 4, 5].map(|i| b[i].as_i64().expect("a number"))).collect();
    let rows = read(&plan)["buffers"].as_array().expect("buffers").clone();
    let mut expected: Vec<[i64; 4]> = rows
        .iter()
        .map(|r| ["offset", "bytes", "first_step", "last_step"].map(|k| r[k].as_i64().expect("a number")))
        .collect();
    blocks.sort_unstable();
    expected.sort_unstable();
    assert_eq!(blocks, expected);
    assert!(blocks.len() > 10);
}

/// Names are data, whatever they are: they neither end the element nor become markup, and arrive as they were.
#[test]
fn hostile_names_stay_names() {
    const NAME: &str = "</script><img src=x onerror=alert(1)>\u{2028}<!--&amp;'\\\"";
    let quoted = NAME.replace('\\', "\\\\").replace('"', "\\\"");
    let file = page("hostile.html");
    let program = page("hostile.fx");
    let body = format!(
        "program \"{quoted}\"\ngraph(%x: f32[8]) {{\n  %\"{quoted}\": f32[8] = aten.relu.default(%x)\n  \
         %b: f32[8, 8] = aten.outer.default(%\"{quoted}\", %x)\n  %c: f32[] = aten.sum.default(%b)\n  return %c\n}}\n"
    );
    std::fs::write(&program.0, body).expect("a file");
    let text = compile(&program.0, &["--random", "1"], &file);
    let ordinary = page("ordinary.html");
    let other = compile(&examples().join("vit_small.pt2"), &[], &ordinary);
    for tag in ["<script", "</script", "<img", "<!--", "\u{2028}"] {
        assert_eq!(text.matches(tag).count(), other.matches(tag).count(), "{tag}");
    }
    let found = data(&text);
    assert_eq!(found["report"]["program"], NAME);
    let strings = found["strings"].as_array().expect("strings");
    assert!(strings.iter().any(|s| s == NAME), "{strings:?}");
}
