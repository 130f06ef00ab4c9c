/// A number as an index. What `usize` cannot hold, where it is narrower, is beyond the end of
/// everything: no index of anything else.
#[inline]
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A number as a float: exact up to 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "larger ones are rounded")]
pub(crate) const fn to_f64(number: u64) -> f64 {
    number as f64
}
