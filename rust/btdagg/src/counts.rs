use std::cmp::Ordering;
use std::fmt::Display;
use std::hash::{Hash, Hasher};

use crate::{Error, Label};

/// Votes of one item in label order: for B (minus), tie, for A (plus).
///
/// They need not be whole: a vote of strength w is w of a win and 1 − w of a tie. They are finite
/// and at least 0, which [`new`](Self::new) checks, so that whoever takes them need not.
///
/// ```
/// use btdagg::Counts;
///
/// assert_eq!(Counts::new(1, 0, 3)?, Counts::whole(1, 0, 3));
/// let error = Counts::new(0.5, f64::NAN, 1.5).unwrap_err();
/// assert_eq!(error.to_string(), "tie is NaN, expected a finite number of at least 0");
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub(crate) minus: f64,
    pub(crate) tie: f64,
    pub(crate) plus: f64,
}

impl Counts {
    /// Counts in label order.
    ///
    /// # Errors
    /// [`Error::Input`] for the first number that is negative, infinite or NaN.
    pub fn new(
        minus: impl CountValue,
        tie: impl CountValue,
        plus: impl CountValue,
    ) -> Result<Self, Error> {
        Ok(Self {
            minus: count(minus, "minus")?,
            tie: count(tie, "tie")?,
            plus: count(plus, "plus")?,
        })
    }

    /// Whole counts in label order; beyond 2⁵³ they are rounded.
    #[expect(clippy::cast_precision_loss, reason = "features do not see it")]
    pub const fn whole(minus: u64, tie: u64, plus: u64) -> Self {
        Self { minus: minus as f64, tie: tie as f64, plus: plus as f64 }
    }

    /// Votes of −1: B is better.
    pub const fn minus(self) -> f64 {
        self.minus
    }

    /// Votes of 0.
    pub const fn tie(self) -> f64 {
        self.tie
    }

    /// Votes of +1: A is better.
    pub const fn plus(self) -> f64 {
        self.plus
    }

    /// Number of votes.
    pub fn total(self) -> f64 {
        // Both sides first, so that the mirror image has the same bits.
        (self.minus + self.plus) + self.tie
    }

    fn key(self) -> [u64; 3] {
        [self.minus, self.tie, self.plus].map(f64::to_bits)
    }

    /// The count of a label.
    pub(crate) const fn of(&mut self, label: Label) -> &mut f64 {
        match label {
            Label::Minus => &mut self.minus,
            Label::Tie => &mut self.tie,
            Label::Plus => &mut self.plus,
        }
    }

    /// Number of votes as an integer: the next larger one, but for rounding.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 0; the cast saturates"
    )]
    pub fn n_votes(self) -> u64 {
        (self.total() - 1e-6).ceil() as u64
    }

    /// The three as integers, if they are whole.
    pub fn as_whole(self) -> Option<[u64; 3]> {
        let [minus, tie, plus] = [self.minus, self.tie, self.plus].map(whole);
        Some([minus?, tie?, plus?])
    }

    /// The counts after A and B have changed places.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self { minus: self.plus, tie: self.tie, plus: self.minus }
    }
}

/// The bits of floats that are not negative are ordered as they are.
impl Ord for Counts {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Counts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Counts {}

impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for Counts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// The integer that a float is, if it is one below 2⁶⁴.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "the cast saturates; comparing back finds every value it changed"
)]
pub(crate) fn whole(value: f64) -> Option<u64> {
    let count = value as u64;
    // u64::MAX rounds up to 2⁶⁴, which is not a u64.
    (count as f64 == value && count != u64::MAX).then_some(count)
}

/// Number types that can hold a count: integers and floats.
pub trait CountValue: Copy + Send + Sync + Display + sealed::Sealed {
    /// The value as a count, or `None` if it is negative, infinite or NaN.
    fn to_count(self) -> Option<f64>;

    /// The bits that are set in any of many counts; large where one is not a small integer.
    #[doc(hidden)]
    fn bits(values: &[Self]) -> u64;

    /// The value as an index, for a value known to be a small count.
    #[doc(hidden)]
    fn small(self) -> usize;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

macro_rules! count_values {
    ($($t:ty)*; $value:ident => $count:expr, $bits:expr, $small:expr) => {$(
        impl sealed::Sealed for $t {}
        // Not in every type: counts beyond 2⁵³ are rounded, small ones have no sign.
        #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        #[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
        impl CountValue for $t {
            #[inline]
            fn to_count(self) -> Option<f64> {
                let $value = self;
                $count
            }

            #[inline]
            fn bits(values: &[Self]) -> u64 {
                let $value = values.iter();
                $bits
            }

            #[inline]
            fn small(self) -> usize {
                let $value = self;
                $small as usize
            }
        }
    )*};
}
count_values!(i8 i16 i32 i64 u8 u16 u32 u64; value =>
    u64::try_from(value).ok().map(|count| count as f64),
    u64::try_from(value.fold(0, |all, value| all | value)).unwrap_or(u64::MAX), value);
count_values!(f32 f64; value =>
    finite(value.into()),
    value.fold(0, |all, &value| all | float_bits(value.into())), shifted_bits(value.into()));

/// From here on all floats are whole.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// A whole float below 2⁵² as an integer: the low bits of its sum with that.
#[inline]
fn shifted_bits(value: f64) -> u64 {
    (value + WHOLE).to_bits() ^ WHOLE.to_bits()
}

/// The same, of any float; at least 2⁵² if it is not whole or not below that. Several are looked at
/// side by side, which a cast is not.
#[inline]
fn float_bits(value: f64) -> u64 {
    let is_whole = (value + WHOLE) - WHOLE == value;
    shifted_bits(value) | if is_whole { 0 } else { u64::MAX }
}

/// A count that a float is; of -0.0 it is 0.0.
fn finite(value: f64) -> Option<f64> {
    (value >= 0.0 && value.is_finite()).then_some(value + 0.0)
}

fn count(value: impl CountValue, name: &'static str) -> Result<f64, Error> {
    value.to_count().ok_or_else(|| Error::value(name, value, COUNT))
}

/// What is expected of a count.
pub(crate) const COUNT: &str = "a finite number of at least 0";

/// One row: [`Counts`], or three numbers in label order.
pub trait CountRow: Copy + Send + Sync + sealed::Sealed {
    /// The counts; `row` goes into the error.
    ///
    /// # Errors
    /// [`Error::Input`] for the first number that is no count.
    fn counts(self, row: usize) -> Result<Counts, Error>;

    /// The bits that are set in any count of a block; all where a number is none.
    #[doc(hidden)]
    fn bits(block: &[Self]) -> u64;

    /// The three as indexes, for values known to be small counts.
    #[doc(hidden)]
    fn small(self) -> [usize; 3];
}

impl sealed::Sealed for Counts {}

impl CountRow for Counts {
    #[inline]
    fn counts(self, _: usize) -> Result<Counts, Error> {
        Ok(self)
    }

    #[inline]
    fn bits(block: &[Self]) -> u64 {
        block.iter().fold(0, |all, row| all | f64::bits(&[row.minus, row.tie, row.plus]))
    }

    #[inline]
    fn small(self) -> [usize; 3] {
        [self.minus.small(), self.tie.small(), self.plus.small()]
    }
}

impl<T: CountValue> sealed::Sealed for [T; 3] {}

impl<T: CountValue> CountRow for [T; 3] {
    fn counts(self, row: usize) -> Result<Counts, Error> {
        let count = |column: usize, value: T| {
            value.to_count().ok_or_else(|| {
                let got = format!("({}) is {value}", ["minus", "tie", "plus"][column]);
                Error::input("counts", got, COUNT).at(&[row, column])
            })
        };
        let [minus, tie, plus] = self;
        Ok(Counts { minus: count(0, minus)?, tie: count(1, tie)?, plus: count(2, plus)? })
    }

    #[inline]
    fn bits(block: &[Self]) -> u64 {
        T::bits(block.as_flattened())
    }

    #[inline]
    fn small(self) -> [usize; 3] {
        self.map(CountValue::small)
    }
}

/// Rows of counts, read block by block.
///
/// A slice of [`Counts`], as a tally gives them, or of triples of any number type is read in place.
/// Implement it for what lies in memory otherwise, such as three columns: no more than a block of
/// it is ever copied.
///
/// ```
/// use btdagg::{Counts, Execution, Model, Rows};
///
/// struct Columns {
///     minus: Vec<u32>,
///     tie: Vec<u32>,
///     plus: Vec<u32>,
/// }
///
/// impl Rows for Columns {
///     type Row = Counts;
///
///     fn len(&self) -> usize {
///         self.minus.len()
///     }
///
///     fn block<'a>(&'a self, start: usize, len: usize, rows: &'a mut Vec<Counts>) -> &'a [Counts] {
///         let counts = |row: usize| {
///             let [minus, tie, plus] = [self.minus[row], self.tie[row], self.plus[row]];
///             Counts::whole(minus.into(), tie.into(), plus.into())
///         };
///         rows.clear();
///         rows.extend((start..start + len).map(counts));
///         rows
///     }
/// }
///
/// let columns = Columns { minus: vec![0, 12], tie: vec![1, 0], plus: vec![11, 0] };
/// let mut labels = [0_i8; 2];
/// Model::new(1.2, 2.0, 0.8)?.decide_into(&columns, &mut labels, Execution::single())?;
/// assert_eq!(labels, [1, -1]);
/// # Ok::<(), btdagg::Error>(())
/// ```
pub trait Rows: Sync {
    /// What a row is.
    type Row: CountRow;

    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `len` rows from `start`, in place or copied to `buffer`: exactly as many, for a range
    /// within [`len`](Self::len).
    fn block<'a>(
        &'a self,
        start: usize,
        len: usize,
        buffer: &'a mut Vec<Self::Row>,
    ) -> &'a [Self::Row];
}

impl<R: CountRow> Rows for [R] {
    type Row = R;

    fn len(&self) -> usize {
        <[R]>::len(self)
    }

    fn block<'a>(&'a self, start: usize, len: usize, _: &'a mut Vec<R>) -> &'a [R] {
        &self[start..start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stopping::{Criterion, StoppingRule};
    use crate::{CalibrationSet, Execution, Judge, Model, Panel};

    #[test]
    fn what_is_whole_has_few_bits_and_what_is_no_count_has_none() {
        let counts_and_bits = |value: f64| (value.to_count(), f64::bits(&[value]));
        assert_eq!(counts_and_bits(3.0), (Some(3.0), 3));
        assert_eq!((-0.0_f64).to_count().map(f64::to_bits), Some(0));
        assert_eq!(counts_and_bits(0.5), (Some(0.5), u64::MAX));
        assert_eq!(f64::bits(&[WHOLE.next_down().floor(), 1.0]), u64::MAX >> 12);
        assert!(f64::bits(&[WHOLE]) > u64::MAX >> 12);
        assert_eq!((i8::bits(&[1, 6]), i8::bits(&[1, -6])), (7, u64::MAX));
        for bad in [-1.0, -WHOLE / 2.0, -0.25, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(bad.to_count(), None);
            assert!(f64::bits(&[1.0, bad]) > u64::MAX >> 12, "{bad}");
        }
    }

    #[test]
    fn what_is_no_count_is_refused_wherever_counts_go_in() {
        let refused = |error: Error, argument: &str| match error {
            Error::Input(input) => {
                assert_eq!((&*input.argument, &*input.expected), (argument, COUNT));
            }
            other => panic!("{other}"),
        };
        let model = Model::new(1.2, 2.0, 0.8).unwrap();
        let judge = |name: &str| Judge {
            name: name.into(),
            beta: 1.0,
            gamma: 0.5,
            is_heard: true,
            usual_votes: None,
        };
        let panel = Panel::new(vec![judge("a"), judge("b")], 1.0).unwrap();
        let rule = StoppingRule::new(model.clone(), 8, 1, Criterion::Lossless, None).unwrap();
        let rule = rule.of_strengths().unwrap();
        let single = Execution::single();
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -f64::MIN_POSITIVE] {
            refused(Counts::new(bad, 1.0, 2.0).unwrap_err(), "minus");
            refused(Counts::new(1, bad, 2).unwrap_err(), "tie");
            refused(Counts::new(1, 0.5, bad).unwrap_err(), "plus");
            let (rows, offsets) = ([[1.0, 2.0, 3.0], [1.0, bad, 2.0]], [0.5, -0.5]);
            let (mut labels, mut numbers) = ([0_i8; 2], [[0.0; 3]; 2]);
            let (mut pairs, mut flags, mut asked) = ([[0.0; 2]; 2], [false; 2], [0_u8; 2]);
            let known = model.with_offsets(&offsets);
            for result in [
                model.decide_into(&rows[..], &mut labels, single),
                model.probabilities_into(&rows[..], &mut numbers, single),
                model.risks_into(&rows[..], &mut numbers, single),
                model.features_into(&rows[..], &mut pairs, single),
                known.decide_into(&rows[..], &mut labels, single),
                known.probabilities_into(&rows[..], &mut numbers, single),
                known.risks_into(&rows[..], &mut numbers, single),
                panel.decide_into(&rows[..], &mut labels[..1], single),
                panel.probabilities_into(&rows[..], &mut numbers[..1], single),
                rule.stops_into(&rows[..], &mut flags, single),
                rule.decide_into(&rows[..], &mut labels, single),
                rule.votes_to_ask_into(&rows[..], &mut asked, single),
                rule.with_offsets(&offsets).stops_into(&rows[..], &mut flags, single),
                rule.with_offsets(&offsets).decide_into(&rows[..], &mut labels, single),
                CalibrationSet::new(&rows[..], &[1, 0], None, (1.0, 1.0), single).map(drop),
            ] {
                refused(result.unwrap_err(), "counts");
            }
        }
        refused(Counts::new(1, -1, 0).unwrap_err(), "tie");
        assert!(crate::features::features(Counts::whole(1, 0, 2), f64::NAN, 1.0).is_err());
        let (most, mut finite) = (f64::MAX, [[0.0; 3]]);
        model.probabilities_into(&[[most, 0.0, most]][..], &mut finite, single).unwrap();
        assert!(finite[0].iter().all(|p| p.is_finite()), "{finite:?}");
    }

    #[test]
    fn a_bad_count_is_named() {
        let error = [1_i64, 2, -4].counts(7).unwrap_err();
        assert!(error.to_string().starts_with("counts[7, 2] (plus) is -4, expected"));
    }
}
