use crate::counts::Counts;
use crate::features::{Features, Usual, check_usual_votes};
use crate::fit::fit_rows;
use crate::memory::{collected, reserved};
use crate::region::Region;
use crate::rows::{LabelWeights, Row, WeightedRows};
use crate::{Bounds, Design, Error, Execution, Fit, Loss, Model, Parameters, Provenance};

/// Labelled counts, reduced to their distinct rows: what a fit costs depends on those alone.
///
/// ```
/// use btdagg::{CalibrationSet, Execution, Parameters};
///
/// let counts: [[u8; 3]; 2] = [[0, 0, 1], [1, 0, 0]];
/// let set = CalibrationSet::new(&counts[..], &[1, 0], None, (1.0, 1.0), Execution::single())?;
/// // A judge without influence (beta = 0) and equal odds for the three labels.
/// let even = Parameters { beta: 0.0, eta0: 0.0, gamma: 0.0 };
/// let loss = set.loss(even, Execution::single())?;
/// assert!((loss.drps - (5.0 / 9.0 + 2.0 / 9.0) / 2.0).abs() < 1e-15);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CalibrationSet {
    pub(crate) rows: WeightedRows,
    /// The counts of each row, with no more votes for B than for A.
    pub(crate) counts: Vec<Counts>,
    n_items: usize,
    label_weights: LabelWeights,
    max_votes: u64,
    pub(crate) alpha: f64,
    pub(crate) kappa: f64,
    usual_votes: Option<f64>,
}

impl CalibrationSet {
    pub(crate) fn of_rows(
        rows: &[(Counts, LabelWeights)],
        offsets: Option<&[f64]>,
        label_weights: LabelWeights,
        alpha: f64,
        kappa: f64,
        n_items: usize,
        max_votes: u64,
    ) -> Result<Self, Error> {
        let row = |(place, &(counts, weights)): (usize, &(Counts, LabelWeights))| {
            let Features { s, t } = Features::of(counts, alpha, kappa);
            let offset = offsets.map_or(0.0, |offsets| offsets[place]);
            Row { s, t, offset, weights, place }
        };
        let counts = collected(rows.iter().map(|(counts, _)| *counts))?;
        let rows = WeightedRows::new(collected(rows.iter().enumerate().map(row))?)?;
        let usual_votes = None;
        Ok(Self { rows, counts, n_items, label_weights, max_votes, alpha, kappa, usual_votes })
    }

    /// The same set, whose items have usually so many votes; see [`Model::with_usual_votes`].
    ///
    /// # Errors
    /// [`Error::Input`] if the number is not finite and above 0.
    pub fn with_usual_votes(mut self, usual_votes: Option<f64>) -> Result<Self, Error> {
        check_usual_votes(usual_votes)?;
        let usual = Usual::new(usual_votes, self.alpha, self.kappa);
        for (row, counts) in self.rows.rows.iter_mut().zip(&self.counts) {
            let Features { s, t } = Features::beside(*counts, self.alpha, self.kappa, usual);
            (row.s, row.t) = (s, t);
        }
        self.usual_votes = usual_votes;
        Ok(self)
    }

    /// The design of its distinct rows and the weights of their labels, which sum to that of all
    /// items: what [`Prior::posterior`](crate::Prior::posterior) takes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn design(&self) -> Result<(Design, Vec<f64>), Error> {
        let rows = &self.rows.rows;
        let sides = collected(rows.iter().map(|row| row.s))?;
        let mut ties = reserved(2 * rows.len())?;
        ties.extend(rows.iter().flat_map(|row| [1.0, row.t]));
        let mut weights = reserved(3 * rows.len())?;
        weights.extend(rows.iter().flat_map(|row| row.weights));
        Ok((Design::of_pairs(&sides, 1, &ties)?, weights))
    }

    /// Number of items with a weight above 0.
    pub const fn n_items(&self) -> usize {
        self.n_items
    }

    /// Number of distinct rows, a row and its mirror image being one.
    pub fn n_distinct(&self) -> usize {
        self.rows.rows.len()
    }

    /// Weight of all items together by label, in label order; up to a common factor.
    pub const fn label_weights(&self) -> [f64; 3] {
        self.label_weights
    }

    /// Largest number of votes of an item.
    pub const fn max_votes(&self) -> u64 {
        self.max_votes
    }

    /// Whether some item leans to a side; if none does, the loss does not depend on beta.
    pub fn has_margins(&self) -> bool {
        self.rows.has_margins()
    }

    /// Whether tie features differ; if not, eta0 and gamma cannot be told apart.
    pub fn has_tie_contrast(&self) -> bool {
        self.rows.has_tie_contrast()
    }

    /// The model of a fit to this set: its parameters, the smoothing constants of the set, and the
    /// votes per item and labels that it was fitted to.
    ///
    /// # Errors
    /// [`Error::Input`] if the fit's parameters are not finite.
    pub fn model(&self, fit: &Fit) -> Result<Model, Error> {
        let Parameters { beta, eta0, gamma } = fit.parameters;
        let provenance = Provenance {
            n_votes: Some(self.max_votes).filter(|&most| most > 0),
            n_labels: Some(self.n_items as u64),
            ..Provenance::default()
        };
        let model = Model::new(beta, eta0, gamma)?.with_smoothing(self.alpha, self.kappa)?;
        Ok(model.with_usual_votes(self.usual_votes)?.with_provenance(provenance))
    }

    /// The parameters of least DRPS within the bounds.
    ///
    /// What the items cannot identify is left neutral: beta at 1 where none leans to a side, gamma
    /// at 0 where all have the same share of ties, unless its freedom gives a lower loss, as where
    /// it makes up for the bounds of nu.
    ///
    /// # Errors
    /// [`Error::Input`] if a bound is not finite or a lower one exceeds its upper one;
    /// [`Error::Interrupted`].
    pub fn fit(&self, bounds: &Bounds, execution: Execution<'_>) -> Result<Fit, Error> {
        fit_rows(&self.rows, &Region::new(bounds)?, None, execution)
    }

    /// Mean DRPS and its gradient.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn loss(&self, parameters: Parameters, execution: Execution<'_>) -> Result<Loss, Error> {
        self.rows.loss(parameters, execution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::SUM_BLOCK;

    fn items(n: u64) -> (Vec<[u64; 3]>, Vec<i8>) {
        let rows = (0..n).map(|i| [i % 7, (i * i) % 5, (i / 3) % 41]).collect();
        let labels = (0..n).map(|i| i8::try_from(i * i % 3).unwrap() - 1).collect();
        (rows, labels)
    }

    fn set(rows: &[[u64; 3]], labels: &[i8]) -> CalibrationSet {
        CalibrationSet::new(rows, labels, None, (1.0, 1.0), Execution::single()).unwrap()
    }

    fn loss(set: &CalibrationSet, [beta, eta0, gamma]: [f64; 3]) -> Loss {
        set.loss(Parameters { beta, eta0, gamma }, Execution::single()).unwrap()
    }

    #[test]
    fn a_model_has_the_smoothing_constants_of_its_set() {
        let rows = [[0_u64, 1, 7], [3, 2, 3], [6, 1, 0]];
        let set =
            CalibrationSet::new(&rows[..], &[1, 0, -1], None, (0.5, 2.0), Execution::single())
                .unwrap();
        let parameters = Parameters { beta: 1.5, eta0: 0.5, gamma: -0.25 };
        let model = set.model(&Fit { parameters, ..Fit::default() }).unwrap();
        let wanted = Model::new(1.5, 0.5, -0.25).unwrap().with_smoothing(0.5, 2.0).unwrap();
        assert_eq!(model, wanted);
        let wanted = Provenance { n_votes: Some(8), n_labels: Some(3), ..Provenance::default() };
        assert_eq!(model.provenance(), Some(&wanted));
        let error = set.model(&Fit::default()).unwrap_err().to_string();
        assert_eq!(error, "beta is NaN, expected a finite number");
    }

    #[test]
    fn gradient_is_the_slope_of_the_loss() {
        let (rows, labels) = items(300);
        let set = set(&rows, &labels);
        let theta = [0.8, 0.4, -0.7];
        let gradient = loss(&set, theta).gradient;
        for (i, slope) in gradient.into_iter().enumerate() {
            let step = 1e-5;
            let at = |shift: f64| {
                let mut theta = theta;
                theta[i] += shift;
                loss(&set, theta).drps
            };
            let difference = (at(step) - at(-step)) / (2.0 * step);
            assert!((slope - difference).abs() < 1e-9, "{i}: {slope} {difference}");
        }
    }

    #[test]
    fn mirrored_and_permuted_items_give_the_same_bits() {
        let (mut rows, mut labels) = items(500);
        let theta = [1.3, -0.2, 0.9];
        let expected = loss(&set(&rows, &labels), theta);
        rows.reverse();
        labels.reverse();
        assert_eq!(loss(&set(&rows, &labels), theta), expected);
        rows.iter_mut().for_each(|row| row.reverse());
        labels.iter_mut().for_each(|label| *label = -*label);
        assert_eq!(loss(&set(&rows, &labels), theta), expected);
    }

    #[test]
    fn weights_are_repetitions_and_soft_labels_are_weights() {
        let rows = [[0_u64, 1, 40], [2, 0, 2]];
        let repeated = set(&[rows[0], rows[0], rows[1], rows[1]], &[1, 1, 0, -1]);
        let (weights, single) = ([[0.0, 0.0, 2.0], [1.0, 1.0, 0.0]], Execution::single());
        let soft = CalibrationSet::soft(&rows[..], &weights, (1.0, 1.0), single).unwrap();
        let (three, weights) = ([rows[0], rows[1], rows[1]], [2.0, 1.0, 1.0]);
        let weighted =
            CalibrationSet::new(&three[..], &[1, 0, -1], Some(&weights), (1.0, 1.0), single)
                .unwrap();
        let theta = [0.5, 1.5, 0.25];
        let expected = loss(&repeated, theta);
        assert_eq!(loss(&soft, theta), expected);
        assert_eq!(loss(&weighted, theta), expected);
        assert_eq!((repeated.n_items(), repeated.n_distinct()), (4, 2));
    }

    #[test]
    fn threads_do_not_change_the_bits() {
        let rows: Vec<[u64; 3]> = (0..40_000).map(|i| [i % 199, i % 211, i % 223]).collect();
        let labels: Vec<i8> = (0..40_000_i32).map(|i| i8::try_from(i % 3).unwrap() - 1).collect();
        let set = set(&rows, &labels);
        assert!(set.n_distinct() > 10 * SUM_BLOCK);
        let parameters = Parameters { beta: 1.0, eta0: 0.5, gamma: 0.3 };
        let expected = set.loss(parameters, Execution::single()).unwrap();
        for n_threads in [2, 3, 8] {
            let execution = Execution::threads(n_threads.try_into().unwrap());
            assert_eq!(set.loss(parameters, execution).unwrap(), expected);
        }
    }
}
