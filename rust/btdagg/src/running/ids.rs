//! Ids of items and the places that they have: integers, or texts one after the other.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::Error;
use crate::memory::collected;
use crate::splitmix::{STEP, mix, unmix};

/// Ids of rows of votes.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'a> {
    /// Integers.
    Integers(&'a [i64]),
    /// Texts.
    Texts(Texts<'a>),
}

/// Texts as UTF-8, one after the other, as Arrow holds them.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    data: &'a [u8],
    start: usize,
    ends: &'a [i64],
}

impl<'a> Texts<'a> {
    /// Texts of the data: where the first begins, and where each ends.
    ///
    /// # Errors
    /// [`Error::Input`] for the first end that is not within the data or before another.
    pub fn new(data: &'a [u8], start: i64, ends: &'a [i64]) -> Result<Self, Error> {
        let (mut least, most) = (0, data.len());
        for &value in std::iter::once(&start).chain(ends) {
            if value < least || usize::try_from(value).map_or(true, |end| end > most) {
                let got = format!("has a text that ends at {value}");
                let expected = format!("a number from {least} to {most}");
                return Err(Error::input("items", got, expected));
            }
            least = value;
        }
        Ok(Self { data, start: usize::try_from(start).unwrap_or(0), ends })
    }

    fn get(&self, row: usize) -> &'a [u8] {
        // All ends are within the data.
        let end = |row: usize| usize::try_from(self.ends[row]).unwrap_or(0);
        &self.data[if row == 0 { self.start } else { end(row - 1) }..end(row)]
    }
}

impl Keys<'_> {
    /// Number of rows.
    pub const fn len(&self) -> usize {
        match self {
            Self::Integers(keys) => keys.len(),
            Self::Texts(texts) => texts.ends.len(),
        }
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) const fn are_texts(&self) -> bool {
        matches!(self, Self::Texts(_))
    }

    /// A hash whose bits are all as good; no two integers have the same.
    #[inline]
    pub(super) fn hash(&self, row: usize) -> u64 {
        match self {
            Self::Integers(keys) => hash_of_integer(keys[row]),
            Self::Texts(texts) => hash_of(texts.get(row)),
        }
    }

    /// Hashes of rows.
    pub(super) fn hashes(&self, rows: std::ops::Range<usize>) -> Result<Vec<u64>, Error> {
        collected(rows.map(|row| self.hash(row)))
    }

    /// The id of a row as messages show it.
    pub(super) fn shown(&self, row: usize) -> String {
        match self {
            Self::Integers(keys) => keys[row].to_string(),
            Self::Texts(texts) => format!("'{}'", String::from_utf8_lossy(texts.get(row))),
        }
    }

    /// The text of a row; of integers, none.
    pub(super) fn text(&self, row: usize) -> &[u8] {
        match self {
            Self::Integers(_) => &[],
            Self::Texts(texts) => texts.get(row),
        }
    }
}

/// All that there is of an integer, which [`integer`] gets out of it again.
const fn hash_of_integer(key: i64) -> u64 {
    mix(key.cast_unsigned().wrapping_add(STEP))
}

/// The integer of a hash.
pub(super) const fn integer(hash: u64) -> i64 {
    unmix(hash).wrapping_sub(STEP).cast_signed()
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    mix(hasher.finish() ^ text.len() as u64)
}

/// Ids in the order in which they were first seen, each found by its hash: open addressing, at most
/// half of the slots taken. Of integers the hash is all that is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Upper half: upper half of the hash. Lower half: place + 1, or 0 where the slot is free.
    slots: Vec<u64>,
    hashes: Vec<u64>,
    /// Texts one after the other, and where each ends.
    data: Vec<u8>,
    ends: Vec<usize>,
}

const UPPER: u64 = 0xFFFF_FFFF_0000_0000;

impl Index {
    pub(super) const fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn hash(&self, place: usize) -> u64 {
        self.hashes[place]
    }

    /// The text at a place; of integers, none.
    pub(super) fn text(&self, place: usize) -> &[u8] {
        let Some(&end) = self.ends.get(place) else { return &[] };
        &self.data[if place == 0 { 0 } else { self.ends[place - 1] }..end]
    }

    /// The place of the id of a row, or the free slot.
    #[inline]
    pub(super) fn find(&self, keys: &Keys<'_>, row: usize, hash: u64) -> Result<usize, usize> {
        match keys {
            Keys::Integers(_) => self.probe(hash, |place| self.hashes[place] == hash),
            Keys::Texts(texts) => {
                let text = texts.get(row);
                self.probe(hash, |place| self.text(place) == text)
            }
        }
    }

    /// The place of the id of a row, which is made where there is none.
    #[inline]
    pub(super) fn find_or_insert(
        &mut self,
        keys: &Keys<'_>,
        row: usize,
        hash: u64,
    ) -> Result<usize, Error> {
        let found = self.find(keys, row, hash);
        found.or_else(|slot| self.insert(slot, keys, row, hash).ok_or(Error::Memory))
    }

    #[inline]
    fn probe(&self, hash: u64, is_same: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = low(hash) & mask;
        while let Some(&taken) = self.slots.get(slot) {
            if taken & !UPPER == 0 {
                break;
            }
            let place = low(taken & !UPPER) - 1;
            if (taken ^ hash) & UPPER == 0 && is_same(place) {
                return Ok(place);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    fn insert(&mut self, slot: usize, keys: &Keys<'_>, row: usize, hash: u64) -> Option<usize> {
        let place = self.len();
        self.hashes.try_reserve(1).ok()?;
        if 2 * (place + 1) > self.slots.len() {
            let mut slots = Vec::new();
            let n_slots = (4 * (place + 1)).next_power_of_two().max(16);
            slots.try_reserve_exact(n_slots).ok()?;
            slots.resize(n_slots, 0);
            self.slots = slots;
            for (number, &hash) in (1..).zip(&self.hashes) {
                if let Err(slot) = self.probe(hash, |_| false) {
                    self.slots[slot] = (hash & UPPER) | number;
                }
            }
            return self.insert(self.probe(hash, |_| false).err()?, keys, row, hash);
        }
        if let Keys::Texts(texts) = keys {
            let text = texts.get(row);
            self.data.try_reserve(text.len()).ok()?;
            self.ends.try_reserve(1).ok()?;
            self.data.extend_from_slice(text);
            self.ends.push(self.data.len());
        }
        self.hashes.push(hash);
        self.slots[slot] = (hash & UPPER) | (place as u64 + 1);
        Some(place)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
const fn low(word: u64) -> usize {
    word as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_places_while_the_index_grows() {
        let (mut integers, mut texts) = (Index::default(), Index::default());
        for round in 0..2 {
            for number in 0..5000_i64 {
                let key = [number * 4096 - 7];
                let keys = Keys::Integers(&key);
                let name = format!("item {number}");
                let end = [i64::try_from(name.len()).unwrap()];
                let names = Keys::Texts(Texts::new(name.as_bytes(), 0, &end).unwrap());
                assert_eq!(integers.find(&keys, 0, keys.hash(0)).is_ok(), round == 1);
                let place = integers.find_or_insert(&keys, 0, keys.hash(0)).unwrap();
                assert_eq!(integer(integers.hash(place)), key[0]);
                assert_eq!(texts.find_or_insert(&names, 0, names.hash(0)), Ok(place));
                assert_eq!(texts.text(place), name.as_bytes());
            }
        }
        assert_eq!((integers.len(), texts.len()), (5000, 5000));
        for key in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(integer(Keys::Integers(&[key]).hash(0)), key);
        }
    }

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut ids = Index::default();
        let places = ["", "a", "b", "a", ""].map(|text| {
            let end = [i64::try_from(text.len()).unwrap()];
            let keys = Keys::Texts(Texts::new(text.as_bytes(), 0, &end).unwrap());
            ids.find_or_insert(&keys, 0, 42).unwrap()
        });
        assert_eq!(places, [0, 1, 2, 1, 0]);
    }
}
