//! Exponential tilting: binomials under which the observed sum is the one to expect.
//!
//! With `P(sign = +) ∝ exp(theta m)` in place of one half, a unit of magnitude `m` has the mean
//! `m tanh(theta m)`. Any `theta` gives the same p-value; the one that makes the observed sum the
//! mean keeps all numbers near 1, however small the p-value, and needs a few standard deviations
//! around the mean alone.

use crate::index::{index, to_f64};

/// Probabilities below this share of the largest are left out.
pub(crate) const NEGLIGIBLE: f64 = 1e-25;

/// Standard deviations within which a normal density is not [`NEGLIGIBLE`], on both sides.
pub(crate) const WIDTH: f64 = 22.0;

/// Where `tanh` is close to 1, terms are summed in another form.
const LARGE: f64 = 1.0;

/// Units of one magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Magnitude {
    pub(crate) size: u64,
    pub(crate) n_units: u64,
}

/// The tilt under which the mean is about `sum`, found from the left by Newton's method.
///
/// The mean is concave in `theta > 0`, so steps do not overshoot. Half a lattice step or a tenth of
/// a standard deviation is close enough.
pub(crate) fn tilt_to(sum: f64, magnitudes: &[Magnitude]) -> f64 {
    let variance: f64 = magnitudes.iter().map(|m| m.units() * m.value() * m.value()).sum();
    let mut theta = sum / variance;
    for _ in 0..200 {
        let (mut gap, mut variance) = (sum, 0.0);
        for m in magnitudes {
            let tanh = (theta * m.value()).tanh();
            gap -= m.units() * m.value() * tanh;
            variance += m.units() * m.value() * m.value() * (1.0 - tanh * tanh);
        }
        if gap <= 0.5 || gap * gap <= 0.01 * variance || variance <= 0.0 {
            break;
        }
        theta += gap / variance;
    }
    theta
}

/// `ln E exp(theta S) - theta sum`, which tilted probabilities at `sum` are to be multiplied by.
///
/// `ln cosh x` is `x - ln 2 + ln(1 + exp(-2x))`. The sum of all `x` that are large is taken
/// together with `sum`, as integers, so that no digits cancel.
pub(crate) fn log_weight(theta: f64, sum: f64, magnitudes: &[Magnitude]) -> f64 {
    let (mut rest, mut logs) = (-sum, 0.0);
    for m in magnitudes {
        let x = theta * m.value();
        if x > LARGE {
            rest += m.units() * m.value();
            logs += m.units() * ((-2.0 * x).exp().ln_1p() - std::f64::consts::LN_2);
        } else {
            logs += m.units() * 0.5 * x.sinh().powi(2).ln_1p();
        }
    }
    theta * rest + logs
}

impl Magnitude {
    pub(crate) fn value(self) -> f64 {
        to_f64(self.size)
    }

    pub(crate) fn units(self) -> f64 {
        to_f64(self.n_units)
    }
}

/// Probabilities of neighbouring values, those that are negligible left out.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) first: u64,
    pub(crate) probabilities: Vec<f64>,
}

impl Window {
    /// How many of the units are negative under the tilt: binomial with odds `exp(-2 theta m)`.
    ///
    /// From the mode outwards by the ratio of neighbours, then scaled to sum to 1.
    pub(crate) fn negatives(theta: f64, magnitude: Magnitude) -> Self {
        let n = magnitude.n_units;
        let odds = (-2.0 * theta * magnitude.value()).exp();
        let mode = floor((to_f64(n) + 1.0) * odds / (1.0 + odds)).min(n);
        let width = (WIDTH * 0.5 * to_f64(n).sqrt()).min(to_f64(n));
        let mut probabilities = Vec::with_capacity(index(floor(width)).saturating_add(2));
        push_products(counted(mode, n - mode, 1.0 / odds), &mut probabilities);
        probabilities.reverse();
        let first = mode - probabilities.len() as u64;
        probabilities.push(1.0);
        push_products(counted(n - mode, mode, odds), &mut probabilities);
        let total: f64 = probabilities.iter().sum();
        let scale = 1.0 / total;
        probabilities.iter_mut().for_each(|probability| *probability *= scale);
        Self { first, probabilities }
    }

    /// The distribution of this plus `size` times the other.
    pub(crate) fn plus_multiples(&self, size: u64, other: &Self) -> Self {
        let stride = index(size);
        let span = (other.probabilities.len() - 1).saturating_mul(stride);
        let mut sums = vec![0.0; self.probabilities.len().saturating_add(span)];
        for (place, &weight) in other.probabilities.iter().enumerate() {
            let shifted = &mut sums[place * stride..];
            for (sum, probability) in shifted.iter_mut().zip(&self.probabilities) {
                *sum += weight * probability;
            }
        }
        Self { first: self.first + size * other.first, probabilities: sums }.trimmed()
    }

    fn trimmed(mut self) -> Self {
        let least = self.probabilities.iter().copied().fold(0.0, f64::max) * NEGLIGIBLE;
        let is_kept = |probability: &f64| *probability > least;
        let end = self.probabilities.iter().rposition(is_kept).map_or(0, |last| last + 1);
        self.probabilities.truncate(end);
        let start = self.probabilities.iter().position(is_kept).unwrap_or(0);
        self.probabilities.drain(..start);
        self.first += start as u64;
        self
    }
}

/// Ratios of neighbouring binomial probabilities while `from` units of one kind become the other.
fn counted(from: u64, to: u64, odds: f64) -> impl Iterator<Item = f64> {
    let (mut from, mut to) = (to_f64(from), to_f64(to));
    std::iter::from_fn(move || {
        to += 1.0;
        let ratio = from * odds / to;
        from -= 1.0;
        (ratio > 0.0).then_some(ratio)
    })
}

/// Products of ratios until they are negligible.
fn push_products(ratios: impl Iterator<Item = f64>, products: &mut Vec<f64>) {
    let mut product = 1.0;
    for ratio in ratios {
        product *= ratio;
        if product <= NEGLIGIBLE {
            break;
        }
        products.push(product);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of units, at least 0"
)]
fn floor(value: f64) -> u64 {
    value as u64
}
