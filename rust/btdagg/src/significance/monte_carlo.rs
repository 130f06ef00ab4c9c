//! P-values from random signs: 64 signs to a word, sums of eight units from a table.

use std::ops::Range;

use super::PermutationTest;
use super::differences::Differences;
use super::signs::{Patterns, Signs, WORD};
use crate::index::index;
use crate::parallel::{Watch, for_each_part};
use crate::{Error, Execution};

/// Sign patterns that are summed as one block: their sums stay in the first-level cache.
const BLOCK: u64 = 2048;

/// Parts that threads share, at the most.
pub(super) const MAX_PARTS: u64 = 4096;

/// One random sampling of the null distribution.
#[derive(Debug)]
pub(crate) struct MonteCarlo<'a> {
    units: &'a [f64],
    signs: Signs,
    test: &'a PermutationTest,
    /// How extreme a sum is that is a hit: the observed one, less what rounding can do.
    pub(super) threshold: f64,
}

impl<'a> MonteCarlo<'a> {
    pub(crate) fn new(test: &'a PermutationTest, differences: &'a Differences) -> Self {
        let threshold = test.alternative.extremeness(differences.sum) - differences.tolerance();
        let signs = Signs::new(test.seed, test.stream);
        Self { units: &differences.units, signs, test, threshold }
    }

    /// `(hits + 1) / (n_resamples + 1)`: the observed signs are one of the patterns.
    pub(crate) fn p_value(&self, execution: Execution<'_>) -> Result<f64, Error> {
        let n_blocks = self.test.n_resamples.get().div_ceil(BLOCK);
        let n_parts = n_blocks.min(MAX_PARTS);
        let mut hits = vec![0; index(n_parts)];
        for_each_part(&mut hits, 1, execution, |start, parts, mut watch| {
            for (part, hits) in (start as u64..).zip(parts) {
                let first = |part| part_start(part, n_parts, n_blocks);
                *hits = self.hits(first(part)..first(part + 1), &mut watch)?;
            }
            Ok(())
        })?;
        Ok(self.test.share_drawn(hits.iter().sum()))
    }

    /// Sign patterns in these blocks whose sum is as extreme as the observed one.
    fn hits(&self, blocks: Range<u64>, watch: &mut Watch<'_>) -> Result<u64, Error> {
        let n_words = self.n_words();
        let mut hits = 0;
        for block in blocks {
            let first = block * BLOCK;
            let len = BLOCK.min(self.test.n_resamples.get() - first);
            // Words are numbered by pattern, then by place in it.
            let words =
                |word| self.signs.words(first.wrapping_mul(n_words).wrapping_add(word), n_words);
            hits += self.hits_of_block(index(len), words, watch)?;
        }
        Ok(hits)
    }

    /// The same among some patterns, whose sums have the same bits.
    pub(super) fn hits_among(&self, patterns: &[u64], watch: &mut Watch<'_>) -> Result<u64, Error> {
        let (n_words, source) = (self.n_words(), Patterns::Drawn(self.signs));
        let mut hits = 0;
        for block in patterns.chunks(index(BLOCK)) {
            let words =
                |word| block.iter().map(move |&pattern| source.word(pattern, word, n_words));
            hits += self.hits_of_block(block.len(), words, watch)?;
        }
        Ok(hits)
    }

    /// Hits among patterns from the words of each place in them.
    fn hits_of_block<W: Iterator<Item = u64>>(
        &self,
        n_patterns: usize,
        words: impl Fn(u64) -> W,
        watch: &mut Watch<'_>,
    ) -> Result<u64, Error> {
        let mut tables = [[0.0; 256]; WORD / 8];
        let mut sums = vec![0.0; n_patterns];
        for (word, units) in (0..).zip(self.units.chunks(WORD)) {
            watch.poll()?;
            let mut eights = units.chunks(8);
            tables.iter_mut().for_each(|table| tabulate(eights.next().unwrap_or(&[]), table));
            for (sum, word) in sums.iter_mut().zip(words(word)) {
                *sum += look_up(&tables, word);
            }
        }
        Ok(sums.iter().filter(|&&sum| self.is_hit(sum)).count() as u64)
    }

    fn n_words(&self) -> u64 {
        self.units.len().div_ceil(WORD) as u64
    }

    fn is_hit(&self, sum: f64) -> bool {
        self.test.alternative.extremeness(sum) >= self.threshold
    }
}

/// The first of a part's blocks, where parts share blocks evenly.
pub(super) const fn part_start(part: u64, n_parts: u64, n_blocks: u64) -> u64 {
    let (size, n_longer) = (n_blocks / n_parts, n_blocks % n_parts);
    size * part + if part < n_longer { part } else { n_longer }
}

/// The sum of up to eight units under each of the 256 sign patterns; units that there are not are 0.
fn tabulate(units: &[f64], table: &mut [f64; 256]) {
    table[0] = 0.0;
    for (bit, unit) in (0..8).map(|bit| (1 << bit, units.get(bit).copied().unwrap_or(0.0))) {
        let (minus, plus) = table.split_at_mut(bit);
        for (minus, plus) in minus.iter_mut().zip(plus) {
            *plus = *minus + unit;
            *minus -= unit;
        }
    }
}

/// The sum of 64 units under the signs of a word.
fn look_up(tables: &[[f64; 256]; WORD / 8], word: u64) -> f64 {
    tables.iter().zip(word.to_le_bytes()).map(|(table, byte)| table[usize::from(byte)]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::significance::Losses;

    #[test]
    fn tables_hold_the_sums_of_signed_units() {
        let units: Vec<f64> = (0..60).map(|i| f64::from(i * i % 17) + 0.5).collect();
        let mut tables = [[0.0; 256]; 8];
        let mut eights = units.chunks(8);
        tables.iter_mut().for_each(|table| tabulate(eights.next().unwrap_or(&[]), table));
        for word in Signs::new(1, 2).words(0, 1).take(200) {
            let signed = units.iter().enumerate();
            let wanted: f64 =
                signed.map(|(i, unit)| if word >> i & 1 == 1 { *unit } else { -unit }).sum();
            assert_eq!(look_up(&tables, word), wanted);
        }
    }

    #[test]
    fn some_patterns_are_summed_as_all_are() {
        // Many sums reach this threshold only by their rounding, if at all.
        for n_units in [1, 7, 8, 63, 64, 65, 200] {
            let a: Vec<f64> = (0..n_units).map(|i| f64::from(i * i % 11) / 10.0).collect();
            let b = vec![0.3; a.len()];
            let a = Losses::new("a", None, &a).unwrap();
            let b = Losses::new("b", None, &b).unwrap();
            let differences = Differences::between(&a, &b, None).unwrap();
            let test = PermutationTest::default();
            let mut drawn = MonteCarlo::new(&test, &differences);
            drawn.threshold = differences.sum.abs();
            let mut watch = Watch::alone(Execution::single());
            let together = drawn.hits(0..2, &mut watch).unwrap();
            let (odd, even): (Vec<u64>, Vec<u64>) = (0..2 * BLOCK).partition(|n| n % 2 == 1);
            let hits = [odd, even].map(|some| drawn.hits_among(&some, &mut watch).unwrap());
            assert_eq!(together, hits.iter().sum::<u64>());
        }
    }
}
