//! Sign patterns by number, 64 signs to a word: bit `i` of word `w` is the sign of unit `64 w + i`.

use crate::splitmix::{STEP, mix};

/// Units whose signs are one word.
pub(crate) const WORD: usize = 64;

/// Numbered sign patterns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patterns {
    /// Random signs.
    Drawn(Signs),
    /// All patterns of up to 64 units: the number of a pattern is its word.
    All,
}

impl Patterns {
    /// One word of a pattern that has `n_words`.
    pub(crate) const fn word(self, pattern: u64, word: u64, n_words: u64) -> u64 {
        match self {
            // Words are numbered by pattern, then by place in it.
            Self::Drawn(signs) => signs.word(pattern.wrapping_mul(n_words).wrapping_add(word)),
            Self::All => pattern,
        }
    }
}

/// A stream of random words, each holding 64 signs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs(u64);

impl Signs {
    /// The stream of that number; those of other numbers and seeds start elsewhere at random.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)).wrapping_add(mix(stream))))
    }

    pub(crate) const fn word(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP)))
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
        assert_eq!(signs.word(7), all[7]);
        assert_eq!(Patterns::Drawn(signs).word(5, 2, 3), all[17]);
        assert_ne!(Signs::new(3, 6).words(0, 1).next(), Some(all[0]));
        assert_ne!(Signs::new(4, 5).words(0, 1).next(), Some(all[0]));
    }
}
