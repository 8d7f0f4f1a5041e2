//! Finding the chain of views that shows a region.

use crate::functionalize::region::{Extent, Relation, relate, starts};
use crate::functionalize::region_ops::read_steps;
use restride_ir::{Dim, Dims, Expr, Layout};
use restride_tensor::by_stride;
use smallvec::SmallVec;

/// A view of the whole base that comes before the indices are taken.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shaped {
    /// The dimensions in another order.
    Permuted(Dims<i64>),
    /// Other sizes in the same logical order.
    Reshaped(Dims<Expr>),
    /// A diagonal of two dimensions, as the last dimension.
    Diagonal {
        /// Its offset.
        offset: i64,
        /// The two dimensions.
        dims: (usize, usize),
    },
}

/// A region as a chain of views of its base.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Chain {
    /// Views of the base as a whole, each with the layout that it gives.
    pub shaped: SmallVec<[(Shaped, Layout<Expr>); 2]>,
    /// Which indices of the last of these the region has.
    pub relation: Relation<Expr>,
}

impl Chain {
    /// How many operators it takes to read the region.
    pub fn len(&self, region: &Layout<Expr>) -> usize {
        let stretched = self.relation.source.iter().zip(&region.sizes).any(|(s, n)| s.is_none() && !n.is(1));
        self.shaped.len() + read_steps(&self.relation) + stretched as usize
    }

    /// Whether the region has every cell once: none of its dimensions is stretched.
    pub fn is_exact(&self, region: &Layout<Expr>) -> bool {
        self.relation.source.iter().zip(&region.sizes).all(|(s, n)| s.is_some() || n.is(1))
    }
}

/// The chain for a region: other sizes of the base, indices of the base itself, else the shorter one of indices of a diagonal and
/// of the base under other sizes.
pub(crate) fn find(base: &Layout<Expr>, region: &Layout<Expr>) -> Option<Chain> {
    search(base, region, true)
}

/// The chain for a region that begins with no diagonal: Core ATen can read a diagonal and not scatter into it.
pub(crate) fn find_plain(base: &Layout<Expr>, region: &Layout<Expr>) -> Option<Chain> {
    search(base, region, false)
}

fn search(base: &Layout<Expr>, region: &Layout<Expr>, diagonals: bool) -> Option<Chain> {
    let whole = |shaped: Shaped| Chain {
        shaped: [(shaped, region.clone())].into_iter().collect(),
        relation: Relation {
            picks: SmallVec::from_elem(Extent::Whole, region.rank()),
            source: (0..region.rank()).map(Some).collect(),
        },
    };
    if base.sizes != region.sizes && base.view(&region.sizes).is_some_and(|l| l.same_cells(region)) {
        return Some(whole(Shaped::Reshaped(region.sizes.clone())));
    }
    if let Some(order) = permuted(base, region) {
        return Some(whole(Shaped::Permuted(order)));
    }
    if let Some(relation) = relate(base, region) {
        return Some(Chain { shaped: SmallVec::new(), relation });
    }
    let found = if diagonals { of_a_diagonal(base, region) } else { None };
    let other = under_other_sizes(base, region);
    [found, other].into_iter().flatten().min_by_key(|c| c.len(region))
}

/// The order of the base's dimensions that the region has, if it is nothing else.
fn permuted(base: &Layout<Expr>, region: &Layout<Expr>) -> Option<Dims<i64>> {
    if base.rank() != region.rank() {
        return None;
    }
    let mut order: Dims<i64> = Dims::<i64>::new();
    for (n, stride) in region.sizes.iter().zip(&region.strides) {
        let fits = |d: &usize| {
            let alike = n.is(1) && base.sizes[*d].is(1) || base.strides[*d] == *stride;
            base.sizes[*d] == *n && alike && !order.contains(&(*d as i64))
        };
        let at = order.len();
        let d = Some(at).filter(fits).or_else(|| (0..base.rank()).find(fits))?;
        order.push(d as i64);
    }
    let same = base.permute(&order).is_ok_and(|l| l.same_cells(region));
    (same && !order.is_sorted()).then_some(order)
}

/// `t` as a multiple of `s`, where it is one.
fn multiple(s: &Expr, t: &Expr) -> Option<Expr> {
    if !Expr::Int(0).less(s).unwrap_or(false) {
        return None;
    }
    let (times, rest) = t.divide(s);
    rest.is(0).then_some(times)
}

fn under_other_sizes(base: &Layout<Expr>, region: &Layout<Expr>) -> Option<Chain> {
    // Runs of cells are found in dimensions that stand from the outermost in.
    let (base, first) = match sorted(base) {
        None => (base.clone(), None),
        Some(order) => {
            let to = base.permute(&order).ok()?;
            (to.clone(), Some((Shaped::Permuted(order), to)))
        }
    };
    let moving = region.sizes.iter().zip(&region.strides).filter(|(n, s)| !n.is(1) && !s.is(0));
    let cuts: SmallVec<[Expr; 4]> = moving.map(|(_, s)| s.clone()).collect();
    let own: SmallVec<[Expr; 4]> = base.strides.iter().cloned().collect();
    let both: SmallVec<[Expr; 8]> = own.iter().chain(&cuts).cloned().collect();
    let single: Vec<(Expr, Expr)> = base.sizes.iter().cloned().zip(own.iter().cloned()).collect();
    let merged = runs(&base);
    for (runs, cuts) in [(&single, &cuts[..]), (&merged, &cuts[..]), (&merged, &both[..])] {
        let sizes: Dims<Expr> = runs.iter().flat_map(|(n, unit)| split(n, unit, cuts)).collect();
        let Some(seen) = base.view(&sizes) else { continue };
        if seen == base {
            continue;
        }
        if let Some(relation) = relate(&seen, region) {
            let shaped = first.into_iter().chain([(Shaped::Reshaped(sizes), seen)]).collect();
            return Some(Chain { shaped, relation });
        }
    }
    None
}

/// The order of dimensions from the largest stride to the smallest; `None` if they stand so, or if that is not known.
fn sorted(l: &Layout<Expr>) -> Option<Dims<i64>> {
    let mut order: Dims<i64> = (0..l.rank() as i64).collect();
    let known: Vec<i64> = l.strides.iter().map(Dim::known).collect::<Option<_>>()?;
    by_stride(&mut order, |d| known[d as usize]);
    (!order.is_sorted()).then_some(order)
}

/// Dimensions that are nested without gaps, as one: number of cells and the distance between them.
fn runs(l: &Layout<Expr>) -> Vec<(Expr, Expr)> {
    let mut out: Vec<(Expr, Expr)> = Vec::new();
    for (n, stride) in l.sizes.iter().zip(&l.strides) {
        match out.last_mut() {
            Some((have, unit)) if n.times(stride).equals(unit) == Some(true) => {
                (*have, *unit) = (have.times(n), stride.clone());
            }
            _ => out.push((n.clone(), stride.clone())),
        }
    }
    out
}

/// Sizes that cut a run of `n` cells at strides, as far as these divide it and each other.
fn split(n: &Expr, unit: &Expr, cuts: &[Expr]) -> Dims<Expr> {
    let end = n.times(unit);
    let mut at: SmallVec<[Expr; 4]> = SmallVec::from_elem(unit.clone(), 1);
    let mut left: Vec<&Expr> = cuts.iter().collect();
    loop {
        let last = at.last().expect("the unit stands first");
        left.retain(|t| multiple(last, t).is_some_and(|k| !k.is(1)) && multiple(t, &end).is_some_and(|k| !k.is(1)));
        // The next one out is the one that divides the others.
        let Some(next) = left.iter().find(|t| left.iter().all(|u| multiple(t, u).is_some())).or(left.first()) else {
            break;
        };
        at.push((*next).clone());
    }
    let outer = at[1..].iter().chain([&end]);
    let mut sizes: Dims<Expr> =
        at.iter().zip(outer).map(|(inner, outer)| multiple(inner, outer).unwrap_or(Expr::Int(1))).collect();
    sizes.reverse();
    sizes
}

fn of_a_diagonal(base: &Layout<Expr>, region: &Layout<Expr>) -> Option<Chain> {
    let starts = starts(base, region, &[])?;
    for (p, q) in (0..base.rank()).flat_map(|p| (p + 1..base.rank()).map(move |q| (p, q))) {
        let stride = base.strides[p].plus(&base.strides[q]);
        if !region.strides.iter().zip(&region.sizes).any(|(s, n)| !n.is(1) && multiple(&stride, s).is_some()) {
            continue;
        }
        let Some(offset) = starts[q].minus(&starts[p]).known() else { continue };
        let Ok(seen) = base.diagonal(offset, p as i64, q as i64) else { continue };
        if let Some(relation) = relate(&seen, region) {
            let shaped = [(Shaped::Diagonal { offset, dims: (p, q) }, seen)].into_iter().collect();
            return Some(Chain { shaped, relation });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: &[i64]) -> Layout<Expr> {
        let sizes: Vec<Expr> = of.iter().map(|n| Expr::Int(*n)).collect();
        Layout::contiguous(&sizes)
    }

    fn reshaped(chain: &Chain) -> Vec<i64> {
        match &chain.shaped.last() {
            Some((Shaped::Reshaped(sizes), _)) => sizes.iter().map(|n| n.known().unwrap()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn boxes_under_other_sizes_are_found() {
        let base = sizes(&[2, 3, 4]);
        let one = Expr::Int(1);
        let cut = |l: &Layout<Expr>, d: i64, from: i64, to: i64| {
            l.slice(d, Some(&Expr::Int(from)), Some(&Expr::Int(to)), &one).unwrap()
        };
        // y.view(6, 4)[1:4, 1:3]
        let merged = cut(&cut(&base.view(&sizes(&[6, 4]).sizes).unwrap(), 0, 1, 4), 1, 1, 3);
        assert_eq!(reshaped(&find(&base, &merged).unwrap()), [6, 4]);
        // y.view(2, 3, 2, 2)[1:, :, :, 1]
        let fine = base.view(&sizes(&[2, 3, 2, 2]).sizes).unwrap();
        let fine = cut(&fine, 0, 1, 2).select(3, &one).unwrap();
        assert!(find(&base, &fine).is_some());
        // A transposed base is put in the order of its cells first.
        let turned = base.transpose(0, 2).unwrap();
        let flat = Layout::strided(&[Expr::Int(5)], &[one], Expr::Int(7));
        let found = find(&turned, &flat).unwrap();
        assert_eq!(found.shaped[0].0, Shaped::Permuted([2, 1, 0].into_iter().collect()));
        assert_eq!(reshaped(&found), [24]);
    }

    #[test]
    fn diagonals_are_found() {
        let base = sizes(&[3, 4, 5]);
        let d = base.diagonal(1, 1, 2).unwrap();
        let found = find(&base, &d).unwrap();
        assert_eq!(found.shaped[0].0, Shaped::Diagonal { offset: 1, dims: (1, 2) });
        assert_eq!(found.relation.partial().count(), 0);
        let part = d.slice(1, Some(&Expr::Int(1)), Some(&Expr::Int(3)), &Expr::Int(1)).unwrap();
        assert!(find(&base, &part).is_some());
    }

    #[test]
    fn what_is_no_chain_is_none() {
        let overlapping = Layout::strided(&[Expr::Int(3), Expr::Int(3)], &[Expr::Int(1), Expr::Int(1)], Expr::Int(0));
        assert_eq!(find(&sizes(&[9]), &overlapping), None);
        let odd = Layout::strided(&[Expr::Int(2), Expr::Int(2)], &[Expr::Int(7), Expr::Int(2)], Expr::Int(1));
        assert_eq!(find(&sizes(&[3, 5]), &odd), None);
    }
}
