//! Monte Carlo p-values of many pairs of methods, from one signed sum per method.

use super::PermutationTest;
use super::differences::{Differences, Grouping, Losses, tolerance};
use super::method_sums::{MAX_LIMBS, MethodUnits, Tile};
use super::monte_carlo::MonteCarlo;
use super::shared_signs::{Hits, count_hits};
use super::signs::{Patterns, Signs};
use crate::index::to_f64;
use crate::memory::collected;
use crate::parallel::Watch;
use crate::{Error, Execution};

/// P-values of pairs of methods: those of [`MonteCarlo`] for each of them.
pub(super) fn p_values(
    test: &PermutationTest,
    methods: &[Losses<'_>],
    pairs: &[(usize, usize)],
    grouping: Option<&Grouping>,
    execution: Execution<'_>,
) -> Result<Vec<f64>, Error> {
    // A few pairs are sooner summed one by one.
    if pairs.len() <= methods.len().div_ceil(4) {
        let p_value = |&(i, j): &(usize, usize)| {
            let differences = Differences::between(&methods[i], &methods[j], grouping)?;
            MonteCarlo::new(test, &differences).p_value(execution)
        };
        return pairs.iter().map(p_value).collect();
    }
    let units = MethodUnits::new(methods, grouping)?;
    let hits = PairHits { test, methods, pairs, grouping, units: &units };
    let patterns = Patterns::Drawn(Signs::new(test.seed, test.stream));
    let counts = count_hits(&hits, &units, patterns, test.n_resamples.get(), execution)?;
    collected(counts.into_iter().map(|hits| test.share_drawn(hits)))
}

/// Sums that are as extreme as the observed one of the same pair.
struct PairHits<'a> {
    test: &'a PermutationTest,
    methods: &'a [Losses<'a>],
    pairs: &'a [(usize, usize)],
    grouping: Option<&'a Grouping>,
    units: &'a MethodUnits<'a>,
}

impl PairHits<'_> {
    /// How extreme a difference of two sums is surely no hit, and from where it surely is one.
    ///
    /// The threshold is that of the observed sum of differences, which is near the difference of
    /// observed sums: no difference has to be taken.
    fn doubt(&self, (i, j): (usize, usize), n_limbs: usize) -> (f64, f64) {
        let units = self.units;
        let observed = self.test.alternative.extremeness(units.sum(i) - units.sum(j));
        let size = units.size(i) + units.size(j);
        let losses_size = units.losses_size(i) + units.losses_size(j);
        // Both observed sums have added up to an eighth of the units one by one.
        let n_added = to_f64(units.n_units as u64) / 8.0 + units.largest_group + 32.0;
        let margin = 2.0 * tolerance(units.n_units, losses_size, size)
            + n_added * f64::EPSILON * size
            + units.error(i, n_limbs)
            + units.error(j, n_limbs);
        (observed - margin, observed + margin)
    }

    fn scores(&self, sums: &Tile<'_>, (i, j): (usize, usize)) -> impl Iterator<Item = f64> {
        let alternative = self.test.alternative;
        let sums = sums.of(i).iter().zip(sums.of(j));
        sums.map(move |(a, b)| alternative.extremeness(a - b))
    }
}

impl Hits for PairHits<'_> {
    fn n_counts(&self) -> usize {
        self.pairs.len()
    }

    fn count_proven(
        &self,
        sums: &Tile<'_>,
        n_limbs: usize,
        counts: &mut [u64],
        in_doubt: &mut [bool],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        for (count, &pair) in counts.iter_mut().zip(self.pairs) {
            watch.poll()?;
            let (low, high) = self.doubt(pair, n_limbs);
            let (n_proven, n_possible) = reached(self.scores(sums, pair), low, high);
            *count += n_proven;
            if n_proven != n_possible {
                for (in_doubt, score) in in_doubt.iter_mut().zip(self.scores(sums, pair)) {
                    *in_doubt |= score >= low && score < high;
                }
            }
        }
        Ok(())
    }

    /// Differences whose rounding could make or unmake a hit are summed as [`MonteCarlo`] does.
    fn count(
        &self,
        sums: &Tile<'_>,
        patterns: &[u64],
        counts: &mut [u64],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        for (count, &pair) in counts.iter_mut().zip(self.pairs) {
            watch.poll()?;
            let (low, high) = self.doubt(pair, MAX_LIMBS);
            let (n_proven, n_possible) = reached(self.scores(sums, pair), low, high);
            if n_proven == n_possible {
                *count += n_proven;
                continue;
            }
            let (i, j) = pair;
            let (a, b) = (&self.methods[i], &self.methods[j]);
            let differences = Differences::between(a, b, self.grouping)?;
            let drawn = MonteCarlo::new(self.test, &differences);
            // Half of the tolerance is what the rounding of the sum of differences can do.
            let rounding = 0.5 * differences.tolerance()
                + self.units.error(i, MAX_LIMBS)
                + self.units.error(j, MAX_LIMBS);
            let (low, high) = (drawn.threshold - rounding, drawn.threshold + rounding);
            let (n_proven, n_possible) = reached(self.scores(sums, pair), low, high);
            *count += n_proven;
            if n_proven != n_possible {
                let scored = self.scores(sums, pair).zip(patterns);
                let in_doubt = scored.filter(|(score, _)| *score >= low && *score < high);
                let in_doubt: Vec<u64> = in_doubt.map(|(_, pattern)| *pattern).collect();
                *count += drawn.hits_among(&in_doubt, watch)?;
            }
        }
        Ok(())
    }
}

/// How many scores reach the upper bound, and the lower one.
fn reached(scores: impl Iterator<Item = f64>, low: f64, high: f64) -> (u64, u64) {
    scores.fold((0, 0), |(n_high, n_low), score| {
        (n_high + u64::from(score >= high), n_low + u64::from(score >= low))
    })
}
