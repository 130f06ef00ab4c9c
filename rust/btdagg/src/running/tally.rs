use rustc_hash::FxHashMap;

use super::ids::{Index, Keys, integer};
use crate::error::same_length;
use crate::memory::{collected, filled, reserved};
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

/// The lane of a vote that is left out.
const DROPPED: u16 = u16::MAX;

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
        let n_samples = self.samples.map_or(n_items, <[u32]>::len);
        let n_channels = self.channels.map_or(n_items, <[u32]>::len);
        same_length("votes", self.votes.len(), n_items, "items")?;
        same_length("samples", n_samples, n_items, "items")?;
        same_length("channels", n_channels, n_items, "items")
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

/// Ids of items in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    /// Integers.
    Integers(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
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
    ids: Index,
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
    pub fn new(deduplicates: bool, has_texts: bool) -> Self {
        let shards = vec![Shard::default(); 1 << SHARD_BITS];
        Self { shards, lanes: Vec::new(), deduplicates, has_texts }
    }

    /// Whether ids are texts.
    pub const fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.ids.len()).sum()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds votes, and says how many were late and left out: new votes for items that were reported
    /// as settled, which are an error unless they are dropped.
    ///
    /// Where this fails the tally is as it was, unless memory ran out on the way.
    ///
    /// # Errors
    /// [`Error::Input`]
    /// for the first bad row; [`Error::Input`]; [`Error::Memory`]; [`Error::Interrupted`],
    /// asked before the first vote is added.
    pub fn add(
        &mut self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        drop_late: bool,
        execution: Execution<'_>,
    ) -> Result<usize, Error> {
        let lanes = self.check(keys, votes, drop_late, execution)?;
        for start in (0..keys.len()).step_by(ROWS) {
            let rows = start..keys.len().min(start + ROWS);
            let (routed, ends) = route(keys, votes, rows, &lanes)?;
            self.apply(keys, start, &routed, &ends, execution)?;
        }
        Ok(lanes.into_iter().filter(|&lane| lane == DROPPED).count())
    }

    /// Checks rows, and makes the lanes that they need: the lane of each, or that it is late.
    fn check(
        &mut self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        drop_late: bool,
        execution: Execution<'_>,
    ) -> Result<Vec<u16>, Error> {
        if keys.are_texts() != self.has_texts {
            return Err(other_kind());
        }
        votes.check_lengths(keys.len())?;
        let may_be_late = self.shards.iter().any(|shard| !shard.reported.is_empty());
        let (mut lanes, mut numbers) = (self.lanes.clone(), numbered(&self.lanes));
        let mut lane_of_rows = reserved(keys.len())?;
        let mut watch = Watch::alone(execution);
        let mut last = (None, 0);
        for (row, &vote) in votes.votes.iter().enumerate() {
            if row % (1 << 16) == 0 {
                watch.poll()?;
            }
            Label::parse(vote, "votes", row)?;
            let sample = votes.sample(row);
            if sample >= MAX_SAMPLES {
                let expected = format!("an integer from 0 to {}", MAX_SAMPLES - 1);
                return Err(Error::value("samples", sample, expected).at(&[row]));
            }
            let block = self.block(votes.channel(row), sample);
            if may_be_late && self.is_late(keys, votes, row, numbers.get(&block).copied()) {
                if !drop_late {
                    let got = format!("is {}, which is settled", keys.shown(row));
                    let expected = "votes of open items; late='drop' leaves them out";
                    return Err(Error::input("items", got, expected).at(&[row]));
                }
                lane_of_rows.push(DROPPED);
                continue;
            }
            if last.0 != Some(block) {
                let own = u16::try_from(number(&mut lanes, &mut numbers, block));
                let own = own.ok().filter(|&own| own < DROPPED);
                last = (Some(block), own.ok_or_else(too_many_channels)?);
            }
            lane_of_rows.push(last.1);
        }
        watch.ask_now()?;
        self.lanes = lanes;
        Ok(lane_of_rows)
    }

    /// Whether a row is a vote not counted yet for an item that was reported as settled.
    fn is_late(&self, keys: &Keys<'_>, votes: &Votes<'_>, row: usize, lane: Option<usize>) -> bool {
        let hash = keys.hash(row);
        let shard = &self.shards[shard_of(hash)];
        let Ok(place) = shard.ids.find(keys, row, hash) else { return false };
        if !shard.is_reported(place) {
            return false;
        }
        let planes = lane.and_then(|lane| shard.lanes.get(lane)?.get(place)).copied();
        let counted = planes.unwrap_or_default()[usize::from(column(votes.votes[row]))];
        !self.deduplicates || counted >> (votes.sample(row) % 64) & 1 == 0
    }

    fn block(&self, channel: u32, sample: u32) -> (u32, u32) {
        (channel, if self.deduplicates { sample / 64 } else { 0 })
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
        // Once it has begun it goes to the end, so that a batch is added whole.
        for_each_part(&mut self.shards, 1, execution.unstoppable(), |first, shards, _| {
            for (number, shard) in (first..).zip(shards) {
                let start = if number == 0 { 0 } else { ends[number - 1] };
                shard.lanes.resize_with(n_lanes, Vec::new);
                for routed in &routed[start..ends[number]] {
                    let row = first_row + routed.row as usize;
                    let place = shard.ids.find_or_insert(keys, row, routed.hash)?;
                    let planes = at(&mut shard.lanes[usize::from(routed.lane)], place)?;
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

    /// Counts of the item of a row, if there is one.
    pub fn counts(&self, keys: &Keys<'_>, row: usize) -> Option<Counts> {
        let hash = keys.hash(row);
        let shard = &self.shards[shard_of(hash)];
        let place = shard.ids.find(keys, row, hash).ok()?;
        Some(shard.counts(place, self.deduplicates))
    }

    /// All items and their counts.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn all_counts(&self) -> Result<(Ids, Vec<Counts>), Error> {
        let items = self.sorted(|_, _| true)?;
        let counts =
            |&(shard, place): &(usize, usize)| self.shards[shard].counts(place, self.deduplicates);
        Ok((self.ids(&items), collected(items.iter().map(counts))?))
    }

    /// The items that were not reported yet and are settled, with their labels and counts; from
    /// then on they count as reported.
    ///
    /// Settled is an item at whose counts the rule stops, or that has more votes than the rule's
    /// `n`; the latter the model decides by all of them.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn settle(&mut self, rule: &StoppingRule) -> Result<(Ids, Vec<Label>, Vec<Counts>), Error> {
        let settled = |shard: &Shard, place: usize| {
            !shard.is_reported(place)
                && rule.stops(shard.counts(place, self.deduplicates)).unwrap_or(true)
        };
        let items = self.sorted(settled)?;
        let (mut labels, mut all_counts) = (reserved(items.len())?, reserved(items.len())?);
        for &(number, place) in &items {
            let shard = &mut self.shards[number];
            *at(&mut shard.reported, place)? = true;
            let counts = shard.counts(place, self.deduplicates);
            labels.push(rule.decide(counts).unwrap_or_else(|_| rule.model().decide(counts)));
            all_counts.push(counts);
        }
        Ok((self.ids(&items), labels, all_counts))
    }

    /// Counts items as reported that are settled, given in ascending order of ids; returns which of
    /// them were not reported before.
    ///
    /// # Errors
    /// [`Error::Input`] if there is not one for each item; [`Error::Memory`].
    pub fn report(&mut self, settled: &[bool]) -> Result<Vec<bool>, Error> {
        let items = self.sorted(|_, _| true)?;
        same_length("settled", settled.len(), items.len(), "items")?;
        let mut is_new = filled(false, items.len())?;
        let rows = items.iter().zip(settled).zip(&mut is_new).filter(|((_, settled), _)| **settled);
        for ((&(number, place), _), is_new) in rows {
            *is_new = !std::mem::replace(at(&mut self.shards[number].reported, place)?, true);
        }
        Ok(is_new)
    }

    /// Channel and number of 64 samples of every lane that holds votes.
    pub fn lanes(&self) -> &[(u32, u32)] {
        &self.lanes
    }

    /// Everything that is held: items, whether each was reported as settled, and of each item what it
    /// has in every lane.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn export(&self) -> Result<(Ids, Vec<bool>, Vec<Planes>), Error> {
        let items = self.sorted(|_, _| true)?;
        let mut planes = reserved(items.len() * self.lanes.len())?;
        let mut reported = reserved(items.len())?;
        for &(number, place) in &items {
            let shard = &self.shards[number];
            let own = |lane| shard.lanes.get(lane).and_then(|lane: &Vec<Planes>| lane.get(place));
            planes.extend((0..self.lanes.len()).map(|lane| own(lane).copied().unwrap_or_default()));
            reported.push(shard.is_reported(place));
        }
        Ok((self.ids(&items), reported, planes))
    }

    /// Takes over what [`export`](Self::export) gave of another tally: the union of their samples
    /// or, without samples, the sum. `planes` are item by item, lane by lane.
    ///
    /// # Errors
    /// [`Error::Input`] if lengths disagree, there is no such lane or a text is
    /// none; [`Error::Input`]; [`Error::Memory`].
    pub fn absorb(
        &mut self,
        lanes: &[(u32, u32)],
        keys: &Keys<'_>,
        reported: &[bool],
        planes: &[Planes],
    ) -> Result<(), Error> {
        if keys.are_texts() != self.has_texts {
            return Err(other_kind());
        }
        let contradiction = |expected| Err(Error::input("state", "contradicts itself", expected));
        if reported.len() != keys.len() || planes.len() != keys.len() * lanes.len() {
            return contradiction("as many planes and marks as items and lanes");
        }
        if lanes.iter().any(|lane| lane.1 >= MAX_BLOCKS) {
            return contradiction("lanes of samples below the largest");
        }
        if !(0..keys.len()).all(|row| std::str::from_utf8(keys.text(row)).is_ok()) {
            return contradiction("texts in UTF-8");
        }
        let (mut own_lanes, mut numbers) = (self.lanes.clone(), numbered(&self.lanes));
        let here: Vec<usize> =
            lanes.iter().map(|&lane| number(&mut own_lanes, &mut numbers, lane)).collect();
        if own_lanes.len() > usize::from(DROPPED) {
            return Err(too_many_channels());
        }
        self.lanes = own_lanes;
        for (row, &is_reported) in reported.iter().enumerate() {
            let hash = keys.hash(row);
            let shard = &mut self.shards[shard_of(hash)];
            shard.lanes.resize_with(self.lanes.len(), Vec::new);
            let place = shard.ids.find_or_insert(keys, row, hash)?;
            for (&lane, theirs) in here.iter().zip(planes.iter().skip(row * lanes.len())) {
                if *theirs == [0; 3] {
                    continue;
                }
                let own = at(&mut shard.lanes[lane], place)?;
                for (own, &theirs) in own.iter_mut().zip(theirs) {
                    let sum = own.saturating_add(theirs);
                    *own = if self.deduplicates { *own | theirs } else { sum };
                }
            }
            if is_reported {
                *at(&mut shard.reported, place)? = true;
            }
        }
        Ok(())
    }

    fn ids(&self, items: &[(usize, usize)]) -> Ids {
        let items = items.iter().map(|&(shard, place)| (&self.shards[shard].ids, place));
        if self.has_texts {
            let text = |(ids, place): (&Index, _)| String::from_utf8_lossy(ids.text(place)).into();
            Ids::Texts(items.map(text).collect())
        } else {
            Ids::Integers(items.map(|(ids, place)| integer(ids.hash(place))).collect())
        }
    }

    /// Shard and place of the items that are wanted, in ascending order of ids.
    fn sorted(&self, wanted: impl Fn(&Shard, usize) -> bool) -> Result<Vec<(usize, usize)>, Error> {
        let mut places = reserved(self.len())?;
        for (number, shard) in self.shards.iter().enumerate() {
            let wanted = (0..shard.ids.len()).filter(|&place| wanted(shard, place));
            places.extend(wanted.map(|place| (number, place)));
        }
        if self.has_texts {
            places.sort_unstable_by_key(|&(shard, place)| self.shards[shard].ids.text(place));
        } else {
            places
                .sort_by_cached_key(|&(shard, place)| integer(self.shards[shard].ids.hash(place)));
        }
        Ok(places)
    }
}

impl Shard {
    fn is_reported(&self, place: usize) -> bool {
        self.reported.get(place).copied().unwrap_or(false)
    }

    fn counts(&self, place: usize, deduplicates: bool) -> Counts {
        let mut sum = [0_u64; 3];
        for planes in self.lanes.iter().filter_map(|lane| lane.get(place)) {
            let counts = if deduplicates { count(*planes) } else { *planes };
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let [minus, tie, plus] = sum;
        Counts::whole(minus, tie, plus)
    }
}

/// Sorts rows by shard, and says where each shard's rows end.
fn route(
    keys: &Keys<'_>,
    votes: &Votes<'_>,
    rows: std::ops::Range<usize>,
    lanes: &[u16],
) -> Result<(Vec<Routed>, Vec<usize>), Error> {
    let hashes = keys.hashes(rows.clone())?;
    let mut ends = vec![0_usize; 1 << SHARD_BITS];
    for (row, &hash) in rows.clone().zip(&hashes) {
        ends[shard_of(hash)] += usize::from(lanes[row] != DROPPED);
    }
    let mut start = 0;
    for end in &mut ends {
        start += *end;
        *end = start - *end; // where the shard begins; after its rows are placed, its end
    }
    let mut routed = filled(Routed::default(), hashes.len())?;
    for ((place, row), &hash) in (0..).zip(rows).zip(&hashes) {
        if lanes[row] == DROPPED {
            continue;
        }
        let end = &mut ends[shard_of(hash)];
        routed[*end] = Routed {
            hash,
            row: place,
            lane: lanes[row],
            bit: (votes.sample(row) % 64) as u8,
            column: column(votes.votes[row]),
        };
        *end += 1;
    }
    Ok((routed, ends))
}

/// Ids of another kind than those of a tally.
pub fn other_kind() -> Error {
    Error::input("items", "are of another kind than before", "integers or strings as before")
}

fn too_many_channels() -> Error {
    let got = format!("make with judges and orders more than {} channels of 64", u16::MAX);
    Error::input("samples", got, "fewer")
}

/// The votes of samples that came with one label alone.
fn count(planes: Planes) -> [u64; 3] {
    let clear = !conflicts(planes);
    planes.map(|plane| u64::from((plane & clear).count_ones()))
}

/// A bit for each sample that came with several.
const fn conflicts([minus, tie, plus]: Planes) -> u64 {
    (minus & tie) | (minus & plus) | (tie & plus)
}

/// Column of a vote, in label order.
const fn column(vote: i8) -> u8 {
    (vote + 1).cast_unsigned()
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
fn at<V: Default + Clone>(values: &mut Vec<V>, place: usize) -> Result<&mut V, Error> {
    if place >= values.len() {
        values.try_reserve(place + 1 - values.len()).map_err(|_| Error::Memory)?;
        values.resize(place + 1, V::default());
    }
    Ok(&mut values[place])
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absorbed_is_the_union_and_late_votes_are_refused_or_dropped() {
        let votes = Votes { votes: &[1, 1], samples: Some(&[0, 65]), channels: Some(&[2, 0]) };
        let texts = super::super::Texts::new(b"ab", 0, &[1, 2]).unwrap();
        let (integers, texts) = (Keys::Integers(&[5, -6]), Keys::Texts(texts));
        for keys in [integers, texts] {
            let mut tally = RunningTally::new(true, keys.are_texts());
            assert_eq!(tally.add(&keys, &votes, false, Execution::single()), Ok(0));
            let mut all = Vec::new();
            all.extend(tally.export().unwrap().2);
            if !keys.are_texts() {
                all.rotate_left(2); // -6 is first
            }
            let mut other = RunningTally::new(true, keys.are_texts());
            for _ in 0..2 {
                other.absorb(tally.lanes(), &keys, &[true, false], &all).unwrap();
            }
            assert_eq!(other.counts(&keys, 0), Some(Counts::whole(0, 0, 1)));
            let late = Votes { votes: &[0, 0], ..votes };
            let error = other.add(&keys, &late, false, Execution::single()).unwrap_err();
            let item = if keys.are_texts() { "'a'" } else { "5" };
            assert!(
                error.to_string().starts_with(&format!("items[0] is {item}, which is settled"))
            );
            assert_eq!(other.add(&keys, &late, true, Execution::single()), Ok(1));
            assert_eq!(other.add(&keys, &votes, false, Execution::single()), Ok(0));
            assert_eq!(other.counts(&keys, 0), Some(Counts::whole(0, 0, 1)));
            assert_eq!(other.counts(&keys, 1), Some(Counts::default())); // in conflict
        }
    }
}
