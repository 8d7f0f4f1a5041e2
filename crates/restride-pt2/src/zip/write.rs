use super::{
    ALIGNMENT, CENTRAL_SIGNATURE, EOCD_SIGNATURE, EOCD64_SIGNATURE, LOCAL_SIGNATURE, LOCATOR64_SIGNATURE, ZIP64_EXTRA,
};
use crate::error::{Pt2Error, Result};
use std::collections::BTreeSet;
use std::io::Write;

/// The compression of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As is, its first byte at a multiple of 64.
    Stored,
    /// With DEFLATE.
    Deflated,
}

/// 1980-01-01, the first date that a zip can hold: the same content gives the same bytes on any day.
const DATE: u16 = (1 << 5) | 1;
/// The name is UTF-8.
const FLAGS: u16 = 1 << 11;
const BIG: u64 = u32::MAX as u64;

struct WrittenEntry {
    name: String,
    method: u16,
    crc: u32,
    compressed: u64,
    size: u64,
    header: u64,
}

/// Writes a zip front to back, with sizes and checksums in the local headers.
pub struct ZipWriter<W: Write> {
    out: W,
    at: u64,
    entries: Vec<WrittenEntry>,
    names: BTreeSet<String>,
}

impl<W: Write> ZipWriter<W> {
    /// Starts an empty zip.
    pub fn new(out: W) -> Self {
        Self { out, at: 0, entries: Vec::new(), names: BTreeSet::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(Pt2Error::io)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Adds one file.
    pub fn add(&mut self, name: &str, content: &[u8], compression: Compression) -> Result<()> {
        let name_len = u16::try_from(name.len())
            .map_err(|_| Pt2Error::too_large("a file name of more than 65535 bytes").at(name))?;
        if !self.names.insert(name.to_string()) {
            return Err(Pt2Error::malformed("is written twice").at(name));
        }
        let deflated = match compression {
            Compression::Stored => None,
            Compression::Deflated => Some(deflate(content)?),
        };
        let body = deflated.as_deref().unwrap_or(content);
        let entry = WrittenEntry {
            name: name.to_string(),
            method: if deflated.is_some() { 8 } else { 0 },
            crc: crc32fast::hash(content),
            compressed: body.len() as u64,
            size: content.len() as u64,
            header: self.at,
        };
        let mut extra = Vec::new();
        let big = entry.size >= BIG || entry.compressed >= BIG;
        if big {
            extra.extend(ZIP64_EXTRA.to_le_bytes());
            extra.extend(16u16.to_le_bytes());
            extra.extend(entry.size.to_le_bytes());
            extra.extend(entry.compressed.to_le_bytes());
        }
        // PyTorch's padding field: two letters, a length, and as many Z as it takes.
        let body_at = self.at + 30 + u64::from(name_len) + extra.len() as u64 + 4;
        let padding = (ALIGNMENT - body_at % ALIGNMENT) % ALIGNMENT;
        extra.extend(b"FB");
        extra.extend((padding as u16).to_le_bytes());
        extra.resize(extra.len() + padding as usize, b'Z');

        let mut header = Vec::with_capacity(30 + name.len() + extra.len());
        header.extend(LOCAL_SIGNATURE.to_le_bytes());
        put16(&mut header, &[version_needed(big), FLAGS, entry.method, 0, DATE]);
        put32(&mut header, &[entry.crc, short(entry.compressed, big), short(entry.size, big)]);
        put16(&mut header, &[name_len, extra.len() as u16]);
        header.extend(name.as_bytes());
        header.extend(extra);
        self.put(&header)?;
        self.put(body)?;
        self.entries.push(entry);
        Ok(())
    }

    /// A number of 40 digits computed from the names and contents so far.
    pub fn digest(&self) -> String {
        let fold = |seed: u64, words: &mut dyn Iterator<Item = u8>| {
            words.fold(seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
        };
        const SEED: u64 = 0xcbf2_9ce4_8422_2325;
        let names = fold(SEED, &mut self.entries.iter().flat_map(|e| e.name.bytes().chain([b'\n'])));
        let contents = fold(
            SEED,
            &mut self.entries.iter().flat_map(|e| e.crc.to_le_bytes().into_iter().chain(e.size.to_le_bytes())),
        );
        format!("{names:020}{contents:020}")
    }

    /// Writes the directory and returns the sink.
    pub fn finish(mut self) -> Result<W> {
        let start = self.at;
        let mut dir = Vec::new();
        for e in &self.entries {
            let mut extra = Vec::new();
            for v in [e.size, e.compressed, e.header] {
                if v >= BIG {
                    extra.extend(v.to_le_bytes());
                }
            }
            if !extra.is_empty() {
                let len = extra.len() as u16;
                let head = [ZIP64_EXTRA.to_le_bytes(), len.to_le_bytes()].concat();
                extra.splice(0..0, head);
            }
            dir.extend(CENTRAL_SIGNATURE.to_le_bytes());
            let version = version_needed(!extra.is_empty());
            put16(&mut dir, &[version, version, FLAGS, e.method, 0, DATE]);
            put32(&mut dir, &[e.crc, short(e.compressed, false), short(e.size, false)]);
            put16(&mut dir, &[e.name.len() as u16, extra.len() as u16]);
            dir.extend([0u8; 10]); // comment length, disk, attributes
            dir.extend(short(e.header, false).to_le_bytes());
            dir.extend(e.name.as_bytes());
            dir.extend(extra);
        }
        self.put(&dir)?;
        let count = self.entries.len() as u64;
        let size = dir.len() as u64;
        if count >= u64::from(u16::MAX) || size >= BIG || start >= BIG {
            let at = self.at;
            let mut end = Vec::new();
            end.extend(EOCD64_SIGNATURE.to_le_bytes());
            end.extend(44u64.to_le_bytes());
            put16(&mut end, &[45, 45]);
            end.extend([0u8; 8]); // disks
            for v in [count, count, size, start] {
                end.extend(v.to_le_bytes());
            }
            end.extend(LOCATOR64_SIGNATURE.to_le_bytes());
            end.extend(0u32.to_le_bytes());
            end.extend(at.to_le_bytes());
            end.extend(1u32.to_le_bytes());
            self.put(&end)?;
        }
        let short_count = count.min(u64::from(u16::MAX)) as u16;
        let mut end = Vec::new();
        end.extend(EOCD_SIGNATURE.to_le_bytes());
        put16(&mut end, &[0, 0, short_count, short_count]); // disks first
        put32(&mut end, &[short(size, false), short(start, false)]);
        put16(&mut end, &[0]);
        self.put(&end)?;
        self.out.flush().map_err(Pt2Error::io)?;
        Ok(self.out)
    }
}

fn version_needed(zip64: bool) -> u16 {
    if zip64 { 45 } else { 20 }
}

/// A 32-bit field: the value, or "see the zip64 field". `force` says it even of small values (a local header
/// has both sizes in the field or neither).
fn short(value: u64, force: bool) -> u32 {
    if force { u32::MAX } else { value.min(BIG) as u32 }
}

fn deflate(content: &[u8]) -> Result<Vec<u8>> {
    let mut w = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    w.write_all(content).map_err(Pt2Error::io)?;
    w.finish().map_err(Pt2Error::io)
}

fn put16(out: &mut Vec<u8>, fields: &[u16]) {
    out.extend(fields.iter().flat_map(|f| f.to_le_bytes()));
}

fn put32(out: &mut Vec<u8>, fields: &[u32]) {
    out.extend(fields.iter().flat_map(|f| f.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::super::ZipReader;
    use super::*;

    #[test]
    fn many_entries_take_zip64() {
        let mut w = ZipWriter::new(Vec::new());
        for i in 0..70_000u32 {
            w.add(&format!("e{i}"), &i.to_le_bytes(), Compression::Stored).unwrap();
        }
        let bytes = w.finish().unwrap();
        let z = ZipReader::open(&bytes).unwrap();
        assert_eq!(z.entries().len(), 70_000);
        let last = z.entry("e69999").unwrap();
        assert_eq!(&*z.read(last).unwrap(), &69_999u32.to_le_bytes());
    }

    #[test]
    fn the_digest_follows_names_and_contents() {
        let digest = |name: &str, content: &[u8]| {
            let mut w = ZipWriter::new(Vec::new());
            w.add(name, content, Compression::Stored).unwrap();
            w.digest()
        };
        assert_eq!(digest("a", b"x").len(), 40);
        assert_eq!(digest("a", b"x"), digest("a", b"x"));
        assert_ne!(digest("a", b"x"), digest("b", b"x"));
        assert_ne!(digest("a", b"x"), digest("a", b"y"));
    }
}
