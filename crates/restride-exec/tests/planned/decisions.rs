//! Each decision of the placement, taken and declined with its reason; both give the interpreter's bits.

use super::*;

#[test]
fn a_pointwise_result_takes_over_a_dying_operand() {
    let text = "stage: functional
graph(%x: f32[4, 3], %y: f32[3]) {
  %a: f32[4, 3] = aten.add.Tensor(%x, %y)
  %b: f32[4, 3] = aten.relu.default(%a)
  %c: f32[4, 3] = aten.mul.Tensor(%b, %y)
  %d: f32[4, 3] = aten.sub.Tensor(%c, %b)
  %e: f32[4, 3] = aten.neg.default(%d)
  %f: f32[4, 3] = aten.add.Tensor(%e, %x)
  return %f
}";
    let (program, placed) = agree_inside(text, &[floats(&[4, 3]), floats(&[3])]);
    let reuse = |v| decided(&program, &placed, v, RemarkKind::ReuseOperand);
    // The inputs are the caller's.
    assert_eq!(reuse("a"), Some(Reason::CallerVisible));
    assert_eq!(reuse("b"), Some(Reason::Taken));
    assert!(matches!(reuse("c"), Some(Reason::StillRead { by: Some(_) })), "{:?}", reuse("c"));
    assert_eq!(reuse("d"), Some(Reason::Taken));
    assert_eq!(reuse("e"), Some(Reason::Taken));
    assert_eq!((arena_buffers(&placed), moves(&placed)), (2, 1));
    // All but what is read twice follow each other in the output's memory.
    let (program, placed) = agree(text, &[floats(&[4, 3]), floats(&[3])]);
    assert_eq!(decided(&program, &placed, "f", RemarkKind::OutputInCaller), Some(Reason::Taken));
    assert_eq!((arena_buffers(&placed), moves(&placed)), (1, 0));
}

#[test]
fn an_operand_that_the_result_would_overlap_in_part_stays() {
    // x + x.t() in x is the classic.
    let text = "stage: functional
graph(%x: f32[3, 3]) {
  %a: f32[3, 3] = aten.mul.Tensor(%x, 2)
  %t: f32[3, 3][1, 3] = aten.t.default(%a)
  %s: f32[3, 3] = aten.add.Tensor(%a, %t)
  %r: f32[3, 3] = aten.neg.default(%s)
  return %r
}";
    let (program, placed) = agree(text, &[floats(&[3, 3])]);
    assert_eq!(decided(&program, &placed, "s", RemarkKind::ReuseOperand), Some(Reason::PartialOverlap));
    assert_eq!(decided(&program, &placed, "t", RemarkKind::ViewOnBase), Some(Reason::Taken));
    // x + x in x is fine.
    let text = "stage: functional
graph(%x: f32[3, 3]) {
  %a: f32[3, 3] = aten.mul.Tensor(%x, 2)
  %s: f32[3, 3] = aten.add.Tensor(%a, %a)
  %r: f32[3, 3] = aten.neg.default(%s)
  return %r
}";
    let (program, placed) = agree(text, &[floats(&[3, 3])]);
    assert_eq!(decided(&program, &placed, "s", RemarkKind::ReuseOperand), Some(Reason::Taken));
}

#[test]
fn element_sizes_and_sizes_decide() {
    let text = "stage: functional
graph(%x: f32[3, 3], %y: f32[3]) {
  %a: f32[3] = aten.mul.Tensor(%y, 2)
  %w: f64[3, 3] = aten._to_copy.default(%x, dtype=f64)
  %s: f64[3, 3] = aten.add.Tensor(%w, %a)
  %h: bool[3, 3] = aten.gt.Scalar(%s, 0)
  %n: bool[3, 3] = aten.logical_not.default(%h)
  %r: bool[3, 3] = aten.logical_not.default(%n)
  return %r
}";
    let (program, placed) = agree_inside(text, &[floats(&[3, 3]), floats(&[3])]);
    assert_eq!(decided(&program, &placed, "s", RemarkKind::ReuseOperand), Some(Reason::Taken));
    assert_eq!(decided(&program, &placed, "h", RemarkKind::ReuseOperand), Some(Reason::DTypeDiffers));
    assert_eq!(decided(&program, &placed, "n", RemarkKind::ReuseOperand), Some(Reason::Taken));
}

#[test]
fn an_expanded_operand_is_not_taken_over() {
    let text = "stage: functional
graph(%y: f32[3]) {
  %a: f32[3] = aten.mul.Tensor(%y, 2)
  %e: f32[2, 3][0, 1] = aten.expand.default(%a, [2, 3])
  %s: f32[2, 3] = aten.relu.default(%e)
  %r: f32[2, 3] = aten.neg.default(%s)
  return %r
}";
    let (program, placed) = agree_inside(text, &[floats(&[3])]);
    assert_eq!(decided(&program, &placed, "s", RemarkKind::ReuseOperand), Some(Reason::NotDense));
}

#[test]
fn views_lie_on_their_bases() {
    let text = "stage: functional
graph(%x: f32[2, 3, 4]) {
  %a: f32[2, 3, 4] = aten.mul.Tensor(%x, 2)
  %p: f32[4, 2, 3][1, 12, 4] = aten.permute.default(%a, [2, 0, 1])
  %s: f32[2, 2, 3][1, 12, 4]+1 = aten.slice.Tensor(%p, 0, 1, 3)
  %q: f32[2, 3][12, 4]+2 = aten.select.int(%s, 0, 1)
  %r: f32[2, 3] = aten.neg.default(%q)
  %c: f32[2, 12] = aten.reshape.default(%a, [2, 12])
  %d: f32[2, 12] = aten.exp.default(%c)
  return %r, %d
}";
    let (program, placed) = agree(text, &[floats(&[2, 3, 4])]);
    for v in ["p", "s", "q", "c"] {
        assert_eq!(decided(&program, &placed, v, RemarkKind::ViewOnBase), Some(Reason::Taken), "{v}");
    }
    assert_eq!(moves(&placed), 0);
}

#[test]
fn a_value_with_a_living_view_is_not_overwritten() {
    let text = "stage: functional
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %v: f32[3]+3 = aten.select.int(%a, 0, 1)
  %b: f32[4, 3] = aten.relu.default(%a)
  %c: f32[4, 3] = aten.add.Tensor(%b, %v)
  %d: f32[4] = aten.sum.dim_IntList(%c, [1])
  return %d
}";
    let (program, placed) = agree(text, &[floats(&[4, 3])]);
    let graph = program.graph();
    let reader = graph.ordered().find(|(_, n)| &*graph.values[n.results[0]].name == "c").unwrap().0;
    let reason = decided(&program, &placed, "b", RemarkKind::ReuseOperand);
    assert_eq!(reason, Some(Reason::StillRead { by: Some(reader) }));
}

#[test]
fn a_scatter_happens_in_its_base_and_its_source_in_its_region() {
    let text = "stage: functional
graph(%x: f32[4, 6], %y: f32[4, 2]) {
  %a: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %s: f32[4, 2] = aten.add.Tensor(%y, 1)
  %r: f32[4, 6] = aten.slice_scatter.default(%a, %s, 1, 1, 6, 3)
  %t: f32[4, 6] = aten.neg.default(%r)
  return %t
}";
    let (program, placed) = agree(text, &[floats(&[4, 6]), floats(&[4, 2])]);
    assert_eq!(decided(&program, &placed, "r", RemarkKind::ScatterInBase), Some(Reason::Taken));
    assert_eq!(decided(&program, &placed, "s", RemarkKind::SourceInRegion), Some(Reason::Taken));
    assert_eq!((moves(&placed), arena_buffers(&placed)), (0, 0));
}

#[test]
fn a_scatter_into_what_is_still_read_copies_the_base() {
    let text = "stage: functional
graph(%x: f32[4, 6], %y: f32[4]) {
  %a: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %r: f32[4, 6] = aten.select_scatter.default(%a, %y, 1, 2)
  %t: f32[4, 6] = aten.add.Tensor(%r, %a)
  return %t
}";
    let (program, placed) = agree(text, &[floats(&[4, 6]), floats(&[4])]);
    let reason = decided(&program, &placed, "r", RemarkKind::ScatterInBase);
    assert!(matches!(reason, Some(Reason::StillRead { by: Some(_) })), "{reason:?}");
    assert_eq!(moves(&placed), 2);
    let direct = text.replace("%a, %y, 1, 2", "%x, %y, 1, 2");
    let (program, placed) = agree(&direct, &[floats(&[4, 6]), floats(&[4])]);
    assert_eq!(decided(&program, &placed, "r", RemarkKind::ScatterInBase), Some(Reason::CallerVisible));
}

#[test]
fn a_scatter_of_its_own_base() {
    // The source is a view of the base that overlaps the region in part: rows move up by one.
    let text = "stage: functional
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %v: f32[3, 3]+3 = aten.slice.Tensor(%a, 0, 1, 4)
  %r: f32[4, 3] = aten.slice_scatter.default(%a, %v, 0, 0, 3)
  %t: f32[4, 3] = aten.neg.default(%r)
  return %t
}";
    let (program, placed) = agree(text, &[floats(&[4, 3])]);
    let reason = decided(&program, &placed, "r", RemarkKind::ScatterInBase);
    assert_eq!(reason, Some(Reason::PartialOverlap));
}

#[test]
fn a_chain_of_scatters_fills_one_buffer() {
    let mut text = "stage: functional
graph(%x: f32[8, 4], %y: f32[8]) {
  %b0: f32[8, 4] = aten.mul.Tensor(%x, 2)
"
    .to_string();
    for k in 0..4 {
        text += &format!(
            "  %s{k}: f32[8] = aten.add.Tensor(%y, {k})\n  %b{}: f32[8, 4] = aten.select_scatter.default(%b{k}, %s{k}, 1, {k})\n",
            k + 1
        );
    }
    text += "  %t: f32[8, 4] = aten.neg.default(%b4)\n  return %t\n}";
    let (_, placed) = agree(&text, &[floats(&[8, 4]), floats(&[8])]);
    assert_eq!((moves(&placed), arena_buffers(&placed)), (0, 0));
}

#[test]
fn parts_of_a_cat_are_built_in_it() {
    let text = "stage: functional
graph(%x: f32[2, 3], %y: f32[2, 1]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 1] = aten.neg.default(%y)
  %c: f32[2, 4] = aten.cat.default([%a, %b], 1)
  %d: f32[2, 4] = aten.relu.default(%c)
  return %d
}";
    let (program, placed) = agree(text, &[floats(&[2, 3]), floats(&[2, 1])]);
    assert_eq!(decided(&program, &placed, "c", RemarkKind::AssembleInPlace), Some(Reason::Taken));
    assert_eq!((moves(&placed), arena_buffers(&placed)), (0, 1));
    // One part twice, an input, a part that is read elsewhere, a cat of a cat, a stack.
    let text = "stage: functional
graph(%x: f32[2, 3], %y: f32[2, 1]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 1] = aten.neg.default(%y)
  %c: f32[2, 8] = aten.cat.default([%a, %b, %x, %b], 1)
  %d: f32[2, 3] = aten.relu.default(%a)
  %s: f32[2, 8] = aten.exp.default(%c)
  %e: f32[3, 2, 3] = aten.stack.default([%d, %x, %d])
  %g: f32[2, 11] = aten.cat.default([%s, %d], -1)
  %h: f32[2, 11] = aten.neg.default(%g)
  return %h, %e, %c
}";
    agree(text, &[floats(&[2, 3]), floats(&[2, 1])]);
}

#[test]
fn a_cat_in_the_callers_memory() {
    let text = "stage: functional
graph(%x: f32[2, 3], %y: f32[1, 3]) {
  %a: f32[2, 3] = aten.mul.Tensor(%x, 2)
  %b: f32[1, 3] = aten.neg.default(%y)
  %c: f32[3, 3] = aten.cat.default([%a, %b])
  return %c
}";
    let (_, placed) = agree(text, &[floats(&[2, 3]), floats(&[1, 3])]);
    assert_eq!((moves(&placed), arena_buffers(&placed)), (0, 0));
}

#[test]
fn calls_that_are_composed_are_not_run_by_the_kernel() {
    // Attention with dropout, and a mask whose count is known to the program.
    let text = "stage: functional
graph(%q: f32[1, 2, 3, 4], %k: f32[1, 2, 3, 4]) {
  %a: f32[1, 2, 3, 4] = aten.scaled_dot_product_attention.default(%q, %k, %k, None, 0.5)
  %b: f32[1, 2, 3, 4] = aten.neg.default(%a)
  return %b
}";
    agree(text, &[floats(&[1, 2, 3, 4]), floats(&[1, 2, 3, 4])]);
    let text = "stage: functional
graph(%x: f32[5], %y: f32[5]) {
  %a: f32[5] = aten.mul.Tensor(%x, 2)
  %m: bool[5] = aten.ge.Scalar(%a, -1000)
  %p: f32[5] = aten.index.Tensor(%a, [%m])
  %b: f32[5] = aten.neg.default(%p)
  return %b
}";
    agree(text, &[floats(&[5]), floats(&[5])]);
}

/// Between row-major inputs and outputs, convolutions that are faster channels-last are so without a copy.
#[test]
fn images_have_the_layout_in_which_kernels_are_fastest() {
    let text = "stage: functional
graph(%x: f32[1, 3, 14, 14], %w: f32[96, 3, 3, 3], %d: f32[96, 1, 5, 5], %v: f32[64, 96, 1, 1]) {
  %a: f32[1, 96, 14, 14] = aten.conv2d.default(%x, %w, None, [1, 1], [1, 1])
  %b: f32[1, 96, 14, 14] = aten.relu.default(%a)
  %c: f32[1, 96, 14, 14] = aten.conv2d.default(%b, %d, None, [1, 1], [2, 2], [1, 1], 96)
  %m: f32[1, 96, 7, 7] = aten.max_pool2d.default(%c, [2, 2], [2, 2])
  %u: f32[1, 64, 7, 7] = aten.conv2d.default(%m, %v)
  return %u
}";
    let inputs = [&[1, 3, 14, 14][..], &[96, 3, 3, 3], &[96, 1, 5, 5], &[64, 96, 1, 1]].map(floats);
    let (program, placed) = agree(text, &inputs);
    assert!(placed.by_time);
    assert_eq!(moves(&placed), 0);
    let last = |placed: &Placed, name: &str| {
        let found = placed.placement.steps.iter().find_map(|step| match step {
            Step::Run { node, writes, .. } => {
                let made = program.graph().nodes[*node].results[0];
                let named = &*program.graph().values[made].name == name;
                writes.first().cloned().flatten().filter(|_| named)
            }
            _ => None,
        });
        found.expect("a step makes it").layout.strides[1] == 1
    };
    assert!(["a", "c", "m"].iter().all(|name| last(&placed, name)));
    assert!(!last(&placed, "u"), "the caller looks for row-major elements");
    // Each says by how much it is faster, and that is what the decision depends on.
    let gain = |name: &str| match decided(&program, &placed, name, RemarkKind::LaidOutByTime) {
        Some(Reason::Faster { nanoseconds }) => nanoseconds,
        other => panic!("%{name}: {other:?}"),
    };
    assert!(["a", "c", "m"].iter().all(|name| gain(name) > 0));
    assert_eq!(decided(&program, &placed, "u", RemarkKind::LaidOutByTime), None);
    assert_eq!(Reason::Faster { nanoseconds: 1250 }.to_string(), "kernels take an estimated 1.2 µs less");
    let rows = agree_with(&program, &inputs, &PlaceOptions { by_time: false, ..PlaceOptions::default() }, text);
    assert!(!["a", "c", "m", "u"].iter().any(|name| last(&rows, name)));
    assert!(rows.remarks.iter().all(|r| r.kind != RemarkKind::LaidOutByTime));
}
