//! Weighted rows of features, and the DRPS over them with its gradient.

use crate::memory::collected;
use crate::parallel::for_each_part;
use crate::{Error, Execution, Parameters};

/// Rows whose losses are summed as one block, whatever the number of threads.
pub(crate) const SUM_BLOCK: usize = 1024;

/// Weight of each label, in label order.
pub(crate) type LabelWeights = [f64; 3];

/// Mean DRPS of a calibration set and its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Weighted mean of the discrete ranked probability score.
    pub drps: f64,
    /// Its derivatives with respect to beta, eta0 and gamma.
    pub gradient: [f64; 3],
}

/// One distinct row: its features and the weight of each label.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) s: f64,
    pub(crate) t: f64,
    /// What else is known of it, added to its margin logit.
    pub(crate) offset: f64,
    pub(crate) weights: LabelWeights,
    /// Its place among the rows of the table of losses that it is looked up in.
    pub(crate) place: usize,
}

/// The rows of a fit, each with a weight.
#[derive(Debug, Clone, Default)]
pub(crate) struct WeightedRows {
    pub(crate) rows: Vec<Row>,
    pub(crate) total_weight: f64,
}

impl WeightedRows {
    /// # Errors
    /// [`Error::Input`] if there is no row; [`Error::Input`].
    pub(crate) fn new(rows: Vec<Row>) -> Result<Self, Error> {
        let total_weight: f64 = rows.iter().flat_map(|row| row.weights).sum();
        if rows.is_empty() {
            return Err(Error::no_weight());
        }
        if total_weight.is_infinite() {
            return Err(Error::weight_overflow());
        }
        Ok(Self { rows, total_weight })
    }

    /// The same rows, with their places in a table of their own.
    pub(crate) fn renumbered(&self) -> Result<Self, Error> {
        let numbered = self.rows.iter().enumerate();
        let rows = collected(numbered.map(|(place, row)| Row { place, ..*row }))?;
        Ok(Self { rows, total_weight: self.total_weight })
    }

    /// Whether some row leans to a side; if none does, the loss does not depend on beta.
    pub(crate) fn has_margins(&self) -> bool {
        self.rows.iter().any(|row| row.s != 0.0)
    }

    /// Whether tie features differ; if not, eta0 and gamma cannot be told apart.
    pub(crate) fn has_tie_contrast(&self) -> bool {
        self.rows.windows(2).any(|pair| matches!(pair, [one, other] if one.t != other.t))
    }

    /// Mean DRPS and its gradient.
    pub(crate) fn loss(
        &self,
        parameters: Parameters,
        execution: Execution<'_>,
    ) -> Result<Loss, Error> {
        let add = |sums: &mut [Sum; 4], row: &Row| {
            sums.iter_mut().zip(row.loss(parameters)).for_each(|(sum, term)| sum.add(term));
        };
        let sums = self.sum(execution, add, |total, block| {
            total.iter_mut().zip(block).for_each(|(total, sum)| total.add_sum(sum));
        })?;
        let [drps, beta, eta0, gamma] = sums.map(|sum| sum.value() / self.total_weight);
        Ok(Loss { drps, gradient: [beta, eta0, gamma] })
    }

    /// Something summed over the rows. Blocks of them are summed on any thread and added in order,
    /// so that the bits do not depend on the number of threads.
    pub(crate) fn sum<S: Default + Send>(
        &self,
        execution: Execution<'_>,
        add: impl Fn(&mut S, &Row) + Sync,
        merge: impl Fn(&mut S, S),
    ) -> Result<S, Error> {
        let sum_of = |block: &[Row]| {
            let mut sum = S::default();
            block.iter().for_each(|row| add(&mut sum, row));
            sum
        };
        if self.rows.len() <= SUM_BLOCK {
            return Ok(sum_of(&self.rows));
        }
        let mut sums: Vec<S> = self.rows.chunks(SUM_BLOCK).map(|_| S::default()).collect();
        for_each_part(&mut sums, 1, execution, |start, part, mut watch| {
            for (sum, block) in part.iter_mut().zip(self.rows.chunks(SUM_BLOCK).skip(start)) {
                watch.poll()?;
                *sum = sum_of(block);
            }
            Ok(())
        })?;
        let mut total = S::default();
        sums.into_iter().for_each(|sum| merge(&mut total, sum));
        Ok(total)
    }
}

impl Row {
    pub(crate) fn probabilities(&self, parameters: Parameters) -> [f64; 3] {
        parameters.probabilities(self.s, self.t, self.offset)
    }

    /// Weighted DRPS and its derivatives with respect to beta, eta0 and gamma.
    ///
    /// With `p(±)` and `p(0)` the probabilities and `q(±) = 1 − p(±)`, the score of a label is
    /// `q(−)² + p(+)²`, `p(−)² + p(+)²` or `p(−)² + q(+)²`. Nothing is subtracted from 1, so
    /// each term is accurate relative to itself.
    fn loss(&self, parameters: Parameters) -> [f64; 4] {
        let [minus, tie, plus] = self.probabilities(parameters);
        let (not_minus, not_plus) = (tie + plus, minus + tie);
        // How the two tails react to the margin and to the tie logit; all four are positive.
        let (minus_falls, plus_rises) = (minus * (2.0 * plus + tie), plus * (2.0 * minus + tie));
        let (minus_yields, plus_yields) = (minus * tie, plus * tie);

        let [if_minus, if_tie, if_plus] = self.weights;
        let score = if_minus * (not_minus * not_minus + plus * plus)
            + if_tie * (minus * minus + plus * plus)
            + if_plus * (minus * minus + not_plus * not_plus);
        let by_u = 2.0
            * (if_minus * (not_minus * minus_falls + plus * plus_rises)
                + if_tie * (plus * plus_rises - minus * minus_falls)
                - if_plus * (minus * minus_falls + not_plus * plus_rises));
        let by_eta = 2.0
            * (if_minus * (not_minus * minus_yields - plus * plus_yields)
                - if_tie * (minus * minus_yields + plus * plus_yields)
                + if_plus * (not_plus * plus_yields - minus * minus_yields));
        [score, by_u * self.s, by_eta, by_eta * self.t]
    }
}

/// A sum that carries its rounding error along (Neumaier).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    sum: f64,
    error: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        self.error += if self.sum.abs() >= term.abs() {
            (self.sum - sum) + term
        } else {
            (term - sum) + self.sum
        };
        self.sum = sum;
    }

    fn add_sum(&mut self, other: Self) {
        self.add(other.sum);
        self.error += other.error;
    }

    pub(crate) fn value(self) -> f64 {
        self.sum + self.error
    }
}
