//! Hits of many pairs of methods under the same signs.

use std::ops::Range;

use super::method_sums::{MAX_LIMBS, MethodUnits, Summation, Sums, Tile};
use super::monte_carlo::{MAX_PARTS, part_start};
use super::signs::Patterns;
use crate::index::index;
use crate::memory::{collected, filled};
use crate::parallel::{Watch, for_each_part};
use crate::{Error, Execution};

/// Sign patterns whose sums of all methods stay in the second-level cache while pairs are compared.
const TILE: usize = 512;

/// Sign patterns that stay on one thread.
const GRAIN: u64 = 64;

/// What a hit is, for each of several counts.
pub(super) trait Hits: Sync {
    fn n_counts(&self) -> usize;

    /// Counts the hits that sums of some limbs prove, and marks the patterns where some are in
    /// doubt.
    fn count_proven(
        &self,
        sums: &Tile<'_>,
        n_limbs: usize,
        counts: &mut [u64],
        in_doubt: &mut [bool],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error>;

    /// Counts all hits, from sums of all limbs.
    fn count(
        &self,
        sums: &Tile<'_>,
        patterns: &[u64],
        counts: &mut [u64],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error>;
}

/// Counts hits under the first sign patterns; threads share these.
pub(super) fn count_hits(
    hits: &impl Hits,
    units: &MethodUnits<'_>,
    patterns: Patterns,
    n_patterns: u64,
    execution: Execution<'_>,
) -> Result<Vec<u64>, Error> {
    let n_blocks = n_patterns.div_ceil(GRAIN);
    let n_parts = n_blocks.min(MAX_PARTS);
    // A thread counts in the first of its parts.
    let mut counts = filled(Vec::new(), index(n_parts))?;
    for_each_part(&mut counts, 1, execution, |start, parts, mut watch| {
        let (start, end) = (start as u64, (start + parts.len()) as u64);
        let first = |part| GRAIN.saturating_mul(part_start(part, n_parts, n_blocks));
        let range = first(start)..first(end).min(n_patterns);
        let mut counter = Counter::new(hits, units, patterns)?;
        counter.count(range, &mut watch)?;
        if let Some(part) = parts.first_mut() {
            *part = counter.counts;
        }
        Ok(())
    })?;
    let mut total = filled(0, hits.n_counts())?;
    for counts in counts {
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    Ok(total)
}

/// Numbered sign patterns and the sums under them.
struct Summed {
    patterns: Vec<u64>,
    sums: Sums,
}

impl Summed {
    fn len(&self) -> usize {
        self.patterns.len()
    }

    /// The sums from a pattern on.
    fn tiles(&self, start: usize) -> impl Iterator<Item = (Range<usize>, Tile<'_>)> {
        (start..self.len()).step_by(TILE).map(|start| {
            let range = start..self.len().min(start + TILE);
            (range.clone(), self.sums.tile(range))
        })
    }

    /// Adds what is marked of others.
    fn extend(&mut self, others: &Self, is_marked: &[bool]) -> Result<(), Error> {
        self.sums.extend(&others.sums, is_marked)?;
        let marked = others.patterns.iter().zip(is_marked).filter(|(_, is_marked)| **is_marked);
        self.patterns.extend(marked.map(|(pattern, _)| pattern));
        Ok(())
    }
}

/// One thread's counts.
struct Counter<'a, H> {
    hits: &'a H,
    n_methods: usize,
    summation: Summation<'a>,
    counts: Vec<u64>,
    /// Proven hits of patterns in doubt.
    doubtful: Vec<u64>,
}

impl<'a, H: Hits> Counter<'a, H> {
    fn new(hits: &'a H, units: &'a MethodUnits<'a>, patterns: Patterns) -> Result<Self, Error> {
        let summation = Summation::new(units, patterns)?;
        let (counts, doubtful) = (filled(0, hits.n_counts())?, filled(0, hits.n_counts())?);
        Ok(Self { hits, n_methods: units.n_methods(), summation, counts, doubtful })
    }

    fn count(&mut self, patterns: Range<u64>, watch: &mut Watch<'_>) -> Result<(), Error> {
        let size = self.summation.chunk_size();
        let mut in_doubt = self.summed(Vec::new())?;
        for start in patterns.clone().step_by(size) {
            let len = (patterns.end - start).min(size as u64);
            let chunk = collected((0..index(len)).map(|place| start + place as u64))?;
            let mut chunk = self.summed(chunk)?;
            self.count_proven(&mut chunk, 1, &mut in_doubt, watch)?;
            if in_doubt.len() >= size {
                let chunk = std::mem::replace(&mut in_doubt, self.summed(Vec::new())?);
                self.count_all(chunk, watch)?;
            }
        }
        self.count_all(in_doubt, watch)
    }

    fn summed(&self, patterns: Vec<u64>) -> Result<Summed, Error> {
        Ok(Summed { sums: Sums::zero(self.n_methods, patterns.len())?, patterns })
    }

    /// Adds the next limb, and counts under all patterns but those that are in doubt.
    fn count_proven(
        &mut self,
        chunk: &mut Summed,
        n_limbs: usize,
        in_doubt: &mut Summed,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        self.summation.add_limb(&chunk.patterns, n_limbs - 1, &mut chunk.sums, watch)?;
        let mut marks = filled(false, chunk.len())?;
        for (range, tile) in chunk.tiles(0) {
            self.hits.count_proven(&tile, n_limbs, &mut self.counts, &mut marks[range], watch)?;
        }
        let start = in_doubt.len();
        in_doubt.extend(chunk, &marks)?;
        self.doubtful.fill(0);
        for (range, tile) in in_doubt.tiles(start) {
            let marks = &mut marks[..range.len()];
            self.hits.count_proven(&tile, n_limbs, &mut self.doubtful, marks, watch)?;
        }
        self.counts.iter_mut().zip(&self.doubtful).for_each(|(count, twice)| *count -= twice);
        Ok(())
    }

    /// Counts under patterns that one limb leaves in doubt.
    fn count_all(&mut self, mut chunk: Summed, watch: &mut Watch<'_>) -> Result<(), Error> {
        for n_limbs in 2..MAX_LIMBS {
            let mut in_doubt = self.summed(Vec::new())?;
            self.count_proven(&mut chunk, n_limbs, &mut in_doubt, watch)?;
            chunk = in_doubt;
        }
        self.summation.add_limb(&chunk.patterns, MAX_LIMBS - 1, &mut chunk.sums, watch)?;
        let sums = chunk.sums.tile(0..chunk.len());
        self.hits.count(&sums, &chunk.patterns, &mut self.counts, watch)
    }
}
