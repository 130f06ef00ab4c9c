//! Paired permutation tests: how often random signs give paired losses a sum as far out.
//!
//! If it does not matter which of two methods a loss comes from, each difference could as well
//! have the other sign, independently for each unit (an item, or a group of items that belong
//! together). The p-value is the share of all sign patterns whose sum is at least as extreme as
//! the observed one. Where the sums of units are integers the share is computed, else sampled.

mod differences;
mod exact;
mod halves;
mod monte_carlo;
mod pairwise;
mod signs;
mod tilt;
mod wide;

use std::num::NonZeroU64;

use crate::parallel::Watch;
use crate::{Error, Execution};
use differences::Differences;
use monte_carlo::MonteCarlo;
use wide::Wide;

pub use differences::{Grouping, Losses};

/// What counts as extreme, of the mean of `a - b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alternative {
    /// Far from 0 on either side.
    #[default]
    TwoSided,
    /// Low: losses of a are less than those of b.
    Less,
    /// High: losses of a are greater than those of b.
    Greater,
}

/// How the p-value is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Exact where it can be, else by Monte Carlo.
    #[default]
    Auto,
    /// From the whole null distribution.
    Exact,
    /// From random signs.
    MonteCarlo,
}

/// A paired permutation test: what to test, and how.
///
/// ```
/// use btdagg::significance::{Grouping, Losses, PermutationTest};
/// use btdagg::Execution;
///
/// let (a, b) = ([0.0, 0.0, 1.0, 0.0], [1.0, 2.0, 1.0, 1.0]);
/// let (a, b) = (Losses::new("a", &a)?, Losses::new("b", &b)?);
/// let found = PermutationTest::default().paired(&a, &b, None, Execution::single())?;
/// assert_eq!(found.statistic, -1.0);
/// assert_eq!(found.p_value, 0.25); // 2 of the 8 sign patterns of -1, -2, -1
/// assert!(found.is_exact());
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermutationTest {
    /// What counts as extreme.
    pub alternative: Alternative,
    /// How the p-value is found.
    pub method: Method,
    /// Sign patterns that Monte Carlo draws.
    pub n_resamples: NonZeroU64,
    /// Seed of those.
    pub seed: u64,
    /// Which of the seed's independent streams of signs to draw from.
    pub stream: u64,
}

impl Default for PermutationTest {
    fn default() -> Self {
        let n_resamples = NonZeroU64::MIN.saturating_add(9_999);
        Self {
            alternative: Alternative::default(),
            method: Method::default(),
            n_resamples,
            seed: 0,
            stream: 0,
        }
    }
}

/// What a permutation test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationResult {
    /// Mean of `a - b` over items.
    pub statistic: f64,
    /// Never zero; what is below the smallest normal number is that number.
    pub p_value: f64,
    /// Sign patterns that were drawn; none where the p-value is exact.
    pub n_resamples: Option<NonZeroU64>,
}

impl PermutationResult {
    /// Whether the p-value is from the whole null distribution.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.n_resamples.is_none()
    }
}

impl PermutationTest {
    /// Tests the differences between two methods' losses of the same items.
    ///
    /// # Errors
    /// [`Error::Length`] if lengths disagree; [`Error::Huge`] if losses are too large to be
    /// summed; [`Error::NotIntegers`] or [`Error::TooManySums`] if the exact p-value is asked for
    /// and there is none; [`Error::Interrupted`].
    pub fn paired(
        &self,
        a: &Losses<'_>,
        b: &Losses<'_>,
        grouping: Option<&Grouping>,
        execution: Execution<'_>,
    ) -> Result<PermutationResult, Error> {
        let differences = Differences::between(a, b, grouping)?;
        let mut watch = Watch::alone(execution);
        if let Some(p_value) = self.exact(&differences, a, b, grouping, &mut watch)? {
            return Ok(differences.result(p_value, None));
        }
        let p_value = MonteCarlo::new(self, &differences).p_value(execution)?;
        Ok(differences.result(p_value, Some(self.n_resamples)))
    }

    /// The exact p-value, unless Monte Carlo is asked for or has to do.
    fn exact(
        &self,
        differences: &Differences,
        a: &Losses<'_>,
        b: &Losses<'_>,
        grouping: Option<&Grouping>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<f64>, Error> {
        if self.method == Method::MonteCarlo {
            return Ok(None);
        }
        let found = match differences.null() {
            Ok(null) => null.p_value(differences.sum(), self.alternative, watch)?,
            Err((unit, value)) => match Wide::of(a, b, grouping) {
                Some(wide) => wide.p_value(self.alternative, watch)?,
                None if self.method == Method::Auto => return Ok(None),
                None => {
                    let place = match grouping.and_then(|grouping| grouping.first_item(unit)) {
                        Some(item) => {
                            format!("{} - {} over the group of item {item}", a.name(), b.name())
                        }
                        None => format!("{} - {}", a.place(unit), b.place(unit)),
                    };
                    return Err(Error::NotIntegers { place, value });
                }
            },
        };
        if found.is_none() && self.method == Method::Exact {
            return Err(Error::TooManySums { n_units: differences.units().len() });
        }
        Ok(found)
    }
}
