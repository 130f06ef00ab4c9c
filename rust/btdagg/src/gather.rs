use std::cmp::Ordering;
use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::counts::{CountRow, Counts, Rows};
use crate::error::{check_finite, same_length};
use crate::index::index;
use crate::memory::{collected, reserved};
use crate::model::check_smoothing;
use crate::parallel::{BLOCK, Watch};
use crate::rows::LabelWeights;
use crate::table::bits_of;
use crate::{CalibrationSet, Error, Execution, Label};

/// Counts below `2^DENSE_BITS` are gathered in an array, all others in a hash map.
const DENSE_BITS: u32 = 5;

/// Sums of label weights by counts.
struct Gathered {
    dense: Vec<LabelWeights>,
    sparse: HashMap<Counts, LabelWeights, FxBuildHasher>,
    n_items: usize,
}

impl CalibrationSet {
    /// Items with one label each (−1, 0, +1) and, if given, a weight each; the smoothing constants
    /// are alpha and kappa.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, if no item has a weight, if the weights of one row
    /// have no finite sum, or if a constant is not finite and positive; [`Error::Interrupted`].
    pub fn new<R: Rows + ?Sized>(
        rows: &R,
        labels: &[i8],
        weights: Option<&[f64]>,
        smoothing: (f64, f64),
        execution: Execution<'_>,
    ) -> Result<Self, Error> {
        same_length("labels", labels.len(), rows.len(), "counts")?;
        let n_weights = weights.map_or(rows.len(), <[f64]>::len);
        same_length("weights", n_weights, rows.len(), "counts")?;
        let column = |row: usize| Label::parse(labels[row], "labels", row).map(Label::column);
        match weights {
            None => Gathered::of(rows, execution, |row, sums| {
                sums[column(row)?] += 1.0;
                Ok(true)
            }),
            Some(weights) => Gathered::of(rows, execution, |row, sums| {
                let weight = check_weight(weights[row], row)?;
                sums[column(row)?] += weight;
                Ok(weight > 0.0)
            }),
        }?
        .set(smoothing)
    }

    /// Items with soft labels: a weight for each label.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn soft<R: Rows + ?Sized>(
        rows: &R,
        weights: &[[f64; 3]],
        smoothing: (f64, f64),
        execution: Execution<'_>,
    ) -> Result<Self, Error> {
        same_length("weights", weights.len(), rows.len(), "counts")?;
        let add = |row: usize, sums: &mut LabelWeights| {
            for (sum, &weight) in sums.iter_mut().zip(&weights[row]) {
                *sum += check_weight(weight, row)?;
            }
            Ok(any_weight(&weights[row]))
        };
        Gathered::of(rows, execution, add)?.set(smoothing)
    }

    /// Items with a weight for each label, and what else is known of them: an offset each, which is
    /// added to the margin.
    ///
    /// Items of equal counts differ, so that each is a row, and a fit costs what their number does.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::Input`] if an offset is not finite.
    pub fn with_offsets<R: Rows + ?Sized>(
        rows: &R,
        weights: &[[f64; 3]],
        offsets: &[f64],
        (alpha, kappa): (f64, f64),
        execution: Execution<'_>,
    ) -> Result<Self, Error> {
        same_length("weights", weights.len(), rows.len(), "counts")?;
        same_length("offsets", offsets.len(), rows.len(), "counts")?;
        check_finite("offsets", offsets, 0)?;
        check_smoothing(alpha, kappa)?;
        let mut items = reserved(rows.len())?;
        let (mut buffer, mut watch) = (Vec::new(), Watch::alone(execution));
        for start in (0..rows.len()).step_by(BLOCK) {
            watch.poll()?;
            let block = rows.block(start, BLOCK.min(rows.len() - start), &mut buffer);
            for (row, counts) in (start..).zip(block) {
                for &weight in &weights[row] {
                    check_weight(weight, row)?;
                }
                if any_weight(&weights[row]) {
                    items.push((counts.counts(row)?, offsets[row] + 0.0, weights[row]));
                }
            }
        }
        Self::of_items(items, alpha, kappa)
    }

    /// Of the counts, offset and weights of each item, in any order.
    fn of_items(
        mut items: Vec<(Counts, f64, LabelWeights)>,
        alpha: f64,
        kappa: f64,
    ) -> Result<Self, Error> {
        let mut labels = collected(items.iter().map(|item| (item.0, item.2)))?;
        rescale(&mut labels)?;
        let sum = |column: usize| labels.iter().map(|(_, weights)| weights[column]).sum::<f64>();
        let label_weights = [0, 1, 2].map(sum);
        for (item, (_, weights)) in items.iter_mut().zip(&labels) {
            let (counts, offset, _) = *item;
            // Upright, and of two equal sides that which the offset is for.
            let is_turned = counts.minus > counts.plus
                || counts.minus.total_cmp(&counts.plus).is_eq() && offset < 0.0;
            let [minus, tie, plus] = *weights;
            *item = match (is_turned, offset == 0.0) {
                (_, true) => {
                    let (counts, weights) = upright(counts, *weights);
                    (counts, offset, weights)
                }
                (true, _) => (counts.mirrored(), -offset, [plus, tie, minus]),
                (false, _) => (counts, offset, *weights),
            };
        }
        items.sort_unstable_by(|(counts, offset, weights), (others, other, given)| {
            let weights = weights.iter().zip(given).map(|(one, other)| one.total_cmp(other));
            let order = counts.cmp(others).then(offset.total_cmp(other));
            order.then(weights.fold(Ordering::Equal, Ordering::then))
        });
        let offsets = collected(items.iter().map(|item| item.1))?;
        let rows = collected(items.iter().map(|item| (item.0, item.2)))?;
        let max_votes = rows.iter().map(|(counts, _)| counts.n_votes()).max().unwrap_or(0);
        let n_items = rows.len();
        Self::of_rows(&rows, Some(&offsets), label_weights, alpha, kappa, n_items, max_votes)
    }
}

impl Gathered {
    /// Reads the rows block by block; `add` adds the weights of a row to the sums of its counts
    /// and says whether there were any.
    fn of<R: Rows + ?Sized>(
        rows: &R,
        execution: Execution<'_>,
        add: impl Fn(usize, &mut LabelWeights) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        let dense = vec![[0.0; 3]; 1 << (3 * DENSE_BITS)];
        let mut all = Self { dense, sparse: HashMap::default(), n_items: 0 };
        let mut buffer = Vec::new();
        let mut watch = Watch::alone(execution);
        for start in (0..rows.len()).step_by(BLOCK) {
            watch.poll()?;
            let block = rows.block(start, BLOCK.min(rows.len() - start), &mut buffer);
            let small = bits_of(block) <= DENSE_BITS;
            if !small {
                all.sparse.try_reserve(block.len()).map_err(|_| Error::Memory)?;
            }
            for (row, counts) in (start..).zip(block) {
                let sums =
                    if small { all.dense_at(counts.small()) } else { all.at(counts.counts(row)?) };
                all.n_items += usize::from(add(row, sums)?);
            }
        }
        Ok(all)
    }

    fn at(&mut self, counts: Counts) -> &mut LabelWeights {
        match counts.as_whole() {
            Some(whole) if whole.iter().all(|count| count >> DENSE_BITS == 0) => {
                self.dense_at(whole.map(index))
            }
            _ => self.sparse.entry(counts).or_default(),
        }
    }

    fn dense_at(&mut self, [minus, tie, plus]: [usize; 3]) -> &mut LabelWeights {
        let place = (minus << (2 * DENSE_BITS)) | (tie << DENSE_BITS) | plus;
        &mut self.dense[place & ((1 << (3 * DENSE_BITS)) - 1)]
    }

    /// The distinct rows, ready for the loss.
    fn set(self, (alpha, kappa): (f64, f64)) -> Result<CalibrationSet, Error> {
        check_smoothing(alpha, kappa)?;
        let n = 1_u64 << DENSE_BITS;
        let mut rows = reserved(self.dense.len() + self.sparse.len())?;
        let dense = self.dense.into_iter().zip(0_u64..).map(|(weights, place)| {
            (Counts::whole(place / (n * n), place / n % n, place % n), weights)
        });
        rows.extend(dense.chain(self.sparse).filter(|(_, weights)| any_weight(weights)));
        rows.sort_unstable_by_key(|(counts, _)| *counts);
        rescale(&mut rows)?;
        let label_weights = rows.iter().fold([0.0; 3], |mut sums, (_, weights)| {
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
            sums
        });
        // Swapping A and B together with the labels leaves the loss of a row as it is, so a row
        // and its mirror image are one. Each row has one mirror image at the most: the sums do
        // not depend on which of the two came first.
        for (counts, weights) in &mut rows {
            (*counts, *weights) = upright(*counts, *weights);
        }
        rows.sort_unstable_by_key(|(counts, _)| *counts);
        rows.dedup_by(|(counts, weights), (kept, sums)| {
            let same = counts == kept;
            if same {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += *weight);
            }
            same
        });
        // Without a row there is no set.
        let max_votes = rows.iter().map(|(counts, _)| counts.n_votes()).max().unwrap_or(0);
        CalibrationSet::of_rows(&rows, None, label_weights, alpha, kappa, self.n_items, max_votes)
    }
}

/// Scales the weights by a power of two, so that their sums neither overflow nor underflow. It
/// changes no digit of a mean.
fn rescale(rows: &mut [(Counts, LabelWeights)]) -> Result<(), Error> {
    let largest = rows.iter().flat_map(|(_, weights)| weights).copied().fold(0.0, f64::max);
    if largest.is_infinite() {
        return Err(Error::weight_overflow());
    }
    // Two factors, since that of the smallest float is beyond the largest.
    let exponent = if largest > 0.0 { largest.log2().floor() } else { 0.0 };
    let half = (-exponent / 2.0).floor();
    for weight in rows.iter_mut().flat_map(|(_, weights)| weights) {
        *weight = *weight * half.exp2() * (-exponent - half).exp2();
    }
    Ok(())
}

/// Counts with no more votes for B than for A, and the weights of their labels: swapping A and B
/// together with the labels leaves a score as it is.
pub(crate) fn upright(counts: Counts, weights: LabelWeights) -> (Counts, LabelWeights) {
    let [minus, tie, plus] = weights;
    match counts.minus.total_cmp(&counts.plus) {
        Ordering::Less => (counts, weights),
        // Both sides of one that leans to none are the same.
        Ordering::Equal => (counts, [0.0, tie, minus + plus]),
        Ordering::Greater => (counts.mirrored(), [plus, tie, minus]),
    }
}

pub(crate) fn any_weight(weights: &LabelWeights) -> bool {
    weights.iter().any(|&weight| weight > 0.0)
}

pub(crate) fn check_weight(weight: f64, row: usize) -> Result<f64, Error> {
    if weight.is_finite() && weight >= 0.0 {
        Ok(weight)
    } else {
        Err(Error::value("weights", weight, "a finite number of at least 0").at(&[row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_rows_are_named() {
        let add = |rows: &[[i64; 3]], labels: &[i8], weights: Option<&[f64]>| {
            let set = CalibrationSet::new(rows, labels, weights, (1.0, 1.0), Execution::single());
            set.unwrap_err().to_string()
        };
        let rows = [[0_i64, 1, 2], [3, -4, 5]];
        assert_eq!(add(&rows, &[0], None), "labels has 1 rows, expected 2 as in counts");
        assert_eq!(
            add(&rows, &[0, 0], None),
            "counts[1, 1] (tie) is -4, expected a finite number of at least 0"
        );
        assert_eq!(add(&rows[..1], &[2], None), "labels[0] is 2, expected -1, 0 or 1");
        assert_eq!(
            add(&rows[..1], &[1], Some(&[-0.5])),
            "weights[0] is -0.5, expected a finite number of at least 0"
        );
        let (heavy, single) = ([[1_u8, 1, 1]; 2], Execution::single());
        let heavy =
            CalibrationSet::new(&heavy[..], &[0; 2], Some(&[f64::MAX; 2]), (1.0, 1.0), single);
        assert_eq!(heavy.unwrap_err(), Error::weight_overflow());
        let empty = CalibrationSet::new(&rows[..0], &[], None, (1.0, 1.0), single).unwrap_err();
        assert_eq!(empty, Error::no_weight());
    }
}
