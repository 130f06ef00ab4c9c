//! Signed sums of many methods' losses: one byte of signs adds to the sums of all methods at once.
//!
//! The difference of two methods' sums is the sum of their differences, so that shared signs need
//! one sum per method instead of one per pair. Losses are split into limbs, integers whose sums are
//! exact in any order: a first limb of about 21 bits decides nearly every sign pattern, and all
//! [`MAX_LIMBS`] leave less than the rounding of the losses themselves.

use std::borrow::Cow;
use std::ops::Range;

use super::differences::{Grouping, Losses, sum};
use super::signs::{Patterns, WORD};
use crate::Error;
use crate::index::to_f64;
use crate::memory::{collected, filled};
use crate::parallel::Watch;

/// Sums of four methods, as wide as every processor's vectors.
const LANES: usize = 4;
type Lanes = [i32; LANES];

/// Methods that are summed together: their tables stay in the second-level cache.
const MAX_METHODS: usize = 64;

/// Sign patterns that are summed together: many use one table, and few numbers are held.
const MIN_PATTERNS: usize = 1024;
const MAX_PATTERNS: usize = 8192;
const MAX_SUMS: usize = 1 << 18;

/// Units whose integers sum to less than 2³¹, and their words.
const BLOCK: usize = 1024;
const BLOCK_WORDS: usize = BLOCK / WORD;

/// Each limb is this many times finer than the one before: rests of half a quantum, 1024 of them,
/// are below 2³¹ again.
const REFINEMENT: f64 = 2_097_152.0;

/// Limbs of a loss: 63 bits below the sum of 1024 of them.
pub(super) const MAX_LIMBS: usize = 3;

/// Adding this, 1.5 · 2⁵², leaves the nearest integer in the low bits.
const ROUNDING: f64 = 1.5 / f64::EPSILON;

/// Quanta are at least 2⁻⁹⁷⁸, so that those of all limbs and their inverses are normal numbers.
const LEAST_EXPONENT: i32 = -978;

/// Losses of methods by unit, an item or a group summed, less those of one of the methods.
#[derive(Debug)]
pub(super) struct MethodUnits<'a> {
    methods: Vec<Method<'a>>,
    reference: Cow<'a, [f64]>,
    pub(super) n_units: usize,
    pub(super) largest_group: f64,
}

#[derive(Debug)]
struct Method<'a> {
    /// Before the reference is subtracted.
    values: Cow<'a, [f64]>,
    /// What a first limb of 1 stands for.
    quantum: f64,
    /// Sum of absolute values of what first limbs leave.
    rests: f64,
    size: f64,
    sum: f64,
    losses_size: f64,
}

impl<'a> MethodUnits<'a> {
    /// Units of losses of the same items, of one method or more.
    pub(super) fn new(methods: &[Losses<'a>], grouping: Option<&Grouping>) -> Result<Self, Error> {
        // A method of medium losses, so that one of huge losses does not cost the others digits.
        let mut by_size = collected(methods.iter())?;
        by_size.sort_by(|a, b| a.size.total_cmp(&b.size));
        let values = by_size[methods.len() / 2].values;
        let (reference, largest_group): (Cow<_>, _) = match grouping {
            Some(grouping) => (filled(0.0, grouping.len())?.into(), grouping.largest()?),
            None => (values.into(), 1),
        };
        let mut units = Self {
            methods: Vec::with_capacity(methods.len()),
            n_units: reference.len(),
            reference,
            largest_group: to_f64(largest_group as u64),
        };
        for losses in methods {
            let method = units.method(losses, values, grouping)?;
            units.methods.push(method);
        }
        Ok(units)
    }

    fn method(
        &self,
        losses: &Losses<'a>,
        reference: &[f64],
        grouping: Option<&Grouping>,
    ) -> Result<Method<'a>, Error> {
        let mut method = Method {
            values: losses.values.into(),
            quantum: 0.0,
            rests: 0.0,
            size: 0.0,
            sum: 0.0,
            losses_size: losses.size,
        };
        if let Some(grouping) = grouping {
            let pairs = losses.values.iter().zip(reference);
            let centred = collected(pairs.map(|(value, reference)| value - reference))?;
            method.size = sum(&centred, f64::abs);
            method.values = grouping.sums(&centred)?.into();
        }
        let (mut largest_block, mut size) = (0.0_f64, 0.0);
        let mut centred = Vec::with_capacity(BLOCK);
        for (values, reference) in method.values.chunks(BLOCK).zip(self.reference.chunks(BLOCK)) {
            centred.clear();
            centred.extend(values.iter().zip(reference).map(|(value, other)| value - other));
            let block = sum(&centred, f64::abs);
            largest_block = largest_block.max(block);
            size += block;
            method.sum += sum(&centred, |value| value);
        }
        method.size = method.size.max(size);
        method.quantum = quantum(largest_block);
        let per_quantum = 1.0 / method.quantum;
        for (values, reference) in method.values.chunks(BLOCK).zip(self.reference.chunks(BLOCK)) {
            centred.clear();
            centred.extend(values.iter().zip(reference).map(|(value, other)| value - other));
            let rest = |value| rest(value * per_quantum).abs();
            method.rests += sum(&centred, rest) * method.quantum;
        }
        Ok(method)
    }

    pub(super) fn n_methods(&self) -> usize {
        self.methods.len()
    }

    /// Sum of one method's units.
    pub(super) fn sum(&self, method: usize) -> f64 {
        self.methods[method].sum
    }

    /// Sum of absolute values of one method's items, less the reference.
    pub(super) fn size(&self, method: usize) -> f64 {
        self.methods[method].size
    }

    /// Sum of absolute losses of one method.
    pub(super) fn losses_size(&self, method: usize) -> f64 {
        self.methods[method].losses_size
    }

    /// How far the signed sum of one method may be from that of its losses, with room for the
    /// rounding of its share in differences.
    ///
    /// What the limbs leave: summed for the first, then half a quantum for each unit. And of the
    /// size `2⁻⁵²` for each item of a group, for its differences and for their sum, and four times
    /// that for the sum of the limbs.
    pub(super) fn error(&self, method: usize, n_limbs: usize) -> f64 {
        let Method { quantum, rests, size, .. } = self.methods[method];
        let rests = if n_limbs == 1 {
            1.001 * rests
        } else {
            0.5 * to_f64(self.n_units as u64) * quantum_of(quantum, n_limbs - 1)
        };
        rests + (self.largest_group + 4.0) * f64::EPSILON * size
    }

    /// One limb of the units of a word, of some methods: each unit has `width` lanes.
    fn write_limb(&self, word: usize, first: usize, limb: usize, width: usize, units: &mut [i32]) {
        units.fill(0);
        let start = word * WORD;
        let end = self.n_units.min(start + WORD);
        let reference = &self.reference[start..end];
        let methods = self.methods.iter().skip(first).take(width * LANES);
        for (place, method) in methods.enumerate() {
            let per_quantum = 1.0 / method.quantum;
            let values = method.values[start..end].iter().zip(reference);
            let units = units.iter_mut().skip(place).step_by(width * LANES);
            for (unit, (value, reference)) in units.zip(values) {
                let value = (value - reference) * per_quantum;
                *unit = nearest((0..limb).fold(value, |value, _| rest(value) * REFINEMENT));
            }
        }
    }
}

/// The least power of two, of which 1024 units up to that size in sum are less than 2³¹.
fn quantum(largest_block: f64) -> f64 {
    // Each may be half a quantum more.
    let padded = largest_block * (1.0 + 1.0 / 1_048_576.0);
    power_of_two((exponent(padded) - 30).max(LEAST_EXPONENT))
}

/// What 1 stands for in a limb.
fn quantum_of(quantum: f64, limb: usize) -> f64 {
    (0..limb).fold(quantum, |quantum, _| quantum / REFINEMENT)
}

/// Exponent of a finite number, at the least that of the smallest normal one.
const fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7FF) as i32 - 1023
}

#[expect(clippy::cast_sign_loss, reason = "exponents of normal numbers")]
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// What is left of a number below 2³¹ without the nearest integer.
fn rest(value: f64) -> f64 {
    value - ((value + ROUNDING) - ROUNDING)
}

/// The nearest integer to a number below 2³¹.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the integer")]
fn nearest(value: f64) -> i32 {
    (value + ROUNDING).to_bits() as i32
}

/// Signed sums by method, each under the same sign patterns.
#[derive(Debug)]
pub(super) struct Sums(Vec<Vec<f64>>);

impl Sums {
    pub(super) fn zero(n_methods: usize, n_patterns: usize) -> Result<Self, Error> {
        (0..n_methods).map(|_| filled(0.0, n_patterns)).collect::<Result<_, _>>().map(Self)
    }

    /// The sums under a range of the patterns.
    pub(super) const fn tile(&self, range: Range<usize>) -> Tile<'_> {
        Tile { sums: self, range }
    }

    /// Adds the marked patterns of other sums to these.
    pub(super) fn extend(&mut self, others: &Self, is_marked: &[bool]) -> Result<(), Error> {
        let n_marked = is_marked.iter().filter(|is_marked| **is_marked).count();
        for (sums, others) in self.0.iter_mut().zip(&others.0) {
            sums.try_reserve(n_marked).map_err(|_| Error::Memory)?;
            let marked = others.iter().zip(is_marked).filter(|(_, is_marked)| **is_marked);
            sums.extend(marked.map(|(sum, _)| *sum));
        }
        Ok(())
    }
}

/// Sums under patterns that follow each other.
#[derive(Debug)]
pub(super) struct Tile<'a> {
    sums: &'a Sums,
    range: Range<usize>,
}

impl Tile<'_> {
    /// Sums of one method, by pattern.
    pub(super) fn of(&self, method: usize) -> &[f64] {
        &self.sums.0[method][self.range.clone()]
    }

    pub(super) fn n_patterns(&self) -> usize {
        self.range.len()
    }
}

/// Sums of methods, and what it takes to compute them.
#[derive(Debug)]
pub(super) struct Summation<'a> {
    units: &'a MethodUnits<'a>,
    patterns: Patterns,
    /// Methods that are summed together, in lanes.
    width: usize,
    tables: Vec<Lanes>,
    words: Vec<u64>,
    /// Of a block of units, and of those before it: pattern by pattern.
    block: Vec<Lanes>,
    totals: Vec<[f64; LANES]>,
}

impl<'a> Summation<'a> {
    pub(super) fn new(units: &'a MethodUnits<'a>, patterns: Patterns) -> Result<Self, Error> {
        let n_methods = units.methods.len();
        let width = n_methods.div_ceil(n_methods.div_ceil(MAX_METHODS)).div_ceil(LANES);
        let tables = filled([0; LANES], 8 * 256 * width)?;
        let (words, block, totals) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { units, patterns, width, tables, words, block, totals })
    }

    /// Patterns that are best summed at a time.
    pub(super) fn chunk_size(&self) -> usize {
        (MAX_SUMS / self.units.n_methods()).clamp(MIN_PATTERNS, MAX_PATTERNS)
    }

    /// Adds one limb of the losses to their sums under the numbered sign patterns.
    pub(super) fn add_limb(
        &mut self,
        patterns: &[u64],
        limb: usize,
        sums: &mut Sums,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        if patterns.is_empty() {
            return Ok(());
        }
        let n_lanes = patterns.len() * self.width;
        resize(&mut self.words, 0, patterns.len())?;
        resize(&mut self.block, [0; LANES], n_lanes)?;
        resize(&mut self.totals, [0.0; LANES], n_lanes)?;
        for first in (0..self.units.n_methods()).step_by(self.width * LANES) {
            self.add_methods(patterns, first, limb, sums, watch)?;
        }
        Ok(())
    }

    /// The same for the methods from the first on.
    fn add_methods(
        &mut self,
        patterns: &[u64],
        first: usize,
        limb: usize,
        sums: &mut Sums,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let n_words = self.units.n_units.div_ceil(WORD);
        let width = self.width;
        let mut units = filled(0, WORD * width * LANES)?;
        self.totals.fill([0.0; LANES]);
        for word in 0..n_words {
            watch.poll()?;
            self.units.write_limb(word, first, limb, width, &mut units);
            tabulate(units.as_chunks_mut().0, width, &mut self.tables);
            for (signs, &pattern) in self.words.iter_mut().zip(patterns) {
                *signs = self.patterns.word(pattern, word as u64, n_words as u64);
            }
            if (word + 1).is_multiple_of(BLOCK_WORDS) || word + 1 == n_words {
                end_block(&self.tables, width, &self.words, &mut self.block, &mut self.totals);
            } else {
                add_word(&self.tables, width, &self.words, &mut self.block);
            }
        }
        let methods = self.units.methods.iter().skip(first).take(width * LANES);
        for (place, (method, sums)) in methods.zip(sums.0.iter_mut().skip(first)).enumerate() {
            let quantum = quantum_of(method.quantum, limb);
            let totals = self.totals.as_flattened().iter().skip(place).step_by(width * LANES);
            sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum += quantum * total);
        }
        Ok(())
    }
}

/// So many numbers in memory that is used again.
fn resize<T: Clone>(values: &mut Vec<T>, value: T, len: usize) -> Result<(), Error> {
    values.clear();
    values.try_reserve_exact(len).map_err(|_| Error::Memory)?;
    values.resize(len, value);
    Ok(())
}

/// Sums of eight units under each of the 256 sign patterns, for each of the eight bytes of a word.
fn tabulate(units: &mut [Lanes], width: usize, tables: &mut [Lanes]) {
    let eights = units.chunks_exact_mut(8 * width);
    for (units, table) in eights.zip(tables.chunks_exact_mut(256 * width)) {
        // All negative, then twice each unit more.
        let all_negative = &mut table[..width];
        all_negative.fill([0; LANES]);
        for unit in units.chunks_exact_mut(width) {
            for (sum, unit) in all_negative.iter_mut().zip(unit) {
                *sum = combined(*sum, *unit, i32::wrapping_sub);
                *unit = combined(*unit, *unit, i32::wrapping_add);
            }
        }
        for (bit, unit) in units.chunks_exact(width).enumerate() {
            let (minus, plus) = table.split_at_mut(width << bit);
            for (minus, plus) in minus.chunks_exact(width).zip(plus.chunks_exact_mut(width)) {
                for ((minus, plus), unit) in minus.iter().zip(plus).zip(unit) {
                    *plus = combined(*minus, *unit, i32::wrapping_add);
                }
            }
        }
    }
}

/// The rows of the bytes of a word in their tables.
fn rows_of(tables: &[Lanes], width: usize, word: u64) -> [&[Lanes]; 8] {
    let bytes = word.to_le_bytes();
    std::array::from_fn(|place| {
        &tables[(place * 256 + usize::from(bytes[place])) * width..][..width]
    })
}

/// Adds the sums of a word of units to those of its block.
fn add_word(tables: &[Lanes], width: usize, words: &[u64], block: &mut [Lanes]) {
    for (sums, &word) in block.chunks_exact_mut(width).zip(words) {
        let rows = rows_of(tables, width, word);
        for (lane, sums) in sums.iter_mut().enumerate() {
            *sums =
                rows.iter().fold(*sums, |sums, row| combined(sums, row[lane], i32::wrapping_add));
        }
    }
}

/// Adds the sums of the last word of a block, and the block to the totals.
fn end_block(
    tables: &[Lanes],
    width: usize,
    words: &[u64],
    block: &mut [Lanes],
    totals: &mut [[f64; LANES]],
) {
    let sums = block.chunks_exact_mut(width).zip(totals.chunks_exact_mut(width));
    for ((sums, totals), &word) in sums.zip(words) {
        let rows = rows_of(tables, width, word);
        for (lane, (sums, totals)) in sums.iter_mut().zip(totals).enumerate() {
            let sums = std::mem::take(sums);
            let sums =
                rows.iter().fold(sums, |sums, row| combined(sums, row[lane], i32::wrapping_add));
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += f64::from(sum));
        }
    }
}

fn combined(a: Lanes, b: Lanes, operation: impl Fn(i32, i32) -> i32) -> Lanes {
    std::array::from_fn(|lane| operation(a[lane], b[lane]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Execution;
    use crate::significance::signs::Signs;

    /// Losses of one method each, that are no multiples of anything.
    fn losses(n_methods: usize, n_items: usize, scale: f64) -> Vec<Vec<f64>> {
        let value = |number: usize| (to_f64(number as u64) * 0.618_033_988_749_894_9).fract();
        let row = |method| (0..n_items).map(move |item| scale * value(1 + method * n_items + item));
        (0..n_methods).map(|method| row(method).collect()).collect()
    }

    fn methods(losses: &[Vec<f64>]) -> Vec<Losses<'_>> {
        losses.iter().map(|values| Losses::new("losses", None, values).unwrap()).collect()
    }

    fn sums(units: &MethodUnits<'_>, source: Patterns, patterns: &[u64], n_limbs: usize) -> Sums {
        let mut summation = Summation::new(units, source).unwrap();
        let mut sums = Sums::zero(units.n_methods(), patterns.len()).unwrap();
        let mut watch = Watch::alone(Execution::single());
        for limb in 0..n_limbs {
            summation.add_limb(patterns, limb, &mut sums, &mut watch).unwrap();
        }
        sums
    }

    #[test]
    fn differences_of_sums_are_sums_of_signed_differences() {
        let signs = Signs::new(1, 2);
        let patterns: Vec<u64> = (0..20).chain([1 << 40, u64::MAX]).collect();
        for (n_methods, n_items) in [(2, 1), (3, 8), (70, 65), (5, 1023), (4, 1024), (3, 2500)] {
            for scale in [1.0, 1e-280, 1e290] {
                let losses = losses(n_methods, n_items, scale);
                let methods = methods(&losses);
                let units = MethodUnits::new(&methods, None).unwrap();
                let n_words = n_items.div_ceil(WORD);
                for n_limbs in 1..=MAX_LIMBS {
                    let sums = sums(&units, Patterns::Drawn(signs), &patterns, n_limbs);
                    let (a, b) = (0, n_methods - 1);
                    let sums = sums.tile(0..patterns.len());
                    let found = sums.of(a).iter().zip(sums.of(b)).map(|(a, b)| a - b);
                    for (&pattern, found) in patterns.iter().zip(found) {
                        let first = pattern.wrapping_mul(n_words as u64);
                        let words: Vec<u64> = signs.words(first, 1).take(n_words).collect();
                        let signed = losses[a].iter().zip(&losses[b]).enumerate();
                        let wanted: f64 = signed
                            .map(|(i, (a, b))| {
                                let is_plus = words[i / WORD] >> (i % WORD) & 1 == 1;
                                if is_plus { a - b } else { b - a }
                            })
                            .sum();
                        let error = units.error(a, n_limbs) + units.error(b, n_limbs);
                        let rounding = f64::EPSILON * (units.size(a) + units.size(b));
                        let room = error + to_f64(n_items as u64) * rounding;
                        assert!((found - wanted).abs() <= room, "{found} {wanted} {room}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_dyadic_losses_are_exact_however_large_the_others() {
        let small: Vec<f64> = (0..1200).map(|i| f64::from(i * i % 1021) / 1024.0).collect();
        let wild: Vec<f64> = small.iter().map(|value| value * 2.0_f64.powi(50)).collect();
        let zero = vec![0.0; 1200];
        let losses = [wild, small.clone(), zero];
        let methods = methods(&losses);
        let units = MethodUnits::new(&methods, None).unwrap();
        let patterns = [0, u64::MAX, 0x0123_4567_89AB_CDEF];
        let sums = sums(&units, Patterns::All, &patterns, 2);
        let found = sums.tile(0..3);
        for (place, word) in patterns.into_iter().enumerate() {
            let signed = small.iter().enumerate();
            let wanted: f64 =
                signed.map(|(i, unit)| if word >> (i % 64) & 1 == 1 { *unit } else { -unit }).sum();
            assert_eq!(found.of(1)[place] - found.of(2)[place], wanted);
        }
        let mut marked = Sums::zero(3, 0).unwrap();
        marked.extend(&sums, &[false, true, true]).unwrap();
        assert_eq!(marked.tile(0..2).of(1), &found.of(1)[1..]);
        assert_eq!(marked.tile(1..2).of(2), &found.of(2)[2..]);
    }

    #[test]
    fn blocks_of_the_largest_integers_do_not_overflow() {
        // Integers of equal units sum to all but 2³¹.
        for value in [1.0, 1.99, 1.999_999, 2.0, 3.0] {
            let losses = [vec![value; BLOCK], vec![0.0; BLOCK], vec![0.0; BLOCK]];
            let methods = methods(&losses);
            let units = MethodUnits::new(&methods, None).unwrap();
            let sums = sums(&units, Patterns::All, &[u64::MAX, 0], MAX_LIMBS);
            let total = to_f64(BLOCK as u64) * value;
            assert_eq!(sums.tile(0..2).of(0), [total, -total]);
        }
    }

    #[test]
    fn quanta_are_powers_of_two() {
        assert_eq!(quantum(1.0), 2.0_f64.powi(-30));
        assert_eq!(quantum(2.0_f64.next_down()), 2.0_f64.powi(-29));
        assert_eq!(quantum(0.0), 2.0_f64.powi(-978));
        assert_eq!(quantum(f64::MAX), 2.0_f64.powi(994));
        assert_eq!(quantum_of(1.0, 2), 2.0_f64.powi(-42));
    }
}
