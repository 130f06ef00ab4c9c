//! Paired permutation tests: how often random signs give paired losses a sum as far out.
//!
//! If it does not matter which of two methods a loss comes from, each difference could as well
//! have the other sign, independently for each unit (an item, or a group of items that belong
//! together). The p-value is the share of all sign patterns whose sum is at least as extreme as
//! the observed one. Where the sums of units are integers the share is computed, else sampled.

mod differences;
mod exact;
mod halves;
mod max_t;
mod method_sums;
mod monte_carlo;
mod pairs;
mod shared_signs;
mod signs;
mod tilt;

use std::num::NonZeroU64;

use crate::index::to_f64;
use crate::memory::filled;
use crate::parallel::{Watch, for_each_part};
use crate::{Error, Execution};
use differences::{Differences, comparable_size};
use exact::{Null, is_integer};
use max_t::Steps;
use method_sums::MethodUnits;
use monte_carlo::MonteCarlo;
use shared_signs::count_hits;
use signs::{Patterns, Signs};

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

impl Alternative {
    /// Larger for sums that are more extreme.
    pub(crate) const fn extremeness(self, sum: f64) -> f64 {
        match self {
            Self::TwoSided => sum.abs(),
            Self::Less => -sum,
            Self::Greater => sum,
        }
    }
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
        let pairs = pairs_of(methods)?;
        let mut p_values = filled(None, pairs.len())?;
        for_each_part(&mut p_values, 1, execution, |start, part, mut watch| {
            for (p_value, &(i, j)) in part.iter_mut().zip(pairs.iter().skip(start)) {
                let (a, b) = (&methods[i], &methods[j]);
                if self.may_be_exact(a, b, grouping)? {
                    let differences = Differences::between(a, b, grouping)?;
                    *p_value = self.exact(&differences, a, b, grouping, &mut watch)?;
                }
            }
            Ok(())
        })?;
        let without = pairs.iter().zip(&p_values).filter(|(_, p_value)| p_value.is_none());
        let without: Vec<_> = without.map(|(pair, _)| *pair).collect();
        let mut drawn = pairs::p_values(self, methods, &without, grouping, execution)?.into_iter();
        let all = p_values.into_iter().map(|exact| exact.or_else(|| drawn.next()).unwrap_or(1.0));
        symmetric(methods.len(), pairs.into_iter().zip(all))
    }

    /// P-values between every two methods, corrected for multiple testing, as (methods, methods)
    /// row by row, 1 on the diagonal: Westfall and Young's free step-down max-T.
    ///
    /// The statistic of a pair is the absolute sum of its units over the root of their sum of
    /// squares. From the greatest on, each observed statistic is compared with the maximum over
    /// its pair and those after it under the same signs, which keeps the dependence between pairs.
    /// No p-value is less than that of a pair with a greater statistic; methods that are equal up
    /// to rounding have 1.
    ///
    /// All sign patterns are enumerated if there are at most `n_resamples`, and a p-value is the
    /// share of hits; else patterns are drawn, and it is `(hits + 1) / (n_resamples + 1)`.
    /// [`Method::Exact`] asks for all patterns, [`Method::MonteCarlo`] for drawn ones.
    ///
    /// Westfall and Young, *Resampling-Based Multiple Testing* (1993), algorithm 4.1.
    ///
    /// # Errors
    /// [`Error::Input`] for less than two methods, an alternative that is not two-sided, too many
    /// patterns to enumerate where these are asked for, and for pairs as in
    /// [`paired`](Self::paired); [`Error::Memory`]; [`Error::Interrupted`].
    pub fn max_t(
        &self,
        methods: &[Losses<'_>],
        grouping: Option<&Grouping>,
        execution: Execution<'_>,
    ) -> Result<Vec<f64>, Error> {
        if self.alternative != Alternative::TwoSided {
            return Err(Error::input("alternative", "is one-sided", "'two-sided' for max-T"));
        }
        let pairs = pairs_of(methods)?;
        for &(i, j) in &pairs {
            comparable_size(&methods[i], &methods[j], grouping)?;
        }
        let units = MethodUnits::new(methods, grouping)?;
        let steps = Steps::new(methods, &pairs, grouping, &units, execution)?;
        let n_patterns = 1_u64.checked_shl(u32::try_from(units.n_units).unwrap_or(u32::MAX));
        let n_patterns = n_patterns.filter(|n_patterns| *n_patterns <= self.n_resamples.get());
        let (patterns, n_patterns, is_exact) = match (n_patterns, self.method) {
            (None, Method::Exact) => {
                let got =
                    format!("of {} items or groups have too many sign patterns", units.n_units);
                let expected = "more resamples for an exact test; Monte Carlo takes these";
                return Err(Error::input("differences", got, expected));
            }
            (Some(n_patterns), Method::Auto | Method::Exact) => (Patterns::All, n_patterns, true),
            (_, Method::Auto | Method::MonteCarlo) => {
                let signs = Signs::new(self.seed, self.stream);
                (Patterns::Drawn(signs), self.n_resamples.get(), false)
            }
        };
        let counts = count_hits(&steps, &units, patterns, n_patterns, execution)?;
        let share = |hits| {
            if is_exact { to_f64(hits) / to_f64(n_patterns) } else { self.share_drawn(hits) }
        };
        symmetric(methods.len(), steps.p_values(&counts, share))
    }

    /// `(hits + 1) / (n_resamples + 1)`: the observed signs are one of the patterns.
    fn share_drawn(&self, hits: u64) -> f64 {
        to_f64(hits + 1) / (to_f64(self.n_resamples.get()) + 1.0)
    }

    /// Whether a pair that can be compared has to be looked at for its exact p-value.
    fn may_be_exact(
        &self,
        a: &Losses<'_>,
        b: &Losses<'_>,
        grouping: Option<&Grouping>,
    ) -> Result<bool, Error> {
        let losses_size = comparable_size(a, b, grouping)?;
        // Real losses differ by others than integers nearly at once.
        let mut items = a.values.iter().zip(b.values).take(64);
        Ok(match self.method {
            Method::Auto => {
                grouping.is_some() || items.all(|(a, b)| is_integer(a - b, losses_size))
            }
            Method::Exact => true,
            Method::MonteCarlo => false,
        })
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

/// All pairs of methods, row by row.
fn pairs_of(methods: &[Losses<'_>]) -> Result<Vec<(usize, usize)>, Error> {
    let n = methods.len();
    if n < 2 {
        return Err(Error::input("losses", format!("has {n} methods"), "at least two"));
    }
    Ok((0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect())
}

/// The matrix of the pairs' values, row by row, with 1 on the diagonal.
fn symmetric(
    n: usize,
    values: impl Iterator<Item = ((usize, usize), f64)>,
) -> Result<Vec<f64>, Error> {
    let mut matrix = filled(1.0, n * n)?;
    for ((i, j), value) in values {
        for place in [i * n + j, j * n + i] {
            matrix[place] = value;
        }
    }
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn losses(rows: &[Vec<f64>]) -> Vec<Losses<'_>> {
        let numbered = rows.iter().enumerate();
        numbered.map(|(i, row)| Losses::new("losses", Some(i), row).unwrap()).collect()
    }

    fn test(alternative: Alternative, n_resamples: u64) -> PermutationTest {
        let n_resamples = NonZeroU64::new(n_resamples).unwrap();
        let method = Method::MonteCarlo;
        PermutationTest { alternative, method, n_resamples, seed: 3, stream: 1 }
    }

    /// Tenths, so that sums are often equal but for rounding.
    fn tenths(n_methods: usize, n_items: usize) -> Vec<Vec<f64>> {
        let signs = Signs::new(0, 0);
        let tenth =
            |number| f64::from(u32::try_from(signs.word(number as u64) % 4).unwrap_or(0)) / 10.0;
        let row = |method| (0..n_items).map(move |item| tenth(method * n_items + item)).collect();
        (0..n_methods).map(row).collect()
    }

    #[test]
    fn many_pairs_have_the_p_values_of_each() {
        let mut cases = vec![tenths(3, 1), tenths(5, 9), tenths(4, 64), tenths(6, 130)];
        // Methods of other sizes, offsets, and numbers that are hardly any.
        let mut wild = tenths(5, 70);
        wild[0].iter_mut().for_each(|value| *value *= 1e12);
        wild[1].iter_mut().for_each(|value| *value += 1e9);
        cases.push(wild);
        for scale in [1e-300, 1e-310, 5e-324, 1e300] {
            let mut scaled = tenths(4, 20);
            scaled.iter_mut().flatten().for_each(|value| *value *= scale);
            cases.push(scaled);
        }
        let mut one_large = tenths(4, 30);
        one_large.iter_mut().for_each(|row| row[7] = 1e15 * row[7] + row[8]);
        cases.push(one_large);
        for rows in &cases {
            let methods = losses(rows);
            let groups = Grouping::new((0..rows[0].len()).map(|item| item * item % 7));
            for grouping in [None, Some(&groups)] {
                for alternative in [Alternative::TwoSided, Alternative::Less, Alternative::Greater]
                {
                    let test = test(alternative, 300);
                    let found = test.pairwise(&methods, grouping, Execution::single()).unwrap();
                    for (i, j) in pairs_of(&methods).unwrap() {
                        let (a, b) = (&methods[i], &methods[j]);
                        let wanted = test.paired(a, b, grouping, Execution::single()).unwrap();
                        assert_eq!(found[i * rows.len() + j], wanted.p_value, "{i} {j} {rows:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn p_values_have_the_same_bits_on_any_number_of_threads() {
        let rows = tenths(6, 90);
        let methods = losses(&rows);
        for n_resamples in [1, 63, 64, 65, 20_000] {
            let test = test(Alternative::TwoSided, n_resamples);
            let pairwise = test.pairwise(&methods, None, Execution::single()).unwrap();
            let max_t = test.max_t(&methods, None, Execution::single()).unwrap();
            for n_threads in [2, 3, 7] {
                let execution = Execution::threads(NonZeroUsize::new(n_threads).unwrap());
                assert_eq!(test.pairwise(&methods, None, execution).unwrap(), pairwise);
                assert_eq!(test.max_t(&methods, None, execution).unwrap(), max_t);
            }
        }
    }

    #[test]
    fn max_t_of_few_items_takes_all_sign_patterns() {
        // Statistics 3 / √3 of rows 0 and 1, 6 / √14 of 0 and 2, 3 / √5 of 1 and 2.
        let rows = [vec![1.0, 2.0, 3.0], vec![0.0, 1.0, 2.0], vec![0.0; 3]];
        let methods = losses(&rows);
        let test = PermutationTest::default();
        let found = test.max_t(&methods, None, Execution::single()).unwrap();
        // All units have one sign: the observed signs and their mirror are the only hits of the
        // first pair, and of the others with a unit of 0 two more.
        assert_eq!(found, [1.0, 0.25, 0.25, 0.25, 1.0, 0.5, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn max_t_is_refused_where_it_is_not_defined() {
        let rows = tenths(3, 20);
        let methods = losses(&rows);
        let message = |test: PermutationTest, methods: &[Losses<'_>]| {
            test.max_t(methods, None, Execution::single()).unwrap_err().to_string()
        };
        assert_eq!(
            message(test(Alternative::Less, 9), &methods),
            "alternative is one-sided, expected 'two-sided' for max-T"
        );
        let two_sided = test(Alternative::TwoSided, 9);
        assert_eq!(
            message(two_sided, &methods[..1]),
            "losses has 1 methods, expected at least two"
        );
        assert_eq!(
            message(PermutationTest { method: Method::Exact, ..two_sided }, &methods),
            "differences of 20 items or groups have too many sign patterns, expected more \
             resamples for an exact test; Monte Carlo takes these"
        );
    }

    #[test]
    fn many_pairs_can_be_interrupted() {
        let rows = tenths(5, 90);
        let (methods, stop) = (losses(&rows), || true);
        let test = test(Alternative::TwoSided, 1 << 40);
        let execution = Execution::single().stop_when(&stop);
        assert_eq!(test.pairwise(&methods, None, execution), Err(Error::Interrupted));
        assert_eq!(test.max_t(&methods, None, execution), Err(Error::Interrupted));
    }
}
