use crate::Counts;

/// Samples of an item and channel are numbered below this.
pub const MAX_SAMPLES: u32 = 4096;

/// What 64 samples voted: a bit for each sample and label, in label order. Of a tally that does not
/// look at samples, three counts.
pub type Planes = [u64; 3];

/// Samples of one item that came with different votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Row of the item in the order of ids.
    pub row: usize,
    /// Channel of the sample.
    pub channel: u32,
    /// The sample.
    pub sample: u32,
    /// Which labels it came with, in label order.
    pub labels: [bool; 3],
}

/// The votes of samples that came with one label alone.
pub(crate) fn count(planes: Planes) -> Counts {
    let clear = !conflicts(planes);
    let [minus, tie, plus] = planes.map(|plane| u64::from((plane & clear).count_ones()));
    Counts::new(minus, tie, plus)
}

/// A bit for each sample that came with several.
pub(crate) const fn conflicts([minus, tie, plus]: Planes) -> u64 {
    (minus & tie) | (minus & plus) | (tie & plus)
}
