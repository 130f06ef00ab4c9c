use std::sync::OnceLock;

use super::lattice::{check, counts_of, layer, place, pull, within};
use super::outlook::{Outlook, full_decisions, to_counts};
use super::{Forecast, Predictive};
use crate::counts::{CountRow, Counts, Rows};
use crate::error::same_length;
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
    model: Model,
    n: usize,
    /// By minus, tie and plus, each up to `n`.
    cells: Vec<u8>,
    /// By place.
    forecasts: Vec<Forecast>,
    /// By place, made when first asked for: fewest votes after which an item may be settled.
    asks: OnceLock<Vec<u8>>,
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
        match (predictive, criterion) {
            (Some(predictive), _) => {
                let full: Vec<Outlook> = Outlook::full(&model, n, predictive).collect();
                Ok(Self::foreseen(model, n, step, criterion, &full))
            }
            (None, Criterion::Lossless) => Ok(Self::unforeseen(model, n, step)),
            (None, _) => Err(no_predictive()),
        }
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
        let full: Vec<Outlook> = Outlook::full(model, n, predictive).collect();
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

    /// By the sets of labels that are still possible.
    fn unforeseen(model: Model, n: usize, step: usize) -> Self {
        let mut possible = vec![0_u8; layer(n + 1)];
        for (labels, label) in possible.iter_mut().skip(layer(n)).zip(full_decisions(&model, n)) {
            *labels = 1 << label.column();
        }
        for total in (0..n).rev() {
            pull(&mut possible, total, |minus, tie, plus| minus | tie | plus);
        }
        for total in 0..=n {
            let may_stop = total.is_multiple_of(step);
            for labels in &mut possible[layer(total)..layer(total + 1)] {
                let settled = may_stop && labels.is_power_of_two();
                *labels = if settled { STOP | (*labels >> 1) } else { OPEN };
            }
        }
        Self { model, n, cells: cells(n, &possible), forecasts: Vec::new(), asks: OnceLock::new() }
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
                let [votes_left, change, error] = outlook.followed.map(|joint| joint * per_chance);
                Forecast { votes_left, change, error }
            })
            .collect();
        Self { model, n, cells: cells(n, &decided), forecasts, asks: OnceLock::new() }
    }

    /// The model that decides by all `n` votes.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The most votes an item gets.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Whether an item with these votes is settled.
    ///
    /// # Errors
    /// [`Error::Input`] for more than `n` votes.
    pub fn stops(&self, counts: Counts) -> Result<bool, Error> {
        self.look_up(counts).map(|(cell, _)| cell & STOP != 0)
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
        self.look_up(counts).map(|(cell, _)| self.label(cell, counts))
    }

    /// What is expected from these votes on; `None` without a predictive distribution.
    ///
    /// # Errors
    /// As [`stops`](Self::stops).
    pub fn forecast(&self, counts: Counts) -> Result<Option<Forecast>, Error> {
        self.look_up(counts).map(|(_, votes)| self.forecasts.get(place(votes)).copied())
    }

    /// How many votes to ask for at once: the fewest after which the item may be settled, 0 where
    /// it is. To ask for them one by one would save none of them.
    ///
    /// # Errors
    /// As [`stops`](Self::stops).
    pub fn votes_to_ask(&self, counts: Counts) -> Result<u8, Error> {
        let (_, votes) = self.look_up(counts)?;
        Ok(self.asks()[place(votes)])
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
        self.map(rows, out, execution, |_, votes| asks[place(votes)])
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
            match Label::parse(vote, "votes", seen)? {
                Label::Minus => counts.minus += 1,
                Label::Tie => counts.tie += 1,
                Label::Plus => counts.plus += 1,
            }
        }
        let came = format!("has {} rows", votes.len());
        Err(Error::input("votes", came, format!("{} as in the rule", self.n)))
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
    #[must_use]
    pub fn start(&self) -> Option<Forecast> {
        self.forecasts.first().copied()
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
        self.map(rows, out, execution, |cell, _| cell & STOP != 0)
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
        self.map(rows, out, execution, |cell, votes| match i8::try_from(cell & OPEN) {
            Ok(column @ 0..=2) => column - 1,
            _ => self.label(cell, to_counts(votes)).value(),
        })
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
        self.map(rows, out, execution, |_, votes| {
            let Forecast { votes_left, change, error } = self.forecasts[place(votes)];
            [votes_left, change, error]
        })
    }

    fn label(&self, cell: u8, counts: Counts) -> Label {
        match cell & OPEN {
            0 => Label::Minus,
            1 => Label::Tie,
            2 => Label::Plus,
            _ => self.model.decide(counts),
        }
    }

    fn look_up(&self, counts: Counts) -> Result<(u8, [usize; 3]), Error> {
        let votes = within(counts, self.n).ok_or_else(|| beyond(counts, 0, self.n))?;
        Ok((self.cells[cell(votes, self.n)], votes))
    }

    fn map<R: Rows + ?Sized, V: Send>(
        &self,
        rows: &R,
        out: &mut [V],
        execution: Execution<'_>,
        value: impl Fn(u8, [usize; 3]) -> V + Sync,
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
                    self.complain(block, row)?;
                }
                row += out.len();
            }
            Ok(())
        })
    }

    /// The error of the first bad row of a block.
    fn complain(&self, block: &[impl CountRow], start: usize) -> Result<(), Error> {
        for (row, counts) in (start..).zip(block) {
            let counts = counts.counts(row)?;
            if within(counts, self.n).is_none() {
                return Err(beyond(counts, row, self.n));
            }
        }
        Ok(())
    }
}

fn beyond(counts: Counts, row: usize, n: usize) -> Error {
    let total = [counts.minus, counts.tie, counts.plus].map(u128::from).iter().sum::<u128>();
    let expected = format!("at most {n}, the n of the rule");
    Error::input("counts", format!("has {total} votes"), expected).at(&[row])
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
