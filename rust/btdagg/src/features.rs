//! The two features that the model sees of an item's counts (the paper's equations for s and t).
//!
//! Both are computed through `ln(1 + x)`, so they keep full relative accuracy where counts are
//! large and nearly equal, and the margin of mirrored counts is the exact negative.

use crate::model::check_smoothing;
use crate::{Counts, Error};

/// Margin and tie feature of one item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Margin feature, `½ ln((plus + alpha) / (minus + alpha))`.
    pub s: f64,
    /// Tie feature, `ln((tie + kappa) / (minus + tie + plus + kappa))`, at most 0.
    pub t: f64,
}

/// Both features.
///
/// ```
/// use btdagg::{Counts, features};
///
/// let f = features::features(Counts::whole(0, 1, 3), 1.0, 1.0)?;
/// assert!((f.s - 0.5 * 4.0_f64.ln()).abs() < 1e-15);
/// assert!((f.t - (2.0_f64 / 5.0).ln()).abs() < 1e-15);
/// # Ok::<(), btdagg::Error>(())
/// ```
///
/// # Errors
/// [`Error::Input`] if `alpha` or `kappa` is not finite and positive.
pub fn features(counts: Counts, alpha: f64, kappa: f64) -> Result<Features, Error> {
    check_smoothing(alpha, kappa)?;
    Ok(Features::of(counts, alpha, kappa))
}

impl Features {
    /// Of constants that are known to be good, beside a usual number of votes.
    pub(crate) fn beside(counts: Counts, alpha: f64, kappa: f64, usual: Usual) -> Self {
        let Self { s, t } = Self::of(counts, alpha, kappa);
        let (of_margin, of_tie) = usual.factors(counts.total());
        Self { s: s * of_margin, t: t * of_tie }
    }

    /// Of constants that are known to be good.
    pub(crate) fn of(counts: Counts, alpha: f64, kappa: f64) -> Self {
        Self {
            s: margin(counts.minus, counts.plus, alpha),
            t: tie(counts.tie, counts.minus + counts.plus, kappa),
        }
    }
}

/// How features of items with other numbers of votes compare with those of the usual number.
///
/// A feature is taken as the share that it is of its largest, that of a unanimous item: two of two
/// votes say nearly what eight of eight say, since repeated votes of one judge agree, and their
/// smoothed log odds do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usual {
    /// The largest margin and tie feature of the usual number of votes, if there is one.
    largest: Option<(f64, f64)>,
    alpha: f64,
    kappa: f64,
}

impl Usual {
    pub(crate) fn new(votes: Option<f64>, alpha: f64, kappa: f64) -> Self {
        let largest = votes.map(|n| (ln_ratio(n, alpha), ln_ratio(n, kappa)));
        Self { largest, alpha, kappa }
    }

    /// What margin and tie feature of so many votes are multiplied by.
    pub(crate) fn factors(self, total: f64) -> (f64, f64) {
        let Some((margin, tie)) = self.largest else { return (1.0, 1.0) };
        let n = whole_if_near(total);
        if n > 0.0 {
            (margin / ln_ratio(n, self.alpha), tie / ln_ratio(n, self.kappa))
        } else {
            (1.0, 1.0)
        }
    }
}

fn whole_if_near(total: f64) -> f64 {
    let whole = total.round();
    if (total - whole).abs() <= 1e-9 * whole { whole } else { total }
}

/// The number of votes that most items with votes have, the larger of equals; 1 without any.
///
/// ```
/// use btdagg::{Counts, usual_votes};
///
/// let counts = [Counts::whole(1, 0, 1), Counts::whole(0, 3, 5), Counts::whole(8, 0, 0)];
/// assert_eq!(usual_votes(&counts), 8.0);
/// ```
pub fn usual_votes(counts: &[Counts]) -> f64 {
    let mut totals: Vec<f64> = counts.iter().map(|item| whole_if_near(item.total())).collect();
    totals.retain(|total| *total > 0.0);
    totals.sort_by(f64::total_cmp);
    let runs = totals.chunk_by(|one, other| one == other);
    runs.max_by_key(|run| run.len()).map_or(1.0, |run| run[0])
}

/// # Errors
/// [`Error::Input`] if a number of votes is not finite and above 0.
pub(crate) fn check_usual_votes(votes: Option<f64>) -> Result<(), Error> {
    match votes {
        Some(n) if !(n.is_finite() && n > 0.0) => {
            Err(Error::value("usual_votes", n, "a finite number above 0"))
        }
        _ => Ok(()),
    }
}

/// Log-odds margin of the decisive votes, `s = ½ ln((plus + alpha) / (minus + alpha))`.
///
/// Positive where A leads; swapping A and B negates it exactly.
pub(crate) fn margin(minus: f64, plus: f64, alpha: f64) -> f64 {
    let trailing = minus.min(plus) + alpha;
    let size = 0.5 * ln_ratio((plus - minus).abs(), trailing);
    if plus >= minus { size } else { -size }
}

/// Tie evidence, `t = ln((tie + kappa) / (tie + decisive + kappa))`, at most 0.
///
/// `decisive` is the number of votes that are no ties.
pub(crate) fn tie(tie: f64, decisive: f64, kappa: f64) -> f64 {
    -ln_ratio(decisive, tie + kappa)
}

/// `ln((part + rest) / rest)`, for `part ≥ 0` and `rest > 0`.
fn ln_ratio(part: f64, rest: f64) -> f64 {
    let ratio = part / rest;
    if ratio.is_finite() {
        ratio.ln_1p()
    } else {
        part.ln() - rest.ln() // only for smoothing constants near the smallest float
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: f64 = 4_294_967_296.0;

    #[test]
    fn margin_is_exactly_antisymmetric_and_accurate_for_close_large_counts() {
        for (minus, plus) in [(0.0, 1.0), (3.5, 17.0), (LARGE, LARGE - 1.0), (1e19, 0.0)] {
            assert_eq!(margin(minus, plus, 1.0), -margin(plus, minus, 1.0));
        }
        // ½ ln(1 + 1/(2³² + 1)) at 30 digits: 1.16415321786277232999643987285e-10.
        assert_eq!(margin(LARGE, LARGE + 1.0, 1.0), 1.164_153_217_862_772_3e-10);
    }

    #[test]
    fn unanimous_items_of_any_number_of_votes_say_the_same_beside_a_usual_number() {
        let usual = Usual::new(Some(8.0), 1.0, 1.0);
        let of = |counts| Features::beside(counts, 1.0, 1.0, usual);
        let wanted = features(Counts::whole(0, 0, 8), 1.0, 1.0).unwrap();
        assert_eq!(of(Counts::whole(0, 0, 8)), wanted);
        for n in [1, 2, 5, 40] {
            let found = of(Counts::whole(0, 0, n));
            assert!((found.s - wanted.s).abs() < 1e-14 && (found.t - wanted.t).abs() < 1e-14);
        }
        assert_eq!(of(Counts::default()), Features { s: 0.0, t: 0.0 });
        // Strengths of eight votes may sum to a little more or less.
        let nearly = Counts::new(0.1 + 0.2, 3.0, 4.7 - 1e-15).unwrap();
        let plain = features(nearly, 1.0, 1.0).unwrap();
        assert_eq!(of(nearly), plain);
    }

    #[test]
    fn no_votes_and_extreme_smoothing_stay_finite() {
        let none = features(Counts::default(), 1.0, 1.0).unwrap();
        assert_eq!(none, Features { s: 0.0, t: 0.0 });
        let tiny = f64::from_bits(1);
        let counts = Counts::new(0, 0, 1e19).unwrap();
        let f = features(counts, tiny, tiny).unwrap();
        assert!(f.s.is_finite() && f.t.is_finite() && f.s > 0.0 && f.t < 0.0);
    }
}
