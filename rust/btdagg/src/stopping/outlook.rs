//! What the full `n` votes may bring, seen from fewer: joint chances and joint errors.

use super::Predictive;
use super::lattice::{counts_of, mirrored_sum};
use crate::quantities::{Decisions, OfProbabilities};
use crate::table::Quantity;
use crate::{Counts, Label, Model, davidson};

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
    pub(crate) fn full<'a>(
        model: &'a Model,
        n: usize,
        predictive: &'a Predictive,
    ) -> impl Iterator<Item = Self> + 'a {
        let chances = predictive.sequence_chances(n, counts_of(n));
        let risks = on_last_layer(OfProbabilities(model, davidson::risks), n);
        full_decisions(model, n).zip(risks).zip(chances).map(|((label, risks), chance)| {
            let mut labels = [0.0; 3];
            labels[label.column()] = chance;
            Self { labels, errors: risks.map(|risk| risk * chance), followed: [0.0; 3] }
        })
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

/// The model's decision of each of the counts of `n` votes.
pub(crate) fn full_decisions(model: &Model, n: usize) -> impl Iterator<Item = Label> + '_ {
    on_last_layer(Decisions::<Label>::of_model(model), n)
}

/// A quantity of each of the counts of `n` votes: functions of the ties are evaluated once.
fn on_last_layer<Q: Quantity>(quantity: Q, n: usize) -> impl Iterator<Item = Q::Value> {
    let ties: Vec<Q::Tie> = (0..=n)
        .map(|tie| {
            let Counts { minus, tie, plus } = to_counts([n - tie, tie, 0]);
            quantity.tie(tie, minus + plus)
        })
        .collect();
    counts_of(n).map(move |counts| {
        let Counts { minus, plus, .. } = to_counts(counts);
        quantity.value(quantity.side(minus, plus), ties[counts[1]])
    })
}

pub(crate) fn to_counts([minus, tie, plus]: [usize; 3]) -> Counts {
    Counts::whole(minus as u64, tie as u64, plus as u64)
}
