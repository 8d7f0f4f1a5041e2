//! The corpus of aliasing cases in all ways: functional and planned programs give the interpreter's results bit for bit.
//! Tests of restride-exec compare the interpreter with eager PyTorch.

use restride::CompileOptions;
use restride_testing::{WaysVerdict, corpus, differential};
use std::path::Path;

#[test]
fn all_ways_agree_on_the_corpus() {
    let cases = corpus::cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/alias"));
    let (mut agree, mut complaints) = (0, Vec::new());
    // Operators of the user's own have no bodies in an archive.
    for case in cases.iter().filter(|c| !c.name.starts_with("customop_")) {
        let program = match &case.program {
            Ok(p) => p,
            Err(e) => {
                complaints.push(format!("{}: cannot be imported: {e}", case.name));
                continue;
            }
        };
        match (differential(program, &case.inputs, &CompileOptions::default()), case.runs) {
            (WaysVerdict::Agree, true) | (WaysVerdict::Rejected(_), false) => agree += 1,
            (verdict, runs) => complaints.push(format!("{} ({runs}): {verdict:?}", case.name)),
        }
    }
    assert!(complaints.is_empty(), "{agree} of {} agree\n{}", cases.len(), complaints.join("\n"));
    assert!(agree > 80, "only {agree} cases");
}
