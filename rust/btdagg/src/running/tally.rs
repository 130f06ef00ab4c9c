use std::collections::{HashMap, HashSet};

use super::ids::{Key, Keys, Secret};
use super::shard::{Sample, Shard, WITHDRAWN, differing};
use crate::error::same_length;
use crate::memory::{collected, filled, reserved};
use crate::parallel::{Watch, for_each_part};
use crate::stopping::StoppingRule;
use crate::{Counts, Error, Execution, Label};

/// Samples of an item and channel are numbered below this.
pub const MAX_SAMPLES: u32 = 4096;

/// Shards, which fit a core's cache where there are a million items, and which threads share out.
const SHARDS: usize = 256;

/// Rows that are sorted by shard at a time; fewer than the least are not.
const ROWS: usize = 1 << 21;
const LEAST_ROWS: usize = 1 << 13;

/// Rows of votes; which items they are for comes beside them.
#[derive(Debug, Clone, Copy)]
pub struct Votes<'a> {
    /// −1, 0 or +1.
    pub votes: &'a [i8],
    /// Number of each sample in its channel, below [`MAX_SAMPLES`]; 0 where there are none.
    pub samples: Option<&'a [u32]>,
    /// Number of who was asked and how, as [`RunningTally::channel`] gave it; 0 where there are none.
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
    fn sample(&self, row: usize) -> Sample {
        Sample {
            channel: self.channels.map_or(0, |channels| channels[row]),
            number: self.samples.map_or(0, |samples| samples[row]),
        }
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

/// A sample that came with different votes: its item, channel and number, and whether each label
/// was among them.
pub type Conflict<'a> = (Key<'a>, u32, u32, [bool; 3]);

/// How a tally counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether a sample counts once however often it comes; otherwise every vote counts.
    pub deduplicates: bool,
    /// Whether the last vote of a sample counts; otherwise one that came with different votes
    /// counts for none of them, and the order of votes does not matter.
    pub corrects: bool,
    /// Whether ids are texts.
    pub has_texts: bool,
    /// Items that it may hold at the most.
    pub max_items: usize,
}

impl Default for Settings {
    /// Deduplicated votes of items with integers for ids.
    fn default() -> Self {
        Self { deduplicates: true, corrects: false, has_texts: false, max_items: usize::MAX }
    }
}

/// Votes of items by sample, from many sources.
///
/// Ids are all integers or all texts, and are listed in ascending order, whatever order they came
/// in. A secret of each tally hashes them, so that nobody can choose ids that fall together.
#[derive(Debug, Clone)]
pub struct RunningTally {
    shards: Vec<Shard>,
    secret: Secret,
    settings: Settings,
    /// Judges and orders.
    channels: Vec<(String, String)>,
    numbers: HashMap<(String, String), u32>,
    n_reported: usize,
}

impl Default for RunningTally {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

/// A row in the order of shards, with all of it but a text.
#[derive(Clone, Copy)]
struct Routed {
    hash: u64,
    sample: Sample,
    /// Row among those that are sorted at a time.
    row: u32,
    column: u8,
}

impl RunningTally {
    /// No votes yet.
    pub fn new(settings: Settings) -> Self {
        let secret = Secret::new();
        let shards = vec![Shard::default(); SHARDS];
        let mut tally = Self {
            shards,
            secret,
            settings,
            channels: Vec::new(),
            numbers: HashMap::new(),
            n_reported: 0,
        };
        tally.channel("", "");
        tally
    }

    /// How it counts.
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a judge and an order in which it was asked; that of two empty texts is 0.
    pub fn channel(&mut self, judge: &str, order: &str) -> u32 {
        let name = (judge.to_owned(), order.to_owned());
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        // There is no memory for as many names as there are numbers.
        let number = u32::try_from(self.channels.len()).unwrap_or(u32::MAX - 1);
        self.channels.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The judge and the order of every channel by its number.
    pub fn channels(&self) -> &[(String, String)] {
        &self.channels
    }

    /// Adds votes, and gives the rows that were late: new votes for items that were reported as
    /// settled. These are left out, or with `refuses_late` an error.
    ///
    /// Where this fails the tally is as it was, unless memory ran out on the way.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, or if there would be more items than may be;
    /// [`Error::Memory`]; [`Error::Interrupted`], asked before the first vote is added.
    pub fn add(
        &mut self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        refuses_late: bool,
        execution: Execution<'_>,
    ) -> Result<Vec<usize>, Error> {
        self.check(keys, votes, execution)?;
        let late = self.late(keys, votes, refuses_late)?;
        self.check_room(keys, &late)?;
        if keys.len() < LEAST_ROWS {
            let mut is_late = late.iter().copied().peekable();
            for row in 0..keys.len() {
                if is_late.next_if_eq(&row).is_none() {
                    let (key, sample) = (keys.get(row), votes.sample(row));
                    let hash = self.secret.hash(key);
                    let shard = &mut self.shards[shard_of(hash)];
                    let vote = usize::from(column(votes.votes[row]));
                    shard.put(key, hash, vote, sample, self.settings)?;
                }
            }
            return Ok(late);
        }
        for start in (0..keys.len()).step_by(ROWS) {
            let rows = start..keys.len().min(start + ROWS);
            let (routed, ends) = self.route(keys, votes, rows, &late)?;
            let settings = self.settings;
            // Once it has begun it goes to the end, so that a batch is added whole.
            for_each_part(&mut self.shards, 1, execution.unstoppable(), |first, shards, _| {
                for (number, shard) in (first..).zip(shards) {
                    let from = if number == 0 { 0 } else { ends[number - 1] };
                    for &Routed { hash, sample, row, column } in &routed[from..ends[number]] {
                        let key = match keys {
                            Keys::Integers(_) => Key::Integer(0), // of which the hash is enough
                            Keys::Texts(_) => keys.get(start + row as usize),
                        };
                        shard.put(key, hash, column.into(), sample, settings)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(late)
    }

    /// Adds one vote; whether it was late and left out, as of [`add`](Self::add).
    ///
    /// ```
    /// use btdagg::running::{Key, RunningTally};
    /// use btdagg::{Counts, Label};
    ///
    /// let mut tally = RunningTally::default();
    /// let judge = tally.channel("a judge", "AB");
    /// for _ in 0..2 {
    ///     tally.add_one(Key::Integer(7), Label::Plus, 0, judge)?; // the second is the same sample
    /// }
    /// assert_eq!(tally.counts(Key::Integer(7)), Some(Counts::whole(0, 0, 1)));
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] for an id of another kind, a sample or channel that is none, or if there would
    /// be more items than may be; [`Error::Memory`].
    pub fn add_one(
        &mut self,
        item: Key<'_>,
        vote: Label,
        sample: u32,
        channel: u32,
    ) -> Result<bool, Error> {
        self.check_texts(item.is_text())?;
        let sample = self.checked(Sample { channel, number: sample }, 0)?;
        let hash = self.secret.hash(item);
        if self.n_reported > 0 && self.is_late(item, hash, sample, vote.column()) {
            return Ok(true);
        }
        self.check_room_for(item)?;
        self.shards[shard_of(hash)].put(item, hash, vote.column(), sample, self.settings)?;
        Ok(false)
    }

    /// Makes a sample count for nothing, whichever votes it came with or comes with later, unless
    /// the last vote counts; whether its item was reported already, as it was before.
    ///
    /// # Errors
    /// [`Error::Input`] of a tally that does not look at samples; as [`add_one`](Self::add_one).
    pub fn withdraw(&mut self, item: Key<'_>, sample: u32, channel: u32) -> Result<bool, Error> {
        self.check_texts(item.is_text())?;
        if !self.settings.deduplicates {
            let got = "is of a tally that counts every vote";
            return Err(Error::input("samples", got, "one that knows votes by their samples"));
        }
        let sample = self.checked(Sample { channel, number: sample }, 0)?;
        self.check_room_for(item)?;
        let hash = self.secret.hash(item);
        let shard = &mut self.shards[shard_of(hash)];
        let place = shard.place_of(item, hash)?;
        shard.set(place, sample, WITHDRAWN, self.settings.corrects)?;
        Ok(shard.is_reported(place))
    }

    /// Removes items as if there had been no votes for them, and says how many there were.
    ///
    /// # Errors
    /// [`Error::Input`] for ids of another kind.
    pub fn forget(&mut self, keys: &Keys<'_>) -> Result<usize, Error> {
        self.check_kind(keys)?;
        let before = self.len();
        for row in 0..keys.len() {
            let key = keys.get(row);
            let hash = self.secret.hash(key);
            let shard = &mut self.shards[shard_of(hash)];
            if let Some(place) = shard.find(key, hash) {
                self.n_reported -= usize::from(shard.is_reported(place));
                shard.forget(place);
            }
        }
        self.shards.iter_mut().for_each(|shard| shard.tidy(&self.secret));
        Ok(before - self.len())
    }

    /// Removes all items that were reported as settled, and says how many there were. A further
    /// vote for one of them is of a new item.
    pub fn evict(&mut self) -> usize {
        let before = self.len();
        for shard in &mut self.shards {
            let reported: Vec<usize> =
                shard.places().filter(|&place| shard.is_reported(place)).collect();
            reported.into_iter().for_each(|place| shard.forget(place));
            shard.tidy(&self.secret);
        }
        self.n_reported = 0;
        before - self.len()
    }

    /// Adds the votes of another tally; items that either has reported stay reported, and those of
    /// them are returned that have other counts now than they were reported with. Where the last
    /// vote of a sample counts, it is the other's.
    ///
    /// # Errors
    /// [`Error::Input`] if it counts otherwise, or there would be more items than may be;
    /// [`Error::Memory`].
    pub fn merge(&mut self, other: &Self) -> Result<Ids, Error> {
        let Settings { deduplicates, corrects, has_texts, .. } = other.settings;
        self.check_texts(has_texts)?;
        if (deduplicates, corrects) != (self.settings.deduplicates, self.settings.corrects) {
            return Err(Error::input(
                "other",
                "counts otherwise",
                "a tally that counts as this one",
            ));
        }
        let channels: Vec<u32> =
            other.channels.iter().map(|(judge, order)| self.channel(judge, order)).collect();
        if self.settings.max_items < usize::MAX {
            let is_new =
                |shard: &Shard, place| self.find(shard.key(place, &other.secret)).is_none();
            let new = other
                .shards
                .iter()
                .map(|shard| shard.places().filter(|&place| is_new(shard, place)).count());
            if self.len() + new.sum::<usize>() > self.settings.max_items {
                return Err(self.too_many());
            }
        }
        let mut changed = Vec::new();
        for theirs in &other.shards {
            for place in theirs.places() {
                let key = theirs.key(place, &other.secret);
                let own = self.place_of(key)?;
                let reported = [
                    (self.shards[own.0].is_reported(own.1), self.counts_at(own)),
                    (theirs.is_reported(place), theirs.counts_by(place, other.settings)),
                ];
                let own_shard = &mut self.shards[own.0];
                if !deduplicates {
                    own_shard.count(own.1, theirs.all_votes(place));
                }
                for ((channel, number), planes) in theirs.blocks(place) {
                    let of = (channels[channel as usize], number);
                    own_shard.join(own.1, of, planes, corrects)?;
                }
                if theirs.is_reported(place) {
                    self.report_at(own);
                }
                let after = self.counts_at(own);
                if reported.into_iter().any(|(is_reported, counts)| is_reported && counts != after)
                {
                    changed.push(own);
                }
            }
        }
        self.sort(&mut changed);
        Ok(self.ids(&changed))
    }

    /// Counts of an item, if there is one.
    pub fn counts(&self, item: Key<'_>) -> Option<Counts> {
        self.find(item).map(|item| self.counts_at(item))
    }

    /// All items and their counts.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn all_counts(&self) -> Result<(Ids, Vec<Counts>), Error> {
        let items = self.sorted(|_, _| true)?;
        let counts = items.iter().map(|&item| self.counts_at(item));
        Ok((self.ids(&items), collected(counts)?))
    }

    fn counts_at(&self, (shard, place): (usize, usize)) -> Counts {
        self.shards[shard].counts_by(place, self.settings)
    }

    /// The samples that came with different votes, of items in ascending order.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn conflicts(&self) -> Result<Vec<Conflict<'_>>, Error> {
        let mut conflicts = Vec::new();
        for (number, place) in self.sorted(|_, _| true)? {
            let shard = &self.shards[number];
            for ((channel, block), planes) in shard.blocks(place) {
                let differ = differing(planes) & !planes[WITHDRAWN];
                for bit in (0..64).filter(|bit| differ >> bit & 1 == 1) {
                    let votes = [0, 1, 2].map(|column: usize| planes[column] >> bit & 1 == 1);
                    let sample = u32::from(block) * 64 + bit;
                    conflicts.push((shard.key(place, &self.secret), channel, sample, votes));
                }
            }
        }
        conflicts.sort_by_key(|&(key, channel, sample, _)| {
            (key, &self.channels[channel as usize], sample)
        });
        Ok(conflicts)
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
            let is_settled = || rule.stops(shard.counts_by(place, self.settings)).unwrap_or(true);
            !shard.is_reported(place) && is_settled()
        };
        let items = self.sorted(settled)?;
        let (mut labels, mut all_counts) = (reserved(items.len())?, reserved(items.len())?);
        for &item in &items {
            self.report_at(item);
            let counts = self.counts_at(item);
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
        for ((&item, &settled), is_new) in items.iter().zip(settled).zip(&mut is_new) {
            *is_new = settled && self.report_at(item);
        }
        Ok(is_new)
    }

    /// Items that may be reported anew, as of another rule.
    pub fn reopen(&mut self) {
        self.shards.iter_mut().for_each(Shard::reopen);
        self.n_reported = 0;
    }

    /// Counts an item as reported; whether it was not before.
    pub(super) fn report_at(&mut self, (shard, place): (usize, usize)) -> bool {
        let is_new = !self.shards[shard].report(place);
        self.n_reported += usize::from(is_new);
        is_new
    }

    /// # Errors
    /// [`Error::Input`] if ids are of another kind than those of the tally.
    pub fn check_kind(&self, keys: &Keys<'_>) -> Result<(), Error> {
        self.check_texts(keys.are_texts())
    }

    fn check_texts(&self, are_texts: bool) -> Result<(), Error> {
        if are_texts == self.settings.has_texts {
            return Ok(());
        }
        Err(Error::input(
            "items",
            "are of another kind than before",
            "integers or strings as before",
        ))
    }

    /// A sample and a channel that there may be.
    fn checked(&self, sample: Sample, row: usize) -> Result<Sample, Error> {
        if sample.number >= MAX_SAMPLES {
            let expected = format!("an integer from 0 to {}", MAX_SAMPLES - 1);
            return Err(Error::value("samples", sample.number, expected).at(&[row]));
        }
        if sample.channel as usize >= self.channels.len() {
            let expected = "the number of a judge and an order";
            return Err(Error::value("channels", sample.channel, expected).at(&[row]));
        }
        Ok(sample)
    }

    fn check(
        &self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.check_kind(keys)?;
        votes.check_lengths(keys.len())?;
        let mut watch = Watch::alone(execution);
        for (row, &vote) in votes.votes.iter().enumerate() {
            if row % (1 << 16) == 0 {
                watch.poll()?;
            }
            Label::parse(vote, "votes", row)?;
            self.checked(votes.sample(row), row)?;
        }
        watch.ask_now()
    }

    /// Rows of late votes.
    fn late(&self, keys: &Keys<'_>, votes: &Votes<'_>, refuses: bool) -> Result<Vec<usize>, Error> {
        let mut late = Vec::new();
        if self.n_reported == 0 {
            return Ok(late);
        }
        for (row, &vote) in votes.votes.iter().enumerate() {
            let key = keys.get(row);
            if self.is_late(key, self.secret.hash(key), votes.sample(row), column(vote).into()) {
                if refuses {
                    let got = format!("is {}, which is settled", key.shown());
                    let expected = "votes of open items; late='drop' leaves them out";
                    return Err(Error::input("items", got, expected).at(&[row]));
                }
                late.push(row);
            }
        }
        Ok(late)
    }

    /// Whether a vote is not counted yet, and for an item that was reported as settled.
    fn is_late(&self, key: Key<'_>, hash: u64, sample: Sample, column: usize) -> bool {
        let shard = &self.shards[shard_of(hash)];
        shard.find(key, hash).is_some_and(|place| {
            let Settings { deduplicates, corrects, .. } = self.settings;
            let is_known = || deduplicates && shard.has(place, sample, column, corrects);
            shard.is_reported(place) && !is_known()
        })
    }

    fn check_room_for(&self, item: Key<'_>) -> Result<(), Error> {
        let is_full = self.settings.max_items < usize::MAX && self.len() >= self.settings.max_items;
        if is_full && self.find(item).is_none() { Err(self.too_many()) } else { Ok(()) }
    }

    fn check_room(&self, keys: &Keys<'_>, late: &[usize]) -> Result<(), Error> {
        let left = self.settings.max_items.saturating_sub(self.len());
        if keys.len() - late.len() <= left {
            return Ok(());
        }
        let mut new = HashSet::new();
        let is_new =
            (0..keys.len()).map(|row| keys.get(row)).filter(|&key| self.find(key).is_none());
        for key in is_new {
            new.insert(key);
            if new.len() > left {
                return Err(self.too_many());
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Error {
        let got = format!("make more than {} open at a time", self.settings.max_items);
        Error::input("items", got, "fewer: evict those that are settled, or forget some")
    }

    /// Sorts rows by shard, and says where each shard's rows end.
    fn route(
        &self,
        keys: &Keys<'_>,
        votes: &Votes<'_>,
        rows: std::ops::Range<usize>,
        late: &[usize],
    ) -> Result<(Vec<Routed>, Vec<usize>), Error> {
        let hashes = collected(rows.clone().map(|row| self.secret.hash(keys.get(row))))?;
        let mut ends = vec![0_usize; SHARDS];
        hashes.iter().for_each(|&hash| ends[shard_of(hash)] += 1);
        let from = late.partition_point(|&row| row < rows.start);
        let late = &late[from..];
        for &row in late.iter().take_while(|&&row| row < rows.end) {
            ends[shard_of(hashes[row - rows.start])] -= 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += *end;
            *end = start - *end; // where the shard begins; after its rows are placed, its end
        }
        let none = Sample { channel: 0, number: 0 };
        let mut routed = filled(Routed { hash: 0, sample: none, row: 0, column: 0 }, start)?;
        let mut late = late.iter().copied().peekable();
        for ((place, row), &hash) in (0..).zip(rows).zip(&hashes) {
            if late.next_if_eq(&row).is_none() {
                let end = &mut ends[shard_of(hash)];
                routed[*end] = Routed {
                    hash,
                    sample: votes.sample(row),
                    row: place,
                    column: column(votes.votes[row]),
                };
                *end += 1;
            }
        }
        Ok((routed, ends))
    }

    fn find(&self, key: Key<'_>) -> Option<(usize, usize)> {
        let hash = self.secret.hash(key);
        let number = shard_of(hash);
        Some((number, self.shards[number].find(key, hash)?))
    }

    /// The shard and place of an item, which is made where there is none.
    pub(super) fn place_of(&mut self, key: Key<'_>) -> Result<(usize, usize), Error> {
        let hash = self.secret.hash(key);
        let number = shard_of(hash);
        Ok((number, self.shards[number].place_of(key, hash)?))
    }

    /// The key of an item.
    pub(super) fn key(&self, (shard, place): (usize, usize)) -> Key<'_> {
        self.shards[shard].key(place, &self.secret)
    }

    pub(super) fn shard(&self, number: usize) -> &Shard {
        &self.shards[number]
    }

    pub(super) fn shard_mut(&mut self, number: usize) -> &mut Shard {
        &mut self.shards[number]
    }

    /// Ids of items that have a shard and a place.
    fn ids(&self, items: &[(usize, usize)]) -> Ids {
        let keys = items.iter().map(|&item| self.key(item));
        if self.settings.has_texts {
            let text =
                |key| if let Key::Text(text) = key { text.to_owned() } else { String::new() };
            Ids::Texts(keys.map(text).collect())
        } else {
            let number = |key| if let Key::Integer(number) = key { number } else { 0 };
            Ids::Integers(keys.map(number).collect())
        }
    }

    /// Shard and place of the items that are wanted, in ascending order of ids.
    pub(super) fn sorted(
        &self,
        wanted: impl Fn(&Shard, usize) -> bool,
    ) -> Result<Vec<(usize, usize)>, Error> {
        let mut places = reserved(self.len())?;
        for (number, shard) in self.shards.iter().enumerate() {
            let wanted = shard.places().filter(|&place| wanted(shard, place));
            places.extend(wanted.map(|place| (number, place)));
        }
        self.sort(&mut places);
        Ok(places)
    }

    fn sort(&self, places: &mut [(usize, usize)]) {
        places.sort_by_cached_key(|&item| self.key(item));
    }
}

impl Shard {
    fn counts_by(&self, place: usize, settings: Settings) -> Counts {
        if settings.deduplicates {
            return self.counts(place);
        }
        let [minus, tie, plus] = self.all_votes(place);
        Counts::whole(minus, tie, plus)
    }

    /// Adds a vote.
    #[inline]
    fn put(
        &mut self,
        key: Key<'_>,
        hash: u64,
        vote: usize,
        sample: Sample,
        settings: Settings,
    ) -> Result<(), Error> {
        let place = self.place_of(key, hash)?;
        if !settings.deduplicates {
            let mut votes = [0; 3];
            votes[vote] = 1;
            self.count(place, votes);
            return Ok(());
        }
        self.set(place, sample, vote, settings.corrects)
    }
}

/// Column of a vote, in label order.
const fn column(vote: i8) -> u8 {
    (vote + 1).cast_unsigned()
}

/// By bits that tables of few items do not look at.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}
