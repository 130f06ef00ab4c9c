//! P-values from random signs: 64 signs to a word, sums of eight units from a table.

use super::differences::Differences;
use super::{Alternative, PermutationTest};
use crate::index::{index, to_f64};
use crate::parallel::{Watch, for_each_part};
use crate::splitmix::{STEP, mix};
use crate::{Error, Execution};

/// Units whose signs are one random word.
const WORD: usize = 64;

/// Sign patterns that are summed as one block: their sums stay in the first-level cache.
const BLOCK: u64 = 2048;

/// Parts that threads share, at the most.
const MAX_PARTS: u64 = 4096;

/// One random sampling of the null distribution.
#[derive(Debug)]
pub(crate) struct MonteCarlo<'a> {
    units: &'a [f64],
    signs: Signs,
    test: &'a PermutationTest,
    /// The observed sum, moved towards the others by what rounding can do.
    threshold: f64,
}

impl<'a> MonteCarlo<'a> {
    pub(crate) fn new(test: &'a PermutationTest, differences: &'a Differences) -> Self {
        let (sum, tolerance) = (differences.sum, differences.tolerance());
        let threshold = match test.alternative {
            Alternative::TwoSided => sum.abs() - tolerance,
            Alternative::Less => sum + tolerance,
            Alternative::Greater => sum - tolerance,
        };
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
                let first = |part: u64| n_blocks / n_parts * part + part.min(n_blocks % n_parts);
                *hits = self.hits(first(part)..first(part + 1), &mut watch)?;
            }
            Ok(())
        })?;
        Ok(self.share(hits.iter().sum()))
    }

    /// As [`p_value`](Self::p_value), on the calling thread.
    pub(crate) fn p_value_alone(&self, watch: &mut Watch<'_>) -> Result<f64, Error> {
        self.hits(0..self.test.n_resamples.get().div_ceil(BLOCK), watch)
            .map(|hits| self.share(hits))
    }

    fn share(&self, hits: u64) -> f64 {
        to_f64(hits + 1) / (to_f64(self.test.n_resamples.get()) + 1.0)
    }

    /// Sign patterns in these blocks whose sum is as extreme as the observed one.
    fn hits(&self, blocks: std::ops::Range<u64>, watch: &mut Watch<'_>) -> Result<u64, Error> {
        let mut tables = [[0.0; 256]; WORD / 8];
        let n_words = self.units.len().div_ceil(WORD) as u64;
        let mut sums = Vec::new();
        let mut hits = 0;
        for block in blocks {
            let first = block * BLOCK;
            let len = BLOCK.min(self.test.n_resamples.get() - first);
            sums.clear();
            sums.resize(index(len), 0.0);
            for (word, units) in (0..).zip(self.units.chunks(WORD)) {
                watch.poll()?;
                let mut eights = units.chunks(8);
                tables.iter_mut().for_each(|table| tabulate(eights.next().unwrap_or(&[]), table));
                // Words are numbered by pattern, then by place in it.
                let number = first.wrapping_mul(n_words).wrapping_add(word);
                let words = self.signs.words(number, n_words);
                sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += look_up(&tables, word));
            }
            hits += sums.iter().filter(|&&sum| self.is_hit(sum)).count() as u64;
        }
        Ok(hits)
    }

    fn is_hit(&self, sum: f64) -> bool {
        match self.test.alternative {
            Alternative::TwoSided => sum.abs() >= self.threshold,
            Alternative::Less => sum <= self.threshold,
            Alternative::Greater => sum >= self.threshold,
        }
    }
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

/// A stream of random words, each holding 64 signs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs(u64);

impl Signs {
    /// The stream of that number; those of other numbers and seeds start elsewhere at random.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)).wrapping_add(mix(stream))))
    }

    /// Words `first`, `first + stride`, and so on.
    pub(crate) fn words(self, first: u64, stride: u64) -> impl Iterator<Item = u64> {
        let start = self.0.wrapping_add(first.wrapping_add(1).wrapping_mul(STEP));
        let step = stride.wrapping_mul(STEP);
        std::iter::successors(Some(start), move |counter| Some(counter.wrapping_add(step))).map(mix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn words_are_those_of_splitmix64() {
        // The first outputs of Vigna's splitmix64.c from state 1234567.
        let words: Vec<u64> = Signs(1_234_567).words(0, 1).take(3).collect();
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_word_depends_on_its_number_alone() {
        let signs = Signs::new(3, 5);
        let all: Vec<u64> = signs.words(0, 1).take(100).collect();
        let some: Vec<u64> = signs.words(7, 10).take(9).collect();
        let wanted: Vec<u64> = all.iter().skip(7).step_by(10).take(9).copied().collect();
        assert_eq!(some, wanted);
        assert_ne!(Signs::new(3, 6).words(0, 1).next(), Some(all[0]));
        assert_ne!(Signs::new(4, 5).words(0, 1).next(), Some(all[0]));
    }
}
