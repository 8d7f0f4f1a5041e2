//! Sample calls in declarations: a macro that comes before all families.

/// `Some` function that makes the sample calls of an operator, with the feature `samples`; else `None`.
#[cfg(feature = "samples")]
macro_rules! samples {
    ($of:expr) => {
        Some($of)
    };
}
/// `None`: without the feature `samples` the product has no sample calls.
#[cfg(not(feature = "samples"))]
macro_rules! samples {
    ($of:expr) => {
        None
    };
}
