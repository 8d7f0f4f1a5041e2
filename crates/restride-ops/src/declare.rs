//! The macro that declares sample calls, defined before all families.

/// `Some` function that makes an operator's sample calls, with the feature `samples`; else `None`.
#[cfg(feature = "samples")]
macro_rules! samples {
    ($of:expr) => {
        Some($of)
    };
}
/// `None`: the product is built without sample calls.
#[cfg(not(feature = "samples"))]
macro_rules! samples {
    ($of:expr) => {
        None
    };
}
