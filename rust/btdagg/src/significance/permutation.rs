use std::num::NonZeroU64;

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
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.n_resamples.is_none()
    }
}
