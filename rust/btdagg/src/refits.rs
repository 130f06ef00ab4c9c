//! Thousands of fits to the same labelled counts under other weights, as a bootstrap wants them.
//!
//! The loss is linear in the weights, so what the grid of a fit computes is computed once: a
//! refit's losses on the grid are a weighted sum of columns. They are summed in single precision,
//! since they only say where to start; the descents are those of a single fit.

use std::collections::BTreeMap;

use crate::calibration_set::Row;
use crate::counts::Counts;
use crate::davidson::{self, Lead};
use crate::descent::Descent;
use crate::expansion::{Expansion, Vector};
use crate::features::{self, Features};
use crate::fit::bounded_exp;
use crate::grid::Grid;
use crate::model::check_smoothing;
use crate::parallel::for_each_part;
use crate::region::{Region, parameters, vector};
use crate::{Bounds, Error, Execution, Label, Model, Parameters};

/// Numbers that the table of scores on the grid may hold.
const MAX_TABLE: usize = 8 << 20;

/// Grid points whose losses are summed at a time: they stay in the first-level cache.
const CHUNK: usize = 1024;

/// How far above the lowest grid point a basin may be for its bottom to be looked for.
const REACH: f64 = 0.05;

/// How far above the lowest grid point the floor of a valley may lie.
const FLOOR: f64 = 0.004;

/// A descent that is above the best by more than so many times what its next step promises is
/// given up, once it has taken a few steps.
const HOPELESS: f64 = 10.0;
const FIRST_STEPS: usize = 3;

/// A descent that comes so near a known bottom, in each parameter, ends there.
const NEAR: f64 = 0.05;

/// Counts with a label: what weights are given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Votes of the items of the cell.
    pub counts: Counts,
    /// Their label.
    pub label: Label,
}

/// Where a refit ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refit {
    /// The parameters of least DRPS.
    pub parameters: Parameters,
    /// Mean DRPS there.
    pub drps: f64,
    /// Whether the last step promised no further decrease.
    pub converged: bool,
    /// Whether beta, eta0 and gamma are at one of their bounds.
    pub at_bounds: [bool; 3],
}

impl Default for Refit {
    fn default() -> Self {
        let parameters = Parameters { beta: f64::NAN, eta0: f64::NAN, gamma: f64::NAN };
        Self { parameters, drps: f64::NAN, converged: false, at_bounds: [false; 3] }
    }
}

/// Labelled counts that are fitted again and again under other weights.
///
/// ```
/// use btdagg::{Bounds, Cell, Counts, Execution, Label, Refit, Refits};
///
/// let cell = |minus, tie, plus, label| Cell { counts: Counts::new(minus, tie, plus), label };
/// let cells = [
///     cell(0, 2, 10, Label::Plus),
///     cell(1, 10, 1, Label::Tie),
///     cell(11, 1, 0, Label::Minus),
///     cell(4, 3, 5, Label::Tie),
/// ];
/// let refits = Refits::new(&cells, 1.0, 1.0, &Bounds::default())?;
/// let mut fits = [Refit::default(); 2];
/// refits.fit_into(&[1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 1.0, 1.0], &mut fits, Execution::single())?;
/// assert!(fits[0].converged);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug)]
pub struct Refits {
    region: Region,
    grid: Grid,
    /// Features of the distinct rows, a row and its mirror image being one.
    rows: Vec<Row>,
    /// Row and column of each cell.
    places: Vec<(usize, usize)>,
    /// Scores on the grid of some rows' three labels, in the order of the rows; one column per
    /// label. Of many rows, which have no narrow basins, evenly spaced ones.
    columns: Vec<[Vec<f32>; 3]>,
    stride: usize,
}

impl Refits {
    /// Prepares the fits.
    ///
    /// # Errors
    /// [`Error::Smoothing`]; [`Error::Bounds`]; [`Error::NoWeight`] if there is no cell.
    pub fn new(cells: &[Cell], alpha: f64, kappa: f64, bounds: &Bounds) -> Result<Self, Error> {
        check_smoothing(alpha, kappa)?;
        let region = Region::new(bounds)?;
        if cells.is_empty() {
            return Err(Error::NoWeight);
        }
        // Swapping A and B together with the label leaves a score as it is.
        let upright = |cell: &Cell| {
            let Counts { minus, plus, .. } = cell.counts;
            if minus > plus || minus == plus && cell.label == Label::Minus {
                (cell.counts.mirrored(), cell.label.mirrored().column())
            } else {
                (cell.counts, cell.label.column())
            }
        };
        let mut numbers: BTreeMap<Counts, usize> =
            cells.iter().map(|cell| (upright(cell).0, 0)).collect();
        numbers.values_mut().enumerate().for_each(|(place, number)| *number = place);
        let places = cells
            .iter()
            .map(upright)
            .map(|(counts, column)| (numbers.get(&counts).copied().unwrap_or_default(), column));
        let places = places.collect();
        let rows: Vec<Row> = numbers
            .keys()
            .map(|&counts| {
                let Features { s, t } = features::features(counts, alpha, kappa);
                Row { s, t, weights: [0.0; 3] }
            })
            .collect();
        let grid = Grid::new(region.grid());
        let stride = rows.len().div_ceil((MAX_TABLE / (3 * grid.len())).max(16));
        let columns = rows.iter().step_by(stride).map(|row| columns(row, &grid)).collect();
        Ok(Self { region, grid, rows, places, columns, stride })
    }

    /// Number of cells, and so of weights of a refit.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        self.places.len()
    }

    /// Fits under each of many weightings: `weights` holds those of the cells, fit after fit.
    ///
    /// What the items of a weighting cannot identify is left neutral, as the Python package's
    /// `calibrate` does: beta at 1 where none leans to a side, gamma at 0 where all have the same
    /// share of ties, unless its freedom gives a lower loss. Each fit depends on its weights alone.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Weight`] if a weight is negative or not finite, where `row` is
    /// that of the flat weights; [`Error::NoWeight`] if a fit has none; [`Error::Interrupted`].
    pub fn fit_into(
        &self,
        weights: &[f64],
        out: &mut [Refit],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let (got, wanted) = (weights.len(), out.len() * self.n_cells());
        if got != wanted {
            return Err(Error::Length { name: "weights", got, wanted, other: "the refits" });
        }
        for_each_part(out, 1, execution, |start, part, watch| {
            let mut work = Work::default();
            let lines = weights.chunks(self.n_cells()).skip(start);
            for (number, (weights, out)) in lines.zip(part).enumerate() {
                watch.ask_now()?;
                work.weigh(self, weights, (start + number) * self.n_cells())?;
                *out = self.fit(&mut work)?;
            }
            Ok(())
        })
    }

    /// Derivatives of the DRPS of each cell, with a weight of 1, by beta, eta0 and gamma.
    #[must_use]
    pub fn gradients(&self, parameters: Parameters) -> Vec<[f64; 3]> {
        let at = |&(row, column): &(usize, usize)| {
            let mut row = self.rows.get(row).copied()?;
            row.weights[column] = 1.0;
            Some(Expansion::of_rows(&[row], vector(parameters), 1.0).gradient)
        };
        self.places.iter().map(|place| at(place).unwrap_or_default()).collect()
    }

    /// Second derivatives of the mean DRPS under the weights of the cells.
    ///
    /// # Errors
    /// As [`fit_into`](Self::fit_into).
    pub fn hessian(&self, parameters: Parameters, weights: &[f64]) -> Result<[[f64; 3]; 3], Error> {
        let (got, wanted) = (weights.len(), self.n_cells());
        if got != wanted {
            return Err(Error::Length { name: "weights", got, wanted, other: "the cells" });
        }
        let mut work = Work::default();
        work.weigh(self, weights, 0)?;
        Ok(Expansion::of_rows(&work.rows, vector(parameters), work.total).hessian)
    }

    fn fit(&self, work: &mut Work) -> Result<Refit, Error> {
        let leans = work.rows.iter().any(|row| row.s != 0.0);
        let contrast = work.rows.windows(2).any(|pair| matches!(pair, [a, b] if a.t != b.t));
        if leans && contrast {
            work.sum_losses(&self.columns, self.stride);
            let starts = self.grid.starts(&work.losses, REACH, FLOOR);
            return work.best(&starts, &self.region);
        }
        // Rare: a grid of its own, over what can be identified.
        let mut held = self.region.clone();
        if !leans {
            held.hold(0, 1.0);
        }
        let free = held.clone();
        if !contrast {
            held.hold(2, 0.0);
        }
        let neutral = work.on_own_grid(&held)?;
        if contrast {
            return Ok(neutral);
        }
        let other = work.on_own_grid(&free)?;
        Ok(if other.drps < neutral.drps - 1e-12 { other } else { neutral })
    }
}

/// The decision of every row under each of many parameters, set after set: how sure a decision is
/// where the parameters are not.
///
/// # Errors
/// [`Error::Smoothing`]; [`Error::Parameter`]; [`Error::Length`] if `out` has not a decision for
/// each row of each set; [`Error::Interrupted`].
pub fn decide_under(
    parameters: &[Parameters],
    (alpha, kappa): (f64, f64),
    counts: &[Counts],
    out: &mut [i8],
    execution: Execution<'_>,
) -> Result<(), Error> {
    check_smoothing(alpha, kappa)?;
    for &Parameters { beta, eta0, gamma } in parameters {
        Model::new(beta, eta0, gamma)?;
    }
    let (got, wanted) = (out.len(), counts.len() * parameters.len());
    if got != wanted {
        return Err(Error::Length { name: "out", got, wanted, other: "rows and parameters" });
    }
    if counts.is_empty() {
        return Ok(());
    }
    let features: Vec<Features> =
        counts.iter().map(|&counts| features::features(counts, alpha, kappa)).collect();
    for_each_part(out, counts.len(), execution, |start, part, watch| {
        let sets = parameters.iter().skip(start / counts.len());
        for (parameters, out) in sets.zip(part.chunks_mut(counts.len())) {
            watch.ask_now()?;
            for (features, out) in features.iter().zip(out) {
                let lead = Lead::new(parameters.margin_logit(features.s));
                *out = davidson::action(lead, parameters.tie_logit(features.t)).value();
            }
        }
        Ok(())
    })
}

/// Scores of the three labels of a row at all points of the grid, up to a constant per label.
fn columns(row: &Row, grid: &Grid) -> [Vec<f32>; 3] {
    let [betas, eta0s, gammas] = &grid.axes;
    let ties: Vec<f64> = eta0s
        .iter()
        .flat_map(|eta0| gammas.iter().map(move |gamma| bounded_exp(eta0 + gamma * row.t)))
        .collect();
    let mut columns = [(); 3].map(|()| Vec::with_capacity(grid.len()));
    for beta in betas {
        let (minus, plus) = (bounded_exp(-beta * row.s), bounded_exp(beta * row.s));
        for tie in &ties {
            let scale = 1.0 / (minus + tie + plus);
            let (minus, plus) = (minus * scale, plus * scale);
            let squares = minus * minus + plus * plus;
            let scores = [squares - 2.0 * minus, squares, squares - 2.0 * plus];
            columns.iter_mut().zip(scores).for_each(|(column, score)| column.push(single(score)));
        }
    }
    columns
}

#[expect(clippy::cast_possible_truncation, reason = "the grid only says where to start")]
fn single(value: f64) -> f32 {
    value as f32
}

fn is_near(one: Vector, other: Vector) -> bool {
    one.iter().zip(other).all(|(a, b)| (a - b).abs() <= NEAR)
}

/// What a thread works with, fit after fit.
#[derive(Default)]
struct Work {
    /// Rows with a weight in this fit.
    rows: Vec<Row>,
    /// Their numbers among all rows.
    numbers: Vec<usize>,
    all: Vec<Row>,
    total: f64,
    losses: Vec<f32>,
}

impl Work {
    /// Adds the weights of the cells to their rows and keeps the rows that have some.
    fn weigh(&mut self, refits: &Refits, weights: &[f64], first: usize) -> Result<(), Error> {
        self.all.clone_from(&refits.rows);
        for (i, (&weight, &(row, column))) in weights.iter().zip(&refits.places).enumerate() {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(Error::Weight { row: first + i, value: weight });
            }
            if let Some(row) = self.all.get_mut(row) {
                row.weights[column] += weight;
            }
        }
        self.rows.clear();
        self.numbers.clear();
        for (number, row) in self.all.iter().enumerate() {
            if row.weights.iter().any(|&weight| weight > 0.0) {
                self.rows.push(*row);
                self.numbers.push(number);
            }
        }
        self.total = self.rows.iter().flat_map(|row| row.weights).sum();
        if self.rows.is_empty() {
            return Err(Error::NoWeight);
        }
        if self.total.is_infinite() {
            return Err(Error::WeightOverflow);
        }
        Ok(())
    }

    /// Mean losses on the grid, up to a constant.
    fn sum_losses(&mut self, columns: &[[Vec<f32>; 3]], stride: usize) {
        let terms: Vec<(f32, &[f32])> = self
            .rows
            .iter()
            .zip(&self.numbers)
            .filter(|(_, number)| number.is_multiple_of(stride))
            .filter_map(|(row, number)| Some((row.weights, columns.get(number / stride)?)))
            .flat_map(|(weights, columns)| weights.into_iter().zip(columns))
            .filter(|(weight, _)| *weight > 0.0)
            .map(|(weight, column)| (single(weight / self.total), column.as_slice()))
            .collect();
        let len = columns.first().map_or(0, |[column, ..]| column.len());
        self.losses.clear();
        self.losses.resize(len, 0.0);
        for (number, chunk) in self.losses.chunks_mut(CHUNK).enumerate() {
            let part = |column: &'_ [f32]| -> std::ops::Range<usize> {
                let start = number * CHUNK;
                start..(start + CHUNK).min(column.len())
            };
            let (fours, rest) = terms.as_chunks::<4>();
            for &[(a, at_a), (b, at_b), (c, at_c), (d, at_d)] in fours {
                let [at_a, at_b, at_c, at_d] =
                    [at_a, at_b, at_c, at_d].map(|column| column.get(part(column)).unwrap_or(&[]));
                let pairs = at_a.iter().zip(at_b).zip(at_c.iter().zip(at_d));
                for (sum, ((x, y), (z, w))) in chunk.iter_mut().zip(pairs) {
                    *sum += (a * x + b * y) + (c * z + d * w);
                }
            }
            for &(weight, column) in rest {
                let column = column.get(part(column)).unwrap_or(&[]);
                chunk.iter_mut().zip(column).for_each(|(sum, x)| *sum += weight * x);
            }
        }
    }

    fn on_own_grid(&mut self, region: &Region) -> Result<Refit, Error> {
        let grid = Grid::new(region.grid());
        let columns: Vec<_> = self.rows.iter().map(|row| columns(row, &grid)).collect();
        self.numbers = (0..self.rows.len()).collect();
        self.sum_losses(&columns, 1);
        let starts = grid.starts(&self.losses, REACH, FLOOR);
        self.best(&starts, region)
    }

    /// The lowest of the bottoms below the starts.
    fn best(&self, starts: &[Vector], region: &Region) -> Result<Refit, Error> {
        let expansion = |theta| Ok(Expansion::of_rows(&self.rows, theta, self.total));
        let mut best: Option<Descent<'_>> = None;
        let mut bottoms: Vec<(f64, Vector)> = Vec::new();
        for &start in starts {
            let mut descent = Descent::new(start, region, expansion)?;
            let mut steps = 0;
            while descent.step(expansion)? {
                steps += 1;
                let excess = best.as_ref().map_or(0.0, |best| descent.value() - best.value());
                let hopeless = steps > FIRST_STEPS && excess > HOPELESS * descent.promise;
                let known = bottoms.iter().any(|&(value, bottom)| {
                    descent.value() >= value && is_near(bottom, descent.theta)
                });
                if hopeless || known {
                    break;
                }
            }
            if descent.converged {
                bottoms.push((descent.value(), descent.theta));
            }
            if best.as_ref().is_none_or(|best| descent.value() < best.value()) {
                best = Some(descent);
            }
        }
        Ok(best.map_or_else(Refit::default, |best| Refit {
            parameters: parameters(best.theta),
            drps: best.value(),
            converged: best.converged,
            at_bounds: region.at_bounds(best.theta),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CalibrationSetBuilder;

    fn cells(n: u64, n_votes: u64) -> Vec<Cell> {
        (0..n)
            .map(|i| {
                let minus = i * i * 7 % (n_votes + 1);
                let tie = (i * 5 + 3) % (n_votes - minus + 1);
                let plus = n_votes - minus - tie;
                let label = match (plus.cmp(&minus), i % 3) {
                    (_, 0) => Label::Tie,
                    (std::cmp::Ordering::Less, _) => Label::Minus,
                    _ => Label::Plus,
                };
                Cell { counts: Counts::new(minus, tie, plus), label }
            })
            .collect()
    }

    fn weightings(n_fits: u32, n_cells: usize) -> Vec<f64> {
        (0..n_fits)
            .flat_map(|fit| (0..n_cells).map(move |cell| (fit, cell)))
            .map(|(fit, cell)| f64::from((fit * 31 + u32::try_from(cell).unwrap() * 17) % 4))
            .collect()
    }

    #[test]
    fn refits_are_single_fits_to_repeated_items() {
        for (n, n_votes) in [(20, 4), (30, 8), (40, 12)] {
            let cells = cells(n, n_votes);
            let weights = weightings(40, cells.len());
            let refits = Refits::new(&cells, 1.0, 1.0, &Bounds::default()).unwrap();
            let mut fits = vec![Refit::default(); 40];
            refits.fit_into(&weights, &mut fits, Execution::single()).unwrap();
            for (weights, fit) in weights.chunks(cells.len()).zip(&fits) {
                let rows: Vec<[u64; 3]> =
                    cells.iter().map(|c| [c.counts.minus, c.counts.tie, c.counts.plus]).collect();
                let labels: Vec<i8> = cells.iter().map(|cell| cell.label.value()).collect();
                let mut builder = CalibrationSetBuilder::new();
                builder.add(&rows[..], &labels, Some(weights), Execution::single()).unwrap();
                let set = builder.build(1.0, 1.0).unwrap();
                let single = set.fit(&Bounds::default(), Execution::single()).unwrap();
                assert!(fit.drps - single.drps < 1e-12, "{} {}", fit.drps, single.drps);
                let loss = set.loss(fit.parameters, Execution::single()).unwrap();
                assert!((loss.drps - fit.drps).abs() < 1e-14);
                assert!(fit.converged);
            }
        }
    }

    #[test]
    fn threads_and_mirrored_cells_do_not_change_a_bit() {
        let cells = cells(25, 8);
        let weights = weightings(33, cells.len());
        let fits = |cells: &[Cell], n_threads: usize| {
            let refits = Refits::new(cells, 1.0, 1.0, &Bounds::default()).unwrap();
            let mut fits = vec![Refit::default(); 33];
            let execution = Execution::threads(n_threads.try_into().unwrap());
            refits.fit_into(&weights, &mut fits, execution).unwrap();
            fits
        };
        let expected = fits(&cells, 1);
        assert_eq!(fits(&cells, 3), expected);
        let mirrored: Vec<Cell> = cells
            .iter()
            .map(|c| Cell { counts: c.counts.mirrored(), label: c.label.mirrored() })
            .collect();
        assert_eq!(fits(&mirrored, 2), expected);
    }

    #[test]
    fn what_a_weighting_cannot_identify_is_left_neutral() {
        let cell = |minus, tie, plus, label| Cell { counts: Counts::new(minus, tie, plus), label };
        let cells =
            [cell(0, 0, 4, Label::Plus), cell(1, 0, 3, Label::Tie), cell(2, 4, 2, Label::Tie)];
        let refits = Refits::new(&cells, 1.0, 1.0, &Bounds::default()).unwrap();
        let mut fits = [Refit::default(); 2];
        refits.fit_into(&[1.0, 1.0, 0.0, 0.0, 0.0, 1.0], &mut fits, Execution::single()).unwrap();
        assert_eq!(fits[0].parameters.gamma, 0.0);
        assert_eq!(fits[1].parameters.beta, 1.0);
    }

    #[test]
    fn bad_weights_are_named_and_work_stops_when_asked() {
        let cells = cells(5, 4);
        let refits = Refits::new(&cells, 1.0, 1.0, &Bounds::default()).unwrap();
        let fit = |weights: &[f64], execution: Execution<'_>| {
            refits.fit_into(weights, &mut [Refit::default()], execution).unwrap_err().to_string()
        };
        let single = Execution::single();
        assert_eq!(fit(&[1.0; 4], single), "weights has 4 rows, want 5 as in the refits");
        assert_eq!(
            fit(&[1.0, 1.0, -1.0, 1.0, 1.0], single),
            "weights[2] is -1, want a finite number of at least 0"
        );
        assert!(fit(&[0.0; 5], single).contains("want at least one"));
        assert_eq!(fit(&[1.0; 5], single.stop_when(&|| true)), "interrupted");
        assert_eq!(Refits::new(&[], 1.0, 1.0, &Bounds::default()).unwrap_err(), Error::NoWeight);
    }

    #[test]
    fn gradients_and_hessian_are_slopes_of_the_loss() {
        let cells = cells(12, 8);
        let refits = Refits::new(&cells, 1.0, 1.0, &Bounds::default()).unwrap();
        let weights: Vec<f64> = (1..=12).map(f64::from).collect();
        let theta = Parameters { beta: 1.1, eta0: 0.4, gamma: 0.6 };
        let mean = |theta| {
            let total: f64 = weights.iter().sum();
            let terms = refits.gradients(theta).into_iter().zip(&weights);
            let sum = terms.fold([0.0; 3], |sum: [f64; 3], (gradient, weight)| {
                std::array::from_fn(|i| sum[i] + gradient[i] * weight)
            });
            sum.map(|x| x / total)
        };
        let hessian = refits.hessian(theta, &weights).unwrap();
        let step = 1e-5;
        let above = mean(Parameters { eta0: theta.eta0 + step, ..theta });
        let below = mean(Parameters { eta0: theta.eta0 - step, ..theta });
        for i in 0..3 {
            assert!((hessian[1][i] - (above[i] - below[i]) / (2.0 * step)).abs() < 1e-9);
        }
    }

    #[test]
    fn decisions_under_many_parameters_are_those_of_their_models() {
        let counts: Vec<Counts> = cells(30, 8).iter().map(|cell| cell.counts).collect();
        let sets: Vec<Parameters> = (1..6)
            .map(|i| Parameters { beta: f64::from(i) * 0.4, eta0: 0.5, gamma: 0.3 })
            .collect();
        let mut out = vec![0; sets.len() * counts.len()];
        let execution = Execution::threads(3.try_into().unwrap());
        decide_under(&sets, (0.5, 2.0), &counts, &mut out, execution).unwrap();
        for (parameters, decided) in sets.iter().zip(out.chunks(counts.len())) {
            let model = Model::new(parameters.beta, parameters.eta0, parameters.gamma).unwrap();
            let model = model.with_smoothing(0.5, 2.0).unwrap();
            for (&counts, &label) in counts.iter().zip(decided) {
                assert_eq!(label, model.decide(counts).value());
            }
        }
    }
}
