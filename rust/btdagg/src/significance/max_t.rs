//! Westfall and Young's step-down max-T: p-values of all pairs, corrected by their joint null.

use super::differences::{Differences, Grouping, Losses, sum};
use super::method_sums::{MAX_LIMBS, MethodUnits, Tile};
use super::shared_signs::Hits;
use crate::Error;
use crate::Execution;
use crate::memory::filled;
use crate::parallel::{Watch, for_each_part};

/// Pairs from the least observed statistic to the greatest, where the statistic of a pair is its
/// absolute sum over the root of its sum of squares.
///
/// A hit of a pair is a sign pattern under which the statistic of that pair or of one before it
/// reaches the observed one.
pub(super) struct Steps(Vec<Step>);

#[derive(Debug, Clone, Copy, Default)]
struct Step {
    pair: (usize, usize),
    /// One over the root of the sum of squares, 0 for methods that are equal but for rounding.
    scale: f64,
    /// The observed statistic, less what rounding can do.
    threshold: f64,
    /// How far statistics of this pair and those before it may be from those of all limbs, by the
    /// number of limbs.
    errors: [f64; MAX_LIMBS - 1],
}

impl Steps {
    pub(super) fn new(
        methods: &[Losses<'_>],
        pairs: &[(usize, usize)],
        grouping: Option<&Grouping>,
        units: &MethodUnits<'_>,
        execution: Execution<'_>,
    ) -> Result<Self, Error> {
        let mut steps = filled(Step::default(), pairs.len())?;
        for_each_part(&mut steps, 1, execution, |start, part, mut watch| {
            for (step, &(i, j)) in part.iter_mut().zip(pairs.iter().skip(start)) {
                watch.poll()?;
                let differences = Differences::between(&methods[i], &methods[j], grouping)?;
                let error = |n_limbs| units.error(i, n_limbs) + units.error(j, n_limbs);
                let errors = std::array::from_fn(|limb| error(limb + 1) + error(MAX_LIMBS));
                *step = Step::new((i, j), &differences, errors);
            }
            Ok(())
        })?;
        steps.sort_by(|a, b| a.threshold.total_cmp(&b.threshold));
        let mut largest = [0.0_f64; MAX_LIMBS - 1];
        for step in &mut steps {
            for (largest, error) in largest.iter_mut().zip(&mut step.errors) {
                *error = error.max(*largest);
                *largest = *error;
            }
        }
        Ok(Self(steps))
    }

    /// P-values of pairs, none less than that of a pair with a greater statistic.
    pub(super) fn p_values(
        &self,
        counts: &[u64],
        share: impl Fn(u64) -> f64,
    ) -> impl Iterator<Item = ((usize, usize), f64)> {
        let mut largest = 0.0_f64;
        self.0.iter().zip(counts).rev().map(move |(step, &hits)| {
            largest = largest.max(share(hits));
            (step.pair, largest)
        })
    }
}

impl Step {
    fn new(pair: (usize, usize), differences: &Differences, errors: [f64; MAX_LIMBS - 1]) -> Self {
        let tolerance = differences.tolerance();
        // Shares of the size, whose squares are neither too large nor too small.
        let per_size = 1.0 / differences.size;
        let squares = sum(&differences.units, |unit| (unit * per_size).powi(2));
        let scale = per_size / squares.sqrt();
        if differences.size <= tolerance || !scale.is_finite() {
            return Self { pair, ..Self::default() };
        }
        // Once for the sums; and as much for the roots, of which the statistics are no more than
        // the root of the number of units times, and whose errors are that much less.
        let threshold = (differences.sum.abs() - 2.0 * tolerance) * scale;
        Self { pair, scale, threshold, errors: errors.map(|error| error * scale) }
    }

    /// Statistics that reach `low` and `high`, of this pair and those before it, whose largest
    /// are `largest`.
    fn reached(&self, sums: &Tile<'_>, largest: &mut [f64], low: f64, high: f64) -> (u64, u64) {
        let (i, j) = self.pair;
        let sums = sums.of(i).iter().zip(sums.of(j));
        largest.iter_mut().zip(sums).fold((0, 0), |(n_high, n_low), (largest, (a, b))| {
            let statistic = (a - b).abs() * self.scale;
            *largest = if statistic > *largest { statistic } else { *largest };
            (n_high + u64::from(*largest >= high), n_low + u64::from(*largest >= low))
        })
    }
}

impl Hits for Steps {
    fn n_counts(&self) -> usize {
        self.0.len()
    }

    fn count_proven(
        &self,
        sums: &Tile<'_>,
        n_limbs: usize,
        counts: &mut [u64],
        in_doubt: &mut [bool],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let mut largest = filled(0.0, sums.n_patterns())?;
        for (count, step) in counts.iter_mut().zip(&self.0) {
            watch.poll()?;
            let error = step.errors[n_limbs - 1];
            let (low, high) = (step.threshold - error, step.threshold + error);
            let (n_proven, n_possible) = step.reached(sums, &mut largest, low, high);
            *count += n_proven;
            if n_proven != n_possible {
                for (in_doubt, largest) in in_doubt.iter_mut().zip(&largest) {
                    *in_doubt |= *largest >= low && *largest < high;
                }
            }
        }
        Ok(())
    }

    fn count(
        &self,
        sums: &Tile<'_>,
        _: &[u64],
        counts: &mut [u64],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let mut largest = filled(0.0, sums.n_patterns())?;
        for (count, step) in counts.iter_mut().zip(&self.0) {
            watch.poll()?;
            *count += step.reached(sums, &mut largest, step.threshold, step.threshold).0;
        }
        Ok(())
    }
}
