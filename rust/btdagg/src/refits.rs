//! Thousands of fits to the same labelled counts under other weights, as a bootstrap wants them.
//!
//! Each is the fit of a calibration set; they share the tables.

use crate::counts::Counts;
use crate::error::same_length;
use crate::features::{Features, Usual, check_usual_votes};
use crate::fit::fit_rows;
use crate::gather::{any_weight, check_weight, upright};
use crate::loss_table::LossTable;
use crate::memory::{collected, filled};
use crate::model::check_smoothing;
use crate::parallel::for_each_part;
use crate::region::Region;
use crate::rows::{LabelWeights, Row, WeightedRows};
use crate::{Bounds, Error, Execution, Fit, Label};

/// Counts with a label: what weights are given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Votes of the items of the cell.
    pub counts: Counts,
    /// Their label.
    pub label: Label,
}

/// Labelled counts that are fitted again and again under other weights.
///
/// ```
/// use btdagg::{Bounds, Cell, Counts, Execution, Fit, Label, Refits};
///
/// let cell = |minus, tie, plus, label| Cell { counts: Counts::whole(minus, tie, plus), label };
/// let cells = [
///     cell(0, 2, 10, Label::Plus),
///     cell(1, 10, 1, Label::Tie),
///     cell(11, 1, 0, Label::Minus),
///     cell(4, 3, 5, Label::Tie),
/// ];
/// let refits = Refits::new(&cells, (1.0, 1.0), None, &Bounds::default())?;
/// let mut fits = [Fit::default(); 2];
/// refits.fit_into(&[1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 1.0, 1.0], &mut fits, Execution::single())?;
/// assert!(fits[0].converged);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug)]
pub struct Refits {
    region: Region,
    /// The distinct rows, a row and its mirror image being one, without weights.
    rows: Vec<Row>,
    places: Places,
    table: LossTable,
}

impl Refits {
    /// Prepares the fits, with the usual number of votes of an item if features are compared with
    /// those of that number.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no cell;
    /// [`Error::Memory`].
    pub fn new(
        cells: &[Cell],
        (alpha, kappa): (f64, f64),
        usual_votes: Option<f64>,
        bounds: &Bounds,
    ) -> Result<Self, Error> {
        check_smoothing(alpha, kappa)?;
        check_usual_votes(usual_votes)?;
        let usual = Usual::new(usual_votes, alpha, kappa);
        let region = Region::new(bounds)?;
        if cells.is_empty() {
            return Err(Error::no_weight());
        }
        let (distinct, places) = Places::of(cells)?;
        let row = |(place, &counts): (usize, &Counts)| {
            let Features { s, t } = Features::beside(counts, alpha, kappa, usual);
            Row { s, t, offset: 0.0, weights: [0.0; 3], place }
        };
        let rows = collected(distinct.iter().enumerate().map(row))?;
        let mut present = collected(rows.iter().copied())?;
        for &(place, column) in &places.of_cells {
            present[place].weights[column] = 1.0;
        }
        let table = LossTable::new(&present, &region)?;
        Ok(Self { region, rows, places, table })
    }

    /// Number of cells, and so of weights of a refit.
    pub fn n_cells(&self) -> usize {
        self.places.of_cells.len()
    }

    /// Fits under each of many weightings: `weights` holds those of the cells, fit after fit.
    ///
    /// Each is what [`CalibrationSet::fit`](crate::CalibrationSet::fit) finds, and depends on its
    /// weights alone.
    ///
    /// # Errors
    /// [`Error::Input`] if a weight is negative or not finite, where `row` is
    /// that of the flat weights; [`Error::Input`] if a fit has none; [`Error::Memory`];
    /// [`Error::Interrupted`].
    pub fn fit_into(
        &self,
        weights: &[f64],
        out: &mut [Fit],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.places.refit_into(weights, out, execution, |sums| {
            let with_weights = |(row, weights): (&Row, LabelWeights)| Row { weights, ..*row };
            let mut rows = collected(self.rows.iter().zip(sums).map(with_weights))?;
            rows.retain(|row| any_weight(&row.weights));
            let rows = WeightedRows::new(rows)?;
            fit_rows(&rows, &self.region, Some(&self.table), Execution::single())
        })
    }
}

/// Where cells are among distinct rows of counts.
#[derive(Debug)]
struct Places {
    n_rows: usize,
    /// Row of each cell, and column of its label.
    of_cells: Vec<(usize, usize)>,
}

impl Places {
    /// The distinct counts of cells, and where the cells are among them.
    ///
    /// Swapping A and B together with the label leaves a score as it is: a row and its mirror image
    /// are one.
    fn of(cells: &[Cell]) -> Result<(Vec<Counts>, Self), Error> {
        let upright = |cell: &Cell| {
            let mut weights = [0.0; 3];
            weights[cell.label.column()] = 1.0;
            upright(cell.counts, weights)
        };
        let mut distinct = collected(cells.iter().map(|cell| upright(cell).0))?;
        distinct.sort_unstable();
        distinct.dedup();
        let of_cells = collected(cells.iter().map(upright).map(|(counts, weights)| {
            // All are among them, so that either is the place.
            let place = distinct.binary_search(&counts).unwrap_or_else(|place| place);
            (place, weights.iter().position(|&weight| weight > 0.0).unwrap_or_default())
        }))?;
        let n_rows = distinct.len();
        Ok((distinct, Self { n_rows, of_cells }))
    }

    /// Fits each weighting of the cells, whose weights are summed by row and label.
    fn refit_into<T: Send>(
        &self,
        weights: &[f64],
        out: &mut [T],
        execution: Execution<'_>,
        fit: impl Fn(Vec<LabelWeights>) -> Result<T, Error> + Sync,
    ) -> Result<(), Error> {
        let n_cells = self.of_cells.len();
        same_length("weights", weights.len(), out.len() * n_cells, "the refits")?;
        for_each_part(out, 1, execution, |start, part, watch| {
            let lines = weights.chunks(n_cells).skip(start);
            for (number, (weights, out)) in (start..).zip(lines.zip(part)) {
                watch.ask_now()?;
                *out = fit(self.sums(weights, number * n_cells)?)?;
            }
            Ok(())
        })
    }

    /// Weights of the labels of each row; `first` is the number by which errors call the first.
    fn sums(&self, weights: &[f64], first: usize) -> Result<Vec<LabelWeights>, Error> {
        let mut sums = filled([0.0; 3], self.n_rows)?;
        for (i, (&weight, &(row, column))) in weights.iter().zip(&self.of_cells).enumerate() {
            sums[row][column] += check_weight(weight, first + i)?;
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CalibrationSet, Parameters};

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
                Cell { counts: Counts::whole(minus, tie, plus), label }
            })
            .collect()
    }

    fn set_of(cells: &[Cell], weights: &[f64]) -> CalibrationSet {
        let rows: Vec<[f64; 3]> =
            cells.iter().map(|c| [c.counts.minus, c.counts.tie, c.counts.plus]).collect();
        let labels: Vec<i8> = cells.iter().map(|cell| cell.label.value()).collect();
        CalibrationSet::new(&rows[..], &labels, Some(weights), (1.0, 1.0), Execution::single())
            .unwrap()
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
            let refits = Refits::new(&cells, (1.0, 1.0), None, &Bounds::default()).unwrap();
            let mut fits = vec![Fit::default(); 40];
            refits.fit_into(&weights, &mut fits, Execution::single()).unwrap();
            for (weights, fit) in weights.chunks(cells.len()).zip(&fits) {
                let set = set_of(&cells, weights);
                let single = set.fit(&Bounds::default(), Execution::single()).unwrap();
                assert!(fit.drps - single.drps < 1e-12, "{} {}", fit.drps, single.drps);
                let loss = set.loss(fit.parameters, Execution::single()).unwrap();
                assert!((loss.drps - fit.drps).abs() < 1e-14);
                assert!(fit.converged);
            }
        }
    }

    #[test]
    fn refits_with_whole_weights_are_single_fits_to_the_last_bit() {
        let cells = cells(40, 8);
        let ties = |cell: &&Cell| cell.counts.tie == 0.0;
        let narrow = Bounds {
            upper: Parameters { eta0: 0.5, ..Bounds::default().upper },
            ..Bounds::default()
        };
        for bounds in [Bounds::default(), narrow] {
            for cells in [cells.clone(), cells.iter().filter(ties).copied().collect()] {
                let mut weights = weightings(20, cells.len());
                weights.extend(vec![1.0; cells.len()]);
                // Of one cell alone neither beta nor gamma may be known.
                weights.extend((0..cells.len()).map(|cell| f64::from(u8::from(cell == 0))));
                let refits = Refits::new(&cells, (1.0, 1.0), None, &bounds).unwrap();
                let mut fits = vec![Fit::default(); 22];
                refits.fit_into(&weights, &mut fits, Execution::single()).unwrap();
                for (weights, fit) in weights.chunks(cells.len()).zip(&fits) {
                    let single = set_of(&cells, weights).fit(&bounds, Execution::single());
                    assert_eq!(single.unwrap(), *fit);
                }
            }
        }
    }

    #[test]
    fn threads_and_mirrored_cells_do_not_change_a_bit() {
        let cells = cells(25, 8);
        let weights = weightings(33, cells.len());
        let fits = |cells: &[Cell], n_threads: usize| {
            let refits = Refits::new(cells, (1.0, 1.0), None, &Bounds::default()).unwrap();
            let mut fits = vec![Fit::default(); 33];
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
        let cell =
            |minus, tie, plus, label| Cell { counts: Counts::whole(minus, tie, plus), label };
        let cells =
            [cell(0, 0, 4, Label::Plus), cell(1, 0, 3, Label::Tie), cell(2, 4, 2, Label::Tie)];
        let refits = Refits::new(&cells, (1.0, 1.0), None, &Bounds::default()).unwrap();
        let mut fits = [Fit::default(); 2];
        refits.fit_into(&[1.0, 1.0, 0.0, 0.0, 0.0, 1.0], &mut fits, Execution::single()).unwrap();
        assert_eq!(fits[0].parameters.gamma, 0.0);
        assert_eq!(fits[1].parameters.beta, 1.0);
    }

    #[test]
    fn bad_weights_are_named_and_work_stops_when_asked() {
        let cells = cells(5, 4);
        let refits = Refits::new(&cells, (1.0, 1.0), None, &Bounds::default()).unwrap();
        let fit = |weights: &[f64], execution: Execution<'_>| {
            refits.fit_into(weights, &mut [Fit::default()], execution).unwrap_err().to_string()
        };
        let single = Execution::single();
        assert_eq!(fit(&[1.0; 4], single), "weights has 4 rows, expected 5 as in the refits");
        assert_eq!(
            fit(&[1.0, 1.0, -1.0, 1.0, 1.0], single),
            "weights[2] is -1, expected a finite number of at least 0"
        );
        assert!(fit(&[0.0; 5], single).contains("expected at least one"));
        assert_eq!(fit(&[1.0; 5], single.stop_when(&|| true)), "interrupted");
        assert_eq!(
            Refits::new(&[], (1.0, 1.0), None, &Bounds::default()).unwrap_err(),
            Error::no_weight()
        );
    }
}
