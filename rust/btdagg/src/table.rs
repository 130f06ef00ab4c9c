//! A quantity of many items, by table look-up where counts are small.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::counts::{CountRow, Rows};
use crate::error::{check_finite, same_length};
use crate::index::index;
use crate::parallel::{BLOCK, Execution, for_each_part};
use crate::{Counts, Error};

/// Bytes that one table may take.
const MAX_TABLE_BYTES: usize = 8 << 20;

/// A quantity of an item that sees `minus` and `plus` through one value and the ties, given the
/// number of decisive votes, through another.
///
/// All of the model's quantities are of this form. It makes a table over n³ triples cheap: the
/// transcendental functions are needed for n² pairs only.
pub(crate) struct Quantity<A, B, C> {
    /// Of minus and plus.
    pub(crate) side: A,
    /// Of ties and decisive votes.
    pub(crate) tie: B,
    /// Of these two.
    pub(crate) value: C,
}

impl<S: Copy, T: Copy, V: Copy + Send, A, B, C> Quantity<A, B, C>
where
    A: Fn(f64, f64) -> S + Sync,
    B: Fn(f64, f64) -> T + Sync,
    C: Fn(S, T) -> V + Sync,
{
    fn of(&self, Counts { minus, tie, plus }: Counts) -> V {
        (self.value)((self.side)(minus, plus), (self.tie)(tie, minus + plus))
    }

    /// Writes the quantity of each row of counts to `out`.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, [`Error::Interrupted`].
    pub(crate) fn map<R: Rows + ?Sized, O: From<V> + Copy + Send>(
        &self,
        rows: &R,
        kept: Option<&Kept<V>>,
        out: &mut [O],
        execution: Execution<'_>,
    ) -> Result<(), Error>
    where
        V: Sync,
    {
        let nothing = vec![(); rows.len()]; // which takes no memory
        self.map_with(rows, kept, &nothing, out, execution, |value, ()| value.into())
    }

    /// Writes what is made of the quantity of each row and of what else is known of it.
    pub(crate) fn map_with<R: Rows + ?Sized, X: Known, O: Copy + Send>(
        &self,
        rows: &R,
        kept: Option<&Kept<V>>,
        known: &[X],
        out: &mut [O],
        execution: Execution<'_>,
        finish: impl Fn(V, X) -> O + Sync,
    ) -> Result<(), Error>
    where
        V: Sync,
    {
        same_length("out", out.len(), rows.len(), "counts")?;
        same_length("offsets", known.len(), rows.len(), "counts")?;
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let (mut table, mut kept_table) = (None::<Table<V>>, None);
            let mut buffer = Vec::new();
            let (mut row, mut left) = (start, part.len());
            for out in part.chunks_mut(BLOCK) {
                watch.poll()?;
                let block = rows.block(row, out.len(), &mut buffer);
                let known = &known[row..row + out.len()];
                X::check(known, row)?;
                let look_up =
                    |table: &Table<V>, out: &mut [O]| table.look_up(block, known, out, &finish);
                // The table of the block before does for most, which are then read once.
                if !kept_table.or(table.as_ref()).is_some_and(|table| look_up(table, out)) {
                    let bits = bits_of(block);
                    let make = |bits| Table::of(bits, &self.side, &self.tie, &self.value);
                    kept_table = kept.and_then(|kept| kept.table(bits, out.len(), make));
                    // A table pays when it has fewer entries than rows that are still to come.
                    if kept_table.is_none()
                        && table.as_ref().is_none_or(|table| table.bits < bits)
                        && entries::<V>(bits).is_some_and(|entries| entries <= left)
                    {
                        table = Some(make(bits));
                    }
                    let fitting = kept_table.or(table.as_ref()).filter(|table| bits <= table.bits);
                    if !fitting.is_some_and(|table| look_up(table, out)) {
                        let items = block.iter().zip(known).zip(out.iter_mut());
                        for (i, ((counts, &known), out)) in items.enumerate() {
                            *out = finish(self.of(counts.counts(row + i)?), known);
                        }
                    }
                }
                row += out.len();
                left -= out.len();
            }
            Ok(())
        })
    }
}

/// Bytes of a table that is kept with its model.
const MAX_KEPT_BYTES: usize = 1 << 17;

/// Tables of a quantity of one model, for counts below 16 and 32. Each is made once the model was
/// asked for so many items that it pays, and serves batches of any size from then on.
pub(crate) struct Kept<V>([KeptTable<V>; 2]);

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self(Default::default())
    }
}

struct KeptTable<V> {
    n_asked: AtomicUsize,
    /// Whether one thread makes it. None waits for another, so that a process may fork.
    is_made: AtomicBool,
    table: OnceLock<Table<V>>,
}

impl<V> Default for KeptTable<V> {
    fn default() -> Self {
        Self {
            n_asked: AtomicUsize::new(0),
            is_made: AtomicBool::new(false),
            table: OnceLock::new(),
        }
    }
}

impl<V> Kept<V> {
    fn table(&self, bits: u32, n: usize, make: impl Fn(u32) -> Table<V>) -> Option<&Table<V>> {
        let bits = bits.max(4);
        let kept = self.0.get(index(u64::from(bits - 4)))?;
        if kept.table.get().is_none() {
            let entries = entries::<V>(bits)?;
            let n_asked = kept.n_asked.fetch_add(n, Ordering::Relaxed).saturating_add(n);
            let pays =
                entries * size_of::<V>() <= MAX_KEPT_BYTES && entries <= 8 * n_asked.min(1 << 20);
            if !pays || kept.is_made.swap(true, Ordering::Relaxed) {
                return None;
            }
            let _ = kept.table.set(make(bits));
        }
        kept.table.get()
    }
}

/// What is known of an item beside its counts: nothing, or an offset.
pub(crate) trait Known: Copy + Sync {
    /// # Errors
    /// [`Error::Input`] for the first bad value of a block, whose first row has that number.
    fn check(block: &[Self], start: usize) -> Result<(), Error>;
}

impl Known for () {
    fn check(_: &[()], _: usize) -> Result<(), Error> {
        Ok(())
    }
}

impl Known for f64 {
    fn check(block: &[f64], start: usize) -> Result<(), Error> {
        check_finite("offsets", block, start)
    }
}

/// The values of a quantity for all counts below `2^bits`.
struct Table<V> {
    bits: u32,
    values: Vec<V>,
}

impl<V: Copy> Table<V> {
    /// Of a [`Quantity`], whose functions are called through pointers: compiled once, not for each
    /// type of counts.
    fn of<S: Copy, T: Copy>(
        bits: u32,
        side: &dyn Fn(f64, f64) -> S,
        tie: &dyn Fn(f64, f64) -> T,
        value: &dyn Fn(S, T) -> V,
    ) -> Self {
        let n = 1_u32 << bits;
        let counts = |n: u32| (0..n).map(f64::from);
        let ties: Vec<Vec<T>> = counts(n)
            .map(|count| counts(2 * n).map(|decisive| tie(count, decisive)).collect())
            .collect();
        let mut values = Vec::with_capacity(1 << (3 * bits));
        for minus in 0..n {
            let sides: Vec<S> = counts(n).map(|plus| side(f64::from(minus), plus)).collect();
            for by_decisive in &ties {
                let ties = by_decisive.iter().skip(index(minus.into()));
                values.extend(sides.iter().zip(ties).map(|(&s, &t)| value(s, t)));
            }
        }
        Self { bits, values }
    }

    /// Looks up the value of every row; whether the table has all of them, as otherwise the values
    /// are arbitrary.
    fn look_up<R: CountRow, X: Copy, O>(
        &self,
        block: &[R],
        known: &[X],
        out: &mut [O],
        finish: impl Fn(V, X) -> O,
    ) -> bool {
        // With the usual handful of votes shifts and length are constants, and no index is checked.
        if let Ok(values) = <&[V; 1 << 12]>::try_from(self.values.as_slice()) {
            return make_each(block, known, out, |row, known| {
                let [minus, tie, plus] = row.small();
                let place = (minus << 8) | (tie << 4) | plus;
                finish(values[place % values.len()], known)
            }) < 1 << 4;
        }
        let (bits, last) = (self.bits, self.values.len() - 1);
        make_each(block, known, out, |row, known| {
            let [minus, tie, plus] = row.small();
            let place = (minus << (2 * bits)) | (tie << bits) | plus;
            finish(self.values[place & last], known)
        }) < 1 << bits
    }
}

/// Bytes of counts that are looked up at a time, and how many times as many are read ahead of them,
/// for their bits: so memory is read at nearly its full speed while values are looked up.
const GROUP_BYTES: usize = 384;
const AHEAD: usize = 4;

/// Writes what is made of every row and of what is known of it; the bits of all counts.
fn make_each<R: CountRow, X: Copy, O>(
    block: &[R],
    known: &[X],
    out: &mut [O],
    make: impl Fn(R, X) -> O,
) -> u64 {
    let make_group = |rows: &[R], known: &[X], out: &mut [O]| {
        // Eight in a go: of narrow counts the loop itself is a tenth of the time.
        let (rows, last_rows) = rows.as_chunks::<8>();
        let (known, last_known) = known.as_chunks::<8>();
        let (out, last_out) = out.as_chunks_mut::<8>();
        for ((rows, known), out) in rows.iter().zip(known).zip(out) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = make(rows[i], known[i]);
            }
        }
        for ((&row, &known), out) in last_rows.iter().zip(last_known).zip(last_out) {
            *out = make(row, known);
        }
    };
    let group = GROUP_BYTES / size_of::<R>();
    let (first, ahead) = block.split_at(block.len().min(group * AHEAD));
    let mut bits = R::bits(first);
    let mut start = 0;
    for ahead in ahead.chunks_exact(group) {
        bits |= R::bits(ahead);
        let rows = start..start + group;
        make_group(&block[rows.clone()], &known[rows.clone()], &mut out[rows]);
        start += group;
    }
    make_group(&block[start..], &known[start..], &mut out[start..]);
    bits | R::bits(ahead.chunks_exact(group).remainder())
}

/// Number of entries of a table for counts below `2^bits`, or `None` if that is too large.
fn entries<V>(bits: u32) -> Option<usize> {
    let entries = 1_usize.checked_shl(bits.checked_mul(3)?)?;
    (entries <= MAX_TABLE_BYTES / size_of::<V>()).then_some(entries)
}

/// Bits of the largest count of a block; 64 if any value is no count.
pub(crate) fn bits_of<R: CountRow>(block: &[R]) -> u32 {
    u64::BITS - R::bits(block).leading_zeros()
}
