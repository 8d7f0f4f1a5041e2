//! Texts with several graphs, such as the log of a compilation with graph breaks: one is chosen by its number.

use super::GraphForm;
use restride_ir::{Error, ErrorKind, Result};

/// Lines of one graph: where it is named in messages, and the part of the text that belongs to it.
struct GraphLines {
    at: usize,
    lines: std::ops::Range<usize>,
}

/// The text with one graph; lines of others are empty, so that numbers stay. `chosen` is a number from 1.
///
/// # Errors
/// The text has several graphs and `chosen` is `None`, or `chosen` is not the number of a graph.
pub(super) fn one(text: String, form: GraphForm, chosen: Option<&str>) -> Result<String> {
    let lines: Vec<&str> = text.lines().collect();
    let graphs = match form {
        GraphForm::Code | GraphForm::Exported => of_code(&lines),
        GraphForm::Nodes => of_heads(&lines, |line| line.trim_start().starts_with("graph(")),
        // Graphs of modules belong to the graph before them.
        GraphForm::JitIr => of_heads(&lines, |line| {
            let first = line.split_once("graph(").map(|(_, params)| params.split(',').next().unwrap_or_default());
            first.is_some_and(|first| !first.contains(": __torch__"))
        }),
    };
    let n = graphs.len().max(1);
    let at = match chosen {
        None if n == 1 => return Ok(text),
        None => {
            let at: Vec<String> = graphs.iter().map(|g| (g.at + 1).to_string()).collect();
            let what = format!("the text has {n} graphs, at lines {}", at.join(", "));
            let help = format!("choose one with --model 1 to --model {n}, or paste it alone");
            return Err(Error::new(ErrorKind::File, what).help(help));
        }
        Some(name) => match name.parse::<usize>() {
            Ok(k) if (1..=n).contains(&k) => k - 1,
            _ => {
                let what = format!("the text has no graph {name}");
                return Err(Error::new(ErrorKind::File, what).help(format!("give a number from 1 to {n}")));
            }
        },
    };
    let Some(graph) = graphs.get(at) else { return Ok(text) };
    let mut out = String::with_capacity(text.len());
    for (i, line) in lines.iter().enumerate() {
        if graph.lines.contains(&i) {
            out.push_str(line);
        }
        out.push('\n');
    }
    Ok(out)
}

/// Graphs that begin at lines with a head. What is before the first belongs to it.
fn of_heads(lines: &[&str], is_head: impl Fn(&str) -> bool) -> Vec<GraphLines> {
    let heads: Vec<usize> = (0..lines.len()).filter(|i| is_head(lines[*i])).collect();
    let end = |k: usize| heads.get(k + 1).copied().unwrap_or(lines.len());
    heads.iter().enumerate().map(|(k, &at)| GraphLines { at, lines: if k == 0 { 0 } else { at }..end(k) }).collect()
}

/// Classes and functions `forward`. What is before one belongs to it (the modules that `print(gm)` lists), but for the signature of
/// an ExportedProgram.
fn of_code(lines: &[&str]) -> Vec<GraphLines> {
    let mut out: Vec<GraphLines> = Vec::new();
    let mut next = 0;
    while let Some((first, end)) = super::python::code_lines(lines, next) {
        if lines[first..end].iter().any(|l| l.trim_start().starts_with("def forward(")) {
            let between = next..first;
            let own = between.clone().find(|i| lines[*i].trim_start().starts_with("ExportedProgram:"));
            let start = own.unwrap_or(next);
            if let Some(before) = out.last_mut() {
                before.lines.end = start.max(before.lines.end);
            }
            out.push(GraphLines { at: first, lines: start..end });
        }
        next = end;
    }
    if let Some(last) = out.last_mut() {
        last.lines.end = lines.len();
    }
    if let Some(first) = out.first_mut() {
        first.lines.start = 0;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::GraphForm;
    use super::one;

    #[test]
    fn a_graph_is_chosen_by_its_number() {
        let log = "TRACED GRAPH\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n\n\
                   TRACED GRAPH\nclass GraphModule(torch.nn.Module):\n    def forward(self, y):\n        return (y,)\n";
        let pick = |chosen| one(log.into(), GraphForm::Code, chosen);
        let e = pick(None).unwrap_err();
        assert_eq!(e.what, "the text has 2 graphs, at lines 2, 7");
        assert_eq!(e.help.as_deref(), Some("choose one with --model 1 to --model 2, or paste it alone"));
        let second = pick(Some("2")).unwrap();
        assert!(second.contains("self, y") && !second.contains("self, x"), "{second}");
        assert_eq!(second.lines().count(), log.lines().count());
        assert!(pick(Some("1")).unwrap().contains("self, x"));
        assert!(pick(Some("3")).is_err() && pick(Some("forward")).is_err());
    }

    #[test]
    fn bodies_and_graphs_of_modules_are_no_graphs_of_their_own() {
        let nested = "class M(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n    \
                      class body(torch.nn.Module):\n        def forward(self, x):\n            return x\n";
        assert_eq!(one(nested.into(), GraphForm::Code, None).unwrap(), nested);
        let jit = "graph(%self : __torch__.M,\n      %x : Tensor):\n  return (%x)\ngraph(%self : __torch__.N, %x : Tensor):\n  return (%x)\n";
        assert_eq!(one(jit.into(), GraphForm::JitIr, None).unwrap(), jit);
        let two = "graph(%x : Tensor):\n  return (%x)\ngraph(%y : Tensor):\n  return (%y)\n";
        assert!(one(two.into(), GraphForm::JitIr, Some("2")).unwrap().starts_with("\n\ngraph(%y"));
        let nodes =
            "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    return x\n\ngraph():\n    return y\n";
        assert!(one(nodes.into(), GraphForm::Nodes, None).is_err());
    }
}
