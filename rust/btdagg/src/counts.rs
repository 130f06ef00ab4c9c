use std::fmt::Display;

use crate::Error;

/// Votes of one item in label order: for B (minus), tie, for A (plus).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Counts {
    /// Votes of −1: B is better.
    pub minus: u64,
    /// Votes of 0.
    pub tie: u64,
    /// Votes of +1: A is better.
    pub plus: u64,
}

impl Counts {
    /// Counts in label order.
    #[must_use]
    pub const fn new(minus: u64, tie: u64, plus: u64) -> Self {
        Self { minus, tie, plus }
    }

    /// Number of votes; the largest integer where it does not fit.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.minus.saturating_add(self.tie).saturating_add(self.plus)
    }

    /// The counts after A and B have changed places.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self { minus: self.plus, tie: self.tie, plus: self.minus }
    }
}

/// Number types that can hold a count: every integer, and floats where their value is integral.
pub trait CountValue: Copy + Send + Sync + Display + sealed::Sealed {
    /// The value as a count, or `None` if it is negative, fractional, NaN or 2⁶⁴ or more.
    fn to_count(self) -> Option<u64>;

    /// The count, or all bits set where there is none.
    #[doc(hidden)]
    #[inline]
    fn bits(self) -> u64 {
        self.to_count().unwrap_or(u64::MAX)
    }

    /// The value as an index, for a value known to be a small count.
    #[doc(hidden)]
    fn small(self) -> usize;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer_counts {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl CountValue for $t {
            #[inline]
            fn to_count(self) -> Option<u64> {
                u64::try_from(self).ok()
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not in every type
            #[allow(clippy::cast_lossless)]
            fn small(self) -> usize {
                self as usize
            }
        }
    )*};
}
integer_counts!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float_counts {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            clippy::float_cmp,
            reason = "the cast saturates; comparing back finds every value it changed"
        )]
        impl CountValue for $t {
            #[inline]
            fn to_count(self) -> Option<u64> {
                let count = self as u64;
                // u64::MAX rounds up to 2⁶⁴, which is not a u64.
                (count as $t == self && count != u64::MAX).then_some(count)
            }

            #[inline]
            fn small(self) -> usize {
                self as usize
            }
        }
    )*};
}
float_counts!(f32 f64);

/// What is expected of a count.
const COUNT: &str = "a non-negative integer below 2**64";

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
        block.iter().fold(0, |all, row| all | row.minus | row.tie | row.plus)
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
                let came = format!("({}) is {value}", ["minus", "tie", "plus"][column]);
                Error::input("counts", came, COUNT).at(&[row, column])
            })
        };
        let [minus, tie, plus] = self;
        Ok(Counts::new(count(0, minus)?, count(1, tie)?, count(2, plus)?))
    }

    #[inline]
    fn bits(block: &[Self]) -> u64 {
        block.as_flattened().iter().fold(0, |all, value| all | value.bits())
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
///             Counts::new(self.minus[row].into(), self.tie[row].into(), self.plus[row].into())
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

    #[test]
    fn floats_are_counts_only_where_integral() {
        assert_eq!(3.0_f64.to_count(), Some(3));
        assert_eq!((-0.0_f64).to_count(), Some(0));
        assert_eq!(2.0_f64.powi(63).to_count(), Some(1 << 63));
        for bad in [0.5, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0_f64.powi(64)] {
            assert_eq!(bad.to_count(), None, "{bad}");
        }
        assert_eq!(0.5_f32.to_count(), None);
        assert_eq!(7.0_f32.to_count(), Some(7));
    }

    #[test]
    fn a_bad_count_is_named() {
        let error = [1_i64, 2, -4].counts(7).unwrap_err();
        assert!(error.to_string().starts_with("counts[7, 2] (plus) is -4, expected"));
    }
}
