//! Whether a stream of items still falls as the ones before it: a test that may be looked at after
//! every item.
//!
//! Were the stream like the reference, every new item would be as likely at any rank among all
//! items so far: its conformal p-values are independent and uniform, whatever the distribution and
//! however few the reference items are. A [`ConformalTest`] bets against that. Its capital is a
//! martingale that starts at 1, so the chance that it ever reaches 1/α is at most α.
//!
//! Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World* (2022), chapter 8; Vovk et
//! al., *Retrain or not retrain* (2021), for bets that jump.

use crate::Error;
use crate::index::to_f64;
use crate::splitmix::uniform;

/// Slopes of the bets, as shares of the steepest that cannot lose all: high or low ranks, weakly or
/// strongly; and none, which keeps its capital while nothing has happened.
const SLOPES: [f64; 7] = [-1.8, -1.0, -0.5, 0.0, 0.5, 1.0, 1.8];

/// Shares of the capital that change their slope after an item. What changes late is found by
/// capital that waited, what changes early by capital that did not.
const JUMPS: [f64; 4] = [0.0, 1e-4, 1e-3, 1e-2];

/// Number of bets.
pub const N_BETS: usize = SLOPES.len() * JUMPS.len();

/// Running test of whether scores, given as levels from 0, are exchangeable.
#[derive(Debug, Clone, PartialEq)]
pub struct ConformalTest {
    /// Items so far, reference and stream, by level.
    pub pool: Vec<u64>,
    /// Items of the stream.
    pub n_seen: u64,
    /// Seed of the random numbers that break ties.
    pub seed: u64,
    /// Share of each bet in the capital.
    pub shares: Vec<f64>,
    /// Natural logarithm of the capital: of the evidence against the stream being as before.
    pub log_capital: f64,
    /// Its largest value so far.
    pub log_peak: f64,
}

impl ConformalTest {
    /// A test against a reference with so many items at each level.
    pub fn new(reference: Vec<u64>, seed: u64) -> Self {
        let shares = vec![1.0 / to_f64(N_BETS as u64); N_BETS];
        Self { pool: reference, n_seen: 0, seed, shares, log_capital: 0.0, log_peak: 0.0 }
    }

    /// Takes the next item of the stream.
    ///
    /// # Errors
    /// [`Error::Input`] for a level that the reference has no place for.
    pub fn observe(&mut self, level: usize) -> Result<(), Error> {
        let Some(&equal) = self.pool.get(level) else {
            let most = self.pool.len().saturating_sub(1);
            return Err(Error::value("level", level, format!("an integer from 0 to {most}")));
        };
        let above: u64 = self.pool.iter().skip(level + 1).sum();
        let all: u64 = self.pool.iter().sum::<u64>() + 1;
        // The item is one of those at its level; which of them is first is drawn.
        let rank = to_f64(above) + uniform(self.seed, self.n_seen) * to_f64(equal + 1);
        self.bet(rank / to_f64(all));
        self.pool[level] += 1;
        self.n_seen += 1;
        Ok(())
    }

    fn bet(&mut self, p: f64) {
        let mut capital = 0.0;
        for shares in self.shares.chunks_exact_mut(SLOPES.len()) {
            for (share, slope) in shares.iter_mut().zip(SLOPES) {
                *share *= 1.0 + slope * (p - 0.5);
                capital += *share;
            }
        }
        for (shares, jump) in self.shares.chunks_exact_mut(SLOPES.len()).zip(JUMPS) {
            let evenly = jump / to_f64(SLOPES.len() as u64) * shares.iter().sum::<f64>();
            for share in shares {
                *share = ((1.0 - jump) * *share + evenly) / capital;
            }
        }
        self.log_capital += capital.ln();
        self.log_peak = self.log_peak.max(self.log_capital);
    }

    /// Checks a test that was put together from its parts.
    ///
    /// # Errors
    /// [`Error::Input`] if they contradict each other.
    pub fn checked(self) -> Result<Self, Error> {
        let Self { ref pool, n_seen, ref shares, log_capital, log_peak, .. } = self;
        let contradiction = |expected| Err(Error::input("state", "contradicts itself", expected));
        let total: f64 = shares.iter().sum();
        let whole = shares.len() == N_BETS
            && shares.iter().all(|share| (0.0..=1.0).contains(share))
            && (total - 1.0).abs() < 1e-6;
        if !whole {
            return contradiction("shares of the bets that sum to 1");
        }
        // Counts that are exact as floats, which those of a real state are.
        let all = pool.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        if all.is_none_or(|all| all < n_seen || all > 1 << 53) {
            return contradiction("as many items as were seen");
        }
        if !(log_capital.is_finite() && log_peak.is_finite() && log_peak >= log_capital.max(0.0)) {
            return contradiction("a peak that is no lower than the capital");
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test with one item at a place of its own sees the uniform number alone.
    #[test]
    fn capital_is_fair_on_average() {
        // Over p at the midpoints of a fine grid, where linear bets are integrated exactly.
        let test = ConformalTest::new(vec![1], 0);
        let n = 1000;
        let mean: f64 = (0..n)
            .map(|i| {
                let mut next = test.clone();
                next.bet((f64::from(i) + 0.5) / f64::from(n));
                next.log_capital.exp() / f64::from(n)
            })
            .sum();
        assert!((mean - 1.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn a_shift_is_found_and_a_state_goes_on() {
        let mut test = ConformalTest::new(vec![100, 100, 100, 100], 7);
        for item in 0..60 {
            test.observe(2 + item % 2).unwrap();
        }
        assert!(test.log_capital > 5.0, "{}", test.log_capital);
        let mut again = test.clone().checked().unwrap();
        for level in [0, 3, 2] {
            test.observe(level).unwrap();
            again.observe(level).unwrap();
        }
        assert_eq!(again, test);
        let error = test.observe(4).unwrap_err();
        assert_eq!(error.to_string(), "level is 4, expected an integer from 0 to 3");
        let broken = ConformalTest { shares: vec![0.5; 3], ..test.clone() };
        let error = broken.checked().unwrap_err().to_string();
        assert_eq!(error, "state contradicts itself, expected shares of the bets that sum to 1");
    }
}
