//! Ids of items: integers, or texts one after the other, and the secret that hashes them.

use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::DefaultHashBuilder;

use crate::Error;
use crate::splitmix::{mix, unmix};

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
    data: &'a str,
    start: usize,
    ends: &'a [i64],
}

impl<'a> Texts<'a> {
    /// Texts of the data: where the first begins, and where each ends.
    ///
    /// # Errors
    /// [`Error::Input`] for the first end that is not within the data, before another, or within a
    /// character; or if a text is not in UTF-8.
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
        // All ends are within the data.
        let place = |end: i64| usize::try_from(end).unwrap_or(0);
        let start = place(start);
        let used = &data[start..ends.last().map_or(start, |&end| place(end))];
        let no_text = || Error::input("items", "is no valid text", "texts in UTF-8");
        let data = std::str::from_utf8(used).map_err(|_| no_text())?;
        if !ends.iter().all(|&end| data.is_char_boundary(place(end) - start)) {
            return Err(no_text());
        }
        Ok(Self { data, start, ends })
    }

    fn get(&self, row: usize) -> &'a str {
        let end = |row: usize| usize::try_from(self.ends[row]).unwrap_or(0) - self.start;
        &self.data[if row == 0 { 0 } else { end(row - 1) }..end(row)]
    }
}

/// The id of one row, in the order in which ids are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'a> {
    /// An integer.
    Integer(i64),
    /// A text.
    Text(&'a str),
}

impl<'a> Keys<'a> {
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

    /// The id of a row.
    #[inline]
    pub fn get(&self, row: usize) -> Key<'a> {
        match self {
            Self::Integers(keys) => Key::Integer(keys[row]),
            Self::Texts(texts) => Key::Text(texts.get(row)),
        }
    }
}

impl<'a> Key<'a> {
    /// The text, if it is one.
    #[inline]
    pub(super) const fn text(self) -> Option<&'a str> {
        match self {
            Self::Integer(_) => None,
            Self::Text(text) => Some(text),
        }
    }

    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// The id as messages show it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Integer(key) => key.to_string(),
            Self::Text(text) => format!("'{text}'"),
        }
    }
}

/// What nobody who chooses ids knows, so that none can choose those that fall together.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    words: [u64; 2],
    of_texts: DefaultHashBuilder,
}

impl Secret {
    pub(super) fn new() -> Self {
        let of_texts = DefaultHashBuilder::default();
        let of_integers = RandomState::new();
        Self { words: [1, 2].map(|word: u64| of_integers.hash_one(word)), of_texts }
    }

    /// A hash whose bits are all as good; no two integers have the same.
    #[inline]
    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        match key {
            Key::Integer(key) => mix(mix(key.cast_unsigned() ^ self.words[0]) ^ self.words[1]),
            Key::Text(text) => {
                let mut hasher = self.of_texts.build_hasher();
                hasher.write(text.as_bytes());
                mix(hasher.finish() ^ text.len() as u64)
            }
        }
    }

    /// The integer that has this hash.
    pub(super) const fn integer(&self, hash: u64) -> i64 {
        (unmix(unmix(hash) ^ self.words[1]) ^ self.words[0]).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_whole_and_each_secret_hashes_in_its_own_way() {
        let data = "aé".as_bytes();
        assert_eq!(Keys::Texts(Texts::new(data, 0, &[1, 3]).unwrap()).get(1), Key::Text("é"));
        for (data, ends) in [(data, [1, 2]), (data, [3, 1]), (data, [1, 4]), (b"a\xff", [1, 2])] {
            assert!(Texts::new(data, 0, &ends).is_err());
        }
        let (one, other) = (Secret::new(), Secret::new());
        for key in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(one.integer(one.hash(Key::Integer(key))), key);
        }
        for key in [Key::Integer(7), Key::Text("x")] {
            assert_eq!(one.hash(key), one.clone().hash(key));
            assert_ne!(one.hash(key), other.hash(key));
        }
    }
}
