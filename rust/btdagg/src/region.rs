//! The box in which a fit looks for parameters, and the grid over it.

use crate::index::to_f64;
use crate::{Error, Parameters};

/// Grid points along beta, eta0 and gamma.
const GRID: [usize; 3] = [12, 20, 31];

/// Parameters so near a bound, relative to it where it is larger than 1, are at it.
const ROUNDING: f64 = 1e-9;

/// Three numbers in the order beta, eta0, gamma.
pub(crate) type Vector = [f64; 3];

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

/// The box in which the parameters may lie.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    pub(crate) lower: Vector,
    pub(crate) upper: Vector,
}

impl Region {
    pub(crate) fn new(bounds: &Bounds) -> Result<Self, Error> {
        let (lower, upper) = (bounds.lower.vector(), bounds.upper.vector());
        for (name, (lower, upper)) in ["beta", "eta0", "gamma"].iter().zip(lower.iter().zip(upper))
        {
            if !(lower.is_finite() && upper.is_finite() && *lower <= upper) {
                let got = format!("of {name} are [{lower}, {upper}]");
                return Err(Error::input("bounds", got, "two finite numbers in ascending order"));
            }
        }
        Ok(Self { lower, upper })
    }

    /// The default box.
    fn usual() -> Self {
        let Bounds { lower, upper } = Bounds::default();
        Self { lower: lower.vector(), upper: upper.vector() }
    }

    /// Whether it reaches beyond the default box, so that its grid is coarser.
    pub(crate) fn is_wide(&self) -> bool {
        let usual = Self::usual();
        (0..3).any(|i| self.lower[i] < usual.lower[i] || self.upper[i] > usual.upper[i])
    }

    /// Values along the three axes: those over the box, and where it is wider than the default
    /// box, those over the latter too, which is where basins are narrow.
    pub(crate) fn grid(&self) -> [Vec<f64>; 3] {
        let is_wide = self.is_wide();
        let (own, usual) = (self.axes(), Self::usual().axes());
        std::array::from_fn(|i| {
            let mut axis = own[i].clone();
            if is_wide {
                let inside = |value: &f64| self.lower[i] < *value && *value < self.upper[i];
                axis.extend(usual[i].iter().filter(|value| inside(value)));
            }
            axis.sort_unstable_by(f64::total_cmp);
            axis.dedup();
            axis
        })
    }

    /// Beta geometric where it is positive, the others even.
    fn axes(&self) -> [Vec<f64>; 3] {
        let even = |i: usize| spaced(self.lower[i], self.upper[i], GRID[i]);
        let beta = if self.lower[0] > 0.0 {
            let least = self.lower[0].max(self.upper[0] / 100.0);
            let values = spaced(least.ln(), self.upper[0].ln(), GRID[0]).into_iter().map(f64::exp);
            values.map(|beta| beta.clamp(self.lower[0], self.upper[0])).collect()
        } else {
            even(0)
        };
        [beta, even(1), even(2)]
    }

    pub(crate) fn nearest(&self, theta: Vector) -> Vector {
        std::array::from_fn(|i| theta[i].clamp(self.lower[i], self.upper[i]))
    }

    /// Holds one of the three at a value, or at the bound next to it.
    pub(crate) fn hold(&mut self, place: usize, neutral: f64) {
        let value = neutral.clamp(self.lower[place], self.upper[place]);
        (self.lower[place], self.upper[place]) = (value, value);
    }

    /// Which of the three are at one of their bounds, where these leave them a choice.
    pub(crate) fn at_bounds(&self, parameters: Parameters) -> [bool; 3] {
        let (theta, lower, upper) = (parameters.vector(), self.lower, self.upper);
        std::array::from_fn(|i| {
            let is_at = |bound: f64| (theta[i] - bound).abs() <= ROUNDING * bound.abs().max(1.0);
            lower[i] < upper[i] && (is_at(lower[i]) || is_at(upper[i]))
        })
    }

    /// How far a step against the gradient leads within the box, in the parameter where it leads
    /// furthest: nothing at an optimum.
    pub(crate) fn projected_gradient(&self, theta: Vector, gradient: Vector) -> f64 {
        let step = self.nearest(std::array::from_fn(|i| theta[i] - gradient[i]));
        (0..3).map(|i| (step[i] - theta[i]).abs()).fold(0.0, f64::max)
    }

    /// Which parameters may move downhill without leaving the box.
    pub(crate) fn free(&self, theta: Vector, gradient: Vector) -> [bool; 3] {
        std::array::from_fn(|i| {
            !(theta[i] <= self.lower[i] && gradient[i] >= 0.0
                || theta[i] >= self.upper[i] && gradient[i] <= 0.0)
        })
    }
}

fn spaced(from: f64, to: f64, n: usize) -> Vec<f64> {
    let share = |i: usize| to_f64(i as u64) / to_f64(n as u64 - 1);
    (0..n).map(|i| from * (1.0 - share(i)) + to * share(i)).collect()
}
