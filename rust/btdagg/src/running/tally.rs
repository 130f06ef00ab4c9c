use rustc_hash::FxHashMap;

use super::ids::{Ids, Keys};
use super::planes::{Conflict, MAX_SAMPLES, Planes, conflicts, count};
use crate::parallel::{Watch, for_each_part};
use crate::stopping::StoppingRule;
use crate::{Counts, Error, Execution, Label};

/// Upper bits of the hash that say which shard an item is in. Shards fit a core's cache where
/// there are a million items, and threads share them out.
const SHARD_BITS: u32 = 8;

/// Rows that are sorted by shard at a time.
const ROWS: usize = 1 << 21;

/// One vote; which item it is for comes beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// −1, 0 or +1.
    pub vote: i8,
    /// Number of the sample in its channel, below [`MAX_SAMPLES`]; not looked at by a tally that
    /// does not deduplicate.
    pub sample: u32,
    /// Number of who was asked and how, such as judge and order.
    pub channel: u32,
}

/// Rows of votes.
pub trait VoteRows: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vote of a row below [`len`](Self::len).
    fn vote(&self, row: usize) -> Vote;
}

impl VoteRows for [Vote] {
    fn len(&self) -> usize {
        <[Vote]>::len(self)
    }

    fn vote(&self, row: usize) -> Vote {
        self[row]
    }
}

/// Votes of items by sample, in any order and from many sources.
///
/// Ids are listed in ascending order, whatever order they came in.
#[derive(Debug, Clone)]
pub struct RunningTally<I> {
    shards: Vec<Shard<I>>,
    /// Channel and number of the 64 samples that each lane holds.
    lanes: Vec<(u32, u32)>,
    deduplicates: bool,
}

#[derive(Debug, Clone, Default)]
struct Shard<I> {
    ids: I,
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

impl<I: Ids> RunningTally<I> {
    /// No votes yet. One that `deduplicates` counts a sample once however often it comes.
    #[must_use]
    pub fn new(deduplicates: bool) -> Self {
        Self { shards: vec![Shard::default(); 1 << SHARD_BITS], lanes: Vec::new(), deduplicates }
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
    /// [`Error::Length`]; [`Error::Label`] or [`Error::Sample`] for the first bad row;
    /// [`Error::TooManyChannels`]; [`Error::Interrupted`], asked before the first vote is added.
    pub fn add<K: Keys<I> + ?Sized, V: VoteRows + ?Sized>(
        &mut self,
        keys: &K,
        votes: &V,
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.check(keys, votes, execution)?;
        for start in (0..votes.len()).step_by(ROWS) {
            let end = votes.len().min(start + ROWS);
            let (routed, ends) = self.route(keys, votes, start..end)?;
            self.apply(keys, start, &routed, &ends, execution)?;
        }
        Ok(())
    }

    /// Whether some item was reported as settled.
    #[must_use]
    pub fn has_reported(&self) -> bool {
        self.shards.iter().any(|shard| !shard.reported.is_empty())
    }

    /// Whether this is a vote not counted yet for an item that was reported as settled.
    #[must_use]
    pub fn is_late(&self, key: &I::Key, vote: Vote) -> bool {
        let hash = I::hash(key);
        let shard = &self.shards[shard_of(hash)];
        let Some(place) = shard.ids.find(key, hash) else { return false };
        if !shard.reported.get(place).copied().unwrap_or(false) {
            return false;
        }
        let block = (vote.channel, vote.sample / 64);
        let lane = self.lanes.iter().position(|&lane| lane == block);
        let planes = lane.and_then(|lane| shard.lanes.get(lane)?.get(place)).copied();
        let [minus, tie, plus] = planes.unwrap_or_default();
        let known = match vote.vote {
            -1 => minus,
            0 => tie,
            _ => plus,
        };
        !self.deduplicates || known >> (vote.sample % 64) & 1 == 0
    }

    fn check<K: Keys<I> + ?Sized, V: VoteRows + ?Sized>(
        &mut self,
        keys: &K,
        votes: &V,
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        if keys.len() != votes.len() {
            let (got, wanted) = (votes.len(), keys.len());
            return Err(Error::Length { name: "votes", got, wanted, other: "items" });
        }
        let mut watch = Watch::alone(execution);
        let mut lanes = self.lanes.clone();
        let mut known = numbered(&lanes);
        let mut last = None;
        for row in 0..votes.len() {
            if row % (1 << 16) == 0 {
                watch.poll()?;
            }
            let Vote { vote, sample, channel } = votes.vote(row);
            if !(-1..=1).contains(&vote) {
                return Err(Error::Label { name: "votes", row, value: vote.to_string() });
            }
            if sample >= MAX_SAMPLES {
                return Err(Error::Sample { row, value: sample, most: MAX_SAMPLES - 1 });
            }
            let block = self.block(channel, sample);
            if last != Some(block) {
                last = Some(block);
                known.entry(block).or_insert_with(|| {
                    lanes.push(block);
                    lanes.len() - 1
                });
            }
        }
        if lanes.len() > usize::from(u16::MAX) {
            return Err(Error::TooManyChannels { most: u16::MAX });
        }
        watch.ask_now()?;
        self.lanes = lanes;
        Ok(())
    }

    fn block(&self, channel: u32, sample: u32) -> (u32, u32) {
        (channel, if self.deduplicates { sample / 64 } else { 0 })
    }

    /// Sorts rows by shard, and says where each shard's rows end.
    fn route<K: Keys<I> + ?Sized, V: VoteRows + ?Sized>(
        &self,
        keys: &K,
        votes: &V,
        rows: std::ops::Range<usize>,
    ) -> Result<(Vec<Routed>, Vec<usize>), Error> {
        let hashes: Vec<u64> = rows.clone().map(|row| I::hash(keys.key(row))).collect();
        let mut ends = vec![0_usize; 1 << SHARD_BITS];
        hashes.iter().for_each(|&hash| ends[shard_of(hash)] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += *end;
            *end = start - *end; // where the shard begins; after its rows are placed, its end
        }
        let mut routed = vec![Routed::default(); hashes.len()];
        let lanes = numbered(&self.lanes);
        let mut last = (self.lanes.first().copied(), 0);
        for ((place, row), &hash) in (0..).zip(rows).zip(&hashes) {
            let Vote { vote, sample, channel } = votes.vote(row);
            let block = self.block(channel, sample);
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
                column: (vote + 1).cast_unsigned(),
            };
            *end += 1;
        }
        Ok((routed, ends))
    }

    fn apply<K: Keys<I> + ?Sized>(
        &mut self,
        keys: &K,
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
                    let key = || keys.key(first_row + routed.row as usize);
                    let place = shard.ids.find_or_insert(key, routed.hash);
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
    /// [`Error::Length`] if `channels` does not have all of the other's channels;
    /// [`Error::TooManyChannels`]. This tally is then as it was.
    pub fn merge(&mut self, other: &Self, channels: &[u32]) -> Result<(), Error> {
        let mut lanes = self.lanes.clone();
        let mut known = numbered(&lanes);
        let mut numbers = Vec::with_capacity(other.lanes.len());
        for &(channel, block) in &other.lanes {
            let Some(&here) = channels.get(channel as usize) else {
                let (got, wanted) = (channels.len(), channel as usize + 1);
                return Err(Error::Length {
                    name: "channels",
                    got,
                    wanted,
                    other: "the other tally",
                });
            };
            let lane = (here, block);
            numbers.push(*known.entry(lane).or_insert_with(|| {
                lanes.push(lane);
                lanes.len() - 1
            }));
        }
        if lanes.len() > usize::from(u16::MAX) {
            return Err(Error::TooManyChannels { most: u16::MAX });
        }
        self.lanes = lanes;
        for (mine, theirs) in self.shards.iter_mut().zip(&other.shards) {
            mine.lanes.resize_with(self.lanes.len(), Vec::new);
            for place in 0..theirs.ids.len() {
                let Some(key) = theirs.ids.get(place) else { continue };
                let to = mine.ids.find_or_insert(|| key, I::hash(key));
                for (lane, &number) in theirs.lanes.iter().zip(&numbers) {
                    let Some(planes) = lane.get(place).filter(|planes| **planes != [0; 3]) else {
                        continue;
                    };
                    for (mine, theirs) in at(&mut mine.lanes[number], to).iter_mut().zip(planes) {
                        *mine = if self.deduplicates {
                            *mine | theirs
                        } else {
                            mine.saturating_add(*theirs)
                        };
                    }
                }
                if theirs.reported.get(place).copied().unwrap_or(false) {
                    *at(&mut mine.reported, to) = true;
                }
            }
        }
        Ok(())
    }

    /// Counts of one item.
    #[must_use]
    pub fn counts(&self, key: &I::Key) -> Option<Counts> {
        let hash = I::hash(key);
        let shard = &self.shards[shard_of(hash)];
        shard.ids.find(key, hash).map(|place| shard.counts(place, self.deduplicates))
    }

    /// Calls `take` for every item in ascending order of ids.
    pub fn for_each(&self, mut take: impl FnMut(&I::Key, Counts)) {
        for (shard, place) in self.sorted(|_, _| true) {
            let shard = &self.shards[shard];
            if let Some(key) = shard.ids.get(place) {
                take(key, shard.counts(place, self.deduplicates));
            }
        }
    }

    /// Calls `take` for every item in ascending order that was not reported yet and is settled,
    /// with its label; from then on it counts as reported.
    ///
    /// Settled is an item at whose counts the rule stops, or that has more votes than the rule's
    /// `n`; the latter the model decides by all of them.
    pub fn settle(&mut self, rule: &StoppingRule, mut take: impl FnMut(&I::Key, Counts, Label)) {
        let settled = |shard: &Shard<I>, place: usize| {
            !shard.reported.get(place).copied().unwrap_or(false)
                && rule.stops(shard.counts(place, self.deduplicates)).unwrap_or(true)
        };
        for (number, place) in self.sorted(settled) {
            let shard = &mut self.shards[number];
            *at(&mut shard.reported, place) = true;
            let counts = shard.counts(place, self.deduplicates);
            let label = rule.decide(counts).unwrap_or_else(|_| rule.model().decide(counts));
            if let Some(key) = shard.ids.get(place) {
                take(key, counts, label);
            }
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
    pub fn export(&self, mut take: impl FnMut(&I::Key, bool, &mut dyn Iterator<Item = Planes>)) {
        for (shard, place) in self.sorted(|_, _| true) {
            let shard = &self.shards[shard];
            let mut planes = (0..self.lanes.len()).map(|lane| {
                shard.lanes.get(lane).and_then(|lane| lane.get(place)).copied().unwrap_or_default()
            });
            if let Some(key) = shard.ids.get(place) {
                take(key, shard.reported.get(place).copied().unwrap_or(false), &mut planes);
            }
        }
    }

    /// Puts back what [`export`](Self::export) gave: `planes` item by item, lane by lane.
    ///
    /// # Errors
    /// [`Error::State`] if lengths disagree, an id is there twice or there are too many lanes.
    pub fn import<K: Keys<I> + ?Sized>(
        deduplicates: bool,
        lanes: Vec<(u32, u32)>,
        keys: &K,
        reported: &[bool],
        planes: &[Planes],
    ) -> Result<Self, Error> {
        if reported.len() != keys.len() || planes.len() != keys.len() * lanes.len() {
            return Err(Error::State { want: "as many planes and marks as items and lanes" });
        }
        if lanes.len() > usize::from(u16::MAX) {
            return Err(Error::TooManyChannels { most: u16::MAX });
        }
        let mut tally = Self::new(deduplicates);
        tally.lanes = lanes;
        for (row, &reported) in reported.iter().enumerate() {
            let key = keys.key(row);
            let hash = I::hash(key);
            let shard = &mut tally.shards[shard_of(hash)];
            shard.lanes.resize_with(tally.lanes.len(), Vec::new);
            let place = shard.ids.find_or_insert(|| key, hash);
            if place + 1 != shard.ids.len() {
                return Err(Error::State { want: "every item once" });
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
        if tally.len() != keys.len() {
            return Err(Error::State { want: "every item once" });
        }
        Ok(tally)
    }

    /// Shard and place of the items that are wanted, in ascending order of ids.
    fn sorted(&self, wanted: impl Fn(&Shard<I>, usize) -> bool) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let places = (0..shard.ids.len()).filter(|&place| wanted(shard, place));
            found.extend(places.filter_map(|p| Some((shard.ids.get(p)?, (number, p)))));
        }
        #[expect(clippy::unnecessary_sort_by, reason = "a key cannot borrow from what is sorted")]
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        found.into_iter().map(|(_, place)| place).collect()
    }
}

impl<I> Shard<I> {
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
    use crate::running::Texts;

    fn tally_of(items: &[&str], channel: u32) -> RunningTally<Texts> {
        let mut tally = RunningTally::new(true);
        let votes = vec![Vote { vote: 1, sample: 0, channel }; items.len()];
        tally.add(items, &votes[..], Execution::single()).unwrap();
        tally
    }

    #[test]
    fn texts_of_a_slice_are_ids() {
        let mut names = Vec::new();
        tally_of(&["y", "x", "x"], 0).for_each(|name, counts| names.push((name.to_vec(), counts)));
        let one = Counts::new(0, 0, 1);
        assert_eq!(names, [(b"x".to_vec(), one), (b"y".to_vec(), one)]);
    }

    #[test]
    fn merging_wants_all_channels_of_the_other() {
        let (mut tally, other) = (tally_of(&["x"], 0), tally_of(&["x"], 2));
        let error = tally.merge(&other, &[7, 8]).unwrap_err().to_string();
        assert_eq!(error, "channels has 2 rows, want 3 as in the other tally");
        assert_eq!(tally.counts(b"x"), Some(Counts::new(0, 0, 1)));
        tally.merge(&other, &[7, 8, 9]).unwrap();
        assert_eq!(tally.counts(b"x"), Some(Counts::new(0, 0, 2)));
        assert_eq!(tally.lanes(), [(0, 0), (9, 0)]);
    }
}
