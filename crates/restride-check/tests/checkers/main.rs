//! The checkers held against models that look at every element, on random programs and on placements and plans that were
//! damaged: what the model rejects the checker must reject.

mod bodies;
mod build;
mod malformed;
mod plans;
mod twin;

use restride_check::FaultKind;
use restride_ir::Program;
use restride_passes::fuse::{FuseOptions, fuse};
use restride_passes::place::{PlaceOptions, place};
use restride_testing::damage::{DamageKind, KINDS, damage};
use restride_testing::rng::Rng;

fn options(rng: &mut Rng) -> PlaceOptions {
    if rng.below(3) > 0 {
        return PlaceOptions::default();
    }
    PlaceOptions {
        views: rng.chance(50),
        reuse: rng.chance(50),
        scatter: rng.chance(50),
        straight: rng.chance(50),
        boundary: rng.chance(50),
        layouts: rng.chance(50),
        by_time: rng.chance(50),
        revise: rng.chance(50),
        inputs_in_arena: rng.chance(50),
        outputs_in_arena: rng.chance(50),
        vary: rng.chance(50).then(|| rng.below(1 << 30) as u64),
    }
}

/// A random program; of three, two with fused nodes.
fn random(rng: &mut Rng) -> Program {
    let program = build::random(rng);
    let vary = rng.chance(50).then(|| rng.below(1 << 30) as u64);
    let options = FuseOptions { vary, tiles: rng.chance(50), row: 2, ..FuseOptions::default() };
    let Some(fused) = fuse(&program, &options).unwrap().filter(|_| rng.below(3) > 0) else { return program };
    restride_ir::verify(&fused.program).unwrap();
    restride_check::fusion(&program, &fused.program).unwrap();
    fused.program
}

#[test]
fn placements_are_right_element_by_element() {
    let mut rng = Rng::new(1);
    for round in 0..400 {
        let program = random(&mut rng);
        let options = options(&mut rng);
        let placed = place(&program, &options).unwrap_or_else(|e| panic!("{round}: {e}"));
        let shown = || {
            restride_ir::text::print_placed(
                &program,
                &placed.placement,
                None,
                &restride_ir::text::PrintOptions::default(),
            )
        };
        if let Err(what) = twin::check(&program, &placed.placement) {
            panic!("{round}: {}\n{}\n{}", what.what, restride_ir::text::print(&program), shown());
        }
        if let Err(faults) = restride_check::placement(&program, &placed.placement) {
            panic!("{round}: {}\n{}\n{}", faults[0], restride_ir::text::print(&program), shown());
        }
    }
}

/// What can be done to placements without bodies and without scratch.
fn kinds() -> impl Iterator<Item = DamageKind> {
    KINDS.into_iter().filter(|k| !matches!(k, DamageKind::Scratch | DamageKind::Carried | DamageKind::Nested))
}

#[test]
fn what_the_model_rejects_the_checker_rejects() {
    let mut rng = Rng::new(2);
    let (mut wrong, mut harmless, mut strict) = (0, 0, 0);
    let mut by_kind = std::collections::BTreeMap::<_, (u32, u32)>::new();
    for round in 0..300 {
        let program = random(&mut rng);
        let placed = place(&program, &options(&mut rng)).unwrap().placement;
        for kind in kinds().flat_map(|k| [k; 2]) {
            let Some(damaged) = damage(&program, &placed, kind, &mut rng) else { continue };
            let model = twin::check(&program, &damaged);
            let checker = restride_check::placement(&program, &damaged);
            let count = by_kind.entry(kind).or_default();
            count.0 += 1;
            match (&model, &checker) {
                (Err(what), Ok(())) => {
                    let shown = restride_ir::text::print_placed(
                        &program,
                        &damaged,
                        None,
                        &restride_ir::text::PrintOptions::default(),
                    );
                    let (what, program) = (&what.what, restride_ir::text::print(&program));
                    panic!("{round}: {kind:?} passes, and {what}\n{program}\n{shown}");
                }
                (Err(_), Err(_)) => {
                    count.1 += 1;
                    wrong += 1;
                }
                (Ok(()), Ok(())) => harmless += 1,
                (Ok(()), Err(_)) => strict += 1,
            }
        }
    }
    // Every kind of damage is done, and found.
    assert_eq!(by_kind.len(), kinds().count(), "{by_kind:?}");
    assert!(by_kind.values().all(|c| c.1 > 10), "{by_kind:?}");
    assert!(wrong > 1000 && harmless > 100, "{wrong} wrong, {harmless} harmless, {strict} rejected without need");
}

/// The first fault of a damaged placement names the element that the model misses first, or one before it that the checker does
/// not know to be there after all.
#[test]
fn faults_name_the_element() {
    let mut rng = Rng::new(3);
    let (mut same, mut inner, mut before, mut there, mut none) = (0, 0, 0, 0, 0);
    for round in 0..300 {
        let program = random(&mut rng);
        let placed = place(&program, &options(&mut rng)).unwrap().placement;
        for kind in kinds().flat_map(|k| [k; 2]) {
            let Some(damaged) = damage(&program, &placed, kind, &mut rng) else { continue };
            let Err(faults) = restride_check::placement(&program, &damaged) else { continue };
            let fault = &faults[0];
            if !matches!(fault.kind, FaultKind::NotThere | FaultKind::Overwritten) {
                continue;
            }
            let (Some(index), Some(place)) = (&fault.element, &fault.place) else {
                none += 1;
                continue;
            };
            let graph = program.graph();
            let (v, _) = graph.values.iter().find(|(_, v)| fault.value.as_deref() == Some(&*v.name)).unwrap();
            let named = index.iter().zip(&place.layout.sizes).fold(0, |n, (i, size)| n * *size as usize + *i as usize);
            let step = fault.step.unwrap_or(damaged.steps.len());
            let Some(missed) = twin::missed(&program, &damaged, step, v, place) else {
                there += 1;
                continue;
            };
            assert!(named <= missed, "{round}: {kind:?}: {fault}, and the model misses {missed}");
            assert!(fault.to_string().ends_with(&format!(", first at element {index:?}")), "{fault}");
            same += usize::from(named == missed);
            inner += usize::from(named == missed && missed > 0);
            before += usize::from(named < missed);
        }
    }
    let counts = format!("{same} the same, {inner} of them inner ones, {before} before, {there} there, {none} without");
    assert!(same > 2500 && inner > 300 && before * 20 < same && none * 5 < same, "{counts}");
}

/// A body with another call, other numbers, or another operand is not the program that was fused.
#[test]
fn fused_programs_are_held_to_what_was_fused() {
    let mut rng = Rng::new(4);
    let (mut changed, mut found) = (0, 0);
    for _ in 0..900 {
        let program = build::random(&mut rng);
        let Some(mut fused) = fuse(&program, &FuseOptions::default()).unwrap() else { continue };
        assert_eq!(restride_check::fusion(&program, &fused.program), Ok(()));
        let bodies: Vec<_> = fused.program.graphs.ids().filter(|id| *id != fused.program.main).collect();
        let body = &mut fused.program.graphs[*rng.choose(&bodies)];
        let id = *rng.choose(&body.order);
        let before = body.clone();
        match rng.below(3) {
            0 => body.nodes[id].op = restride_ir::Op::clone(&body.nodes[*rng.choose(&before.order)].op),
            1 => {
                let mut operands: Vec<restride_ir::ValueId> = body.nodes[id].operands().collect();
                operands.reverse();
                let mut next = operands.into_iter();
                let args = body.nodes[id].args.iter().map(|a| a.map_values(|_| next.next().unwrap()));
                let args = args.collect();
                body.nodes[id].args = args;
            }
            _ => {
                let inputs = body.inputs.clone();
                body.outputs[0] = restride_ir::Arg::Value(*rng.choose(&inputs));
            }
        }
        let same = |a: &restride_ir::Node, b: &restride_ir::Node| a.op == b.op && a.args == b.args;
        if body.outputs == before.outputs && same(&body.nodes[id], &before.nodes[id]) {
            continue;
        }
        changed += 1;
        found += usize::from(restride_check::fusion(&program, &fused.program).is_err());
    }
    // An addition of the same values in another order may be the same call.
    assert!(changed > 60 && found * 10 > changed * 9, "{found} of {changed}");
}
