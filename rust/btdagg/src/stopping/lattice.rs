//! Counts with at most `n` votes as places in one array: layer by layer of equal totals.

use crate::index::index;
use crate::{Counts, Error};

/// Most votes that a rule is made for: a table of all counts then takes two megabytes.
pub const MAX_VOTES: usize = 128;

/// Number of counts with fewer than `total` votes: where the layer of that total begins.
pub(crate) const fn layer(total: usize) -> usize {
    total * (total + 1) * (total + 2) / 6
}

/// Place of counts, given as numbers of votes.
pub(crate) const fn place([minus, tie, plus]: [usize; 3]) -> usize {
    let total = minus + tie + plus;
    // Rows of the layer have a minus in common and get shorter by one each.
    let row = minus * (2 * total + 3 - minus) / 2;
    layer(total) + row + plus
}

/// The counts of a layer, in the order of their places.
pub(crate) fn counts_of(total: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..=total).flat_map(move |minus| {
        (0..=total - minus).map(move |plus| [minus, total - minus - plus, plus])
    })
}

/// Fills a layer from the next one: what `gather` makes of the values after a minus, a tie and a
/// plus.
pub(crate) fn pull<V>(values: &mut [V], total: usize, mut gather: impl FnMut(&V, &V, &V) -> V) {
    let (here, next) = values.split_at_mut(layer(total + 1));
    let (_, mut here) = here.split_at_mut(layer(total));
    let mut next = &*next;
    for minus in 0..=total {
        let (row, rows_left) = here.split_at_mut(total - minus + 1);
        let (after_same, after_minus) = next.split_at(row.len() + 1);
        let after_plus = after_same.iter().skip(1);
        for (((value, minus), tie), plus) in
            row.iter_mut().zip(after_minus).zip(after_same).zip(after_plus)
        {
            *value = gather(minus, tie, plus);
        }
        (here, next) = (rows_left, after_minus);
    }
}

/// Sum of three whose bits are the same after A and B have changed places.
pub(crate) fn mirrored_sum(minus: f64, tie: f64, plus: f64) -> f64 {
    (minus + plus) + tie
}

/// Number of votes of an item and between two looks, checked.
pub(crate) fn check(n: usize, step: usize) -> Result<(), Error> {
    for (name, value, most) in [("n", n, MAX_VOTES), ("step", step, n)] {
        if !(1..=most).contains(&value) {
            return Err(Error::value(name, value, format!("an integer from 1 to {most}")));
        }
    }
    if !n.is_multiple_of(step) {
        return Err(Error::value("n", n, format!("a multiple of the step {step}")));
    }
    Ok(())
}

/// Counts as places of a table, if they have at most `n` votes.
pub(crate) fn within(counts: Counts, n: usize) -> Option<[usize; 3]> {
    let [minus, tie, plus] = counts.as_whole()?.map(index);
    let total = minus.saturating_add(tie).saturating_add(plus);
    (total <= n).then_some([minus, tie, plus])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_order_of_the_layers() {
        let all = (0..=7).flat_map(counts_of);
        for (wanted, counts) in all.enumerate() {
            assert_eq!(place(counts), wanted, "{counts:?}");
        }
        assert_eq!(layer(8), (0..=7).flat_map(counts_of).count());
    }

    #[test]
    fn pulling_sees_the_three_next_counts() {
        let mut values: Vec<[usize; 3]> = (0..=6).flat_map(counts_of).collect();
        let mut next = vec![[[0; 3]; 3]; values.len()];
        for (next, counts) in next.iter_mut().zip(&values) {
            *next = [*counts; 3];
        }
        for total in 0..6 {
            pull(&mut next, total, |minus, tie, plus| [minus[0], tie[0], plus[0]]);
            for counts in counts_of(total) {
                let [m, t, p] = counts;
                let wanted = [[m + 1, t, p], [m, t + 1, p], [m, t, p + 1]];
                assert_eq!(next[place(counts)], wanted);
                next[place(counts)] = [counts; 3];
            }
        }
        values.clear();
    }
}
