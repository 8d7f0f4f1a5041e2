//! Another order of nodes: what it may change, and that runs in it are the same.

use super::{agree_with, floats, program};
use restride_ir::Program;
use restride_passes::order;
use restride_passes::place::{PlaceOptions, place};
use restride_passes::plan::{PlanOptions, plan};

fn arena(program: &Program) -> i64 {
    let placed = place(program, &PlaceOptions::default()).unwrap();
    let plan = plan(program.graph(), &placed.placement, &PlanOptions::default());
    restride_check::placement(program, &placed.placement).unwrap();
    restride_check::plan(program, &placed.placement, &plan).unwrap();
    plan.arena_bytes
}

fn names(program: &Program) -> Vec<String> {
    let graph = program.graph();
    graph.ordered().flat_map(|(_, n)| n.results.iter().map(|r| graph.values[*r].name.to_string())).collect()
}

/// Three large values, made before the first of them is read.
fn wide(between: &str) -> String {
    format!(
        "graph(%y: f32[64, 16], %c: f32[]) {{
  %a: f32[64, 16] = aten.exp.default(%y)
  %b: f32[64, 16] = aten.sin.default(%y)
  {between}
  %d: f32[64, 16] = aten.cos.default(%y)
  %r: f32[16] = aten.sum.dim_IntList(%a, [0])
  %s: f32[16] = aten.sum.dim_IntList(%b, [0])
  %t: f32[16] = aten.sum.dim_IntList(%d, [0])
  %u: f32[16] = aten.add.Tensor(%r, %s)
  %v: f32[16] = aten.add.Tensor(%u, %t)
  return %v
}}"
    )
}

#[test]
fn large_values_are_read_before_others_are_made() {
    let text = wide("");
    let before = program(&text);
    let after = order(&before).expect("an order that needs less");
    assert!(arena(&before) >= 3 * 4096, "{}", arena(&before));
    // One of them, and what summing over rows takes to lay out its columns.
    assert!(arena(&after) < 2 * 4096 + 1024, "{} {:?}", arena(&after), names(&after));
    // The best there is.
    assert!(order(&after).is_none());
    let inputs = [floats(&[64, 16]), floats(&[])];
    agree_with(&after, &inputs, &PlaceOptions::default(), &text);
}

#[test]
fn nothing_is_moved_past_an_assertion() {
    let text = wide("aten._assert_async.msg(%c, \"no\")");
    let before = program(&text);
    let after = order(&before).expect("an order that needs less");
    let side = |p: &Program| {
        let at = p.graph().ordered().position(|(_, n)| n.op.def().effectful).expect("the assertion");
        let mut names: Vec<Vec<String>> = vec![Vec::new(); 2];
        for (k, (_, n)) in p.graph().ordered().enumerate() {
            names[usize::from(k > at)].extend(n.results.iter().map(|r| p.graph().values[*r].name.to_string()));
        }
        names.iter_mut().for_each(|n| n.sort());
        names
    };
    assert_eq!(side(&before), side(&after));
    assert!(arena(&after) < arena(&before));
}
