//! `_linalg_check_errors`: the check of a factorisation's status, with PyTorch's messages.

use restride_ir::{Call, Exactness, Kernel, OpDef, OpError};
use smallvec::SmallVec;

fn check(c: &Call<'_>) -> Result<(), OpError> {
    let (infos, api, is_matrix) = (c.args.tensor(0)?, c.args.str(1)?, c.args.bool(2)?);
    let sizes = infos.sizes().to_vec();
    let mut index = vec![0i64; sizes.len()];
    for at in 0..infos.numel() {
        let info = infos.get(&index).as_i64();
        if info != 0 {
            let batch = if is_matrix { String::new() } else { format!(": (Batch element {at})") };
            return Err(OpError::new(format!("{api}{batch}: {}", words(api, info))));
        }
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Ok(())
}

fn words(api: &str, info: i64) -> String {
    let ill = |values: &str| {
        format!(
            "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated \
             {values} (error code: {info})."
        )
    };
    match api {
        _ if info == -4 && api.contains("svd") => {
            "The algorithm failed to converge because the input matrix contained non-finite values.".into()
        }
        _ if info < 0 => format!("Argument {} has illegal value.", -info),
        _ if api.contains("inv") => format!(
            "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
        ),
        _ if api.contains("solve") => "The solver failed because the input matrix is singular.".into(),
        _ if api.contains("cholesky") => format!(
            "The factorization could not be completed because the input is not positive-definite (the leading minor of \
             order {info} is not positive-definite)."
        ),
        _ if api.contains("svd") => ill("singular values"),
        _ if api.contains("eig") || api.contains("syevd") => ill("eigenvalues"),
        _ if api.contains("lstsq") => format!(
            "The least squares solution could not be computed because the input matrix does not have full rank (error \
             code: {info})."
        ),
        _ => format!("U[{info},{info}] is zero and using it on lu_solve would result in a division by zero."),
    }
}

pub(crate) static OPS: &[OpDef] = table![OpDef {
    infer: Some(|_| Ok(SmallVec::new())),
    kernel: Kernel::Fixed(check),
    effectful: true,
    exactness: Exactness::Exact,
    ..OpDef::new("_linalg_check_errors")
}];

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_words_are_pytorchs() {
        assert!(words("linalg.inv", 2).starts_with("The diagonal element 2 is zero"));
        assert!(words("torch.linalg.solve", 1).starts_with("The solver failed"));
        assert!(words("linalg.cholesky", 3).contains("minor of order 3 is"));
        assert!(words("linalg.svd", -4).contains("non-finite"));
    }
}
