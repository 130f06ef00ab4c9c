//! Quantities of an item tabulated over all small counts.

use crate::Counts;
use crate::index::index;

/// Bytes that one table may take.
const MAX_TABLE_BYTES: usize = 8 << 20;

/// A quantity of an item that sees `minus` and `plus` through one value and the ties, given the
/// number of decisive votes, through another.
///
/// All of the model's quantities are of this form. It makes a table over n³ triples cheap: the
/// transcendental functions are needed for n² pairs only.
pub(crate) trait Quantity: Sync {
    type Side: Copy;
    type Tie: Copy;
    type Value: Copy + Send;

    fn side(&self, minus: f64, plus: f64) -> Self::Side;
    fn tie(&self, tie: f64, decisive: f64) -> Self::Tie;
    fn value(&self, side: Self::Side, tie: Self::Tie) -> Self::Value;

    fn of(&self, counts: Counts) -> Self::Value {
        self.value(
            self.side(counts.minus, counts.plus),
            self.tie(counts.tie, counts.minus + counts.plus),
        )
    }
}

/// The values of a quantity for all counts below `2^bits`.
#[derive(Debug, Clone)]
pub(crate) struct Table<V> {
    bits: u32,
    values: Vec<V>,
}

impl<V: Copy> Table<V> {
    /// Number of entries of a table for counts below `2^bits`, or `None` if that is too large.
    pub(crate) fn entries(bits: u32) -> Option<usize> {
        let entries = 1_usize.checked_shl(bits.checked_mul(3)?)?;
        (entries <= MAX_TABLE_BYTES / size_of::<V>()).then_some(entries)
    }

    /// The largest table, or one for counts below `2^bits` if that is smaller.
    pub(crate) fn fill_up_to<Q: Quantity<Value = V>>(quantity: &Q, bits: u32) -> Self {
        let bits = (0..bits.min(21)).rev().map(|b| b + 1).find(|&b| Self::entries(b).is_some());
        // With no bits there is one entry, for no votes.
        Self::fill(quantity, bits.unwrap_or(0))
    }

    pub(crate) fn fill<Q: Quantity<Value = V>>(quantity: &Q, bits: u32) -> Self {
        let n = 1_u32 << bits;
        let counts = |n: u32| (0..n).map(f64::from);
        let ties: Vec<Vec<Q::Tie>> = counts(n)
            .map(|tie| counts(2 * n).map(|decisive| quantity.tie(tie, decisive)).collect())
            .collect();
        let mut values = Vec::with_capacity(1 << (3 * bits));
        for minus in 0..n {
            let side = |plus| quantity.side(f64::from(minus), plus);
            let sides: Vec<Q::Side> = counts(n).map(side).collect();
            for by_decisive in &ties {
                let ties = by_decisive.iter().skip(index(minus.into()));
                values.extend(sides.iter().zip(ties).map(|(&s, &t)| quantity.value(s, t)));
            }
        }
        Self { bits, values }
    }

    pub(crate) const fn bits(&self) -> u32 {
        self.bits
    }

    /// The value for counts that are all below `2^bits`.
    #[inline]
    pub(crate) fn at(&self, minus: usize, tie: usize, plus: usize) -> V {
        self.values[(minus << (2 * self.bits)) | (tie << self.bits) | plus]
    }

    /// The values of a table of counts below 16.
    pub(crate) fn of_four_bits(&self) -> Option<&[V; 1 << 12]> {
        self.values.as_slice().try_into().ok()
    }

    /// The value for any counts, if they are in the table.
    #[inline]
    pub(crate) fn get(&self, counts: Counts) -> Option<V> {
        let [minus, tie, plus] = counts.as_whole()?;
        if (minus | tie | plus) >> self.bits != 0 {
            return None;
        }
        let [minus, tie, plus] = [minus, tie, plus].map(index);
        Some(self.at(minus, tie, plus))
    }
}
