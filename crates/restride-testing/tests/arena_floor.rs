//! The lower bound of the arena that needs no placement.

use restride_ir::text::parse;
use restride_passes::place::PlaceOptions;
use restride_passes::plan::{PlanOptions, plan};
use restride_passes::{arena_floor, place};
use restride_testing::generate::generate;
use restride_testing::segment_run::SegmentRun;

/// No placement has a smaller arena, with every choice taken or some declined by chance.
#[test]
fn no_arena_is_below_its_floor() {
    let (mut ran, mut above) = (0, 0);
    for seed in 0..1500 {
        let Some(piece) = SegmentRun::of(&generate(seed)) else { continue };
        let floor = arena_floor(&piece.program);
        for vary in [None, Some(seed)] {
            let Ok(placement) = piece.place(&PlaceOptions { vary, ..PlaceOptions::default() }) else { continue };
            let arena = plan(piece.program.graph(), &placement, &PlanOptions::default()).arena_bytes;
            assert!(floor <= arena, "seed {seed}: an arena of {arena} bytes is below the floor of {floor}");
            ran += usize::from(arena > 0);
            above += usize::from(floor > 0);
        }
    }
    assert!(ran > 400 && above > 40, "{ran} {above}");
}

/// Both operands of the sum are live at once; the result of the product is apart from its operands; the sum is made in the caller's
/// memory, which may hold one value before.
#[test]
fn values_that_are_live_at_once_are_counted() {
    let text = "graph(%x: f32[32, 32]) {
  %a: f32[32, 32] = aten.sin.default(%x)
  %b: f32[32, 32] = aten.mm.default(%a, %a)
  %c: f32[32, 32] = aten.mm.default(%a, %b)
  %d: f32[32, 32] = aten.add.Tensor(%c, %b)
  return %d
}";
    let program = parse(text, &restride_ops::lookup).expect("it parses");
    assert_eq!(arena_floor(&program), 2 * 4096);
    let placed = place(&program, &PlaceOptions::default()).expect("it is placed");
    let plan = plan(program.graph(), &placed.placement, &PlanOptions::default());
    assert_eq!(plan.arena_bytes, 2 * 4096);
}
