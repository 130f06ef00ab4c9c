//! The one fit: each part of a prior by Newton's steps, the parts by the likelihood of the labels,
//! and the one model that says nearly what they say together.
//!
//! A part is fitted by the DRPS, the paper's loss, which finds better decisions where a model is not
//! quite true; how much it holds is by the likelihood, which tells parts apart sooner.

use crate::design::{Design, Expansion, Labelled, Loss, Work};
use crate::error::same_length;
use crate::gather::check_weight;
use crate::linear::{Factor, Matrix, dot};
use crate::memory::{collected, filled, reserved};
use crate::parallel::{Watch, for_each_part};
use crate::prior::ln_normal_share;
use crate::{Error, Execution, Kind, Prior};

/// Steps of a fit at the most, and how many of them are Gauss and Newton's, which find the way from
/// far, before they know how the loss bends where forecasts are wrong.
const MAX_STEPS: usize = 200;
const GAUSS_NEWTON: usize = 10;

/// A step that promises to lower the loss by less, relative to it, is not worth taking.
const NOTHING: f64 = 1e-13;

/// A step is halved until it keeps this share of what it promised, or is shorter than that.
const KEPT: f64 = 1e-4;
const SHORTEST: f64 = 1e-9;

/// What the rounding of a loss may hide, relative to it.
const ROUNDING: f64 = 1e-8;

/// Parts that hold less say nothing.
const NEGLIGIBLE: f64 = 1e-6;

/// Labels that the mean of the parts counts for where one model is looked for, and how far it may go
/// from the heaviest part, as a standard deviation.
const OF_MEAN: f64 = 50.0;
const FAR: f64 = 30.0;

/// What labels say of the parameters, given what was believed before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Posterior {
    /// Parameters of the one model whose probabilities are closest to the mean of the parts', in
    /// DRPS over the rows that occur.
    pub parameters: Vec<f64>,
    /// How much each part of the prior holds.
    pub shares: Vec<f64>,
    /// Covariance of the parameters within the heaviest part, row by row.
    pub covariance: Vec<f64>,
    /// Whether all fits ended where no step promised anything.
    pub converged: bool,
}

impl Posterior {
    /// How much the parts of a kind hold.
    pub fn share(&self, prior: &Prior, kind: Kind) -> f64 {
        let parts = prior.parts().iter().zip(&self.shares);
        parts.filter(|(part, _)| part.kind == kind).fold(0.0, |sum, (_, share)| sum + share)
    }
}

/// A part of a prior, ready for fits.
struct Part<'a> {
    share: f64,
    mean: &'a [f64],
    precision: Matrix,
    log_determinant: f64,
    log_inside: f64,
}

impl Prior {
    /// The posterior of labels of the rows of a design: weights of the outcomes of each row, which
    /// sum to the number of labels.
    ///
    /// `occurring` are the rows, and how often each occurs, over which one model is looked for; by
    /// default those with a label.
    ///
    /// ```
    /// use btdagg::{Design, Execution, Prior};
    ///
    /// let design = Design::of_pairs(&[1.0, -0.5, 0.1], 1, &[1.0, -2.0, 1.0, -1.0, 1.0, -0.3])?;
    /// let labels = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    /// let prior = Prior::of_pairs(&[8.0])?;
    /// let posterior = prior.posterior(&design, &labels, None, Execution::single())?;
    /// assert!(posterior.converged && posterior.parameters[0] > 0.5);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if lengths do not agree, a weight is negative or not finite, or no row
    /// occurs; [`Error::Memory`]; [`Error::Interrupted`].
    pub fn posterior(
        &self,
        design: &Design,
        weights: &[f64],
        occurring: Option<(&Design, &[f64])>,
        execution: Execution<'_>,
    ) -> Result<Posterior, Error> {
        let mut found = [Posterior::default()];
        self.posteriors_into(design, weights, occurring, &mut found, execution)?;
        let [posterior] = found;
        Ok(posterior)
    }

    /// The posteriors under many weightings: `weights` has those of the outcomes of each row,
    /// weighting after weighting. Each depends on its own alone.
    ///
    /// # Errors
    /// As [`posterior`](Self::posterior).
    pub fn posteriors_into(
        &self,
        design: &Design,
        weights: &[f64],
        occurring: Option<(&Design, &[f64])>,
        out: &mut [Posterior],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let (n, k) = (design.n_parameters(), design.n_outcomes());
        let size = design.n_rows() * k;
        same_length("weights", weights.len(), size * out.len(), "the rows and outcomes")?;
        same_length("prior", self.n_parameters(), n, "the parameters of the design")?;
        if let Some((rows, times)) = occurring {
            same_length("occurring", rows.n_parameters(), n, "the parameters of the design")?;
            same_length("times", times.len(), rows.n_rows(), "the rows that occur")?;
            same_length("occurring", rows.n_outcomes(), k, "the outcomes of the design")?;
        }
        for (place, &weight) in weights.iter().enumerate() {
            check_weight(weight, place / k.max(1))?;
        }
        let mut parts = reserved(self.parts().len())?;
        for part in self.parts() {
            let covariance = Matrix { values: part.covariance.clone(), n };
            let log_inside = log_inside(&part.mean, &covariance, self.least());
            let factor = covariance.factor();
            parts.push(Part {
                share: part.share,
                mean: &part.mean,
                precision: factor.inverse()?,
                log_determinant: -factor.log_determinant(),
                log_inside,
            });
        }
        let fits = Fits { design, parts, least: self.least() };
        for_each_part(out, 1, execution, |start, part, watch| {
            for (number, out) in (start..).zip(part) {
                let weights = &weights[number * size..(number + 1) * size];
                *out = fits.fit(weights, occurring, &watch)?;
            }
            Ok(())
        })
    }
}

struct Fits<'a> {
    design: &'a Design,
    parts: Vec<Part<'a>>,
    least: &'a [f64],
}

impl Fits<'_> {
    fn fit(
        &self,
        weights: &[f64],
        occurring: Option<(&Design, &[f64])>,
        watch: &Watch<'_>,
    ) -> Result<Posterior, Error> {
        let labelled = Labelled { design: self.design, weights };
        let mut modes = reserved(self.parts.len())?;
        let mut shares = reserved(self.parts.len())?;
        for part in &self.parts {
            let mode = Mode::of(labelled, part, self.least, watch)?;
            shares.push(part.share.ln() + part.log_evidence(labelled, &mode.theta, self.least)?);
            modes.push(mode);
        }
        let most = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.iter_mut().for_each(|share| *share = (*share - most).exp());
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        let heaviest = (1..shares.len()).fold(0, |a, b| if shares[b] > shares[a] { b } else { a });
        let mut posterior = Posterior {
            parameters: modes[heaviest].theta.clone(),
            covariance: modes[heaviest].curvature.inverse()?.values,
            converged: modes.iter().all(|mode| mode.converged),
            shares,
        };
        if posterior.shares.iter().filter(|share| **share > NEGLIGIBLE).count() > 1 {
            self.project(&modes, weights, occurring, &mut posterior, watch)?;
        }
        Ok(posterior)
    }

    /// Looks for the model closest to the mean of the parts', from the heaviest one.
    fn project(
        &self,
        modes: &[Mode],
        weights: &[f64],
        occurring: Option<(&Design, &[f64])>,
        posterior: &mut Posterior,
        watch: &Watch<'_>,
    ) -> Result<(), Error> {
        let k = self.design.n_outcomes();
        let labels: Vec<f64>;
        let (rows, times) = if let Some(occurring) = occurring {
            occurring
        } else {
            labels = collected(weights.chunks_exact(k).map(|weights| weights.iter().sum()))?;
            (self.design, &labels[..])
        };
        let total: f64 = times.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::no_weight());
        }
        let mut mean = filled(0.0, times.len() * k)?;
        for (mode, &share) in modes.iter().zip(&posterior.shares) {
            if share > NEGLIGIBLE {
                rows.add_probabilities(&mode.theta, share, &mut mean);
            }
        }
        for (mean, times) in mean.chunks_exact_mut(k).zip(times) {
            mean.iter_mut().for_each(|p| *p *= times * OF_MEAN / total);
        }
        let near = Part {
            share: 1.0,
            mean: &posterior.parameters,
            precision: Matrix::identity(posterior.parameters.len(), FAR.powi(-2))?,
            log_determinant: 0.0,
            log_inside: 0.0,
        };
        let of_mean = Labelled { design: rows, weights: &mean };
        let found = Mode::of(of_mean, &near, self.least, watch)?;
        posterior.converged &= found.converged;
        posterior.parameters = found.theta;
        Ok(())
    }
}

impl Part<'_> {
    /// Adds minus the logarithm of the density, to second order.
    fn add_to(&self, theta: &[f64], sum: &mut Expansion, (away, pull): (&mut [f64], &mut [f64])) {
        away.iter_mut().zip(theta.iter().zip(self.mean)).for_each(|(away, (x, m))| *away = x - m);
        self.precision.times(away, pull);
        sum.value += 0.5 * dot(away, pull);
        sum.gradient.iter_mut().zip(pull.iter()).for_each(|(sum, pull)| *sum += pull);
        sum.matrix.add(&self.precision);
    }

    /// The logarithm of the mean likelihood of the labels, by Laplace's method around a point near
    /// its mode. The densities end where parameters are least: what is left of that before the
    /// labels, and after them.
    fn log_evidence(
        &self,
        labelled: Labelled<'_>,
        theta: &[f64],
        least: &[f64],
    ) -> Result<f64, Error> {
        let n = theta.len();
        let (mut work, mut here) = (Work::new(labelled.design)?, Expansion::new(n)?);
        labelled.expand(Loss::Log, theta, &mut here, &mut work);
        let (mut away, mut pull) = (filled(0.0, n)?, filled(0.0, n)?);
        self.add_to(theta, &mut here, (&mut away, &mut pull));
        let factor = here.matrix.factor();
        let mut step = here.gradient.clone();
        factor.solve(&mut step);
        let volume = 0.5 * (self.log_determinant - factor.log_determinant());
        let mode: Vec<f64> = theta.iter().zip(&step).map(|(x, step)| x - step).collect();
        let inside = log_inside(&mode, &factor.inverse()?, least) - self.log_inside;
        Ok(volume + inside + 0.5 * dot(&step, &here.gradient) - here.value)
    }
}

/// The logarithm of how much of a normal density is not below the least values, one by one.
fn log_inside(mean: &[f64], covariance: &Matrix, least: &[f64]) -> f64 {
    let deviations = (0..mean.len()).map(|place| covariance.row(place)[place].sqrt());
    let of_each = mean.iter().zip(least).zip(deviations);
    let bounded = of_each.filter(|((_, least), _)| least.is_finite());
    bounded.map(|((mean, least), deviation)| ln_normal_share((mean - least) / deviation)).sum()
}

/// The most probable parameters of a part after the labels.
struct Mode {
    theta: Vec<f64>,
    curvature: Factor,
    converged: bool,
}

impl Mode {
    /// By Newton's steps from the mean of the part.
    fn of(
        labelled: Labelled<'_>,
        part: &Part<'_>,
        least: &[f64],
        watch: &Watch<'_>,
    ) -> Result<Self, Error> {
        let n = part.mean.len();
        let mut work = Work::new(labelled.design)?;
        let (mut away, mut pull) = (filled(0.0, n)?, filled(0.0, n)?);
        let mut expand = |loss: Loss, theta: &[f64], sum: &mut Expansion| {
            labelled.expand(loss, theta, sum, &mut work);
            part.add_to(theta, sum, (&mut away, &mut pull));
        };
        let inside = |theta: &mut [f64]| {
            theta.iter_mut().zip(least).for_each(|(x, least)| *x = x.max(*least));
        };
        let mut theta = part.mean.to_vec();
        inside(&mut theta);
        let (mut here, mut there) = (Expansion::new(n)?, Expansion::new(n)?);
        expand(Loss::Drps, &theta, &mut here);
        let (mut next, mut converged) = (theta.clone(), false);
        for number in 1..=MAX_STEPS {
            watch.ask_now()?;
            let (mut slope, mut matrix) = (here.gradient.clone(), here.matrix.clone());
            let mut exact = here.matrix.clone();
            exact.add(&here.bend);
            for place in 0..n {
                if theta[place] <= least[place] && slope[place] >= 0.0 {
                    matrix.hold(place);
                    exact.hold(place);
                    slope[place] = 0.0;
                }
            }
            let mut step = slope.clone();
            exact.factor_if_positive().unwrap_or_else(|| matrix.factor()).solve(&mut step);
            let loss = if number < GAUSS_NEWTON { Loss::Drps } else { Loss::BentDrps };
            let promised = dot(&slope, &step);
            if promised < NOTHING * (1.0 + here.value.abs()) {
                converged = true;
                break;
            }
            let mut size = 1.0;
            let is_lower = loop {
                let from = theta.iter().zip(&step);
                next.iter_mut().zip(from).for_each(|(next, (x, step))| *next = x - size * step);
                inside(&mut next);
                expand(loss, &next, &mut there);
                if there.value <= here.value - KEPT * size * promised {
                    break true;
                }
                size /= 2.0;
                if size < SHORTEST {
                    break false;
                }
            };
            if !is_lower {
                converged = promised < ROUNDING * (1.0 + here.value.abs());
                break;
            }
            std::mem::swap(&mut theta, &mut next);
            std::mem::swap(&mut here, &mut there);
        }
        Ok(Self { theta, curvature: here.matrix.factor(), converged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items of one judge, upright or with sides swapped, and their labels.
    fn items(swapped: bool) -> (Design, Vec<f64>) {
        let (mut sides, mut ties, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..40_u32 {
            let s = f64::from(i % 9) / 4.0 - 1.0;
            let sign = if swapped { -1.0 } else { 1.0 };
            sides.push(sign * s);
            ties.extend([1.0, -f64::from(i % 5) / 2.0]);
            let mut of_row = [0.0; 3];
            of_row[if i % 3 == 0 { 1 } else { usize::from(s > 0.0) * 2 }] = 1.0;
            if swapped {
                of_row.reverse();
            }
            labels.extend(of_row);
        }
        (Design::of_pairs(&sides, 1, &ties).unwrap(), labels)
    }

    fn close(one: &[f64], other: &[f64], most: f64) -> bool {
        one.iter().zip(other).all(|(one, other)| (one - other).abs() <= most)
    }

    #[test]
    fn swapped_sides_and_any_number_of_threads_say_the_same() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let single = Execution::single();
        let [one, other] = [false, true].map(|swapped| {
            let (design, labels) = items(swapped);
            prior.posterior(&design, &labels, None, single).unwrap()
        });
        assert!(one.converged && other.converged);
        assert!(close(&one.parameters, &other.parameters, 1e-9));
        assert!(close(&one.shares, &other.shares, 1e-9));
        let (design, labels) = items(false);
        let many: Vec<f64> =
            (1..6).flat_map(|m| labels.iter().map(move |w| w * f64::from(m))).collect();
        let at = |n_threads: usize| {
            let mut found = vec![Posterior::default(); 5];
            let execution = Execution::threads(n_threads.try_into().unwrap());
            prior.posteriors_into(&design, &many, None, &mut found, execution).unwrap();
            found
        };
        assert_eq!(at(1), at(3));
        assert_eq!(at(1)[0], one);
    }

    #[test]
    fn rows_without_weight_and_rows_given_twice_say_nothing_new() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let (design, mut labels) = items(false);
        labels[60..].fill(0.0);
        let all = prior.posterior(&design, &labels, None, Execution::single()).unwrap();
        let few = Design::new(design.values()[..180].to_vec(), 3, 3).unwrap();
        let some = prior.posterior(&few, &labels[..60], None, Execution::single()).unwrap();
        assert!(close(&all.parameters, &some.parameters, 1e-12));
    }

    #[test]
    fn many_labels_outweigh_what_was_believed() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let (design, _) = items(false);
        let theta = [2.5, 0.3, -0.4];
        let mut labels = vec![0.0; 120];
        design.add_probabilities(&theta, 1e5, &mut labels);
        let found = prior.posterior(&design, &labels, None, Execution::single()).unwrap();
        assert!(close(&found.parameters, &theta, 1e-3), "{:?}", found.parameters);
        assert!(found.share(&prior, Kind::Nothing) < 1e-9);
    }

    #[test]
    fn labels_that_do_not_go_with_the_votes_say_that_these_say_nothing() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let (design, _) = items(false);
        let labels = [3.0, 3.0, 3.0].repeat(40);
        let found = prior.posterior(&design, &labels, None, Execution::single()).unwrap();
        assert!(found.share(&prior, Kind::Nothing) > 0.5);
        assert!(found.parameters[0] < 0.1);
    }

    #[test]
    fn without_labels_the_model_is_the_mean_of_the_parts() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let (design, _) = items(false);
        let (none, times) = (vec![0.0; 120], vec![1.0; 40]);
        let occurring = Some((&design, &times[..]));
        let found = prior.posterior(&design, &none, occurring, Execution::single()).unwrap();
        let wanted: Vec<f64> = prior.parts().iter().map(|part| part.share).collect();
        assert!(close(&found.shares, &wanted, 1e-12));
        let error = prior.posterior(&design, &none, None, Execution::single()).unwrap_err();
        assert_eq!(error, Error::no_weight());
    }

    #[test]
    fn wrong_lengths_and_weights_are_named_and_work_stops_when_asked() {
        let prior = Prior::of_pairs(&[8.0]).unwrap();
        let (design, mut labels) = items(false);
        let single = Execution::single();
        let error = |labels: &[f64], execution| {
            prior.posterior(&design, labels, None, execution).unwrap_err().to_string()
        };
        let message = "weights has 3 rows, expected 120 as in the rows and outcomes";
        assert_eq!(error(&labels[..3], single), message);
        assert_eq!(error(&labels, single.stop_when(&|| true)), "interrupted");
        labels[4] = -1.0;
        let message = "weights[1] is -1, expected a finite number of at least 0";
        assert_eq!(error(&labels, single), message);
    }
}
