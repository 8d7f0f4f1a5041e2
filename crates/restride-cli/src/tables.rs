//! Results of commands, the same numbers as JSON and as text.

use crate::screen::{BAD, GOOD, HEAD, styled};
use restride::files::differs;
use restride::{
    Coverage, Differentiated, Equivalence, ExchangeCounts, How, Inputs, Live, Memories, MemoryCounts, Outputs,
    PlanCounts, PlanTable, Program, Rates, Report, RunValue, SimulatedRank, State, Verdict,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The outputs of a run, and the inputs and state that it changed.
pub fn outputs(program: &Program, before: (&Inputs, &State), outputs: &Outputs, state: &State) -> Value {
    let values: Vec<Value> =
        outputs.values.iter().enumerate().map(|(i, v)| described(&format!("output.{i}"), v)).collect();
    let mut changed = Vec::new();
    let names = restride::user_inputs(program).map(|(_, n)| n.to_string());
    for (name, (old, new)) in names.zip(before.0.values.iter().zip(&outputs.inputs)) {
        if let (RunValue::Tensor(a), RunValue::Tensor(b)) = (old, new)
            && (differs(a, b) || a.layout().strides != b.layout().strides)
        {
            changed.push(described(&format!("input.{name}"), new));
        }
    }
    for i in 0..program.signature.inputs.len() {
        let Some(name) = program.weight_name(i) else { continue };
        if let (Some(a), Some(b)) = (before.1.get(name), state.get(name))
            && differs(a, b)
        {
            let kind =
                if program.weights.tensors.get(name).is_some_and(|w| w.is_param) { "parameter" } else { "buffer" };
            changed.push(described(&format!("{kind}.{name}"), &RunValue::Tensor(b.clone())));
        }
    }
    json!({ "program": &*program.name, "outputs": values, "gradients": gradients(program, outputs), "changed": changed })
}

fn described(name: &str, value: &RunValue) -> Value {
    match value {
        RunValue::Tensor(t) => {
            let l = t.layout();
            let mut index = vec![0i64; l.rank()];
            let mut first = Vec::new();
            for _ in 0..t.numel().min(4) {
                first.push(t.get(&index).to_string());
                for d in (0..index.len()).rev() {
                    index[d] += 1;
                    if index[d] < l.sizes[d] {
                        break;
                    }
                    index[d] = 0;
                }
            }
            json!({
                "name": name, "dtype": t.dtype().to_string(), "size": l.sizes.to_vec(), "stride": l.strides.to_vec(),
                "first": first, "elements": t.numel(),
            })
        }
        RunValue::Scalar(s) => json!({ "name": name, "scalar": s.to_string() }),
        RunValue::Str(s) => json!({ "name": name, "scalar": &**s }),
        RunValue::None => json!({ "name": name, "scalar": null }),
    }
}

/// The gradients of a joint program, by the names of their inputs.
fn gradients(program: &Program, outputs: &Outputs) -> Vec<Value> {
    let one = |(input, t): &(usize, restride::RawTensor)| {
        described(&restride::files::gradient_name(program, *input), &RunValue::Tensor(t.clone()))
    };
    outputs.gradients.iter().map(one).collect()
}

/// As text: one line a value.
pub fn outputs_text(v: &Value) -> String {
    let mut out = String::new();
    for head in ["outputs", "gradients", "changed"] {
        let list = v[head].as_array().map_or(&[] as &[Value], Vec::as_slice);
        if list.is_empty() && head != "outputs" {
            continue;
        }
        let _ = writeln!(out, "{}", styled(HEAD, head));
        for v in list {
            let name = v["name"].as_str().unwrap_or("");
            if v.get("dtype").is_none() {
                let scalar = v["scalar"].as_str().unwrap_or("None");
                let _ = writeln!(out, "  {name:<28} {scalar}");
                continue;
            }
            let text = |key: &str| v[key].to_string().replace('"', "").replace(',', ", ");
            let more = if v["elements"].as_u64().unwrap_or(0) > 4 { ", …" } else { "" };
            let first = text("first");
            let first = first.trim_start_matches('[').trim_end_matches(']');
            let ty = format!("{}{}", v["dtype"].as_str().unwrap_or(""), text("size"));
            let _ = writeln!(out, "  {name:<28} {ty:<24} {first}{more}");
        }
    }
    out
}

/// A verdict as JSON.
pub fn verdict_json(v: &Verdict) -> Value {
    let stages: Vec<Value> = v
        .stages
        .iter()
        .map(|s| json!({ "stage": s.stage, "agrees": s.differences.is_empty(), "differences": s.differences }))
        .collect();
    let check = if v.checked { "ok" } else { "skipped" };
    json!({ "program": v.program, "values": v.compared, "stages": stages,
            "checks": { "functional": check, "placement": check, "plan": check, "meaning": meaning(v) } })
}

/// A verdict as text.
pub fn verdict_text(v: &Verdict) -> String {
    let mut out = String::new();
    for s in &v.stages {
        let _ = match s.differences.is_empty() {
            true => writeln!(
                out,
                "{:<12} {} with interp in {} values, bit for bit",
                s.stage,
                styled(GOOD, "agrees"),
                v.compared
            ),
            false => writeln!(out, "{:<12} {} from interp", s.stage, styled(BAD, "differs")),
        };
        s.differences.iter().for_each(|d| out += &format!("  {d}\n"));
    }
    let checkers = if v.checked { styled(GOOD, "ok") } else { "skipped".into() };
    let _ = writeln!(out, "{:<12} {checkers}\n{:<12} {}", "checkers", "meaning", meaning(v));
    out
}

/// The comparison of the functional program with the imported one, for all inputs.
fn meaning(v: &Verdict) -> String {
    match &v.meaning {
        Equivalence::Same => "proved the same for all values of inputs of these sizes".into(),
        Equivalence::Undecided(why) => format!("not judged: {why}"),
    }
}

/// A report as JSON.
pub fn report_json(r: &Report) -> Value {
    let check = if r.checked { "ok" } else { "skipped" };
    let us = |d: std::time::Duration| d.as_micros() as u64;
    json!({
        "program": r.program,
        "imported": { "nodes": r.imported.nodes, "mutations": r.imported.mutations, "views": r.imported.views },
        "functional": { "nodes": r.functional_nodes, "mutated": r.mutated },
        "placed": {
            "steps": r.placed.steps, "in_place": r.placed.in_place, "views": r.placed.views, "copies": r.placed.copies,
            "copy_bytes": r.placed.copy_bytes, "fused": r.placed.fused, "moved_bytes": r.placed.moved_bytes,
            "moved_arena_bytes": r.placed.moved_arena_bytes, "missed": r.placed.missed, "missed_bytes": r.placed.missed_bytes,
        },
        "exchanges": exchanges_json(&r.exchanges),
        "plan": plan_of(r),
        "learns": r.learns,
        "checks": { "functional": check, "placement": check, "plan": check },
        "time_us": {
            "import": us(r.times.import), "functionalize": us(r.times.functionalize), "simplify": us(r.times.simplify),
            "fuse": us(r.times.fuse), "place": us(r.times.place), "check": us(r.times.check), "plan": us(r.times.plan),
        },
    })
}

fn exchanges_json(e: &ExchangeCounts) -> Value {
    json!({
        "exchanges": e.exchanges, "operand_bytes": e.operand_bytes, "in_flight_bytes": e.in_flight_bytes,
        "overlapped": e.overlapped, "overlapped_bytes": e.overlapped_bytes, "packed": e.packed,
    })
}

fn exchanges_text(e: &ExchangeCounts) -> String {
    if e.exchanges == 0 {
        return String::new();
    }
    let packed = if e.packed == 0 { String::new() } else { format!(", {} packed", e.packed) };
    let overlapped = format!("{} of {} beside other steps", bytes(e.overlapped_bytes), e.overlapped);
    field(
        "exchanges",
        format!(
            "{}, operands {}{packed}; {overlapped}; most in flight {}",
            e.exchanges,
            bytes(e.operand_bytes),
            bytes(e.in_flight_bytes)
        ),
    )
}

/// Simulated ranks as JSON.
pub fn simulated_json(rates: &Rates, rows: &[SimulatedRank]) -> Value {
    let row = |r: &SimulatedRank| {
        json!({
            "ranks": r.ranks, "arena_bytes": r.arena_bytes, "state_bytes": r.state_bytes, "sent_bytes": r.sent_bytes.round(),
            "steps_us": r.steps * 1e6, "exchanges_us": r.exchanges * 1e6, "exposed_us": r.exposed * 1e6,
            "total_us": r.total() * 1e6,
        })
    };
    json!({
        "link_bytes_per_s": rates.link, "latency_us": rates.latency * 1e6, "memory_bytes_per_s": rates.memory,
        "ranks": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Simulated ranks as a table.
pub fn simulated_text(rates: &Rates, rows: &[SimulatedRank]) -> String {
    let head = ["ranks", "arena", "state", "sent a rank", "steps ms", "exchanges ms", "exposed ms", "total ms"];
    let line = |cells: &[String]| cells.iter().map(|c| format!("{c:>13}")).collect::<String>() + "\n";
    let mut out = styled(HEAD, line(&head.map(str::to_string)).trim_end()) + "\n";
    let ms = |s: f64| format!("{:.3}", s * 1e3);
    for r in rows {
        out += &line(&[
            r.ranks.to_string(),
            bytes(r.arena_bytes),
            bytes(r.state_bytes),
            bytes(r.sent_bytes as i64),
            ms(r.steps),
            ms(r.exchanges),
            ms(r.exposed),
            ms(r.total()),
        ]);
    }
    let rate = |r: f64| format!("{}/s", bytes(r as i64));
    let (link, memory) = (rate(rates.link), rate(rates.memory));
    out + &format!(
        "from rates: link {link}, {:.1} us a message, memory {memory}; exchanges by rings\n",
        rates.latency * 1e6
    )
}

fn plan_of(r: &Report) -> Value {
    let mut out = counts_json(&r.plan);
    out["upper_bound_bytes"] = json!(r.plan.upper_bound_bytes);
    out["unbounded"] = json!(r.unbounded);
    out["memories"] = memories_json(&r.memories);
    out["spilled_bytes"] = json!(r.memories.spilled());
    out["spilled_at_least_bytes"] = json!(r.memories.spilled_at_least);
    out["computed_again"] = json!(r.again.0);
    out["computed_again_bytes"] = json!(r.again.1);
    out
}

fn memories_json(m: &Memories) -> Value {
    let row = |m: &MemoryCounts| json!({ "name": m.name, "capacity": m.capacity, "bytes": m.bytes, "traffic": m.traffic, "buffers": m.buffers });
    m.all.iter().map(row).collect()
}

/// A line with a name and a value.
fn field(name: impl std::fmt::Display, value: impl std::fmt::Display) -> String {
    format!("{name:<24} {value}\n")
}

/// A line for each memory, and the bytes that spilled from the first one.
fn memories_text(m: &Memories) -> String {
    let mut out = String::new();
    for m in &m.all {
        let of = m.capacity.map_or_else(String::new, |c| format!(" of {}", bytes(c)));
        let text = format!("{}{of}, {} buffers, {} moved a run", bytes(m.bytes), m.buffers, bytes(m.traffic));
        out += &field(format!("memory {}", m.name), text);
    }
    if !m.all.is_empty() {
        let (have, least) = (m.spilled(), m.spilled_at_least);
        let proved = if have == least { "proved least".into() } else { format!("at least {}", bytes(least)) };
        out += &field("spilled", format!("{} moved a run ({proved})", bytes(have)));
    }
    out
}

fn counts_json(p: &PlanCounts) -> Value {
    json!({
        "arena_bytes": p.arena_bytes, "state_bytes": p.state_bytes, "output_bytes": p.output_bytes,
        "constant_bytes": p.constant_bytes, "packed_bytes": p.packed_bytes,
        "lower_bound_bytes": p.lower_bound_bytes, "at_least_bytes": p.at_least_bytes, "optimal": p.optimal,
    })
}

/// The counts before and after: a row of heads, and a row for each count.
pub fn before_after(r: &Report) -> Vec<[String; 4]> {
    let dash = || "-".to_string();
    let row = |name: &str, a: String, b: String, c: String| [name.to_string(), a, b, c];
    vec![
        row("", "imported".into(), "functional".into(), "placed".into()),
        row("nodes / steps", r.imported.nodes.to_string(), r.functional_nodes.to_string(), r.placed.steps.to_string()),
        row("mutations", r.imported.mutations.to_string(), format!("0 (+{} outputs)", r.mutated), dash()),
        row("in place", dash(), dash(), r.placed.in_place.to_string()),
        row("views (no cost)", r.imported.views.to_string(), dash(), r.placed.views.to_string()),
        row("copies", dash(), dash(), format!("{}, {}", r.placed.copies, bytes(r.placed.copy_bytes))),
        row("fused", dash(), dash(), format!("{} operators", r.placed.fused)),
        row("moved in a run", dash(), dash(), bytes(r.placed.moved_bytes)),
        row("declined", dash(), dash(), format!("{}, {}", r.placed.missed, bytes(r.placed.missed_bytes))),
    ]
}

/// A report as text.
pub fn report_text(r: &Report) -> String {
    let mut out = format!("{}\n\n", r.program);
    for (i, [name, a, b, c]) in before_after(r).into_iter().enumerate() {
        let line = format!("{name:<24} {a:>12} {b:>12} {c:>12}");
        out += &if i == 0 { styled(HEAD, line) } else { line };
        out.push('\n');
    }
    out += &format!("\n{}{}{}", counts_text(&r.plan), exchanges_text(&r.exchanges), memories_text(&r.memories));
    if r.again.0 > 0 {
        out += &field("recomputed", format!("{} nodes, {}", r.again.0, bytes(r.again.1)));
    }
    let bound = match (r.plan.upper_bound_bytes, &r.unbounded) {
        (Some(most), _) if most != r.plan.arena_bytes => Some(bytes(most)),
        (None, Some(why)) => Some(format!("not bounded: {why}")),
        _ => None,
    };
    out += &bound.map_or(String::new(), |b| field("arena, at any sizes", b));
    r.learns.iter().for_each(|node| out += &field("memory when size is known", format!("what comes after {node}")));
    let ok = || ["functional", "placement", "plan"].map(|c| format!("{c} {}", styled(GOOD, "ok"))).join(", ");
    out += &field("checks", if r.checked { ok() } else { "skipped".into() });
    let t = &r.times;
    let parts = [
        ("import", t.import),
        ("functionalize", t.functionalize),
        ("simplify", t.simplify),
        ("fuse", t.fuse),
        ("place", t.place),
        ("plan", t.plan),
        ("check", t.check),
    ];
    let parts = parts.map(|(name, d)| format!("{name} {:.2}", d.as_secs_f64() * 1e3));
    out + &field("time (ms)", parts.join(", "))
}

fn counts_text(p: &PlanCounts) -> String {
    let optimal = if p.optimal { ", proved smallest" } else { "" };
    let once = |name: &str, n: i64| if n == 0 { String::new() } else { field(name, bytes(n)) };
    field("arena", format!("{} (at least {}{optimal})", bytes(p.arena_bytes), bytes(p.at_least_bytes)))
        + &field("state", bytes(p.state_bytes))
        + &once("computed once", p.constant_bytes)
        + &once("packed weights", p.packed_bytes)
        + &field("outputs", bytes(p.output_bytes))
}

/// Bytes with a unit.
pub fn bytes(n: i64) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

/// A memory plan as JSON.
pub fn plan_json(p: &PlanTable) -> Value {
    let rows: Vec<Value> = p
        .rows
        .iter()
        .map(|r| {
            let part = |l: &Live| {
                json!({ "first_step": l.steps.start(), "last_step": l.steps.end(), "from": l.bytes.start,
                        "to": l.bytes.end.min(r.bytes) })
            };
            json!({ "segment": r.segment, "memory": r.memory, "offset": r.offset, "bytes": r.bytes, "first_step": r.steps.0,
                    "last_step": r.steps.1, "lives": r.lives.iter().map(part).collect::<Vec<_>>(), "values": r.values })
        })
        .collect();
    let mut out = counts_json(&p.totals);
    out["memories"] = memories_json(&p.memories);
    out["buffers"] = Value::Array(rows);
    out
}

/// A memory plan as text.
pub fn plan_text(p: &PlanTable) -> String {
    let mut out = counts_text(&p.totals) + &memories_text(&p.memories);
    let named = p.memories.all.iter().map(|m| m.name.len().max("memory".len()) + 1).max().unwrap_or(0);
    let title = if named > 0 { "memory" } else { "" };
    let head = format!("{title:<named$}{:>12} {:>12} {:>13}  values", "offset", "bytes", "steps");
    out += &format!("\n{}\n", styled(HEAD, head));
    for r in &p.rows {
        let steps = format!("{}..{}", r.steps.0, r.steps.1);
        let mut values = r.values.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        if r.values.len() > 4 {
            let _ = write!(values, ", … ({} in all)", r.values.len());
        }
        let memory = r.memory.as_deref().unwrap_or("");
        let _ = writeln!(out, "{memory:<named$}{:>12} {:>12} {steps:>13}  {values}", r.offset, r.bytes);
    }
    out
}

fn how(c: &Coverage) -> &'static str {
    match c.how {
        How::Kernel => "kernel",
        How::View => "view",
        How::Composed => "composed",
        How::Bodies => "bodies",
        How::None => "-",
    }
}

/// The operator table as JSON.
pub fn ops_json(rows: &[Coverage]) -> Value {
    rows.iter()
        .map(|c| {
            let mut row = json!({ "name": c.name, "schema": c.schema, "runs": how(c), "view": c.view, "mutates": c.mutates,
                    "reuse": c.reuse, "grad": grad(c), "samples": c.samples });
            if let Some(why) = c.without {
                row["no_grad"] = json!(why);
            }
            row
        })
        .collect()
}

fn grad(c: &Coverage) -> &'static str {
    match c.grad {
        Differentiated::Rule => "rule",
        Differentiated::Composed => "composed",
        Differentiated::Zero => "zero",
        Differentiated::None => "-",
    }
}

/// The operator table as text.
pub fn ops_text(rows: &[Coverage]) -> String {
    let head = format!(
        "{:<56} {:<9} {:<5} {:<6} {:<6} {:<8} {:>7}",
        "operator", "runs", "view", "writes", "reuse", "grad", "samples"
    );
    let mut out = styled(HEAD, head) + "\n";
    let yes = |b: bool| if b { "yes" } else { "-" };
    for c in rows {
        let _ = writeln!(
            out,
            "{:<56} {:<9} {:<5} {:<6} {:<6} {:<8} {:>7}{}",
            c.name,
            how(c),
            yes(c.view),
            yes(c.mutates),
            yes(c.reuse),
            grad(c),
            c.samples,
            c.without.map_or(String::new(), |why| format!("  no gradient: {why}"))
        );
    }
    let _ = writeln!(out, "{} operators declared; in-place, out= and _foreach_ forms follow from them", rows.len());
    out
}
