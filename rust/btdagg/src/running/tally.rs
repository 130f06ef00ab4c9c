use rustc_hash::FxHashMap;

use super::ids::{Ids, Keys, integer};
use crate::memory::filled;
use crate::parallel::{Watch, for_each_part};
use crate::stopping::StoppingRule;
use crate::{Counts, Error, Execution, Label};

/// Samples of an item and channel are numbered below this.
pub const MAX_SAMPLES: u32 = 4096;

/// Lanes of a channel.
const MAX_BLOCKS: u32 = MAX_SAMPLES / 64;

/// Upper bits of the hash that say which shard an item is in. Shards fit a core's cache where
/// there are a million items, and threads share them out.
const SHARD_BITS: u32 = 8;

/// Rows that are sorted by shard at a time.
const ROWS: usize = 1 << 21;

/// What 64 samples voted: a bit for each sample and label, in label order. Of a tally that does not
/// look at samples, three counts.
pub type Planes = [u64; 3];

/// Rows of votes; which items they are for comes beside them.
#[derive(Debug, Clone, Copy)]
pub struct Votes<'a> {
    /// −1, 0 or +1.
    pub votes: &'a [i8],
    /// Number of each sample in its channel, below [`MAX_SAMPLES`]; 0 where there are none.
    pub samples: Option<&'a [u32]>,
    /// Number of who was asked and how, such as judge and order; 0 where there are none.
    pub channels: Option<&'a [u32]>,
}

impl Votes<'_> {
    fn check_lengths(&self, n_items: usize) -> Result<(), Error> {
        let lengths = [
            ("votes", Some(self.votes.len())),
            ("samples", self.samples.map(<[u32]>::len)),
            ("channels", self.channels.map(<[u32]>::len)),
        ];
        for (name, got) in lengths {
            if let Some(got) = got.filter(|&got| got != n_items) {
                return Err(Error::Length { name, got, wanted: n_items, other: "items" });
            }
        }
        Ok(())
    }

    #[inline]
    fn sample(&self, row: usize) -> u32 {
        self.samples.map_or(0, |samples| samples[row])
    }

    #[inline]
    fn channel(&self, row: usize) -> u32 {
        self.channels.map_or(0, |channels| channels[row])
    }
}

/// An id as it is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// An integer.
    Integer(i64),
    /// A text as UTF-8.
    Text(&'a [u8]),
}

/// Samples of one item that came with different votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Row of the item in the order of ids.
    pub row: usize,
    /// Channel of the sample.
    pub channel: u32,
    /// The sample.
    pub sample: u32,
    /// Which labels it came with, in label order.
    pub labels: [bool; 3],
}

/// Votes of items by sample, in any order and from many sources.
///
/// Ids are all integers or all texts, and are listed in ascending order, whatever order they came
/// in.
#[derive(Debug, Clone)]
pub struct RunningTally {
    shards: Vec<Shard>,
    /// Channel and number of the 64 samples that each lane holds.
    lanes: Vec<(u32, u32)>,
    deduplicates: bool,
    has_texts: bool,
}

#[derive(Debug, Clone, Default)]
struct Shard {
    ids: Ids,
    /// By lane and place; a lane ends with the last place that has votes in it.
    lanes: Vec<Vec<Planes>>,
    /// By place: whether the item was reported as settled. Ends with the last that was.
    reported: Vec<bool>,
}

/// A row in the order of shards.
#[derive(Clone, Copy, Default)]
struct Routed {
    hash: u64,
    /// Row among those that are sorted at a time.
    row: u32,
    lane: u16,
    /// Number of the sample in its lane.
    bit: u8,
    column: u8,
}

impl RunningTally {
    /// No votes yet. One that `deduplicates` counts a sample once however often it comes; ids are
    /// integers unless it `has_texts`.
    #[must_use]
    pub fn new(deduplicates: bool, has_texts: bool) -> Self {
        let shards = vec![Shard::default(); 1 << SHARD_BITS];
        Self { shards, lanes: Vec::new(), deduplicates, has_texts }
    }

    /// Whether ids are texts.
    #[must_use]
    pub const fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Whether repeated samples are counted once.
    #[must_use]
    pub const fn deduplicates(&self) -> bool {
        self.deduplicates
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.ids.len()).sum()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds votes. Where this fails the tally is as it was.
    ///
    /// # Errors
    /// [`Error::IdKind`]; [`Error::Length`]; [`Error::Label`] or [`Error::Sample`] for the first bad row;
    /// [`Error::TooManyChannels`]; [`Error::Interrupted`], asked before the first vote is added.
    pub fn add(
        &mut self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.check(keys, votes, execution)?;
        for start in (0..keys.len()).step_by(ROWS) {
            let (routed, ends) = self.route(keys, votes, start..keys.len().min(start + ROWS))?;
            self.apply(keys, start, &routed, &ends, execution)?;
        }
        Ok(())
    }

    /// Whether each row is a vote not counted yet for an item that was reported as settled; none if
    /// no item was.
    ///
    /// # Errors
    /// [`Error::IdKind`]; [`Error::Length`].
    pub fn late(&self, keys: &Keys<'_>, votes: &Votes<'_>) -> Result<Option<Vec<bool>>, Error> {
        self.check_kind(keys)?;
        votes.check_lengths(keys.len())?;
        if self.shards.iter().all(|shard| shard.reported.is_empty()) {
            return Ok(None);
        }
        let lanes = numbered(&self.lanes);
        let is_late = |row: usize| {
            let hash = keys.hash(row);
            let shard = &self.shards[shard_of(hash)];
            let Ok(place) = shard.ids.find(keys, row, hash) else { return false };
            if !shard.reported.get(place).copied().unwrap_or(false) {
                return false;
            }
            let sample = votes.sample(row);
            let lane = lanes.get(&self.block(votes.channel(row), sample));
            let planes = lane.and_then(|&lane| shard.lanes.get(lane)?.get(place)).copied();
            let known = planes.unwrap_or_default()[column(votes.votes[row])];
            !self.deduplicates || known >> (sample % 64) & 1 == 0
        };
        Ok(Some((0..keys.len()).map(is_late).collect()))
    }

    fn check_kind(&self, keys: &Keys<'_>) -> Result<(), Error> {
        if keys.are_texts() == self.has_texts { Ok(()) } else { Err(Error::IdKind) }
    }

    fn check(
        &mut self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.check_kind(keys)?;
        votes.check_lengths(keys.len())?;
        let mut watch = Watch::alone(execution);
        let mut lanes = self.lanes.clone();
        let mut known = numbered(&lanes);
        let mut last = None;
        for (row, &vote) in votes.votes.iter().enumerate() {
            if row % (1 << 16) == 0 {
                watch.poll()?;
            }
            if !(-1..=1).contains(&vote) {
                return Err(Error::Label { name: "votes", row, value: vote.to_string() });
            }
            let sample = votes.sample(row);
            if sample >= MAX_SAMPLES {
                return Err(Error::Sample { row, value: sample, most: MAX_SAMPLES - 1 });
            }
            let block = self.block(votes.channel(row), sample);
            if last != Some(block) {
                last = Some(block);
                number(&mut lanes, &mut known, block);
            }
        }
        watch.ask_now()?;
        self.set_lanes(lanes)
    }

    fn set_lanes(&mut self, lanes: Vec<(u32, u32)>) -> Result<(), Error> {
        if lanes.len() > usize::from(u16::MAX) {
            return Err(Error::TooManyChannels { most: u16::MAX });
        }
        self.lanes = lanes;
        Ok(())
    }

    fn block(&self, channel: u32, sample: u32) -> (u32, u32) {
        (channel, if self.deduplicates { sample / 64 } else { 0 })
    }

    /// Sorts rows by shard, and says where each shard's rows end.
    fn route(
        &self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        rows: std::ops::Range<usize>,
    ) -> Result<(Vec<Routed>, Vec<usize>), Error> {
        let hashes = keys.hashes(rows.clone())?;
        let mut ends = vec![0_usize; 1 << SHARD_BITS];
        hashes.iter().for_each(|&hash| ends[shard_of(hash)] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += *end;
            *end = start - *end; // where the shard begins; after its rows are placed, its end
        }
        let mut routed = filled(Routed::default(), hashes.len())?;
        let lanes = numbered(&self.lanes);
        let mut last = (self.lanes.first().copied(), 0);
        for ((place, row), &hash) in (0..).zip(rows).zip(&hashes) {
            let sample = votes.sample(row);
            let block = self.block(votes.channel(row), sample);
            if last.0 != Some(block) {
                // `check` has seen to it that every block has a lane and its number fits.
                let lane = u16::try_from(lanes[&block]);
                let lane = lane.map_err(|_| Error::TooManyChannels { most: u16::MAX })?;
                last = (Some(block), lane);
            }
            let end = &mut ends[shard_of(hash)];
            routed[*end] = Routed {
                hash,
                row: place,
                lane: last.1,
                bit: (sample % 64) as u8,
                column: (votes.votes[row] + 1).cast_unsigned(),
            };
            *end += 1;
        }
        Ok((routed, ends))
    }

    fn apply(
        &mut self,
        keys: &Keys<'_>,
        first_row: usize,
        routed: &[Routed],
        ends: &[usize],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let n_lanes = self.lanes.len();
        let deduplicates = self.deduplicates;
        // Once it has begun it goes to the end, so that no vote is half added.
        for_each_part(&mut self.shards, 1, execution.unstoppable(), |first, shards, _| {
            for (number, shard) in (first..).zip(shards) {
                let start = if number == 0 { 0 } else { ends[number - 1] };
                shard.lanes.resize_with(n_lanes, Vec::new);
                for routed in &routed[start..ends[number]] {
                    let row = first_row + routed.row as usize;
                    let place = shard.ids.find_or_insert(keys, row, routed.hash);
                    let planes = at(&mut shard.lanes[usize::from(routed.lane)], place);
                    let votes = &mut planes[usize::from(routed.column)];
                    if deduplicates {
                        *votes |= 1 << routed.bit;
                    } else {
                        *votes = votes.saturating_add(1);
                    }
                }
            }
            Ok(())
        })
    }

    /// Takes over the votes of another tally, whose channel `c` is the `channels[c]` of this one:
    /// the union of their samples or, without samples, the sum.
    ///
    /// # Errors
    /// [`Error::IdKind`]; [`Error::Length`] if `channels` does not have all of the other's channels;
    /// [`Error::TooManyChannels`]. This tally is then as it was.
    pub fn merge(&mut self, other: &Self, channels: &[u32]) -> Result<(), Error> {
        if self.has_texts != other.has_texts {
            return Err(Error::IdKind);
        }
        let mut lanes = self.lanes.clone();
        let mut known = numbered(&lanes);
        let mut numbers = Vec::with_capacity(other.lanes.len());
        for &(channel, block) in &other.lanes {
            let Some(&here) = channels.get(channel as usize) else {
                let (got, wanted) = (channels.len(), channel as usize + 1);
                let (name, other) = ("channels", "the other tally");
                return Err(Error::Length { name, got, wanted, other });
            };
            numbers.push(number(&mut lanes, &mut known, (here, block)));
        }
        self.set_lanes(lanes)?;
        for (mine, theirs) in self.shards.iter_mut().zip(&other.shards) {
            mine.lanes.resize_with(self.lanes.len(), Vec::new);
            for place in 0..theirs.ids.len() {
                let to = mine.ids.adopt(&theirs.ids, place);
                for (lane, &number) in theirs.lanes.iter().zip(&numbers) {
                    let Some(planes) = lane.get(place).filter(|planes| **planes != [0; 3]) else {
                        continue;
                    };
                    for (mine, theirs) in at(&mut mine.lanes[number], to).iter_mut().zip(planes) {
                        let sum = mine.saturating_add(*theirs);
                        *mine = if self.deduplicates { *mine | theirs } else { sum };
                    }
                }
                if theirs.reported.get(place).copied().unwrap_or(false) {
                    *at(&mut mine.reported, to) = true;
                }
            }
        }
        Ok(())
    }

    /// Counts of the item of a row, if there is one.
    #[must_use]
    pub fn counts(&self, keys: &Keys<'_>, row: usize) -> Option<Counts> {
        let hash = keys.hash(row);
        let shard = &self.shards[shard_of(hash)];
        let place = shard.ids.find(keys, row, hash).ok()?;
        Some(shard.counts(place, self.deduplicates))
    }

    /// Calls `take` for every item in ascending order of ids.
    pub fn for_each(&self, mut take: impl FnMut(Id<'_>, Counts)) {
        for (shard, place) in self.sorted(|_, _| true) {
            take(self.id(shard, place), self.shards[shard].counts(place, self.deduplicates));
        }
    }

    /// Calls `take` for every item in ascending order that was not reported yet and is settled,
    /// with its label; from then on it counts as reported.
    ///
    /// Settled is an item at whose counts the rule stops, or that has more votes than the rule's
    /// `n`; the latter the model decides by all of them.
    pub fn settle(&mut self, rule: &StoppingRule, mut take: impl FnMut(Id<'_>, Counts, Label)) {
        let settled = |shard: &Shard, place: usize| {
            !shard.reported.get(place).copied().unwrap_or(false)
                && rule.stops(shard.counts(place, self.deduplicates)).unwrap_or(true)
        };
        for (number, place) in self.sorted(settled) {
            let shard = &mut self.shards[number];
            *at(&mut shard.reported, place) = true;
            let counts = shard.counts(place, self.deduplicates);
            let label = rule.decide(counts).unwrap_or_else(|_| rule.model().decide(counts));
            take(self.id(number, place), counts, label);
        }
    }

    /// Samples that came with different votes, by item in ascending order.
    #[must_use]
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut found = Vec::new();
        if !self.deduplicates {
            return found;
        }
        for (row, (shard, place)) in self.sorted(|_, _| true).into_iter().enumerate() {
            for (lane, &(channel, block)) in self.shards[shard].lanes.iter().zip(&self.lanes) {
                let planes = lane.get(place).copied().unwrap_or_default();
                let mut left = conflicts(planes);
                while left != 0 {
                    let bit = left.trailing_zeros();
                    let labels = planes.map(|plane| plane >> bit & 1 == 1);
                    found.push(Conflict { row, channel, sample: 64 * block + bit, labels });
                    left &= left - 1;
                }
            }
        }
        found.sort_unstable_by_key(|conflict| (conflict.row, conflict.channel, conflict.sample));
        found
    }

    /// Channel and number of 64 samples of every lane that holds votes.
    #[must_use]
    pub fn lanes(&self) -> &[(u32, u32)] {
        &self.lanes
    }

    /// Everything that is held, by item in ascending order: the id, whether it was reported, and
    /// its planes by lane.
    pub fn export(&self, mut take: impl FnMut(Id<'_>, bool, &mut dyn Iterator<Item = Planes>)) {
        for (number, place) in self.sorted(|_, _| true) {
            let shard = &self.shards[number];
            let mut planes = (0..self.lanes.len()).map(|lane| {
                shard.lanes.get(lane).and_then(|lane| lane.get(place)).copied().unwrap_or_default()
            });
            let was_reported = shard.reported.get(place).copied().unwrap_or(false);
            take(self.id(number, place), was_reported, &mut planes);
        }
    }

    /// Puts back what [`export`](Self::export) gave: `planes` item by item, lane by lane.
    ///
    /// # Errors
    /// [`Error::State`] if lengths disagree, an id or lane is there twice or a text is none;
    /// [`Error::TooManyChannels`].
    pub fn import(
        deduplicates: bool,
        lanes: Vec<(u32, u32)>,
        keys: &Keys<'_>,
        reported: &[bool],
        planes: &[Planes],
    ) -> Result<Self, Error> {
        if reported.len() != keys.len() || planes.len() != keys.len() * lanes.len() {
            return Err(Error::State { expected: "as many planes and marks as items and lanes" });
        }
        if numbered(&lanes).len() < lanes.len() || lanes.iter().any(|lane| lane.1 >= MAX_BLOCKS) {
            return Err(Error::State { expected: "every lane once, of samples below the largest" });
        }
        if !(0..keys.len()).all(|row| std::str::from_utf8(keys.text(row)).is_ok()) {
            return Err(Error::State { expected: "texts in UTF-8" });
        }
        let mut tally = Self::new(deduplicates, keys.are_texts());
        tally.set_lanes(lanes)?;
        for (row, &reported) in reported.iter().enumerate() {
            let hash = keys.hash(row);
            let shard = &mut tally.shards[shard_of(hash)];
            shard.lanes.resize_with(tally.lanes.len(), Vec::new);
            let place = shard.ids.find_or_insert(keys, row, hash);
            if place + 1 != shard.ids.len() {
                return Err(Error::State { expected: "every item once" });
            }
            let own = planes.iter().skip(row * tally.lanes.len());
            for (lane, &planes) in shard.lanes.iter_mut().zip(own) {
                if planes != [0; 3] {
                    *at(lane, place) = planes;
                }
            }
            if reported {
                *at(&mut shard.reported, place) = true;
            }
        }
        Ok(tally)
    }

    fn id(&self, shard: usize, place: usize) -> Id<'_> {
        let ids = &self.shards[shard].ids;
        if self.has_texts {
            Id::Text(ids.text(place))
        } else {
            Id::Integer(integer(ids.hash(place)))
        }
    }

    /// Shard and place of the items that are wanted, in ascending order of ids.
    fn sorted(&self, wanted: impl Fn(&Shard, usize) -> bool) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let places = (0..shard.ids.len()).filter(|&place| wanted(shard, place));
            found.extend(places.map(|place| (number, place)));
        }
        if self.has_texts {
            self.sort_by(&mut found, Ids::text);
        } else {
            self.sort_by(&mut found, |ids, place| integer(ids.hash(place)));
        }
        found
    }

    fn sort_by<'a, K: Ord>(
        &'a self,
        places: &mut Vec<(usize, usize)>,
        key: impl Fn(&'a Ids, usize) -> K,
    ) {
        let with_key = |&(shard, place): &(usize, usize)| {
            (key(&self.shards[shard].ids, place), (shard, place))
        };
        let mut keyed: Vec<(K, (usize, usize))> = places.iter().map(with_key).collect();
        keyed.sort_unstable();
        *places = keyed.into_iter().map(|(_, place)| place).collect();
    }
}

impl Shard {
    fn counts(&self, place: usize, deduplicates: bool) -> Counts {
        let mut sum = Counts::default();
        for planes in self.lanes.iter().filter_map(|lane| lane.get(place)) {
            let [minus, tie, plus] = *planes;
            let counts = if deduplicates { count(*planes) } else { Counts::new(minus, tie, plus) };
            sum.minus = sum.minus.saturating_add(counts.minus);
            sum.tie = sum.tie.saturating_add(counts.tie);
            sum.plus = sum.plus.saturating_add(counts.plus);
        }
        sum
    }
}

/// The votes of samples that came with one label alone.
fn count(planes: Planes) -> Counts {
    let clear = !conflicts(planes);
    let [minus, tie, plus] = planes.map(|plane| u64::from((plane & clear).count_ones()));
    Counts::new(minus, tie, plus)
}

/// A bit for each sample that came with several.
const fn conflicts([minus, tie, plus]: Planes) -> u64 {
    (minus & tie) | (minus & plus) | (tie & plus)
}

/// Column of a vote, in label order.
fn column(vote: i8) -> usize {
    match vote {
        -1 => 0,
        0 => 1,
        _ => 2,
    }
}

/// The number of a lane, a new one where it has none.
fn number(
    lanes: &mut Vec<(u32, u32)>,
    known: &mut FxHashMap<(u32, u32), usize>,
    lane: (u32, u32),
) -> usize {
    *known.entry(lane).or_insert_with(|| {
        lanes.push(lane);
        lanes.len() - 1
    })
}

/// Numbers of lanes.
fn numbered(lanes: &[(u32, u32)]) -> FxHashMap<(u32, u32), usize> {
    lanes.iter().copied().zip(0..).collect()
}

/// The value at a place, which is made where the values end before it.
#[inline]
fn at<V: Default + Clone>(values: &mut Vec<V>, place: usize) -> &mut V {
    if values.len() <= place {
        values.resize(place + 1, V::default());
    }
    &mut values[place]
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of(items: &[i64], channel: u32) -> RunningTally {
        let mut tally = RunningTally::new(true, false);
        let channels = vec![channel; items.len()];
        let votes =
            Votes { votes: &vec![1; items.len()], samples: None, channels: Some(&channels) };
        tally.add(&Keys::Integers(items), &votes, Execution::single()).unwrap();
        tally
    }

    #[test]
    fn merging_wants_all_channels_of_the_other() {
        let (mut tally, other) = (tally_of(&[5], 0), tally_of(&[5], 2));
        let error = tally.merge(&other, &[7, 8]).unwrap_err().to_string();
        assert_eq!(error, "channels has 2 rows, expected 3 as in the other tally");
        let counts = |tally: &RunningTally| tally.counts(&Keys::Integers(&[5]), 0);
        assert_eq!(counts(&tally), Some(Counts::new(0, 0, 1)));
        tally.merge(&other, &[7, 8, 9]).unwrap();
        assert_eq!(counts(&tally), Some(Counts::new(0, 0, 2)));
        assert_eq!(tally.lanes(), [(0, 0), (9, 0)]);
        assert_eq!(tally.merge(&RunningTally::new(true, true), &[]), Err(Error::IdKind));
    }
}
