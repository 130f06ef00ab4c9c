//! Points of the box at which a posterior is summed, and what rows of counts are there.

use crate::grid::Grid;
use crate::loss_table::{each_beta, single};
use crate::memory::{filled, reserved};
use crate::region::Vector;
use crate::rows::{LabelWeights, Row};
use crate::{Error, vectors};

/// Probabilities of the labels of each row at each point.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) thetas: Vec<Vector>,
    /// By row and label.
    probabilities: Vec<[Vec<f32>; 3]>,
}

impl Points {
    pub(crate) fn of_grid(grid: &Grid, rows: &[Row]) -> Result<Self, Error> {
        let of_row = |row: &Row| {
            let n = grid.len();
            let mut found = [reserved(n)?, reserved(n)?, reserved(n)?];
            each_beta(row, grid, |_, line| {
                for (label, found) in found.iter_mut().enumerate() {
                    found.extend(line.iter().map(|probabilities| probabilities[label]));
                }
            });
            Ok(found)
        };
        let thetas = (0..grid.len()).map(|place| grid.point(place)).collect();
        Ok(Self { thetas, probabilities: rows.iter().map(of_row).collect::<Result<_, _>>()? })
    }

    pub(crate) fn new(thetas: Vec<Vector>, rows: &[Row]) -> Result<Self, Error> {
        let of_row = |row: &Row| {
            let mut plus: Vec<f64> =
                thetas.iter().map(|[beta, ..]| beta * row.s + row.offset).collect();
            let mut tie: Vec<f64> =
                thetas.iter().map(|[_, eta0, gamma]| eta0 + gamma * row.t).collect();
            for logits in [&mut plus, &mut tie] {
                logits.iter_mut().for_each(|logit| *logit = logit.clamp(-300.0, 300.0));
                vectors::exp(logits);
            }
            let n = thetas.len();
            let mut found = [filled(0.0, n)?, filled(0.0, n)?, filled(0.0, n)?];
            let [p_minus, p_tie, p_plus] = &mut found;
            let weights = plus.iter().zip(&tie);
            let columns = p_minus.iter_mut().zip(p_tie).zip(p_plus);
            for (((p_minus, p_tie), p_plus), (plus, tie)) in columns.zip(weights) {
                let minus = 1.0 / plus;
                let scale = 1.0 / (minus + tie + plus);
                (*p_minus, *p_tie) = (single(minus * scale), single(tie * scale));
                *p_plus = single(plus * scale);
            }
            Ok(found)
        };
        let probabilities = rows.iter().map(of_row).collect::<Result<_, _>>()?;
        Ok(Self { thetas, probabilities })
    }

    /// Sums of the DRPS under the weights of the rows' labels, each less the same constant.
    pub(crate) fn losses(&self, weights: &[LabelWeights]) -> Vec<f64> {
        let mut losses = vec![0.0; self.thetas.len()];
        self.add_losses(weights, &mut losses);
        losses
    }

    /// Adds those sums. They are linear in the weights, which may be negative.
    pub(crate) fn add_losses(&self, weights: &[LabelWeights], losses: &mut [f64]) {
        for ([minus, _, plus], weights) in self.probabilities.iter().zip(weights) {
            let [if_minus, if_tie, if_plus] = *weights;
            let weight = if_minus + if_tie + if_plus;
            if *weights == [0.0; 3] {
                continue;
            }
            let sides = losses.iter_mut().zip(minus.iter().zip(plus));
            let sides = sides.map(|(loss, (&minus, &plus))| (loss, minus.into(), plus.into()));
            // The weak prior's ties and thresholds have most of the terms at 0.
            if if_minus == 0.0 && if_plus == 0.0 {
                sides.for_each(|(loss, minus, plus): (_, f64, f64)| {
                    *loss += minus * (weight * minus) + plus * (weight * plus);
                });
            } else if if_minus == 0.0 && weight == 0.0 {
                let double = 2.0 * if_plus;
                sides.for_each(|(loss, _, plus): (_, f64, f64)| *loss -= double * plus);
            } else {
                sides.for_each(|(loss, minus, plus): (_, f64, f64)| {
                    *loss += minus * (weight * minus - 2.0 * if_minus)
                        + plus * (weight * plus - 2.0 * if_plus);
                });
            }
        }
    }

    /// Sums of the log-likelihood under the weights of the rows' labels.
    pub(crate) fn log_likelihoods(&self, weights: &[LabelWeights]) -> Vec<f64> {
        let mut sums = vec![0.0; self.thetas.len()];
        let mut logs = sums.clone();
        for (columns, weights) in self.probabilities.iter().zip(weights) {
            for (column, &weight) in columns.iter().zip(weights) {
                if weight > 0.0 {
                    logs.iter_mut().zip(column).for_each(|(log, &p)| *log = p.into());
                    vectors::ln(&mut logs);
                    sums.iter_mut().zip(&logs).for_each(|(sum, log)| *sum += weight * log);
                }
            }
        }
        sums
    }

    /// Mean probabilities of each row when each point counts as much as its weight.
    pub(crate) fn means(&self, weights: &[f64]) -> Vec<LabelWeights> {
        let mean = |column: &Vec<f32>| -> f64 {
            weights.iter().zip(column).map(|(w, &p)| w * f64::from(p)).sum()
        };
        self.probabilities.iter().map(|columns| columns.each_ref().map(mean)).collect()
    }
}

/// The logarithm of a sum of exponentials.
pub(crate) fn log_sum_exp(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let (largest, total) = exponentials(&mut values);
    largest + total.ln()
}

/// Weights that sum to 1, in the proportions of exponentials.
pub(crate) fn softmax(mut values: Vec<f64>) -> Vec<f64> {
    let (_, total) = exponentials(&mut values);
    values.iter_mut().for_each(|value| *value /= total);
    values
}

/// Replaces values by the exponentials of what they are less than the largest; returns this and
/// their sum.
fn exponentials(values: &mut [f64]) -> (f64, f64) {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    values.iter_mut().for_each(|value| *value -= largest);
    vectors::exp(values);
    (largest, values.iter().sum())
}
