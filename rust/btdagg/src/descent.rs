//! Damped Newton steps (Levenberg) to the bottom of a basin.

use crate::Error;
use crate::expansion::{Expansion, Vector};
use crate::region::Region;

const MAX_STEPS: usize = 200;

/// Damping that is raised after a failed step is at least this.
const LEAST_DAMPING: f64 = 1e-12;

/// A way downhill and how far along it we are.
pub(crate) struct Descent<'a> {
    region: &'a Region,
    pub(crate) theta: Vector,
    here: Expansion,
    damping: f64,
    steps: usize,
    /// What the next step promises to gain; infinite before the first.
    pub(crate) promise: f64,
    /// Whether no step promises a further decrease.
    pub(crate) converged: bool,
}

impl<'a> Descent<'a> {
    pub(crate) fn new(
        theta: Vector,
        region: &'a Region,
        expansion: impl Fn(Vector) -> Result<Expansion, Error>,
    ) -> Result<Self, Error> {
        let theta = region.nearest(theta);
        let here = expansion(theta)?;
        let promise = f64::INFINITY;
        Ok(Self { region, theta, here, damping: 1e-3, steps: 0, promise, converged: false })
    }

    /// The loss here.
    pub(crate) const fn value(&self) -> f64 {
        self.here.value
    }

    /// Tries one more step; false where this is the end.
    pub(crate) fn step(
        &mut self,
        expansion: impl Fn(Vector) -> Result<Expansion, Error>,
    ) -> Result<bool, Error> {
        if self.converged || self.steps == MAX_STEPS {
            return Ok(false);
        }
        self.steps += 1;
        let free = self.region.free(self.theta, self.here.gradient);
        let Some(step) = self.here.newton_step(free, self.damping) else {
            self.damp();
            return Ok(true);
        };
        self.promise = self.here.expected_decrease(step);
        if self.promise < 1e-18 || self.damping > 1e12 {
            self.converged = true;
            return Ok(false);
        }
        let next = self.region.nearest(std::array::from_fn(|i| self.theta[i] + step[i]));
        let there = expansion(next)?;
        if there.value < self.here.value {
            (self.theta, self.here) = (next, there);
            self.damping *= 0.1;
        } else {
            self.damp();
        }
        Ok(true)
    }

    fn damp(&mut self) {
        self.damping = f64::max(self.damping * 4.0, LEAST_DAMPING);
    }
}
