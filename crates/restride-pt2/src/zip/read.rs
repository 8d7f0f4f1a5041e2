use super::{CENTRAL_SIGNATURE, EOCD_SIGNATURE, EOCD64_SIGNATURE, LOCAL_SIGNATURE, LOCATOR64_SIGNATURE, ZIP64_EXTRA};
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
    /// Where its (perhaps compressed) bytes lie in the input.
    pub data: Range<usize>,
}

impl ZipEntry {
    /// Where the content lies in the input, if it lies there as is.
    pub fn stored_range(&self) -> Option<Range<usize>> {
        (self.method == Method::Stored).then(|| self.data.clone())
    }
}

/// What compressed entries may inflate to in any case, as a multiple of the file's length.
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
        let directory = find_directory(bytes)?;
        let entries = read_entries(bytes, &directory)?;
        check_disjoint(&entries, &directory)?;
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
            .ok_or_else(|| Pt2Error::malformed("lies outside of the file").at(&*entry.name))?;
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

/// Inflates to exactly the declared size. Memory grows with what really arrives, so a lie costs nothing.
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

struct Directory {
    start: usize,
    end: usize,
    count: u64,
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(b.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(b.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(b.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn no_directory() -> Pt2Error {
    Pt2Error::malformed("not a zip file, or cut short: it has no end-of-directory record")
}

/// Finds the central directory from the end of the file. Bytes may follow the end record (PyTorch tolerates
/// them), so the search goes back over the length that a comment may have.
fn find_directory(b: &[u8]) -> Result<Directory> {
    const EOCD_LEN: usize = 22;
    let last = b.len().checked_sub(EOCD_LEN).ok_or_else(no_directory)?;
    let first = last.saturating_sub(u16::MAX as usize);
    let eocd = (first..=last)
        .rev()
        .find(|&at| {
            u32_at(b, at) == Some(EOCD_SIGNATURE)
                && u16_at(b, at + 20).is_some_and(|n| at + EOCD_LEN + n as usize <= b.len())
        })
        .ok_or_else(no_directory)?;
    let short16 = |off| u16_at(b, eocd + off).map(u64::from);
    let short32 = |off| u32_at(b, eocd + off).map(u64::from);
    let cut = || Pt2Error::malformed("the zip's end-of-directory record is cut short");
    let (mut disk, mut dir_disk) = (short16(4).ok_or_else(cut)?, short16(6).ok_or_else(cut)?);
    let (mut here, mut count) = (short16(8).ok_or_else(cut)?, short16(10).ok_or_else(cut)?);
    let (mut size, mut start) = (short32(12).ok_or_else(cut)?, short32(16).ok_or_else(cut)?);
    let mut limit = eocd;
    let locator = eocd.checked_sub(20);
    if let Some(loc) = locator.filter(|&l| u32_at(b, l) == Some(LOCATOR64_SIGNATURE)) {
        let at = u64_at(b, loc + 8).ok_or_else(cut)?;
        let at = usize::try_from(at)
            .ok()
            .filter(|&a| a < loc && u32_at(b, a) == Some(EOCD64_SIGNATURE))
            .ok_or_else(|| Pt2Error::malformed("the zip64 locator does not point at a zip64 end record"))?;
        disk = u64::from(u32_at(b, at + 16).ok_or_else(cut)?);
        dir_disk = u64::from(u32_at(b, at + 20).ok_or_else(cut)?);
        here = u64_at(b, at + 24).ok_or_else(cut)?;
        count = u64_at(b, at + 32).ok_or_else(cut)?;
        size = u64_at(b, at + 40).ok_or_else(cut)?;
        start = u64_at(b, at + 48).ok_or_else(cut)?;
        limit = at;
    }
    if disk != 0 || dir_disk != 0 || here != count {
        return Err(Pt2Error::unsupported("a zip split over several disks"));
    }
    let end = start
        .checked_add(size)
        .filter(|&e| e <= limit as u64)
        .ok_or_else(|| Pt2Error::malformed("the zip's directory lies outside of the file"))?;
    // Each entry takes at least 46 bytes, so the count is bounded by bytes that are really there.
    if count > size / 46 {
        return Err(Pt2Error::malformed(format!("the zip declares {count} entries in a directory of {size} bytes")));
    }
    Ok(Directory { start: start as usize, end: end as usize, count })
}

/// One entry with the offset of its local header.
type Placed = (usize, ZipEntry);

fn read_entries(b: &[u8], directory: &Directory) -> Result<Vec<Placed>> {
    let mut entries = Vec::with_capacity(directory.count as usize);
    let mut at = directory.start;
    for i in 0..directory.count {
        let (entry, next) = read_entry(b, at, directory).at(|| format!("zip entry {i}"))?;
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

fn read_entry(b: &[u8], at: usize, directory: &Directory) -> Result<(Placed, usize)> {
    let cut = || Pt2Error::malformed("the zip's directory is cut short");
    let b_dir = &b[..directory.end];
    if u32_at(b_dir, at).ok_or_else(cut)? != CENTRAL_SIGNATURE {
        return Err(Pt2Error::malformed("the zip's directory has no entry where one must be"));
    }
    let flags = u16_at(b_dir, at + 8).ok_or_else(cut)?;
    let method = u16_at(b_dir, at + 10).ok_or_else(cut)?;
    let mut compressed = u64::from(u32_at(b_dir, at + 20).ok_or_else(cut)?);
    let mut size = u64::from(u32_at(b_dir, at + 24).ok_or_else(cut)?);
    let name_len = usize::from(u16_at(b_dir, at + 28).ok_or_else(cut)?);
    let extra_len = usize::from(u16_at(b_dir, at + 30).ok_or_else(cut)?);
    let comment_len = usize::from(u16_at(b_dir, at + 32).ok_or_else(cut)?);
    let mut header = u64::from(u32_at(b_dir, at + 42).ok_or_else(cut)?);
    let name_end = at + 46 + name_len;
    let extra_end = name_end + extra_len;
    let raw_name = b_dir.get(at + 46..name_end).ok_or_else(cut)?;
    let extra = b_dir.get(name_end..extra_end).ok_or_else(cut)?;
    let next = extra_end + comment_len;
    if next > directory.end {
        return Err(cut());
    }
    let name =
        std::str::from_utf8(raw_name).map_err(|_| Pt2Error::unsupported("a file name that is not UTF-8"))?.to_string();
    if name.contains('\0') {
        return Err(Pt2Error::malformed("a file name with a zero byte"));
    }
    zip64_sizes(extra, &mut size, &mut compressed, &mut header).at(|| name.clone())?;
    let fail = |m: &str| Pt2Error::malformed(m).at(name.clone());
    if flags & 1 != 0 {
        return Err(Pt2Error::unsupported("is encrypted").at(name));
    }
    let method = match method {
        0 => Method::Stored,
        8 => Method::Deflated,
        m => Method::Other(m),
    };
    let header = usize::try_from(header)
        .ok()
        .filter(|&h| h < directory.start)
        .ok_or_else(|| fail("its local header lies outside of the file"))?;
    let no_local = || fail("has no local header where the directory says (bytes put before the zip?)");
    if u32_at(b, header) != Some(LOCAL_SIGNATURE) {
        return Err(no_local());
    }
    let local_name = usize::from(u16_at(b, header + 26).ok_or_else(no_local)?);
    let local_extra = usize::from(u16_at(b, header + 28).ok_or_else(no_local)?);
    if b.get(header + 30..header + 30 + local_name) != Some(raw_name) {
        return Err(fail("its local header names another file"));
    }
    let start = header + 30 + local_name + local_extra;
    let end = usize::try_from(compressed)
        .ok()
        .and_then(|n| start.checked_add(n))
        .filter(|&e| e <= directory.start)
        .ok_or_else(|| fail("its content reaches beyond the file (cut short, or a wrong size in the directory)"))?;
    if method == Method::Stored && compressed != size {
        return Err(fail("is stored, but its two sizes differ"));
    }
    let entry = ZipEntry { name, method, size, data: start..end };
    Ok(((header, entry), next))
}

/// Replaces the 32-bit fields that say "see the zip64 extra field".
fn zip64_sizes(extra: &[u8], size: &mut u64, compressed: &mut u64, header: &mut u64) -> Result<()> {
    const ASK: u64 = u32::MAX as u64;
    let mut at = 0;
    while let (Some(id), Some(len)) = (u16_at(extra, at), u16_at(extra, at + 2)) {
        let body = extra
            .get(at + 4..at + 4 + usize::from(len))
            .ok_or_else(|| Pt2Error::malformed("a zip extra field is cut short"))?;
        if id == ZIP64_EXTRA {
            let mut field = 0;
            for value in [size, compressed, header] {
                if *value == ASK {
                    *value = u64_at(body, field).ok_or_else(|| Pt2Error::malformed("the zip64 field is cut short"))?;
                    field += 8;
                }
            }
            return Ok(());
        }
        at += 4 + usize::from(len);
    }
    Ok(())
}

/// Entries that share bytes are how small zips claim to be huge; no honest writer makes them.
fn check_disjoint(entries: &[Placed], directory: &Directory) -> Result<()> {
    let mut order: Vec<&Placed> = entries.iter().collect();
    order.sort_by_key(|(header, _)| *header);
    for pair in order.windows(2) {
        if pair[0].1.data.end > pair[1].0 {
            return Err(
                Pt2Error::malformed(format!("its bytes overlap those of {}", pair[1].1.name)).at(&*pair[0].1.name)
            );
        }
    }
    debug_assert!(order.iter().all(|(_, e)| e.data.end <= directory.start));
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
    use crate::error::ErrorKind;

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
        assert_eq!(ZipReader::open(&bytes).unwrap_err().kind(), ErrorKind::Malformed);
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
        let dir = bytes.windows(4).position(|w| w == CENTRAL_SIGNATURE.to_le_bytes()).unwrap();
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
        assert_eq!(e.kind(), ErrorKind::TooLarge);
        // A size that lies is found out when reading.
        let dir = bytes.windows(4).position(|w| w == CENTRAL_SIGNATURE.to_le_bytes()).unwrap();
        for lie in [1u32, 1 << 29] {
            let mut bad = bytes.clone();
            bad[dir + 24..dir + 28].copy_from_slice(&lie.to_le_bytes());
            let z = ZipReader::open(&bad).unwrap();
            assert!(z.read(&z.entries()[0]).is_err());
        }
    }

    #[test]
    fn zip64_fields_are_read() {
        let (mut size, mut compressed, mut header) = (u64::from(u32::MAX), 5, u64::from(u32::MAX));
        let mut extra = vec![b'F', b'B', 1, 0, b'Z', 1, 0, 16, 0];
        extra.extend((5u64 << 32).to_le_bytes());
        extra.extend((6u64 << 32).to_le_bytes());
        zip64_sizes(&extra, &mut size, &mut compressed, &mut header).unwrap();
        assert_eq!((size, compressed, header), (5 << 32, 5, 6 << 32));
        let mut size = u64::from(u32::MAX);
        assert!(zip64_sizes(&[1, 0, 0, 0], &mut size, &mut compressed, &mut header).is_err());
    }
}
