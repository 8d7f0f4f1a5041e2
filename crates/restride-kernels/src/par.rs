//! Work shared between threads in a way that no result can depend on: every piece is computed by one thread alone.

/// Calls `f(index, piece)` for consecutive pieces of `chunk` elements (the last may be shorter), on up to
/// `threads` threads.
pub fn pieces<T: Send>(threads: usize, out: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let chunk = chunk.max(1);
    let count = out.len().div_ceil(chunk);
    if threads <= 1 || count <= 1 {
        for (i, piece) in out.chunks_mut(chunk).enumerate() {
            f(i, piece);
        }
        return;
    }
    let per_thread = count.div_ceil(threads);
    rayon::scope(|scope| {
        for (t, group) in out.chunks_mut(per_thread * chunk).enumerate() {
            let f = &f;
            scope.spawn(move |_| {
                for (i, piece) in group.chunks_mut(chunk).enumerate() {
                    f(t * per_thread + i, piece);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_piece_is_visited_once_with_its_index() {
        for threads in [1, 2, 3, 7] {
            let mut out = vec![0usize; 23];
            super::pieces(threads, &mut out, 4, |i, piece| piece.iter_mut().for_each(|x| *x += i + 1));
            let want: Vec<usize> = (0..23).map(|i| i / 4 + 1).collect();
            assert_eq!(out, want);
        }
    }
}
