use std::sync::OnceLock;

use super::fractional;
use super::lattice::{check, counts_of, layer, place, pull, within};
use super::offsets::Settled;
use super::outlook::{Outlook, to_counts};
use super::{Forecast, Predictive};
use crate::counts::{CountRow, Counts, Rows};
use crate::error::same_length;
use crate::index::{index, to_f64};
use crate::parallel::{BLOCK, Execution, for_each_part};
use crate::{Error, Label, Model};

/// Bit of a cell that says stop; the lower two hold a label's column.
const STOP: u8 = 4;

/// Label of a cell that is open and has no forecast.
const OPEN: u8 = 3;

/// What a rule aims at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// The very label of the full votes.
    Lossless,
    /// Another label than that of the full votes with less than this probability.
    RiskBounded {
        /// Above 0 and below ½.
        epsilon: f64,
    },
    /// Least expected absolute error plus price of the votes.
    CostOptimal {
        /// Of one vote, in units of absolute error; not negative.
        price: f64,
    },
}

/// Whether an item may stop at its counts, and with which label; a look-up in a table.
#[derive(Debug, Clone)]
pub struct StoppingRule {
    pub(super) model: Model,
    pub(super) n: usize,
    pub(super) step: usize,
    pub(super) is_lossless: bool,
    /// Whether further votes may have a strength.
    pub(super) has_strengths: bool,
    /// By minus, tie and plus, each up to `n`.
    cells: Vec<u8>,
    /// By place, as a [`Forecast`].
    forecasts: Vec<[f64; 3]>,
    /// By place, made when first asked for: fewest votes after which an item may be settled.
    asks: OnceLock<Vec<u8>>,
    /// By place, made when first asked for: offsets at which no further votes change the label.
    pub(super) settled: OnceLock<Vec<Settled>>,
}

impl StoppingRule {
    /// The rule for a model that is calibrated for `n` votes.
    ///
    /// With a `step` of 2 an item stops only after an even number of votes, as where orders are
    /// balanced. Only a lossless rule can do without a predictive distribution; it then has no
    /// forecasts.
    ///
    /// # Errors
    /// [`Error::Input`] for `n` or `step`, [`Error::Input`] if the one is not a
    /// multiple of the other, [`Error::Input`] for an epsilon or price out of range,
    /// [`Error::Input`].
    pub fn new(
        model: Model,
        n: usize,
        step: usize,
        criterion: Criterion,
        predictive: Option<&Predictive>,
    ) -> Result<Self, Error> {
        check(n, step)?;
        match criterion {
            Criterion::RiskBounded { epsilon } if !(epsilon > 0.0 && epsilon < 0.5) => {
                return Err(Error::value("epsilon", epsilon, "a number above 0 and below 0.5"));
            }
            Criterion::CostOptimal { price } if !(price >= 0.0 && price.is_finite()) => {
                return Err(Error::value("price", price, "a finite number of at least 0"));
            }
            _ => {}
        }
        let model = model.at(to_f64(n as u64));
        if let Some(predictive) = predictive {
            let full = Outlook::full(&model, n, predictive);
            return Ok(Self::foreseen(model, n, step, criterion, &full));
        }
        if criterion != Criterion::Lossless {
            return Err(no_predictive());
        }
        // Any distribution tells which labels are still possible.
        let full = Outlook::full(&model, n, &Predictive::new(&[(1.0, [1.0; 3])])?);
        let mut rule = Self::foreseen(model, n, step, criterion, &full);
        rule.cells.iter_mut().filter(|cell| **cell & STOP == 0).for_each(|cell| *cell = OPEN);
        Ok(Self { forecasts: Vec::new(), ..rule })
    }

    /// The cost-optimal rule of the least price at which an item gets no more than `budget` votes on
    /// average, and that price.
    ///
    /// Spending a total so that it lowers the expected error most is to buy votes wherever they are
    /// worth the same price or more.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::Input`] if `budget` is negative or no number.
    pub fn within_budget(
        model: &Model,
        n: usize,
        step: usize,
        budget: f64,
        predictive: &Predictive,
    ) -> Result<(Self, f64), Error> {
        check(n, step)?;
        if budget.is_nan() || budget < 0.0 {
            return Err(Error::value("budget", budget, "a number of at least 0"));
        }
        let model = &model.clone().at(to_f64(n as u64));
        let full = Outlook::full(model, n, predictive);
        let at =
            |price| Self::foreseen(model.clone(), n, step, Criterion::CostOptimal { price }, &full);
        let affordable = |rule: &Self| rule.start().is_none_or(|s| s.votes_left <= budget);
        let rule = at(0.0);
        if affordable(&rule) {
            return Ok((rule, 0.0));
        }
        // No vote can save more than the error of a tie, which is 1 at most.
        let (mut low, mut high) = (0.0, 1.0);
        let mut rule = at(high);
        while high - low > 1e-9 * high {
            let middle = 0.5 * (low + high);
            let found = at(middle);
            if affordable(&found) {
                (high, rule) = (middle, found);
            } else {
                low = middle;
            }
            if high < 1e-12 {
                break;
            }
        }
        Ok((rule, high))
    }

    fn foreseen(
        model: Model,
        n: usize,
        step: usize,
        criterion: Criterion,
        full: &[Outlook],
    ) -> Self {
        let mut outlooks = vec![Outlook::default(); layer(n)];
        outlooks.extend_from_slice(full);
        for outlook in outlooks.iter_mut().skip(layer(n)) {
            let label = outlook.likeliest();
            outlook.followed = [0.0, 0.0, outlook.errors[label.column()]];
        }
        let mut decided: Vec<u8> = vec![OPEN; layer(n)];
        decided.extend(full.iter().map(|outlook| STOP | outlook.likeliest().column_bits()));
        for total in (0..n).rev() {
            let may_stop = total.is_multiple_of(step);
            let mut cells = decided.iter_mut().skip(layer(total));
            pull(&mut outlooks, total, |minus, tie, plus| {
                let mut sum = Outlook::sum(minus, tie, plus);
                let cell = follow(&mut sum, criterion, may_stop);
                if let Some(place) = cells.next() {
                    *place = cell;
                }
                sum
            });
        }
        let forecasts = outlooks
            .iter()
            .map(|outlook| {
                let per_chance = 1.0 / outlook.chance();
                outlook.followed.map(|joint| joint * per_chance)
            })
            .collect();
        let (cells, is_lossless) = (cells(n, &decided), criterion == Criterion::Lossless);
        let (asks, settled) = (OnceLock::new(), OnceLock::new());
        let has_strengths = false;
        Self { model, n, step, is_lossless, has_strengths, cells, forecasts, asks, settled }
    }

    /// The lossless rule for votes that have a strength: it stops only where no further votes change
    /// the label, however strong they are. It has no forecasts, which are of whole votes.
    ///
    /// # Errors
    /// [`Error::Input`] if the rule is not lossless.
    pub fn of_strengths(mut self) -> Result<Self, Error> {
        if !self.is_lossless {
            let expected = "lossless, the only rule for votes with strength";
            return Err(Error::input("kind", "is another", expected));
        }
        for votes in (0..self.n).flat_map(counts_of) {
            let left = to_f64((self.n - votes.iter().sum::<usize>()) as u64);
            let at = &mut self.cells[cell(votes, self.n)];
            let is_final =
                || fractional::settled(&self.model, to_counts(votes), left, 0.0).is_some();
            if *at & STOP == 0 || !is_final() {
                *at = OPEN;
            }
        }
        (self.asks, self.forecasts) = (OnceLock::new(), Vec::new());
        self.has_strengths = true;
        Ok(self)
    }

    /// The model that decides by all `n` votes.
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The most votes an item gets.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Whether an item with these votes is settled.
    ///
    /// # Errors
    /// [`Error::Input`] for more than `n` votes, and for parts of votes without
    /// [`of_strengths`](Self::of_strengths).
    pub fn stops(&self, counts: Counts) -> Result<bool, Error> {
        Ok(self.look_up(counts)? & STOP != 0)
    }

    /// The label of an item that stops at these votes.
    ///
    /// That is the label of the full `n` where the rule is lossless, the likeliest such label where
    /// it is risk-bounded, that of least expected error where it is cost-optimal. Of an item that
    /// goes on it is the same kind of guess; without a predictive distribution it is the model's
    /// decision of the votes so far.
    ///
    /// # Errors
    /// As [`stops`](Self::stops).
    pub fn decide(&self, counts: Counts) -> Result<Label, Error> {
        Ok(self.label(self.look_up(counts)?, counts))
    }

    /// What is expected from these votes on; `None` without a predictive distribution.
    ///
    /// # Errors
    /// As [`stops`](Self::stops).
    pub fn forecast(&self, counts: Counts) -> Result<Option<Forecast>, Error> {
        let Some(votes) = within(counts, self.n) else {
            return self.open_total(counts, 0).map(|_| None);
        };
        Ok(self.forecasts.get(place(votes)).copied().map(Into::into))
    }

    /// How many votes to ask for at once: the fewest after which the item may be settled, 0 where
    /// it is. To ask for them one by one would save none of them.
    ///
    /// # Errors
    /// As [`stops`](Self::stops).
    pub fn votes_to_ask(&self, counts: Counts) -> Result<u8, Error> {
        let mut out = [0_u8];
        self.votes_to_ask_into(&[counts][..], &mut out, Execution::single())?;
        Ok(out[0])
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
        let asks = self.asks();
        let between = |counts, total| {
            if self.final_label(counts, total).is_some() {
                return 0;
            }
            let (least, left) = (self.step - total % self.step, self.n - total);
            let settles = |more: &usize| self.settles_after(counts, *more, left, 0.0);
            let fewest = (least..left).step_by(self.step).find(settles).unwrap_or(left);
            u8::try_from(fewest).unwrap_or(u8::MAX)
        };
        self.map(rows, out, execution, |_, votes| asks[place(votes)], between)
    }

    /// Applies the rule to votes (−1, 0, +1) in their order: after how many the item stops, and with
    /// which label.
    ///
    /// # Errors
    /// [`Error::Input`] for the first of those votes that is none; [`Error::Input`] if the item
    /// does not stop by the last of them, where there are fewer than the rule's `n`.
    pub fn follow(&self, votes: &[i8]) -> Result<(usize, Label), Error> {
        let mut counts = Counts::default();
        for seen in 0..=votes.len() {
            if self.stops(counts)? {
                return Ok((seen, self.decide(counts)?));
            }
            let Some(&vote) = votes.get(seen) else { break };
            *counts.of(Label::parse(vote, "votes", seen)?) += 1.0;
        }
        let got = format!("has {} rows", votes.len());
        Err(Error::input("votes", got, format!("{} as in the rule", self.n)))
    }

    fn asks(&self) -> &[u8] {
        self.asks.get_or_init(|| {
            let mut asks = vec![0_u8; layer(self.n + 1)];
            for total in (0..self.n).rev() {
                let mut stops =
                    counts_of(total).map(|votes| self.cells[cell(votes, self.n)] & STOP != 0);
                pull(&mut asks, total, |minus, tie, plus| {
                    // There are as many as places that are filled.
                    let settled = stops.next().unwrap_or(true);
                    if settled { 0 } else { 1 + (*minus).min(*tie).min(*plus) }
                });
            }
            asks
        })
    }

    /// What is expected of an item without votes; `None` without a predictive distribution.
    pub fn start(&self) -> Option<Forecast> {
        self.forecasts.first().copied().map(Into::into)
    }

    /// Whether each row of counts is settled.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row;
    /// [`Error::Interrupted`].
    pub fn stops_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [bool],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let between = |counts, total| self.final_label(counts, total).is_some();
        self.map(rows, out, execution, |cell, _| cell & STOP != 0, between)
    }

    /// The label of each row of counts, as [`decide`](Self::decide) gives it.
    ///
    /// # Errors
    /// As [`stops_into`](Self::stops_into).
    pub fn decide_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [i8],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let between = |counts, total| {
            self.final_label(counts, total).unwrap_or_else(|| self.model.decide(counts)).value()
        };
        let at = |cell: u8, votes| match i8::try_from(cell & OPEN) {
            Ok(column @ 0..=2) => column - 1,
            _ => self.label(cell, to_counts(votes)).value(),
        };
        self.map(rows, out, execution, at, between)
    }

    /// What is expected from each row of counts on, as votes left, chance of a change and error.
    ///
    /// # Errors
    /// As [`stops_into`](Self::stops_into); [`Error::Input`].
    pub fn forecasts_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        if self.forecasts.is_empty() {
            return Err(no_predictive());
        }
        // Only counts of rules with strengths, which have no forecasts, are no whole numbers.
        let between = |_, _| [f64::NAN; 3];
        self.map(rows, out, execution, |_, votes| self.forecasts[place(votes)], between)
    }

    fn label(&self, cell: u8, counts: Counts) -> Label {
        match cell & OPEN {
            0 => Label::Minus,
            1 => Label::Tie,
            2 => Label::Plus,
            _ => self.model.decide(counts),
        }
    }

    fn look_up(&self, counts: Counts) -> Result<u8, Error> {
        if let Some(votes) = within(counts, self.n) {
            return Ok(self.cells[cell(votes, self.n)]);
        }
        let label = self.final_label(counts, self.open_total(counts, 0)?);
        Ok(label.map_or(OPEN, |label| STOP | label.column_bits()))
    }

    /// The number of votes of counts that are no place of the table, if the rule takes them.
    pub(super) fn open_total(&self, counts: Counts, row: usize) -> Result<usize, Error> {
        let total = counts.total();
        let votes = total.round();
        if (total - votes).abs() > 1e-6 || votes > to_f64(self.n as u64) {
            let kind = if total.fract() == 0.0 { "" } else { "a whole number of " };
            let expected = format!("{kind}at most {}, the n of the rule", self.n);
            return Err(Error::input("counts", format!("has {total} votes"), expected).at(&[row]));
        }
        if !self.has_strengths {
            let expected = "whole votes; votes with strength have a lossless rule of their own";
            return Err(Error::input("counts", "has parts of votes", expected).at(&[row]));
        }
        let whole = Counts { tie: votes, ..Counts::default() }.as_whole();
        Ok(whole.map_or(self.n, |[_, votes, _]| index(votes)))
    }

    /// The label of counts of so many votes, with strength, that no further votes change.
    fn final_label(&self, counts: Counts, total: usize) -> Option<Label> {
        if total != self.n && !total.is_multiple_of(self.step) {
            return None;
        }
        let left = to_f64((self.n - total) as u64);
        fractional::settled(&self.model, counts, left, 0.0)
    }

    /// Whether so many of the votes that are left, all alike, may settle an item losslessly.
    pub(super) fn settles_after(
        &self,
        counts: Counts,
        more: usize,
        left: usize,
        offset: f64,
    ) -> bool {
        Label::ALL.into_iter().any(|label| {
            let mut after = counts;
            *after.of(label) += to_f64(more as u64);
            fractional::settled(&self.model, after, to_f64((left - more) as u64), offset).is_some()
        })
    }

    fn map<R: Rows + ?Sized, V: Send>(
        &self,
        rows: &R,
        out: &mut [V],
        execution: Execution<'_>,
        value: impl Fn(u8, [usize; 3]) -> V + Sync,
        between: impl Fn(Counts, usize) -> V + Sync,
    ) -> Result<(), Error> {
        same_length("out", out.len(), rows.len(), "counts")?;
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let mut buffer = Vec::new();
            let mut row = start;
            for out in part.chunks_mut(BLOCK) {
                watch.poll()?;
                let block = rows.block(row, out.len(), &mut buffer);
                let mut all_within = true;
                for (counts, out) in block.iter().zip(out.iter_mut()) {
                    let votes = counts.small();
                    let bits = R::Row::bits(std::slice::from_ref(counts));
                    // Two bits to spare, so that the sum of three does not wrap.
                    let good = bits >> 60 == 0 && votes[0] + votes[1] + votes[2] <= self.n;
                    all_within &= good;
                    let votes = if good { votes } else { [0; 3] };
                    *out = value(self.cells[cell(votes, self.n)], votes);
                }
                if !all_within {
                    for (i, (counts, out)) in block.iter().zip(out.iter_mut()).enumerate() {
                        let counts = counts.counts(row + i)?;
                        if within(counts, self.n).is_none() {
                            *out = between(counts, self.open_total(counts, row + i)?);
                        }
                    }
                }
                row += out.len();
            }
            Ok(())
        })
    }
}

fn no_predictive() -> Error {
    let expected = "the distribution of the votes: this rule or its forecasts depend on it";
    Error::value("votes", "None", expected)
}

/// Decides one place, whose sum over the next votes is given: what is expected if the rule is
/// followed from here, and the place's cell.
#[inline]
fn follow(sum: &mut Outlook, criterion: Criterion, may_stop: bool) -> u8 {
    let chance = sum.chance();
    let label = match criterion {
        Criterion::CostOptimal { .. } => sum.best(),
        _ => sum.likeliest(),
    };
    let others = sum.others(label);
    let loss = sum.errors[label.column()];
    let [votes_left, _, error] = sum.followed;
    let stops = may_stop
        && match criterion {
            Criterion::Lossless => others == 0.0,
            Criterion::RiskBounded { epsilon } => others < epsilon * chance,
            Criterion::CostOptimal { price } => {
                loss <= error + price * (votes_left + chance) + 1e-12 * chance
            }
        };
    if stops {
        sum.followed = [0.0, others, loss];
        return STOP | label.column_bits();
    }
    sum.followed[0] += chance;
    label.column_bits()
}

/// The cells of all counts, from those by place.
fn cells(n: usize, by_place: &[u8]) -> Vec<u8> {
    let mut cells = vec![OPEN; (n + 1) * (n + 1) * (n + 1)];
    let mut rest = by_place;
    for total in 0..=n {
        for minus in 0..=total {
            let (row, left) = rest.split_at(total - minus + 1);
            rest = left;
            // One more plus for one tie less.
            let first = cell([minus, total - minus, 0], n);
            for (plus, &value) in row.iter().enumerate() {
                cells[first - n * plus] = value;
            }
        }
    }
    cells
}

#[inline]
const fn cell([minus, tie, plus]: [usize; 3], n: usize) -> usize {
    (minus * (n + 1) + tie) * (n + 1) + plus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossless_rule_takes_parts_of_votes_if_it_is_made_for_strengths() {
        let model = Model::new(1.4, 1.0, 0.9).unwrap();
        let whole = StoppingRule::new(model, 8, 2, Criterion::Lossless, None).unwrap();
        let rule = whole.clone().of_strengths().unwrap();
        let mut n_stopped = 0;
        for total in 0..=8_u32 {
            for (i, j) in (0..=2 * total).flat_map(|i| (0..=2 * total - i).map(move |j| (i, j))) {
                let [minus, plus] = [i, j].map(|k| f64::from(k) / 2.0);
                let counts = Counts { minus, tie: f64::from(total) - minus - plus, plus };
                let stops = rule.stops(counts).unwrap();
                assert_eq!(rule.stops(counts.mirrored()).unwrap(), stops);
                assert!(total % 2 == 0 || !stops);
                let n_asked = rule.votes_to_ask(counts).unwrap();
                assert_eq!(n_asked == 0, stops);
                assert!((total + u32::from(n_asked)) % 2 == 0 && n_asked <= 8);
                if counts.as_whole().is_some() {
                    assert!(!stops || whole.stops(counts).unwrap());
                } else {
                    let error = whole.stops(counts).unwrap_err().to_string();
                    assert!(error.starts_with("counts[0] has parts of votes, expected whole"));
                    assert_eq!(whole.forecast(counts).unwrap_err().to_string(), error);
                }
                n_stopped += u32::from(stops);
            }
        }
        assert!(n_stopped > 30);
        let error = rule.stops(Counts::new(0.5, 0, 0).unwrap()).unwrap_err().to_string();
        let expected = "a whole number of at most 8, the n of the rule";
        assert_eq!(error, format!("counts[0] has 0.5 votes, expected {expected}"));
    }

    #[test]
    fn other_rules_are_of_whole_votes() {
        let predictive = Predictive::new(&[(1.0, [1.0, 1.0, 1.0])]).unwrap();
        for criterion in
            [Criterion::RiskBounded { epsilon: 0.1 }, Criterion::CostOptimal { price: 0.1 }]
        {
            let model = Model::new(1.4, 1.0, 0.9).unwrap();
            let rule = StoppingRule::new(model, 8, 1, criterion, Some(&predictive)).unwrap();
            assert!(rule.stops(Counts::new(0.5, 0.5, 2).unwrap()).is_err());
            assert!(rule.of_strengths().is_err());
        }
    }
}
