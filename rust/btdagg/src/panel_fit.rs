//! The fit of a panel: the votes of several judges, each with a beta and a gamma of its own.

use crate::Error;
use crate::error::{check_finite, same_length};
use crate::memory::{collected, filled, reserved};

/// Steps of a descent at the most.
const MAX_STEPS: usize = 300;

/// Damping at which no step is short enough to go down.
const MAX_DAMPING: f64 = 1e12;

/// A component of the gradient that could be followed is 0 below this.
const FLAT: f64 = 1e-7;

/// Labelled items with the features of every judge.
#[derive(Debug, Clone)]
pub struct PanelSet {
    /// Of every item the margin features of all judges, then a 1, then their tie features.
    features: Vec<f64>,
    /// Whether its label is −1, and +1.
    sides: Vec<[f64; 2]>,
    weights: Vec<f64>,
    offsets: Vec<f64>,
    n_judges: usize,
}

/// Parameters of least loss: the betas, eta0 and the gammas.
#[derive(Debug, Clone)]
pub struct PanelFit {
    /// All of them, in that order.
    pub parameters: Vec<f64>,
    /// Weighted mean DRPS, and the penalty.
    pub loss: f64,
    /// Whether no component of the gradient could be followed.
    pub converged: bool,
}

/// Mean DRPS with its gradient and the curvature that it has where forecasts are right.
struct Expansion {
    loss: f64,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

impl PanelSet {
    /// Gathers items: the features are those of the judges, item by item.
    ///
    /// # Errors
    /// [`Error::Input`] if there are not as many; [`Error::Input`]; [`Error::Memory`].
    pub fn new(
        s: &[f64],
        t: &[f64],
        labels: &[i8],
        weights: &[f64],
        n_judges: usize,
    ) -> Result<Self, Error> {
        let wanted = labels.len();
        for (name, got) in [
            ("s", s.len() / n_judges.max(1)),
            ("t", t.len() / n_judges.max(1)),
            ("weights", weights.len()),
        ] {
            same_length(name, got, wanted, "labels")?;
        }
        if n_judges == 0 || weights.iter().sum::<f64>() <= 0.0 {
            return Err(Error::no_weight());
        }
        let mut features = reserved(wanted * (2 * n_judges + 1))?;
        for (s, t) in s.chunks_exact(n_judges).zip(t.chunks_exact(n_judges)) {
            features.extend_from_slice(s);
            features.push(1.0);
            features.extend_from_slice(t);
        }
        let is = |label: i8, side| f64::from(u8::from(label == side));
        let sides = collected(labels.iter().map(|&label| [is(label, -1), is(label, 1)]))?;
        let weights = collected(weights.iter().copied())?;
        Ok(Self { features, sides, weights, offsets: filled(0.0, wanted)?, n_judges })
    }

    /// The same items with an offset each, added to their margins.
    ///
    /// # Errors
    /// [`Error::Input`] if there is not one finite offset for each item; [`Error::Memory`].
    pub fn with_offsets(self, offsets: &[f64]) -> Result<Self, Error> {
        same_length("offsets", offsets.len(), self.weights.len(), "labels")?;
        check_finite("offsets", offsets, 0)?;
        Ok(Self { offsets: collected(offsets.iter().copied())?, ..self })
    }

    /// Number of parameters.
    pub const fn width(&self) -> usize {
        2 * self.n_judges + 1
    }

    /// Minimises the mean DRPS plus half the penalty's quadratic form within bounds, from a start.
    ///
    /// The penalty is a matrix over all parameters, row by row.
    ///
    /// # Errors
    /// [`Error::Input`] if something is not as wide as the parameters.
    pub fn fit(
        &self,
        start: &[f64],
        penalty: &[f64],
        lower: &[f64],
        upper: &[f64],
    ) -> Result<PanelFit, Error> {
        let n = self.width();
        for (name, got, wanted) in [
            ("start", start.len(), n),
            ("penalty", penalty.len(), n * n),
            ("lower", lower.len(), n),
            ("upper", upper.len(), n),
        ] {
            same_length(name, got, wanted, "the parameters")?;
        }
        let inside = |i: usize, x: f64| x.max(lower[i]).min(upper[i]);
        let mut x: Vec<f64> = start.iter().enumerate().map(|(i, x)| inside(i, *x)).collect();
        let mut here = self.expansion(&x, penalty);
        let mut damping = 1e-3;
        let mut converged = false;
        for _ in 0..MAX_STEPS {
            let free: Vec<usize> =
                (0..n).filter(|&i| inside(i, x[i] - here.gradient[i]) != x[i]).collect();
            let slack = |i: usize| (inside(i, x[i] - here.gradient[i]) - x[i]).abs();
            converged = (0..n).all(|i| slack(i) <= FLAT);
            if converged || damping > MAX_DAMPING {
                break;
            }
            let mut matrix: Vec<f64> = Vec::with_capacity(free.len() * free.len());
            for &i in &free {
                for &j in &free {
                    let damped =
                        if i == j { damping * here.curvature[i * n + i] + 1e-12 } else { 0.0 };
                    matrix.push(here.curvature[i * n + j] + damped);
                }
            }
            let mut step: Vec<f64> = free.iter().map(|&i| -here.gradient[i]).collect();
            solve(&mut matrix, &mut step);
            let mut next = x.clone();
            free.iter().zip(&step).for_each(|(&i, step)| next[i] = inside(i, x[i] + step));
            let there = self.expansion(&next, penalty);
            if there.loss < here.loss {
                damping = (damping / 8.0).max(1e-12);
                (x, here) = (next, there);
            } else {
                damping *= 8.0;
            }
        }
        Ok(PanelFit { parameters: x, loss: here.loss, converged })
    }

    fn expansion(&self, x: &[f64], penalty: &[f64]) -> Expansion {
        let n = self.width();
        let margins = self.n_judges;
        let mut gradient = vec![0.0; n];
        let mut curvature = vec![0.0; n * n];
        let (mut loss, mut total) = (0.0, 0.0);
        let weighted = self.weights.iter().zip(&self.offsets);
        for ((features, sides), (&weight, offset)) in
            self.features.chunks_exact(n).zip(&self.sides).zip(weighted)
        {
            let dot = |from: usize, to: usize| -> f64 {
                features[from..to].iter().zip(&x[from..to]).map(|(a, b)| a * b).sum()
            };
            let (u, eta) = (dot(0, margins) + offset, dot(margins, n));
            let most = u.abs().max(eta);
            let odds = [-u, eta, u].map(|logit| (logit - most).exp());
            let sum = odds[0] + odds[2] + odds[1];
            let [minus, tie, plus] = odds.map(|odds| odds / sum);
            // Of the side +1 through its complement, so that swapped sides mirror every bit.
            let off = [minus - sides[0], sides[1] - plus];
            let lead = plus - minus;
            let by_u = [-minus * (1.0 + lead), -plus * (1.0 - lead)];
            let by_eta = [-minus * tie, plus * tie];
            total += weight;
            loss += weight * (off[0] * off[0] + off[1] * off[1]);
            let pair = |a: [f64; 2], b: [f64; 2]| 2.0 * weight * (a[0] * b[0] + a[1] * b[1]);
            let (slope_u, slope_eta) = (pair(off, by_u), pair(off, by_eta));
            let (uu, ue, ee) = (pair(by_u, by_u), pair(by_u, by_eta), pair(by_eta, by_eta));
            for (i, a) in features.iter().enumerate() {
                let (slope, with_u, with_eta) =
                    if i < margins { (slope_u, uu, ue) } else { (slope_eta, ue, ee) };
                gradient[i] += slope * a;
                let row = &mut curvature[i * n..(i + 1) * n];
                for (j, (sum, b)) in row.iter_mut().zip(features).enumerate() {
                    *sum += if j < margins { with_u } else { with_eta } * a * b;
                }
            }
        }
        loss /= total;
        gradient.iter_mut().for_each(|x| *x /= total);
        for (i, (row, penalties)) in
            curvature.chunks_exact_mut(n).zip(penalty.chunks_exact(n)).enumerate()
        {
            let pull: f64 = penalties.iter().zip(x).map(|(a, b)| a * b).sum();
            gradient[i] += pull;
            loss += 0.5 * pull * x[i];
            row.iter_mut().zip(penalties).for_each(|(sum, a)| *sum = *sum / total + a);
        }
        Expansion { loss, gradient, curvature }
    }
}

/// Solves a positive definite system in place, by Cholesky's factors.
fn solve(matrix: &mut [f64], right: &mut [f64]) {
    let n = right.len();
    for j in 0..n {
        for i in j..n {
            let known: f64 = (0..j).map(|k| matrix[i * n + k] * matrix[j * n + k]).sum();
            let rest = matrix[i * n + j] - known;
            matrix[i * n + j] =
                if i == j { rest.max(1e-300).sqrt() } else { rest / matrix[j * n + j] };
        }
        let known: f64 = (0..j).map(|k| matrix[j * n + k] * right[k]).sum();
        right[j] = (right[j] - known) / matrix[j * n + j];
    }
    for j in (0..n).rev() {
        let known: f64 = (j + 1..n).map(|k| matrix[k * n + j] * right[k]).sum();
        right[j] = (right[j] - known) / matrix[j * n + j];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: f64 = 1e6;

    fn set() -> PanelSet {
        let mut state = 0.37_f64;
        let mut next = || {
            state = (state * 9.301 + 0.493).fract();
            2.0 * state - 1.0
        };
        let s: Vec<f64> = (0..120).map(|_| 1.5 * next()).collect();
        let t: Vec<f64> = (0..120).map(|_| next() - 1.0).collect();
        let labels: Vec<i8> = s
            .chunks_exact(2)
            .map(|s| {
                let lead = s[0] + 0.5 * s[1] + next();
                i8::from(lead > 0.6) - i8::from(lead < -0.6)
            })
            .collect();
        let weights: Vec<f64> = labels.iter().map(|_| 1.5 + next()).collect();
        PanelSet::new(&s, &t, &labels, &weights, 2).unwrap()
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let offsets: Vec<f64> = (0..60).map(|i| f64::from(i % 7 - 3) * 0.2).collect();
        let (set, x) = (set().with_offsets(&offsets).unwrap(), [0.8, 0.3, 0.4, 0.7, -0.2]);
        let mut penalty = [0.0; 25];
        (0..5).for_each(|i| penalty[6 * i] = 0.1);
        let found = set.expansion(&x, &penalty).gradient;
        for i in 0..5 {
            let at = |step: f64| {
                let mut x = x;
                x[i] += step;
                set.expansion(&x, &penalty).loss
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((found[i] - slope).abs() < 1e-9, "{i}: {} {slope}", found[i]);
        }
    }

    #[test]
    fn a_fit_is_an_optimum_inside_and_at_bounds() {
        let set = set();
        let none = [0.0; 25];
        for upper in [[WIDE; 5], [0.5, 0.1, WIDE, WIDE, 0.0]] {
            let lower = [0.0, 0.0, -9.0, -10.0, -10.0];
            let fit = set.fit(&[1.0, 0.0, 1.0, 0.5, 0.0], &none, &lower, &upper).unwrap();
            assert!(fit.converged);
            for i in 0..5 {
                for step in [-1e-3, 1e-3] {
                    let mut x = fit.parameters.clone();
                    x[i] = (x[i] + step).max(lower[i]).min(upper[i]);
                    assert!(set.expansion(&x, &none).loss >= fit.loss, "{i} {step}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_as_long_as_it_should_be_is_refused() {
        let error = PanelSet::new(&[1.0], &[1.0], &[1, 0], &[1.0, 1.0], 1).unwrap_err();
        assert_eq!(error.to_string(), "s has 1 rows, expected 2 as in labels");
        assert_eq!(PanelSet::new(&[1.0], &[1.0], &[1], &[0.0], 1).unwrap_err(), Error::no_weight());
        let error = set().with_offsets(&[0.0; 2]).unwrap_err();
        assert_eq!(error.to_string(), "offsets has 2 rows, expected 60 as in labels");
        assert!(set().fit(&[0.0; 4], &[0.0; 25], &[0.0; 5], &[0.0; 5]).is_err());
    }
}
