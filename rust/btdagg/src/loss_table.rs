//! Losses on a grid over the box, which say where a descent has to start.
//!
//! The loss is linear in the weights, so the scores of every row and label are computed once and
//! serve any weights: those of one fit, or of thousands of refits. They are held and summed in
//! single precision, since they only choose the starts.

use crate::Error;
use crate::grid::Grid;
use crate::memory::filled;
use crate::region::{Region, Vector};
use crate::rows::{Row, WeightedRows};

/// Numbers that a table may hold. Of more rows, which have no narrow basins, it holds as many evenly
/// spaced ones.
const MAX_SIZE: usize = 8 << 20;

/// Grid points whose losses are summed at a time: they stay in the first-level cache.
const CHUNK: usize = 1024;

/// How far above the lowest grid point the floor of a valley may lie, in DRPS: the coarser the grid,
/// the further.
const FLOOR: f32 = 0.004;
const WIDE_FLOOR: f32 = 0.02;

/// The scores of rows and labels at all points of a grid.
#[derive(Debug)]
pub(crate) struct LossTable {
    grid: Grid,
    /// For every `stride`-th row the scores of its labels, none of one without a weight.
    columns: Vec<[Vec<f32>; 3]>,
    stride: usize,
    floor: f32,
}

impl LossTable {
    /// Of rows and the labels that have some weight in them.
    pub(crate) fn new(rows: &[Row], region: &Region) -> Result<Self, Error> {
        let grid = Grid::new(region.grid());
        let n_columns = rows.iter().flat_map(|row| row.weights).filter(|w| *w > 0.0).count();
        let stride = n_columns.div_ceil((MAX_SIZE / grid.len()).max(16)).max(1);
        let columns = rows.iter().step_by(stride).map(|row| columns(row, &grid));
        let columns = columns.collect::<Result<_, _>>()?;
        let floor = if region.is_wide() { WIDE_FLOOR } else { FLOOR };
        Ok(Self { grid, columns, stride, floor })
    }

    /// Where to start from, under the weights of some of its rows.
    pub(crate) fn starts(&self, rows: &WeightedRows) -> Vec<Vector> {
        self.grid.starts(&self.losses(rows), self.floor)
    }

    /// Mean losses on the grid, each less the same constant.
    fn losses(&self, rows: &WeightedRows) -> Vec<f32> {
        let terms: Vec<(f32, &[f32])> = rows
            .rows
            .iter()
            .filter(|row| row.place.is_multiple_of(self.stride))
            .map(|row| (row.weights, &self.columns[row.place / self.stride]))
            .flat_map(|(weights, columns)| weights.into_iter().zip(columns))
            .filter(|(weight, _)| *weight > 0.0)
            .map(|(weight, column)| (single(weight / rows.total_weight), column.as_slice()))
            .collect();
        let mut losses = vec![0.0; self.grid.len()];
        for (number, chunk) in losses.chunks_mut(CHUNK).enumerate() {
            // A label with a weight has a whole column; one without would stop here.
            let start = number * CHUNK;
            let part = start..start + chunk.len();
            let (fours, rest) = terms.as_chunks::<4>();
            for &[(a, at_a), (b, at_b), (c, at_c), (d, at_d)] in fours {
                let [at_a, at_b, at_c, at_d] =
                    [at_a, at_b, at_c, at_d].map(|column| &column[part.clone()]);
                let pairs = at_a.iter().zip(at_b).zip(at_c.iter().zip(at_d));
                for (sum, ((x, y), (z, w))) in chunk.iter_mut().zip(pairs) {
                    *sum += (a * x + b * y) + (c * z + d * w);
                }
            }
            for &(weight, column) in rest {
                let column = &column[part.clone()];
                chunk.iter_mut().zip(column).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        losses
    }
}

/// Scores of the labels of a row at all points of the grid, each less 1 where the label is no tie.
fn columns(row: &Row, grid: &Grid) -> Result<[Vec<f32>; 3], Error> {
    let len_of = |weight| if weight > 0.0 { grid.len() } else { 0 };
    let [minus, tie, plus] = row.weights.map(|weight| filled(0.0, len_of(weight)));
    let mut columns = [minus?, tie?, plus?];
    each_beta(row, grid, |start, probabilities| {
        for (column, [if_minus, if_plus]) in
            columns.iter_mut().zip([[2.0, 0.0], [0.0; 2], [0.0, 2.0]])
        {
            for (score, [minus, _, plus]) in column.iter_mut().skip(start).zip(probabilities) {
                *score = minus * (minus - if_minus) + plus * (plus - if_plus);
            }
        }
    });
    Ok(columns)
}

/// Hands over the probabilities of a row for one beta after another of a grid, with the place of the
/// first.
pub(crate) fn each_beta(row: &Row, grid: &Grid, mut take: impl FnMut(usize, &[[f32; 3]])) {
    let [betas, eta0s, gammas] = &grid.axes;
    let logits = eta0s.iter().flat_map(|eta0| gammas.iter().map(move |g| eta0 + g * row.t));
    let ties: Vec<f64> = logits.map(bounded_exp).collect();
    let mut found = vec![[0.0; 3]; ties.len()];
    for (number, beta) in betas.iter().enumerate() {
        let u = beta * row.s + row.offset;
        let (minus, plus) = (bounded_exp(-u), bounded_exp(u));
        for (found, tie) in found.iter_mut().zip(&ties) {
            let scale = 1.0 / (minus + tie + plus);
            *found = [minus, *tie, plus].map(|weight| single(weight * scale));
        }
        take(number * ties.len(), &found);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "seven digits of a probability are enough to sum over a grid"
)]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

/// Exponential of a grid's logit, where overflow would only blur what is saturated anyway.
fn bounded_exp(x: f64) -> f64 {
    x.clamp(-300.0, 300.0).exp()
}
