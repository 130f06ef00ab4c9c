//! The loss to second order, and the Newton step to where that is least.

use crate::region::Vector;
use crate::rows::{Row, WeightedRows};
use crate::{Error, Execution, Parameters};

impl WeightedRows {
    /// Mean DRPS, gradient and Hessian.
    pub(crate) fn expansion(
        &self,
        theta: Vector,
        execution: Execution<'_>,
    ) -> Result<Expansion, Error> {
        let parameters = Parameters::of(theta);
        let add = |sum: &mut Expansion, row: &Row| sum.add_row(row, parameters);
        let sum = self.sum(execution, add, |total, block| {
            total.add(block.value, block.gradient, &block.hessian);
        })?;
        Ok(Expansion {
            value: sum.value / self.total_weight,
            gradient: sum.gradient.map(|x| x / self.total_weight),
            hessian: sum.hessian.map(|row| row.map(|x| x / self.total_weight)),
        })
    }
}

/// Second-order expansion of the loss at a point.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expansion {
    pub(crate) value: f64,
    pub(crate) gradient: Vector,
    pub(crate) hessian: [Vector; 3],
}

impl Expansion {
    /// Adds the weighted score of a row.
    ///
    /// The score is `e₁² + e₂²` with `e₁ = p(−1) − H(−1)` and `e₂ = p(+1) − 1 + H(0)`.
    pub(crate) fn add_row(&mut self, row: &Row, parameters: Parameters) {
        let [minus, tie, plus] = row.probabilities(parameters);
        let lean = plus - minus;
        let spread = minus + plus - lean * lean;
        // First and second derivatives of the two tails by u, by eta, and by both.
        let minus_u = -minus * (1.0 + lean);
        let plus_u = plus * (1.0 - lean);
        let (minus_eta, plus_eta) = (-minus * tie, -plus * tie);
        let minus_bend = minus * ((1.0 + lean) * (1.0 + lean) - spread);
        let plus_bend = plus * ((1.0 - lean) * (1.0 - lean) - spread);
        let minus_both = minus * tie * (1.0 + 2.0 * lean);
        let plus_both = plus * tie * (2.0 * lean - 1.0);
        let (minus_ties, plus_ties) =
            (minus * tie * (2.0 * tie - 1.0), plus * tie * (2.0 * tie - 1.0));

        let [if_minus, if_tie, if_plus] = row.weights;
        let weight = if_minus + if_tie + if_plus;
        // Weighted sums of e₁ and e₂ over the three labels, and of their squares.
        let e_minus = weight * minus - if_minus;
        let e_plus = weight * plus - if_plus;
        let squares = weight * (minus * minus + plus * plus)
            + if_minus * (1.0 - 2.0 * minus)
            + if_plus * (1.0 - 2.0 * plus);

        let by_u = 2.0 * (e_minus * minus_u + e_plus * plus_u);
        let by_eta = 2.0 * (e_minus * minus_eta + e_plus * plus_eta);
        let uu = 2.0
            * (weight * (minus_u * minus_u + plus_u * plus_u)
                + e_minus * minus_bend
                + e_plus * plus_bend);
        let both = 2.0
            * (weight * (minus_u * minus_eta + plus_u * plus_eta)
                + e_minus * minus_both
                + e_plus * plus_both);
        let ee = 2.0
            * (weight * (minus_eta * minus_eta + plus_eta * plus_eta)
                + e_minus * minus_ties
                + e_plus * plus_ties);

        let (s, t) = (row.s, row.t);
        let hessian = [
            [uu * s * s, both * s, both * s * t],
            [both * s, ee, ee * t],
            [both * s * t, ee * t, ee * t * t],
        ];
        self.add(squares, [by_u * s, by_eta, by_eta * t], &hessian);
    }

    fn add(&mut self, value: f64, gradient: Vector, hessian: &[Vector; 3]) {
        self.value += value;
        for (sum, term) in self.gradient.iter_mut().zip(gradient) {
            *sum += term;
        }
        for (sum, term) in self.hessian.iter_mut().flatten().zip(hessian.iter().flatten()) {
            *sum += term;
        }
    }

    /// The step to the minimum of the damped expansion over the free parameters, or `None` where
    /// the damping is too weak for it to have one.
    pub(crate) fn newton_step(&self, free: [bool; 3], damping: f64) -> Option<Vector> {
        let mut matrix = self.hessian;
        let mut step = self.gradient.map(|slope| -slope);
        for i in 0..3 {
            matrix[i][i] += damping;
            if !free[i] {
                (0..3).for_each(|j| (matrix[i][j], matrix[j][i]) = (0.0, 0.0));
                (matrix[i][i], step[i]) = (1.0, 0.0);
            }
        }
        // Elimination without pivots: all are positive where the matrix is positive definite.
        for i in 0..3 {
            let pivot = matrix[i][i];
            if pivot.is_nan() || pivot <= 1e-300 {
                return None;
            }
            for row in i + 1..3 {
                let factor = matrix[row][i] / pivot;
                (i..3).for_each(|j| matrix[row][j] -= factor * matrix[i][j]);
                step[row] -= factor * step[i];
            }
        }
        for i in (0..3).rev() {
            let known: f64 = (i + 1..3).map(|j| matrix[i][j] * step[j]).sum();
            step[i] = (step[i] - known) / matrix[i][i];
        }
        step.iter().all(|x| x.is_finite()).then_some(step)
    }

    pub(crate) fn expected_decrease(&self, step: Vector) -> f64 {
        let slope: f64 = self.gradient.iter().zip(step).map(|(g, d)| g * d).sum();
        let bend: f64 = self.hessian.iter().zip(step).map(|(row, d)| d * dot(*row, step)).sum();
        -(slope + 0.5 * bend)
    }
}

pub(crate) fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CalibrationSet;

    #[test]
    fn expansion_agrees_with_the_loss_and_its_slopes() {
        let rows: Vec<[u64; 3]> = (0..90).map(|i| [i % 7, (i * i) % 5, i % 11]).collect();
        let labels: Vec<i8> = (0..90_i32).map(|i| i8::try_from(i * i % 3).unwrap() - 1).collect();
        let set =
            CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single()).unwrap();
        let theta = [1.3, 0.2, 0.8];
        let at = |theta| {
            {
                let [beta, eta0, gamma] = theta;
                set.loss(Parameters { beta, eta0, gamma }, Execution::single())
            }
            .unwrap()
        };
        let expansion = set.rows.expansion(theta, Execution::single()).unwrap();
        assert!((expansion.value - at(theta).drps).abs() < 1e-14);
        for i in 0..3 {
            assert!((expansion.gradient[i] - at(theta).gradient[i]).abs() < 1e-14);
            let moved = |shift: f64| {
                let mut theta = theta;
                theta[i] += shift;
                at(theta).gradient
            };
            let (above, below) = (moved(1e-5), moved(-1e-5));
            for j in 0..3 {
                let slope = (above[j] - below[j]) / 2e-5;
                assert!((expansion.hessian[i][j] - slope).abs() < 1e-8, "{i} {j}");
            }
        }
    }
}
