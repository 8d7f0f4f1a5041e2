//! Short pieces that are apart in memory, as one row.

/// Neighbours that lie apart from the next ones.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Elements of a unit.
    pub len: usize,
    /// Distance of their cells: 1, or 0 for one cell that stands for all.
    pub step: isize,
    /// Distance of the first cells of two units.
    pub jump: isize,
}

impl Units {
    /// Reads a row that begins at element `from` of the unit whose first cell is given.
    ///
    /// # Safety
    /// The cells of all elements are readable, and the row has none of them.
    pub unsafe fn load(self, first: *const f32, from: usize, to: &mut [f32]) {
        let Units { len, step, jump } = self;
        let (head, rest) = to.split_at_mut(if from > 0 { (len - from).min(to.len()) } else { 0 });
        // SAFETY: as promised by the caller.
        unsafe { load_piece(first.wrapping_offset(from as isize * step), step, head) };
        let first = if from > 0 { first.wrapping_offset(jump) } else { first };
        if jump == 0 && step == 1 && rest.len() > len {
            // One unit again and again.
            // SAFETY: as promised by the caller.
            unsafe { load_piece(first, step, &mut rest[..len]) };
            let mut done = len;
            while done < rest.len() {
                let more = done.min(rest.len() - done);
                rest.copy_within(..more, done);
                done += more;
            }
            return;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            match len {
                1 => self.load_all::<1>(first, rest),
                2 => self.load_all::<2>(first, rest),
                3 => self.load_all::<3>(first, rest),
                4 => self.load_all::<4>(first, rest),
                _ => {
                    for (i, unit) in rest.chunks_mut(len).enumerate() {
                        load_piece(first.wrapping_offset(i as isize * jump), step, unit);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Units::load`], from the first element of a unit of `N` on.
    unsafe fn load_all<const N: usize>(self, first: *const f32, to: &mut [f32]) {
        let (units, rest) = to.as_chunks_mut::<N>();
        let count = units.len();
        // SAFETY: as promised by the caller.
        unsafe {
            match self.step {
                0 => (units.iter_mut().enumerate())
                    .for_each(|(i, unit)| *unit = [first.wrapping_offset(i as isize * self.jump).read(); N]),
                _ => (units.iter_mut().enumerate()).for_each(|(i, unit)| {
                    *unit = first.wrapping_offset(i as isize * self.jump).cast::<[f32; N]>().read()
                }),
            }
            load_piece(first.wrapping_offset(count as isize * self.jump), self.step, rest);
        }
    }
}

/// # Safety
/// As [`Units::load`], within a unit.
unsafe fn load_piece(first: *const f32, step: isize, to: &mut [f32]) {
    if to.is_empty() {
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe {
        match step {
            0 => to.fill(first.read()),
            _ => first.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_row() {
        let cells: Vec<f32> = (0..400).map(|i| i as f32).collect();
        for (len, step, jump) in
            (1..7).flat_map(|len| [(len, 0, 3), (len, 1, 0), (len, 1, 9), (len, 0, 0), (len, 1, -7)])
        {
            for (from, n) in (0..len).flat_map(|from| [0, 1, 2, 5, 24].map(|n| (from, n))) {
                let mut row = vec![-1.0; n];
                // SAFETY: the first unit is in the middle, and 24 units reach no end.
                unsafe { Units { len, step, jump }.load(cells[180..].as_ptr(), from, &mut row) };
                for (i, x) in row.into_iter().enumerate() {
                    let (unit, at) = ((from + i) / len, (from + i) % len);
                    let want = 180 + unit as isize * jump + at as isize * step;
                    assert_eq!(x, want as f32, "{len} {step} {jump}, from {from}, {i} of {n}");
                }
            }
        }
    }
}
