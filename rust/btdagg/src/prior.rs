//! A prior learned from neighbours: other tasks of the judge, other judges, whatever is labelled.
//!
//! Nonparametric empirical Bayes: the prior is the mean of the neighbours' posteriors under the weak
//! prior, each held as equally likely parameters.

use std::collections::BTreeMap;

use crate::calibration_set::CalibrationSet;
use crate::counts::Counts;
use crate::index::to_f64;
use crate::memory::collected;
use crate::posterior::Posteriors;
use crate::region::{Region, Vector};
use crate::rows::LabelWeights;
use crate::vectors::ln_gamma;
use crate::{Bounds, Error, Parameters};

/// Labels that a neighbour counts for at the most.
const CAP: f64 = 400.0;

/// Distinct rows of counts that are not whole, beyond which they are laid on a grid.
const MANY: usize = 2048;

/// Parameters that are equally likely before the first label.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    pub(crate) thetas: Vec<Vector>,
}

impl Prior {
    /// Of equally likely parameters.
    ///
    /// # Errors
    /// [`Error::Input`] if there are none; [`Error::Input`] if one lies outside the default
    /// bounds.
    pub fn new(thetas: &[Parameters]) -> Result<Self, Error> {
        if thetas.is_empty() {
            return Err(Error::no_weight());
        }
        let region = Region::new(&Bounds::default())?;
        for theta in thetas.iter().copied().map(Parameters::vector) {
            let near = region.nearest(theta);
            for (i, name) in ["beta", "eta0", "gamma"].into_iter().enumerate() {
                if near[i] != theta[i] {
                    return Err(Error::value(name, theta[i], "a number within the bounds"));
                }
            }
        }
        Ok(Self { thetas: thetas.iter().copied().map(Parameters::vector).collect() })
    }

    /// The parameters.
    pub fn parameters(&self) -> Vec<Parameters> {
        self.thetas.iter().copied().map(Parameters::of).collect()
    }

    /// So many equally likely parameters, learned from the items of a neighbour, whose weights are
    /// worth so many labels. Items with more than `n_votes` votes count as all the ways of keeping
    /// so many of them at random.
    ///
    /// # Errors
    /// [`Error::Input`] if the neighbour has no labels.
    pub fn of_neighbour(
        set: &CalibrationSet,
        n_labels: f64,
        n_votes: u64,
        n: usize,
    ) -> Result<Self, Error> {
        let thin = set.thinned(n_votes)?.binned()?;
        let labels = thin.labels_worth(n_labels);
        Ok(Self { thetas: Posteriors::new(&thin, None)?.particles(&labels, CAP, n)? })
    }
}

impl CalibrationSet {
    /// Label weights of the rows, whose sum is the number of items.
    pub fn labels(&self) -> Vec<LabelWeights> {
        self.labels_worth(to_f64(self.n_items() as u64))
    }

    /// Label weights of the rows, whose sum is so many labels.
    pub fn labels_worth(&self, n_labels: f64) -> Vec<LabelWeights> {
        let scale = n_labels / self.rows.total_weight;
        self.rows.rows.iter().map(|row| row.weights.map(|weight| weight * scale)).collect()
    }

    /// The same items with at most so many votes: one that has more counts as all the ways of
    /// keeping so many of them, by how likely each is where they are drawn at random. Counts that
    /// are not whole do not tell their votes: each is scaled down to so many.
    ///
    /// # Errors
    /// [`Error::Input`], if no item has a weight, or items have offsets.
    pub fn thinned(&self, n_votes: u64) -> Result<Self, Error> {
        if self.rows.has_offsets() {
            return Err(Error::input("set", "has offsets", "counts and labels alone"));
        }
        if self.max_votes() <= n_votes {
            return Ok(self.clone());
        }
        let mut rows: BTreeMap<Counts, LabelWeights> = BTreeMap::new();
        let mut add = |counts: Counts, share: f64, weights: LabelWeights| {
            add_upright(&mut rows, counts, weights.map(|weight| weight * share));
        };
        for (&counts, row) in self.counts.iter().zip(&self.rows.rows) {
            if counts.n_votes() <= n_votes {
                add(counts, 1.0, row.weights);
                continue;
            }
            let Some([minus, tie, plus]) = counts.as_whole() else {
                let kept = to_f64(n_votes) / counts.total();
                add(counts.map(|count| kept * count), 1.0, row.weights);
                continue;
            };
            let total = minus + tie + plus;
            let log_all = ln_choose(total, n_votes);
            for kept_minus in n_votes.saturating_sub(tie + plus)..=minus.min(n_votes) {
                let left = n_votes - kept_minus;
                for kept_tie in left.saturating_sub(plus)..=tie.min(left) {
                    let kept_plus = left - kept_tie;
                    let log_ways = ln_choose(minus, kept_minus)
                        + ln_choose(tie, kept_tie)
                        + ln_choose(plus, kept_plus);
                    let share = (log_ways - log_all).exp();
                    add(Counts::whole(kept_minus, kept_tie, kept_plus), share, row.weights);
                }
            }
        }
        self.with_rows(rows, n_votes)
    }

    /// The same items on a grid, if their counts are not whole and nearly all distinct.
    ///
    /// A prior looks at each distinct row at thousands of points. The grid's step is a power of two,
    /// the least of at least a 64th of an item's votes, or more where that leaves too many.
    ///
    /// # Errors
    /// [`Error::Input`], if no item has a weight.
    pub fn binned(self) -> Result<Self, Error> {
        let counts = if self.rows.has_offsets() { None } else { binned(&self.counts)? };
        let Some(counts) = counts else {
            return Ok(self);
        };
        let mut rows: BTreeMap<Counts, LabelWeights> = BTreeMap::new();
        for (counts, row) in counts.into_iter().zip(&self.rows.rows) {
            add_upright(&mut rows, counts, row.weights);
        }
        self.with_rows(rows, self.max_votes())
    }

    fn with_rows(
        &self,
        rows: BTreeMap<Counts, LabelWeights>,
        max_votes: u64,
    ) -> Result<Self, Error> {
        let rows: Vec<(Counts, LabelWeights)> = rows.into_iter().collect();
        let label_weights = self.label_weights();
        Self::of_rows(&rows, None, label_weights, self.alpha, self.kappa, self.n_items(), max_votes)
    }
}

/// Counts on a grid, if they are not whole and nearly all distinct.
pub(crate) fn binned(counts: &[Counts]) -> Result<Option<Vec<Counts>>, Error> {
    let is_whole = |counts: &Counts| counts.as_whole().is_some();
    let mut found = None;
    for n_steps in [64.0, 32.0, 16.0, 8.0] {
        let counts = found.as_deref().unwrap_or(counts);
        let mut distinct = collected(counts.iter().map(|counts| upright(*counts, [0.0; 3]).0))?;
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() <= MANY || counts.iter().all(is_whole) {
            break;
        }
        let on_grid = |counts: &Counts| {
            if is_whole(counts) { *counts } else { on_grid(*counts, n_steps) }
        };
        found = Some(collected(counts.iter().map(on_grid))?);
    }
    Ok(found)
}

/// Both sides to the next multiple of a step, and as many ties as are left of the votes.
fn on_grid(counts: Counts, n_steps: f64) -> Counts {
    let total = counts.total();
    if total <= 0.0 {
        return counts;
    }
    let step = (total / n_steps).log2().ceil().exp2();
    let [minus, plus] = [counts.minus, counts.plus].map(|count| (count / step).round() * step);
    Counts { minus, tie: (total - minus - plus).max(0.0), plus }
}

fn add_upright(rows: &mut BTreeMap<Counts, LabelWeights>, counts: Counts, weights: LabelWeights) {
    let (counts, weights) = upright(counts, weights);
    let sums = rows.entry(counts).or_default();
    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
}

/// A row or its mirror image, whichever has no more votes for B.
pub(crate) fn upright(counts: Counts, weights: LabelWeights) -> (Counts, LabelWeights) {
    let [minus, tie, plus] = weights;
    match counts.minus.total_cmp(&counts.plus) {
        std::cmp::Ordering::Less => (counts, weights),
        std::cmp::Ordering::Equal => (counts, [0.0, tie, minus + plus]),
        std::cmp::Ordering::Greater => (counts.mirrored(), [plus, tie, minus]),
    }
}

fn ln_choose(n: u64, k: u64) -> f64 {
    let [n, k] = [n, k].map(to_f64);
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Execution;

    fn set(rows: &[[u64; 3]], labels: &[i8]) -> CalibrationSet {
        CalibrationSet::new(rows, labels, None, (1.0, 1.0), Execution::single()).unwrap()
    }

    fn weights_of(set: &CalibrationSet) -> BTreeMap<Counts, LabelWeights> {
        set.counts.iter().copied().zip(set.labels()).collect()
    }

    #[test]
    fn thinning_counts_the_ways_of_keeping_votes() {
        let thin = weights_of(&set(&[[1, 1, 3]], &[1]).thinned(2).unwrap());
        // Of ten pairs of the five votes three are of A alone, three of A and B, three of A and a tie.
        let wanted = [
            (Counts::whole(0, 0, 2), [0.0, 0.0, 0.3]),
            (Counts::whole(0, 1, 1), [0.1, 0.0, 0.3]),
            (Counts::whole(1, 0, 1), [0.0, 0.0, 0.3]),
        ];
        assert_eq!(thin.len(), wanted.len());
        for (counts, weights) in wanted {
            let found = thin[&counts];
            assert!(found.iter().zip(weights).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        }
    }

    #[test]
    fn thinning_twice_is_thinning_once_and_few_votes_stay() {
        let set = set(&[[2, 3, 7], [9, 1, 2], [0, 12, 0], [1, 0, 2]], &[1, -1, 0, 1]);
        let (once, twice) = (set.thinned(4).unwrap(), set.thinned(8).unwrap().thinned(4).unwrap());
        let (once, twice) = (weights_of(&once), weights_of(&twice));
        assert_eq!(once.len(), twice.len());
        for (counts, weights) in &once {
            assert!(weights.iter().zip(twice[counts]).all(|(a, b)| (a - b).abs() < 1e-12));
        }
        assert_eq!(weights_of(&set.thinned(12).unwrap()), weights_of(&set));
        assert!((once[&Counts::whole(1, 0, 2)][2] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn thinned_fractions_are_scaled_and_many_of_them_lie_on_a_grid() {
        let thin = CalibrationSet::new(
            &[[0.5, 1.5, 6.0]][..],
            &[1],
            None,
            (1.0, 1.0),
            Execution::single(),
        )
        .unwrap()
        .thinned(2)
        .unwrap();
        assert_eq!(thin.counts, [Counts::new(0.125, 0.375, 1.5).unwrap()]);

        let share = |i: u32| f64::from(i * 37 % 8192) / 1024.0;
        let rows: Vec<[f64; 3]> = (0..8192)
            .map(|i| {
                let (plus, minus) = (share(i), share(i * i) / 8.0 * (8.0 - share(i)));
                [minus, 8.0 - plus - minus, plus]
            })
            .collect();
        let labels: Vec<i8> = (0..8192).map(|i| i8::try_from(i % 3).unwrap() - 1).collect();
        let set =
            CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single()).unwrap();
        let binned = set.clone().binned().unwrap();
        assert!(set.n_distinct() > 4000 && binned.n_distinct() <= MANY);
        assert!(binned.counts.iter().all(|c| c.plus * 8.0 % 1.0 == 0.0 && c.total() == 8.0));
        assert_eq!(binned.labels().iter().flatten().sum::<f64>().round(), 8192.0);
        let theta = Parameters { beta: 1.3, eta0: 0.4, gamma: 0.8 };
        let [before, after] =
            [&set, &binned].map(|set| set.loss(theta, Execution::single()).unwrap().drps);
        assert!((before - after).abs() < 1e-4, "{before} {after}");
    }

    #[test]
    fn a_prior_is_learned_and_made_of_its_parameters() {
        let set = set(&[[0, 1, 7], [8, 0, 1], [2, 4, 2]], &[1, -1, 0]);
        let learned = Prior::of_neighbour(&set, 3.0, 8, 1024).unwrap();
        assert_eq!(learned.parameters().len(), 1024);
        assert_eq!(Prior::new(&learned.parameters()).unwrap(), learned);
        let outside = Parameters { beta: 7.0, eta0: 0.0, gamma: 0.0 };
        assert!(Prior::new(&[outside]).is_err());
    }
}
