//! Values of options, read from their text.

use restride::Limits;

/// Sizes of one `--dynamic`.
#[derive(Clone)]
pub struct Dynamics(pub Vec<restride::Dynamic>);

/// A seed, or types of inputs.
#[derive(Clone)]
pub enum RandomArg {
    /// A seed.
    Seed(u64),
    /// Types, by name or in order.
    Types(Vec<(Option<std::sync::Arc<str>>, restride::GivenValue)>),
}

/// Reads `NAME=0,1/2,3`.
pub(super) fn group(text: &str) -> Result<(String, Vec<Vec<usize>>), String> {
    let (name, lists) = text.split_once('=').ok_or("give it as NAME=0,1/2,3")?;
    let rank = |r: &str| r.trim().parse::<usize>().map_err(|_| format!("`{r}` is no rank"));
    let list = |l: &str| l.split(',').map(rank).collect::<Result<Vec<_>, _>>();
    Ok((name.to_string(), lists.split('/').map(list).collect::<Result<_, _>>()?))
}

pub(super) fn random(text: &str) -> Result<RandomArg, String> {
    match text.parse() {
        Ok(seed) => Ok(RandomArg::Seed(seed)),
        Err(_) => restride::GivenInputs::parse_types(text).map(RandomArg::Types).map_err(|e| e.what),
    }
}

pub(super) fn dynamic(text: &str) -> Result<Dynamics, String> {
    restride::GivenInputs::parse_dynamic(text).map(Dynamics).map_err(|e| e.what)
}

/// `output.I`: its position.
pub(super) fn loss(text: &str) -> Result<usize, String> {
    let position = text.strip_prefix("output.").and_then(|i| i.parse().ok());
    position.ok_or_else(|| "outputs are called output.0, output.1, …".into())
}

/// `NAME=N`.
pub(super) fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, most) = text.split_once('=').ok_or("NAME=N is expected")?;
    let most = bytes(most)?.unsigned_abs();
    Limits::default().set(name, most).map_err(|e| e.what)?;
    Ok((name.to_string(), most))
}

pub(super) fn keep(text: &str) -> Result<restride::Keep, String> {
    match text {
        "all" => Ok(restride::Keep::All),
        "auto" => Ok(restride::Keep::Auto),
        "none" => Ok(restride::Keep::None),
        _ => bytes(text).map(restride::Keep::Bytes).map_err(|e| format!("auto, all, none or bytes: {e}")),
    }
}

pub(super) fn memory(text: &str) -> Result<(String, Option<i64>), String> {
    let (name, size) = text.split_once('=').map_or((text, None), |(name, size)| (name, Some(size)));
    if name.is_empty() {
        return Err("a memory needs a name, as in fast=512kB".into());
    }
    Ok((name.to_string(), size.map(bytes).transpose()?))
}

pub(super) fn pin(text: &str) -> Result<(String, String), String> {
    let (value, memory) = text.split_once('=').ok_or("a value and a memory, as in add_1=fast")?;
    Ok((value.to_string(), memory.to_string()))
}

pub(super) fn alignment(text: &str) -> Result<i64, String> {
    match bytes(text)? {
        n if (64..=1 << 30).contains(&n) && n.count_ones() == 1 => Ok(n),
        _ => Err("an alignment is a power of two from 64 (which kernels expect) to 1GiB".into()),
    }
}

/// Bytes with a decimal or binary unit.
pub(super) fn bytes(text: &str) -> Result<i64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim().to_ascii_lowercase());
    let units = ["b", "kb", "mb", "gb", "tb", "b", "kib", "mib", "gib", "tib"];
    let unit = match units.iter().position(|u| *u == unit) {
        None if unit.is_empty() => 1.0,
        None => return Err("bytes are a number, then B, kB, MB, GB, TB, KiB, MiB, GiB or TiB".into()),
        Some(decimal @ 0..5) => 1e3_f64.powi(decimal as i32),
        Some(binary) => 1024_f64.powi(binary as i32 - 5),
    };
    if let (Ok(whole), true) = (number.parse::<i64>(), unit == 1.0) {
        return Ok(whole);
    }
    match number.parse::<f64>() {
        Ok(n) if (n * unit) < 9e18 => Ok((n * unit) as i64),
        _ => Err("not a number of bytes".into()),
    }
}
