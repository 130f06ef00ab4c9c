use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU64;

use rustc_hash::FxBuildHasher;

use super::PermutationResult;
use super::signs::WORD;
use crate::Error;
use crate::error::same_length;
use crate::index::to_f64;
use crate::memory::{collected, filled};

/// Numbers that are added side by side.
const LANES: usize = 8;

/// Losses of one method, one per item, all finite.
#[derive(Debug, Clone, Copy)]
pub struct Losses<'a> {
    pub(super) values: &'a [f64],
    name: &'static str,
    method: Option<usize>,
    /// Sum of absolute values.
    pub(super) size: f64,
}

impl<'a> Losses<'a> {
    /// Losses that errors call `name`, at the number of the method where there are several.
    ///
    /// # Errors
    /// [`Error::Input`] without losses, and for the first that is not finite.
    pub fn new(
        name: &'static str,
        method: Option<usize>,
        values: &'a [f64],
    ) -> Result<Self, Error> {
        if values.is_empty() {
            return Err(Error::input(name, "is empty", "at least one item"));
        }
        let size = sum(values, f64::abs);
        let losses = Self { values, name, method, size };
        if size.is_finite() {
            return Ok(losses); // for then all its terms are
        }
        match values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            Some((row, &value)) => Err(Error::not_finite(name, value).at(&losses.place(Some(row)))),
            None => Ok(losses),
        }
    }

    /// Where errors say these losses are, or one of them.
    fn place(&self, row: Option<usize>) -> Vec<usize> {
        self.method.into_iter().chain(row).collect()
    }

    /// An error about these losses and others, or about a pair of them.
    pub(super) fn error_with(
        &self,
        other: &Self,
        row: Option<usize>,
        got: impl Fn(String) -> String,
        expected: &'static str,
    ) -> Error {
        let place = other.place(row);
        let place = if place.is_empty() { String::new() } else { format!("{place:?}") };
        let got = got(format!("{}{place}", other.name));
        Error::input(self.name, got, expected).at(&self.place(row))
    }
}

/// Which items belong together: their differences change sign together.
#[derive(Debug, Clone)]
pub struct Grouping {
    group: Vec<usize>,
    n_groups: usize,
}

impl Grouping {
    /// Groups from what the items of each have in common.
    pub fn new<K: Eq + Hash>(groups: impl IntoIterator<Item = K>) -> Self {
        let mut places = HashMap::<K, usize, FxBuildHasher>::default();
        let number = |group| {
            let next = places.len();
            *places.entry(group).or_insert(next)
        };
        let group = groups.into_iter().map(number).collect();
        Self { group, n_groups: places.len() }
    }

    pub(super) fn sums(&self, differences: &[f64]) -> Result<Vec<f64>, Error> {
        let mut sums = filled(0.0, self.n_groups)?;
        for (&group, &difference) in self.group.iter().zip(differences) {
            sums[group] += difference;
        }
        Ok(sums)
    }

    pub(super) const fn len(&self) -> usize {
        self.n_groups
    }

    /// Items of the largest group.
    pub(super) fn largest(&self) -> Result<usize, Error> {
        let mut sizes = filled(0, self.n_groups)?;
        self.group.iter().for_each(|&group| sizes[group] += 1);
        Ok(sizes.into_iter().max().unwrap_or(0))
    }

    /// First item of a group, by which errors name it.
    pub(super) fn first_item(&self, group: usize) -> Option<usize> {
        self.group.iter().position(|other| *other == group)
    }
}

/// Differences between two methods' losses, by unit: an item, or a group summed.
#[derive(Debug)]
pub(crate) struct Differences {
    pub(super) units: Vec<f64>,
    n_items: usize,
    pub(super) sum: f64,
    /// Sum of absolute values.
    pub(super) size: f64,
    pub(super) losses_size: f64,
}

impl Differences {
    pub(crate) fn between(
        a: &Losses<'_>,
        b: &Losses<'_>,
        grouping: Option<&Grouping>,
    ) -> Result<Self, Error> {
        let losses_size = comparable_size(a, b, grouping)?;
        let mut units = collected(a.values.iter().zip(b.values).map(|(a, b)| a - b))?;
        if let Some(grouping) = grouping {
            units = grouping.sums(&units)?;
        }
        let (sum, size) = (sum(&units, |value| value), sum(&units, f64::abs));
        Ok(Self { units, n_items: a.values.len(), sum, size, losses_size })
    }

    /// How much two sums over signed units may differ and yet be equal but for rounding.
    ///
    /// Twice what can come of the rounding of losses, differences and sums: `2⁻⁵⁰` of the sum of
    /// all `|a| + |b|`, and `2⁻⁵² (units / 64 + 16)` of the sum of absolute differences.
    pub(crate) fn tolerance(&self) -> f64 {
        tolerance(self.units.len(), self.losses_size, self.size)
    }

    pub(crate) fn result(
        &self,
        p_value: f64,
        n_resamples: Option<NonZeroU64>,
    ) -> PermutationResult {
        PermutationResult {
            statistic: self.sum / to_f64(self.n_items as u64),
            p_value,
            n_resamples,
        }
    }
}

/// The sum of all `|a| + |b|`, of two methods that can be compared.
pub(super) fn comparable_size(
    a: &Losses<'_>,
    b: &Losses<'_>,
    grouping: Option<&Grouping>,
) -> Result<f64, Error> {
    let n_items = a.values.len();
    same_length(b.name, b.values.len(), n_items, a.name)?;
    let losses_size = a.size + b.size;
    if !losses_size.is_finite() {
        let got = |b| format!("and {b} sum to more than the largest float");
        return Err(a.error_with(b, None, got, "smaller losses"));
    }
    if let Some(grouping) = grouping {
        same_length("groups", grouping.group.len(), n_items, a.name)?;
    }
    Ok(losses_size)
}

/// [`Differences::tolerance`] of differences of that size.
pub(super) fn tolerance(n_units: usize, losses_size: f64, size: f64) -> f64 {
    let n_words = to_f64(n_units.div_ceil(WORD) as u64);
    4.0 * f64::EPSILON * losses_size + (n_words + 16.0) * f64::EPSILON * size
}

/// Sum of `term` over the values, of which several are added side by side.
pub(super) fn sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &value)| *lane += term(value));
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&value| term(value)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_group_are_summed() {
        let (a, b) = ([3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 0.0, 5.0]);
        let (a, b) = (Losses::new("a", None, &a).unwrap(), Losses::new("b", None, &b).unwrap());
        let grouping = Grouping::new(["x", "y", "x", "z"]);
        let differences = Differences::between(&a, &b, Some(&grouping)).unwrap();
        assert_eq!(differences.units, [4.0, -1.0, -5.0]);
        assert_eq!(differences.sum, -2.0);
        assert_eq!(differences.result(1.0, None).statistic, -0.5);
    }

    #[test]
    fn bad_losses_are_named() {
        let message = |result: Result<(), Error>| result.unwrap_err().to_string();
        let losses = |values: &[f64]| Losses::new("a", None, values).map(|_| ());
        assert_eq!(message(losses(&[])), "a is empty, expected at least one item");
        assert_eq!(message(losses(&[0.0, f64::NAN])), "a[1] is NaN, expected a finite number");
        let rows = Losses::new("losses", Some(1), &[2.0, f64::INFINITY]).map(|_| ());
        assert_eq!(message(rows), "losses[1, 1] is inf, expected a finite number");
        let (one, two) =
            (Losses::new("a", None, &[1.0]).unwrap(), Losses::new("b", None, &[1.0; 2]).unwrap());
        let between = Differences::between(&one, &two, None).map(|_| ());
        assert_eq!(message(between), "b has 2 rows, expected 1 as in a");
        let huge = Losses::new("a", None, &[f64::MAX; 2]).unwrap();
        let between = Differences::between(&huge, &two, None).map(|_| ());
        assert_eq!(
            message(between),
            "a and b sum to more than the largest float, expected smaller losses"
        );
    }
}
