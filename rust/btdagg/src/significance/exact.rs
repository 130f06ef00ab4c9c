//! The exact null distribution of a sum of integers with random signs.

use std::cmp::Ordering;

use super::Alternative;
use super::halves;
use super::tilt::{Magnitude, WIDTH, Window, log_weight, tilt_to};
use crate::Error;
use crate::index::{index, to_f64};
use crate::parallel::Watch;

/// Sums of losses up to this, 2⁵¹, are exact.
const LARGEST: f64 = 0.5 / f64::EPSILON;

/// Adding this, 2⁵², to a smaller number rounds it to an integer.
const ROUNDING: f64 = 1.0 / f64::EPSILON;

/// Magnitudes below this are counted in an array, all others sorted.
const SMALL: usize = 256;

/// Neighbouring sums that are held at once, and multiplications, at the most.
const MAX_LENGTH: f64 = 4e6;
const MAX_WORK: f64 = 1e9;

/// Units by magnitude: all that the null distribution depends on.
#[derive(Debug)]
pub(crate) struct Null {
    /// In ascending order, divided by their greatest common divisor; no zeros.
    magnitudes: Vec<Magnitude>,
    divisor: u64,
    /// Largest sum there can be, divided likewise.
    total: u64,
}

impl Null {
    /// Counts the units; where one is no integer, that unit and its value are the error.
    pub(crate) fn of(units: &[f64], losses_size: f64) -> Result<Self, (usize, f64)> {
        let is_integer = |unit| is_integer(unit, losses_size);
        // Without a branch for each unit, since nearly always all are.
        let all = units.iter().fold(true, |all, &unit| all & is_integer(unit));
        let mut numbered = units.iter().copied().enumerate();
        if !all && let Some(found) = numbered.find(|&(_, unit)| !is_integer(unit)) {
            return Err(found);
        }
        let mut magnitudes = magnitudes_of(units);
        let divisor = magnitudes.iter().fold(0, |divisor, m| common_divisor(divisor, m.size));
        magnitudes.iter_mut().for_each(|m| m.size /= divisor);
        let total = magnitudes.iter().map(|m| m.size * m.n_units).sum();
        Ok(Self { magnitudes, divisor, total })
    }

    /// Share of sign patterns whose sum is as extreme as `sum`, or none if there are too many
    /// sums.
    pub(crate) fn p_value(
        &self,
        sum: f64,
        alternative: Alternative,
        watch: &mut Watch<'_>,
    ) -> Result<Option<f64>, Error> {
        if self.magnitudes.is_empty() {
            return Ok(Some(1.0));
        }
        let n_units: u64 = self.magnitudes.iter().map(|m| m.n_units).sum();
        let enumerated = n_units <= halves::FEW_UNITS as u64 || !self.is_compact();
        if enumerated && n_units > halves::MAX_UNITS as u64 {
            return Ok(None);
        }
        let distance = magnitude_of(sum) / self.divisor;
        let tail = |beyond: bool| {
            let least = distance + u64::from(beyond);
            if enumerated { Ok(self.enumerated_tail(least)) } else { self.upper_tail(least, watch) }
        };
        let side = if distance == 0 { Ordering::Equal } else { sum.total_cmp(&0.0) };
        p_value_of(side, alternative, tail).map(Some)
    }

    /// Whether the distribution fits neighbouring sums, and how long that takes.
    fn is_compact(&self) -> bool {
        let (mut variance, mut range, mut work) = (0.0, 1.0, 0.0);
        self.magnitudes.iter().rev().all(|m| {
            let width = (WIDTH * 0.5 * m.units().sqrt()).min(m.units());
            variance += 0.25 * m.units() * m.value() * m.value();
            range += width * m.value();
            let length = range.min(WIDTH * f64::sqrt(variance) + 1.0);
            work += length * (width + 1.0);
            length <= MAX_LENGTH && work <= MAX_WORK
        })
    }

    /// Share of sign patterns whose sum is at least `least`, above 0.
    ///
    /// In terms of what the negative units take from the total: `P(deficit ≤ most)` is the sum of
    /// `tilted(deficit) exp(-2 theta (most - deficit))`, times a constant. All terms are positive.
    fn upper_tail(&self, least: u64, watch: &mut Watch<'_>) -> Result<f64, Error> {
        let Some((smallest, others)) = self.magnitudes.split_first() else { return Ok(0.0) };
        if least > self.total {
            return Ok(0.0);
        }
        let most = (self.total - least) / 2;
        let sum = to_f64(self.total - 2 * most);
        let theta = tilt_to(sum, &self.magnitudes);
        // Often there are 1 and 2 alone.
        let (rest, stride) = if let [only] = others {
            (Window::negatives(theta, *only), only.size)
        } else {
            let mut rest = Window { first: 0, probabilities: vec![1.0] };
            for m in others {
                watch.poll()?;
                rest = rest.plus_multiples(m.size, &Window::negatives(theta, *m));
            }
            (rest, 1)
        };
        let share = weighted_tail(theta, *smallest, &rest, stride, most);
        Ok(share * log_weight(theta, sum, &self.magnitudes).exp())
    }

    fn enumerated_tail(&self, least: u64) -> f64 {
        let repeated = |m: &Magnitude| std::iter::repeat_n(m.size.into(), index(m.n_units));
        let magnitudes: Vec<i128> = self.magnitudes.iter().flat_map(repeated).collect();
        halves::upper_tail(&magnitudes, least.into())
    }
}

/// Whether a difference is an integer, of losses whose absolute values have that sum.
///
/// Integers are told from others where losses sum to no more than 2⁵¹, beyond which none is taken
/// for one.
pub(super) fn is_integer(difference: f64, losses_size: f64) -> bool {
    let size = difference.abs();
    losses_size <= LARGEST && (size + ROUNDING) - ROUNDING == size
}

/// The p-value of a sum on a side of 0, from the share of sign patterns whose sum is as far on the
/// upper side, or beyond that.
fn p_value_of(
    side: Ordering,
    alternative: Alternative,
    mut tail: impl FnMut(bool) -> Result<f64, Error>,
) -> Result<f64, Error> {
    let p_value = match (alternative, side) {
        (Alternative::TwoSided, Ordering::Equal) => 1.0,
        (Alternative::TwoSided, _) => 2.0 * tail(false)?,
        (Alternative::Greater, Ordering::Greater) | (Alternative::Less, Ordering::Less) => {
            tail(false)?
        }
        // At least one half: nothing is lost by taking the other side from 1.
        _ => 1.0 - tail(true)?,
    };
    Ok(p_value.clamp(f64::MIN_POSITIVE, 1.0))
}

/// How many units there are of each magnitude, in ascending order and without 0.
fn magnitudes_of(units: &[f64]) -> Vec<Magnitude> {
    // Differences of absolute errors are 0, 1 or 2: counted without a branch or a table.
    let mut found: Vec<_> =
        [(1, 1.0), (2, 2.0)].map(|(size, value)| (size, count(units, value))).into();
    let n_found = count(units, 0.0) + found.iter().map(|(_, n_units)| n_units).sum::<u64>();
    if n_found < units.len() as u64 {
        let mut small = [0_u64; SMALL];
        let mut large = Vec::new();
        for size in units.iter().map(|&unit| magnitude_of(unit)) {
            match usize::try_from(size).ok().and_then(|place| small.get_mut(place)) {
                Some(n_units) => *n_units += 1,
                None => large.push(size),
            }
        }
        large.sort_unstable();
        let large = large.chunk_by(|one, other| one == other);
        let large = large.map(|same| (same[0], same.len() as u64));
        found = (0..).zip(small).skip(1).chain(large).collect();
    }
    let found = found.into_iter().filter(|&(_, n_units)| n_units > 0);
    found.map(|(size, n_units)| Magnitude { size, n_units }).collect()
}

/// How many units have that absolute value.
fn count(units: &[f64], size: f64) -> u64 {
    let (chunks, rest) = units.as_chunks::<8>();
    let mut lanes = [0; 8];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, unit)| *lane += u64::from(unit.abs() == size));
    }
    lanes.iter().sum::<u64>() + rest.iter().map(|unit| u64::from(unit.abs() == size)).sum::<u64>()
}

/// Weighted tail of `stride` times `rest` plus the negative units of one more magnitude.
fn weighted_tail(theta: f64, magnitude: Magnitude, rest: &Window, stride: u64, most: u64) -> f64 {
    let size = magnitude.size;
    let negatives = Window::negatives(theta, magnitude);
    let odds = (-2.0 * theta * magnitude.value()).exp();
    // The weighted tail at each number of negative units.
    let mut tails = negatives.probabilities;
    let mut tail = 0.0;
    for probability in &mut tails {
        tail = tail * odds + *probability;
        *probability = tail;
    }
    let last = negatives.first + tails.len() as u64 - 1;
    let Some(left) = most.checked_sub(stride * rest.first) else { return 0.0 };
    // How many units are left to be negative, and what is left over.
    let (mut count, mut over) = (left / size, left % size);
    let (fewer, less) = (stride / size, stride % size);
    let mut share = 0.0;
    for probability in &rest.probabilities {
        let reached = count.min(last);
        let Some(place) = reached.checked_sub(negatives.first) else { break };
        let tail = tails[index(place)];
        let distance = (count - reached) * size + over;
        let weight = if distance == 0 { 1.0 } else { (-2.0 * theta * to_f64(distance)).exp() };
        share += probability * tail * weight;
        let borrowed = u64::from(over < less);
        let Some(remaining) = count.checked_sub(fewer + borrowed) else { break };
        (count, over) = (remaining, over + borrowed * size - less);
    }
    share
}

/// A difference that is an integer, without its sign.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an integer up to 2^51"
)]
fn magnitude_of(difference: f64) -> u64 {
    (difference.abs() as i64) as u64
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Execution;

    fn p_value(units: &[f64], alternative: Alternative) -> f64 {
        let mut watch = Watch::alone(Execution::single());
        let sum = units.iter().sum();
        Null::of(units, 0.0).unwrap().p_value(sum, alternative, &mut watch).unwrap().unwrap()
    }

    fn enumerated(units: &[f64], alternative: Alternative) -> f64 {
        let sum: f64 = units.iter().sum();
        let n_patterns = 1_u32 << units.len();
        let hits = (0..n_patterns).filter(|pattern| {
            let signed = units.iter().enumerate();
            let other: f64 = signed.map(|(i, d)| if pattern >> i & 1 == 1 { *d } else { -d }).sum();
            match alternative {
                Alternative::TwoSided => other.abs() >= sum.abs(),
                Alternative::Less => other <= sum,
                Alternative::Greater => other >= sum,
            }
        });
        f64::from(u32::try_from(hits.count()).unwrap()) / f64::from(n_patterns)
    }

    const ALTERNATIVES: [Alternative; 3] =
        [Alternative::TwoSided, Alternative::Less, Alternative::Greater];

    #[test]
    fn p_values_are_those_of_all_patterns() {
        let cases: [&[f64]; 9] = [
            &[1.0],
            &[0.0, 0.0],
            &[1.0, -1.0, 2.0, 0.0, 1.0, -2.0, 1.0],
            &[2.0, 2.0, -2.0, 4.0, 2.0],
            &[1.0; 12],
            &[3.0, -5.0, 7.0, 7.0, -3.0, 11.0, 13.0, 1.0],
            &[1.0, 1000.0, -1000.0, 1000.0, 3.0, -2.0],
            &[255.0, 256.0, -257.0, 256.0, -1.0, 300.0],
            &[1e12, -3.0, 4e11, -7e11, 12345.0, 5.0, -5.0],
        ];
        for units in cases {
            for alternative in ALTERNATIVES {
                let (got, wanted) = (p_value(units, alternative), enumerated(units, alternative));
                assert!((got / wanted - 1.0).abs() < 1e-13, "{units:?} {got} {wanted}");
            }
        }
    }

    #[test]
    fn tilted_tails_are_enumerated_tails() {
        let cases: [&[f64]; 5] = [
            &[1.0],
            &[1.0, 1.0, 2.0, 2.0, 2.0],
            &[3.0, 5.0, 7.0, 7.0, 3.0, 11.0, 13.0, 1.0],
            &[1.0, 1000.0, 1000.0, 1000.0, 3.0, 2.0],
            &[6.0, 10.0, 15.0, 15.0, 6.0, 10.0, 10.0],
        ];
        let mut watch = Watch::alone(Execution::single());
        for units in cases {
            let null = Null::of(units, 0.0).unwrap();
            for least in 1..=null.total + 2 {
                let tilted = null.upper_tail(least, &mut watch).unwrap();
                let wanted = null.enumerated_tail(least);
                assert!((tilted - wanted).abs() <= 1e-14 * wanted, "{units:?} {least} {tilted}");
            }
        }
    }

    #[test]
    fn far_tails_are_powers_of_two() {
        for n in [50, 1000] {
            let got = p_value(&vec![1.0; n], Alternative::Greater);
            let wanted = 0.5_f64.powi(i32::try_from(n).unwrap());
            assert!((got / wanted - 1.0).abs() < 1e-12, "{got} {wanted}");
        }
        let many = vec![1.0; 5000];
        assert_eq!(p_value(&many, Alternative::Less), 1.0);
        assert_eq!(p_value(&many, Alternative::TwoSided), f64::MIN_POSITIVE);
    }

    #[test]
    fn what_is_no_integer_is_named() {
        let found = |units: &[f64], size| Null::of(units, size).map(|_| ()).unwrap_err();
        assert_eq!(found(&[1.0, 0.5], 2.0), (1, 0.5));
        assert_eq!(found(&[1.0, 3.0], 1e16), (0, 1.0));
    }
}
