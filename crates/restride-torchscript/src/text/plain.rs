//! What surrounds a pasted graph: colours of a terminal, prefixes of logs, prompts, line numbers, quoting of mails and of HTML.
//!
//! Lines stay lines, so that errors name those of the pasted text.

/// The text without its surroundings.
pub(super) fn plain(text: &str) -> String {
    let text = without_colours(text);
    let text = if text.contains("&gt;") || text.contains("&quot;") || text.contains("&lt;") {
        let pairs = [("&gt;", ">"), ("&lt;", "<"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")];
        pairs.iter().fold(text, |t, (from, to)| t.replace(from, to))
    } else {
        text
    };
    let mut lines: Vec<String> = text.lines().map(|l| of_line(l).to_string()).collect();
    without_numbers(&mut lines);
    for line in &mut lines {
        if let Some(class) = class_of(line) {
            *line = class;
        }
    }
    let mut out = String::with_capacity(text.len() + 1);
    for line in lines {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Drops escape sequences of terminals, and says spaces and quotes of word processors as ASCII.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // `ESC [ 31 m`, or `ESC ] … BEL`.
                match chars.next() {
                    Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                    Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                    _ => {}
                }
            }
            '\u{a0}' | '\u{202f}' => out.push(' '),
            '\u{200b}' | '\u{feff}' | '\r' => {}
            '\u{201c}' | '\u{201d}' => out.push('"'),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            c => out.push(c),
        }
    }
    out
}

/// A line without prefixes of logs, prompts and quotes.
fn of_line(line: &str) -> &str {
    let mut line = line;
    // Quotes of quotes: each round takes one prefix.
    for _ in 0..8 {
        match without_log(line).or_else(|| without_prompt(line)) {
            Some(rest) => line = rest,
            None => break,
        }
    }
    if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") { "" } else { line }
}

/// A line without a prompt of Python, IPython or a mail.
fn without_prompt(line: &str) -> Option<&str> {
    for prompt in [">>> ", "... ", "> ", "(Pdb) ", "ipdb> "] {
        if let Some(rest) = line.strip_prefix(prompt) {
            return Some(rest);
        }
    }
    if line == ">" || line == ">>>" {
        return Some("");
    }
    // `In [12]: `, `Out[12]: `, `   ...: `
    let trimmed = line.trim_start();
    for start in ["In [", "Out[", "In  [", "Out ["] {
        if let Some((number, rest)) = trimmed.strip_prefix(start).and_then(|r| r.split_once("]:"))
            && number.trim().bytes().all(|b| b.is_ascii_digit())
        {
            return Some(rest.strip_prefix(' ').unwrap_or(rest));
        }
    }
    trimmed.strip_prefix("...: ")
}

/// A line without the prefix of a log.
fn without_log(line: &str) -> Option<&str> {
    let mut rest = line;
    // `[rank0]:`
    if let Some((rank, after)) = rest.strip_prefix("[rank").and_then(|r| r.split_once("]:"))
        && rank.bytes().all(|b| b.is_ascii_digit())
    {
        rest = after.strip_prefix(' ').unwrap_or(after);
        if glog(rest).is_none() {
            return Some(rest);
        }
    }
    if let Some(after) = glog(rest) {
        return Some(after);
    }
    // Before PyTorch 2.2: `[2023-10-01 12:00:00,000] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG] `
    let dated = rest.strip_prefix('[').and_then(|r| r.split_once("] ")).filter(|(date, _)| is_date(date));
    if let Some((_, after)) = dated {
        for level in ["[DEBUG] ", "[INFO] ", "[WARNING] ", "[DEBUG]", "[INFO]", "[WARNING]"] {
            if let Some((_, content)) = after.split_once(level) {
                return Some(content);
            }
        }
    }
    // `2024-01-10T08:11:38.1234567Z ` of a continuous build
    let (stamp, after) = rest.split_once(' ').unwrap_or((rest, ""));
    if stamp.ends_with('Z') && stamp.contains('T') && is_date(stamp) {
        return Some(after);
    }
    // What is left of a prefix: `[0/0] [__graph_code] `
    let after = brackets(rest);
    (after.len() < rest.len() && rest.contains("[__")).then_some(after)
}

/// A line without `V0301 12:00:00.000000 139 torch/_dynamo/output_graph.py:1] [0/0] [__graph_code] `.
fn glog(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let level = matches!(bytes.first(), Some(b'V' | b'D' | b'I' | b'W' | b'E' | b'C'));
    if !level || !bytes.get(1..5)?.iter().all(u8::is_ascii_digit) || bytes.get(5) != Some(&b' ') {
        return None;
    }
    let (head, rest) = line.split_once(']')?;
    if !head.contains(".py:") {
        return None;
    }
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some(brackets(rest))
}

/// A text without `[0/0] [__graph_code] ` before it.
fn brackets(text: &str) -> &str {
    let mut rest = text;
    while let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        let mark = inside.starts_with("__") || inside.contains('/') && inside.len() < 16;
        if !mark || inside.contains([' ', ',', '"']) {
            break;
        }
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    rest
}

/// Whether a text begins with `2024-01-10`.
fn is_date(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() >= 10
        && b[..10].iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() })
}

/// Drops line numbers, where each line that is not empty has one and they rise.
fn without_numbers(lines: &mut [String]) {
    let split = |line: &str| -> Option<(u64, usize)> {
        let trimmed = line.trim_start();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let number = trimmed.get(..digits)?.parse().ok()?;
        let mut at = line.len() - trimmed.len() + digits;
        let after = line[at..].trim_start_matches(' ');
        if let Some(mark) = after.chars().next().filter(|c| matches!(c, ':' | '|' | ')' | '.' | '│')) {
            at = line.len() - after.len() + mark.len_utf8();
        } else if !line[at..].is_empty() && !line[at..].starts_with([' ', '\t']) {
            return None;
        }
        at += usize::from(line[at..].starts_with([' ', '\t']));
        Some((number, at))
    };
    let numbered: Vec<Option<(u64, usize)>> = lines.iter().map(|l| split(l)).collect();
    let mut last = None;
    for (line, found) in lines.iter().zip(&numbered) {
        match found {
            Some((n, _)) if last.is_none_or(|l| *n == l + 1) => last = Some(*n),
            None if line.trim().is_empty() => {}
            _ => return,
        }
    }
    let n = numbered.iter().flatten().count();
    if n < 3 {
        return;
    }
    for (line, found) in lines.iter_mut().zip(numbered) {
        if let Some((_, at)) = found {
            *line = line[at..].to_string();
        }
    }
}

/// A line with the head of a class alone: before it, logs name the file of the graph's code
/// (` <eval_with_key>.1 class GraphModule(torch.nn.Module):`).
fn class_of(line: &str) -> Option<String> {
    let at = line.find(" class ")?;
    let before = line[..at].trim();
    let file = before.ends_with(".py") || before.starts_with('<') || before.starts_with("===");
    if before.is_empty() || !file || before.contains(['"', '\'', '#']) {
        return None;
    }
    let depth = line.len() - line.trim_start().len();
    // ` PATH class …` is at the depth of the log's text.
    Some(format!("{}{}", line.get(..depth.saturating_sub(1)).unwrap_or_default(), &line[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::plain;

    fn stripped(text: &str, want: &str) {
        assert_eq!(plain(text).trim_end_matches('\n'), want, "{text:?}");
    }

    #[test]
    fn surroundings_are_left_out() {
        stripped(">>> x = 1\n... y", "x = 1\ny");
        stripped("In [3]: print(gm)\nOut[3]: graph():\n   ...: z", "print(gm)\ngraph():\nz");
        stripped("> > a", "a");
        stripped("\u{1b}[31mred\u{1b}[0m \u{201c}q\u{201d}", "red \"q\"");
        stripped("```python\nx\n```", "\nx");
        stripped("&lt;a&gt; &amp;amp;", "<a> &amp;");
        let log = "V0301 12:00:00.000000 139 torch/_dynamo/output_graph.py:1] [0/0] [__graph_code]     def forward(";
        stripped(log, "    def forward(");
        stripped(&format!("[rank0]:{log}"), "    def forward(");
        stripped("[2023-10-01 12:00:00,000] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG]     x", "    x");
        stripped("[0/0_1] [__aot_graphs]   x", "  x");
        stripped("2024-01-10T08:11:38.1234567Z   x", "  x");
        stripped(" <eval_with_key>.1 class GraphModule(torch.nn.Module):", "class GraphModule(torch.nn.Module):");
        stripped(" /a/b.py class <lambda>(torch.nn.Module):", "class <lambda>(torch.nn.Module):");
    }

    #[test]
    fn line_numbers_are_left_out_where_all_lines_have_one() {
        stripped("  9 | def f():\n 10 |     x\n 11 |     y", "def f():\n    x\n    y");
        stripped("1: a\n2:   b\n\n3: c", "a\n  b\n\nc");
        stripped("1\tdef f():\n2\t    x\n3\t", "def f():\n    x");
        stripped("1 a\n3 b\n4 c", "1 a\n3 b\n4 c");
        // A list of numbers is no text with numbers.
        stripped("[1, 2]\n2 x\n3 y", "[1, 2]\n2 x\n3 y");
    }
}
