//! The overloads with a generator. Exported programs give none: each is the overload without it.

use crate::support::composite::composite;
use crate::support::{ValArgs, Vals};
use restride_ir::{Emit, Exactness, OpDef};

/// Declares an overload with a generator at a position as a call of another with the same other arguments.
macro_rules! without_generator {
    ($schema:literal, $of:literal, $at:literal, $samples:expr) => {{
        fn composed(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            let mut args = a.0.to_vec();
            args.remove($at);
            e.call(concat!("aten.", $of), &args)
        }
        OpDef { random: true, exactness: Exactness::Random, ..composite!(composed, with_none($samples, $at), $schema) }
    }};
}

pub(crate) static OPS: &[OpDef] = table![
    without_generator!("rand.generator", "rand.default", 1, sized_samples()),
    without_generator!("randn.generator", "randn.default", 1, sized_samples()),
    without_generator!("rand_like.generator", "rand_like.default", 1, likes()),
    without_generator!("randn_like.generator", "randn_like.default", 1, likes()),
    without_generator!("randint.generator", "randint.default", 2, randints(false)),
    without_generator!("randint.low_generator", "randint.low", 3, randints(true)),
    without_generator!("randint_like.generator", "randint_like.default", 2, randint_likes(false)),
    without_generator!("randint_like.Tensor_generator", "randint_like.Tensor", 2, s_randint_like_tensor()).failing(),
    without_generator!("randint_like.low_generator_dtype", "randint_like.low_dtype", 3, randint_likes(true)),
    without_generator!("randperm.generator", "randperm.default", 1, permutations()),
];

#[cfg(feature = "samples")]
mod samples {
    pub(super) use crate::random::integers::samples::*;
    pub(super) use crate::random::samples::{likes, sized_samples};
    use crate::support::samples::*;

    /// Calls with no generator at a position.
    pub(super) fn with_none(calls: Vec<Sample>, at: usize) -> Vec<Sample> {
        let put = |mut call: Sample| {
            call.args.insert(at, restride_ir::Arg::None);
            call
        };
        calls.into_iter().map(put).collect()
    }
}
