//! Writes the sample calls of every operator, with what they give here, as JSON lines: `scripts/ops_check.py` replays
//! them in PyTorch. Arguments name operators or their beginnings (`aten.add aten.mul.Tensor`); none means all.

mod run;

use restride_ir::{Arg, Exactness, MemoryFormat, Op, SampleArg, Scalar};
use restride_tensor::{DType, Tensor};
use std::fmt::Write as _;
use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for &op in restride_ops::ops() {
        let name = op.name();
        let named = |w: &String| name == w || name.strip_prefix(w.as_str()).is_some_and(|rest| rest.starts_with('.'));
        if !(wanted.is_empty() || wanted.iter().any(named)) {
            continue;
        }
        let Some(samples) = op.def().samples else { continue };
        for (i, sample) in samples().iter().enumerate() {
            writeln!(out, "{}", line(op, i, &sample.args))?;
        }
    }
    Ok(())
}

/// One call as JSON.
fn line(op: Op, index: usize, args: &[SampleArg]) -> String {
    // Written before the call, which gets tensors of its own: a kernel that changed its operands would be seen.
    let shown: Vec<String> = args.iter().map(argument).collect();
    let outcome = match run::filled(op, args).and_then(|args| run::call(op, &args)) {
        Ok(run::Outcome::Tensors(ts)) => {
            let shown: Vec<String> = ts.iter().map(|t| result(t, args)).collect();
            format!("\"results\": [{}]", shown.join(", "))
        }
        Ok(run::Outcome::Number(s)) => format!("\"results\": [{}]", number(s)),
        Err(e) => format!("\"error\": {}", string(&e.0)),
    };
    let after: Vec<String> = args.iter().map(argument).collect();
    assert_eq!(shown, after, "{op} changed its operands");
    let tolerance = match op.def().exactness {
        Exactness::Exact => "\"exact\"".to_string(),
        Exactness::Random => "\"random\"".to_string(),
        Exactness::Within { rtol, atol } => format!("[{rtol:?}, {atol:?}]"),
    };
    format!(
        "{{\"op\": {}, \"index\": {index}, \"tolerance\": {tolerance}, \"args\": [{}], {outcome}}}",
        string(op.name()),
        shown.join(", ")
    )
}

fn result(t: &Tensor, args: &[SampleArg]) -> String {
    let base = args.iter().flat_map(Arg::values).position(|a| a.storage().same(t.storage()));
    let base = base.map_or("null".to_string(), |i| i.to_string());
    format!("{{\"tensor\": {}, \"alias\": {base}}}", tensor(t))
}

fn argument(arg: &SampleArg) -> String {
    match arg {
        Arg::None => "null".to_string(),
        Arg::Value(t) => tensor(t),
        Arg::Values(ts) => list(ts.iter().map(|t| t.as_ref().map_or("null".to_string(), tensor))),
        Arg::Scalar(s) => number(*s),
        Arg::Scalars(ss) => list(ss.iter().map(|s| number(*s))),
        Arg::Complex(re, im) => number(Scalar::Complex(restride_tensor::C64::new(*re, *im))),
        Arg::Str(s) => string(s),
        Arg::Strs(ss) => list(ss.iter().map(|s| string(s))),
        Arg::DType(d) => format!("{{\"dtype\": \"{}\"}}", d.torch_name()),
        Arg::Device(d) => format!("{{\"device\": {}}}", string(d)),
        Arg::Strided => "{\"layout\": \"strided\"}".to_string(),
        Arg::MemoryFormat(m) => {
            let name = match m {
                MemoryFormat::Contiguous => "contiguous_format",
                MemoryFormat::Preserve => "preserve_format",
                MemoryFormat::ChannelsLast => "channels_last",
                MemoryFormat::ChannelsLast3d => "channels_last_3d",
            };
            format!("{{\"memory_format\": \"{name}\"}}")
        }
        Arg::Graph(_) | Arg::Op(_) => panic!("samples hold no graphs and no operators"),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn number(s: Scalar) -> String {
    match s {
        Scalar::Bool(b) => b.to_string(),
        Scalar::Int(i) => i.to_string(),
        // Bits, because JSON has no infinities.
        Scalar::Float(x) => format!("{{\"float\": \"{:016x}\"}}", x.to_bits()),
        Scalar::Complex(z) => format!("{{\"complex\": [\"{:016x}\", \"{:016x}\"]}}", z.re.to_bits(), z.im.to_bits()),
    }
}

/// Sizes, strides and the whole storage, as hexadecimal bytes.
fn tensor(t: &Tensor) -> String {
    let bytes = t.storage().to_vec();
    let mut hex = String::with_capacity(2 * bytes.len());
    for b in bytes {
        write!(hex, "{b:02x}").expect("a string takes all that is written");
    }
    let l = t.layout();
    let bits = match (t.conj, t.neg, t.dtype()) {
        (false, false, _) => "",
        (true, false, DType::C64 | DType::C128) => ", \"conj\": true",
        _ => ", \"neg\": true",
    };
    format!(
        "{{\"dtype\": \"{}\", \"size\": {:?}, \"stride\": {:?}, \"offset\": {}, \"data\": \"{hex}\"{bits}}}",
        t.dtype().torch_name(),
        &l.sizes[..],
        &l.strides[..],
        l.offset
    )
}

fn string(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32).expect("a string takes all that is written"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
