//! Some of the items of a tally: what they count, and which samples they have seen.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::ids::{Key, Secret};
use crate::splitmix::mix;
use crate::{Counts, Error};

/// What 64 samples of a channel voted: a bit for each sample and label, in label order, and one if
/// it was withdrawn.
pub(super) type Planes = [u64; 4];

/// Where there is no further block.
const NONE: u32 = u32::MAX;

/// Less than a cache line.
#[derive(Debug, Clone)]
struct Item {
    /// Of its id, which of an integer is all that is kept.
    hash: u64,
    /// The first block of its samples, which most items have alone, and where the next is. Where
    /// samples are not looked at, the planes are the counts.
    planes: Planes,
    first: (u32, u16),
    next: u32,
    is_reported: bool,
    is_there: bool,
}

/// A further block of samples of an item.
#[derive(Debug, Clone)]
struct Block {
    item: u32,
    of: (u32, u16),
    next: u32,
    planes: Planes,
}

/// Items by their ids; places of those that were forgotten are taken anew.
#[derive(Debug, Clone, Default)]
pub(super) struct Shard {
    places: HashTable<u32>,
    items: Vec<Item>,
    free: Vec<u32>,
    /// Further blocks of items, by item, channel and number.
    further: HashTable<u32>,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    /// Texts one after the other, where each begins and ends, and how much of it nobody needs.
    data: Vec<u8>,
    texts: Vec<(u32, u32)>,
    unused: usize,
}

/// A vote's place among the samples of its item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) channel: u32,
    pub(super) number: u32,
}

impl Sample {
    /// Its block: the channel, and the number of 64 samples.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "samples are below 4096")]
    const fn block(self) -> (u32, u16) {
        (self.channel, (self.number / 64) as u16)
    }

    const fn bit(self) -> u64 {
        1 << (self.number % 64)
    }
}

/// The plane of samples that were withdrawn, after those of the labels.
pub(super) const WITHDRAWN: usize = 3;

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Places of its items.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.items.iter().enumerate().filter(|(_, item)| item.is_there).map(|(place, _)| place)
    }

    pub(super) fn key<'a>(&'a self, place: usize, secret: &Secret) -> Key<'a> {
        if self.texts.is_empty() {
            return Key::Integer(secret.integer(self.items[place].hash));
        }
        Key::Text(std::str::from_utf8(self.text(place)).unwrap_or_default()) // which it was
    }

    fn text(&self, place: usize) -> &[u8] {
        let (start, end) = self.texts[place];
        &self.data[start as usize..end as usize]
    }

    #[inline]
    pub(super) fn find(&self, key: Key<'_>, hash: u64) -> Option<usize> {
        let is = |&place: &u32| {
            let is_text = |text: &str| self.text(place as usize) == text.as_bytes();
            self.items[place as usize].hash == hash && key.text().is_none_or(is_text)
        };
        self.places.find(hash, is).map(|&place| place as usize)
    }

    /// The place of an item, which is made where there is none.
    #[inline]
    pub(super) fn place_of(&mut self, key: Key<'_>, hash: u64) -> Result<usize, Error> {
        if let Some(place) = self.find(key, hash) {
            return Ok(place);
        }
        self.insert(key, hash)
    }

    #[inline(never)]
    fn insert(&mut self, key: Key<'_>, hash: u64) -> Result<usize, Error> {
        let memory = |_| Error::Memory;
        let items = &self.items;
        let reserved = self.places.try_reserve(1, |&place| items[place as usize].hash);
        reserved.map_err(|_| Error::Memory)?;
        let text = if let Some(text) = key.text() {
            self.data.try_reserve(text.len()).map_err(memory)?;
            self.texts.try_reserve(1).map_err(memory)?;
            let start = u32::try_from(self.data.len()).map_err(|_| Error::Memory)?;
            let end = u32::try_from(self.data.len() + text.len()).map_err(|_| Error::Memory)?;
            Some((text, (start, end)))
        } else {
            None
        };
        let item = Item {
            hash,
            planes: [0; 4],
            first: (NONE, 0),
            next: NONE,
            is_reported: false,
            is_there: true,
        };
        let place = if let Some(place) = self.free.pop() {
            self.items[place as usize] = item;
            place
        } else {
            let place = u32::try_from(self.items.len()).map_err(|_| Error::Memory)?;
            self.items.try_reserve(1).map_err(memory)?;
            self.items.push(item);
            place
        };
        if let Some((text, ends)) = text {
            self.data.extend_from_slice(text.as_bytes());
            if place as usize == self.texts.len() {
                self.texts.push(ends);
            } else {
                self.texts[place as usize] = ends;
            }
        }
        let items = &self.items;
        self.places.insert_unique(hash, place, |&place| items[place as usize].hash);
        Ok(place as usize)
    }

    pub(super) fn is_reported(&self, place: usize) -> bool {
        self.items[place].is_reported
    }

    /// Counts an item as reported; whether it was before.
    pub(super) fn report(&mut self, place: usize) -> bool {
        std::mem::replace(&mut self.items[place].is_reported, true)
    }

    /// No item was reported, from now on.
    pub(super) fn reopen(&mut self) {
        self.items.iter_mut().for_each(|item| item.is_reported = false);
    }

    /// Votes of an item by label, each of a sample with one vote alone.
    pub(super) fn counts(&self, place: usize) -> Counts {
        let mut sum = [0; 3];
        for (_, planes) in self.blocks(place) {
            sum.iter_mut().zip(counted(planes)).for_each(|(sum, count)| *sum += u64::from(count));
        }
        let [minus, tie, plus] = sum;
        Counts::whole(minus, tie, plus)
    }

    /// Votes of an item where samples are not looked at.
    pub(super) fn all_votes(&self, place: usize) -> [u64; 3] {
        let [minus, tie, plus, _] = self.items[place].planes;
        [minus, tie, plus]
    }

    /// Counts votes without samples.
    #[inline]
    pub(super) fn count(&mut self, place: usize, votes: [u64; 3]) {
        let counts = &mut self.items[place].planes;
        counts
            .iter_mut()
            .zip(votes)
            .for_each(|(count, votes)| *count = count.saturating_add(votes));
    }

    /// A sample of an item came with a vote, or was withdrawn: beside what it came with before, or
    /// in its place.
    #[inline]
    pub(super) fn set(
        &mut self,
        place: usize,
        sample: Sample,
        column: usize,
        corrects: bool,
    ) -> Result<(), Error> {
        let bit = sample.bit();
        let planes = self.block_of(place, sample.block())?;
        if corrects {
            planes.iter_mut().for_each(|plane| *plane &= !bit);
        }
        planes[column] |= bit;
        Ok(())
    }

    /// Takes over what a block of another tally has: the union, or in its place what it knows.
    pub(super) fn join(
        &mut self,
        place: usize,
        of: (u32, u16),
        theirs: &Planes,
        corrects: bool,
    ) -> Result<(), Error> {
        let planes = self.block_of(place, of)?;
        if corrects {
            let known = theirs.iter().fold(0, |known, plane| known | plane);
            planes.iter_mut().for_each(|plane| *plane &= !known);
        }
        planes.iter_mut().zip(theirs).for_each(|(plane, theirs)| *plane |= theirs);
        Ok(())
    }

    /// A block of an item, which is made where there is none.
    #[inline]
    fn block_of(&mut self, place: usize, of: (u32, u16)) -> Result<&mut Planes, Error> {
        if self.items[place].first.0 == NONE {
            self.items[place].first = of;
        }
        if self.items[place].first == of {
            return Ok(&mut self.items[place].planes);
        }
        let block = self.further(place, of)?;
        Ok(&mut self.blocks[block].planes)
    }

    /// The place of a further block, which is made where there is none.
    fn further(&mut self, place: usize, of: (u32, u16)) -> Result<usize, Error> {
        let hash = self.hash_of_block(place, of);
        let memory = |_| Error::Memory;
        #[expect(clippy::cast_possible_truncation, reason = "places are below u32::MAX")]
        let item = place as u32;
        if self.free_blocks.is_empty() {
            self.blocks.try_reserve(1).map_err(memory)?;
        }
        let (blocks, items) = (&self.blocks, &self.items);
        let hash_of = |&block: &u32| {
            let Block { item, of, .. } = blocks[block as usize];
            hash_of_block(items[item as usize].hash, of)
        };
        let is =
            |&block: &u32| blocks[block as usize].item == item && blocks[block as usize].of == of;
        self.further.try_reserve(1, hash_of).map_err(|_| Error::Memory)?;
        let entry = self.further.entry(hash, is, hash_of);
        let vacant = match entry {
            Entry::Occupied(found) => return Ok(*found.get() as usize),
            Entry::Vacant(vacant) => vacant,
        };
        let number = match self.free_blocks.pop() {
            Some(number) => number,
            None => u32::try_from(self.blocks.len()).map_err(|_| Error::Memory)?,
        };
        vacant.insert(number);
        let block = Block { item, of, next: self.items[place].next, planes: [0; 4] };
        self.items[place].next = number;
        if number as usize == self.blocks.len() {
            self.blocks.push(block);
        } else {
            self.blocks[number as usize] = block;
        }
        Ok(number as usize)
    }

    fn hash_of_block(&self, place: usize, of: (u32, u16)) -> u64 {
        hash_of_block(self.items[place].hash, of)
    }

    /// What an item has of a block.
    fn planes(&self, place: usize, of: (u32, u16)) -> Planes {
        let item = &self.items[place];
        if item.first == of {
            return item.planes;
        }
        let is = |&block: &u32| {
            let block = &self.blocks[block as usize];
            block.item as usize == place && block.of == of
        };
        let found = self.further.find(self.hash_of_block(place, of), is);
        found.map_or([0; 4], |&block| self.blocks[block as usize].planes)
    }

    /// Whether this vote of a sample changes nothing: it came before and no other took its place or,
    /// unless the last vote counts, the sample was withdrawn.
    pub(super) fn has(&self, place: usize, sample: Sample, vote: usize, corrects: bool) -> bool {
        let (planes, bit) = (self.planes(place, sample.block()), sample.bit());
        planes[vote] & bit != 0 || (!corrects && planes[WITHDRAWN] & bit != 0)
    }

    /// The blocks of an item that hold anything: channel, number and samples.
    pub(super) fn blocks(&self, place: usize) -> impl Iterator<Item = ((u32, u16), &Planes)> {
        let item = &self.items[place];
        let mut next = item.next;
        let further = std::iter::from_fn(move || {
            let block = self.blocks.get(next as usize)?;
            next = block.next;
            Some((block.of, &block.planes))
        });
        let first = (item.first.0 != NONE).then_some((item.first, &item.planes));
        first.into_iter().chain(further)
    }

    /// Removes an item and all that it has.
    pub(super) fn forget(&mut self, place: usize) {
        let mut next = self.items[place].next;
        while next != NONE {
            let of = self.blocks[next as usize].of;
            let hash = self.hash_of_block(place, of);
            if let Ok(entry) = self.further.find_entry(hash, |&block| block == next) {
                entry.remove();
            }
            self.free_blocks.push(next);
            next = self.blocks[next as usize].next;
        }
        let hash = self.items[place].hash;
        if let Ok(entry) = self.places.find_entry(hash, |&other| other as usize == place) {
            self.free.push(*entry.get());
            entry.remove();
        }
        self.items[place].is_there = false;
        if let Some(&(start, end)) = self.texts.get(place) {
            self.unused += (end - start) as usize;
            self.texts[place] = (0, 0);
        }
    }

    /// Gives memory back that forgotten items took, once it is most of all: makes the shard anew.
    pub(super) fn tidy(&mut self, secret: &Secret) {
        let has_few_texts = 2 * self.unused > self.data.len();
        let has_few_blocks = 2 * self.free_blocks.len() > self.blocks.len().max(16);
        if 2 * self.len() < self.items.len() || has_few_texts || has_few_blocks {
            let mut tidied = Self::default();
            for place in self.places() {
                let key = self.key(place, secret);
                let Ok(own) = tidied.place_of(key, self.items[place].hash) else { return };
                tidied.items[own].is_reported = self.items[place].is_reported;
                tidied.items[own].planes = self.items[place].planes;
                tidied.items[own].first = self.items[place].first;
                for (of, planes) in self.blocks(place).skip(1) {
                    if tidied.join(own, of, planes, false).is_err() {
                        return;
                    }
                }
            }
            *self = tidied;
        }
    }
}

/// How many samples came with one vote alone, by label.
fn counted(planes: &Planes) -> [u32; 3] {
    let [minus, tie, plus, withdrawn] = *planes;
    let clear = !(differing(planes) | withdrawn);
    [minus, tie, plus].map(|plane| (plane & clear).count_ones())
}

/// A bit for each sample that came with several votes.
pub(super) const fn differing([minus, tie, plus, _]: &Planes) -> u64 {
    (*minus & *tie) | (*minus & *plus) | (*tie & *plus)
}

#[inline]
fn hash_of_block(hash: u64, (channel, number): (u32, u16)) -> u64 {
    mix(hash ^ (u64::from(channel) << 16 | u64::from(number)))
}
