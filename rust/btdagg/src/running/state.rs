//! A tally as bytes, which are the same for the same votes in any order.
//!
//! Version 2: a magic, then little-endian numbers; lengths are of 8 bytes, and a text has its
//! length before it. The text of the caller, settings, judges and orders, ids (of texts: the length
//! of each, and all of them), counts of a tally without samples, whether each was reported, blocks of
//! samples, and a checksum.

use super::ids::{Key, Keys};
use super::tally::{MAX_SAMPLES, RunningTally, Settings};
use crate::Error;
use crate::splitmix::{STEP, mix};

const MAGIC: &[u8; 16] = b"btdagg.tally\0v2\n";

/// Blocks of a channel.
const MAX_BLOCKS: u32 = MAX_SAMPLES / 64;

impl RunningTally {
    /// The whole tally as bytes, with a text of the caller's own.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_bytes(&self, about: &str) -> Result<Vec<u8>, Error> {
        let items = self.sorted(|_, _| true)?;
        let mut names: Vec<_> = (0_u32..).zip(self.channels()).collect();
        names.sort_by_key(|&(_, name)| name);
        let mut used = vec![false; names.len()];
        let mut blocks = Vec::new();
        for (number, &(shard, place)) in items.iter().enumerate() {
            let own = self.shard(shard).blocks(place);
            blocks.extend(own.map(|((channel, block), planes)| {
                used[channel as usize] = true;
                (number, channel, block, *planes)
            }));
        }
        names.retain(|&(number, _)| used[number as usize]);
        let mut place_of = vec![0_u32; used.len()];
        for (place, &(number, _)) in (0..).zip(&names) {
            place_of[number as usize] = place;
        }
        blocks.iter_mut().for_each(|block| block.1 = place_of[block.1 as usize]);
        blocks.sort_unstable_by_key(|&(item, channel, block, _)| (item, channel, block));

        let Settings { deduplicates, corrects, has_texts, max_items } = self.settings();
        let mut out = Writer(MAGIC.to_vec());
        out.text(about);
        out.0.extend([deduplicates, corrects, has_texts].map(u8::from));
        out.number(max_items as u64);
        out.number(names.len() as u64);
        for (_, (judge, order)) in names {
            out.text(judge);
            out.text(order);
        }
        out.number(items.len() as u64);
        let keys = || items.iter().map(|&item| self.key(item));
        for key in keys() {
            match key {
                Key::Integer(number) => out.number(number.cast_unsigned()),
                Key::Text(text) => out.number(text.len() as u64),
            }
        }
        for key in keys() {
            if let Key::Text(text) = key {
                out.0.extend(text.bytes());
            }
        }
        if !deduplicates {
            for &(shard, place) in &items {
                self.shard(shard).all_votes(place).into_iter().for_each(|count| out.number(count));
            }
        }
        out.0.extend(
            items.iter().map(|&(shard, place)| u8::from(self.shard(shard).is_reported(place))),
        );
        out.number(blocks.len() as u64);
        for (item, channel, block, planes) in blocks {
            out.number(item as u64);
            out.0.extend(channel.to_le_bytes());
            out.0.extend(block.to_le_bytes());
            out.0.extend(planes.map(u64::to_le_bytes).as_flattened());
        }
        let checksum = checksum(&out.0);
        out.number(checksum);
        Ok(out.0)
    }

    /// The tally that [`to_bytes`](Self::to_bytes) wrote, and the caller's text.
    ///
    /// # Errors
    /// [`Error::Input`] if the bytes are none, or damaged; [`Error::Memory`].
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, String), Error> {
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        let body = body.strip_prefix(MAGIC).ok_or_else(damaged)?;
        if checksum(&bytes[..bytes.len() - 8]) != u64::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let mut from = Reader(body);
        let about = from.text()?.to_owned();
        let [deduplicates, corrects, has_texts] = from.take::<3>()?.map(|flag| flag != 0);
        let max_items = usize::try_from(from.number()?).unwrap_or(usize::MAX);
        let mut tally = Self::new(Settings { deduplicates, corrects, has_texts, max_items });
        let mut channels = Vec::new();
        for _ in 0..from.number()? {
            let (judge, order) = (from.text()?, from.text()?);
            channels.push(tally.channel(judge, order));
        }
        let numbers = from.numbers()?;
        let mut found = Vec::new();
        for number in numbers {
            let key = if has_texts {
                Key::Text(from.text_of(number)?)
            } else {
                Key::Integer(number.cast_signed())
            };
            found.push(tally.place_of(key)?);
        }
        for &(shard, place) in found.iter().filter(|_| !deduplicates) {
            let counts = [from.number()?, from.number()?, from.number()?];
            tally.shard_mut(shard).count(place, counts);
        }
        for &item in &found {
            if from.take::<1>()? != [0] {
                tally.report_at(item);
            }
        }
        let n_blocks = from.number()?;
        if n_blocks > 0 && !deduplicates {
            return Err(damaged());
        }
        for _ in 0..n_blocks {
            let item = usize::try_from(from.number()?).ok().and_then(|item| found.get(item));
            let &(shard, place) = item.ok_or_else(damaged)?;
            let channel = *channels.get(from.small()? as usize).ok_or_else(damaged)?;
            let block = u16::from_le_bytes(from.take()?);
            let planes = [from.number()?, from.number()?, from.number()?, from.number()?];
            if u32::from(block) >= MAX_BLOCKS {
                return Err(damaged());
            }
            tally.shard_mut(shard).join(place, (channel, block), &planes, false)?;
        }
        if from.0.is_empty() { Ok((tally, about)) } else { Err(damaged()) }
    }

    /// Takes over what a state of version 1 holds: `lanes` are channels and the numbers of 64
    /// samples of each, `planes` bits by item, lane and label or, without samples, counts.
    ///
    /// # Errors
    /// [`Error::Input`] if lengths disagree or there is no such lane; [`Error::Memory`].
    pub fn absorb(
        &mut self,
        lanes: &[(u32, u16)],
        keys: &Keys<'_>,
        reported: &[bool],
        planes: &[[u64; 3]],
    ) -> Result<(), Error> {
        let bad_lane = |&(channel, block): &(u32, u16)| {
            channel as usize >= self.channels().len() || u32::from(block) >= MAX_BLOCKS
        };
        if keys.are_texts() != self.settings().has_texts
            || reported.len() != keys.len()
            || planes.len() != keys.len() * lanes.len()
            || lanes.iter().any(bad_lane)
        {
            return Err(damaged());
        }
        for (row, &is_reported) in reported.iter().enumerate() {
            let item = self.place_of(keys.get(row))?;
            for (&lane, &[minus, tie, plus]) in lanes.iter().zip(&planes[row * lanes.len()..]) {
                let deduplicates = self.settings().deduplicates;
                let shard = self.shard_mut(item.0);
                if [minus, tie, plus] == [0; 3] {
                    continue;
                }
                if deduplicates {
                    shard.join(item.1, lane, &[minus, tie, plus, 0], false)?;
                } else {
                    shard.count(item.1, [minus, tie, plus]);
                }
            }
            if is_reported {
                self.report_at(item);
            }
        }
        Ok(())
    }
}

fn damaged() -> Error {
    Error::input("state", "is damaged, or none", "what a tally wrote")
}

/// Every bit of the bytes is in it, so that any change of a word is seen.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let last = rest.iter().fold(rest.len() as u64, |word, &byte| word << 8 | u64::from(byte));
    let words = words.iter().map(|word| u64::from_le_bytes(*word)).chain([last]);
    words.fold(STEP, |sum, word| mix(sum ^ word).wrapping_add(STEP))
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    fn small(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    /// Numbers, and how many there are before them.
    fn numbers(&mut self) -> Result<impl Iterator<Item = u64> + use<'a>, Error> {
        let n = usize::try_from(self.number()?).ok().and_then(|n| n.checked_mul(8));
        let halves = n.and_then(|n| self.0.split_at_checked(n));
        let (taken, rest) = halves.ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)))
    }

    fn text(&mut self) -> Result<&'a str, Error> {
        let len = self.number()?;
        self.text_of(len)
    }

    fn text_of(&mut self, len: u64) -> Result<&'a str, Error> {
        let len = usize::try_from(len).map_err(|_| damaged())?;
        let (text, rest) = self.0.split_at_checked(len).ok_or_else(damaged)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| damaged())
    }
}
