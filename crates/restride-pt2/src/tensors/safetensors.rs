//! Hugging Face's `.safetensors`: a JSON header and the elements of all tensors in row-major order.
//!
//! Own code: the format is a length, a dictionary and bytes, and the order of the header is kept.

use super::{NamedTensors, array, normalise_bools};
use crate::dtype::{FileDType, element_count};
use crate::error::{At, Pt2Error, Result};
use crate::model::{self, Map};
use serde::{Deserialize, Serialize};

/// The format's own limit.
const MAX_HEADER: u64 = 100_000_000;
const METADATA: &str = "__metadata__";

const NAMES: &[(&str, FileDType)] = &[
    ("BOOL", FileDType::Bool),
    ("U8", FileDType::U8),
    ("I8", FileDType::I8),
    ("F8_E5M2", FileDType::F8E5M2),
    ("F8_E4M3", FileDType::F8E4M3FN),
    ("F8_E5M2FNUZ", FileDType::F8E5M2FNUZ),
    ("F8_E4M3FNUZ", FileDType::F8E4M3FNUZ),
    ("F8_E8M0", FileDType::F8E8M0FNU),
    ("I16", FileDType::I16),
    ("U16", FileDType::U16),
    ("F16", FileDType::F16),
    ("BF16", FileDType::BF16),
    ("I32", FileDType::I32),
    ("U32", FileDType::U32),
    ("F32", FileDType::F32),
    ("C64", FileDType::C64),
    ("F64", FileDType::F64),
    ("I64", FileDType::I64),
    ("U64", FileDType::U64),
];

#[derive(Serialize, Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<i64>,
    data_offsets: (u64, u64),
}

/// Reads a `.safetensors`; tensors come in the header's order.
pub fn read(bytes: &[u8]) -> Result<NamedTensors> {
    let cut = || Pt2Error::malformed("a .safetensors file that is cut short");
    let (len, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let len = u64::from_le_bytes(*len);
    if len > MAX_HEADER {
        return Err(Pt2Error::too_large(format!("a .safetensors header of {len} bytes")));
    }
    let (header, data) = rest.split_at_checked(len as usize).ok_or_else(cut)?;
    let header: Map<serde_json::Value> = model::parse(header)?;
    let mut out = NamedTensors::default();
    let mut ranges = Vec::new();
    let mut total = 0;
    for (name, value) in header {
        if name == METADATA {
            continue;
        }
        let info: Info = serde_json::from_value(value).map_err(|e| Pt2Error::malformed(e.to_string()).at(&*name))?;
        let (dtype, range) = place(&info, data.len() as u64).at(|| name.clone())?;
        ranges.push((range.clone(), name.clone()));
        total += range.len();
        // Checked as they come, so that a small file cannot be read a thousand times over.
        if total > data.len() {
            return Err(Pt2Error::malformed("overlaps another tensor").at(name));
        }
        let mut content = data[range].to_vec();
        normalise_bools(dtype, &mut content);
        out.push_contiguous(name, dtype, info.shape, content);
    }
    ranges.sort_by_key(|(r, _)| (r.start, r.end));
    match ranges.windows(2).find(|w| w[0].0.end > w[1].0.start) {
        Some(w) => Err(Pt2Error::malformed("overlaps another tensor").at(&*w[1].1)),
        None => Ok(out),
    }
}

fn place(info: &Info, data_len: u64) -> Result<(FileDType, std::ops::Range<usize>)> {
    let (_, dtype) = *NAMES
        .iter()
        .find(|(n, _)| *n == info.dtype)
        .ok_or_else(|| Pt2Error::unsupported(format!("element type {}", info.dtype)))?;
    let (start, end) = info.data_offsets;
    let need = element_count(&info.shape)?.checked_mul(dtype.size() as u64);
    if start > end || end > data_len || need != Some(end - start) {
        return Err(Pt2Error::malformed(format!(
            "sizes {:?} of {dtype} do not fit bytes {start} to {end} of {data_len}",
            info.shape
        )));
    }
    Ok((dtype, start as usize..end as usize))
}

/// Writes a `.safetensors`. Tensors are written in row-major order, wide elements first, so that all are aligned.
pub fn write(tensors: &NamedTensors) -> Result<Vec<u8>> {
    let mut arrays: Vec<_> =
        (0..tensors.items.len()).map(|i| array(tensors, i, "a .safetensors")).collect::<Result<_>>()?;
    arrays.sort_by_key(|a| std::cmp::Reverse(a.dtype.size()));
    let mut header: Map<Info> = Map::new();
    let mut at = 0u64;
    for a in &arrays {
        let (dtype, _) = NAMES.iter().find(|(_, d)| *d == a.dtype).ok_or_else(|| {
            Pt2Error::unsupported(format!("a .safetensors file has no element type {}", a.dtype)).at(a.name)
        })?;
        let end = at + a.bytes.len() as u64;
        let info = Info { dtype: dtype.to_string(), shape: a.sizes.to_vec(), data_offsets: (at, end) };
        if a.name == METADATA || header.insert(a.name.to_string(), info).is_some() {
            return Err(Pt2Error::malformed("a name that cannot be used (again)").at(a.name));
        }
        at = end;
    }
    let mut text = model::print(&header)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text);
    for a in &arrays {
        out.extend_from_slice(&a.bytes);
    }
    Ok(out)
}
