//! What planning and changing the order of nodes are worth on programs, and what they take:
//!
//! ```text
//! cargo bench -p restride --bench order -- FILE ...
//! ```
//!
//! For each program the arena in bytes as the program orders its nodes and as `restride` does, the largest sum of bytes that live at
//! once then, whether the arena is proved smallest, and milliseconds for placing and planning in both. `--changed` leaves out programs whose order
//! is as it was. Fails where an arena is larger for it.

use restride::{CompileOptions, Compiled, Inputs, OpenOptions, Result, open, random_inputs};

/// The command's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let (mut files, mut changed) = (Vec::new(), false);
    for a in std::env::args().skip(1) {
        match a.as_str() {
            "--bench" => {}
            "--changed" => changed = true,
            _ => files.push(a),
        }
    }
    println!(
        "{:<40} {:>12} {:>12} {:>7} {:>12} {:>8} {:>8} {:>8}",
        "program", "as it is", "ordered", "%", "live at once", "smallest", "ms", "ms"
    );
    let (mut done, mut better, mut worse, mut proved, mut near) = (0, 0, 0, 0, 0);
    for file in &files {
        match both(file) {
            Ok([was, now]) => {
                let percent = 100.0 * now.arena as f64 / was.arena.max(1) as f64;
                done += 1;
                better += usize::from(now.arena < was.arena);
                worse += usize::from(now.arena > was.arena);
                proved += usize::from(now.optimal);
                near += usize::from(now.arena as f64 <= 1.02 * now.bound as f64);
                if changed && now.arena == was.arena && now.optimal {
                    continue;
                }
                let name = file.rsplit('/').next().unwrap_or(file);
                println!(
                    "{name:<40} {:>12} {:>12} {percent:>7.2} {:>12} {:>8} {:>8.1} {:>8.1}",
                    was.arena, now.arena, now.bound, now.optimal, was.ms, now.ms
                );
            }
            Err(e) => println!("{file}: {e}"),
        }
    }
    println!(
        "{done} programs: smaller in {better}, larger in {worse}; proved smallest {proved}, within 2 % of the bound {near}"
    );
    std::process::exit(i32::from(worse > 0));
}

struct Arena {
    arena: i64,
    bound: i64,
    optimal: bool,
    ms: f64,
}

/// Without another order of nodes, and with.
fn both(file: &str) -> Result<[Arena; 2]> {
    let program = open(file.as_ref(), &OpenOptions::default())?;
    let inputs: Inputs = random_inputs(&program, 0)?;
    let one = |order| -> Result<Arena> {
        let options = CompileOptions { order, ..CompileOptions::default() };
        let compiled = Compiled::new(program.clone(), Some(&inputs), &options)?;
        let report = compiled.prepare(&inputs)?.report();
        let ms = (report.times.place + report.times.plan).as_secs_f64() * 1e3;
        let p = report.plan;
        Ok(Arena { arena: p.arena_bytes, bound: p.lower_bound_bytes, optimal: p.optimal, ms })
    };
    Ok([one(false)?, one(true)?])
}
