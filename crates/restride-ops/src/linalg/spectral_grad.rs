//! Gradients of eigenvectors and singular vectors, of operators composed of them, and of the matrix exponential.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, op, rule};
use restride_ir::{Dim, Expr};

/// `t - tᴴ`: twice the rotation part of a change.
fn skew(t: T<'_>) -> T<'_> {
    t - t.mh()
}

fn diagonal(t: T<'_>) -> T<'_> {
    op!(t.cx(), "aten.diagonal.default", t, 0, -2, -1)
}

/// Replaces the diagonal of a matrix.
fn with_diagonal<'c>(t: T<'c>, d: T<'c>) -> T<'c> {
    op!(t.cx(), "aten.diagonal_scatter.default", t, d, 0, -2, -1)
}

/// Divides by `numbers`, whose diagonal is zero; the quotient's diagonal is zero.
fn apart<'c>(t: T<'c>, numbers: T<'c>) -> T<'c> {
    let ones = diagonal(numbers);
    let numbers = with_diagonal(numbers, ones.zeros_like() + 1.0);
    let quotient = t / numbers;
    with_diagonal(quotient, diagonal(quotient).zeros_like())
}

/// `_linalg_eigh(A, UPLO, compute_v)`: eigenvalues and eigenvectors of a Hermitian matrix.
fn eigh<'c>(c: &'c Cx<'c>) {
    let a = c.arg(0);
    let (l, v) = if c.is_none(2) || c.flag(2) {
        (c.result_at(0), c.result_at(1))
    } else {
        let made = c.calls("aten._linalg_eigh.default", &[a.operand(), c.raw(1), true.operand()]);
        let [l, v] = made[..] else { return };
        (l, v)
    };
    let vh = v.mh();
    let inner = match (c.opt_grad(0), c.opt_grad(1)) {
        (None, None) => return c.zero(0),
        (Some(g), None) => return c.set(0, (v * g.unsqueeze(-2)).matmul(vh)),
        (gl, Some(g)) => {
            // The vectors change only by rotations.
            let turned = skew(vh.matmul(g)) * 0.5;
            let inner = apart(turned, (l.unsqueeze(-2) - l.unsqueeze(-1)).to(v.dtype()));
            match gl {
                Some(g) => with_diagonal(inner, g.to(v.dtype())),
                None => inner,
            }
        }
    };
    c.set(0, v.matmul(inner).matmul(vh));
}

/// `linalg_eig(A)`: eigenvalues and unit eigenvectors of any square matrix.
fn eig<'c>(c: &'c Cx<'c>) {
    let (l, v) = (c.result_at(0), c.result_at(1));
    let vh = v.mh();
    let inner = match (c.opt_grad(0), c.opt_grad(1)) {
        (None, None) => return c.zero(0),
        (Some(g), None) => g.unsqueeze(-1) * vh,
        (gl, Some(g)) => {
            let along = vh.matmul(g);
            let norms = diagonal(along).real().to(v.dtype());
            let turned = along - vh.matmul(v * norms.unsqueeze(-2));
            let inner = apart(turned, (l.unsqueeze(-2) - l.unsqueeze(-1)).conj());
            let inner = match gl {
                Some(g) => with_diagonal(inner, g),
                None => inner,
            };
            inner.matmul(vh)
        }
    };
    c.set(0, op!(c, "aten.linalg_solve.default", vh, inner));
}

/// `_linalg_svd(A, full_matrices, compute_uv, driver)`: only vectors of singular values have a gradient.
fn svd<'c>(c: &'c Cx<'c>) {
    let a = c.arg(0);
    let (mut gu, gs, mut gvh) = (c.opt_grad(0), c.opt_grad(1), c.opt_grad(2));
    let vectors = gu.is_some() || gvh.is_some();
    let (m, n) = (a.size(-2), a.size(-1));
    let (u, s, vh) = if c.is_none(2) || c.flag(2) {
        let (u, s, vh) = (c.result_at(0), c.result_at(1), c.result_at(2));
        let narrow = |t: T<'c>, dim: i64| if c.flag(1) { t.slice(dim, Expr::Int(0), s.size(-1)) } else { t };
        gu = gu.map(|g| narrow(g, -1));
        gvh = gvh.map(|g| narrow(g, -2));
        (narrow(u, -1), s, narrow(vh, -2))
    } else {
        let all = c.calls("aten._linalg_svd.default", &[a.operand(), false.operand(), true.operand()]);
        let [u, s, vh] = all[..] else { return };
        (u, s, vh)
    };
    if !vectors {
        return match gs {
            Some(g) => c.set(0, (u * g.unsqueeze(-2)).matmul(vh)),
            None => c.zero(0),
        };
    }
    let (row, column) = (s.unsqueeze(-2), s.unsqueeze(-1));
    let squares = ((row - column) * (row + column)).to(u.dtype());
    let (row, column) = (row.to(u.dtype()), column.to(u.dtype()));
    let mut inner: Option<T<'c>> = None;
    let mut add = |t: T<'c>| inner = Some(inner.map_or(t, |i| i + t));
    let of_u = gu.map(|g| skew(u.mh().matmul(g)));
    if let Some(turned) = of_u {
        add(apart(turned, squares) * row);
    }
    if let Some(g) = gvh {
        add(column * apart(skew(vh.matmul(g.mh())), squares));
    }
    let Some(mut inner) = inner else { return };
    // The diagonal holds the gradient of the values and that of the common phase of both vectors.
    let mut along = gs.map(|g| g.to(u.dtype()));
    if let (Some(turned), true) = (of_u.filter(|_| gvh.is_some()), u.dtype().is_complex()) {
        let phases = diagonal(turned) / (s * 2.0);
        along = Some(along.map_or(phases, |g| g + phases));
    }
    if let Some(g) = along {
        inner = with_diagonal(inner, g);
    }
    let mut left = u.matmul(inner);
    let (taller, wider) = (m.constant().zip(n.constant()))
        .map_or((true, true), |(m, n)| (m.as_i64() > n.as_i64(), m.as_i64() < n.as_i64()));
    if let (Some(g), true) = (gu, taller) {
        let g = g / row;
        left = left + g - u.matmul(u.mh().matmul(g));
    }
    let mut out = left.matmul(vh);
    if let (Some(g), true) = (gvh, wider) {
        let g = g / column;
        out = out + u.matmul(g - g.matmul(vh.mh()).matmul(vh));
    }
    c.set(0, out);
}

/// `linalg_pinv.atol_rtol_tensor(A)`: the derivative at constant rank (Golub and Pereyra, 1973).
fn pinv<'c>(c: &'c Cx<'c>) {
    let (a, p, gh) = (c.arg(0), c.result(), c.grad().mh());
    let ph = p.mh();
    let taller = a.size(-2).constant().zip(a.size(-1).constant()).is_some_and(|(m, n)| m.as_i64() > n.as_i64());
    c.set(
        0,
        if taller {
            let k = p.matmul(gh);
            let pk = ph.matmul(k);
            -k.matmul(p).mh() + (gh - a.matmul(k)).matmul(p).matmul(ph) + pk - pk.matmul(p).matmul(a)
        } else {
            let k = gh.matmul(p);
            let kp = k.matmul(ph);
            -p.matmul(k).mh() + kp - a.matmul(p).matmul(kp) + ph.matmul(p).matmul(gh - k.matmul(a))
        },
    );
    // The tolerances select the rank and have no gradient.
    c.zero(1);
    c.zero(2);
}

/// Solves `H X + X H = R` for a Hermitian H, by its eigenvectors; undetermined components are zero.
fn sylvester<'c>(l: T<'c>, v: T<'c>, r: T<'c>) -> T<'c> {
    let c = r.cx();
    let sums = l.unsqueeze(-2) + l.unsqueeze(-1);
    let open = sums.is("eq", 0);
    let sums = op!(c, "aten.masked_fill.Scalar", sums, open, 1.0);
    let inner = (v.mh().matmul(r).matmul(v) / sums).except(open);
    v.matmul(inner).matmul(v.mh())
}

/// Eigenvalues and eigenvectors of a Hermitian matrix.
fn spectrum<'c>(h: T<'c>) -> Option<(T<'c>, T<'c>)> {
    let made = h.cx().calls("aten._linalg_eigh.default", &[h.operand(), "L".operand(), true.operand()]);
    let [l, v] = made[..] else { return None };
    Some((l, v))
}

/// `linalg_polar(A)`: `A = U H`.
fn polar<'c>(c: &'c Cx<'c>) {
    let (u, h) = (c.result_at(0), c.result_at(1));
    let Some((l, v)) = spectrum(h) else { return };
    // The change of U is the part of the gradient that H does not explain, divided by H.
    let over = c.opt_grad(0).map(|g| (g.matmul(v) / l.unsqueeze(-2)).matmul(v.mh()));
    let of_h = match (c.opt_grad(1), over) {
        (None, None) => return c.zero(0),
        (Some(g), None) => g,
        (None, Some(m)) => -u.mh().matmul(m),
        (Some(g), Some(m)) => g - u.mh().matmul(m),
    };
    let y = sylvester(l, v, (of_h + of_h.mh()) * 0.5);
    let through = u.matmul(h).matmul(y) * 2.0;
    c.set(0, over.map_or(through, |m| m + through));
}

/// `linalg_matrix_sqrth(A)`
fn sqrth<'c>(c: &'c Cx<'c>) {
    let Some((l, v)) = spectrum(c.result()) else { return };
    let g = c.grad();
    c.set(0, sylvester(l, v, (g + g.mh()) * 0.5));
}

/// `linalg_matrix_exp(A)`: the derivative is a block of the exponential of a block matrix (Mathias, 1996).
fn exp<'c>(c: &'c Cx<'c>) {
    let (a, n) = (c.arg(0).mh(), c.arg(0).size(-1));
    let above = c.cat(&[a, c.grad()], -1);
    let below = c.cat(&[a.zeros_like(), a], -1);
    let all = c.cat(&[above, below], -2).unary("aten.linalg_matrix_exp.default");
    c.set(0, all.slice(-2, Expr::Int(0), n.clone()).slice(-1, n.clone(), n.plus(&n)));
}

pub(crate) static GRADS: Rules = &[
    (&["_linalg_eigh"], rule!(eigh)),
    (&["linalg_eig"], rule!(eig)),
    (&["_linalg_svd"], rule!(svd)),
    (&["linalg_pinv.atol_rtol_tensor"], rule!(pinv)),
    (&["linalg_polar"], rule!(polar)),
    (&["linalg_matrix_sqrth"], rule!(sqrth)),
    (&["linalg_matrix_exp"], rule!(exp)),
];
