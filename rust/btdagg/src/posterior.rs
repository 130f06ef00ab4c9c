//! What a few labels say of the parameters, given what was believed before.
//!
//! The posterior is a mixture of three parts: the parameters of neighbouring tasks, a weak prior of
//! plain values under which the votes are right, and votes that say nothing. How much each part
//! holds is by its likelihood of the labels; within a part the parameters have the prior times
//! `exp(−RATE · Σ DRPS)`, a Gibbs posterior. Three parameters are few enough to sum over points:
//! those of the fits' grid, of a finer lattice where a few of them hold everything, and the
//! neighbours'.

use crate::calibration_set::CalibrationSet;
use crate::counts::Counts;
use crate::davidson::{self, Lead};
use crate::error::same_length;
use crate::features::Features;
use crate::grid::Grid;
use crate::index::to_f64;
use crate::lattice::{Lattice, Spread};
use crate::memory::{filled, reserved};
use crate::parallel::for_each_part;
use crate::points::{Points, log_sum_exp, softmax};
use crate::prior::Prior;
use crate::profile::{bottom, matched_rate};
use crate::region::{Region, Vector};
use crate::rows::{LabelWeights, Row, WeightedRows};
use crate::vectors::ln_gamma;
use crate::weak_prior::{Densities, Thresholds};
use crate::{Bounds, Error, Execution, Parameters};

/// Rate of the DRPS: near that at which a posterior is as wide as the estimate.
pub(crate) const RATE: f64 = 3.0;

/// Share of votes that say nothing in the weak prior.
const NOTHING: f64 = 0.02;

/// With so many labels the neighbours have nothing to add.
const ENOUGH: f64 = 1000.0;

/// A sum is over enough points if it is as if so many of the grid, or of a lattice, had equal
/// weights, and no more than this share of it is at the lattice's edge.
const CARRIERS: f64 = 20.0;
const LATTICE_CARRIERS: f64 = 12.0;
const AT_EDGE: f64 = 0.01;

/// Lattices that are tried, each by what the one before has found.
const MAX_LATTICES: usize = 6;

/// Points that hold less than this share of a part decide nothing.
const NEGLIGIBLE: f64 = 1e-9;

/// What labels and a prior say of the parameters, and the one model that says nearly the same.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Parameters of the model whose probabilities are closest to the posterior's, in DRPS over the
    /// rows.
    pub parameters: Parameters,
    /// What is held by neighbours, by the weak prior and by votes that say nothing.
    pub shares: [f64; 3],
    /// The rate at which the posterior is as wide as the estimate; `RATE` without labels.
    pub matched_rate: f64,
    parts: Vec<Part>,
    alpha: f64,
    kappa: f64,
}

/// The points of a part, with their losses.
#[derive(Debug, Clone)]
struct Part {
    thetas: Vec<Vector>,
    log_prior: Vec<f64>,
    losses: Vec<f64>,
    weights: Vec<f64>,
    log_evidence: f64,
    /// Probabilities of each row.
    means: Vec<LabelWeights>,
}

impl Part {
    fn new(points: &Points, log_prior: Vec<f64>, losses: Vec<f64>, log_evidence: f64) -> Self {
        let weights = softmax(gibbs(&log_prior, &losses, RATE));
        let (thetas, means) = (points.thetas.clone(), points.means(&weights));
        Self { thetas, log_prior, losses, weights, log_evidence, means }
    }

    /// The heaviest point.
    fn mode(&self) -> Option<Vector> {
        let heaviest = self.weights.iter().zip(&self.thetas).max_by(|a, b| a.0.total_cmp(b.0));
        heaviest.map(|(_, theta)| *theta)
    }
}

fn gibbs(log_prior: &[f64], losses: &[f64], rate: f64) -> Vec<f64> {
    log_prior.iter().zip(losses).map(|(log, loss)| log - rate * loss).collect()
}

/// Posteriors of the same rows under any labels: they share the probabilities at the points.
///
/// ```
/// use btdagg::{CalibrationSet, Execution, Posteriors};
///
/// let counts: [[u8; 3]; 4] = [[0, 1, 7], [6, 1, 1], [3, 3, 2], [1, 2, 5]];
/// let set = CalibrationSet::new(&counts[..], &[1, -1, 0, 0], None, (1.0, 1.0), Execution::single())?;
/// let posterior = Posteriors::new(&set, None)?.posterior(&set.labels(), None)?;
/// assert!(posterior.parameters.beta > 0.5);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug)]
pub struct Posteriors {
    set: CalibrationSet,
    region: Region,
    densities: Densities,
    grid_cell: [Vector; 3],
    grid: Points,
    /// Rows and grid without offsets, if there are any: what is believed is of votes alone.
    votes_alone: Option<(Vec<Row>, Points)>,
    log_densities: Vec<f64>,
    /// The neighbours' parameters, and the share of the weak prior beside them.
    neighbours: Option<(Points, f64)>,
}

impl Posteriors {
    /// Prepares the posteriors of the rows of a set, whose labels are not looked at.
    ///
    /// With a prior goes the share that the weak one has beside it.
    ///
    /// # Errors
    /// [`Error::Input`] if that share is not from 0 to 1.
    pub fn new(set: &CalibrationSet, prior: Option<(&Prior, f64)>) -> Result<Self, Error> {
        if let Some((_, share)) = prior
            && !(0.0..=1.0).contains(&share)
        {
            return Err(Error::value("weak_share", share, "a number from 0 to 1"));
        }
        let rows = &set.rows.rows;
        let region = Region::new(&Bounds::default())?;
        let axes = Grid::new(region.grid());
        let densities = Densities::new(&axes);
        let grid = Points::of_grid(&axes, rows)?;
        let votes_alone = if set.rows.has_offsets() {
            let rows: Vec<Row> = rows.iter().map(|row| Row { offset: 0.0, ..*row }).collect();
            let points = Points::of_grid(&axes, &rows)?;
            Some((rows, points))
        } else {
            None
        };
        let log_densities = densities.logs(&grid.thetas);
        let [beta, eta0, gamma] = &axes.axes;
        let steps = [beta[1].ln() - beta[0].ln(), eta0[1] - eta0[0], gamma[1] - gamma[0]];
        let mut grid_cell = [[0.0; 3]; 3];
        (0..3).for_each(|i| grid_cell[i][i] = steps[i] * steps[i] / 12.0);
        let neighbours =
            prior.map(|(prior, share)| Ok((Points::new(prior.thetas.clone(), rows)?, share)));
        let neighbours = neighbours.transpose()?;
        let set = set.clone();
        Ok(Self { set, region, densities, grid_cell, grid, votes_alone, log_densities, neighbours })
    }

    /// The posterior of some labels of the rows: weights that sum to the number of labels, or of
    /// none, and then how often each row occurs.
    ///
    /// # Errors
    /// [`Error::Input`] if no row has a label or occurs.
    pub fn posterior(
        &self,
        labels: &[LabelWeights],
        occurrences: Option<&[f64]>,
    ) -> Result<Posterior, Error> {
        for got in [Some(labels.len()), occurrences.map(<[f64]>::len)].into_iter().flatten() {
            same_length("labels", got, self.rows().len(), "the rows")?;
        }
        let labelled: Vec<f64> = labels.iter().map(|weights| weights.iter().sum()).collect();
        let n_labels: f64 = labelled.iter().sum();
        let occurrences = occurrences.unwrap_or(&labelled);
        if occurrences.iter().all(|weight| *weight <= 0.0) {
            return Err(Error::no_weight());
        }
        let (log_weak, mut parts) = match &self.neighbours {
            Some((points, weak_share)) if n_labels < ENOUGH => {
                let uniform = -to_f64(points.thetas.len() as u64).ln();
                let log_prior = vec![uniform; points.thetas.len()];
                let evidence = log_evidence(&log_prior, points, labels, 0.0);
                let losses = points.losses(labels);
                let log_share = (1.0 - weak_share).ln();
                let part = Part::new(points, log_prior, losses, evidence + log_share);
                (weak_share.ln(), vec![part])
            }
            _ => (0.0, Vec::new()),
        };
        let mut votes = self.votes(labels, occurrences, 1.0)?;
        votes.log_evidence += log_weak + (1.0 - NOTHING).ln();
        let mut nothing = self.nothing(labels);
        nothing.log_evidence += log_weak + NOTHING.ln();
        parts.extend([votes, nothing]);

        let mut shares = softmax(parts.iter().map(|part| part.log_evidence).collect());
        if n_labels == 0.0 && parts.len() == 3 {
            shares = vec![1.0, 0.0, 0.0]; // nothing to weigh the parts by
        }
        let mut probabilities = vec![[0.0; 3]; self.rows().len()];
        for (share, part) in shares.iter().zip(&parts) {
            for (sums, means) in probabilities.iter_mut().zip(&part.means) {
                sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += share * mean);
            }
        }
        let theta = self.closest(&probabilities, occurrences, &parts, &shares)?;
        let matched_rate = matched_rate(self.rows(), &labelled, theta).unwrap_or(RATE);
        let held = |back: usize| shares.len().checked_sub(back).map_or(0.0, |place| shares[place]);
        let shares = [held(3), held(2), held(1)];
        Ok(Posterior {
            parameters: Parameters::of(theta),
            shares,
            matched_rate,
            parts,
            alpha: self.set.alpha,
            kappa: self.set.kappa,
        })
    }

    fn rows(&self) -> &[Row] {
        &self.set.rows.rows
    }

    /// The weak prior's part, whose losses count for that factor.
    fn votes(
        &self,
        labels: &[LabelWeights],
        occurrences: &[f64],
        factor: f64,
    ) -> Result<Part, Error> {
        let thresholds = Thresholds::new(&self.set.counts, occurrences);
        let scaled: Vec<LabelWeights> =
            labels.iter().map(|weights| weights.map(|weight| factor * weight)).collect();
        let alone = self.votes_alone.as_ref();
        let grid = alone.map_or(&self.grid, |(_, grid)| grid);
        let (log_prior, sums) = thresholds.log_prior(grid, &self.log_densities, RATE, None);
        let losses = self.grid.losses(&scaled);
        let weights = softmax(gibbs(&log_prior, &losses, RATE));
        if carriers(&weights) >= CARRIERS {
            let evidence = log_evidence(&log_prior, &self.grid, labels, 0.0);
            return Ok(Part::new(&self.grid, log_prior, losses, evidence));
        }
        let mut spread = Spread::new(&self.grid.thetas, &weights, &self.grid_cell);
        // A cell of the grid, in which its cells' prior is summed.
        let grid_volume = (0..3).map(|i| (12.0 * self.grid_cell[i][i]).sqrt()).product::<f64>();
        let mut tried = 0;
        loop {
            tried += 1;
            let lattice = Lattice::new(&spread, &self.region);
            let points = Points::new(lattice.thetas, self.rows())?;
            let of_votes =
                alone.map(|(rows, _)| Points::new(points.thetas.clone(), rows)).transpose()?;
            let of_votes = of_votes.as_ref().unwrap_or(&points);
            let log_densities = self.densities.logs(&points.thetas);
            let (log_prior, _) = thresholds.log_prior(of_votes, &log_densities, RATE, Some(&sums));
            let losses = points.losses(&scaled);
            let weights = softmax(gibbs(&log_prior, &losses, RATE));
            let edge = weights.iter().zip(&lattice.at_edge).filter(|(_, at_edge)| **at_edge);
            let at_edge: f64 = edge.map(|(weight, _)| weight).sum();
            if carriers(&weights) >= LATTICE_CARRIERS && at_edge < AT_EDGE || tried == MAX_LATTICES
            {
                let log_volume = (lattice.volume / grid_volume).ln();
                let evidence = log_evidence(&log_prior, &points, labels, log_volume);
                return Ok(Part::new(&points, log_prior, losses, evidence));
            }
            spread = Spread::new(&points.thetas, &weights, &lattice.cell);
        }
    }

    /// The part of votes that say nothing: one chance of a tie for all items, any equally likely,
    /// and both sides as likely as each other.
    fn nothing(&self, labels: &[LabelWeights]) -> Part {
        let ties: f64 = labels.iter().map(|[_, tie, _]| tie).sum();
        let sides: f64 = labels.iter().map(|[minus, _, plus]| minus + plus).sum();
        let log_evidence = ln_gamma(ties + 1.0) + ln_gamma(sides + 1.0)
            - ln_gamma(ties + sides + 2.0)
            - sides * std::f64::consts::LN_2;
        let tie = (ties + 1.0) / (ties + sides + 2.0);
        let side = (1.0 - tie) / 2.0;
        let theta = self.region.nearest([0.0, (tie / side).ln(), 0.0]);
        Part {
            thetas: vec![theta],
            log_prior: vec![0.0],
            losses: vec![0.0],
            weights: vec![1.0],
            log_evidence,
            means: vec![[side, tie, side]; self.rows().len()],
        }
    }

    /// The parameters whose probabilities are closest to some, in DRPS over the rows.
    fn closest(
        &self,
        probabilities: &[LabelWeights],
        occurrences: &[f64],
        parts: &[Part],
        shares: &[f64],
    ) -> Result<Vector, Error> {
        let row = |((row, p), weight): ((&Row, &LabelWeights), &f64)| Row {
            weights: p.map(|p| weight * p),
            ..*row
        };
        let rows = self.rows().iter().zip(probabilities).zip(occurrences).map(row);
        let rows = WeightedRows::new(rows.filter(|row| row.weights != [0.0; 3]).collect())?;
        let mut mean = [0.0; 3];
        for (part, share) in parts.iter().zip(shares) {
            for (theta, weight) in part.thetas.iter().zip(&part.weights) {
                mean.iter_mut().zip(theta).for_each(|(mean, x)| *mean += share * weight * x);
            }
        }
        let top = parts.iter().zip(shares).max_by(|a, b| a.1.total_cmp(b.1));
        let starts = std::iter::once(mean).chain(top.and_then(|(part, _)| part.mode()));
        bottom(&rows, &self.region, starts).map(|(theta, _)| theta)
    }

    /// Parameters, equally likely, that stand for the posterior of a neighbour of the weak prior.
    pub(crate) fn particles(
        &self,
        labels: &[LabelWeights],
        cap: f64,
        n: usize,
    ) -> Result<Vec<Vector>, Error> {
        let occurrences: Vec<f64> = labels.iter().map(|weights| weights.iter().sum()).collect();
        let n_labels: f64 = occurrences.iter().sum();
        let part = self.votes(labels, &occurrences, (cap / n_labels).min(1.0))?;
        let mut chosen = reserved(n)?;
        let mut sum = 0.0;
        for (theta, weight) in part.thetas.iter().zip(&part.weights) {
            sum += weight;
            while chosen.len() < n && to_f64(chosen.len() as u64) + 0.5 <= sum * to_f64(n as u64) {
                chosen.push(*theta);
            }
        }
        Ok(chosen)
    }
}

impl Posterior {
    /// The chance of each decision (−1, 0, +1) of each item, which is counts and an offset, by a model
    /// fitted to another draw of labels. This estimate and the other both vary: the parameters are drawn
    /// from the posterior at half the rate that makes it as wide as one of them.
    ///
    /// # Errors
    /// [`Error::Input`] if an offset is not finite; [`Error::Memory`]; [`Error::Interrupted`].
    pub fn decisions(
        &self,
        items: &[(Counts, f64)],
        execution: Execution<'_>,
    ) -> Result<Vec<[f64; 3]>, Error> {
        self.average(items, self.matched_rate / 2.0, execution, |parameters, s, t, offset| {
            let lead = Lead::new(parameters.margin_logit(s, offset));
            let mut decided = [0.0; 3];
            decided[davidson::action(lead, parameters.tie_logit(t)).column()] = 1.0;
            decided
        })
    }

    /// Mean probabilities of the labels of each item, which is counts and an offset.
    ///
    /// # Errors
    /// [`Error::Input`] if an offset is not finite; [`Error::Memory`]; [`Error::Interrupted`].
    pub fn probabilities(
        &self,
        items: &[(Counts, f64)],
        execution: Execution<'_>,
    ) -> Result<Vec<[f64; 3]>, Error> {
        self.average(items, RATE, execution, Parameters::probabilities)
    }

    /// The mean of something of each item's features over the parameters.
    fn average(
        &self,
        items: &[(Counts, f64)],
        rate: f64,
        execution: Execution<'_>,
        of: impl Fn(&Parameters, f64, f64, f64) -> [f64; 3] + Sync,
    ) -> Result<Vec<[f64; 3]>, Error> {
        for (row, &(_, offset)) in items.iter().enumerate() {
            if !offset.is_finite() {
                return Err(Error::not_finite("offsets", offset).at(&[row]));
            }
        }
        let shares = self.shares.iter().skip(self.shares.len() - self.parts.len());
        let mut points: Vec<(Parameters, f64)> = Vec::new();
        for (part, share) in self.parts.iter().zip(shares) {
            let weights = softmax(gibbs(&part.log_prior, &part.losses, rate));
            let held =
                part.thetas.iter().zip(weights).map(|(x, w)| (Parameters::of(*x), share * w));
            points.extend(held.filter(|(_, weight)| *weight > NEGLIGIBLE));
        }
        let total: f64 = points.iter().map(|(_, weight)| weight).sum();
        let mut out = filled([0.0; 3], items.len())?;
        for_each_part(&mut out, 1, execution, |start, part, watch| {
            for (out, &(counts, offset)) in part.iter_mut().zip(items.iter().skip(start)) {
                watch.ask_now()?;
                let Features { s, t } = Features::of(counts, self.alpha, self.kappa);
                for &(parameters, weight) in &points {
                    let values = of(&parameters, s, t, offset);
                    out.iter_mut().zip(values).for_each(|(sum, x)| *sum += weight * x / total);
                }
            }
            Ok(())
        })?;
        Ok(out)
    }
}

/// How many points there would be if all had the same weight.
fn carriers(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>()
}

fn log_evidence(
    log_prior: &[f64],
    points: &Points,
    labels: &[LabelWeights],
    log_volume: f64,
) -> f64 {
    if labels.iter().flatten().all(|weight| *weight == 0.0) {
        return 0.0;
    }
    let likelihoods = points.log_likelihoods(labels);
    let terms: Vec<f64> = log_prior.iter().zip(likelihoods).map(|(log, l)| log + l).collect();
    log_sum_exp(&terms) + log_volume
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    /// Items whose labels are those of a model, the likeliest first, in its proportions.
    fn set_of(model: &Model, n: u64) -> CalibrationSet {
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
            .map(|(&[minus, tie, plus], i)| {
                let [a, b, _] = model.probabilities(Counts::whole(minus, tie, plus));
                let u = (f64::from(i) * 0.618_034).fract();
                if u < a { -1 } else { i8::from(u >= a + b) }
            })
            .collect();
        CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single()).unwrap()
    }

    fn weak(set: &CalibrationSet) -> Posterior {
        Posteriors::new(set, None).unwrap().posterior(&set.labels(), None).unwrap()
    }

    fn every_counts() -> Vec<Counts> {
        (0..=8_u64)
            .flat_map(|minus| {
                (0..=8 - minus).map(move |tie| Counts::whole(minus, tie, 8 - minus - tie))
            })
            .collect()
    }

    #[test]
    fn with_many_labels_it_is_the_fit() {
        let model = Model::new(1.4, 2.2, 0.9).unwrap();
        let distance = |n| {
            let set = set_of(&model, n);
            let fit = set.fit(&Bounds::default(), Execution::single()).unwrap().parameters;
            let found = weak(&set).parameters;
            (found.beta - fit.beta).abs()
                + (found.eta0 - fit.eta0).abs()
                + (found.gamma - fit.gamma).abs()
        };
        let distances = [200, 2_000, 20_000].map(distance);
        assert!(distances.windows(2).all(|pair| pair[1] < 0.3 * pair[0]), "{distances:?}");
        assert!(distances[2] < 1e-2, "{distances:?}");
    }

    #[test]
    fn the_model_is_near_the_mean_and_chances_sum_to_one() {
        let model = Model::new(1.4, 2.2, 0.9).unwrap();
        let prior = Prior::of_neighbour(&set_of(&model, 300), 300.0, 8, 1024).unwrap();
        for n in [1, 3, 10, 60] {
            let set = set_of(&model, n);
            for prior in [None, Some((&prior, 0.1))] {
                let all = Posteriors::new(&set, prior).unwrap();
                let posterior = all.posterior(&set.labels(), None).unwrap();
                assert!((posterior.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                let items: Vec<(Counts, f64)> = every_counts()
                    .iter()
                    .flat_map(|counts| [0.0, 0.7, -0.7].map(|offset| (*counts, offset)))
                    .collect();
                for found in [
                    posterior.decisions(&items, Execution::single()).unwrap(),
                    posterior.probabilities(&items, Execution::single()).unwrap(),
                ] {
                    assert!(found.iter().all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-9));
                    // Mirrored items have mirrored chances.
                    for ((counts, offset), p) in items.iter().zip(&found) {
                        let mirrored = (counts.mirrored(), -offset);
                        let other = items.iter().position(|item| *item == mirrored);
                        let mut mirrored = found[other.unwrap()];
                        mirrored.reverse();
                        assert!(p.iter().zip(mirrored).all(|(a, b)| (a - b).abs() < 1e-12));
                    }
                    assert!(found.chunks(3).all(|p| p[1][2] >= p[0][2] && p[0][2] >= p[2][2]));
                }
            }
        }
    }

    #[test]
    fn offsets_move_margins_and_what_is_believed_is_of_votes_alone() {
        let rows: Vec<[u64; 3]> = (0..60).map(|i| [i * 7 % 5, i % 3, i * 3 % 5]).collect();
        let label = |i: u64| i8::try_from(i * i % 3).unwrap() - 1;
        let labels: Vec<i8> = (0..60).map(label).collect();
        let soft = |labels: &[i8]| -> Vec<[f64; 3]> {
            let one = |&label: &i8| [-1, 0, 1].map(|other| f64::from(u8::from(label == other)));
            labels.iter().map(one).collect()
        };
        let single = Execution::single();
        let of = |rows: &[[u64; 3]], labels: &[i8], offsets: &[f64]| {
            let weights = soft(labels);
            CalibrationSet::with_offsets(rows, &weights, offsets, (1.0, 1.0), single).unwrap()
        };
        let plain =
            weak(&CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), single).unwrap());
        let found = weak(&of(&rows, &labels, &[0.0; 60])).parameters.vector();
        let apart = found.iter().zip(plain.parameters.vector()).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-5);
        // Mirrored and permuted items have the same bits.
        let offsets: Vec<f64> = (0..60).map(|i| f64::from(i % 7 - 3) * 0.4).collect();
        let set = of(&rows, &labels, &offsets);
        let (mut turned, mut others) = (rows.clone(), labels.clone());
        turned.iter_mut().for_each(|row| row.reverse());
        others.iter_mut().for_each(|label| *label = -*label);
        let mut back: Vec<f64> = offsets.iter().map(|offset| -offset).collect();
        turned.reverse();
        others.reverse();
        back.reverse();
        let mirrored = of(&turned, &others, &back);
        let theta = Parameters { beta: 0.7, eta0: 0.3, gamma: 0.2 };
        let loss = set.loss(theta, single).unwrap();
        assert_eq!(loss, mirrored.loss(theta, single).unwrap());
        assert_eq!(weak(&set).parameters, weak(&mirrored).parameters);
        assert!(weak(&set).parameters != plain.parameters);
        // The gradient is the slope of the loss; the fit's is none.
        for i in 0..3 {
            let at = |shift: f64| {
                let mut theta = theta.vector();
                theta[i] += shift;
                set.loss(Parameters::of(theta), single).unwrap().drps
            };
            assert!((loss.gradient[i] - (at(1e-5) - at(-1e-5)) / 2e-5).abs() < 1e-9);
        }
        let fit = set.fit(&Bounds::default(), single).unwrap();
        assert!(fit.converged);
        assert!(Prior::of_neighbour(&set, 60.0, 4, 16).is_err());
    }

    #[test]
    fn neighbours_hold_what_they_explain() {
        let here = Model::new(1.4, 2.2, 0.9).unwrap();
        let elsewhere = Model::new(0.3, -3.0, -1.0).unwrap();
        let set = set_of(&here, 40);
        let share = |model: &Model| {
            let prior = Prior::of_neighbour(&set_of(model, 400), 400.0, 8, 1024).unwrap();
            let all = Posteriors::new(&set, Some((&prior, 0.1))).unwrap();
            all.posterior(&set.labels(), None).unwrap().shares[0]
        };
        assert!(share(&here) > 0.95 && share(&elsewhere) < 0.05);
        // Of no label the neighbours hold all, and of a thousand nothing.
        let prior = Prior::of_neighbour(&set_of(&here, 400), 400.0, 8, 1024).unwrap();
        let held = |set: &CalibrationSet, n_labels: f64| {
            let all = Posteriors::new(set, Some((&prior, 0.1))).unwrap();
            let occurrences: Vec<f64> = set.labels().iter().map(|w| w.iter().sum()).collect();
            all.posterior(&set.labels_worth(n_labels), Some(&occurrences)).unwrap().shares[0]
        };
        assert_eq!((held(&set, 0.0), held(&set, 1000.0)), (1.0, 0.0));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let set = set_of(&Model::new(1.4, 2.2, 0.9).unwrap(), 20);
        let prior = Prior::of_neighbour(&set, 20.0, 8, 1024).unwrap();
        let error = Posteriors::new(&set, Some((&prior, 1.5))).unwrap_err().to_string();
        assert_eq!(error, "weak_share is 1.5, expected a number from 0 to 1");
        let all = Posteriors::new(&set, None).unwrap();
        assert!(matches!(all.posterior(&[[1.0; 3]], None), Err(Error::Input(_))));
        let none = vec![[0.0; 3]; set.n_distinct()];
        assert_eq!(all.posterior(&none, None).unwrap_err(), Error::no_weight());
    }
}
