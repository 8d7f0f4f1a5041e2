//! What each pass costs a node, on programs of the six kinds of `scripts/make/big.py` (64 × 16 tensors of f32) or on given files:
//!
//! ```text
//! cargo bench -p restride --bench passes [-- [--nodes N,N,...] [--repeat K] [--only-functionalize] [--no-fuse] [FILE ...]]
//! ```
//!
//! Microseconds for each node of the imported program, the fastest of K runs. `scripts/measure/bench_passes.py` puts PyTorch's times on
//! the same files beside them.

use restride::{
    CompileOptions, Compiled, FunctionalizeOptions, FuseOptions, OpenOptions, Program, Result, functionalize, open,
};
use restride::{random_inputs, text};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The command's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KINDS: [&str; 6] = ["inplace", "views", "setitem", "kv", "func", "fan"];
const ROWS: usize = 64;

fn main() -> Result<()> {
    let (mut nodes, mut repeat, mut files) = (vec![1_000usize, 10_000, 100_000], 3, Vec::new());
    let (mut all, mut options) = (true, CompileOptions::default());
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--bench" => {}
            "--only-functionalize" => all = false,
            "--no-fuse" => options.fuse = FuseOptions::none(),
            "--nodes" => nodes = args.next().unwrap_or_default().split(',').filter_map(|n| n.parse().ok()).collect(),
            "--repeat" => repeat = args.next().and_then(|n| n.parse().ok()).unwrap_or(repeat),
            _ => files.push(a),
        }
    }
    println!(
        "{:<10} {:>9} {:>10} {:>13} {:>9} {:>7} {:>7} {:>7} {:>7}",
        "kind", "nodes", "functional", "functionalize", "simplify", "fuse", "place", "plan", "check"
    );
    if files.is_empty() {
        for kind in KINDS {
            for &n in &nodes {
                let program = text::parse(&source(kind, n), &restride_ops::lookup)?;
                measure(kind, &program, repeat, all.then_some(&options))?;
            }
        }
    }
    for f in &files {
        let program = open(f.as_ref(), &OpenOptions::default())?;
        measure(&program.name, &program, repeat, all.then_some(&options))?;
    }
    Ok(())
}

fn measure(name: &str, program: &Program, repeat: usize, options: Option<&CompileOptions>) -> Result<()> {
    let inputs = random_inputs(program, 0)?;
    let mut best = [Duration::MAX; 6];
    let mut functional = 0;
    for _ in 0..repeat.max(1) {
        let start = Instant::now();
        let out = functionalize(program, &FunctionalizeOptions::default())?;
        let first = start.elapsed();
        functional = out.graph().order.len();
        drop(out);
        best[0] = best[0].min(first);
        let Some(options) = options else { continue };
        let compiled = Compiled::new(program.clone(), Some(&inputs), options)?;
        compiled.instance()?.run(&inputs, &Default::default())?;
        let t = compiled.prepare(&inputs)?.report().times;
        for (best, t) in best[1..].iter_mut().zip([t.simplify, t.fuse, t.place, t.plan, t.check]) {
            *best = t.min(*best);
        }
    }
    let nodes = program.graph().order.len();
    let each = best.map(|t| if t == Duration::MAX { f64::NAN } else { t.as_secs_f64() * 1e6 / nodes.max(1) as f64 });
    println!(
        "{name:<10} {nodes:>9} {functional:>10} {:>13.2} {:>9.2} {:>7.2} {:>7.2} {:>7.2} {:>7.2}",
        each[0], each[1], each[2], each[3], each[4], each[5]
    );
    Ok(())
}

/// A program of about `n` nodes.
fn source(kind: &str, n: usize) -> String {
    let full = "f32[64, 16]";
    let row = |i: usize| format!("f32[16]{}", if i == 0 { String::new() } else { format!("+{}", i * 16) });
    let given = if kind == "kv" { "%x: f32[64, 16], %y: f32[64, 16]" } else { "%x: f32[64, 16]" };
    let mut s = format!("graph({given}) {{\n");
    let mut count = 0;
    let mut add = |s: &mut String, ty: &str, call: String| {
        count += 1;
        let _ = writeln!(s, "  %v{count}: {ty} = {call}");
        count
    };
    let out = match kind {
        "inplace" | "views" | "setitem" => {
            let a = add(&mut s, full, "aten.clone.default(%x)".into());
            let (mut last, mut i) = (a, 0);
            while last < n {
                i += 1;
                last = match kind {
                    "inplace" => add(&mut s, full, format!("aten.add_.Tensor(%v{a}, 1)")),
                    "views" => {
                        let r = i % ROWS;
                        let v = add(&mut s, &row(r), format!("aten.select.int(%v{a}, 0, {r})"));
                        add(&mut s, &row(r), format!("aten.add_.Tensor(%v{v}, 1)"))
                    }
                    _ => {
                        let j = i % (ROWS - 2);
                        let at = if j == 0 { String::new() } else { format!("+{}", j * 16) };
                        let two = format!("f32[2, 16]{at}");
                        let cut = format!("aten.slice.Tensor(%v{a}, 0, {j}, {})", j + 2);
                        let v = add(&mut s, &two, cut.clone());
                        let m = add(&mut s, "f32[2, 16]", format!("aten.mul.Tensor(%v{v}, 2)"));
                        let m = add(&mut s, "f32[2, 16]", format!("aten.add.Tensor(%v{m}, 1)"));
                        let v = add(&mut s, &two, cut);
                        add(&mut s, &two, format!("aten.copy_.default(%v{v}, %v{m})"))
                    }
                };
            }
            format!("%v{a}")
        }
        "kv" => {
            let (mut h, mut i) = (add(&mut s, full, "aten.sin.default(%x)".into()), 0);
            while h < n {
                i += 1;
                let r = i % ROWS;
                for k in ["x", "y"] {
                    let from = add(&mut s, &row(r), format!("aten.select.int(%v{h}, 0, {r})"));
                    let to = add(&mut s, &row(r), format!("aten.select.int(%{k}, 0, {r})"));
                    add(&mut s, &row(r), format!("aten.copy_.default(%v{to}, %v{from})"));
                }
                h = add(&mut s, full, format!("aten.mul.Tensor(%v{h}, %x)"));
                h = add(&mut s, full, format!("aten.add.Tensor(%v{h}, %y)"));
                h = add(&mut s, full, format!("aten.tanh.default(%v{h})"));
            }
            format!("%v{h}")
        }
        _ => {
            let mut hs = vec!["x".to_string(); if kind == "fan" { 8 } else { 1 }];
            let mut made = 0;
            while made < n {
                for h in &mut hs {
                    let op = ["sin", "cos", "tanh", "relu"][made % 4];
                    made = add(&mut s, full, format!("aten.{op}.default(%{h})"));
                    *h = format!("v{made}");
                }
            }
            while hs.len() > 1 {
                let v = add(&mut s, full, format!("aten.add.Tensor(%{}, %{})", hs[0], hs[1]));
                hs.drain(..2);
                hs.push(format!("v{v}"));
            }
            format!("%{}", hs[0])
        }
    };
    let _ = writeln!(s, "  return {out}\n}}");
    s
}
