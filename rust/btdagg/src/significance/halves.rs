//! The null distribution of a few units of any size: all sums of either half, in order.

use crate::index::to_f64;

/// Units that are enumerated at the most: each half has a million sums.
pub(crate) const MAX_UNITS: usize = 40;

/// Units that are always enumerated: sooner done, and without rounding.
pub(crate) const FEW_UNITS: usize = 12;

/// Share of sign patterns whose sum is at least `least`.
pub(crate) fn upper_tail(magnitudes: &[i128], least: i128) -> f64 {
    let (first, second) = magnitudes.split_at(magnitudes.len() / 2);
    let (first, second) = (sums(first), sums(second));
    // The larger the one sum, the smaller the other may be.
    let mut reached = second.len();
    let mut hits = 0;
    for sum in &first {
        while reached > 0 && second.get(reached - 1).is_some_and(|other| sum + other >= least) {
            reached -= 1;
        }
        hits += second.len() - reached;
    }
    to_f64(hits as u64) / to_f64((first.len() * second.len()) as u64)
}

/// All sums of signed magnitudes in ascending order, as often as there are patterns.
#[expect(clippy::stable_sort_primitive, reason = "it merges runs")]
fn sums(magnitudes: &[i128]) -> Vec<i128> {
    let mut sums = vec![0];
    for magnitude in magnitudes {
        let lower = sums.iter().map(|sum| sum - magnitude);
        sums = lower.chain(sums.iter().map(|sum| sum + magnitude)).collect();
        sums.sort();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_all_patterns() {
        let magnitudes = [5, 1, 1, 900_000_000_001, 3, 70_000_000];
        let mut all: Vec<i128> = (0..64_u32)
            .map(|pattern| {
                let signed = magnitudes.iter().enumerate();
                signed.map(|(i, m)| if pattern >> i & 1 == 1 { *m } else { -m }).sum()
            })
            .collect();
        all.sort_unstable();
        assert_eq!(sums(&magnitudes), all);
        for least in [-900_000_000_002, -3, 0, 70_000_001, 900_070_000_011, 900_070_000_012] {
            let hits = all.iter().filter(|&&sum| sum >= least).count();
            assert_eq!(
                upper_tail(&magnitudes, least),
                f64::from(u32::try_from(hits).unwrap()) / 64.0
            );
        }
    }
}
