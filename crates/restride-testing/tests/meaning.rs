//! The equivalence checker accuses broken programs: each is broken in every small way, and breaks that change results must
//! be found.

use restride::{CompileOptions, Compiled, Equivalence, meaning};
use restride_exec::interp::RunOptions;
use restride_ir::{Arg, Expr, Graph, NodeId, Program, Type, ValueId};
use restride_testing::{Leftovers, difference, generate};

/// The program with one thing changed: an operand is another value of its type, a number is one more or less.
fn broken(program: &Program) -> Vec<Program> {
    let graph = program.graph();
    let mut out = Vec::new();
    let mut before: Vec<ValueId> = graph.inputs.clone();
    let mut change = |node: NodeId, k: usize, arg: Arg| {
        let mut p = program.clone();
        p.graph_mut().nodes[node].args[k] = arg;
        out.push(p);
    };
    for (id, node) in graph.ordered() {
        for (k, arg) in node.args.iter().enumerate() {
            match arg {
                Arg::Value(v) => {
                    let other = before.iter().rev().find(|o| *o != v && same(graph, **o, *v));
                    other.into_iter().for_each(|o| change(id, k, Arg::Value(*o)));
                }
                Arg::Scalar(Expr::Int(i)) => {
                    change(id, k, Arg::Scalar(Expr::Int(i + 1)));
                    change(id, k, Arg::Scalar(Expr::Int(i - 1)));
                }
                _ => {}
            }
        }
        before.extend(&node.results);
    }
    for (k, arg) in graph.outputs.iter().enumerate() {
        let Arg::Value(v) = arg else { continue };
        if let Some(o) = before.iter().rev().find(|o| *o != v && same(graph, **o, *v)) {
            let mut p = program.clone();
            p.graph_mut().outputs[k] = Arg::Value(*o);
            out.push(p);
        }
    }
    out
}

fn same(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    match (&graph.values[a].ty, &graph.values[b].ty) {
        (Type::Tensor(a), Type::Tensor(b)) => a.dtype == b.dtype && a.layout.sizes == b.layout.sizes,
        _ => false,
    }
}

#[test]
fn every_break_that_shows_is_found() {
    let (mut checked, mut programs, mut shown, mut silent) = (0, 0, 0, 0);
    for seed in 0..60 {
        let sample = generate(seed);
        let Ok(true_result) = Leftovers::interp(&sample.program, &sample.inputs, &RunOptions::default()) else {
            continue;
        };
        let compiled = Compiled::new(sample.program.clone(), Some(&sample.inputs), &CompileOptions::default());
        let Ok(compiled) = compiled else { continue };
        programs += 1;
        let checker = |functional: &Program| meaning(&sample.program, functional, &sample.inputs);
        match checker(compiled.functional()) {
            Ok(Equivalence::Same) => checked += 1,
            Ok(Equivalence::Undecided(why)) => {
                println!("seed {seed} is not checked: {why}");
                continue;
            }
            Err(e) => panic!("seed {seed}: {e}"),
        }
        for p in broken(compiled.functional()) {
            let Ok(result) = Leftovers::interp(&p, &sample.inputs, &RunOptions::default()) else { continue };
            if difference(&true_result, &result).is_none() {
                silent += 1;
                continue;
            }
            shown += 1;
            if checker(&p) == Ok(Equivalence::Same) {
                panic!("seed {seed}: accepts\n{}", restride_ir::text::print(&p));
            }
        }
    }
    println!("{checked} of {programs} programs checked; {shown} breaks show, all found; {silent} do not show");
    assert!(checked * 10 >= programs * 7, "only {checked} of {programs} programs are checked");
    assert!(shown > 100, "only {shown} breaks show");
}

/// Written back in place, a program means what it did: its functional form and the functional form of what is in place are
/// right for both.
#[test]
fn what_is_in_place_means_the_same() {
    let (mut checked, mut asked) = (0, 0);
    for seed in 0..150 {
        let sample = generate(seed);
        if Leftovers::interp(&sample.program, &sample.inputs, &RunOptions::default()).is_err() {
            continue;
        }
        let compile = |p: &Program| Compiled::new(p.clone(), Some(&sample.inputs), &CompileOptions::default());
        let Ok(compiled) = compile(&sample.program) else { continue };
        let Ok(in_place) = compiled.reinplaced() else { continue };
        let Ok(again) = compile(&in_place) else { continue };
        for (program, functional) in [(&sample.program, again.functional()), (&in_place, compiled.functional())] {
            asked += 1;
            match meaning(program, functional, &sample.inputs) {
                Ok(Equivalence::Same) => checked += 1,
                Ok(Equivalence::Undecided(why)) => println!("seed {seed} is not checked: {why}"),
                Err(e) => panic!("seed {seed}: {e}\n{}", restride_ir::text::print(&in_place)),
            }
        }
    }
    println!("{checked} of {asked} checked");
    assert!(checked * 10 >= asked * 7, "only {checked} of {asked} are checked");
}

/// A loop whose body writes is unrolled by functionalization, even where the write changes nothing: no accusation.
#[test]
fn a_loop_that_was_unrolled_is_not_accused() {
    let text = "graph(%index: i64[3]) {
  %y: f32[3] = higher_order.map_impl(@each, [%index], [])
  return %y
}
graph @each(%i: i64[]) {
  %a: f32[] = aten.to.dtype(%i, f32)
  %b: f32[] = aten.copy_.default(%a, %a)
  return %b
}";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride_exec::random_inputs(&program, 0).expect("inputs");
    let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).expect("compiles");
    assert_eq!(
        meaning(&program, compiled.functional(), &inputs),
        Ok(Equivalence::Undecided("a loop was unrolled".into()))
    );
}
