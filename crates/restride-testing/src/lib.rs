//! What the tests stand on: runs held against each other, random programs, damage to their placements, the corpus of
//! aliasing cases.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod differences;
pub mod dump;
mod exact;
pub mod filetest;
pub mod generate;
pub mod outcome;
pub mod placed;
pub mod reduce;
pub mod rng;
pub mod scenarios;
pub mod spoil;
pub mod taped;
pub mod tracer;

pub use generate::{Sample, generate, generate_checked, generate_floating};
pub use outcome::{Left, Verdict, by_chance, difference, differential, metamorphic};
pub use reduce::reduce;

/// Runs the program that the bytes choose in all ways.
///
/// # Panics
/// If a way is wrong, with the program made small.
pub fn fuzz(bytes: &[u8]) {
    let sample = generate::generate_from(rng::Rng::from_bytes(bytes), "fuzzed");
    let wrong = |s: &Sample| match differential(&s.program, &s.inputs, &Default::default()) {
        Verdict::Wrong(way, _) => Some(way),
        _ => None,
    };
    if let Some(way) = wrong(&sample) {
        let small = reduce(&sample, |s| wrong(s) == Some(way));
        let verdict = differential(&small.program, &small.inputs, &Default::default());
        panic!("{verdict:?}\n{}", restride_ir::text::print(&small.program));
    }
    let (program, inputs) = (&sample.program, &sample.inputs);
    if differential(program, inputs, &Default::default()) == Verdict::Agree
        && let Err(what) = metamorphic(program, inputs, &Default::default())
    {
        panic!("{what}\n{}", restride_ir::text::print(program));
    }
}
