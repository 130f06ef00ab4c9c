//! Ids of items and the places that they have: integers, or texts one after the other.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::splitmix::{STEP, mix};

/// Ids in the order in which they were first seen, each found by a hash.
pub trait Ids: Default + Clone + Send + Sync {
    /// What an id is looked up by.
    type Key: ?Sized + Ord;

    /// A hash whose bits are all as good.
    fn hash(key: &Self::Key) -> u64;

    /// Number of ids.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at a place.
    fn get(&self, place: usize) -> Option<&Self::Key>;

    /// Place of an id with that hash.
    fn find(&self, key: &Self::Key, hash: u64) -> Option<usize>;

    /// Place of an id with that hash, which is made where there is none. The id is read only if the
    /// hash does not say all.
    fn find_or_insert<'a>(&mut self, key: impl Fn() -> &'a Self::Key, hash: u64) -> usize
    where
        Self::Key: 'a;
}

/// Rows of ids, each read once and in any order.
pub trait Keys<I: Ids>: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of a row below [`len`](Self::len).
    fn key(&self, row: usize) -> &I::Key;
}

/// Open addressing: places by hash, at most half of the slots taken.
#[derive(Debug, Clone, Default)]
struct Index {
    /// Upper half: upper half of the hash. Lower half: place + 1, or 0 where the slot is free.
    slots: Vec<u64>,
    taken: usize,
}

const UPPER: u64 = 0xFFFF_FFFF_0000_0000;

impl Index {
    /// The place of the hash that is the `same` as what is looked for, or the free slot.
    #[inline]
    fn probe(&self, hash: u64, same: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = low(hash) & mask;
        while let Some(&found) = self.slots.get(slot) {
            if found & !UPPER == 0 {
                break;
            }
            let place = low(found & !UPPER) - 1;
            if (found ^ hash) & UPPER == 0 && same(place) {
                return Ok(place);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    /// Puts a place where a probe has found a free slot; `hash_of` rehashes when slots run out.
    fn insert(&mut self, slot: usize, hash: u64, place: usize, hash_of: impl Fn(usize) -> u64) {
        self.taken += 1;
        if 2 * self.taken <= self.slots.len() {
            self.slots[slot] = (hash & UPPER) | (place as u64 + 1);
            return;
        }
        let size = (4 * self.taken).next_power_of_two().max(16);
        self.slots = vec![0; size];
        for place in 0..=place {
            let hash = hash_of(place);
            if let Err(slot) = self.probe(hash, |_| false) {
                self.slots[slot] = (hash & UPPER) | (place as u64 + 1);
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
const fn low(word: u64) -> usize {
    word as usize
}

/// Integer ids.
#[derive(Debug, Clone, Default)]
pub struct Integers {
    index: Index,
    /// No two integers have the same hash, so that no integer needs to be looked at.
    hashes: Vec<u64>,
    keys: Vec<i64>,
}

impl Ids for Integers {
    type Key = i64;

    fn hash(key: &i64) -> u64 {
        mix(key.cast_unsigned().wrapping_add(STEP))
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn get(&self, place: usize) -> Option<&i64> {
        self.keys.get(place)
    }

    fn find(&self, _: &i64, hash: u64) -> Option<usize> {
        self.index.probe(hash, |place| self.hashes.get(place) == Some(&hash)).ok()
    }

    #[inline]
    fn find_or_insert<'a>(&mut self, key: impl Fn() -> &'a i64, hash: u64) -> usize {
        let Self { index, hashes, keys } = self;
        index.probe(hash, |place| hashes.get(place) == Some(&hash)).unwrap_or_else(|slot| {
            keys.push(*key());
            hashes.push(hash);
            let place = keys.len() - 1;
            index.insert(slot, hash, place, |place| hashes[place]);
            place
        })
    }
}

impl Keys<Integers> for [i64] {
    fn len(&self) -> usize {
        <[i64]>::len(self)
    }

    fn key(&self, row: usize) -> &i64 {
        &self[row]
    }
}

/// Text ids, as UTF-8.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    index: Index,
    data: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<u64>,
}

impl Ids for Texts {
    type Key = [u8];

    fn hash(key: &[u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(key);
        mix(hasher.finish() ^ key.len() as u64)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, place: usize) -> Option<&[u8]> {
        text(&self.data, &self.ends, place)
    }

    fn find(&self, key: &[u8], hash: u64) -> Option<usize> {
        self.index.probe(hash, |place| self.get(place) == Some(key)).ok()
    }

    #[inline]
    fn find_or_insert<'a>(&mut self, key: impl Fn() -> &'a [u8], hash: u64) -> usize {
        let key = key();
        let Self { index, data, ends, hashes } = self;
        index.probe(hash, |place| text(data, ends, place) == Some(key)).unwrap_or_else(|slot| {
            data.extend_from_slice(key);
            ends.push(data.len());
            hashes.push(hash);
            let place = ends.len() - 1;
            index.insert(slot, hash, place, |place| hashes[place]);
            place
        })
    }
}

#[inline]
fn text<'a>(data: &'a [u8], ends: &[usize], place: usize) -> Option<&'a [u8]> {
    let start = if place == 0 { 0 } else { *ends.get(place - 1)? };
    data.get(start..*ends.get(place)?)
}

impl<S: AsRef<str> + Sync> Keys<Texts> for [S] {
    fn len(&self) -> usize {
        <[S]>::len(self)
    }

    fn key(&self, row: usize) -> &[u8] {
        self[row].as_ref().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_places_while_the_index_grows() {
        let (mut integers, mut texts) = (Integers::default(), Texts::default());
        for round in 0..2 {
            for key in 0..5000_i64 {
                let key = key * 4096 - 7;
                let name = format!("item {key}");
                let hash = Integers::hash(&key);
                assert_eq!(integers.find(&key, hash).is_some(), round == 1);
                let place = integers.find_or_insert(|| &key, hash);
                assert_eq!(integers.get(place), Some(&key));
                let at = texts.find_or_insert(|| name.as_bytes(), Texts::hash(name.as_bytes()));
                assert_eq!(at, place);
                assert_eq!(texts.get(place), Some(name.as_bytes()));
            }
        }
        assert_eq!((integers.len(), texts.len()), (5000, 5000));
    }

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut texts = Texts::default();
        let places: Vec<usize> =
            ["", "a", "b", "a", ""].map(|key| texts.find_or_insert(|| key.as_bytes(), 42)).into();
        assert_eq!(places, [0, 1, 2, 1, 0]);
        assert_eq!(texts.find(b"c", 42), None);
    }
}
