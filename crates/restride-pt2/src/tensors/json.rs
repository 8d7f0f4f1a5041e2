//! The `.json` form, which records shared storages:
//!
//! ```json
//! {"tensors": [{"dtype": "torch.float32", "size": [2], "stride": [1], "offset": 0, "storage": 0}, {"scalar": 3}],
//!  "storages": [{"id": 0, "dtype": "torch.float32", "data": [1.0, "nan"]}]}
//! ```
//!
//! Strides and offsets are in elements, `data` is flat, complex numbers are as Python writes them (`"(1+2j)"`,
//! `"2j"`), NaN and the infinities are `"nan"`, `"inf"` and `"-inf"`; those that Python's `json` writes (`NaN`, `-Infinity`) are
//! read as well.

use super::{FileScalar, FileTensor, Item, NamedItem, NamedTensors, RawStorage};
use crate::dtype::FileDType;
use crate::error::{At, Pt2Error, Result};
use crate::model;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A set of tensors in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Under `inputs`, or the file itself.
    Inputs,
    /// Under `after`: the values after a run.
    After,
}

#[derive(Serialize, Deserialize)]
struct JsonSet {
    tensors: Vec<Entry>,
    storages: Vec<StorageEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Scalar { scalar: ScalarEntry },
    Tensor { dtype: String, size: Vec<i64>, stride: Vec<i64>, offset: i64, storage: i64 },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ScalarEntry {
    Some(Datum),
    None,
}

#[derive(Serialize, Deserialize)]
struct StorageEntry {
    id: i64,
    dtype: String,
    data: Vec<Datum>,
}

/// One element.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Datum {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
}

#[derive(Deserialize)]
struct TensorFile {
    #[serde(default)]
    inputs: Option<JsonSet>,
    #[serde(default)]
    after: Option<JsonSet>,
}

/// Reads a file that is a set of tensors, or one that has such sets under `inputs` and `after`.
pub fn read(bytes: &[u8], section: Section) -> Result<NamedTensors> {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(default)]
        tensors: Option<serde::de::IgnoredAny>,
    }
    let set = if model::parse::<Probe>(bytes)?.tensors.is_some() {
        if section == Section::After {
            return Err(Pt2Error::missing("the file has no section `after`"));
        }
        model::parse::<JsonSet>(bytes)?
    } else {
        let file: TensorFile = model::parse(bytes)?;
        match section {
            Section::Inputs => file.inputs,
            Section::After => file.after,
        }
        .ok_or_else(|| {
            Pt2Error::missing(match section {
                Section::Inputs => "the file has neither `tensors` nor `inputs`",
                Section::After => "the file has no section `after`",
            })
        })?
    };
    convert(set)
}

fn convert(set: JsonSet) -> Result<NamedTensors> {
    let mut out = NamedTensors::default();
    let mut by_id = BTreeMap::new();
    for s in set.storages {
        let place = || format!("storage {}", s.id);
        if by_id.insert(s.id, out.storages.len()).is_some() {
            return Err(Pt2Error::malformed("two storages have this id").at(place()));
        }
        let dtype = FileDType::from_name(&s.dtype).at(place)?;
        let mut bytes = Vec::new();
        for (i, d) in s.data.iter().enumerate() {
            encode(dtype, d, &mut bytes).map_err(|e| e.at(format!("element {i}")).at(place()))?;
        }
        out.storages.push(RawStorage { dtype, bytes });
    }
    for (i, entry) in set.tensors.into_iter().enumerate() {
        let place = || format!("tensor {i}");
        let value = match entry {
            Entry::Scalar { scalar } => Item::Scalar(scalar_of(scalar).at(place)?),
            Entry::Tensor { dtype, size, stride, offset, storage } => Item::Tensor(FileTensor {
                dtype: FileDType::from_name(&dtype).at(place)?,
                sizes: size,
                strides: stride,
                offset,
                storage: *by_id
                    .get(&storage)
                    .ok_or_else(|| Pt2Error::malformed(format!("there is no storage {storage}")).at(place()))?,
            }),
        };
        out.items.push(NamedItem { name: None, value });
    }
    out.validate()?;
    Ok(out)
}

fn scalar_of(entry: ScalarEntry) -> Result<FileScalar> {
    Ok(match entry {
        ScalarEntry::None => FileScalar::None,
        ScalarEntry::Some(Datum::Bool(b)) => FileScalar::Bool(b),
        ScalarEntry::Some(Datum::Int(n)) => FileScalar::Int(n),
        ScalarEntry::Some(Datum::UInt(n)) => {
            return Err(Pt2Error::too_large(format!("the integer {n}")));
        }
        ScalarEntry::Some(Datum::Float(x)) => FileScalar::Float(x),
        ScalarEntry::Some(Datum::Text(s)) => match special_float(&s) {
            Some(x) => FileScalar::Float(x),
            None => FileScalar::Str(s),
        },
    })
}

/// A float that JSON has no number for, as Python's `str` spells it, and as its `json` module writes it.
fn special_float(s: &str) -> Option<f64> {
    match s {
        "nan" | "NaN" => Some(f64::NAN),
        "inf" | "Infinity" => Some(f64::INFINITY),
        "-inf" | "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Writes a set of tensors; storages are numbered by position. Names are not written, the position counts.
pub fn write(tensors: &NamedTensors) -> Result<Vec<u8>> {
    tensors.validate()?;
    let entry = |item: &NamedItem| match &item.value {
        Item::Tensor(t) => Entry::Tensor {
            dtype: format!("torch.{}", t.dtype),
            size: t.sizes.clone(),
            stride: t.strides.clone(),
            offset: t.offset,
            storage: t.storage as i64,
        },
        Item::Scalar(s) => Entry::Scalar {
            scalar: match s {
                FileScalar::None => ScalarEntry::None,
                FileScalar::Bool(b) => ScalarEntry::Some(Datum::Bool(*b)),
                FileScalar::Int(n) => ScalarEntry::Some(Datum::Int(*n)),
                FileScalar::Float(x) => ScalarEntry::Some(float_datum(*x)),
                FileScalar::Str(s) => ScalarEntry::Some(Datum::Text(s.clone())),
            },
        },
    };
    let storage = |(i, s): (usize, &RawStorage)| {
        Ok(StorageEntry {
            id: i as i64,
            dtype: format!("torch.{}", s.dtype),
            data: decode(s.dtype, &s.bytes).at(|| format!("storage {i}"))?,
        })
    };
    model::print(&JsonSet {
        tensors: tensors.items.iter().map(entry).collect(),
        storages: tensors.storages.iter().enumerate().map(storage).collect::<Result<_>>()?,
    })
}

fn float_datum(x: f64) -> Datum {
    if x.is_finite() { Datum::Float(x) } else { Datum::Text(real_text(x)) }
}

/// A float as Python writes it inside of a complex number: whole numbers without a point.
fn real_text(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let text = format!("{x:?}");
    match text.split_once('e') {
        // Python signs exponents and gives them two digits.
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(e) => format!("{digits}e-{e:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text.strip_suffix(".0").unwrap_or(&text).to_string(),
    }
}

fn complex_text(re: f64, im: f64) -> String {
    let imaginary = real_text(im);
    if re == 0.0 && re.is_sign_positive() {
        return format!("{imaginary}j");
    }
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{imaginary}j)", real_text(re))
}

/// Reads `(1+2j)`, `2j` or a real number.
fn parse_complex(text: &str) -> Option<[f64; 2]> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let Some(body) = inner.strip_suffix('j') else {
        return Some([inner.parse().ok()?, 0.0]);
    };
    // The sign between the parts is the last one that is neither first nor an exponent's.
    let bytes = body.as_bytes();
    let split =
        (1..bytes.len()).rev().find(|&i| matches!(bytes[i], b'+' | b'-') && !matches!(bytes[i - 1], b'e' | b'E'));
    Some(match split {
        Some(i) => [body[..i].parse().ok()?, body[i..].parse().ok()?],
        None => [0.0, body.parse().ok()?],
    })
}

fn encode(dtype: FileDType, d: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let bad = || {
        let text = serde_json::to_string(d).unwrap_or_default();
        Pt2Error::malformed(format!("{text} is no element of {dtype}"))
    };
    let float = || match d {
        Datum::Float(x) => Ok(*x),
        Datum::Int(n) => Ok(*n as f64),
        Datum::UInt(n) => Ok(*n as f64),
        Datum::Text(s) => special_float(s).ok_or_else(bad),
        Datum::Bool(_) => Err(bad()),
    };
    let complex = || match d {
        Datum::Text(s) => parse_complex(s).ok_or_else(bad),
        _ => float().map(|x| [x, 0.0]),
    };
    macro_rules! int {
        ($t:ty) => {{
            let value = match d {
                Datum::Int(n) => <$t>::try_from(*n).ok(),
                Datum::UInt(n) => <$t>::try_from(*n).ok(),
                _ => None,
            };
            out.extend(value.ok_or_else(bad)?.to_le_bytes());
        }};
    }
    match dtype {
        FileDType::Bool => match d {
            Datum::Bool(b) => out.push(u8::from(*b)),
            _ => return Err(bad()),
        },
        FileDType::U8 => int!(u8),
        FileDType::I8 => int!(i8),
        FileDType::I16 => int!(i16),
        FileDType::I32 => int!(i32),
        FileDType::I64 => int!(i64),
        FileDType::U16 => int!(u16),
        FileDType::U32 => int!(u32),
        FileDType::U64 => int!(u64),
        FileDType::F16 => out.extend(f16::from_f64(float()?).to_le_bytes()),
        FileDType::BF16 => out.extend(bf16::from_f64(float()?).to_le_bytes()),
        FileDType::F32 => out.extend((float()? as f32).to_le_bytes()),
        FileDType::F64 => out.extend(float()?.to_le_bytes()),
        FileDType::C32 => complex()?.iter().for_each(|x| out.extend(f16::from_f64(*x).to_le_bytes())),
        FileDType::C64 => complex()?.iter().for_each(|x| out.extend((*x as f32).to_le_bytes())),
        FileDType::C128 => complex()?.iter().for_each(|x| out.extend(x.to_le_bytes())),
        _ => return Err(Pt2Error::unsupported(format!("{dtype} in a .json"))),
    }
    Ok(())
}

fn decode(dtype: FileDType, bytes: &[u8]) -> Result<Vec<Datum>> {
    if !bytes.len().is_multiple_of(dtype.size()) {
        return Err(Pt2Error::malformed(format!(
            "{} bytes are not a whole number of elements of {dtype}",
            bytes.len()
        )));
    }
    /// The elements of a type of `N` bytes.
    fn each<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> Datum) -> Vec<Datum> {
        bytes.as_chunks::<N>().0.iter().map(|c| f(*c)).collect()
    }
    let half = |b: [u8; 2]| f64::from(f16::from_le_bytes(b));
    let single = |b: [u8; 4]| f64::from(f32::from_le_bytes(b));
    fn pair<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<Datum> {
        let parts = bytes.as_chunks::<N>().0;
        parts.chunks_exact(2).map(|p| Datum::Text(complex_text(f(p[0]), f(p[1])))).collect()
    }
    Ok(match dtype {
        FileDType::Bool => each::<1>(bytes, |b| Datum::Bool(b[0] != 0)),
        FileDType::U8 => each::<1>(bytes, |b| Datum::Int(i64::from(b[0]))),
        FileDType::I8 => each(bytes, |b| Datum::Int(i64::from(i8::from_le_bytes(b)))),
        FileDType::I16 => each(bytes, |b| Datum::Int(i64::from(i16::from_le_bytes(b)))),
        FileDType::I32 => each(bytes, |b| Datum::Int(i64::from(i32::from_le_bytes(b)))),
        FileDType::I64 => each(bytes, |b| Datum::Int(i64::from_le_bytes(b))),
        FileDType::U16 => each(bytes, |b| Datum::Int(i64::from(u16::from_le_bytes(b)))),
        FileDType::U32 => each(bytes, |b| Datum::Int(i64::from(u32::from_le_bytes(b)))),
        FileDType::U64 => each(bytes, |b| Datum::UInt(u64::from_le_bytes(b))),
        FileDType::F16 => each(bytes, |b| float_datum(half(b))),
        FileDType::BF16 => each(bytes, |b| float_datum(f64::from(bf16::from_le_bytes(b)))),
        FileDType::F32 => each(bytes, |b| float_datum(single(b))),
        FileDType::F64 => each(bytes, |b| float_datum(f64::from_le_bytes(b))),
        FileDType::C32 => pair(bytes, half),
        FileDType::C64 => pair(bytes, single),
        FileDType::C128 => pair(bytes, f64::from_le_bytes),
        _ => return Err(Pt2Error::unsupported(format!("{dtype} in a .json"))),
    })
}
