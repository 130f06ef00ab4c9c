//! Grades on an ordered scale, from the mean of a judge's votes.
//!
//! A judge that grades a response several times leaves counts over ordered vote values; people
//! would give one of K grades. With m the mean vote of a response, neighbouring grades have the
//! odds `log p(k+1)/p(k) = beta · m − b(k)`, `k = 1 … K−1`: an adjacent-categories logit (Agresti
//! 1992), of which Davidson's model is the case of three grades and symmetric intercepts. The grade
//! of least expected absolute error is the median of p, so a model decides by K − 1 thresholds of m.
//!
//! ```
//! use btdagg::Execution;
//! use btdagg::grades::{GradeModel, VoteScale};
//!
//! let scale = VoteScale::new(&[1.0, 2.0, 3.0])?;
//! let model = GradeModel::new(2.0, &[3.0, 5.0])?; // cuts at 1.5 and 2.5
//! let counts = [8_u32, 0, 0, 2, 4, 2, 0, 1, 7]; // row by row
//! let mut grades = [0; 3];
//! let single = Execution::single();
//! scale.decide_into(&counts, &model.thresholds(), &[1, 2, 3], None, &mut grades, single)?;
//! assert_eq!(grades, [1, 2, 3]);
//! # Ok::<(), btdagg::Error>(())
//! ```

use std::ops::Range;

use crate::counts::{COUNT, CountValue};
use crate::davidson::{exp_sum, two_sum};
use crate::error::{check_finite, same_length};
use crate::index::index;
use crate::parallel::{BLOCK, for_each_part};
use crate::{Covariate, Error, Execution};

/// Steps between grades are at most this large, so that sums over a scale stay finite.
const LARGEST_STEP: f64 = 1e300;

/// Entries that a table of decisions may have.
const MAX_ENTRIES: usize = 8 << 20;

/// The ordered values that votes may have.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteScale {
    votes: Vec<f64>,
    /// By how much each vote exceeds the least, if they are small integers: sums of votes are exact.
    offsets: Option<Vec<u32>>,
}

impl VoteScale {
    /// # Errors
    /// [`Error::Input`] if there are fewer than two, or they are not finite and rising.
    pub fn new(votes: &[f64]) -> Result<Self, Error> {
        if votes.len() < 2 {
            let got = format!("has {} values", votes.len());
            return Err(Error::input("votes", got, "two or more"));
        }
        for (row, pair) in votes.windows(2).enumerate() {
            if !(pair[0] < pair[1] && pair[0].is_finite() && pair[1].is_finite()) {
                let expected = "finite values in rising order";
                return Err(Error::value("votes", pair[1], expected).at(&[row + 1]));
            }
        }
        let offset = |&vote: &f64| {
            let offset = vote - votes[0];
            let whole = crate::counts::whole(offset).and_then(|whole| u32::try_from(whole).ok());
            whole.filter(|&whole| whole < 1 << 16 && votes[0] + offset == vote)
        };
        let is_exact = votes[0].fract() == 0.0 && votes[0].abs() < f64::from(1 << 16);
        let offsets = if is_exact { votes.iter().map(offset).collect() } else { None };
        Ok(Self { votes: votes.to_vec(), offsets })
    }

    /// Mean vote of every row of counts.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, or one without votes, which has no mean; [`Error::Interrupted`].
    pub fn means_into<T: CountValue>(
        &self,
        counts: &[T],
        out: &mut [f64],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.map(counts, out, &|mean| mean, execution)
    }

    /// The grade of every row of counts, by thresholds of its mean vote.
    ///
    /// A mean within rounding of a threshold is on it: its two grades are equally good, and the one
    /// nearer the middle of the scale is the decision, in the middle the lower one. Shifts, if there
    /// are any, are added to the means: offsets divided by beta.
    ///
    /// # Errors
    /// [`Error::Input`] if thresholds fall or are more than 255, or there is not one grade more; as
    /// [`Self::means_into`].
    pub fn decide_into<T: CountValue, G: Copy + Send + Sync>(
        &self,
        counts: &[T],
        thresholds: &[f64],
        grades: &[G],
        shifts: Option<&[f64]>,
        out: &mut [G],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let rising = thresholds.windows(2).all(|pair| pair[0] <= pair[1]);
        if !rising || thresholds.iter().any(|threshold| threshold.is_nan()) {
            return Err(Error::input("thresholds", "fall", "rising ones"));
        }
        if thresholds.is_empty() || thresholds.len() > usize::from(u8::MAX) {
            let got = format!("has {} values", thresholds.len());
            return Err(Error::input("thresholds", got, "1 to 255"));
        }
        same_length("grades", grades.len(), thresholds.len() + 1, "thresholds, and one")?;
        let size = self.votes.iter().fold(0.0, |size: f64, vote| size.max(vote.abs()));
        let least: Vec<f64> = thresholds
            .iter()
            .enumerate()
            .map(|(below, &threshold)| {
                let rounding = 8.0 * f64::EPSILON * size.max(threshold.abs());
                if threshold.is_infinite() {
                    threshold
                } else if 2 * (below + 1) <= thresholds.len() {
                    threshold - rounding
                } else {
                    (threshold + rounding).next_up()
                }
            })
            .collect();
        let grade = |mean: f64| grades[least.iter().filter(|&&least| mean >= least).count()];
        let Some(shifts) = shifts else {
            return self.map(counts, out, &grade, execution);
        };
        self.check_length(counts, out.len())?;
        same_length("shifts", shifts.len(), out.len(), "counts")?;
        check_finite("shifts", shifts, 0)?;
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let mut means = vec![0.0; BLOCK.min(part.len())];
            let rows = start..start + part.len();
            let mut blocks = Blocks::new(self, counts, rows, &|mean| mean);
            let shifts = shifts[start..].chunks(BLOCK);
            for (out, shifts) in part.chunks_mut(BLOCK).zip(shifts) {
                watch.poll()?;
                let means = &mut means[..out.len()];
                blocks.next_into(means)?;
                for ((out, mean), shift) in out.iter_mut().zip(means).zip(shifts) {
                    *out = grade(*mean + shift);
                }
            }
            Ok(())
        })
    }

    /// Writes what is made of the mean of every row.
    fn map<T: CountValue, V: Copy + Send>(
        &self,
        counts: &[T],
        out: &mut [V],
        of_mean: &(dyn Fn(f64) -> V + Sync),
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.check_length(counts, out.len())?;
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let mut blocks = Blocks::new(self, counts, start..start + part.len(), of_mean);
            for out in part.chunks_mut(BLOCK) {
                watch.poll()?;
                blocks.next_into(out)?;
            }
            Ok(())
        })
    }

    fn check_length<T>(&self, counts: &[T], n: usize) -> Result<(), Error> {
        same_length("counts", counts.len(), n * self.votes.len(), "votes and out")
    }

    /// Mean vote of one row, whose number goes into the error.
    fn mean<T: CountValue>(&self, counts: &[T], row: usize) -> Result<f64, Error> {
        let (mut n, mut sum) = (0.0, 0.0);
        for (&count, vote) in counts.iter().zip(&self.votes) {
            let count = count.to_count().unwrap_or(f64::NAN);
            n += count;
            sum += count * vote;
        }
        if n.is_finite() && (sum / n).is_finite() {
            return Ok(sum / n);
        }
        let bad = counts.iter().position(|count| count.to_count().is_none());
        Err(match bad {
            Some(column) => Error::value("counts", counts[column], COUNT).at(&[row, column]),
            None if n == 0.0 => {
                Error::input("counts", "holds no votes", "at least one for each item").at(&[row])
            }
            None => Error::input("counts", "has no finite sum", "smaller counts").at(&[row]),
        })
    }

    /// A table for counts whose bits are among these, if it has so few entries.
    fn table<V>(
        &self,
        bits: u64,
        max_entries: usize,
        of_mean: &dyn Fn(f64) -> V,
    ) -> Option<Table<V>> {
        let offsets = self.offsets.as_ref()?;
        let largest = u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0);
        let n = u32::try_from(largest).ok()?.checked_mul(u32::try_from(offsets.len()).ok()?)?;
        let row = n.checked_mul(*offsets.last()?)?.checked_add(1)?;
        let entries = row.checked_mul(n.checked_add(1)?)?;
        if index(entries.into()) > max_entries {
            return None;
        }
        let value = |n, above: u32| {
            let n = f64::from(n);
            // Exact, as the sum over votes is: so the same mean.
            of_mean((n * self.votes[0] + f64::from(above)) / n)
        };
        let values = (0..=n).flat_map(|n| (0..row).map(move |above| (n, above)));
        let values = values.map(|(n, above)| value(n, above)).collect();
        let steps = offsets.iter().map(|offset| row + offset).collect();
        Some(Table { largest, steps, values })
    }
}

/// What is made of the mean of each row, block by block: by look-up where counts are small.
struct Blocks<'a, T, V> {
    scale: &'a VoteScale,
    counts: &'a [T],
    /// Those still to come.
    rows: Range<usize>,
    of_mean: &'a dyn Fn(f64) -> V,
    table: Option<Table<V>>,
}

impl<'a, T: CountValue, V: Copy> Blocks<'a, T, V> {
    fn new(
        scale: &'a VoteScale,
        counts: &'a [T],
        rows: Range<usize>,
        of_mean: &'a dyn Fn(f64) -> V,
    ) -> Self {
        Self { scale, counts, rows, of_mean, table: None }
    }

    fn next_into(&mut self, out: &mut [V]) -> Result<(), Error> {
        let (width, start) = (self.scale.votes.len(), self.rows.start);
        let block = &self.counts[start * width..(start + out.len()) * width];
        let mut done = self.table.as_ref().is_some_and(|table| table.look_up(block, out));
        let bits = if done { u64::MAX } else { T::bits(block) };
        // A table pays when it has far fewer entries than rows that are to come.
        let max_entries = MAX_ENTRIES.min(self.rows.len() / 4);
        if !done
            && self.table.as_ref().is_none_or(|table| table.largest < bits)
            && let Some(larger) = self.scale.table(bits, max_entries, self.of_mean)
        {
            done = larger.look_up(block, out);
            self.table = Some(larger);
        }
        // What the table has no answer for, rows without votes, is an error.
        if !done {
            for ((counts, out), row) in block.chunks_exact(width).zip(&mut *out).zip(start..) {
                *out = (self.of_mean)(self.scale.mean(counts, row)?);
            }
        }
        self.rows.start += out.len();
        Ok(())
    }
}

/// What is made of the mean of small whole counts, by their sum and by what their votes exceed the
/// least vote in sum.
struct Table<V> {
    largest: u64,
    /// How far a vote moves on in `values`.
    steps: Vec<u32>,
    values: Vec<V>,
}

impl<V: Copy> Table<V> {
    /// Whether all rows have votes, and no count is larger than the table is for.
    fn look_up<T: CountValue>(&self, block: &[T], out: &mut [V]) -> bool {
        // For the usual scales the steps stay in registers.
        match self.steps.len() {
            2 => self.look_up_rows(block.as_chunks::<2>().0, out),
            3 => self.look_up_rows(block.as_chunks::<3>().0, out),
            4 => self.look_up_rows(block.as_chunks::<4>().0, out),
            5 => self.look_up_rows(block.as_chunks::<5>().0, out),
            10 => self.look_up_rows(block.as_chunks::<10>().0, out),
            n => self.look_up_each(block.chunks_exact(n), &self.steps, out),
        }
    }

    fn look_up_rows<T: CountValue, const N: usize>(&self, rows: &[[T; N]], out: &mut [V]) -> bool {
        let mut steps = [0; N];
        steps.copy_from_slice(&self.steps);
        self.look_up_each(rows.iter().map(|row| &row[..]), &steps, out)
    }

    #[expect(
        clippy::inline_always,
        reason = "the number of counts is a constant where it is called"
    )]
    #[inline(always)]
    fn look_up_each<'a, T: CountValue + 'a>(
        &self,
        rows: impl Iterator<Item = &'a [T]>,
        steps: &[u32],
        out: &mut [V],
    ) -> bool {
        // Counts are read once: of one that is too large the place means nothing, and is thrown away.
        let (mut bits, mut least) = (0, usize::MAX);
        for (counts, out) in rows.zip(out) {
            let place = place(counts, steps);
            bits |= T::bits(counts);
            least = least.min(place);
            *out = self.values[place.min(self.values.len() - 1)];
        }
        least > 0 && bits <= self.largest
    }
}

/// Place of a row in a table.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a small count")]
fn place<T: CountValue>(counts: &[T], steps: &[u32]) -> usize {
    let steps =
        counts.iter().zip(steps).map(|(count, step)| (count.small() as u32).wrapping_mul(*step));
    steps.fold(0_u32, u32::wrapping_add) as usize
}

/// Beta and the intercept of each pair of neighbouring grades.
#[derive(Debug, Clone, PartialEq)]
pub struct GradeModel {
    beta: f64,
    intercepts: Vec<f64>,
}

/// A model of grades with its scales: what Python's `GradeModel` is.
///
/// ```
/// use btdagg::grades::Grades;
///
/// let file = r#"{"format": "btdagg.grades", "version": 1, "beta": 2.0, "cuts": [1.5, 2.5],
///     "scale": {"points": [1, 2, 3]}, "label_scale": {"points": [1, 2, 3]}}"#;
/// let grades = Grades::from_json(file)?;
/// assert_eq!(grades.decide(&[0_u32, 1, 7], &[])?, 3.0);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Grades {
    scale: VoteScale,
    points: Vec<f64>,
    model: GradeModel,
    thresholds: Vec<f64>,
    covariates: Vec<Covariate>,
}

impl Grades {
    /// Of the points of votes and of labels, beta, and the mean votes at which neighbouring grades are
    /// as likely.
    ///
    /// # Errors
    /// [`Error::Input`] if points do not rise, there is not one more than cuts, or a number is not
    /// finite or beta not above 0.
    pub fn new(votes: &[f64], points: &[f64], beta: f64, cuts: &[f64]) -> Result<Self, Error> {
        let scale = VoteScale::new(votes)?;
        same_length("points", points.len(), cuts.len() + 1, "cuts, and one")?;
        if beta <= 0.0 {
            return Err(Error::value("beta", beta, "a number above 0"));
        }
        let intercepts: Vec<f64> = cuts.iter().map(|cut| beta * cut).collect();
        let model = GradeModel::new(beta, &intercepts)?;
        let (thresholds, points) = (model.thresholds(), points.to_vec());
        Ok(Self { scale, points, model, thresholds, covariates: Vec::new() })
    }

    /// The same model, weighing covariates.
    #[must_use]
    pub fn with_covariates(self, covariates: Vec<Covariate>) -> Self {
        Self { covariates, ..self }
    }

    /// What it weighs beside votes.
    pub fn covariates(&self) -> &[Covariate] {
        &self.covariates
    }

    /// The grade of one item: a point of the scale of labels. Values are those of the covariates, in
    /// their order.
    ///
    /// # Errors
    /// [`Error::Input`] for bad counts, none at all, or another number of values.
    pub fn decide<T: CountValue>(&self, counts: &[T], values: &[f64]) -> Result<f64, Error> {
        let offset = Covariate::offset(&self.covariates, values)?;
        let mut out = [0.0];
        self.decide_into(counts, Some(&[offset]), &mut out, Execution::single())?;
        Ok(out[0])
    }

    /// The grade of every row of counts. Offsets are of the covariates; see [`Covariate::offset`].
    ///
    /// # Errors
    /// As [`VoteScale::decide_into`].
    pub fn decide_into<T: CountValue>(
        &self,
        counts: &[T],
        offsets: Option<&[f64]>,
        out: &mut [f64],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let shifts = if self.covariates.is_empty() { None } else { offsets };
        let shifts: Option<Vec<f64>> =
            shifts.map(|offsets| offsets.iter().map(|offset| offset / self.model.beta).collect());
        let (thresholds, points) = (&self.thresholds, &self.points);
        self.scale.decide_into(counts, thresholds, points, shifts.as_deref(), out, execution)
    }

    /// Probabilities of the grades of one item, in the order of the points.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub fn probabilities<T: CountValue>(
        &self,
        counts: &[T],
        values: &[f64],
    ) -> Result<Vec<f64>, Error> {
        let offset = Covariate::offset(&self.covariates, values)?;
        let offsets = (!self.covariates.is_empty()).then_some([offset]);
        let (mut mean, mut out) = ([0.0], vec![0.0; self.points.len()]);
        let single = Execution::single();
        self.scale.means_into(counts, &mut mean, single)?;
        let offsets = offsets.as_ref().map(<[f64; 1]>::as_slice);
        self.model.probabilities_into(&mean, offsets, &mut out, single)?;
        Ok(out)
    }
}

/// Logits of the grades of a mean against the likeliest, and their exponentials.
#[derive(Default)]
struct Odds {
    /// As unevaluated sums of two floats: the sums over a scale would cost digits.
    logits: Vec<(f64, f64)>,
    values: Vec<f64>,
    /// Log of the sum of the values.
    log_total: f64,
    total: f64,
}

impl GradeModel {
    /// # Errors
    /// [`Error::Input`] if beta is not finite and at least 0, there is no intercept, or one is not
    /// finite.
    pub fn new(beta: f64, intercepts: &[f64]) -> Result<Self, Error> {
        if !(beta.is_finite() && beta >= 0.0) {
            return Err(Error::value("beta", beta, "a finite number of at least 0"));
        }
        if intercepts.is_empty() {
            return Err(Error::input("intercepts", "has no value", "one less than grades"));
        }
        check_finite("intercepts", intercepts, 0)?;
        Ok(Self { beta, intercepts: intercepts.to_vec() })
    }

    /// Number of grades.
    pub fn n_grades(&self) -> usize {
        self.intercepts.len() + 1
    }

    /// Probabilities of the grades at every mean vote, row by row. Offsets are what else is known of
    /// each item, added to `beta · m`.
    ///
    /// # Errors
    /// [`Error::Input`] for the first mean that is not finite, [`Error::Interrupted`].
    pub fn probabilities_into(
        &self,
        means: &[f64],
        offsets: Option<&[f64]>,
        out: &mut [f64],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let k = self.n_grades();
        same_length("out", out.len(), means.len() * k, "means and grades")?;
        check_finite("means", means, 0)?;
        check_offsets(offsets, means.len())?;
        for_each_part(out, BLOCK * k, execution, |start, part, mut watch| {
            let mut odds = Odds::default();
            let blocks = part.chunks_mut(BLOCK * k).zip((start / k..).step_by(BLOCK));
            for (out, start) in blocks {
                watch.poll()?;
                for (out, row) in out.chunks_exact_mut(k).zip(start..) {
                    self.at(means[row], offset(offsets, row), &mut odds);
                    for (out, value) in out.iter_mut().zip(&odds.values) {
                        *out = value / odds.total;
                    }
                }
            }
            Ok(())
        })
    }

    /// The mean votes at which the probability of a grade or a lower one is ½, for all grades but
    /// the highest: beyond them the decision is a higher grade.
    ///
    /// Where beta is 0 the mean does not matter, and they are infinite.
    pub fn thresholds(&self) -> Vec<f64> {
        let thresholds = (0..self.intercepts.len()).map(|boundary| {
            if self.beta > 0.0 {
                return self.threshold_logit(boundary) / self.beta;
            }
            let excess = self.excess(boundary, 0.0);
            let is_lower = 2 * (boundary + 1) < self.n_grades();
            if excess < 0.0 || (excess <= 0.0 && is_lower) {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        });
        thresholds.collect()
    }

    /// The logit `x = beta · m` at which both sides of a boundary are equally likely.
    fn threshold_logit(&self, boundary: usize) -> f64 {
        // The excess falls by at least 1 for every 1 of x: its root is no further than it is large.
        let start = self.intercepts[boundary];
        let end = start + self.excess(boundary, start);
        let (mut low, mut high) = (start.min(end), start.max(end));
        loop {
            let middle = low.midpoint(high);
            if !(low < middle && middle < high) {
                return middle;
            }
            if self.excess(boundary, middle) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Log odds of the grades below a boundary against those above.
    fn excess(&self, boundary: usize, x: f64) -> f64 {
        // Of the grade beside the boundary and those beyond it, against that one.
        let side = |intercepts: &mut dyn Iterator<Item = &f64>, sign: f64| {
            let (mut logit, mut log_sum) = (0.0, 0.0_f64);
            for &intercept in intercepts {
                logit += sign * (x - intercept);
                let (least, most) = (log_sum.min(logit), log_sum.max(logit));
                log_sum = most + (least - most).exp().ln_1p();
            }
            log_sum
        };
        let (below, above) = self.intercepts.split_at(boundary);
        let sides = side(&mut below.iter().rev(), -1.0) - side(&mut above.iter().skip(1), 1.0);
        sides - (x - self.intercepts[boundary])
    }

    /// Writes the odds of the grades at a mean and an offset.
    fn at(&self, mean: f64, offset: f64, odds: &mut Odds) {
        let clamp = |logit: f64| logit.clamp(-LARGEST_STEP, LARGEST_STEP);
        let slope = clamp(self.beta * mean);
        let slope_low = self.beta.mul_add(mean, -slope);
        let slope_low = if slope_low.abs() < slope.abs() { slope_low } else { 0.0 };
        let (slope, rounding) = two_sum(slope, clamp(offset));
        let slope_low = slope_low + rounding;
        let (mut high, mut low, mut mode) = (0.0, 0.0, 0);
        odds.logits.clear();
        odds.logits.push((high, low));
        for (below, &intercept) in self.intercepts.iter().enumerate() {
            let (step, step_low) = two_sum(slope, -clamp(intercept));
            let (sum, rounding) = two_sum(high, step);
            (high, low) = (sum, low + (rounding + (step_low + slope_low)));
            odds.logits.push((high, low));
            if high > odds.logits[mode].0 {
                mode = below + 1;
            }
        }
        let (most, most_low) = odds.logits[mode];
        for logit in &mut odds.logits {
            let (gap, rounding) = two_sum(logit.0, -most);
            *logit = (gap, rounding + (logit.1 - most_low));
        }
        odds.values.clear();
        odds.values.extend(odds.logits.iter().map(|&(gap, low)| exp_sum(gap, low)));
        let is_other = |(grade, _): &(usize, &f64)| *grade != mode;
        let others = odds.values.iter().enumerate().filter(is_other).map(|(_, value)| value);
        odds.log_total = others.sum::<f64>().ln_1p();
        odds.total = odds.values.iter().sum();
    }
}

fn offset(offsets: Option<&[f64]>, row: usize) -> f64 {
    offsets.map_or(0.0, |offsets| offsets[row])
}

fn check_offsets(offsets: Option<&[f64]>, n: usize) -> Result<(), Error> {
    let Some(offsets) = offsets else { return Ok(()) };
    same_length("offsets", offsets.len(), n, "means")?;
    check_finite("offsets", offsets, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(counts: &[f64], thresholds: &[f64]) -> Vec<u8> {
        let scale = VoteScale::new(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        let mut grades = vec![9; counts.len() / 4];
        let places: Vec<u8> = (0..=u8::try_from(thresholds.len()).unwrap()).collect();
        scale
            .decide_into(counts, thresholds, &places, None, &mut grades, Execution::single())
            .unwrap();
        grades
    }

    #[test]
    fn equal_risks_give_the_grade_nearer_the_middle() {
        let counts = [0.0, 5.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 9.0, 0.0]; // 2, 2.5, 3
        assert_eq!(decided(&counts, &[2.0, 2.5, 3.0]), [1, 1, 2]);
        assert_eq!(decided(&counts, &[2.0, 3.0]), [1, 1, 1]);
        assert_eq!(decided(&counts, &[2.5]), [0, 0, 1]);
        let infinity = f64::INFINITY;
        assert_eq!(decided(&counts, &[-infinity, -infinity, infinity]), [2, 2, 2]);
    }

    #[test]
    fn thresholds_halve_the_probabilities() {
        for (beta, wanted) in [(2.0, [1.44, 2.50, 3.50, 4.56]), (0.5, [0.67, 2.37, 3.63, 5.33])] {
            let intercepts = [1.5, 2.5, 3.5, 4.5].map(|cut| beta * cut);
            let model = GradeModel::new(beta, &intercepts).unwrap();
            for (threshold, wanted) in model.thresholds().into_iter().zip(wanted) {
                assert!((threshold - wanted).abs() < 5e-3, "{threshold} {wanted}");
            }
        }
        let nothing = GradeModel::new(0.0, &[-1.0, 1.0, 0.0]).unwrap();
        let infinity = f64::INFINITY;
        assert_eq!(nothing.thresholds(), [-infinity, infinity, infinity]);
    }

    #[test]
    fn rows_without_votes_are_errors_of_tables_too() {
        let scale = VoteScale::new(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        let mut counts = vec![1_u8; 80_000];
        let mut out = vec![0; 20_000];
        let mut decide = |counts: &[u8]| {
            scale.decide_into(counts, &[2.0, 3.0], &[1, 2, 3], None, &mut out, Execution::single())
        };
        assert!(decide(&counts).is_ok());
        counts[40_004..40_008].fill(0);
        let error = decide(&counts).unwrap_err().to_string();
        assert!(error.starts_with("counts[10001] holds no votes"), "{error}");
    }

    #[test]
    fn tables_and_single_rows_agree_at_any_number_of_threads() {
        let scale = VoteScale::new(&[1.0, 2.0, 3.5, 4.5, 5.5]).unwrap();
        let whole = VoteScale::new(&[-1.0, 0.0, 1.0, 2.0, 4.0]).unwrap();
        let rounded = VoteScale::new(&[0.2, 1.2, 2.2, 3.2, 4.2]).unwrap();
        let counts: Vec<u32> = (0..200_000_u32).map(|i| 1 + (i / 3 + i / 7) % 7).collect();
        let floats: Vec<f64> = counts.iter().copied().map(f64::from).collect();
        let thresholds = [0.5, 1.0, 1.5, 3.0];
        for scale in [scale, whole, rounded] {
            let mut means = vec![0.0; 40_000];
            scale.means_into(&counts, &mut means, Execution::single()).unwrap();
            for (row, &mean) in counts.chunks_exact(5).zip(&means) {
                let mut alone = [0.0];
                scale.means_into(row, &mut alone, Execution::single()).unwrap();
                assert_eq!(alone, [mean]);
            }
            let grade = |mean: &f64| {
                u8::from(*mean >= 0.5)
                    + u8::from(*mean >= 1.0)
                    + u8::from(*mean > 1.5)
                    + u8::from(*mean > 3.0)
            };
            let wanted: Vec<u8> = means.iter().map(grade).collect();
            for n_threads in [1, 3] {
                let execution = Execution::threads(n_threads.try_into().unwrap());
                let mut grades = vec![9; 40_000];
                let places = [0, 1, 2, 3, 4];
                scale
                    .decide_into(&counts, &thresholds, &places, None, &mut grades, execution)
                    .unwrap();
                assert_eq!(grades, wanted);
                scale
                    .decide_into(&floats, &thresholds, &places, None, &mut grades, execution)
                    .unwrap();
                assert_eq!(grades, wanted);
            }
        }
    }

    #[test]
    fn shifts_are_of_means_and_offsets_of_logits() {
        let scale = VoteScale::new(&[1.0, 2.0, 3.0]).unwrap();
        let model = GradeModel::new(2.0, &[3.0, 5.0]).unwrap();
        let counts: Vec<u8> =
            (0..30_000_u32).map(|i| [1, 2, 0, 0, 3, 1][index((i % 6).into())]).collect();
        let offsets: Vec<f64> = (0..10_000).map(|i| f64::from(i % 41 - 20) * 0.3).collect();
        let shifts: Vec<f64> = offsets.iter().map(|offset| offset / 2.0).collect();
        let single = Execution::single();
        let mut means = vec![0.0; 10_000];
        scale.means_into(&counts, &mut means, single).unwrap();
        let (mut grades, mut p) = (vec![0_u8; 10_000], vec![0.0; 30_000]);
        let thresholds = model.thresholds();
        let shifts = Some(&shifts[..]);
        scale.decide_into(&counts, &thresholds, &[0, 1, 2], shifts, &mut grades, single).unwrap();
        model.probabilities_into(&means, Some(&offsets), &mut p, single).unwrap();
        for ((grade, p), (mean, offset)) in
            grades.iter().zip(p.chunks_exact(3)).zip(means.iter().zip(&offsets))
        {
            let below: f64 = p[..usize::from(*grade)].iter().sum();
            let above: f64 = p[usize::from(*grade) + 1..].iter().sum();
            assert!(below <= 0.5 + 1e-12 && above <= 0.5 + 1e-12, "{p:?} {grade}");
            assert!((((p[1] / p[0]).ln()) - (2.0 * mean + offset - 3.0)).abs() < 1e-9);
        }
        let error = model.probabilities_into(&means, Some(&[0.0]), &mut p, single).unwrap_err();
        assert_eq!(error.to_string(), "offsets has 1 rows, expected 10000 as in means");
    }

    #[test]
    fn a_bad_count_is_named() {
        let scale = VoteScale::new(&[0.0, 1.0]).unwrap();
        let mut out = [0.0; 2];
        let mut error = |counts: &[f64]| {
            scale.means_into(counts, &mut out, Execution::single()).unwrap_err().to_string()
        };
        assert!(error(&[1.0, 2.0, 0.0, -1.0]).starts_with("counts[1, 1] is -1, expected"));
        assert!(error(&[1.0, f64::NAN, 0.0, 1.0]).starts_with("counts[0, 1] is NaN, expected"));
        assert!(error(&[f64::MAX, f64::MAX, 0.0, 1.0]).starts_with("counts[0] has no finite sum"));
        assert!(error(&[1.0, 0.0, 0.0, -0.0]).starts_with("counts[1] holds no votes"));
        assert!(error(&[1.0]).starts_with("counts has 1 rows"));
    }
}
