//! `restride explain`: decisions about memory, and the reason for each copy, as text and as JSON.

use crate::screen::{HEAD, styled};
use crate::tables::bytes;
use restride::{Copied, Decision, Explanation, Reason, Site, Why};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Rows of a table without `--all`.
const ROWS: usize = 20;
/// Longest line.
const LINE: usize = 110;
/// Widths of the columns: bytes, node, decision, source line. With gaps they make a line.
const WIDTHS: [usize; 4] = [10, 30, 42, 22];

/// An explanation as JSON.
pub fn json(e: &Explanation) -> Value {
    let copies: Vec<Value> = e.copies.iter().map(copied_json).collect();
    json!({
        "program": e.program,
        "totals": {
            "done": e.done.len(), "done_bytes": sum(e.done.iter().map(|d| d.bytes)),
            "declined": e.declined.len(), "declined_bytes": sum(e.declined.iter().map(|d| d.bytes)),
            "copies": e.copies.len(), "copy_bytes": sum(e.copies.iter().map(|c| c.bytes)),
        },
        "done": e.done.iter().map(decision_json).collect::<Vec<_>>(),
        "declined": e.declined.iter().map(decision_json).collect::<Vec<_>>(),
        "copies": copies,
    })
}

fn sum(bytes: impl Iterator<Item = i64>) -> i64 {
    bytes.fold(0, i64::saturating_add)
}

fn site_json(s: &Site) -> Value {
    json!({ "results": s.results, "op": s.op, "line": s.line, "module": s.module, "piece": s.piece, "body": s.body })
}

fn decision_json(d: &Decision) -> Value {
    json!({
        "node": site_json(&d.site), "kind": d.kind.key(), "over": d.over, "bytes": d.bytes, "why": d.why(),
        "reader": d.reader.as_ref().map(|s| site_json(s)), "through": d.through.as_ref().map(|s| site_json(s)),
    })
}

fn copied_json(c: &Copied) -> Value {
    json!({
        "values": c.values, "to": c.to, "for": c.site.as_ref().map(|s| site_json(s)), "run": c.run, "bytes": c.bytes,
        "maker": c.maker.as_ref().map(|s| site_json(s)), "why": c.why(),
        "declined": match &c.why {
            Why::Declined(d) => decision_json(d),
            Why::Given | Why::Unknown => Value::Null,
        },
    })
}

/// An explanation as text: totals, decisions taken, decisions declined, copies. `about` is the NODE that was given.
pub fn text(e: &Explanation, about: Option<&str>, all: bool) -> String {
    let total = |n: usize, b: i64| format!("{n} ({})", bytes(b));
    let program = if e.program.is_empty() { "the program" } else { &e.program };
    let head = about.map_or_else(|| program.to_string(), |n| format!("{program}, %{}", n.trim_start_matches('%')));
    let totals = format!(
        ": done in place {}, not done {}, copies that stay {}\n",
        total(e.done.len(), sum(e.done.iter().map(|d| d.bytes))),
        total(e.declined.len(), sum(e.declined.iter().map(|d| d.bytes))),
        total(e.copies.len(), sum(e.copies.iter().map(|c| c.bytes))),
    );
    let mut out = cut(&head, (LINE + 1).saturating_sub(totals.chars().count()).max(12)) + &totals;
    let most = if all { usize::MAX } else { ROWS };
    table(&mut out, "done in place, with the bytes that it saves", &e.done, most, |out, d| {
        decided(out, d);
        if d.reason != Reason::Taken {
            below(out, &d.why());
        }
        d.bytes
    });
    table(&mut out, "not done, with the bytes that it costs", &e.declined, most, |out, d| {
        decided(out, d);
        below(out, &d.why());
        d.bytes
    });
    table(&mut out, "copies that stay, with the bytes that they write", &e.copies, most, |out, c| {
        let line = c.site.as_ref().or(c.maker.as_ref()).and_then(|s| s.line.as_deref());
        row(out, c.bytes, &copied(c), &aim(c), line);
        below(out, &c.why());
        c.bytes
    });
    out
}

fn table<T>(out: &mut String, head: &str, rows: &[T], most: usize, mut each: impl FnMut(&mut String, &T) -> i64) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(HEAD, head));
    // A line that says "1 more" would take the place of that row.
    let shown = if rows.len() == most.saturating_add(1) { rows.len() } else { rows.len().min(most) };
    for r in &rows[..shown] {
        each(out, r);
    }
    if shown < rows.len() {
        let mut unseen = String::new();
        let rest = sum(rows[shown..].iter().map(|r| each(&mut unseen, r)));
        let _ = writeln!(out, "{:>10}  in {} more; --all prints them", bytes(rest), rows.len() - shown);
    }
}

fn decided(out: &mut String, d: &Decision) {
    let over = d.over.as_ref().map_or_else(String::new, |o| format!(": {o}"));
    row(out, d.bytes, &short(&d.site), &format!("{}{over}", d.kind.words(d.taken())), d.site.line.as_deref());
}

fn row(out: &mut String, n: i64, node: &str, what: &str, line: Option<&str>) {
    let [b, node_width, what_width, line_width] = WIDTHS;
    let (node, what) = (cut(node, node_width), cut(what, what_width));
    let text = format!("{:>b$}  {node:<node_width$}  {what:<what_width$}  ", bytes(n));
    let line = line.map_or_else(String::new, |l| cut_front(l, line_width));
    let _ = writeln!(out, "{}", format!("{text}{line}").trim_end());
}

fn below(out: &mut String, text: &str) {
    let _ = writeln!(out, "{:12}{}", "", cut(text, LINE - 12));
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn cut_front(text: &str, width: usize) -> String {
    let n = text.chars().count();
    if n <= width {
        return text.to_string();
    }
    ['…'].into_iter().chain(text.chars().skip(n + 1 - width)).collect()
}

/// `%w = add.Tensor`
fn short(s: &Site) -> String {
    let mut results = s.results.iter().take(2).map(|r| format!("%{r}")).collect::<Vec<_>>().join(", ");
    if s.results.len() > 2 {
        results.push_str(", …");
    }
    let op = s.op.strip_prefix("aten.").unwrap_or(&s.op);
    let op = op.strip_suffix(".default").unwrap_or(op);
    let text = if results.is_empty() { op.to_string() } else { format!("{results} = {op}") };
    s.body.as_ref().map_or(text.clone(), |b| format!("{text} in @{b}"))
}

fn copied(c: &Copied) -> String {
    match &c.site {
        Some(site) if c.run => short(site),
        _ => c.values.iter().map(|v| format!("%{v}")).collect::<Vec<_>>().join(", "),
    }
}

fn aim(c: &Copied) -> String {
    match &c.site {
        _ if c.run => format!("run, to {}", c.to),
        Some(site) => format!("to {}, for {}", c.to, short(site)),
        None => format!("to {}", c.to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride::{CompileOptions, Compiled, Inputs, OpenOptions};

    #[test]
    fn lines_fit_and_no_row_is_missing() {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples");
        let program = restride::open(&examples.join("llama_decode.pt2"), &OpenOptions::default()).expect("the example");
        let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
        let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("it compiles");
        let e = compiled.prepare(&inputs).expect("it is placed").explain();
        let few = text(&e, None, false);
        let all = text(&e, Some(&"long".repeat(40)), true);
        for line in few.lines().chain(all.lines()) {
            let line = anstream::adapter::strip_str(line).to_string();
            assert!(line.chars().count() <= LINE && !line.ends_with(' '), "{line:?}");
        }
        assert!(e.done.len() > ROWS + 1 && few.contains("--all prints them") && !all.contains("--all prints them"));
        // The totals, per table a gap and a head, one line for a decision taken, two for others and for one with a reason.
        let tables = [e.done.len(), e.declined.len(), e.copies.len()].iter().filter(|n| **n > 0).count();
        let reasons = e.done.iter().filter(|d| d.reason != Reason::Taken).count();
        let lines = 1 + 2 * tables + e.done.len() + reasons + 2 * e.declined.len() + 2 * e.copies.len();
        assert_eq!(all.lines().count(), lines);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!((cut("abcdef", 4).as_str(), cut_front("abcdef", 4).as_str()), ("abc…", "…def"));
        assert_eq!((cut("abcd", 4).as_str(), cut_front("abcd", 4).as_str()), ("abcd", "abcd"));
    }
}
