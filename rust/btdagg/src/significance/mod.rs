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
mod permutation;
mod signs;
mod tilt;

use crate::parallel::Watch;
use crate::{Error, Execution};
use differences::Differences;
use exact::Null;
use monte_carlo::MonteCarlo;

pub use differences::{Grouping, Losses};
pub use permutation::{Alternative, Method, PermutationResult, PermutationTest};

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
                let came = |b| format!("- {b}{over} is {value}");
                let expected = "integers up to 2^51 in sum for an exact test; Monte Carlo takes \
                                others";
                return Err(a.error_with(b, row, came, expected));
            }
        };
        if found.is_none() && self.method == Method::Exact {
            let n_units = differences.units.len();
            let came = format!("of {n_units} items or groups have too many different sums");
            let expected = "smaller integers for an exact test; Monte Carlo takes these";
            return Err(Error::input("differences", came, expected));
        }
        Ok(found)
    }
}
