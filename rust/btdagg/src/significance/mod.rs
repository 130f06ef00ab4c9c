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
mod tilt;

use std::num::NonZeroU64;

use crate::memory::filled;
use crate::parallel::{Watch, for_each_part};
use crate::{Error, Execution};
use differences::Differences;
use exact::Null;
use monte_carlo::MonteCarlo;

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
/// let (a, b) = (Losses::new("a", None, &a)?, Losses::new("b", None, &b)?);
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
    pub const fn is_exact(&self) -> bool {
        self.n_resamples.is_none()
    }
}

impl PermutationTest {
    /// Tests the differences between two methods' losses of the same items.
    ///
    /// # Errors
    /// [`Error::Input`] if lengths disagree; [`Error::Input`] if losses are too large to be
    /// summed; [`Error::Input`] if the exact p-value is asked for
    /// and there is none; [`Error::Memory`]; [`Error::Interrupted`].
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

    /// P-values between every two methods, as (methods, methods) row by row, 1 on the diagonal.
    ///
    /// Row `i` and column `j` hold what [`paired`](Self::paired) finds for methods `i` and `j`
    /// where `i < j`, and the same is below the diagonal. That is meant for two-sided tests.
    ///
    /// # Errors
    /// [`Error::Input`], and those of [`paired`](Self::paired) for the first such pair.
    pub fn pairwise(
        &self,
        methods: &[Losses<'_>],
        grouping: Option<&Grouping>,
        execution: Execution<'_>,
    ) -> Result<Vec<f64>, Error> {
        if methods.len() < 2 {
            let got = format!("has {} methods", methods.len());
            return Err(Error::input("losses", got, "at least two"));
        }
        let n = methods.len();
        let pairs: Vec<_> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
        let mut p_values = filled(1.0, pairs.len())?;
        for_each_part(&mut p_values, 1, execution, |start, part, mut watch| {
            for (p_value, &(i, j)) in part.iter_mut().zip(pairs.iter().skip(start)) {
                let (a, b) = (&methods[i], &methods[j]);
                let differences = Differences::between(a, b, grouping)?;
                *p_value = match self.exact(&differences, a, b, grouping, &mut watch)? {
                    Some(exact) => exact,
                    None => MonteCarlo::new(self, &differences).p_value_alone(&mut watch)?,
                };
            }
            Ok(())
        })?;
        let mut matrix = filled(1.0, n * n)?;
        for ((i, j), p_value) in pairs.into_iter().zip(p_values) {
            for place in [i * n + j, j * n + i] {
                matrix[place] = p_value;
            }
        }
        Ok(matrix)
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
        let found = match Null::of(&differences.units, differences.losses_size) {
            Ok(null) => null.p_value(differences.sum, self.alternative, watch)?,
            Err(_) if self.method == Method::Auto => return Ok(None),
            Err((unit, value)) => {
                let first = grouping.and_then(|grouping| grouping.first_item(unit));
                let over =
                    first.map_or(String::new(), |item| format!(" over the group of item {item}"));
                let row = if first.is_some() { None } else { Some(unit) };
                let got = |b| format!("- {b}{over} is {value}");
                let expected = "integers up to 2^51 in sum for an exact test; Monte Carlo takes \
                                others";
                return Err(a.error_with(b, row, got, expected));
            }
        };
        if found.is_none() && self.method == Method::Exact {
            let n_units = differences.units.len();
            let got = format!("of {n_units} items or groups have too many different sums");
            let expected = "smaller integers for an exact test; Monte Carlo takes these";
            return Err(Error::input("differences", got, expected));
        }
        Ok(found)
    }
}
