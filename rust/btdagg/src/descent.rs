//! Damped Newton steps (Levenberg) to the bottom of a basin.

use crate::Error;
use crate::expansion::Expansion;
use crate::region::{Region, Vector};

const MAX_STEPS: usize = 200;

/// Damping that is raised after a failed step is at least this.
const LEAST_DAMPING: f64 = 1e-12;

/// With damping beyond this a step leads nowhere.
const MOST_DAMPING: f64 = 1e12;

/// A step that promises to lower the loss by less is not worth taking.
const NOTHING: f64 = 1e-18;

/// So near in each parameter is in the same basin.
const NEAR: f64 = 0.05;

/// What the rounding of a loss amounts to, relative to it.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Slopes up to this, in DRPS per unit of a parameter, are those of an optimum.
const FLAT: f64 = 1e-8;

/// A way downhill and how far along it we are.
pub(crate) struct Descent<'a> {
    region: &'a Region,
    /// Beta, eta0 and gamma, and the loss there.
    pub(crate) theta: Vector,
    pub(crate) here: Expansion,
    damping: f64,
    steps: usize,
}

impl<'a> Descent<'a> {
    pub(crate) fn new(
        theta: Vector,
        region: &'a Region,
        expansion: impl Fn(Vector) -> Result<Expansion, Error>,
    ) -> Result<Self, Error> {
        let theta = region.nearest(theta);
        let here = expansion(theta)?;
        Ok(Self { region, theta, here, damping: 1e-3, steps: 0 })
    }

    /// Whether it has come near where another one ended, which is lower: it would end there too.
    pub(crate) fn joins(&self, ended: &Self) -> bool {
        let is_near = |(one, other): (&f64, f64)| (one - other).abs() <= NEAR;
        self.here.value >= ended.here.value && self.theta.iter().zip(ended.theta).all(is_near)
    }

    /// Whether there is no way down from here but what rounding hides.
    pub(crate) fn is_optimum(&self) -> bool {
        self.region.projected_gradient(self.theta, self.here.gradient) <= FLAT
    }

    /// Tries one more step; false where this is the end.
    pub(crate) fn step(
        &mut self,
        expansion: impl Fn(Vector) -> Result<Expansion, Error>,
    ) -> Result<bool, Error> {
        if self.steps == MAX_STEPS || self.damping > MOST_DAMPING {
            return Ok(false);
        }
        self.steps += 1;
        let free = self.region.free(self.theta, self.here.gradient);
        let Some(step) = self.here.newton_step(free, self.damping) else {
            self.damp();
            return Ok(true);
        };
        if self.here.expected_decrease(step) < NOTHING && self.is_optimum() {
            return Ok(false);
        }
        let next = self.region.nearest(std::array::from_fn(|i| self.theta[i] + step[i]));
        let there = expansion(next)?;
        if there.value < self.here.value || self.is_flatter(next, &there) {
            (self.theta, self.here) = (next, there);
            self.damping *= 0.1;
        } else {
            self.damp();
        }
        Ok(true)
    }

    /// Whether a point is as low as this one, up to rounding, and has less than half its slope:
    /// so near the bottom the slopes say more than the values.
    fn is_flatter(&self, theta: Vector, there: &Expansion) -> bool {
        let slope = |theta, here: &Expansion| self.region.projected_gradient(theta, here.gradient);
        there.value <= self.here.value * (1.0 + ROUNDING)
            && slope(theta, there) < 0.5 * slope(self.theta, &self.here)
    }

    fn damp(&mut self) {
        self.damping = f64::max(self.damping * 4.0, LEAST_DAMPING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    /// A slope that never ends, in steps that its curvature makes short.
    #[expect(clippy::unnecessary_wraps, reason = "as of a loss")]
    fn endless(theta: Vector) -> Result<Expansion, Error> {
        let [beta, ..] = theta;
        let mut here = Expansion { value: -beta, gradient: [-1.0, 0.0, 0.0], ..Default::default() };
        here.hessian[0][0] = 1e4;
        Ok(here)
    }

    #[test]
    fn a_descent_that_is_cut_short_is_no_optimum() {
        let region = Region::new(&Bounds::default()).unwrap();
        let mut descent = Descent::new([0.1, 0.0, 0.0], &region, endless).unwrap();
        while descent.step(endless).unwrap() {}
        assert_eq!(descent.steps, MAX_STEPS);
        assert!(descent.theta[0] > 0.1 && descent.theta[0] < 0.2);
        assert!(!descent.is_optimum());
        // At the bound there is no way down.
        let mut descent = Descent::new([5.0, 0.0, 0.0], &region, endless).unwrap();
        while descent.step(endless).unwrap() {}
        assert!(descent.is_optimum());
    }
}
