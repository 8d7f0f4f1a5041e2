//! Regions as storages keep them: shared, and with numbers at hand where all is known.

use restride_ir::{Dim, Expr, Layout, Meta, TensorType, gcd};
use restride_tensor::{Overlap, overlap_bytes};
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// Element type and cells of a region of a storage.
#[derive(Clone, Debug)]
pub struct SharedRegion(Rc<LazyRegion>);

#[derive(Debug)]
struct LazyRegion {
    ty: TensorType,
    /// The type in numbers, once asked for: most values are never compared with others.
    known: OnceCell<Option<Box<Meta>>>,
}

impl From<TensorType> for SharedRegion {
    fn from(ty: TensorType) -> Self {
        SharedRegion(Rc::new(LazyRegion { ty, known: OnceCell::new() }))
    }
}
impl PartialEq for SharedRegion {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0) || self.0.ty == other.0.ty
    }
}
impl Eq for SharedRegion {}
impl Hash for SharedRegion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.ty.layout.hash(state);
    }
}
impl Deref for SharedRegion {
    type Target = TensorType;
    fn deref(&self) -> &TensorType {
        &self.0.ty
    }
}

impl SharedRegion {
    /// The type in numbers, if sizes, strides and offset are known.
    pub fn known(&self) -> Option<&Meta> {
        self.0.known.get_or_init(|| self.0.ty.known().map(Box::new)).as_deref()
    }

    /// Whether the region has no cells.
    pub fn is_empty(&self) -> bool {
        self.layout.sizes.iter().any(|n| n.is(0))
    }

    /// Whether two regions of a storage are known to have the same cells in the same order.
    pub fn same_cells(&self, other: &SharedRegion) -> bool {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => a.layout.same_cells(&b.layout),
            _ => self.layout.same_cells(&other.layout),
        }
    }

    /// Whether two regions of a storage are known to have no cell in common.
    pub fn disjoint(&self, other: &SharedRegion) -> bool {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => {
                overlap_bytes(&a.layout, a.dtype.size(), &b.layout, b.dtype.size()) == Overlap::Disjoint
            }
            _ if self.dtype == other.dtype => {
                apart(&self.layout, &other.layout) || in_other_columns(&self.layout, &other.layout)
            }
            _ => false,
        }
    }
}

/// Provably disjoint with symbolic sizes: cut or fixed in one dimension of the same strides at different places.
fn apart(a: &Layout<Expr>, b: &Layout<Expr>) -> bool {
    let end = |l: &Layout<Expr>| {
        l.sizes
            .iter()
            .zip(&l.strides)
            .fold(l.offset.plus(&Expr::Int(1)), |e, (n, s)| e.plus(&n.minus(&Expr::Int(1)).times(s)))
    };
    b.offset.less(&end(a)) == Some(false) || a.offset.less(&end(b)) == Some(false)
}

/// Provably disjoint with symbolic sizes: the rows of both begin a multiple of one number of cells apart, and in these rows both have
/// other columns, as `y[..., 5:]` and `y[..., 4:5]` of a tensor with seven columns.
fn in_other_columns(a: &Layout<Expr>, b: &Layout<Expr>) -> bool {
    let dims = |l: &Layout<Expr>| l.sizes.iter().cloned().zip(l.strides.iter().cloned()).collect::<Vec<_>>();
    let divisor = |e: &Expr| {
        let (constant, others) = e.residue();
        gcd(constant.saturating_abs(), others)
    };
    let known = |(n, s): &(Expr, Expr)| Some((n.known()?, s.known()?));
    let all = [dims(a), dims(b)].concat();
    let row = all.iter().filter(|d| known(d).is_none()).fold(0, |row, (_, s)| gcd(row, divisor(s)));
    // How far the columns of one reach behind its first cell.
    let reach = |l: &Layout<Expr>| {
        dims(l)
            .iter()
            .filter_map(known)
            .filter(|(_, s)| s % row != 0)
            .try_fold(0i64, |reach, (n, s)| (s > 0).then(|| reach.saturating_add((n - 1).max(0).saturating_mul(s))))
    };
    let (between, others) = b.offset.minus(&a.offset).residue();
    if row < 2 || others % row != 0 {
        return false;
    }
    let between = between.rem_euclid(row);
    matches!((reach(a), reach(b)), (Some(x), Some(y)) if between > x && row - between > y)
}
