//! Integers whose sums floats do not hold: exact by integers of 128 bits.

use super::differences::{Grouping, Losses};
use super::exact::{Null, p_value_of};
use super::halves;
use super::permutation::Alternative;
use crate::Error;
use crate::memory::{collected, reserved};
use crate::parallel::Watch;

/// Bits that the sum of all losses may have.
const MAX_BITS: u32 = 126;

/// Sums up to this, 2⁵¹, are left to floats.
const LARGEST: u128 = 1 << 51;

/// Differences of integer losses, by unit and without a rounding error.
#[derive(Debug)]
pub(super) struct Wide {
    /// In units of the largest power of two that divides all losses; none if they are too wide.
    units: Option<Vec<i128>>,
}

impl Wide {
    /// Nothing if a loss is no integer.
    pub(super) fn of(
        a: &Losses<'_>,
        b: &Losses<'_>,
        grouping: Option<&Grouping>,
    ) -> Result<Option<Self>, Error> {
        let n_items = a.values().len();
        let both = a.values().iter().chain(b.values());
        let mut parts = reserved(2 * n_items)?;
        for &loss in both {
            let Some(part) = parts_of(loss) else { return Ok(None) };
            parts.push(part);
        }
        // Losses may all be 0, which have no power of two.
        let least = parts.iter().filter(|part| part.0 != 0).map(|part| part.1).min().unwrap_or(0);
        let most = parts.iter().map(|part| part.1).max().unwrap_or(0).max(least);
        if f64::MANTISSA_DIGITS + (most - least) + parts.len().ilog2() + 1 > MAX_BITS {
            return Ok(Some(Self { units: None }));
        }
        let value = |&(odd, exponent): &(i128, u32)| odd << exponent.saturating_sub(least);
        let (a, b) = parts.split_at(n_items);
        let differences = collected(a.iter().zip(b).map(|(a, b)| value(a) - value(b)))?;
        let units = match grouping {
            Some(grouping) => grouping.sums(&differences)?,
            None => differences,
        };
        Ok(Some(Self { units: Some(units) }))
    }

    /// As [`Null::p_value`] of the sum of the differences.
    pub(super) fn p_value(
        &self,
        alternative: Alternative,
        watch: &mut Watch<'_>,
    ) -> Result<Option<f64>, Error> {
        let Some(units) = &self.units else { return Ok(None) };
        let sum: i128 = units.iter().sum();
        let sizes = || units.iter().map(|unit| unit.unsigned_abs()).filter(|&size| size > 0);
        let divisor = sizes().fold(0, common_divisor).max(1);
        if sizes().sum::<u128>() / divisor <= LARGEST {
            let reduced = |value: i128| exact_float(value / divisor.cast_signed());
            let units = collected(units.iter().map(|&unit| reduced(unit)))?;
            return match Null::of(&units, 0.0) {
                Ok(null) => null.p_value(reduced(sum), alternative, watch),
                Err(_) => Ok(None),
            };
        }
        let magnitudes: Vec<i128> = sizes().map(u128::cast_signed).collect();
        if magnitudes.len() > halves::MAX_UNITS {
            return Ok(None);
        }
        let tail =
            |beyond: bool| Ok(halves::upper_tail(&magnitudes, sum.abs() + i128::from(beyond)));
        p_value_of(sum.cmp(&0), alternative, tail).map(Some)
    }
}

/// A float as an odd integer times a power of two, or 0; nothing if it is no integer.
fn parts_of(value: f64) -> Option<(i128, u32)> {
    if value == 0.0 {
        return Some((0, 0));
    }
    let bits = value.to_bits();
    let digits = (bits & ((1 << 52) - 1)) | (1 << 52);
    let zeros = digits.trailing_zeros();
    // Of a number below the normal ones, whose digits these are not, it is below 0 as well.
    let exponent = ((bits >> 52) & 0x7ff) + u64::from(zeros);
    let exponent = u32::try_from(exponent.checked_sub(1075)?).ok()?;
    let odd = i128::from(digits >> zeros);
    Some((if value < 0.0 { -odd } else { odd }, exponent))
}

#[expect(clippy::cast_precision_loss, reason = "an integer up to 2^51")]
const fn exact_float(value: i128) -> f64 {
    value as f64
}

const fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_odd_integers_times_powers_of_two() {
        for (value, wanted) in [
            (0.0, Some((0, 0))),
            (-1.0, Some((-1, 0))),
            (12.0, Some((3, 2))),
            (9_007_199_254_740_994.0, Some((4_503_599_627_370_497, 1))),
            (2.0_f64.powi(1023), Some((1, 1023))),
            (0.5, None),
            (f64::MIN_POSITIVE / 3.0, None),
        ] {
            assert_eq!(parts_of(value), wanted, "{value}");
        }
    }
}
