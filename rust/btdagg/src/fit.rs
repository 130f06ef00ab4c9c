//! The least DRPS within a box, not left in a local minimum.
//!
//! Small calibration sets have local minima, and long flat valleys in which quasi-Newton methods
//! stop early. So a coarse grid over the whole box finds the basins, and damped Newton steps go
//! to the bottom of the best few. Both are cheap: the loss sees a few dozen distinct rows, on a
//! grid the exponentials of margin and tie logit are shared, and there are three parameters.

use crate::calibration_set::{CalibrationSet, Row};
use crate::descent::Descent;
use crate::expansion::Vector;
use crate::grid::Grid;
use crate::parallel::Watch;
use crate::region::{Region, parameters};
use crate::{Error, Execution, Parameters};

/// How far above the lowest grid point the floor of a valley may lie, in DRPS.
pub(crate) const VALLEY_FLOOR: f64 = 0.02;

/// Distinct rows that the grid looks at; of larger sets, which have no narrow basins, as many
/// evenly spaced ones.
const GRID_ROWS: usize = 1024;

/// Box constraints on beta, eta0 and gamma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Least values.
    pub lower: Parameters,
    /// Largest values.
    pub upper: Parameters,
}

/// The paper's bounds: beta in [1e-3, 5], nu = exp(eta0) in [1e-4, 1e3], gamma in [−10, 10].
impl Default for Bounds {
    fn default() -> Self {
        Self {
            lower: Parameters { beta: 1e-3, eta0: 1e-4_f64.ln(), gamma: -10.0 },
            upper: Parameters { beta: 5.0, eta0: 1e3_f64.ln(), gamma: 10.0 },
        }
    }
}

/// The best point found and how it was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The parameters of least DRPS.
    pub parameters: Parameters,
    /// Mean DRPS there.
    pub drps: f64,
    /// Number of starts that were followed to a local minimum.
    pub n_starts: usize,
    /// Whether the last step promised no further decrease.
    pub converged: bool,
    /// Whether beta, eta0 and gamma are at one of their bounds.
    pub at_bounds: [bool; 3],
}

impl CalibrationSet {
    /// The parameters of least DRPS within the bounds.
    ///
    /// # Errors
    /// [`Error::Bounds`] if a bound is not finite or a lower one exceeds its upper one;
    /// [`Error::Interrupted`].
    pub fn fit(&self, bounds: &Bounds, execution: Execution<'_>) -> Result<Fit, Error> {
        let region = Region::new(bounds)?;
        let watch = Watch::alone(execution);
        let expansion = |theta| self.expansion(theta, execution);
        let starts = self.basins(&region, execution)?;
        let mut best: Option<Descent<'_>> = None;
        for &start in &starts {
            let mut descent = Descent::new(start, &region, expansion)?;
            while descent.step(expansion)? {
                watch.ask_now()?;
            }
            if best.as_ref().is_none_or(|best| descent.value() < best.value()) {
                best = Some(descent);
            }
        }
        let (drps, theta, converged) = best.map_or((f64::INFINITY, region.lower, false), |best| {
            (best.value(), best.theta, best.converged)
        });
        Ok(Fit {
            parameters: parameters(theta),
            drps,
            n_starts: starts.len(),
            converged,
            at_bounds: region.at_bounds(theta),
        })
    }

    /// Where to start from.
    fn basins(&self, region: &Region, execution: Execution<'_>) -> Result<Vec<Vector>, Error> {
        let grid = Grid::new(region.grid());
        let losses = self.losses_on_grid(&grid.axes, execution)?;
        Ok(grid.starts(&losses, f64::INFINITY, VALLEY_FLOOR * self.total_weight()))
    }

    /// The loss, up to a factor and a constant, at all grid points: gamma runs fastest.
    fn losses_on_grid(
        &self,
        axes: &[Vec<f64>; 3],
        execution: Execution<'_>,
    ) -> Result<Vec<f64>, Error> {
        let watch = Watch::alone(execution);
        let rows: Vec<&Row> =
            self.rows.iter().step_by(self.rows.len().div_ceil(GRID_ROWS).max(1)).collect();
        let [betas, eta0s, gammas] = axes;
        let ties: Vec<Vec<f64>> = eta0s
            .iter()
            .flat_map(|eta0| gammas.iter().map(move |gamma| (eta0, gamma)))
            .map(|(eta0, gamma)| rows.iter().map(|row| bounded_exp(eta0 + gamma * row.t)).collect())
            .collect();
        let mut losses = Vec::with_capacity(betas.len() * ties.len());
        for beta in betas {
            watch.ask_now()?;
            let sides: Vec<(f64, f64, &Row)> = rows
                .iter()
                .map(|&row| (bounded_exp(-beta * row.s), bounded_exp(beta * row.s), row))
                .collect();
            losses.extend(ties.iter().map(|ties| {
                let terms = sides.iter().zip(ties).map(|(&(minus, plus, row), tie)| {
                    let scale = 1.0 / (minus + tie + plus);
                    let (minus, plus) = (minus * scale, plus * scale);
                    let [if_minus, if_tie, if_plus] = row.weights;
                    (if_minus + if_tie + if_plus) * (minus * minus + plus * plus)
                        - 2.0 * (if_minus * minus + if_plus * plus)
                });
                let loss = terms.sum::<f64>();
                if loss.is_nan() { f64::INFINITY } else { loss }
            }));
        }
        Ok(losses)
    }
}

/// Exponential of a grid's logit, where overflow would only blur what is saturated anyway.
pub(crate) fn bounded_exp(x: f64) -> f64 {
    x.clamp(-300.0, 300.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CalibrationSetBuilder, Model};

    /// Items of `n_votes` votes whose soft labels are what a model says of them.
    fn exact(model: &Model, n_votes: u64) -> CalibrationSet {
        let rows: Vec<[u64; 3]> = (0..=n_votes)
            .flat_map(|minus| (0..=n_votes - minus).map(move |tie| (minus, tie)))
            .map(|(minus, tie)| [minus, tie, n_votes - minus - tie])
            .collect();
        let weights: Vec<[f64; 3]> = rows
            .iter()
            .map(|&[minus, tie, plus]| model.probabilities(crate::Counts::new(minus, tie, plus)))
            .collect();
        let mut builder = CalibrationSetBuilder::new();
        builder.add_soft(&rows[..], &weights, Execution::single()).unwrap();
        builder.build(1.0, 1.0).unwrap()
    }

    #[test]
    fn the_true_parameters_are_recovered() {
        for (beta, eta0, gamma) in [(0.6, 0.3, 0.5), (1.2, 2.7, 0.5), (2.9, 6.8, 2.2)] {
            let model = Model::new(beta, eta0, gamma).unwrap();
            let found =
                exact(&model, 12).fit(&Bounds::default(), Execution::single()).unwrap().parameters;
            let off = [found.beta - beta, found.eta0 - eta0, found.gamma - gamma];
            assert!(off.iter().all(|off| off.abs() < 1e-6), "{off:?}");
        }
    }

    #[test]
    fn a_wider_box_has_no_higher_minimum() {
        let vast = |size: f64| Bounds {
            lower: Parameters { beta: 1e-9, eta0: -size, gamma: -size },
            upper: Parameters { beta: size, eta0: size, gamma: size },
        };
        let rows: Vec<[u64; 3]> = (0..30).map(|i| [i * i % 5, i % 3, i * 7 % 6]).collect();
        let labels: Vec<i8> = (0..30_i32).map(|i| i8::try_from(i * i % 3).unwrap() - 1).collect();
        let mut builder = CalibrationSetBuilder::new();
        builder.add(&rows[..], &labels, None, Execution::single()).unwrap();
        let set = builder.build(1.0, 1.0).unwrap();
        let usual = set.fit(&Bounds::default(), Execution::single()).unwrap();
        for size in [20.0, 200.0, 1e300] {
            let fit = set.fit(&vast(size), Execution::single()).unwrap();
            assert!(fit.drps <= usual.drps + 1e-12, "{size}: {} {}", fit.drps, usual.drps);
        }
    }

    #[test]
    fn the_fit_stays_in_its_box_and_wrong_boxes_are_named() {
        let set = exact(&Model::new(2.0, 3.0, 1.0).unwrap(), 8);
        let mut bounds = Bounds::default();
        bounds.upper.beta = 0.5;
        bounds.lower.gamma = 1.5;
        let found = set.fit(&bounds, Execution::single()).unwrap().parameters;
        assert_eq!((found.beta, found.gamma), (0.5, 1.5));
        let fit = set.fit(&bounds, Execution::single()).unwrap();
        assert_eq!((fit.at_bounds, fit.converged), ([true, false, true], true));
        bounds.lower.eta0 = f64::NAN;
        let message = set.fit(&bounds, Execution::single()).unwrap_err().to_string();
        assert!(message.starts_with("bounds of eta0 are [NaN, 6.9"), "{message}");
    }
}
