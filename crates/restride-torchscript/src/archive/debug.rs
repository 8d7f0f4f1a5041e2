//! The Python lines that an archive's code was made from: `code/….py.debug_pkl`, read where an error names them.

use restride_pt2::pickle::{self, ObjectId, PickleObject, PickleObjects};
use restride_pt2::zip::ZipReader;
use restride_tensor::Bytes;

/// Most places that are tried: those of constants have no line.
const MAX_TRIES: usize = 64;

/// Where the lines of one file of code come from.
#[derive(Debug)]
pub struct DebugSource {
    archive: Bytes,
    entry: String,
}

impl DebugSource {
    /// The entry of an archive.
    pub fn new(archive: Bytes, entry: String) -> DebugSource {
        DebugSource { archive, entry }
    }

    /// File and line of the Python code behind the bytes up to `to` of the archive's code: of the last call that begins before.
    pub fn line(&self, to: usize) -> Option<(String, i64)> {
        let zip = ZipReader::open(&self.archive).ok()?;
        let objects = pickle::load_entry(&zip, &self.entry).ok()?;
        let p = Reader { p: &objects };
        let mut root = p.tuple(objects.root)?;
        // Since PyTorch 1.10, lines are in one table of strings.
        let mut table = None;
        if root.first().and_then(|f| p.text(*f)).as_deref() == Some("FORMAT_WITH_STRING_TABLE") {
            table = Some(p.tuple(*root.get(1)?)?);
            root = p.tuple(*root.get(2)?)?;
        }
        let place = |record: ObjectId| {
            let record = p.tuple(record)?;
            let offset = usize::try_from(p.int(*record.first()?)?).ok().filter(|o| *o < to)?;
            Some((offset, *record.get(1)?))
        };
        let mut places: Vec<(usize, ObjectId)> = root.into_iter().filter_map(place).collect();
        places.sort_by_key(|(offset, _)| std::cmp::Reverse(*offset));
        places.iter().take(MAX_TRIES).find_map(|(_, range)| p.place(*range, table.as_deref()))
    }
}

struct Reader<'p> {
    p: &'p PickleObjects,
}

impl Reader<'_> {
    fn tuple(&self, id: ObjectId) -> Option<Vec<ObjectId>> {
        match self.p.objects.get(id)? {
            PickleObject::Tuple(items) | PickleObject::List(items) => Some(items.clone()),
            // `torch.jit._pickle.build_intlist([…])`
            PickleObject::Opaque(class, args) if class.starts_with("torch.jit._pickle.") && *args.first()? < id => {
                self.tuple(*args.first()?)
            }
            _ => None,
        }
    }

    fn int(&self, id: ObjectId) -> Option<i64> {
        match self.p.objects.get(id)? {
            PickleObject::Int(i) => Some(*i),
            _ => None,
        }
    }

    fn text(&self, id: ObjectId) -> Option<String> {
        match self.p.objects.get(id)? {
            PickleObject::Str(s) => Some(s.to_string()),
            _ => None,
        }
    }

    /// File and line of a range: `((text, file, first line), start, end)`, where text and file may be positions in a table.
    fn place(&self, id: ObjectId, table: Option<&[ObjectId]>) -> Option<(String, i64)> {
        let range = self.tuple(id)?;
        let source = self.tuple(*range.first()?)?;
        let [text, file, first] = source[..] else { return None };
        let start = usize::try_from(self.int(*range.get(1)?)?).ok()?;
        let (text, file) = match table {
            None => (self.text(text)?, self.text(file)?),
            Some(table) => {
                let at = |i: i64| usize::try_from(i).ok().and_then(|i| table.get(i)).and_then(|s| self.text(*s));
                let mut whole = String::new();
                for line in self.tuple(text)? {
                    if whole.len() > start {
                        break;
                    }
                    let line = at(self.int(line)?)?;
                    whole.push_str(&line);
                }
                (whole, at(self.int(file)?)?)
            }
        };
        if file.is_empty() {
            return None;
        }
        let before = text.as_bytes().get(..start)?;
        Some((file, self.int(first)? + before.iter().filter(|b| **b == b'\n').count() as i64))
    }
}
