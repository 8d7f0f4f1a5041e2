//! A memory plan as JSON, in the words of `restride plan --json`.

use restride::{Live, MemoryCounts, PlanRow, PlanTable};
use serde_json::{Value, json};

pub(crate) fn plan_json(plan: &PlanTable) -> String {
    let t = &plan.totals;
    let memory = |m: &MemoryCounts| json!({ "name": m.name, "capacity": m.capacity, "bytes": m.bytes, "traffic": m.traffic, "buffers": m.buffers });
    let row = |r: &PlanRow| {
        let live = |l: &Live| {
            json!({ "first_step": l.steps.start(), "last_step": l.steps.end(), "from": l.bytes.start,
                    "to": l.bytes.end.min(r.bytes) })
        };
        json!({ "segment": r.segment, "memory": r.memory, "offset": r.offset, "bytes": r.bytes, "first_step": r.steps.0,
                "last_step": r.steps.1, "lives": r.lives.iter().map(live).collect::<Vec<_>>(), "values": r.values })
    };
    json!({
        "arena_bytes": t.arena_bytes, "state_bytes": t.state_bytes, "output_bytes": t.output_bytes,
        "constant_bytes": t.constant_bytes, "packed_bytes": t.packed_bytes,
        "lower_bound_bytes": t.lower_bound_bytes, "at_least_bytes": t.at_least_bytes, "optimal": t.optimal,
        "memories": plan.memories.all.iter().map(memory).collect::<Value>(),
        "buffers": plan.rows.iter().map(row).collect::<Value>(),
    })
    .to_string()
}
