//! Where on a grid of losses to look for minima.

use crate::region::Vector;

/// Basins whose bottom is looked for.
const MAX_BASINS: usize = 8;

/// A grid over beta, eta0 and gamma, the last of which runs fastest.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) axes: [Vec<f64>; 3],
}

impl Grid {
    pub(crate) const fn new(axes: [Vec<f64>; 3]) -> Self {
        Self { axes }
    }

    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(Vec::len).product()
    }

    /// The point of that number.
    pub(crate) fn point(&self, place: usize) -> Vector {
        let [betas, eta0s, gammas] = &self.axes;
        let (pair, k) = (place / gammas.len(), place % gammas.len());
        [betas[pair / eta0s.len()], eta0s[pair % eta0s.len()], gammas[k]]
    }

    /// The lowest of the points that are lower than all their neighbours, and for each gamma the
    /// lowest point if it lies on the floor of a valley, no more than `floor` above the lowest of
    /// all.
    ///
    /// Valleys run along gamma, with eta0 making up for it; there may be several minima on the
    /// floor of one, too close for the grid to show them.
    pub(crate) fn starts(&self, losses: &[f32], floor: f32) -> Vec<Vector> {
        let [n_beta, n_eta0, n_gamma] = self.axes.each_ref().map(Vec::len);
        let by_gamma = lowest_of_columns(losses, n_gamma);
        let Some(lowest) = least(&by_gamma) else {
            return Vec::new();
        };
        let mut minima: Vec<(f32, usize)> = Vec::new();
        let around = |i: usize, n: usize| i.saturating_sub(1)..(i + 2).min(n);
        for (line, along) in losses.chunks(n_gamma).enumerate() {
            let (i, j) = (line / n_eta0, line % n_eta0);
            for (k, &here) in along.iter().enumerate() {
                // Most points fail this, which is cheap. Beyond an end there is no neighbour.
                let lower = |k: usize| along.get(k).is_some_and(|other| *other < here);
                if lower(k + 1) || lower(k.wrapping_sub(1)) {
                    continue;
                }
                let place = line * n_gamma + k;
                let is_lowest = around(i, n_beta).all(|i| {
                    around(j, n_eta0).all(|j| {
                        around(k, n_gamma).all(|k| {
                            let other = (i * n_eta0 + j) * n_gamma + k;
                            (losses[other], other) >= (here, place)
                        })
                    })
                });
                if is_lowest {
                    minima.push((here, place));
                }
            }
        }
        minima.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        minima.truncate(MAX_BASINS);
        let known: Vec<usize> = minima.iter().map(|(_, place)| *place).collect();
        let on_floor = by_gamma
            .iter()
            .enumerate()
            .filter(|(_, loss)| **loss - lowest <= floor)
            .filter_map(|(k, loss)| {
                let mut column = losses.iter().skip(k).step_by(n_gamma);
                column.position(|other| other == loss).map(|line| line * n_gamma + k)
            })
            .filter(|place| !known.contains(place));
        known.iter().copied().chain(on_floor).map(|place| self.point(place)).collect()
    }
}

/// The lowest loss of each column.
fn lowest_of_columns(losses: &[f32], n_columns: usize) -> Vec<f32> {
    let mut lines = losses.chunks(n_columns);
    let mut lowest = lines.next().map_or_else(Vec::new, <[f32]>::to_vec);
    for line in lines {
        lowest.iter_mut().zip(line).for_each(|(least, &loss)| *least = lower(*least, loss));
    }
    lowest
}

/// The lowest of some losses, found for several at a time.
fn least(losses: &[f32]) -> Option<f32> {
    let (fours, rest) = losses.as_chunks::<4>();
    let lanes = fours.iter().copied().reduce(|a, b| std::array::from_fn(|i| lower(a[i], b[i])));
    lanes.iter().flatten().chain(rest).copied().reduce(lower)
}

/// Without a branch, so that it is done for several at a time.
fn lower(one: f32, other: f32) -> f32 {
    if other < one { other } else { one }
}
