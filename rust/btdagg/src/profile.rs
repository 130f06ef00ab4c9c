//! Intervals of the parameters by profile: how far one may move until the best of the others fit
//! significantly worse.
//!
//! The DRPS is no log-likelihood, so twice its rise has no χ² distribution as it is. It has one
//! scaled by the ratio of the score's curvature to its variance (Godambe), here the ones expected
//! under the model, which small sets estimate better than the empirical ones.

use crate::calibration_set::CalibrationSet;
use crate::descent::Descent;
use crate::expansion::Expansion;
use crate::region::{Region, Vector};
use crate::rows::{Row, WeightedRows};
use crate::{Bounds, Error, Execution, Parameters};

/// Fits at which an end is looked for, at the most.
const MAX_FITS: usize = 24;

/// How near an end the profile's root has to be to the critical one.
const CLOSE: f64 = 0.01;

/// Largest ratio of curvature to variance, far beyond those of any judge, which are near 3.
const MOST_RATIO: f64 = 1e6;

type Matrix = [Vector; 3];

impl CalibrationSet {
    /// Ends of the intervals of beta, eta0 and gamma around the fit next to some parameters, for a
    /// number of labels: where the scaled rise of the profile passes the square of `critical`, or
    /// the bound.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn profile(
        &self,
        bounds: &Bounds,
        near: Parameters,
        n_labels: f64,
        critical: f64,
    ) -> Result<[[f64; 2]; 3], Error> {
        let region = Region::new(bounds)?;
        let (best, least) = bottom(&self.rows, &region, [near.vector()])?;
        let profile = Profile { rows: &self.rows, region, best, least, n_labels };
        let mut ends = [[0.0; 2]; 3];
        for (i, ends) in ends.iter_mut().enumerate() {
            for (side, end) in [-1.0, 1.0].into_iter().zip(ends) {
                *end = profile.end(i, side, critical)?;
            }
        }
        Ok(ends)
    }
}

/// The fits of one calibration set with a parameter held.
struct Profile<'a> {
    rows: &'a WeightedRows,
    region: Region,
    best: Vector,
    least: f64,
    n_labels: f64,
}

impl Profile<'_> {
    /// Where the interval of a parameter ends below (−1) or above (+1) the fit.
    fn end(&self, i: usize, side: f64, critical: f64) -> Result<f64, Error> {
        let bound = if side < 0.0 { self.region.lower[i] } else { self.region.upper[i] };
        if self.best[i] == bound {
            return Ok(bound);
        }
        let near = self.local(i, self.best);
        let reach = (bound - self.best[i]).abs();
        // Where the profile would pass if it were a parabola; then by the secant of its root.
        let mut step = (critical / near.slope).clamp(1e-6 * reach, reach);
        let (mut inside, mut root_inside, mut outside) = (0.0, 0.0, None);
        let (mut theta, mut at) = (self.best, 0.0);
        let mut tangent = near.tangent;
        for _ in 0..MAX_FITS {
            let from: Vector = std::array::from_fn(|k| theta[k] + side * (step - at) * tangent[k]);
            let (there, root) = self.root(i, self.best[i] + side * step, from, theta)?;
            if (root - critical).abs() <= CLOSE * critical {
                return Ok(self.best[i] + side * step);
            }
            if root < critical {
                if step >= reach {
                    return Ok(bound);
                }
                (inside, root_inside) = (step, root);
                (theta, at) = (there, step);
                tangent = self.local(i, theta).tangent;
            } else {
                outside = Some((step, root));
            }
            step = match outside {
                None => {
                    let secant = if root > 0.0 { step * critical / root } else { 2.0 * step };
                    secant.clamp(1.1 * step, 3.0 * step).min(reach)
                }
                Some((far, root_far)) => {
                    let secant = inside
                        + (far - inside) * (critical - root_inside) / (root_far - root_inside);
                    let margin = 0.1 * (far - inside);
                    secant.clamp(inside + margin, far - margin)
                }
            };
        }
        Ok(self.best[i] + side * step)
    }

    /// The best of the others with a parameter held, and the root of the scaled rise there.
    fn root(
        &self,
        i: usize,
        value: f64,
        from: Vector,
        other: Vector,
    ) -> Result<(Vector, f64), Error> {
        let mut region = self.region.clone();
        region.hold(i, value);
        let (theta, value) = bottom(self.rows, &region, [from, other])?;
        let rise = 2.0 * self.n_labels * (value - self.least).max(0.0);
        Ok((theta, (rise * self.local(i, theta).ratio).sqrt()))
    }

    /// What the profile of a parameter is like next to a point.
    fn local(&self, i: usize, theta: Vector) -> Local {
        let (curvature, variance) = information(self.rows.rows.iter().copied(), theta);
        let region = &self.region;
        let free: [bool; 3] = std::array::from_fn(|k| {
            k != i && region.lower[k] < theta[k] && theta[k] < region.upper[k]
        });
        let gradient = curvature.map(|row| row[i]);
        let column = Expansion { gradient, hessian: curvature, ..Expansion::default() };
        let mut tangent = column.newton_step(free, ridge(&curvature)).unwrap_or_default();
        (0..3).filter(|k| !free[*k]).for_each(|k| tangent[k] = 0.0);
        tangent[i] = 1.0;
        // Where the loss is flat, rounding may leave them below 0, or a ratio without bound.
        let [bend, spread] = [curvature, variance].map(|matrix| form(&matrix, tangent).max(0.0));
        let ratio = if spread > 0.0 { (bend / spread).min(MOST_RATIO) } else { 0.0 };
        let slope = (ratio * bend * self.n_labels / self.rows.total_weight).sqrt();
        Local { ratio, slope, tangent }
    }
}

/// The lowest of the bottoms below some starts, of which there is one at the least.
pub(crate) fn bottom(
    rows: &WeightedRows,
    region: &Region,
    starts: impl IntoIterator<Item = Vector>,
) -> Result<(Vector, f64), Error> {
    let expansion = |theta| rows.expansion(theta, Execution::single());
    let mut best = ([f64::NAN; 3], f64::INFINITY);
    for start in starts {
        let mut descent = Descent::new(start, region, expansion)?;
        while descent.step(expansion)? {}
        if descent.here.value < best.1 {
            best = (descent.theta, descent.here.value);
        }
    }
    Ok(best)
}

struct Local {
    /// Curvature over variance of its score.
    ratio: f64,
    /// How fast the root of the scaled rise grows.
    slope: f64,
    /// How all three move with it.
    tangent: Vector,
}

/// Expected second derivatives of the DRPS under a model, and the expected outer product of its
/// gradient, summed over rows by the weights of their labels.
fn information(rows: impl Iterator<Item = Row>, theta: Vector) -> (Matrix, Matrix) {
    let theta = Parameters::of(theta);
    let mut curvature = Expansion::default();
    let mut variance = [[0.0; 3]; 3];
    for row in rows {
        let weight: f64 = row.weights.iter().sum();
        let p = row.probabilities(theta).map(|p| p * weight);
        curvature.add_row(&Row { weights: p, ..row }, theta);
        for (label, p) in p.into_iter().enumerate() {
            let mut one = Row { weights: [0.0; 3], ..row };
            one.weights[label] = 1.0;
            let mut score = Expansion::default();
            score.add_row(&one, theta);
            for (line, slope) in variance.iter_mut().zip(score.gradient) {
                line.iter_mut().zip(score.gradient).for_each(|(sum, x)| *sum += p * slope * x);
            }
        }
    }
    (curvature.hessian, variance)
}

/// The rate at which a Gibbs posterior of the DRPS is as wide as the estimate: the number of
/// parameters over the trace of `curvature⁻¹ variance`, both expected under the model.
pub(crate) fn matched_rate(rows: &[Row], labelled: &[f64], theta: Vector) -> Option<f64> {
    if labelled.iter().all(|weight| *weight == 0.0) {
        return None;
    }
    let weighted =
        rows.iter().zip(labelled).map(|(row, &weight)| Row { weights: [0.0, weight, 0.0], ..*row });
    let (hessian, variance) = information(weighted, theta);
    let ridge = ridge(&hessian);
    let mut trace = 0.0;
    for (i, line) in variance.iter().enumerate() {
        // The variance is symmetric: its lines are its columns.
        let gradient = line.map(|x| -x);
        let column = Expansion { gradient, hessian, ..Expansion::default() };
        trace += column.newton_step([true; 3], ridge)?[i];
    }
    (trace > 0.0).then_some(3.0 / trace)
}

/// What keeps a flat direction from having no step at all.
fn ridge(matrix: &Matrix) -> f64 {
    1e-9 * (0..3).map(|i| matrix[i][i]).sum::<f64>()
}

fn form(matrix: &Matrix, x: Vector) -> f64 {
    (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).map(|(i, j)| x[i] * matrix[i][j] * x[j]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(n: u64) -> CalibrationSet {
        let rows: Vec<[u64; 3]> = (0..n)
            .map(|i| {
                let minus = i * i * 7 % 9;
                let tie = (i * 5 + 3) % (9 - minus);
                [minus, tie, 8 - minus - tie]
            })
            .collect();
        let labels: Vec<i8> = rows
            .iter()
            .zip(0_u32..)
            .map(|(&[minus, tie, plus], i)| match (i % 5, plus > minus + tie, minus > plus + tie) {
                (0 | 1, ..) | (_, false, false) => i8::try_from(i % 3).unwrap() - 1,
                (_, true, _) => 1,
                _ => -1,
            })
            .collect();
        CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single()).unwrap()
    }

    #[test]
    fn at_an_end_the_scaled_rise_is_the_critical_one() {
        let (set, critical) = (set(120), 2.0);
        let bounds = Bounds::default();
        let best = set.fit(&bounds, Execution::single()).unwrap();
        let ends = set.profile(&bounds, best.parameters, 120.0, critical).unwrap();
        let theta = best.parameters.vector();
        let region = Region::new(&bounds).unwrap();
        for (i, [low, high]) in ends.into_iter().enumerate() {
            assert!(low <= theta[i] && theta[i] <= high, "{i}: {low} {high}");
            for end in [low, high] {
                if end == region.lower[i] || end == region.upper[i] {
                    continue;
                }
                // The fit with the parameter held, from a grid and not from where the search came.
                let mut held = bounds;
                let (lower, upper) = (&mut held.lower, &mut held.upper);
                match i {
                    0 => (lower.beta, upper.beta) = (end, end),
                    1 => (lower.eta0, upper.eta0) = (end, end),
                    _ => (lower.gamma, upper.gamma) = (end, end),
                }
                let fit = set.fit(&held, Execution::single()).unwrap();
                let there = fit.parameters.vector();
                let (curvature, variance) = information(set.rows.rows.iter().copied(), there);
                let mut direction = [0.0; 3];
                direction[i] = 1.0;
                let others: Vec<usize> = (0..3).filter(|k| *k != i).collect();
                let [a, b] = [others[0], others[1]];
                let determinant = curvature[a][a] * curvature[b][b] - curvature[a][b].powi(2);
                direction[a] = (curvature[a][b] * curvature[b][i]
                    - curvature[b][b] * curvature[a][i])
                    / determinant;
                direction[b] = (curvature[a][b] * curvature[a][i]
                    - curvature[a][a] * curvature[b][i])
                    / determinant;
                let ratio = form(&curvature, direction) / form(&variance, direction);
                let root = (2.0 * 120.0 * (fit.drps - best.drps) * ratio).sqrt();
                assert!((root - critical).abs() < 0.03 * critical, "{i} {end}: {root}");
            }
        }
    }

    #[test]
    fn where_the_loss_is_flat_intervals_are_wide_and_finite() {
        for (rows, labels) in [
            (vec![[0, 0, 8], [8, 0, 0], [0, 0, 8]], vec![1, -1, 1]),
            (vec![[0, 8, 0]; 3], vec![0; 3]),
            (vec![[0, 0, 0]; 2], vec![1, -1]),
            (vec![[4, 0, 4], [0, 0, 8], [8, 0, 0]], vec![0, 1, -1]),
        ] {
            let set =
                CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single())
                    .unwrap();
            for near in [[1.0, 1.0, 0.5], [5.0, 6.9, 10.0], [1e-3, -9.2, -10.0]] {
                let ends =
                    set.profile(&Bounds::default(), Parameters::of(near), 3.0, 12.7).unwrap();
                assert!(ends.iter().all(|[low, high]| low <= high), "{ends:?}");
            }
        }
    }

    #[test]
    fn more_labels_give_narrower_intervals_and_none_leave_the_box() {
        let widths = [30, 300, 3000].map(|n| {
            let (set, bounds) = (set(n), Bounds::default());
            let near = set.fit(&bounds, Execution::single()).unwrap().parameters;
            #[expect(clippy::cast_precision_loss, reason = "few")]
            let ends = set.profile(&bounds, near, n as f64, 2.0).unwrap();
            ends.map(|[low, high]| high - low)
        });
        for i in 0..3 {
            assert!(widths[1][i] < widths[0][i] && widths[2][i] < 0.6 * widths[1][i], "{widths:?}");
        }
        let near = Parameters { beta: 1.0, eta0: 1.0, gamma: 0.5 };
        let far = set(10).profile(&Bounds::default(), near, 10.0, 1e6).unwrap();
        assert_eq!(far[0], [1e-3, 5.0]);
    }
}
