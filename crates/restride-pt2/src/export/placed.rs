//! Placement and plan beside a program, below `extra/`.

use crate::model;
use restride_ir::text::{PrintOptions, print_placed};
use restride_ir::{Binding, BufferKind, Placement, Plan, Program, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A piece of a program, as it was placed.
pub struct PlacedPiece<'a> {
    /// Functional, with known sizes.
    pub program: &'a Program,
    /// Where its values live.
    pub placement: &'a Placement,
    /// Offsets in the arena.
    pub plan: &'a Plan,
}

#[derive(Serialize)]
struct PlanFile {
    format: u32,
    /// SHA-256 of the archive's `models/model.json`, in hexadecimal: the plan is for that program and no other.
    model_sha256: String,
    /// The symbols' values that it was made for.
    sizes: std::collections::BTreeMap<String, String>,
    segments: Vec<SegmentFile>,
}

#[derive(Serialize)]
struct SegmentFile {
    arena_bytes: i64,
    lower_bound_bytes: i64,
    at_least_bytes: i64,
    optimal: bool,
    buffers: Vec<BufferFile>,
}

#[derive(Serialize)]
struct BufferFile {
    name: String,
    /// `arena`, `input` or `output`.
    kind: &'static str,
    /// Position among the inputs or outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    bytes: i64,
    /// In the arena, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
}

/// The files that say how a program was placed: `restride.plan.json`, and `restride.placed.txt` for the steps as text.
///
/// # Errors
/// What an archive cannot say of the program.
pub fn placed_files(program: &Program, sizes: &Binding, pieces: &[PlacedPiece<'_>]) -> Result<Vec<(String, Vec<u8>)>> {
    let json = model::print(&super::program_model(program)?)?;
    let hex = Sha256::digest(&json).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let file = PlanFile {
        format: 1,
        model_sha256: hex,
        sizes: sizes.iter().map(|(s, v)| (s.name().to_string(), v.to_string())).collect(),
        segments: pieces.iter().map(segment).collect(),
    };
    let text: Vec<String> =
        pieces.iter().map(|p| print_placed(p.program, p.placement, Some(p.plan), &PrintOptions::default())).collect();
    Ok(vec![
        ("restride.plan.json".into(), model::print(&file)?),
        ("restride.placed.txt".into(), text.join("\n").into_bytes()),
    ])
}

fn segment(p: &PlacedPiece<'_>) -> SegmentFile {
    let buffers = p
        .placement
        .buffers
        .iter()
        .map(|(id, b)| {
            let (kind, position) = match b.kind {
                BufferKind::Arena => ("arena", None),
                BufferKind::Input(i) => ("input", Some(i)),
                BufferKind::Output(i) => ("output", Some(i)),
            };
            BufferFile { name: id.to_string(), kind, position, bytes: b.bytes, offset: p.plan.offsets[id] }
        })
        .collect();
    SegmentFile {
        arena_bytes: p.plan.arena_bytes,
        lower_bound_bytes: p.plan.lower_bound_bytes,
        at_least_bytes: p.plan.at_least_bytes,
        optimal: p.plan.optimal,
        buffers,
    }
}
