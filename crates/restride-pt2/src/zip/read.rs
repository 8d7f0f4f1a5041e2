use crate::error::{At, Pt2Error, Result};
use restride_ir::Limits;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

/// How an entry is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As is.
    Stored,
    /// Compressed with DEFLATE.
    Deflated,
    /// Some other method, by number; cannot be read.
    Other(u16),
}

/// One file in a zip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its whole name.
    pub name: String,
    /// How it is kept.
    pub method: Method,
    /// Its size when read, in bytes, as the directory declares it.
    pub size: u64,
    /// Range of its (perhaps compressed) bytes in the input.
    pub data: Range<usize>,
}

impl ZipEntry {
    /// Range of the contents in the input, if they are stored.
    pub fn stored_range(&self) -> Option<Range<usize>> {
        (self.method == Method::Stored).then(|| self.data.clone())
    }
}

/// Bytes that compressed entries may always inflate to, as a multiple of the file's length.
const RATIO: u64 = 100;

/// A zip in memory. Opening checks the whole directory: names unique, entries inside the input and disjoint,
/// declared sizes within limits. Check sums are not looked at (PyTorch does not either).
#[derive(Debug, Clone)]
pub struct ZipReader<'a> {
    bytes: &'a [u8],
    entries: Vec<ZipEntry>,
    by_name: BTreeMap<String, usize>,
}

impl<'a> ZipReader<'a> {
    /// Whether the bytes start as a zip does.
    pub fn looks_like_zip(bytes: &[u8]) -> bool {
        bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
    }

    /// Reads the directory, with the default limits.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        Self::with_limits(bytes, &Limits::default())
    }

    /// Reads the directory.
    pub fn with_limits(bytes: &'a [u8], limits: &Limits) -> Result<Self> {
        let (entries, directory) = read_entries(bytes)?;
        check_disjoint(&entries, directory)?;
        let entries: Vec<ZipEntry> = entries.into_iter().map(|(_, e)| e).collect();
        check_limits(bytes, &entries, limits)?;
        let mut by_name = BTreeMap::new();
        for (i, e) in entries.iter().enumerate() {
            if by_name.insert(e.name.clone(), i).is_some() {
                return Err(Pt2Error::malformed("two entries have this name").at(e.name.clone()));
            }
        }
        Ok(Self { bytes, entries, by_name })
    }

    /// All entries, in the directory's order.
    pub fn entries(&self) -> &[ZipEntry] {
        &self.entries
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&ZipEntry> {
        self.by_name.get(name).map(|&i| &self.entries[i])
    }

    /// The content of an entry of this reader: borrowed if it is stored, inflated if not.
    pub fn read(&self, entry: &ZipEntry) -> Result<Cow<'a, [u8]>> {
        let raw = self
            .bytes
            .get(entry.data.clone())
            .ok_or_else(|| Pt2Error::malformed("is outside of the file").at(&*entry.name))?;
        match entry.method {
            Method::Stored => Ok(Cow::Borrowed(raw)),
            Method::Deflated => inflate(raw, entry.size).map(Cow::Owned).at(|| entry.name.clone()),
            Method::Other(m) => Err(Pt2Error::unsupported(format!(
                "zip compression method {m} (only stored and deflated entries can be read)"
            ))
            .at(&*entry.name)),
        }
    }
}

/// Inflates to exactly the declared size. Memory grows with the bytes that arrive, so a false size costs nothing.
fn inflate(raw: &[u8], size: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::DeflateDecoder::new(raw)
        .take(size.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|e| Pt2Error::malformed(format!("cannot be inflated: {e}")))?;
    if out.len() as u64 != size {
        return Err(Pt2Error::malformed(format!(
            "inflates to {} {} bytes, but its directory entry declares {size}",
            if out.len() as u64 > size { "more than" } else { "only" },
            (out.len() as u64).min(size)
        )));
    }
    Ok(out)
}

/// One entry with the offset of its local header.
type LocatedEntry = (usize, ZipEntry);

/// The end record is followed by a comment of at most this length. PyTorch tolerates other bytes in its place.
const MAX_COMMENT: u64 = u16::MAX as u64;
const END_RECORD: u64 = 22;

/// The entries in the directory's order, and where the directory starts.
fn read_entries(b: &[u8]) -> Result<(Vec<LocatedEntry>, usize)> {
    let broken = |e: rawzip::Error| Pt2Error::malformed(format!("not a zip file, or cut short: {e}"));
    let locator = rawzip::ZipArchive::with_max_search_space(END_RECORD + MAX_COMMENT);
    let archive = locator.locate_in_slice(b).map_err(|(_, e)| broken(e))?;
    let end_record = &b[archive.eocd_offset() as usize..];
    if end_record[4..8] != [0; 4] || end_record[8..10] != end_record[10..12] {
        return Err(Pt2Error::unsupported("a zip split over several disks"));
    }
    let start = archive.directory_offset();
    // All ones stand for a field of the zip64 end record.
    let field = |at: usize| {
        let value = end_record[at..at + 4].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
        (value != u64::from(u32::MAX)).then_some(value)
    };
    if field(16).is_some_and(|declared| declared != start) {
        return Err(Pt2Error::malformed(
            "the zip's directory is not where the end record says (bytes before the zip?)",
        ));
    }
    if field(12).is_some_and(|size| start + size > archive.eocd_offset()) {
        return Err(Pt2Error::malformed("the zip's directory is outside of the file"));
    }
    let mut entries = Vec::new();
    for (i, header) in archive.entries().enumerate() {
        let entry = header.map_err(broken).and_then(|header| read_entry(&archive, &header));
        entries.push(entry.at(|| format!("zip entry {i}"))?);
    }
    if entries.len() as u64 != archive.entries_hint() {
        let declared = archive.entries_hint();
        return Err(Pt2Error::malformed(format!("the zip declares {declared} entries and has {}", entries.len())));
    }
    Ok((entries, start as usize))
}

fn read_entry(
    archive: &rawzip::ZipSliceArchive<&[u8]>,
    header: &rawzip::ZipFileHeaderRecord<'_>,
) -> Result<LocatedEntry> {
    let raw_name = header.file_path();
    let name = std::str::from_utf8(raw_name.as_bytes())
        .map_err(|_| Pt2Error::unsupported("a file name that is not UTF-8"))?
        .to_string();
    if name.contains('\0') {
        return Err(Pt2Error::malformed("a file name with a zero byte"));
    }
    let fail = |why: String| Pt2Error::malformed(why).at(&*name);
    if header.flags().is_encrypted() {
        return Err(Pt2Error::unsupported("is encrypted").at(name));
    }
    let local = archive
        .get_entry(header.wayfinder())
        .map_err(|e| fail(format!("its contents are outside of the file (cut short, or a wrong size): {e}")))?;
    if local.local_header().file_path().as_bytes() != raw_name.as_bytes() {
        return Err(fail("its local header names another file".into()));
    }
    let (start, end) = local.compressed_data_range();
    if end > archive.directory_offset() {
        return Err(fail("its contents reach into the zip's directory".into()));
    }
    let size = header.uncompressed_size_hint();
    let method = match header.compression_method().as_u16() {
        0 => Method::Stored,
        8 => Method::Deflated,
        m => Method::Other(m),
    };
    if method == Method::Stored && end - start != size {
        return Err(fail("is stored, but its two sizes differ".into()));
    }
    let entry = ZipEntry { name, method, size, data: start as usize..end as usize };
    Ok((header.local_header_offset() as usize, entry))
}

/// Refuses entries that share bytes, which make a small zip claim a huge size.
fn check_disjoint(entries: &[LocatedEntry], directory: usize) -> Result<()> {
    let mut order: Vec<&LocatedEntry> = entries.iter().collect();
    order.sort_by_key(|(header, _)| *header);
    for pair in order.windows(2) {
        if pair[0].1.data.end > pair[1].0 {
            return Err(
                Pt2Error::malformed(format!("its bytes overlap those of {}", pair[1].1.name)).at(&*pair[0].1.name)
            );
        }
    }
    debug_assert!(order.iter().all(|(_, e)| e.data.end <= directory));
    Ok(())
}

fn check_limits(b: &[u8], entries: &[ZipEntry], limits: &Limits) -> Result<()> {
    let allowed = limits.inflated.max((b.len() as u64).saturating_mul(RATIO));
    let mut total = 0u64;
    for e in entries.iter().filter(|e| e.method != Method::Stored) {
        total = total.saturating_add(e.size);
        if total > allowed {
            return Err(Pt2Error::too_large(format!(
                "compressed entries up to here declare {total} bytes in a file of {}; the limit is {allowed}",
                b.len()
            ))
            .at(&*e.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Compression, ZipWriter};
    use super::*;
    use crate::error::FileErrorKind;

    fn small(compression: Compression) -> Vec<u8> {
        let mut w = ZipWriter::new(Vec::new());
        w.add("r/a", b"hello", compression).unwrap();
        w.add("r/b", &[7u8; 300], compression).unwrap();
        w.add("r/empty", b"", compression).unwrap();
        w.finish().unwrap()
    }

    #[test]
    fn round_trip_stored_and_deflated() {
        for c in [Compression::Stored, Compression::Deflated] {
            let bytes = small(c);
            let z = ZipReader::open(&bytes).unwrap();
            let names: Vec<_> = z.entries().iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names, ["r/a", "r/b", "r/empty"]);
            let e = z.entry("r/a").unwrap();
            assert_eq!(&*z.read(e).unwrap(), b"hello");
            assert_eq!(&*z.read(z.entry("r/b").unwrap()).unwrap(), &[7u8; 300]);
            assert_eq!(z.read(z.entry("r/empty").unwrap()).unwrap().len(), 0);
            match e.stored_range() {
                Some(r) => {
                    assert_eq!(&bytes[r.clone()], b"hello");
                    assert_eq!(r.start % 64, 0);
                    assert_eq!(c, Compression::Stored);
                }
                None => assert_eq!(c, Compression::Deflated),
            }
        }
    }

    #[test]
    fn truncation_and_flipped_bytes_never_panic() {
        for c in [Compression::Stored, Compression::Deflated] {
            let bytes = small(c);
            for n in 0..bytes.len() {
                assert!(ZipReader::open(&bytes[..n]).is_err(), "{n}");
            }
            for i in 0..bytes.len() {
                for v in [0, 0xff, bytes[i] ^ 1, bytes[i] ^ 0x80] {
                    let mut bad = bytes.clone();
                    bad[i] = v;
                    if let Ok(z) = ZipReader::open(&bad) {
                        for e in z.entries() {
                            let _ = z.read(e);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn trailing_zeros_are_fine_and_leading_bytes_are_not() {
        let mut bytes = small(Compression::Stored);
        bytes.extend([0u8; 100]);
        assert_eq!(ZipReader::open(&bytes).unwrap().entries().len(), 3);
        bytes.insert(0, 0);
        assert_eq!(ZipReader::open(&bytes).unwrap_err().kind(), FileErrorKind::Malformed);
    }

    #[test]
    fn duplicates_are_refused() {
        let mut w = ZipWriter::new(Vec::new());
        w.add("a", b"1", Compression::Stored).unwrap();
        assert!(w.add("a", b"2", Compression::Stored).is_err());
        // Make two different names equal behind the writer's back.
        w.add("b", b"2", Compression::Stored).unwrap();
        let bytes = w.finish().unwrap();
        let bad: Vec<u8> = bytes.iter().map(|&x| if x == b'b' { b'a' } else { x }).collect();
        let e = ZipReader::open(&bad).unwrap_err();
        assert!(e.to_string().contains("two entries"), "{e}");
    }

    #[test]
    fn overlapping_entries_are_refused() {
        let bytes = small(Compression::Stored);
        let z = ZipReader::open(&bytes).unwrap();
        // Grow the first entry over the second, in the directory.
        let second = z.entry("r/b").unwrap().data.start;
        let grown = (second - z.entry("r/a").unwrap().data.start) as u32;
        let dir = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        let mut bad = bytes.clone();
        bad[dir + 20..dir + 24].copy_from_slice(&grown.to_le_bytes());
        bad[dir + 24..dir + 28].copy_from_slice(&grown.to_le_bytes());
        let e = ZipReader::open(&bad).unwrap_err();
        assert!(e.to_string().contains("overlap"), "{e}");
    }

    #[test]
    fn bombs_are_refused_before_memory_is_taken() {
        let mut w = ZipWriter::new(Vec::new());
        w.add("zeros", &vec![0u8; 1 << 20], Compression::Deflated).unwrap();
        let bytes = w.finish().unwrap();
        assert!(bytes.len() < 3000);
        let limits = Limits { inflated: 1 << 16, ..Limits::default() };
        let e = ZipReader::with_limits(&bytes, &limits).unwrap_err();
        assert_eq!(e.kind(), FileErrorKind::TooLarge);
        // A false size is detected when the entry is read.
        let dir = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        for lie in [1u32, 1 << 29] {
            let mut bad = bytes.clone();
            bad[dir + 24..dir + 28].copy_from_slice(&lie.to_le_bytes());
            let z = ZipReader::open(&bad).unwrap();
            assert!(z.read(&z.entries()[0]).is_err());
        }
    }
}
