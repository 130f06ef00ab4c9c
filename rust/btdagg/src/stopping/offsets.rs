use super::fractional;
use super::lattice::{counts_of, place, pull, within};
use super::outlook::to_counts;
use super::rule::StoppingRule;
use crate::counts::{CountRow, Counts, Rows};
use crate::davidson::Ties;
use crate::error::{check_finite, same_length};
use crate::index::to_f64;
use crate::parallel::{BLOCK, Execution, for_each_part};
use crate::{Error, Label};

/// The offsets at which counts are decided alike, whatever votes are still to come: three intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    /// Lowest ends of ties: they begin and end here at the earliest.
    first: Ties,
    /// Highest ends.
    last: Ties,
}

impl Settled {
    fn all([minus, tie, plus]: [&Self; 3]) -> Self {
        let of = |one: Ties, other: Ties, end: fn(f64, f64) -> f64| Ties {
            below: end(one.below, other.below),
            above: end(one.above, other.above),
        };
        let first = of(of(minus.first, tie.first, f64::min), plus.first, f64::min);
        let last = of(of(minus.last, tie.last, f64::max), plus.last, f64::max);
        Self { first, last }
    }

    fn label(&self, offset: f64) -> Option<Label> {
        let label = self.first.decide(offset);
        (label == self.last.decide(offset)).then_some(label)
    }
}

impl StoppingRule {
    /// The rule for items that each have an offset; see [`Model::with_offsets`](crate::Model).
    ///
    /// Only a lossless rule takes them: the chances of votes, which others go by, depend on them.
    ///
    /// ```
    /// use btdagg::stopping::{Criterion, StoppingRule};
    /// use btdagg::{Execution, Model};
    ///
    /// let rule = StoppingRule::new(Model::new(1.2, 2.0, 0.8)?, 8, 1, Criterion::Lossless, None)?;
    /// let mut stops = [false; 2];
    /// let rows: [[u8; 3]; 2] = [[0, 0, 2]; 2];
    /// rule.with_offsets(&[0.0, 9.0]).stops_into(&rows[..], &mut stops, Execution::single())?;
    /// assert_eq!(stops, [false, true]);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    pub const fn with_offsets<'a>(&'a self, offsets: &'a [f64]) -> WithOffsets<'a> {
        WithOffsets { rule: self, offsets }
    }

    /// Number of votes, and the label that no further ones change, if there is one.
    fn settled_at(
        &self,
        counts: Counts,
        offset: f64,
        row: usize,
    ) -> Result<(usize, Option<Label>), Error> {
        let whole = within(counts, self.n);
        let total = match whole {
            Some(votes) => votes.iter().sum(),
            None => self.open_total(counts, row)?,
        };
        let left = to_f64((self.n - total) as u64);
        let label = match whole {
            _ if !total.is_multiple_of(self.step) => None,
            Some(votes) if !self.has_strengths => self.settled()[place(votes)].label(offset),
            _ => fractional::settled(&self.model, counts, left, offset),
        };
        Ok((total, label))
    }

    /// By place, from the ends of ties at all counts that `n` votes can lead to.
    fn settled(&self) -> &[Settled] {
        self.settled.get_or_init(|| {
            let mut settled: Vec<Settled> = (0..=self.n)
                .flat_map(counts_of)
                .map(|votes| self.model.ties(to_counts(votes)))
                .map(|ties| Settled { first: ties, last: ties })
                .collect();
            for total in (0..self.n).rev() {
                pull(&mut settled, total, |minus, tie, plus| Settled::all([minus, tie, plus]));
            }
            settled
        })
    }
}

/// A lossless rule and the offset of each item, in the order of the rows.
#[derive(Debug, Clone, Copy)]
pub struct WithOffsets<'a> {
    rule: &'a StoppingRule,
    offsets: &'a [f64],
}

impl WithOffsets<'_> {
    /// Whether each row of counts is settled.
    ///
    /// # Errors
    /// [`Error::Input`] if the rule is not lossless, there is not one offset for each row, or one is
    /// not finite; as [`StoppingRule::stops_into`].
    pub fn stops_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [bool],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.map(rows, out, execution, |_, _, label, _| label.is_some())
    }

    /// The label of each row of counts: of an item that is not settled, the model's decision of the
    /// votes so far.
    ///
    /// # Errors
    /// As [`stops_into`](Self::stops_into).
    pub fn decide_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [i8],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let decided = |counts, offset| self.rule.model.decide_at(counts, offset);
        self.map(rows, out, execution, |counts, _, label, offset| {
            label.unwrap_or_else(|| decided(counts, offset)).value()
        })
    }

    /// How many votes to ask for each row of counts.
    ///
    /// # Errors
    /// As [`stops_into`](Self::stops_into).
    pub fn votes_to_ask_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [u8],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let StoppingRule { n, step, has_strengths, .. } = *self.rule;
        self.map(rows, out, execution, |counts, total, label, offset| {
            if label.is_some() {
                return 0;
            }
            let left = n - total;
            let settles = |&more: &usize| match within(counts, n) {
                Some([minus, tie, plus]) if !has_strengths => counts_of(more)
                    .map(|[b, same, a]| {
                        self.rule.settled()[place([minus + b, tie + same, plus + a])]
                    })
                    .any(|settled| settled.label(offset).is_some()),
                _ => self.rule.settles_after(counts, more, left, offset),
            };
            let mut steps = (step - total % step..left).step_by(step);
            u8::try_from(steps.find(settles).unwrap_or(left)).unwrap_or(u8::MAX)
        })
    }

    /// Writes what is made of the counts of each row, their total, the label that no further votes
    /// change, if there is one, and the offset.
    fn map<R: Rows + ?Sized, V: Send>(
        &self,
        rows: &R,
        out: &mut [V],
        execution: Execution<'_>,
        value: impl Fn(Counts, usize, Option<Label>, f64) -> V + Sync,
    ) -> Result<(), Error> {
        let (rule, offsets) = (self.rule, self.offsets);
        if !rule.is_lossless {
            return Err(Error::input("offsets", "got", "none: the rule is not lossless"));
        }
        same_length("out", out.len(), rows.len(), "counts")?;
        same_length("offsets", offsets.len(), rows.len(), "counts")?;
        check_finite("offsets", offsets, 0)?;
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let (mut buffer, mut row) = (Vec::new(), start);
            for out in part.chunks_mut(BLOCK) {
                watch.poll()?;
                for (counts, out) in rows.block(row, out.len(), &mut buffer).iter().zip(out) {
                    let (counts, offset) = (counts.counts(row)?, offsets[row]);
                    let (total, label) = rule.settled_at(counts, offset, row)?;
                    *out = value(counts, total, label, offset);
                    row += 1;
                }
            }
            Ok(())
        })
    }
}
