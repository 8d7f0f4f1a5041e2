//! The command line: help, options that each command takes, standard input and output, messages.

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const COMMANDS: [&str; 13] = [
    "show",
    "run",
    "verify",
    "functionalize",
    "reinplace",
    "compile",
    "grad",
    "plan",
    "explain",
    "bench",
    "ops",
    "completions",
    "man",
];

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// A directory of this test that goes with the value.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("restride-cli-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("a directory");
        Dir(path)
    }
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path in UTF-8").to_string()
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(args: &[&str]) -> Command {
    let mut call = Command::new(env!("CARGO_BIN_EXE_restride"));
    call.args(args).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        call.env_remove(variable);
    }
    call
}

fn restride(args: &[&str]) -> Output {
    command(args).output().expect("the command")
}

fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut call = command(args);
    let mut child = call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn done(args: &[&str]) -> Output {
    let o = restride(args);
    assert!(o.status.success(), "{args:?}: {}", err(&o));
    o
}

/// A wrong command line: status 2, and a message that has this in it.
fn usage(args: &[&str], why: &str) -> String {
    let o = restride(args);
    assert_eq!(o.status.code(), Some(2), "{args:?}: {}{}", out(&o), err(&o));
    assert!(err(&o).starts_with("error: ") && err(&o).contains(why), "{args:?}: {}", err(&o));
    err(&o)
}

const STATIC: &str = "graph(%x: f32[4, 2], %y: f32[4, 2]) {\n  %a: f32[4, 2] = aten.exp.default(%x)\n  \
                      %b: f32[4, 2] = aten.add_.Tensor(%y, %a)\n  return %b\n}\n";
const DYNAMIC: &str =
    "symbol n in [2, 100]\ngraph(%x: f32[n, 3]) {\n  %a: f32[n, 3] = aten.exp.default(%x)\n  return %a\n}\n";
const LEARNT: &str = "symbol u0 in [0, inf]\ngraph(%x: f32[8]) {\n  %a: i64[u0, 1] = aten.nonzero.default(%x)\n  \
                      %b: i64[u0, 1] = aten.neg.default(%a)\n  return %b\n}\n";
/// Two steps whose results could share memory, a view, and a random operator.
const RICH: &str = "graph(%x: f32[64, 64], %y: f32[64, 64]) {\n  %r: f32[64, 64] = aten.rand_like.default(%x)\n  \
                    %t: f32[64, 64][1, 64] = aten.t.default(%y)\n  %a: f32[64, 64] = aten.mul.Tensor(%x, %r)\n  \
                    %b: f32[64, 64] = aten.mm.default(%a, %t)\n  %c: f32[128, 64] = aten.cat.default([%b, %a])\n  \
                    %d: f32[64, 64] = aten.mm.default(%x, %a)\n  %s: f32[64, 64] = aten.add.Tensor(%d, %b)\n  \
                    %e: f32[] = aten.sum.default(%c)\n  %z: f32[] = aten.sum.default(%s)\n  return %e, %z\n}\n";

#[test]
fn help_says_what_it_is_for_and_has_examples() {
    let help = out(&done(&["--help"]));
    assert!(help.lines().next().is_some_and(|l| l.contains("PyTorch") && l.contains("memory")), "{help}");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in: {help}");
        let long = out(&done(&[command, "--help"]));
        assert!(long.contains("Examples:\n  restride "), "{command}: {long}");
        assert!(long.lines().all(|l| l.chars().count() <= 110), "{command}: {long}");
    }
    let compile = out(&done(&["compile", "--help"]));
    for heading in ["Opening FILE:", "Inputs and checks:", "Memory:", "Output:"] {
        assert!(compile.contains(heading), "{heading} is not in: {compile}");
    }
}

/// The options in a command's help.
fn options(command: &str) -> BTreeSet<String> {
    let help = out(&done(&[command, "--help"]));
    let named = help.lines().filter_map(|l| {
        let l = l.trim_start();
        let l = ["-h, ", "-o, ", "-q, ", "-v, "].iter().find_map(|short| l.strip_prefix(short)).unwrap_or(l);
        let name = l.strip_prefix("--")?;
        Some(name.split([' ', '=', '[']).next().unwrap_or(name).to_string())
    });
    named.collect()
}

#[test]
fn each_command_takes_the_options_that_change_it() {
    let program = "model ops weights dynamic no-mmap limit ";
    let given = "inputs random no-check ";
    let run = "seed threads ";
    let memory = "budget no-reorder no-fold no-fuse fuse-limit fuse-heads fuse-tiles memories pin align alloc-graph-input alloc-graph-output no-views \
                  search-steps ";
    let optimizer =
        "optimizer lr weight-decay maximize momentum dampening nesterov betas eps amsgrad decoupled-weight-decay ";
    let table = [
        ("show", [program, given, memory, "stage"].concat()),
        ("run", [program, given, run, memory, "outputs state via ranks group json"].concat()),
        ("verify", [program, given, run, memory, "ranks group json"].concat()),
        ("functionalize", [program, given, "output emit portable views"].concat()),
        ("reinplace", [program, given, "output views"].concat()),
        ("compile", [program, given, memory, "output report json world link latency memory-rate"].concat()),
        (
            "grad",
            [program, given, optimizer, "output loss wrt keep max-trips data-parallel bucket-bytes shard"].concat(),
        ),
        ("plan", [program, given, memory, "json"].concat()),
        ("explain", [program, given, memory, "all json"].concat()),
        ("bench", [program, given, run, memory, "steps json"].concat()),
        ("ops", "json".into()),
        ("completions", String::new()),
        ("man", String::new()),
    ];
    let split = |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_string).collect() };
    for (command, own) in &table {
        let expected = &split(own) | &split("quiet verbose color help");
        assert_eq!(options(command), expected, "{command}");
    }
    // Other commands' options are usage errors.
    let all = [program, given, run, memory, optimizer].concat();
    let file = &fixture("pt2/kv_cache.pt2");
    for (command, own) in &table {
        for option in &split(&all) - &split(own) {
            let option = format!("--{option}");
            let args = match *command {
                "ops" | "completions" => vec![*command, &option],
                _ => vec![*command, file.as_str(), &option],
            };
            usage(&args, &format!("'{option}'"));
        }
    }
}

/// Standard output, standard error and files of a command, without times.
fn effect(dir: &Dir, args: &[&str]) -> String {
    let json = dir.path("effect.json");
    let _ = std::fs::remove_file(&json);
    let to_json: &[&str] = if args[0] == "show" { &[] } else { &["--json", &json] };
    let o = restride(&[args, to_json].concat());
    let mut all = format!("{:?}\n{}{}", o.status.code(), out(&o), err(&o));
    if let Ok(text) = std::fs::read_to_string(&json) {
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        value.as_object_mut().map(|o| o.remove("time_us"));
        all += &value.to_string();
    }
    all.lines().filter(|l| !l.starts_with("time (ms)")).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_option_changes_something() {
    let dir = Dir::new("effects");
    let program = &dir.file("rich.fx", RICH);
    let vit = &fixture("examples/vit_small.pt2");
    let memory: [(&str, &[&str]); 7] = [
        (program, &["--budget", "1"]),
        (program, &["--memories", "fast=17kB,slow"]),
        (program, &["--align", "65536"]),
        (program, &["--alloc-graph-input"]),
        (program, &["--alloc-graph-output"]),
        (vit, &["--no-views"]),
        (program, &["--limit", "memory=10"]),
    ];
    for command in ["show", "compile", "plan", "explain"] {
        for (file, option) in memory {
            // A plan's offsets are no decision that `explain` has a line for.
            if command == "explain" && ["--memories", "--align"].contains(&option[0]) {
                continue;
            }
            let base = ["--random", "0"];
            let stage: &[&str] = if command == "show" { &["--stage", "placed"] } else { &[] };
            let plain = effect(&dir, &[&[command, file], &base[..], stage].concat());
            let with = effect(&dir, &[&[command, file], &base[..], stage, option].concat());
            assert_ne!(plain, with, "{command} {option:?}");
        }
    }
    let plain = effect(&dir, &["run", program, "--random", "0"]);
    for option in [&["--seed", "1"][..], &["--budget", "1"], &["--limit", "memory=10"]] {
        assert_ne!(plain, effect(&dir, &[&["run", program, "--random", "0"], option].concat()), "run {option:?}");
    }
    assert_ne!(plain, effect(&dir, &["run", program, "--random", "1"]));
    for (command, file) in [("compile", program), ("verify", program)] {
        let plain = effect(&dir, &[command, file, "--random", "0"]);
        assert_ne!(plain, effect(&dir, &[command, file, "--random", "0", "--no-check"]), "{command}");
    }
}

#[test]
fn options_of_another_stage_are_refused() {
    let cache = &fixture("pt2/kv_cache.pt2");
    for via in ["interp", "functional"] {
        usage(&["run", cache, "--via", via, "--budget", "1MB"], "--budget changes the planned run alone");
    }
    usage(&["show", cache, "--stage", "imported", "--no-views"], "--no-views changes the placed stage alone");
    usage(&["run", cache, "--weights", cache], "--weights");
    let dir = Dir::new("stages");
    let text = &dir.file("p.fx", STATIC);
    usage(&["show", text, "--model", "m"], "--model");
    usage(&["explain", cache, "add", "--all"], "cannot be used with");
    usage(&["grad", cache, "-o", "x.pt2", "--loss", "7"], "output.0");
}

#[test]
fn static_sizes_need_no_inputs() {
    let dir = Dir::new("static");
    let program = &dir.file("static.fx", STATIC);
    for command in ["show", "compile", "plan", "explain"] {
        done(&[command, program]);
        // Zeros of the declared sizes are placed as any other inputs.
        let stage: &[&str] = if command == "show" { &["--stage", "placed"] } else { &[] };
        let without = effect(&dir, &[&[command, program], stage].concat());
        assert_eq!(without, effect(&dir, &[&[command, program, "--random", "3"], stage].concat()), "{command}");
    }
    for command in ["functionalize", "reinplace"] {
        let [plain, drawn] = ["plain.fx", "drawn.fx"].map(|n| dir.path(&format!("{command}-{n}")));
        done(&[command, program, "-o", &plain]);
        done(&[command, program, "-o", &drawn, "--random", "3"]);
        assert_eq!(std::fs::read(plain).expect("text"), std::fs::read(drawn).expect("text"), "{command}");
    }
    let planned = dir.path("planned.pt2");
    done(&["compile", program, "-o", &planned]);
    done(&["run", &planned, "--random", "0"]);
    for command in ["run", "verify", "bench"] {
        let said = usage(&[command, program], "the program has no sample inputs");
        assert!(said.contains("help: give x, y with --inputs FILE"), "{said}");
    }
}

#[test]
fn dynamic_sizes_ask_for_inputs() {
    let dir = Dir::new("dynamic");
    let sizes = &dir.file("dynamic.fx", DYNAMIC);
    let learnt = &dir.file("learnt.fx", LEARNT);
    for command in ["show", "compile", "plan", "explain"] {
        let o = restride(&[command, sizes]);
        assert_eq!(o.status.code(), Some(2), "{command}: {}", err(&o));
        assert!(err(&o).contains("f32[n, 3] has no known sizes\nhelp: give inputs with --inputs FILE"), "{}", err(&o));
        let o = restride(&[command, learnt]);
        assert_eq!(o.status.code(), Some(2), "{command}: {}", err(&o));
        assert!(err(&o).contains("the sizes after %a = aten.nonzero.default depend on data"), "{}", err(&o));
        done(&[command, sizes, "--random", "0"]);
        done(&[command, learnt, "--random", "0"]);
    }
    for command in ["functionalize", "reinplace"] {
        done(&[command, sizes, "-o", &dir.path("out.fx")]);
    }
}

#[test]
fn sizes_that_are_fixed_or_bounded_in_a_file_are_told() {
    let dir = Dir::new("fixed");
    // Of an input with rows close together the result is the input, and its writing writes the input; else it is a copy.
    let strided = "symbol s in [1, inf]\nsymbol n in [1, inf]\ngraph(%x: f32[n, 4][4*s, 1]) {
  %r: f32[n, 4] = aten.contiguous.default(%x)\n  %w: f32[n, 4] = aten.mul_.Scalar(%r, 2)\n  return %w\n}";
    // With one row the result is a view of the input; with more it is a copy.
    let rows =
        "symbol n in [1, inf]\ngraph(%x: f32[2, n, 4]) {\n  %h: f32[n, 2, 4][4, 4*n, 1] = aten.transpose.int(%x, 0, 1)
  %r: f32[n, 8] = aten.reshape.default(%h, [n, 8])\n  %w: f32[n, 8] = aten.mul_.Scalar(%r, 2)\n  return %w\n}";
    let (strided, rows) = (&dir.file("strided.fx", strided), &dir.file("rows.fx", rows));
    for command in ["functionalize", "reinplace"] {
        for (program, told) in [
            (
                strided,
                "note: sizes are fixed to those of the inputs: whether aten.contiguous.default copies or aliases depends",
            ),
            (
                rows,
                "note: n must be at least 2: whether aten.reshape.default copies or aliases depends on unknown sizes",
            ),
        ] {
            let o = done(&[command, program, "--random", "0", "-o", &dir.path("out.fx")]);
            assert!(err(&o).contains(told), "{command}: {}", err(&o));
        }
    }
    done(&["functionalize", rows, "-o", &dir.path("out.fx")]);
    let three = out(&done(&["run", &dir.path("out.fx"), "--random", "x=f32[2,3,4]"]));
    assert!(three.contains("f32[3, 8]"), "{three}");
    let o = restride(&["run", &dir.path("out.fx"), "--random", "x=f32[2,1,4]"]);
    assert!(err(&o).contains("and the program takes f32[2, n, 4]"), "{}", err(&o));
    let one = out(&done(&["verify", rows, "--random", "x=f32[2,1,4]"]));
    assert!(one.contains("agrees with interp in 2 values"), "{one}");
    let o = done(&["functionalize", &dir.file("sizes.fx", DYNAMIC), "--random", "0", "-o", &dir.path("out.fx")]);
    assert!(!err(&o).contains("sizes are fixed"), "{}", err(&o));
}

#[test]
fn dash_is_standard_input() {
    let dir = Dir::new("stdin");
    let file = dir.file("static.fx", STATIC);
    let named = out(&done(&["show", &file]));
    let archive = std::fs::read(fixture("pt2/kv_cache.pt2")).expect("a fixture");
    let piped = fed(&["show", "-"], STATIC.as_bytes());
    assert_eq!(out(&piped), named, "{}", err(&piped));
    let piped = fed(&["run", "-"], &archive);
    assert_eq!(out(&piped), out(&done(&["run", &fixture("pt2/kv_cache.pt2")])), "{}", err(&piped));
    // Tensor files are known by their contents.
    let program = &fixture("pt2/kv_cache.pt2");
    for name in ["in.npz", "in.json", "in.safetensors"] {
        let given = dir.path(name);
        done(&[
            "run",
            &dir.file("id.fx", "graph(%x: f32[2]) {\n  return %x\n}\n"),
            "--random",
            "5",
            "--outputs",
            &given,
        ]);
        let bytes = std::fs::read(&given).expect("outputs");
        // The file is read, and its tensors do not fit: their names, or in a file without names the sizes.
        let piped = fed(&["run", program, "--inputs", "-"], &bytes);
        assert_eq!(piped.status.code(), Some(1));
        let why = if name == "in.json" { "input x must be f32[1, 1, 8]" } else { "standard input has " };
        assert!(err(&piped).contains(why), "{name}: {}", err(&piped));
    }
    let inputs = std::fs::read(fixture("pt2/kv_cache.inputs.npz")).expect("a fixture");
    let piped = fed(&["run", program, "--inputs", "-"], &inputs);
    assert_eq!(out(&piped), out(&done(&["run", program, "--inputs", &fixture("pt2/kv_cache.inputs.npz")])));
    let broken = fed(&["show", "-"], b"PK not a zip");
    assert!(err(&broken).starts_with("error: standard input: "), "{}", err(&broken));
    usage(&["run", "-", "--inputs", "-"], "there is one standard input");
}

#[test]
fn dash_is_standard_output() {
    let dir = Dir::new("stdout");
    let program = &fixture("pt2/kv_cache.pt2");
    let here = |args: &[&str]| command(args).current_dir(&dir.0).output().expect("the command");
    for command in ["run", "verify", "compile", "plan", "explain", "bench"] {
        let o = here(&[command, program, "--json", "-"]);
        serde_json::from_slice::<Value>(&o.stdout).unwrap_or_else(|e| panic!("{command}: {e}: {}", out(&o)));
        // The table moves to standard error.
        assert!(!o.stderr.is_empty(), "{command}");
        assert!(here(&[command, program, "--json", "-", "--quiet"]).stderr.is_empty(), "{command}");
    }
    assert!(serde_json::from_slice::<Value>(&here(&["ops", "--json", "-"]).stdout).is_ok_and(|v| v.is_array()));
    let whole = here(&["run", program, "--outputs", "-"]);
    assert!(serde_json::from_slice::<Value>(&whole.stdout).is_ok_and(|v| v["tensors"].is_array()), "{}", err(&whole));
    assert!(out(&here(&["compile", program, "--report", "-"])).starts_with("<!doctype html>"));
    for command in ["functionalize", "reinplace", "compile"] {
        let o = here(&[command, program, "-o", "-"]);
        assert!(o.stdout.starts_with(b"PK"), "{command}: {}", err(&o));
        let ran = fed(&["run", "-"], &o.stdout);
        assert_eq!(out(&ran), out(&done(&["run", program])), "{command}: {}", err(&ran));
    }
    usage(&["compile", program, "-o", "-", "--json", "-"], "there is one standard output");
    assert_eq!(std::fs::read_dir(&dir.0).expect("a directory").count(), 0, "a file called `-`");
}

/// A terminal gets no archive. The master side of a pseudoterminal is one.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_gets_no_archive() {
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("Linux has it");
    let mut call = command(&["functionalize", &fixture("pt2/kv_cache.pt2"), "-o", "-"]);
    let o = call.stdout(terminal).stderr(Stdio::piped()).output().expect("the command");
    assert_eq!(o.status.code(), Some(2));
    assert!(err(&o).contains("standard output is a terminal"), "{}", err(&o));
}

#[test]
fn quiet_and_verbose() {
    let program = &fixture("pt2/kv_cache.pt2");
    for command in ["run", "verify", "compile", "plan", "explain", "bench"] {
        let o = done(&["-q", command, program]);
        assert!(o.stdout.is_empty() && o.stderr.is_empty(), "{command}: {}{}", out(&o), err(&o));
    }
    assert_eq!(out(&done(&["show", program, "-q"])), out(&done(&["show", program])));
    let refused = restride(&["run", "nowhere.pt2", "-q"]);
    assert!(err(&refused).starts_with("error: nowhere.pt2: "), "{}", err(&refused));
    let o = done(&["compile", program, "-v"]);
    for part in ["inputs: the sample inputs in the file", "opening: ", "functionalizing: ", "placing: ", "planning: "] {
        assert!(err(&o).contains(part), "{part}: {}", err(&o));
    }
    assert!(done(&["compile", program]).stderr.is_empty());
    usage(&["compile", program, "-q", "-v"], "cannot be used with");
}

#[test]
fn colour_is_for_terminals_or_asked_for() {
    let program = &fixture("pt2/kv_cache.pt2");
    let escape = "\u{1b}[";
    assert!(!out(&done(&["compile", program])).contains(escape));
    assert!(out(&done(&["compile", program, "--color", "always"])).contains(escape));
    assert!(out(&done(&["--color=always", "--help"])).contains(escape));
    assert!(err(&restride(&["run", "nowhere.pt2", "--color", "always"])).contains(escape));
    let forced = |args: &[&str], variables: &[(&str, &str)]| {
        out(&command(args).envs(variables.iter().copied()).output().expect("the command"))
    };
    assert!(forced(&["compile", program], &[("CLICOLOR_FORCE", "1")]).contains(escape));
    assert!(!forced(&["compile", program, "--color", "never"], &[("CLICOLOR_FORCE", "1")]).contains(escape));
    assert!(!forced(&["compile", program], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).contains(escape));
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let o = restride(&["run", &fixture("examples/box_decode.pt2"), "--via", "interp", "--limit", "memory=100"]);
    assert_eq!(o.status.code(), Some(1));
    let said = err(&o);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("error: 160 bytes of memory: the limit \"memory\" is 100"), "{said}");
    assert_eq!(lines[1], " --> example_programs.py:48: %sub = aten.sub.Tensor");
    assert_eq!(lines[2], "  | widths = boxes[:, 2] - boxes[:, 0]");
    assert!(lines[3].starts_with("help: ") && lines.len() == 4, "{said}");
}

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = out(&done(&["completions", shell]));
        assert!(script.contains("functionalize") && script.contains("budget"), "{shell}");
    }
    assert!(out(&done(&["man"])).contains(".TH restride 1"));
    let dir = Dir::new("man");
    let pages = dir.path("pages");
    done(&["man", &pages]);
    for command in COMMANDS {
        let page = Path::new(&pages).join(format!("restride-{command}.1"));
        assert!(std::fs::read_to_string(&page).is_ok_and(|t| t.contains("Examples:")), "{page:?}");
    }
}
