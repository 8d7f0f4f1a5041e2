//! The macro that declares sample calls, defined before all families.

/// A table of operators. It is a static array: of a borrowed literal the compiler evaluates each declaration anew for every field that
/// another declaration takes over from it.
macro_rules! table {
    ($($def:expr),* $(,)?) => {{
        static TABLE: [restride_ir::OpDef; [$(stringify!($def)),*].len()] = [$($def),*];
        &TABLE
    }};
}

/// `Some` function that makes an operator's sample calls, with the feature `samples`; else `None`. Its names are those of the
/// file's module `samples`.
#[cfg(feature = "samples")]
macro_rules! samples {
    ($of:expr) => {
        Some({
            #[allow(unused_imports)]
            use self::samples::*;
            $of
        })
    };
}
/// `None`: the product is built without sample calls.
#[cfg(not(feature = "samples"))]
macro_rules! samples {
    ($of:expr) => {
        None
    };
}
