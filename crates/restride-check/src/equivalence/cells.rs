//! A storage as an interval map from bytes to names, and the elements of a layout on it.

use super::names::{Byte, TermId, TermTable};
use restride_ir::Layout;
use std::collections::BTreeMap;

/// `len` elements in logical order with evenly spaced names: the first at byte `first` of the term's result, the next
/// `step` bytes on. A single element has step 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct NameRun {
    pub(super) term: TermId,
    pub(super) first: i64,
    pub(super) step: i64,
    pub(super) len: i64,
}

impl NameRun {
    pub(super) fn at(&self, i: i64) -> Byte {
        (self.term, self.first + i * self.step)
    }
    /// The rest of the run from an element on.
    pub(super) fn from(&self, i: i64) -> NameRun {
        let len = self.len - i;
        NameRun { first: self.first + i * self.step, len, step: if len == 1 { 0 } else { self.step }, ..*self }
    }
}

/// Elements as runs, greedy from the left: equal elements give equal runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Runs(pub(super) Vec<NameRun>);

impl Runs {
    pub(super) fn push(&mut self, run: NameRun) {
        let mut run = run;
        while run.len > 0 {
            let Some(last) = self.0.last_mut().filter(|l| l.term == run.term) else {
                if run.len == 1 {
                    run.step = 0;
                }
                return self.0.push(run);
            };
            let step = if last.len == 1 { run.first - last.first } else { last.step };
            if last.first + last.len * step != run.first {
                if run.len == 1 {
                    run.step = 0;
                }
                return self.0.push(run);
            }
            let taken = if run.len > 1 && run.step == step { run.len } else { 1 };
            last.step = step;
            last.len += taken;
            if taken == run.len {
                return;
            }
            run = run.from(taken);
        }
    }

    pub(super) fn one(&mut self, (term, first): Byte) {
        self.push(NameRun { term, first, step: 0, len: 1 });
    }

    pub(super) fn len(&self) -> i64 {
        self.0.iter().map(|r| r.len).sum()
    }

    /// The name of an element.
    pub(super) fn at(&self, i: i64) -> Option<Byte> {
        let mut left = i;
        for r in &self.0 {
            if left < r.len {
                return Some(r.at(left));
            }
            left -= r.len;
        }
        None
    }

    /// Pairs of runs of the same elements, cut where either ends.
    pub(super) fn beside(&self, other: &Runs, mut f: impl FnMut(NameRun, NameRun)) {
        let (mut a, mut b) = (self.0.iter().copied(), other.0.iter().copied());
        let (mut x, mut y) = (a.next(), b.next());
        while let (Some(p), Some(q)) = (x, y) {
            let n = p.len.min(q.len);
            let part = |r: NameRun| NameRun { len: n, step: if n == 1 { 0 } else { r.step }, ..r };
            f(part(p), part(q));
            x = if p.len > n { Some(p.from(n)) } else { a.next() };
            y = if q.len > n { Some(q.from(n)) } else { b.next() };
        }
    }
}

/// Consecutive bytes of one term.
#[derive(Clone, Copy, Debug)]
struct NamedBytes {
    end: i64,
    term: TermId,
    first: i64,
}

/// A storage.
#[derive(Clone, Default, Debug)]
pub(super) struct StorageCells {
    pieces: BTreeMap<i64, NamedBytes>,
    /// Cost: pieces and elements read or written.
    pub(super) work: u64,
    /// Whether a write happened since the storage was made.
    pub(super) written: bool,
}

impl StorageCells {
    /// A storage whose bytes are all of one term.
    pub(super) fn whole(term: TermId, bytes: i64) -> StorageCells {
        let mut cells = StorageCells::default();
        cells.put(0, bytes, (term, 0));
        cells
    }

    /// Sets the name of `len` bytes from `start` on.
    pub(super) fn put(&mut self, start: i64, len: i64, (term, first): Byte) {
        if len <= 0 {
            return;
        }
        self.work += 1;
        let (mut start, mut end, mut first) = (start, start + len, first);
        self.cut(start);
        self.cut(end);
        while let Some((&at, _)) = self.pieces.range(start..end).next() {
            self.pieces.remove(&at);
        }
        // Merges neighbours that continue each other.
        if let Some((&at, p)) = self.pieces.range(..start).next_back()
            && p.end == start
            && p.term == term
            && p.first + (start - at) == first
        {
            (start, first) = (at, p.first);
        }
        if let Some(p) = self.pieces.get(&end)
            && p.term == term
            && p.first == first + (end - start)
        {
            let next = p.end;
            self.pieces.remove(&end);
            end = next;
        }
        self.pieces.insert(start, NamedBytes { end, term, first });
    }

    /// Splits a piece at a byte.
    fn cut(&mut self, at: i64) {
        if let Some((&start, p)) = self.pieces.range_mut(..at).next_back()
            && p.end > at
        {
            let right = NamedBytes { first: p.first + (at - start), ..*p };
            p.end = at;
            self.pieces.insert(at, right);
        }
    }

    fn piece(&self, at: i64) -> Option<(i64, NamedBytes)> {
        let (&start, p) = self.pieces.range(..=at).next_back()?;
        (p.end > at).then_some((start, *p))
    }

    /// Elements of a layout; `None` if some bytes have no name.
    pub(super) fn read(&mut self, names: &mut TermTable, layout: &Layout, element: usize) -> Option<Runs> {
        let (size, mut out, mut work) = (element as i64, Runs::default(), 0);
        let found = rows(layout, &mut |start, len, stride| {
            let (at, step) = (start * size, stride * size);
            let mut i = 0;
            while i < len {
                work += 1;
                let from = at + i * step;
                let (begin, p) = self.piece(from)?;
                // Over several pieces, or in an assembled one: by the names of its bytes.
                if p.end < from + size || names.parts(p.term).is_some() {
                    let mut bytes = Vec::with_capacity(element);
                    for b in from..from + size {
                        let (begin, p) = self.piece(b)?;
                        bytes.push(names.part((p.term, p.first + (b - begin))));
                    }
                    out.one(names.composite(bytes));
                    i += 1;
                    continue;
                }
                // The elements inside of this piece.
                let n = match step {
                    0 => len - i,
                    s if s > 0 => ((p.end - size - from) / s + 1).min(len - i),
                    _ => 1,
                };
                let first = p.first + (from - begin);
                out.push(NameRun { term: p.term, first, step: if n == 1 { 0 } else { step }, len: n });
                i += n;
            }
            Some(())
        });
        self.work += work;
        found.map(|()| out)
    }

    /// Writes elements to the cells of a layout in logical order: the last element in a cell stays.
    pub(super) fn write(&mut self, layout: &Layout, element: usize, runs: &Runs) {
        let size = element as i64;
        self.written |= runs.len() > 0;
        let (mut rest, mut k) = (runs.0.first().copied(), 0);
        let _ = rows(layout, &mut |start, len, stride| {
            let mut i = 0;
            while i < len {
                let r = rest?;
                let n = (len - i).min(r.len);
                if stride == 1 && (n == 1 || r.step == size) {
                    self.put((start + i) * size, n * size, (r.term, r.first));
                } else {
                    for j in 0..n {
                        self.put((start + (i + j) * stride) * size, size, r.at(j));
                    }
                }
                i += n;
                rest = if r.len > n {
                    Some(r.from(n))
                } else {
                    k += 1;
                    runs.0.get(k).copied()
                };
            }
            Some(())
        });
    }

    /// Joins with the storage of another branch: bytes that differ become either.
    pub(super) fn merge(&mut self, taken: &StorageCells, names: &mut TermTable, pred: Byte) {
        self.written |= taken.written;
        let mut borders: Vec<i64> = Vec::new();
        for cells in [&*self, taken] {
            for (&start, p) in &cells.pieces {
                borders.extend([start, p.end]);
                // An assembled name is either byte by byte.
                if names.parts(p.term).is_some() {
                    borders.extend(start + 1..p.end);
                }
            }
        }
        borders.sort_unstable();
        borders.dedup();
        for w in borders.windows(2) {
            let name =
                |cells: &StorageCells| cells.piece(w[0]).map(|(s, p)| names.part((p.term, p.first + (w[0] - s))));
            if let (Some(not), Some(yes)) = (name(self), name(taken))
                && yes != not
            {
                let either = names.either(pred, yes, not);
                self.put(w[0], w[1] - w[0], either);
            }
        }
    }
}

/// Rows of a layout in logical order: first cell, number of elements, stride. Dimensions that continue each other are
/// merged. Ends early if `f` returns `None`.
fn rows(layout: &Layout, f: &mut impl FnMut(i64, i64, i64) -> Option<()>) -> Option<()> {
    if layout.sizes.contains(&0) {
        return Some(());
    }
    let mut dims: Vec<(i64, i64)> = Vec::new();
    for (&n, &s) in layout.sizes.iter().zip(&layout.strides) {
        match dims.last_mut() {
            _ if n == 1 => {}
            Some((m, t)) if *t == n * s => (*m, *t) = (*m * n, s),
            _ => dims.push((n, s)),
        }
    }
    let (len, stride) = dims.pop().unwrap_or((1, 1));
    fn go(
        dims: &[(i64, i64)],
        at: i64,
        row: (i64, i64),
        f: &mut impl FnMut(i64, i64, i64) -> Option<()>,
    ) -> Option<()> {
        match dims {
            [] => f(at, row.0, row.1),
            [(n, s), rest @ ..] => (0..*n).try_for_each(|i| go(rest, at + i * s, row, f)),
        }
    }
    go(&dims, layout.offset, (len, stride), f)
}

#[cfg(test)]
mod tests {
    use super::super::names::TermKey;
    use super::*;

    /// Against an array with one name for each byte.
    #[test]
    fn an_interval_map_is_an_array_of_names() {
        let mut below = crate::draws(7);
        let mut names = TermTable::default();
        let terms: Vec<TermId> = (0..4).map(|i| names.term(TermKey::Input(i))).collect();
        for _ in 0..300 {
            let mut cells = StorageCells::whole(terms[0], 96);
            let mut plain: Vec<Byte> = (0..96).map(|b| (terms[0], b)).collect();
            for _ in 0..6 {
                let element = [1, 2, 4][below(3) as usize];
                let room = 96 / element as i64;
                let sizes = [1 + below(3), 1 + below(4)];
                let strides = [below(4), 1 + below(2)];
                let reach = (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1] + 1;
                let layout = Layout::strided(&sizes, &strides, below(room - reach + 1));
                let got = cells.read(&mut names, &layout, element).unwrap();
                let mut want = Runs::default();
                for c in layout.cells() {
                    let bytes = (0..element).map(|b| plain[c as usize * element + b]).collect();
                    want.one(names.composite(bytes));
                }
                // The bytes of an assembled name keep it in any cells.
                if want.len() <= 12 && below(3) == 0 {
                    let at = 8 * below(4);
                    let to = Layout::strided(&[want.len()], &[1], at / element as i64);
                    cells.write(&to, element, &want);
                    let mut i = at as usize / element * element;
                    for k in 0..want.len() {
                        let (term, first) = want.at(k).unwrap();
                        for b in 0..element as i64 {
                            plain[i] = names.part((term, first + b));
                            i += 1;
                        }
                    }
                }
                assert_eq!(got, want, "{layout}");
                let mut runs = Runs::default();
                let (term, first, step) = (terms[below(4) as usize], below(50), below(3) * element as i64);
                runs.push(NameRun { term, first, step, len: layout.numel() });
                cells.write(&layout, element, &runs);
                for (i, c) in layout.cells().into_iter().enumerate() {
                    for b in 0..element {
                        plain[c as usize * element + b] = (term, first + i as i64 * step + b as i64);
                    }
                }
            }
        }
    }
}
