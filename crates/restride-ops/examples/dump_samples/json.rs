//! Arguments and tensors as JSON, as `scripts/check/ops_check.py` reads them.

use restride_ir::{Arg, MemoryFormat, SampleArg, Scalar};
use restride_tensor::{DType, RawTensor};
use std::fmt::Write as _;

/// An argument of a call.
pub fn argument(arg: &SampleArg) -> String {
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

/// A number.
pub fn number(s: Scalar) -> String {
    match s {
        Scalar::Bool(b) => b.to_string(),
        Scalar::Int(i) => i.to_string(),
        // Bits, because JSON has no infinities.
        Scalar::Float(x) => format!("{{\"float\": \"{:016x}\"}}", x.to_bits()),
        Scalar::Complex(z) => format!("{{\"complex\": [\"{:016x}\", \"{:016x}\"]}}", z.re.to_bits(), z.im.to_bits()),
    }
}

/// Sizes, strides and the whole storage, as hexadecimal bytes.
pub fn tensor(t: &RawTensor) -> String {
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

/// A string.
pub fn string(s: &str) -> String {
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
