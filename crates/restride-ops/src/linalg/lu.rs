//! LU decompositions, their unpacked factors, and solves with them.

use crate::linalg::spectral::mh;
use crate::linalg::{
    self, Pieces, by_columns, check, factors_scratch, fields, finish_both, kernel, parts, picks, pivots, rows, with,
};
use crate::support::composite::composite;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef, Val};
use restride_kernels::linalg::{self as k, Field};
use smallvec::smallvec;

/// `linalg_lu_factor_ex(A, *, pivot, check_errors)`
fn lu_factor_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "torch.lu_factor", false)?;
    ensure!(a.bool(1)?, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    Ok(smallvec![by_columns(x.dtype, x.sizes()), pivots(x), rows(DType::I32, parts(x).0, &[])])
}
fields! {
    lu_factor_run => lu_factor_of;
}
fn lu_factor_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let mut info = Pieces::of(&c.outs[2], c.outs[2].numel());
    let all = linalg::factors::<T>(c, 0, |i, f| {
        info.put(i, &[f.info]);
        Ok(())
    })?;
    finish_both(all);
    if let Some(bad) = info.all.iter().find(|&&i| i != 0).filter(|_| c.args.bool(2).unwrap_or(false)) {
        return fail(format!(
            "torch.linalg.lu_factor: U[{bad},{bad}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        ));
    }
    info.finish();
    Ok(())
}

/// `lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)`; results not requested are empty.
fn unpack_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, p, data, pivots) = (a.tensor(0)?, a.tensor(1)?, a.bool(2)?, a.bool(3)?);
    check(x, "torch.lu_unpack", false)?;
    let (batch, m, n) = parts(x);
    let shorter = m.min(n);
    if pivots {
        ensure!(
            p.dtype == DType::I32,
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n\
             Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        );
        ensure!(
            p.sizes() == with(batch, &[shorter]),
            "lu_unpack: pivots of sizes {:?}, expected {:?}",
            p.sizes(),
            with(batch, &[shorter])
        );
    }
    let part = |asked: bool, rest: [i64; 2]| {
        if asked { fresh(x.dtype, &with(batch, &rest)) } else { fresh(x.dtype, &[0]) }
    };
    Ok(smallvec![part(pivots, [m, m]), part(data, [m, shorter]), part(data, [shorter, n])])
}

fn unpack_run(c: &Call<'_>) -> Result<()> {
    let (data, pivots) = (c.args.bool(2)?, c.args.bool(3)?);
    let out = |asked: bool, i: usize| asked.then(|| &c.outs[i]);
    ran(k::lu_unpack(c.args.tensor(0)?, c.args.tensor(1)?, out(pivots, 0), out(data, 1), out(data, 2)))
}

fn unpack_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let outs: Vec<_> = outs.iter().map(stored).collect();
    Ok(k::lu_unpack_room(stored(a.tensor(0)?), stored(a.tensor(1)?), &outs))
}

/// `linalg_lu(A, *, pivot)`
fn lu(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let made = emit_all!(e, "aten.linalg_lu_factor_ex.default", pass(a, 0), pass(a, 1), false)?;
    let [lu, pivots, _] = made[..] else { return fail("linalg_lu_factor_ex has three results") };
    emit_all!(e, "aten.lu_unpack.default", lu, pivots, true, true)
}

/// `linalg_lu_solve(LU, pivots, B, *, left, adjoint)`
fn lu_solve(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    solve(e, (*a.tensor(0)?, *a.tensor(1)?), *a.tensor(2)?, a.bool(3)?, a.bool(4)?)
}

/// `lu_solve(self, LU_data, LU_pivots)`
fn old_lu_solve(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    solve(e, (*a.tensor(1)?, *a.tensor(2)?), *a.tensor(0)?, true, false)
}

/// Solves `A X = B` (`X A = B` unless `left`) with the factors of A; with `adjoint`, Aᴴ replaces A.
fn solve(e: &mut dyn Emit, (lu, pivots): (Val, Val), b: Val, left: bool, adjoint: bool) -> Vals {
    let (own, right) = (sizes(e, lu), sizes(e, b));
    ensure!(own.len() >= 2 && right.len() >= 2, "linalg.lu_solve: expected matrices, got {own:?} and {right:?}");
    ensure!(own[own.len() - 2] == own[own.len() - 1], "linalg.lu_solve: LU must be square, got {own:?}");
    let (n, side) = (own[own.len() - 1], right[right.len() - 1 - usize::from(left)]);
    ensure!(n == side, "linalg.lu_solve: Incompatible shapes of LU and B for the equation: {own:?} and {right:?}");
    let parts = emit_all!(e, "aten.lu_unpack.default", lu, pivots, true, true)?;
    let [p, l, u] = parts[..] else { return fail("lu_unpack has three results") };
    let turned = |e: &mut dyn Emit, t: Val| emit!(e, "aten.transpose.int", t, -2, -1);
    let triangle = |e: &mut dyn Emit, t: Val, b: Val, upper: bool| {
        emit!(e, "aten.linalg_solve_triangular.default", t, b, upper, true, false)
    };
    // `X A = B` is `Aᴴ Xᴴ = Bᴴ`: so the result is column-major from the left and row-major from the right, as in PyTorch.
    let (b, adjoint) = if left { (b, adjoint) } else { (mh(e, b)?, !adjoint) };
    let x = if adjoint {
        // Uᴴ Lᴴ Pᵀ X = B
        let (u, l) = (mh(e, u)?, mh(e, l)?);
        let y = triangle(e, u, b, false)?;
        let y = triangle(e, l, y, true)?;
        let (y, p) = (turned(e, y)?, turned(e, p)?);
        let x = emit!(e, "aten.matmul.default", y, p)?;
        turned(e, x)?
    } else {
        // The inverse of a permutation is its transpose.
        let p = turned(e, p)?;
        let b = emit!(e, "aten.matmul.default", p, b)?;
        let y = triangle(e, l, b, false)?;
        triangle(e, u, y, true)?
    };
    Ok(smallvec![if left { x } else { mh(e, x)? }])
}

/// `_lu_with_info(self, pivot, check_errors)`
fn lu_with_info(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    emit_all!(e, "aten.linalg_lu_factor_ex.default", pass(a, 0), pass(a, 1), false)
}

picks! {
    lu_factor => "aten.linalg_lu_factor_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!(lu_factor_infer, lu_factor_run, factors_scratch, factor_samples(), "linalg_lu_factor_ex").failing(),
    composite!(lu_factor, factor_samples(), "linalg_lu_factor").failing(),
    close("lu_unpack", unpack_infer, unpack_run, unpack_scratch, samples!(unpack_samples)).failing(),
    composite!(lu_with_info, factor_samples(), "_lu_with_info"),
    composite!(lu, matrix_samples(), "linalg_lu"),
    composite!(lu_solve, solve_samples(false), "linalg_lu_solve").failing(),
    composite!(old_lu_solve, solve_samples(true), "lu_solve").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::linalg::samples::*;

    /// Square, tall and wide sample matrices.
    pub(crate) fn matrix_samples() -> Vec<Sample> {
        let d = DType::F32;
        vec![
            sample![regular(d, &[], 4, 1)],
            sample![tensor(DType::F64, &[2, 5, 3], 3)],
            sample![transposed(d, &[2, 3, 5], 4)],
            sample![regular(DType::F64, &[2], 3, 5)],
            sample![tensor(DType::C64, &[2, 3, 4], 6)],
            sample![tensor(DType::C128, &[0, 3], 6)],
        ]
    }

    /// Sample factors with valid row exchanges.
    pub(crate) fn factors(d: DType, batch: &[i64], m: i64, n: i64, seed: u64) -> (RawTensor, RawTensor) {
        let lu = if m == n { regular(d, batch, n, seed) } else { tensor(d, &with(batch, &[m, n]), seed) };
        let shorter = m.min(n);
        let count = batch.iter().product::<i64>() * shorter;
        // Exchanges each row with itself or a lower row.
        let rows: Vec<i32> = (0..count).map(|i| (i % shorter + i * 5 % (m - i % shorter) + 1) as i32).collect();
        (lu, RawTensor::from_slice(&rows, &with(batch, &[shorter])))
    }

    pub(crate) fn unpack_samples() -> Vec<Sample> {
        let d = DType::F32;
        let mut out = Vec::new();
        for (lu, pivots) in [
            factors(d, &[], 4, 4, 1),
            factors(DType::F64, &[2], 5, 3, 2),
            factors(d, &[2, 2], 3, 5, 3),
            factors(DType::F64, &[], 3, 3, 4),
            factors(DType::C64, &[2], 4, 3, 5),
        ] {
            out.push(sample![&lu, &pivots]);
            out.push(sample![&lu, &pivots, true, false]);
            out.push(sample![lu, pivots, false, true]);
        }
        let (_, pivots) = factors(d, &[], 4, 4, 1);
        out.push(sample![transposed(d, &[4, 4], 3), &pivots]);
        out.push(sample![RawTensor::zeros(d, Layout::contiguous(&[3, 3])), pivots]);
        out
    }

    /// Sample calls with all values of `left` and `adjoint`; `plain` makes those of `lu_solve`, which has neither.
    pub(crate) fn solve_samples(plain: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::C64, DType::C128] {
            for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
                let (lu, pivots) = factors(d, &[2], 4, 4, 1);
                let b = tensor(d, if left { &[2, 4, 3] } else { &[2, 3, 4] }, 5);
                match (plain, left && !adjoint) {
                    (true, true) => out.push(sample![b, lu, pivots]),
                    (true, false) => {}
                    (false, _) => out.push(sample![lu, pivots, b, left, adjoint]),
                }
            }
            let (lu, pivots) = factors(d, &[], 3, 3, 2);
            let b = tensor(d, &[2, 3, 2], 6);
            out.push(if plain { sample![b, lu, pivots] } else { sample![lu, pivots, b] });
        }
        out
    }
}
