//! What is believed of a judge before its first label: plain values of the parameters, and a side
//! for an item whose mean vote passes some threshold.

use crate::Counts;
use crate::grid::Grid;
use crate::points::Points;
use crate::region::Vector;
use crate::rows::LabelWeights;
use crate::vectors;

/// How many labels the thresholds are worth: two for each parameter.
const PSEUDO_LABELS: f64 = 6.0;

/// Thresholds, evenly spaced: enough to tell apart the mean votes of eight.
const N_THRESHOLDS: u32 = 16;

/// Share, and mean and standard deviation of log beta, eta0 and gamma: plain values, wide ones.
const PLAIN: (f64, [[f64; 2]; 3]) = (0.8, [[0.26, 0.6], [1.5, 2.0], [0.8, 0.8]]);
const WIDE: (f64, [[f64; 2]; 3]) = (0.2, [[0.0, 1.0], [0.0, 3.0], [1.0, 2.0]]);

/// Two products of normal densities, each of which sums to its share over a grid.
#[derive(Debug)]
pub(crate) struct Densities {
    /// Logarithm of what each is multiplied by.
    scales: [f64; 2],
}

impl Densities {
    pub(crate) fn new(grid: &Grid) -> Self {
        let scales = [PLAIN, WIDE].map(|(share, normals)| {
            let mut axes = grid.axes.each_ref().map(Vec::clone);
            axes[0].iter_mut().for_each(|beta| *beta = beta.ln());
            let sums = axes.iter().zip(normals).map(|(axis, normal)| {
                axis.iter().map(|&x| log_normal(x, normal).exp()).sum::<f64>().ln()
            });
            f64::ln(share) - sums.sum::<f64>()
        });
        Self { scales }
    }

    /// Logarithms of the densities at points.
    pub(crate) fn logs(&self, thetas: &[Vector]) -> Vec<f64> {
        let mut sums = vec![0.0; thetas.len()];
        for ((_, normals), scale) in [PLAIN, WIDE].into_iter().zip(self.scales) {
            let log = |&[beta, eta0, gamma]: &Vector| {
                let x = [beta.ln(), eta0, gamma];
                x.iter().zip(normals).map(|(&x, normal)| log_normal(x, normal)).sum::<f64>() + scale
            };
            let mut densities: Vec<f64> = thetas.iter().map(log).collect();
            vectors::exp(&mut densities);
            sums.iter_mut().zip(densities).for_each(|(sum, density)| *sum += density);
        }
        vectors::ln(&mut sums);
        sums
    }
}

/// Log of a normal density, but for a constant.
fn log_normal(x: f64, [mean, sd]: [f64; 2]) -> f64 {
    -0.5 * ((x - mean) / sd).powi(2)
}

/// The labels that items have if a side is called where the mean vote is beyond a threshold, which
/// is one of [`N_THRESHOLDS`] between 0 and 1.
#[derive(Debug)]
pub(crate) struct Thresholds {
    /// Labels beyond the largest threshold: all ties.
    ties: Vec<LabelWeights>,
    /// From the largest to the smallest: what it changes in the labels, and the chance of it.
    /// Thresholds that give the same labels are one.
    steps: Vec<(Vec<LabelWeights>, f64)>,
}

impl Thresholds {
    /// Of rows with no more votes for B than for A, by how often each occurs.
    pub(crate) fn new(counts: &[Counts], occurrences: &[f64]) -> Self {
        let total: f64 = occurrences.iter().sum();
        let shares = occurrences.iter().map(|weight| PSEUDO_LABELS * weight / total);
        let items: Vec<(f64, f64)> = counts.iter().map(mean_vote).zip(shares).collect();
        let ties = items.iter().map(|(_, share)| [0.0, *share, 0.0]).collect();
        let mut steps: Vec<(Vec<LabelWeights>, f64)> = Vec::new();
        let mut above = f64::INFINITY;
        for number in (0..N_THRESHOLDS).rev() {
            let threshold = (f64::from(number) + 0.5) / f64::from(N_THRESHOLDS);
            let changes =
                |&(mean, share): &(f64, f64)| share > 0.0 && threshold < mean && mean <= above;
            let chance = 1.0 / f64::from(N_THRESHOLDS);
            match steps.last_mut() {
                Some((_, sum)) if !items.iter().any(changes) => *sum += chance,
                _ => {
                    let labels = items
                        .iter()
                        .map(|item| if changes(item) { [0.0, -item.1, item.1] } else { [0.0; 3] });
                    steps.push((labels.collect(), chance));
                }
            }
            above = threshold;
        }
        Self { ties, steps }
    }

    /// Logarithm of the prior at points whose densities have these logarithms, and the sums that
    /// each threshold is divided by: those over the points, unless they are known.
    pub(crate) fn log_prior(
        &self,
        points: &Points,
        log_densities: &[f64],
        rate: f64,
        known: Option<&[f64]>,
    ) -> (Vec<f64>, Vec<f64>) {
        let mut losses = points.losses(&self.ties);
        let (mut mixture, mut sums) = (vec![0.0; losses.len()], Vec::new());
        let mut weights = vec![0.0; losses.len()];
        for (place, (labels, chance)) in self.steps.iter().enumerate() {
            points.add_losses(labels, &mut losses);
            for (weight, (log, loss)) in weights.iter_mut().zip(log_densities.iter().zip(&losses)) {
                *weight = log - rate * loss;
            }
            vectors::exp(&mut weights);
            let sum = known.map_or_else(|| weights.iter().sum(), |known| known[place]);
            for (mixture, weight) in mixture.iter_mut().zip(&weights) {
                *mixture += chance / sum * weight;
            }
            sums.push(sum);
        }
        vectors::ln(&mut mixture);
        (mixture, sums)
    }
}

fn mean_vote(counts: &Counts) -> f64 {
    let total = counts.total();
    if total > 0.0 { (counts.plus - counts.minus).abs() / total } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;
    use crate::Parameters;
    use crate::features::Features;
    use crate::region::Region;
    use crate::rows::Row;

    #[test]
    fn the_prior_is_a_mean_over_thresholds_each_of_which_sums_to_one() {
        let counts = [
            Counts::whole(0, 0, 4),
            Counts::whole(0, 2, 2),
            Counts::whole(1, 0, 3),
            Counts::whole(2, 0, 2),
        ];
        let occurrences = [3.0, 1.0, 0.0, 2.0];
        let rows: Vec<Row> = counts
            .iter()
            .map(|&counts| {
                let f = Features::of(counts, 1.0, 1.0);
                Row { s: f.s, t: f.t, offset: 0.0, weights: [0.0; 3], place: 0 }
            })
            .collect();
        let grid = Grid::new(Region::new(&Bounds::default()).unwrap().grid());
        let densities = Densities::new(&grid);
        let points = Points::of_grid(&grid, &rows).unwrap();
        let logs = densities.logs(&points.thetas);
        assert!((logs.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-8);
        let thresholds = Thresholds::new(&counts, &occurrences);
        let (found, _) = thresholds.log_prior(&points, &logs, 3.0, None);

        // Mean votes are 1, 1/2 (twice, one of which does not occur) and 0.
        let labels = [([1, 0, 0, 0], 0.5), ([1, 1, 1, 0], 0.5)];
        let mut wanted = vec![0.0; found.len()];
        for (labels, chance) in labels {
            let weight = |theta: &Vector, log: &f64| {
                let score: f64 = rows
                    .iter()
                    .zip(labels)
                    .zip(occurrences)
                    .map(|((row, label), share)| {
                        let [minus, _, plus] = row.probabilities(Parameters::of(*theta));
                        let over = if label == 1 { 1.0 - plus } else { plus };
                        share / 6.0 * (minus * minus + over * over)
                    })
                    .sum();
                (log - 3.0 * 6.0 * score).exp()
            };
            let weights: Vec<f64> =
                points.thetas.iter().zip(&logs).map(|(theta, log)| weight(theta, log)).collect();
            let total: f64 = weights.iter().sum();
            wanted
                .iter_mut()
                .zip(&weights)
                .for_each(|(sum, weight)| *sum += chance * weight / total);
        }
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found.exp() - wanted).abs() <= 1e-5 * wanted, "{} {wanted}", found.exp());
        }
    }
}
