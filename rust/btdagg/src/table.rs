//! Quantities of an item tabulated over all small counts.

use crate::index::index;
use crate::quantities::{Decisions, Probabilities};
use crate::{Counts, Label, Model, features};

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

    fn side(&self, minus: u64, plus: u64) -> Self::Side;
    fn tie(&self, tie: u64, decisive: f64) -> Self::Tie;
    fn value(&self, side: Self::Side, tie: Self::Tie) -> Self::Value;

    fn of(&self, counts: Counts) -> Self::Value {
        self.value(
            self.side(counts.minus, counts.plus),
            self.tie(counts.tie, features::decisive(counts.minus, counts.plus)),
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
        let n = 1_u64 << bits;
        let ties: Vec<Vec<Q::Tie>> = (0..n)
            .map(|tie| (0..2 * n).map(|k| quantity.tie(tie, features::decisive(k, 0))).collect())
            .collect();
        let mut values = Vec::with_capacity(1 << (3 * bits));
        for minus in 0..n {
            let sides: Vec<Q::Side> = (0..n).map(|plus| quantity.side(minus, plus)).collect();
            for by_decisive in &ties {
                let ties = by_decisive.iter().skip(index(minus));
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
    fn get(&self, counts: Counts) -> Option<V> {
        let Counts { minus, tie, plus } = counts;
        if (minus | tie | plus) >> self.bits != 0 {
            return None;
        }
        let [minus, tie, plus] = [minus, tie, plus].map(index);
        Some(self.at(minus, tie, plus))
    }
}

/// A model with its decisions and probabilities tabulated: for services that ask item by item.
///
/// Counts that the tables do not hold are computed; the results are the same bits either way.
///
/// ```
/// use btdagg::{Counts, Model};
///
/// let model = Model::new(1.2, 2.0, 0.8)?;
/// let compiled = model.compile(20);
/// let votes = Counts::new(4, 1, 15);
/// assert_eq!(compiled.decide(votes), model.decide(votes));
/// assert_eq!(compiled.probabilities(votes), model.probabilities(votes));
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CompiledModel {
    model: Model,
    decisions: Table<Label>,
    probabilities: Table<[f64; 3]>,
}

impl CompiledModel {
    pub(crate) fn new(model: Model, max_count: u64) -> Self {
        let bits = u64::BITS - max_count.leading_zeros();
        Self {
            decisions: Table::fill_up_to(&Decisions::<Label>::of_model(&model), bits),
            probabilities: Table::fill_up_to(&Probabilities(&model), bits),
            model,
        }
    }

    /// The model that was compiled.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The label of least expected absolute error; equal risks give a tie.
    #[inline]
    #[must_use]
    pub fn decide(&self, counts: Counts) -> Label {
        self.decisions.get(counts).unwrap_or_else(|| self.model.decide(counts))
    }

    /// Probabilities of −1, 0 and +1.
    #[inline]
    #[must_use]
    pub fn probabilities(&self, counts: Counts) -> [f64; 3] {
        self.probabilities.get(counts).unwrap_or_else(|| self.model.probabilities(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_equals_direct_inside_and_beyond_the_table() {
        let model = Model::new(1.7, 3.1, -0.6).unwrap().with_smoothing(0.5, 2.0).unwrap();
        for max_count in [0, 1, 5, 12] {
            let compiled = model.compile(max_count);
            for minus in 0..20 {
                for tie in 0..20 {
                    for plus in 0..20 {
                        let counts = Counts::new(minus, tie, plus);
                        assert_eq!(compiled.decide(counts), model.decide(counts));
                        assert_eq!(compiled.probabilities(counts), model.probabilities(counts));
                    }
                }
            }
        }
        let huge = Counts::new(u64::MAX, 3, 1 << 40);
        assert_eq!(model.compile(12).decide(huge), model.decide(huge));
    }

    #[test]
    fn a_table_holds_what_was_asked_for_unless_it_grows_too_large() {
        let model = Model::new(1.0, 0.0, 0.0).unwrap();
        assert_eq!(model.compile(12).decisions.bits(), 4);
        assert_eq!(model.compile(16).probabilities.bits(), 5);
        let largest = model.compile(u64::MAX);
        assert_eq!((largest.decisions.bits(), largest.probabilities.bits()), (7, 6));
    }
}
