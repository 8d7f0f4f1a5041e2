//! `compile --report`: one HTML page with its style, scripts and data inside.
//!
//! `page.html` has a mark for each of these. Names come from untrusted files: they reach the page as JSON that cannot end its
//! element, and the scripts show them as text, never as markup.

use crate::tables;
use restride::{BufferRow, Copied, Decision, Overview, Owner, Site, StepKind, StepRow, TimelinePart};
use serde_json::{Value, json};
use std::collections::HashMap;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 4] =
    [include_str!("model.js"), include_str!("chart.js"), include_str!("lists.js"), include_str!("main.js")];

/// The page.
pub fn html(overview: &Overview) -> String {
    let data = in_script(&data(overview).to_string());
    let scripts = format!("\"use strict\";\n(() => {{\n{}}})();\n", SCRIPTS.concat());
    let mut out = String::with_capacity(PAGE.len() + STYLE.len() + scripts.len() + data.len());
    let mut rest = PAGE;
    // Marks in inserted text are left alone.
    for (mark, text) in [("/*style*/", STYLE), ("/*data*/", &data), ("/*scripts*/", &scripts)] {
        let (before, after) = rest.split_once(mark).expect("the page has its marks in this order");
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// JSON as the text of a script element. Characters that could end or comment out the element, and line ends that older
/// JavaScript refuses in strings, are escaped; all of them occur in strings only.
fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Strings by number: most source lines, modules, operators and types occur many times.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Strings {
    fn number(&mut self, text: &str) -> usize {
        if let Some(n) = self.numbers.get(text) {
            return *n;
        }
        self.numbers.insert(text.to_string(), self.all.len());
        self.all.push(text.to_string());
        self.all.len() - 1
    }

    /// The number, or -1 for no string.
    fn optional(&mut self, text: Option<&str>) -> i64 {
        text.map_or(-1, |t| self.number(t) as i64)
    }
}

/// A node's piece, body and results.
type PageKey<'a> = (usize, Option<&'a str>, &'a [String]);

/// The data of the page, for `model.js`.
fn data(Overview { report, timeline, explanation }: &Overview) -> Value {
    let mut strings = Strings::default();
    let parts: Vec<Value> = timeline.parts.iter().map(|p| part(&mut strings, p)).collect();
    let mut steps: HashMap<PageKey, (usize, usize)> = HashMap::new();
    let mut bodies: HashMap<(usize, Option<&str>), usize> = HashMap::new();
    for (at, part) in timeline.parts.iter().enumerate() {
        let body = part.body.as_ref().map(|b| b.name.as_str());
        bodies.entry((part.piece, body)).or_insert(at);
        for (number, step) in part.steps.iter().enumerate() {
            if let (Some(site), false) = (&step.site, step.kind == StepKind::Move) {
                steps.entry((part.piece, body, &site.results)).or_insert((at, number));
            }
        }
    }
    let found = |s: &Site| steps.get(&(s.piece, s.body.as_deref(), &s.results[..])).copied();
    let copies: Vec<Value> = explanation
        .copies
        .iter()
        .map(|c| copied(&mut strings, c, bodies.get(&(c.piece, c.body.as_deref())).copied()))
        .collect();
    let declined: Vec<Value> = explanation.declined.iter().map(|d| decision(&mut strings, d, found(&d.site))).collect();
    json!({
        "report": tables::report_json(report),
        "table": tables::before_after(report),
        "weight_bytes": timeline.weight_bytes,
        "input_bytes": timeline.input_bytes,
        "version": env!("CARGO_PKG_VERSION"),
        "parts": parts,
        "copies": copies,
        "declined": declined,
        "strings": strings.all,
    })
}

fn part(strings: &mut Strings, p: &TimelinePart) -> Value {
    let steps: Vec<Value> = p.steps.iter().map(|s| step(strings, s)).collect();
    let buffers: Vec<Value> = p.buffers.iter().map(|b| buffer(strings, b)).collect();
    let values: Vec<Value> = p
        .values
        .iter()
        .map(|v| {
            let reuse: Vec<Value> = v
                .reuse
                .iter()
                .map(|(kind, over)| json!([strings.number(kind.words(true)), strings.optional(over.as_deref())]))
                .collect();
            json!([strings.number(&v.name), strings.number(&v.ty), v.bytes, v.buffer, v.made, v.read, reuse])
        })
        .collect();
    json!({
        "piece": p.piece,
        "body": p.body.as_ref().map(|b| json!({ "name": b.name, "part": b.part, "steps": b.steps })),
        "learns": p.learns.as_ref().map(|s| s.to_string()),
        "arena_bytes": p.arena_bytes,
        "lower_bound_bytes": p.lower_bound_bytes,
        "at_least_bytes": p.at_least_bytes,
        "optimal": p.optimal,
        "peak": p.peak(),
        "live": p.live,
        "steps": steps,
        "buffers": buffers,
        "values": values,
    })
}

/// `[kind, results, operator, line, module, reads, writes, scratch, bytes]`: strings by number; reads and writes as value,
/// buffer, value, buffer, …
fn step(strings: &mut Strings, s: &StepRow) -> Value {
    let kind = match s.kind {
        StepKind::Compute => 0,
        StepKind::Copy => 1,
        StepKind::Move => 2,
        StepKind::Free => 3,
    };
    let flat = |list: &[restride::BufferAccess]| list.iter().flat_map(|a| [a.value, a.buffer]).collect::<Vec<_>>();
    let site = s.site.as_deref();
    let results = site.map(|s| s.results.iter().map(|r| format!("%{r}")).collect::<Vec<_>>().join(", "));
    json!([
        kind,
        strings.optional(results.as_deref()),
        strings.optional(site.map(|s| s.op.as_str())),
        strings.optional(site.and_then(|s| s.line.as_deref())),
        strings.optional(site.and_then(|s| s.module.as_deref())),
        flat(&s.reads),
        flat(&s.writes),
        s.scratch,
        s.bytes,
    ])
}

/// `[owner, name, offset, bytes, first step, last step, rectangles, values, step whose scratch it is, frame]`: rectangles as
/// first step, last step, offset, bytes, first step, …
fn buffer(strings: &mut Strings, b: &BufferRow) -> Value {
    let owner = match b.owner {
        Owner::Arena => 0,
        Owner::Input => 1,
        Owner::Output => 2,
    };
    let life: Vec<Value> =
        b.life.iter().flat_map(|r| [json!(r.first), json!(r.last), json!(r.offset), json!(r.bytes)]).collect();
    let name = strings.number(&b.name);
    json!([owner, name, b.offset, b.bytes, b.steps.0, b.steps.1, life, b.values, b.scratch_of, b.frame])
}

/// `[part, step, bytes, copied values, target, reason, line, module]`
fn copied(strings: &mut Strings, c: &Copied, part: Option<usize>) -> Value {
    let what = match &c.site {
        Some(site) if c.run => site.to_string(),
        _ => c.values.iter().map(|v| format!("%{v}")).collect::<Vec<_>>().join(", "),
    };
    let to = match &c.site {
        Some(site) if !c.run => format!("to {}, for {site}", c.to),
        _ => format!("to {}", c.to),
    };
    let site = c.site.as_ref().or(c.maker.as_ref());
    json!([
        part,
        c.step,
        c.bytes,
        strings.number(&what),
        strings.number(&to),
        strings.number(&c.why()),
        strings.optional(site.and_then(|s| s.line.as_deref())),
        strings.optional(site.and_then(|s| s.module.as_deref())),
    ])
}

/// As [`copied`].
fn decision(strings: &mut Strings, d: &Decision, step: Option<(usize, usize)>) -> Value {
    let over = d.over.as_ref().map_or_else(String::new, |o| format!(": {o}"));
    json!([
        step.map(|s| s.0),
        step.map(|s| s.1),
        d.bytes,
        strings.number(&d.site.to_string()),
        strings.number(&format!("{}{over}", d.kind.words(d.taken()))),
        strings.number(&d.why()),
        strings.optional(d.site.line.as_deref()),
        strings.optional(d.site.module.as_deref()),
    ])
}
