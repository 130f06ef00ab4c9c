//! Where on a grid of losses to look for minima.

use crate::expansion::Vector;

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
        let at = |axis: &Vec<f64>, i: usize| axis.get(i).copied().unwrap_or(f64::NAN);
        let (pair, k) = (place / gammas.len(), place % gammas.len());
        [at(betas, pair / eta0s.len()), at(eta0s, pair % eta0s.len()), at(gammas, k)]
    }

    /// The lowest of the points that are lower than all their neighbours and no more than `reach`
    /// above the lowest of all, and for each gamma the lowest point if it lies on the floor of a
    /// valley, no more than `floor` above it.
    ///
    /// Valleys run along gamma, with eta0 making up for it; there may be several minima on the
    /// floor of one, too close for the grid to show them.
    pub(crate) fn starts<F>(&self, losses: &[F], reach: f64, floor: f64) -> Vec<Vector>
    where
        F: Copy + PartialOrd + Into<f64>,
    {
        let [n_beta, n_eta0, n_gamma] = self.axes.each_ref().map(Vec::len);
        let by_gamma = lowest_of_columns(losses, n_gamma);
        let Some(lowest) = least(&by_gamma).map(F::into) else {
            return Vec::new();
        };
        let mut minima: Vec<(f64, usize)> = Vec::new();
        let around = |i: usize, n: usize| i.saturating_sub(1)..(i + 2).min(n);
        for (line, along) in losses.chunks(n_gamma).enumerate() {
            // Most lines lie too high, which is told for several points at a time.
            if least(along).is_none_or(|loss| loss.into() - lowest > reach) {
                continue;
            }
            let (i, j) = (line / n_eta0, line % n_eta0);
            for (k, &here) in along.iter().enumerate() {
                // Most points fail this, which is cheap.
                let lower = |k: usize| along.get(k).is_some_and(|other| *other < here);
                if here.into() - lowest > reach || lower(k + 1) || lower(k.wrapping_sub(1)) {
                    continue;
                }
                let place = line * n_gamma + k;
                let is_lowest = around(i, n_beta).all(|i| {
                    around(j, n_eta0).all(|j| {
                        around(k, n_gamma).all(|k| {
                            let other = (i * n_eta0 + j) * n_gamma + k;
                            losses.get(other).is_none_or(|loss| (*loss, other) >= (here, place))
                        })
                    })
                });
                if is_lowest {
                    minima.push((here.into(), place));
                }
            }
        }
        minima.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        minima.truncate(MAX_BASINS);
        let known: Vec<usize> = minima.iter().map(|(_, place)| *place).collect();
        let on_floor = by_gamma
            .iter()
            .enumerate()
            .filter(|(_, loss)| (**loss).into() - lowest <= floor)
            .filter_map(|(k, loss)| {
                let mut column = losses.iter().skip(k).step_by(n_gamma);
                column.position(|other| other == loss).map(|line| line * n_gamma + k)
            })
            .filter(|place| !known.contains(place));
        known.iter().copied().chain(on_floor).map(|place| self.point(place)).collect()
    }
}

/// The lowest loss of each column.
fn lowest_of_columns<F: Copy + PartialOrd>(losses: &[F], n_columns: usize) -> Vec<F> {
    let mut lines = losses.chunks(n_columns);
    let mut lowest = lines.next().map_or_else(Vec::new, <[F]>::to_vec);
    for line in lines {
        lowest.iter_mut().zip(line).for_each(|(least, &loss)| *least = lower(*least, loss));
    }
    lowest
}

/// The lowest of some losses, found for several at a time.
fn least<F: Copy + PartialOrd>(losses: &[F]) -> Option<F> {
    let (fours, rest) = losses.as_chunks::<4>();
    let lanes = fours.iter().copied().reduce(|a, b| std::array::from_fn(|i| lower(a[i], b[i])));
    lanes.iter().flatten().chain(rest).copied().reduce(lower)
}

/// Without a branch, so that it is done for several at a time.
fn lower<F: PartialOrd>(one: F, other: F) -> F {
    if other < one { other } else { one }
}
