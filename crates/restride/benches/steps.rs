//! Cost of a step beyond its kernel, in a session and in an instance's run:
//!
//! ```text
//! cargo bench -p restride --bench steps
//! ```
//!
//! A long chain of operators on four numbers runs as a session and as an instance, which binds its steps for each run, and the same
//! kernel is called as often by itself, in turn; the least of many rounds counts.

use restride::{CompileOptions, Compiled, DType, FuseOptions, Layout, RawTensor, Result, RunOptions, Scalar};
use restride_ir::{Arg, Args, Call, Ctx, Kernel};
use restride_tensor::Fitted;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

/// The command's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Steps of a program: as many as models have, whose records stay in a processor's own caches, and more than that.
const STEPS: [usize; 2] = [1_000, 20_000];
const ROUNDS: usize = 40;

fn main() {
    let calls = [("aten.add.Tensor", "aten.add.Tensor(%P, 1)"), ("aten.relu.default", "aten.relu.default(%P)")];
    for ((name, call), steps) in calls.into_iter().flat_map(|c| STEPS.map(|n| (c, n))) {
        match measure(name, call, steps) {
            Ok([session, instance, kernel]) => println!(
                "{name:<20} {steps:>6} steps  kernel alone {kernel:6.1} ns, beyond it: session {:6.1} ns, instance {:6.1} ns",
                session - kernel,
                instance - kernel
            ),
            Err(e) => println!("{name}: {e}"),
        }
    }
}

/// Nanoseconds of a step of a session and of an instance's run, and of the kernel.
fn measure(name: &str, call: &str, steps: usize) -> Result<[f64; 3]> {
    let mut text = String::from("program \"chain\"\ngraph(%v0: f32[4]) {\n");
    for i in 1..=steps {
        let call = call.replace("%P", &format!("%v{}", i - 1));
        writeln!(text, "  %v{i}: f32[4] = {call}").expect("a string takes all");
    }
    writeln!(text, "  return %v{steps}\n}}").expect("a string takes all");
    let program = restride::text::parse(&text, &restride_ops::lookup)?;
    let inputs = restride::random_inputs(&program, 0)?;
    let options = CompileOptions { fuse: FuseOptions::none(), ..CompileOptions::default() };
    let compiled = Compiled::new(program, Some(&inputs), &options)?;
    let mut instance = compiled.instance()?;
    instance.run(&inputs, &RunOptions::default())?;
    let mut session = compiled.instance()?.session(&inputs, &[], &RunOptions::default())?;

    let op = restride_ops::lookup(name).expect("an operator");
    let Kernel::Fixed(kernel) = op.def().kernel else { unreachable!("it has a kernel") };
    let (from, to) = (
        RawTensor::zeros(DType::F32, Layout::contiguous(&[4])),
        RawTensor::zeros(DType::F32, Layout::contiguous(&[4])),
    );
    let (from, mut to) = (from.read(), to.write());
    let mut args = vec![Arg::Value(from.view())];
    if call.contains(", 1") {
        args.extend([Arg::Scalar(Scalar::Int(1)), Arg::Scalar(Scalar::Int(1))]);
    }
    let (outs, ctx) = ([to.view_mut()], Ctx { threads: 1, ..Ctx::default() });

    let [mut step, mut unbound, mut alone] = [f64::INFINITY; 3];
    for _ in 0..ROUNDS * STEPS[1] / steps {
        let start = Instant::now();
        session.run()?;
        step = step.min(start.elapsed().as_nanos() as f64 / steps as f64);
        let start = Instant::now();
        instance.run(&inputs, &RunOptions::default())?;
        unbound = unbound.min(start.elapsed().as_nanos() as f64 / steps as f64);
        let start = Instant::now();
        for _ in 0..steps {
            // SAFETY: the result has the operand's type, and memory of its own.
            let fitted = unsafe { Fitted::promise() };
            kernel(black_box(&Call { args: Args(&args), outs: &outs, ctx: &ctx, fitted }))?;
        }
        alone = alone.min(start.elapsed().as_nanos() as f64 / steps as f64);
    }
    Ok([step, unbound, alone])
}
