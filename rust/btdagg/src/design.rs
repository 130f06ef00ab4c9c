//! Designs: what each parameter adds to the logit of each outcome of a row, and what labels lose
//! under them.
//!
//! Every model of this crate is a softmax over a design; what its parameters mean is data.

use crate::Error;
use crate::error::{check_finite, same_length};
use crate::linear::Matrix;
use crate::memory::{filled, reserved};

/// Rate of the DRPS beside a prior: that at which it says as much as the likelihood where both
/// sides of a cut are as likely, and no more elsewhere.
pub(crate) const RATE: f64 = 2.0;

/// A design of rows, whose logits are linear in the parameters.
///
/// ```
/// use btdagg::Design;
///
/// // One judge's margin and tie features: beta, eta0 and gamma.
/// let design = Design::of_pairs(&[0.8, 0.0], 1, &[1.0, -1.1, 1.0, -0.2])?;
/// assert_eq!((design.n_rows(), design.n_outcomes(), design.n_parameters()), (2, 3, 3));
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Design {
    /// By row, outcome and parameter.
    values: Vec<f64>,
    n_outcomes: usize,
    n_parameters: usize,
}

impl Design {
    /// Of what each parameter adds to each outcome of each row; parameters run fastest, then
    /// outcomes, which are in order.
    ///
    /// # Errors
    /// [`Error::Input`] if these are not whole rows of two outcomes at least, or not finite.
    pub fn new(values: Vec<f64>, n_outcomes: usize, n_parameters: usize) -> Result<Self, Error> {
        let size = n_outcomes * n_parameters;
        if n_outcomes < 2 || size == 0 || !values.len().is_multiple_of(size) {
            let got = format!("has {} values", values.len());
            let expected = format!("rows of {n_outcomes} outcomes, 2 at least, by {n_parameters}");
            return Err(Error::input("design", got, expected));
        }
        check_finite("design", &values, 0)?;
        Ok(Self { values, n_outcomes, n_parameters })
    }

    /// Of pairs: logits −u, η and u, where u is linear in the first columns, which change their
    /// sign with the sides, and η in the others, such as a 1 and a tie feature.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if both do not have as many rows.
    pub fn of_pairs(sides: &[f64], n_sides: usize, ties: &[f64]) -> Result<Self, Error> {
        let n_rows = sides.len() / n_sides.max(1);
        same_length("sides", sides.len(), n_rows * n_sides, "whole rows")?;
        let n_ties = ties.len() / n_rows.max(1);
        same_length("ties", ties.len(), n_rows * n_ties, "the sides")?;
        let mut values = reserved(3 * n_rows * (n_sides + n_ties))?;
        for (sides, ties) in
            sides.chunks_exact(n_sides.max(1)).zip(ties.chunks_exact(n_ties.max(1)))
        {
            values.extend(sides.iter().map(|x| -x).chain(ties.iter().map(|_| 0.0)));
            values.extend(sides.iter().map(|_| 0.0).chain(ties.iter().copied()));
            values.extend(sides.iter().copied().chain(ties.iter().map(|_| 0.0)));
        }
        Self::new(values, 3, n_sides + n_ties)
    }

    /// Of grades: the log odds of a grade against the one below are linear in the columns, less an
    /// intercept of each two neighbouring grades.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_grades(columns: &[f64], n_columns: usize, n_grades: usize) -> Result<Self, Error> {
        let n_cuts = n_grades.saturating_sub(1);
        let n_rows = columns.len() / n_columns.max(1);
        same_length("columns", columns.len(), n_rows * n_columns, "whole rows")?;
        let mut values =
            reserved(columns.len() / n_columns.max(1) * n_grades * (n_columns + n_cuts))?;
        for row in columns.chunks_exact(n_columns.max(1)) {
            // From the middle, so that reversed scales have mirrored designs.
            let mut step = -0.5 * crate::index::to_f64(n_cuts as u64);
            for grade in 0..n_grades {
                values.extend(row.iter().map(|x| step * x));
                values.extend((0..n_cuts).map(|cut| if cut < grade { -1.0 } else { 0.0 }));
                step += 1.0;
            }
        }
        Self::new(values, n_grades, n_columns + n_cuts)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.len() / (self.n_outcomes * self.n_parameters)
    }

    /// Number of outcomes.
    pub const fn n_outcomes(&self) -> usize {
        self.n_outcomes
    }

    /// Number of parameters.
    pub const fn n_parameters(&self) -> usize {
        self.n_parameters
    }

    /// What each parameter adds, by row, outcome and parameter.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_outcomes * self.n_parameters)
    }

    /// Adds the probabilities of the outcomes of each row, times a share, to sums.
    pub(crate) fn add_probabilities(&self, theta: &[f64], share: f64, sums: &mut [f64]) {
        let mut p = vec![0.0; self.n_outcomes];
        for (row, sums) in self.rows().zip(sums.chunks_exact_mut(self.n_outcomes)) {
            self.softmax(row, theta, &mut p);
            sums.iter_mut().zip(&p).for_each(|(sum, p)| *sum += share * p);
        }
    }

    /// Probabilities of a row, and the logarithm of what they were divided by.
    fn softmax(&self, row: &[f64], theta: &[f64], p: &mut [f64]) -> f64 {
        let logits = row.chunks_exact(self.n_parameters);
        for (logit, of_outcome) in p.iter_mut().zip(logits) {
            *logit = of_outcome.iter().zip(theta).map(|(x, theta)| x * theta).sum();
        }
        let most = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        p.iter_mut().for_each(|logit| *logit = (*logit - most).exp());
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
        most + total.ln()
    }
}

/// What is lost, and minimised.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loss {
    /// `RATE` times the discrete ranked probability score.
    Drps,
    /// The same, with how it bends besides.
    BentDrps,
    /// The negative log-likelihood.
    Log,
}

/// A loss to second order: its value, its gradient, and the Gauss–Newton matrix, which has the
/// second derivatives that it has where forecasts are right. What is missing from them where
/// forecasts are wrong is in `bend`, if asked for.
#[derive(Debug, Clone)]
pub(crate) struct Expansion {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    pub(crate) matrix: Matrix,
    pub(crate) bend: Matrix,
}

impl Expansion {
    pub(crate) fn new(n: usize) -> Result<Self, Error> {
        Ok(Self {
            value: 0.0,
            gradient: filled(0.0, n)?,
            matrix: Matrix::new(n)?,
            bend: Matrix::new(n)?,
        })
    }

    fn clear(&mut self) {
        self.value = 0.0;
        self.gradient.fill(0.0);
        self.matrix.values.fill(0.0);
        self.bend.values.fill(0.0);
    }
}

/// Weights of the outcomes of each row of a design.
#[derive(Clone, Copy)]
pub(crate) struct Labelled<'a> {
    pub(crate) design: &'a Design,
    pub(crate) weights: &'a [f64],
}

impl Labelled<'_> {
    /// The loss, summed over rows, replaces what `sum` held.
    pub(crate) fn expand(&self, loss: Loss, theta: &[f64], sum: &mut Expansion, work: &mut Work) {
        sum.clear();
        let rows = self.design.rows().zip(self.weights.chunks_exact(self.design.n_outcomes));
        for (row, weights) in rows {
            let total: f64 = weights.iter().sum();
            if total > 0.0 {
                match loss {
                    Loss::Drps => self.add_drps(row, (weights, total), theta, sum, work),
                    Loss::BentDrps => {
                        self.add_drps(row, (weights, total), theta, sum, work);
                        self.add_bend(row, (weights, total), sum, work);
                    }
                    Loss::Log => self.add_log(row, (weights, total), theta, sum, work),
                }
            }
        }
        sum.matrix.mirror();
        sum.bend.mirror();
    }

    /// `Σ w (F − H)²` over the cuts between outcomes, with F the probability of what is below a cut
    /// and H whether the label is.
    fn add_drps(
        &self,
        row: &[f64],
        (weights, total): (&[f64], f64),
        theta: &[f64],
        sum: &mut Expansion,
        Work { p, mean, slope }: &mut Work,
    ) {
        self.design.softmax(row, theta, p);
        let n = self.design.n_parameters;
        mean.fill(0.0);
        for (x, &p) in row.chunks_exact(n).zip(p.iter()) {
            mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += p * x);
        }
        slope.fill(0.0);
        let (mut below, mut labelled) = (0.0, 0.0);
        let cuts = row.chunks_exact(n).zip(p.iter().zip(weights)).take(self.design.n_outcomes - 1);
        for (x, (&p, weight)) in cuts {
            let off = x.iter().zip(mean.iter());
            slope.iter_mut().zip(off).for_each(|(slope, (x, mean))| *slope += p * (x - mean));
            below += p;
            labelled += weight;
            let off = total * below - labelled;
            sum.value += RATE * (below * (off - labelled) + labelled);
            let factor = 2.0 * RATE * off;
            sum.gradient.iter_mut().zip(slope.iter()).for_each(|(sum, s)| *sum += factor * s);
            sum.matrix.add_square(2.0 * RATE * total, slope);
        }
    }

    /// `2 Σ w (F − H) F''`, of the row whose probabilities and mean are in `work`. Of the deviations
    /// d of the outcomes from their mean, `F''` below a cut is `Σ p d d'` there less F times that of
    /// all, so that the products of each outcome are added once.
    fn add_bend(
        &self,
        row: &[f64],
        (weights, total): (&[f64], f64),
        sum: &mut Expansion,
        Work { p, mean, slope }: &mut Work,
    ) {
        let cuts = || {
            p.iter().zip(weights).take(self.design.n_outcomes - 1).scan((0.0, 0.0), |at, (p, w)| {
                *at = (at.0 + p, at.1 + w);
                Some((at.0, 2.0 * RATE * (total * at.0 - at.1)))
            })
        };
        let of_all: f64 = cuts().map(|(below, factor)| factor * below).sum();
        let mut above: f64 = cuts().map(|(_, factor)| factor).sum();
        let factors = cuts().map(|(_, factor)| factor).chain([0.0]);
        for ((x, &p), factor) in row.chunks_exact(self.design.n_parameters).zip(&*p).zip(factors) {
            let off = x.iter().zip(mean.iter());
            slope.iter_mut().zip(off).for_each(|(slope, (x, mean))| *slope = x - mean);
            sum.bend.add_square(p * (above - of_all), slope);
            above -= factor;
        }
    }

    fn add_log(
        &self,
        row: &[f64],
        (weights, total): (&[f64], f64),
        theta: &[f64],
        sum: &mut Expansion,
        Work { p, mean, slope }: &mut Work,
    ) {
        sum.value += total * self.design.softmax(row, theta, p);
        let n = self.design.n_parameters;
        mean.fill(0.0);
        for ((x, &p), &weight) in row.chunks_exact(n).zip(p.iter()).zip(weights) {
            let logit: f64 = x.iter().zip(theta).map(|(x, theta)| x * theta).sum();
            sum.value -= weight * logit;
            let off = total * p - weight;
            sum.gradient.iter_mut().zip(x).for_each(|(sum, x)| *sum += off * x);
            mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += p * x);
        }
        for (x, &p) in row.chunks_exact(n).zip(p.iter()) {
            let off = x.iter().zip(mean.iter());
            slope.iter_mut().zip(off).for_each(|(slope, (x, mean))| *slope = x - mean);
            sum.matrix.add_square(total * p, slope);
        }
    }
}

/// Room for the numbers of one row.
pub(crate) struct Work {
    p: Vec<f64>,
    mean: Vec<f64>,
    slope: Vec<f64>,
}

impl Work {
    pub(crate) fn new(design: &Design) -> Result<Self, Error> {
        let n = design.n_parameters;
        let p = filled(0.0, design.n_outcomes)?;
        Ok(Self { p, mean: filled(0.0, n)?, slope: filled(0.0, n)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_grades() -> (Design, Vec<f64>) {
        let rows = [0.3, -0.2, -1.1, 0.5, 0.8, 0.0];
        let design = Design::of_grades(&rows, 2, 4).unwrap();
        (design, vec![1.0, 0.5, 0.0, 0.0, 0.0, 2.0, 0.0, 0.25, 0.0, 0.0, 1.0, 1.0])
    }

    #[test]
    fn gradients_are_slopes_and_the_matrix_of_the_log_loss_theirs() {
        let (design, weights) = of_grades();
        let labelled = Labelled { design: &design, weights: &weights };
        let theta = [0.7, -0.4, -0.9, 0.2, 1.1];
        for loss in [Loss::BentDrps, Loss::Log] {
            let at = |theta: &[f64]| {
                let mut work = Work::new(&design).unwrap();
                let mut sum = Expansion::new(5).unwrap();
                labelled.expand(loss, theta, &mut sum, &mut work);
                sum
            };
            let here = at(&theta);
            for i in 0..5 {
                let moved = |step: f64| {
                    let mut theta = theta;
                    theta[i] += step;
                    at(&theta)
                };
                let (less, more) = (moved(-1e-5), moved(1e-5));
                let slope = (more.value - less.value) / 2e-5;
                assert!((slope - here.gradient[i]).abs() < 1e-8, "{loss:?} {i}");
                let bends = more.gradient.iter().zip(&less.gradient).map(|(a, b)| (a - b) / 2e-5);
                let found = here.matrix.row(i).iter().zip(here.bend.row(i)).map(|(a, b)| a + b);
                for (bend, found) in bends.zip(found) {
                    assert!((bend - found).abs() < 1e-8, "{loss:?} {i}");
                }
            }
        }
    }

    #[test]
    fn where_forecasts_are_right_the_matrix_of_the_drps_has_its_second_derivatives() {
        let (design, _) = of_grades();
        let theta = [0.7, -0.4, -0.9, 0.2, 1.1];
        let mut weights = vec![0.0; 12];
        design.add_probabilities(&theta, 1.0, &mut weights);
        let labelled = Labelled { design: &design, weights: &weights };
        let at = |theta: &[f64]| {
            let (mut sum, mut work) = (Expansion::new(5).unwrap(), Work::new(&design).unwrap());
            labelled.expand(Loss::Drps, theta, &mut sum, &mut work);
            sum
        };
        let here = at(&theta);
        assert!(here.gradient.iter().all(|slope| slope.abs() < 1e-14));
        for i in 0..5 {
            let mut moved = theta;
            moved[i] += 1e-5;
            for (slope, found) in at(&moved).gradient.iter().zip(here.matrix.row(i)) {
                assert!((slope / 1e-5 - found).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn wrong_shapes_are_named() {
        for (values, outcomes, message) in [
            (vec![0.0; 5], 3, "design has 5 values, expected rows of 3 outcomes, 2 at least, by 1"),
            (vec![0.0; 2], 1, "design has 2 values, expected rows of 1 outcomes, 2 at least, by 1"),
            (vec![0.0, f64::NAN], 2, "design[1] is NaN, expected a finite number"),
        ] {
            assert_eq!(Design::new(values, outcomes, 1).unwrap_err().to_string(), message);
        }
    }
}
