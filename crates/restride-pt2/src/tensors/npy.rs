//! One NumPy array: a header that is a Python dictionary, and the elements.

use crate::dtype::{FileDType, contiguous_strides, element_count};
use crate::error::{Pt2Error, Result};
use std::borrow::Cow;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Npy {
    /// numbers
    Array(NpyArray),
    /// one string, as NumPy keeps a Python `str`
    Str(String),
}

/// An array as a file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyArray {
    /// Element type.
    pub dtype: FileDType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides, in elements: column by column if the file says so.
    pub strides: Vec<i64>,
    /// Elements, little-endian.
    pub bytes: Vec<u8>,
}

/// Reads a `.npy`, of version 1, 2 or 3.
pub fn read(bytes: &[u8]) -> Result<Npy> {
    let cut = || Pt2Error::malformed("a .npy array that is cut short");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Pt2Error::malformed("not a .npy array"))?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (len, rest) = match major {
        1 => {
            let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            (u64::from(u16::from_le_bytes(*len)), rest)
        }
        2 | 3 => {
            let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            (u64::from(u32::from_le_bytes(*len)), rest)
        }
        v => return Err(Pt2Error::unsupported(format!(".npy version {v}"))),
    };
    let (text, data) = usize::try_from(len).ok().and_then(|n| rest.split_at_checked(n)).ok_or_else(cut)?;
    let text = std::str::from_utf8(text).map_err(|_| Pt2Error::malformed("a .npy header that is not text"))?;
    let header = Header::parse(text)?;
    if let Some(text) = string(&header, data)? {
        return Ok(Npy::Str(text));
    }
    let (dtype, big_endian) = dtype_of(&header.descr)?;
    let need = element_count(&header.shape)?
        .checked_mul(dtype.size() as u64)
        .filter(|&n| n <= data.len() as u64)
        .ok_or_else(cut)?;
    let mut bytes = data[..need as usize].to_vec();
    if big_endian {
        bytes.chunks_exact_mut(component_size(dtype)).for_each(<[u8]>::reverse);
    }
    super::normalise_bools(dtype, &mut bytes);
    let strides = if header.fortran_order {
        let reversed: Vec<i64> = header.shape.iter().rev().copied().collect();
        contiguous_strides(&reversed).into_iter().rev().collect()
    } else {
        contiguous_strides(&header.shape)
    };
    Ok(Npy::Array(NpyArray { dtype, sizes: header.shape, strides, bytes }))
}

/// Writes a `.npy` of elements in row-major order. NumPy has no bfloat16 and no complex of halves: those are widened.
pub fn write(dtype: FileDType, sizes: &[i64], bytes: &[u8]) -> Result<Vec<u8>> {
    let (descr, bytes): (&str, Cow<'_, [u8]>) = match dtype {
        FileDType::BF16 => ("<f4", Cow::Owned(widened(bytes, |b| half::bf16::from_le_bytes(b).to_f32()))),
        FileDType::C32 => ("<c8", Cow::Owned(widened(bytes, |b| half::f16::from_le_bytes(b).to_f32()))),
        dtype => {
            let found = DESCRS.iter().find(|(_, d)| *d == dtype);
            let (descr, _) =
                found.ok_or_else(|| Pt2Error::unsupported(format!("NumPy has no element type {dtype}")))?;
            (descr, Cow::Borrowed(bytes))
        }
    };
    file(descr, sizes, &bytes)
}

/// Writes a string as NumPy writes a Python `str`.
pub fn write_str(text: &str) -> Result<Vec<u8>> {
    let mut units: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    if units.is_empty() {
        units = vec![0; 4];
    }
    let descr = format!("<U{}", units.len() / 4);
    file(&descr, &[], &units)
}

/// A string without dimensions; none if it is an array of something else.
fn string(header: &Header, data: &[u8]) -> Result<Option<String>> {
    let Some(count) = header.descr.strip_prefix("<U") else { return Ok(None) };
    if !header.shape.is_empty() {
        return Err(Pt2Error::unsupported("an array of strings"));
    }
    let bad = || Pt2Error::malformed("a NumPy string that is cut short or not of characters");
    let len = count.parse::<usize>().ok().and_then(|n| n.checked_mul(4)).ok_or_else(bad)?;
    let units = data.get(..len).ok_or_else(bad)?;
    let text: Option<String> =
        units.as_chunks::<4>().0.iter().map(|u| char::from_u32(u32::from_le_bytes(*u))).collect();
    Ok(Some(text.ok_or_else(bad)?.trim_end_matches('\0').to_string()))
}

fn file(descr: &str, sizes: &[i64], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut shape = sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    if sizes.len() == 1 {
        shape.push(',');
    }
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and header, with its newline, end at a multiple of 64.
    let prefix = MAGIC.len() + 2 + 2;
    let total = (prefix + header.len() + 1).next_multiple_of(64);
    let len = u16::try_from(total - prefix)
        .map_err(|_| Pt2Error::too_large("a tensor with too many dimensions for a .npy"))?;
    let mut out = Vec::with_capacity(total + bytes.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.resize(total - 1, b' ');
    out.push(b'\n');
    out.extend_from_slice(bytes);
    Ok(out)
}

fn widened(bytes: &[u8], f: impl Fn([u8; 2]) -> f32) -> Vec<u8> {
    bytes.chunks_exact(2).flat_map(|b| f([b[0], b[1]]).to_le_bytes()).collect()
}

const DESCRS: [(&str, FileDType); 14] = [
    ("|b1", FileDType::Bool),
    ("|u1", FileDType::U8),
    ("|i1", FileDType::I8),
    ("<u2", FileDType::U16),
    ("<i2", FileDType::I16),
    ("<u4", FileDType::U32),
    ("<i4", FileDType::I32),
    ("<u8", FileDType::U64),
    ("<i8", FileDType::I64),
    ("<f2", FileDType::F16),
    ("<f4", FileDType::F32),
    ("<f8", FileDType::F64),
    ("<c8", FileDType::C64),
    ("<c16", FileDType::C128),
];

/// The element type, and whether its bytes are big-endian.
fn dtype_of(descr: &str) -> Result<(FileDType, bool)> {
    let unknown = || Pt2Error::unsupported(format!("NumPy element type {descr}"));
    let mut chars = descr.chars();
    let order = chars.next().filter(|c| "<>|=".contains(*c));
    let kind = match order {
        Some(_) => chars.as_str(),
        None => descr,
    };
    let (_, dtype) = DESCRS.iter().find(|(d, _)| &d[1..] == kind).ok_or_else(unknown)?;
    Ok((*dtype, order == Some('>')))
}

/// Bytes of the unit that a change of byte order reverses.
fn component_size(dtype: FileDType) -> usize {
    match dtype {
        FileDType::C64 | FileDType::C128 => dtype.size() / 2,
        d => d.size(),
    }
}

struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<i64>,
}

impl Header {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str) -> Result<Self> {
        let bad = || Pt2Error::malformed("a .npy header that is not understood");
        let mut s = Scanner { rest: text.trim() };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        s.expect("{").ok_or_else(bad)?;
        while s.expect("}").is_none() {
            let key = s.string().ok_or_else(bad)?;
            s.expect(":").ok_or_else(bad)?;
            match key {
                "descr" => {
                    if s.rest.starts_with('[') {
                        return Err(Pt2Error::unsupported("a .npy array of records"));
                    }
                    descr = Some(s.string().ok_or_else(bad)?.to_string());
                }
                "fortran_order" => {
                    let yes = s.expect("True").is_some();
                    if !yes {
                        s.expect("False").ok_or_else(bad)?;
                    }
                    fortran_order = Some(yes);
                }
                "shape" => shape = Some(s.tuple().ok_or_else(bad)?),
                _ => return Err(bad()),
            }
            if s.expect(",").is_none() {
                s.expect("}").ok_or_else(bad)?;
                break;
            }
        }
        let (Some(descr), Some(fortran_order), Some(shape), true) = (descr, fortran_order, shape, s.rest.is_empty())
        else {
            return Err(bad());
        };
        Ok(Self { descr, fortran_order, shape })
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn expect(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?.trim_start();
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = self.rest.chars().next().filter(|c| "'\"".contains(*c))?;
        let (text, rest) = self.rest[1..].split_once(quote)?;
        self.rest = rest.trim_start();
        Some(text)
    }

    fn tuple(&mut self) -> Option<Vec<i64>> {
        let mut out = Vec::new();
        self.expect("(")?;
        while self.expect(")").is_none() {
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            out.push(self.rest[..digits].parse().ok()?);
            // Python 2 wrote long integers.
            self.rest = self.rest[digits..].trim_start_matches('L').trim_start();
            if self.expect(",").is_none() {
                self.expect(")")?;
                break;
            }
        }
        Some(out)
    }
}
