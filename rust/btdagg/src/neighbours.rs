//! A prior learned from neighbours: other tasks of the judge, other judges, whatever is labelled.
//!
//! Nonparametric empirical Bayes: the prior is the mean of the neighbours' posteriors under the weak
//! prior, each held as equally likely parameters.

use std::collections::BTreeMap;

use crate::calibration_set::CalibrationSet;
use crate::counts::Counts;
use crate::posterior::Posteriors;
use crate::rows::LabelWeights;
use crate::vectors::ln_gamma;
use crate::{Error, Prior};

/// Labels that a neighbour counts for at the most.
const CAP: f64 = 400.0;

impl Prior {
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
        let thin = set.thinned(n_votes)?;
        let labels = thin.labels_worth(n_labels);
        Ok(Self { thetas: Posteriors::new(&thin, None)?.particles(&labels, CAP, n)? })
    }
}

impl CalibrationSet {
    /// Label weights of the rows, whose sum is the number of items.
    #[must_use]
    pub fn labels(&self) -> Vec<LabelWeights> {
        self.labels_worth(to_f64(self.n_items() as u64))
    }

    /// Label weights of the rows, whose sum is so many labels.
    #[must_use]
    pub fn labels_worth(&self, n_labels: f64) -> Vec<LabelWeights> {
        let scale = n_labels / self.rows.total_weight();
        self.rows.rows().iter().map(|row| row.weights.map(|weight| weight * scale)).collect()
    }

    /// The same items with at most so many votes: one that has more counts as all the ways of
    /// keeping so many of them, by how likely each is where they are drawn at random.
    ///
    /// # Errors
    /// [`Error::Input`], if no item has a weight.
    pub fn thinned(&self, n_votes: u64) -> Result<Self, Error> {
        if self.max_votes() <= n_votes {
            return Ok(self.clone());
        }
        let mut rows: BTreeMap<Counts, LabelWeights> = BTreeMap::new();
        let mut add = |counts: Counts, share: f64, weights: LabelWeights| {
            let (counts, weights) = upright(counts, weights.map(|weight| weight * share));
            let sums = rows.entry(counts).or_default();
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
        };
        for (&counts, row) in self.counts.iter().zip(self.rows.rows()) {
            let Counts { minus, tie, plus } = counts;
            let total = counts.total();
            if total <= n_votes {
                add(counts, 1.0, row.weights);
                continue;
            }
            let log_all = ln_choose(total, n_votes);
            for kept_minus in n_votes.saturating_sub(tie + plus)..=minus.min(n_votes) {
                let left = n_votes - kept_minus;
                for kept_tie in left.saturating_sub(plus)..=tie.min(left) {
                    let kept_plus = left - kept_tie;
                    let log_ways = ln_choose(minus, kept_minus)
                        + ln_choose(tie, kept_tie)
                        + ln_choose(plus, kept_plus);
                    let share = (log_ways - log_all).exp();
                    add(Counts::new(kept_minus, kept_tie, kept_plus), share, row.weights);
                }
            }
        }
        let rows: Vec<(Counts, LabelWeights)> = rows.into_iter().collect();
        let label_weights = self.label_weights();
        Self::new(&rows, label_weights, self.alpha, self.kappa, self.n_items(), n_votes)
    }
}

/// A row or its mirror image, whichever has no more votes for B.
fn upright(counts: Counts, weights: LabelWeights) -> (Counts, LabelWeights) {
    let [minus, tie, plus] = weights;
    match counts.minus.cmp(&counts.plus) {
        std::cmp::Ordering::Less => (counts, weights),
        std::cmp::Ordering::Equal => (counts, [0.0, tie, minus + plus]),
        std::cmp::Ordering::Greater => (counts.mirrored(), [plus, tie, minus]),
    }
}

fn ln_choose(n: u64, k: u64) -> f64 {
    let [n, k] = [n, k].map(to_f64);
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2⁵³ are rounded")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::{CalibrationSetBuilder, Execution};

    fn set(rows: &[[u64; 3]], labels: &[i8]) -> CalibrationSet {
        let mut builder = CalibrationSetBuilder::new();
        builder.add(rows, labels, None, Execution::single()).unwrap();
        builder.build(1.0, 1.0).unwrap()
    }

    fn weights_of(set: &CalibrationSet) -> BTreeMap<Counts, LabelWeights> {
        set.counts.iter().copied().zip(set.labels()).collect()
    }

    #[test]
    fn thinning_counts_the_ways_of_keeping_votes() {
        let thin = weights_of(&set(&[[1, 1, 3]], &[1]).thinned(2).unwrap());
        // Of ten pairs of the five votes three are of A alone, three of A and B, three of A and a tie.
        let wanted = [
            (Counts::new(0, 0, 2), [0.0, 0.0, 0.3]),
            (Counts::new(0, 1, 1), [0.1, 0.0, 0.3]),
            (Counts::new(1, 0, 1), [0.0, 0.0, 0.3]),
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
        assert!((once[&Counts::new(1, 0, 2)][2] - 1.0).abs() < 1e-12);
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
