//! What the full `n` votes may bring, seen from fewer: joint chances and joint errors.

use super::Predictive;
use super::lattice::{counts_of, mirrored_sum};
use crate::davidson::{self, Lead};
use crate::{Counts, Label, Model};

/// Chances and errors joint with one sequence of votes to a place of the lattice: divided by the
/// chance of that sequence they are conditional on it. All add up over the votes that may come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outlook {
    /// By label: the sequence comes and the full votes are decided so.
    pub(crate) labels: [f64; 3],
    /// By label: expected absolute error of answering it.
    pub(crate) errors: [f64; 3],
    /// Votes to come if the rule is followed, chance that its label is not that of the full votes,
    /// and error of its label.
    pub(crate) followed: [f64; 3],
}

impl Outlook {
    pub(crate) fn sum(minus: &Self, tie: &Self, plus: &Self) -> Self {
        let add = |[m0, m1, m2]: [f64; 3], [t0, t1, t2]: [f64; 3], [p0, p1, p2]: [f64; 3]| {
            [mirrored_sum(m0, t0, p0), mirrored_sum(m1, t1, p1), mirrored_sum(m2, t2, p2)]
        };
        Self {
            labels: add(minus.labels, tie.labels, plus.labels),
            errors: add(minus.errors, tie.errors, plus.errors),
            followed: add(minus.followed, tie.followed, plus.followed),
        }
    }

    /// The counts of `n` votes, in the order of their places.
    pub(crate) fn full(model: &Model, n: usize, predictive: &Predictive) -> Vec<Self> {
        // Functions of the ties are evaluated once.
        let decisive = |ties: usize| to_counts([n - ties, ties, 0]);
        let tie_logit = |votes: Counts| model.tie_logit(votes.tie, votes.minus);
        let etas: Vec<_> = (0..=n).map(decisive).map(tie_logit).collect();
        let chance_of = predictive.sequence_chance(n);
        let outlook = |counts: [usize; 3]| {
            let chance = chance_of(counts);
            let Counts { minus, plus, .. } = to_counts(counts);
            let (u, eta) = (model.margin_logit(minus, plus), etas[counts[1]]);
            let mut labels = [0.0; 3];
            labels[davidson::action(Lead::new(u), eta).column()] = chance;
            let risks = davidson::risks(davidson::probabilities(u, eta));
            Self { labels, errors: risks.map(|risk| risk * chance), followed: [0.0; 3] }
        };
        counts_of(n).map(outlook).collect()
    }

    /// Chance of the sequence.
    pub(crate) fn chance(&self) -> f64 {
        let [minus, tie, plus] = self.labels;
        mirrored_sum(minus, tie, plus)
    }

    /// The label that is likeliest with all votes; where both sides are as likely, a tie.
    pub(crate) fn likeliest(&self) -> Label {
        let [minus, tie, plus] = self.labels;
        if minus > plus && minus > tie {
            Label::Minus
        } else if plus > minus && plus > tie {
            Label::Plus
        } else {
            Label::Tie
        }
    }

    /// Chance of the sequence and of another label than that with all votes.
    pub(crate) fn others(&self, label: Label) -> f64 {
        let [minus, tie, plus] = self.labels;
        match label {
            Label::Minus => tie + plus,
            Label::Tie => minus + plus,
            Label::Plus => minus + tie,
        }
    }

    /// The label of least expected error; errors that differ by no more than rounding give a tie.
    pub(crate) fn best(&self) -> Label {
        let [minus, tie, plus] = self.errors;
        if tie - minus.min(plus) > 1e-12 * tie {
            if minus < plus { Label::Minus } else { Label::Plus }
        } else {
            Label::Tie
        }
    }
}

pub(crate) fn to_counts([minus, tie, plus]: [usize; 3]) -> Counts {
    Counts::whole(minus as u64, tie as u64, plus as u64)
}
