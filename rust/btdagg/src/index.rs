/// A number as an index. What `usize` cannot hold, where it is narrower, is beyond the end of
/// everything: no index of anything else.
#[inline]
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
