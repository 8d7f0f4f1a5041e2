//! Gradients of matrix functions, distances, Fourier transforms and window operators.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule, wrap};
use restride_ir::{DType, Dim, Expr};

fn inverse<'c>(c: &'c Cx<'c>) {
    let inv = c.result().mh();
    c.set(0, -inv.matmul(c.grad()).matmul(inv));
}

/// The inverse of a matrix, conjugated and transposed.
fn inv_h<'c>(a: T<'c>) -> T<'c> {
    op!(a.cx(), "aten.linalg_inv_ex.default", a).mh()
}

/// Adds two dimensions so that each scalar multiplies its matrix.
fn each(t: T<'_>) -> T<'_> {
    t.unsqueeze(-1).unsqueeze(-1)
}

/// Gradient of `det`: solves `Aᴴ X = d I`. A zero pivot counts as a tiny one, because the derivative is continuous.
fn det<'c>(c: &'c Cx<'c>) {
    let a = c.arg(0);
    let made = c.calls("aten.linalg_lu_factor_ex.default", &[a.operand()]);
    let [lu, pivots, _] = made[..] else { return };
    let diagonal = op!(c, "aten.diagonal.default", lu, 0, -2, -1);
    let least = if matches!(a.dtype(), DType::F32 | DType::C64) { 1e-10 } else { 1e-100 };
    let diagonal = op!(c, "aten.masked_fill.Scalar", diagonal, diagonal.is("eq", 0), least);
    let lu = op!(c, "aten.diagonal_scatter.default", lu, diagonal, 0, -2, -1);
    let d = each(c.grad() * c.result().conj());
    let eye = op!(c, "aten.eye.default", a.size(-1), a.dtype());
    c.set(0, op!(c, "aten.linalg_lu_solve.default", lu, pivots, d * eye, true, true));
}

/// The logarithm's gradient acts along the real axis, the sign's along the imaginary one; a real sign is constant.
fn slogdet<'c>(c: &'c Cx<'c>) {
    let a = c.arg(0);
    let mut total: Option<T<'c>> = None;
    if let Some(g) = c.opt_grad(1) {
        total = Some(g.to(a.dtype()));
    }
    if let (Some(g), true) = (c.opt_grad(0), a.dtype().is_complex()) {
        let turned = (g.conj() * c.result_at(0)).imag();
        let turned = turned.zeros_like().with_imag(-turned);
        total = Some(total.map_or(turned, |t| t + turned));
    }
    match total {
        Some(g) => c.set(0, each(g) * inv_h(a)),
        None => c.zero(0),
    }
}

/// `_linalg_solve_ex(A, B, left)`
fn solve<'c>(c: &'c Cx<'c>) {
    let (a, b, x, g) = (c.arg(0), c.arg(1), c.result(), c.grad());
    let left = c.is_none(2) || c.flag(2);
    let vector = left && b.rank() + 1 == a.rank() && {
        let (sa, sb) = (a.sizes(), b.sizes());
        b.rank() == 1 || sa[..sa.len() - 1].iter().zip(&sb).all(|(m, n)| m.equals(n) == Some(true))
    };
    let wide = |t: T<'c>| if vector { t.unsqueeze(-1) } else { t };
    let gb = c.call_at("aten._linalg_solve_ex.default", &[a.mh().operand(), wide(g).operand(), left.operand()], 0);
    c.give(1, || if vector { gb.squeeze(-1) } else { gb });
    c.give(0, || {
        let x = wide(x).mh();
        if left { -gb.matmul(x) } else { -x.matmul(gb) }
    });
}

/// `linalg_solve_triangular(A, B, upper, left, unitriangular)`
fn solve_triangular<'c>(c: &'c Cx<'c>) {
    let (upper, left, unit) = (c.flag(2), c.is_none(3) || c.flag(3), c.flag(4));
    let gb = op!(c, "aten.linalg_solve_triangular.default", c.arg(0).mh(), c.grad(), !upper, left, unit);
    c.give(1, || gb);
    c.give(0, || {
        let x = c.result().mh();
        let g = if left { -gb.matmul(x) } else { -x.matmul(gb) };
        let off = i64::from(unit);
        if upper { op!(c, "aten.triu.default", g, off) } else { op!(c, "aten.tril.default", g, -off) }
    });
}

/// A strict triangle plus its mirror image, with the real part of the diagonal between them.
fn mirrored<'c>(strict: T<'c>, diagonal_of: T<'c>) -> T<'c> {
    let c = strict.cx();
    let diagonal = op!(c, "aten.diagonal.default", diagonal_of, 0, -2, -1).real().to(strict.dtype());
    op!(c, "aten.diagonal_scatter.default", strict + strict.mh(), diagonal, 0, -2, -1)
}

/// `linalg_cholesky_ex(A, upper)`: the gradient of a Hermitian matrix, whichever triangle the operator reads.
fn cholesky<'c>(c: &'c Cx<'c>) {
    let upper = c.flag(1);
    let turn = |t: T<'c>| if upper { t.mh() } else { t };
    let (l, g) = (turn(c.result()), turn(c.grad()));
    let phi = l.mh().matmul(g);
    let phi = mirrored(lower(phi), phi) * 0.5;
    let half = op!(c, "aten.linalg_solve_triangular.default", l.mh(), phi, true, true, false);
    c.set(0, op!(c, "aten.linalg_solve_triangular.default", l, half, false, false, false));
}

/// The sum of a matrix and its mirror image.
fn both(t: T<'_>) -> T<'_> {
    t + t.mh()
}

/// `cholesky_inverse(L, upper)`: the gradient of all elements of the factor, as in PyTorch.
fn cholesky_inverse<'c>(c: &'c Cx<'c>) {
    let (l, inverse) = (c.arg(0), c.result());
    let common = inverse.matmul(both(c.grad()).matmul(inverse));
    c.set(0, if c.flag(1) { -l.matmul(common) } else { -common.matmul(l) });
}

/// `cholesky_solve(B, L, upper)`: the gradient of all elements of the factor, as in PyTorch.
fn cholesky_solve<'c>(c: &'c Cx<'c>) {
    let l = c.arg(1);
    let gb = op!(c, "aten.cholesky_solve.default", c.grad(), l, c.flag(2));
    c.give(0, || gb);
    c.give(1, || {
        let common = both(gb.matmul(c.result().mh()));
        if c.flag(2) { -l.matmul(common) } else { -common.matmul(l) }
    });
}

/// Householder vectors: the part below the diagonal, with ones on the diagonal.
fn vectors<'c>(x: T<'c>) -> T<'c> {
    let c = x.cx();
    op!(c, "aten.tril.default", x, -1) + op!(c, "aten.eye.m", x.size(-2), x.size(-1), x.dtype())
}

/// Vector `j`, as a column, and its factor.
fn reflection<'c>(v: T<'c>, tau: T<'c>, j: i64) -> (T<'c>, T<'c>) {
    let one = |t: T<'c>| t.slice(-1, Expr::Int(j), Expr::Int(j + 1));
    (one(v), one(tau).unsqueeze(-1))
}

/// The number of reflections, which must be known.
fn reflections<'c>(c: &'c Cx<'c>, tau: T<'c>) -> i64 {
    tau.size(-1).constant().map_or_else(
        || {
            c.fail("the gradient of a symbolic number of reflections");
            0
        },
        |n| n.as_i64(),
    )
}

/// `linalg_householder_product(input, tau)`, composed of one reflection after the other.
fn householder_product<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (x, tau) = (c.arg(0), c.arg(1));
    let v = vectors(x);
    let eye = op!(c, "aten.eye.m", x.size(-2), x.size(-1), x.dtype());
    let mut q = eye.expand(x.sizes());
    for j in (0..reflections(c, tau)).rev() {
        let (v, tau) = reflection(v, tau, j);
        q = q - (tau * v).matmul(v.mh().matmul(q));
    }
    vec![q]
}

/// `ormqr(input, tau, other, left, transpose)`, composed of one reflection after the other.
fn ormqr<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (x, tau, mut out) = (c.arg(0), c.arg(1), c.arg(2));
    let (left, adjoint) = (c.is_none(3) || c.flag(3), c.flag(4));
    let v = vectors(x);
    let n = reflections(c, tau);
    for i in 0..n {
        let (v, tau) = reflection(v, tau, if left == adjoint { i } else { n - 1 - i });
        let tau = if adjoint { tau.conj() } else { tau };
        out = if left { out - (tau * v).matmul(v.mh().matmul(out)) } else { out - out.matmul(tau * v).matmul(v.mh()) };
    }
    vec![out]
}

/// `linalg_qr(A, mode)`
fn qr<'c>(c: &'c Cx<'c>) {
    let a = c.arg(0);
    let (m, n) = (a.size(-2), a.size(-1));
    match c.str(1).unwrap_or("reduced") {
        "reduced" => {}
        "complete" if n.less(&m) == Some(false) => {}
        how => return c.fail(format!("the gradient of a QR decomposition with mode='{how}' of a {m} x {n} matrix")),
    }
    let (q, r) = (c.result_at(0), c.result_at(1));
    let (mut gq, gr) = (c.opt_grad(0), c.opt_grad(1));
    // The leading columns determine Q; the remaining columns are Q times the rest of R.
    let (k, wide) = (m.smaller(&n), m.less(&n) != Some(false));
    let later = |t: T<'c>| t.slice(-1, k.clone(), n.clone());
    let first = |t: T<'c>| if wide { t.slice(-1, Expr::Int(0), k.clone()) } else { t };
    let mut rest = None;
    if wide {
        rest = Some(gr.map_or_else(|| later(a).zeros_like(), |g| q.matmul(later(g))));
        if let Some(g) = gr {
            let more = later(a).matmul(later(g).mh());
            gq = Some(gq.map_or(more, |g| g + more));
        }
    }
    let (r, gr) = (first(r), gr.map(first));
    let along = match (gq, gr) {
        (Some(gq), Some(gr)) => gr.matmul(r.mh()) - q.mh().matmul(gq),
        (None, Some(gr)) => gr.matmul(r.mh()),
        (Some(gq), None) => -q.mh().matmul(gq),
        (None, None) => return c.zero(0),
    };
    let both = q.matmul(mirrored(op!(c, "aten.triu.default", along, 1), along));
    let g = gq.map_or(both, |gq| both + gq);
    let g = op!(c, "aten.linalg_solve_triangular.default", r.mh(), g, false, false, false);
    c.set(0, rest.map_or(g, |rest| c.cat(&[g, rest], -1)));
}

/// Pads a triangle with zeros to these sizes.
fn padded<'c>(t: T<'c>, rows: &Expr, cols: &Expr) -> T<'c> {
    let more = |to: &Expr, dim: i64| to.minus(&t.size(dim));
    let (down, right) = (more(rows, -2), more(cols, -1));
    if down.is(0) && right.is(0) {
        return t;
    }
    op!(t.cx(), "aten.constant_pad_nd.default", t, vec![Expr::Int(0), right, Expr::Int(0), down])
}

fn upper(t: T<'_>) -> T<'_> {
    op!(t.cx(), "aten.triu.default", t, 0)
}

/// The strict lower triangle.
fn lower(t: T<'_>) -> T<'_> {
    op!(t.cx(), "aten.tril.default", t, -1)
}

/// `lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)`: the permutation has no gradient.
fn lu_unpack<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let (rows, cols) = (x.size(-2), x.size(-1));
    if !c.is_none(2) && !c.flag(2) {
        return c.zero(0);
    }
    let parts = [c.opt_grad(1).map(lower), c.opt_grad(2).map(upper)];
    match parts.into_iter().flatten().map(|t| padded(t, &rows, &cols)).reduce(|a, b| a + b) {
        Some(g) => c.set(0, g),
        None => c.zero(0),
    }
}

/// `linalg_lu_factor_ex(A, pivot, check_errors)`: from `PᵀA = L U`, as in PyTorch. The leading rows of L and the leading columns of U
/// are square matrices. If A is not square, L has more rows or U has more columns: these follow from the square matrices.
fn lu_factor<'c>(c: &'c Cx<'c>) {
    let (lu, g) = (c.result(), c.grad());
    let (m, n) = (lu.size(-2), lu.size(-1));
    let k = m.smaller(&n);
    let parts =
        c.calls("aten.lu_unpack.default", &[lu.operand(), c.result_at(1).operand(), true.operand(), true.operand()]);
    let [p, l, u] = parts[..] else { return };
    let first = |t: T<'c>, dim: i64| {
        if t.size(dim).equals(&k) == Some(true) { t } else { t.slice(dim, Expr::Int(0), k.clone()) }
    };
    let (gl, gu) = (lower(first(g, -1)), upper(first(g, -2)));
    let (l1, u1, gl1, gu1) = (first(l, -2), first(u, -1), first(gl, -2), first(gu, -1));
    // Solve with Uᵀ from the right, and with Lᵀ from the left.
    let by_u = |t: T<'c>| op!(c, "aten.linalg_solve_triangular.default", u1.mh(), t, false, false, false);
    let by_l = |t: T<'c>| op!(c, "aten.linalg_solve_triangular.default", l1.mh(), t, true, true, true);
    let (mut below, mut above) = (l1.mh().matmul(gl1), gu1.matmul(u1.mh()));
    let (mut right, mut down) = (None, None);
    if m.less(&n) != Some(false) {
        let rest = |t: T<'c>| t.slice(-1, k.clone(), n.clone());
        below = below - rest(gu).matmul(rest(u).mh());
        right = Some(by_l(rest(gu)));
    }
    if n.less(&m) != Some(false) {
        let rest = |t: T<'c>| t.slice(-2, k.clone(), m.clone());
        above = above - rest(l).mh().matmul(rest(gl));
        down = Some(by_u(rest(gl)));
    }
    let inner = by_l(by_u(lower(below) + upper(above)));
    let inner = right.map_or(inner, |t| c.cat(&[inner, t], -1));
    let inner = down.map_or(inner, |t| c.cat(&[inner, padded(t, &m.minus(&k), &n)], -2));
    c.set(0, p.matmul(inner));
}

/// `cdist(x1, x2, p)`: the derivative of a p-norm along each difference.
fn cdist<'c>(c: &'c Cx<'c>) {
    let p = c.float(2);
    let d = c.arg(0).unsqueeze(-2) - c.arg(1).unsqueeze(-3);
    let (r, g) = (c.result().unsqueeze(-1), c.grad().unsqueeze(-1));
    let zero = r.is("eq", 0);
    let size = d.unary("aten.abs.default");
    let along = if p == 0.0 {
        c.zero(0);
        return c.zero(1);
    } else if p == 1.0 {
        d.sign() * g
    } else if p == 2.0 {
        d * (g / r).except(zero)
    } else if p.is_infinite() {
        d.sign() * g.expand(d.sizes()).only(size.than("eq", r))
    } else {
        d.sign() * size.pow(p - 1.0).except(size.is("eq", 0)) * (g / r.pow(p - 1.0)).except(zero)
    };
    c.give(0, || along.sum(vec![-2], false));
    c.give(1, || -along.sum(vec![-3], false));
}

/// `pdist(x, p)`: norms of the differences of all pairs of rows.
fn pdist<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (x, n) = (c.arg(0), c.arg(0).size(0));
    let pairs = op!(c, "aten.triu_indices.default", &n, n.clone(), 1);
    let row = |k: i64| op!(c, "aten.index_select.default", x, 0, pairs.select(0, k));
    vec![op!(c, "aten.linalg_vector_norm.default", row(0) - row(1), c.raw(1), [-1])]
}

/// `_fft_r2c(self, dim, normalization, onesided)`
fn r2c<'c>(c: &'c Cx<'c>) {
    let (x, mut g) = (c.arg(0), c.grad());
    if c.flag(3) {
        let dims = c.ints(1);
        let rank = x.rank();
        let last = wrap(*dims.last().unwrap_or(&-1), rank);
        let more = x.size(last as i64).minus(&g.size(last as i64));
        let mut pad = vec![Expr::Int(0); 2 * (rank - last)];
        if let Some(end) = pad.last_mut() {
            *end = more;
        }
        g = op!(c, "aten.constant_pad_nd.default", g, pad);
    }
    c.set(0, op!(c, "aten._fft_c2c.default", g, c.raw(1), c.raw(2), false).real());
}

/// `_fft_c2r(self, dim, normalization, last_dim_size)`: each inner frequency also stands for its conjugate.
fn c2r<'c>(c: &'c Cx<'c>) {
    let g = op!(c, "aten._fft_r2c.default", c.grad(), c.raw(1), c.raw(2), true);
    let last = *c.ints(1).last().unwrap_or(&-1);
    let twice = c.grad().size(last).minus(&g.size(last));
    if twice.is(0) {
        return c.set(0, g);
    }
    let end = twice.plus(&Expr::Int(1));
    let inner = g.slice(last, Expr::Int(1), end.clone()) * 2.0;
    c.set(0, op!(c, "aten.slice_scatter.default", g, inner, last, 1, end));
}

fn im2col<'c>(c: &'c Cx<'c>) {
    let sizes = c.arg(0).sizes();
    let image = sizes[sizes.len().saturating_sub(2)..].to_vec();
    c.set(0, op!(c, "aten.col2im.default", c.grad(), image, c.raw(1), c.raw(2), c.raw(3), c.raw(4)));
}

fn col2im<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.im2col.default", c.grad(), c.raw(2), c.raw(3), c.raw(4), c.raw(5)));
}

/// `take_along_dim` as `gather` of broadcast operands.
fn take_along_dim<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    // Negative indices count from the end.
    let n = if c.is_none(2) { x.numel() } else { x.size(c.int(2)) };
    let at = op!(c, "aten.remainder.Scalar", c.arg(1), n);
    if c.is_none(2) {
        let flat = |t: T<'c>| t.reshape(vec![t.numel()]);
        return vec![op!(c, "aten.gather.default", flat(x), 0, flat(at))];
    }
    let dim = wrap(c.int(2), x.rank());
    let (sx, si) = (x.sizes(), at.sizes());
    let common = |own: &[Expr], k: usize| {
        if k == dim {
            own[k].clone()
        } else if sx[k].is(1) {
            si[k].clone()
        } else {
            sx[k].clone()
        }
    };
    let wide = |own: &[Expr]| (0..own.len()).map(|k| common(own, k)).collect::<Vec<_>>();
    vec![op!(c, "aten.gather.default", x.expand(wide(&sx)), dim as i64, at.expand(wide(&si)))]
}

pub(crate) static GRADS: Rules = &[
    (&["linalg_inv_ex"], rule!(inverse)),
    (&["_linalg_det"], rule!(det)),
    (&["_linalg_slogdet"], rule!(slogdet)),
    (&["_linalg_solve_ex"], rule!(solve)),
    (&["linalg_solve_triangular"], rule!(solve_triangular)),
    (&["linalg_cholesky_ex"], rule!(cholesky)),
    (&["cholesky_inverse"], rule!(cholesky_inverse)),
    (&["cholesky_solve"], rule!(cholesky_solve)),
    (&["linalg_householder_product"], form!(householder_product)),
    (&["ormqr"], form!(ormqr)),
    (&["linalg_qr"], rule!(qr)),
    (&["lu_unpack"], rule!(lu_unpack)),
    (&["linalg_lu_factor_ex"], rule!(lu_factor)),
    (&["cdist", "_cdist_forward"], rule!(cdist)),
    (&["pdist", "_pdist_forward"], form!(pdist)),
    (&["_fft_c2c"], rule!(|c| c.set(0, op!(c, "aten._fft_c2c.default", c.grad(), c.raw(1), c.raw(2), !c.flag(3))))),
    (&["_fft_r2c"], rule!(r2c)),
    (&["_fft_c2r"], rule!(c2r)),
    (&["im2col"], rule!(im2col)),
    (&["col2im"], rule!(col2im)),
    (&["take_along_dim"], form!(take_along_dim)),
    (&["unfold_backward"], rule!(|c| c.set(0, op!(c, "aten.unfold.default", c.grad(), c.raw(2), c.raw(3), c.raw(4))))),
];
