//! One quantity of many items, by table look-up where counts are small.

use crate::Error;
use crate::counts::{CountRow, Rows};
use crate::error::same_length;
use crate::parallel::{BLOCK, Execution, Watch, for_each_part};
use crate::table::{Quantity, Table};

/// Writes the quantity of each row of counts to `out`.
///
/// # Errors
/// [`Error::Input`] for the first bad row, [`Error::Interrupted`].
pub(crate) fn map<Q: Quantity, R: Rows + ?Sized>(
    quantity: &Q,
    rows: &R,
    out: &mut [Q::Value],
    execution: Execution<'_>,
) -> Result<(), Error> {
    same_length("out", out.len(), rows.len(), "counts")?;
    for_each_part(out, BLOCK, execution, |start, part, watch| {
        map_part(quantity, rows, start, part, watch)
    })
}

fn map_part<Q: Quantity, R: Rows + ?Sized>(
    quantity: &Q,
    rows: &R,
    start: usize,
    part: &mut [Q::Value],
    mut watch: Watch<'_>,
) -> Result<(), Error> {
    let mut table: Option<Table<Q::Value>> = None;
    let mut buffer = Vec::new();
    let mut left = part.len();
    let mut row = start;
    for out in part.chunks_mut(BLOCK) {
        watch.poll()?;
        let block = rows.block(row, out.len(), &mut buffer);
        let bits = bits_of(block);
        let tabulated = table.as_ref().is_some_and(|table| bits <= table.bits());
        // A table pays when it has fewer entries than rows that are still to come.
        if !tabulated && Table::<Q::Value>::entries(bits).is_some_and(|entries| entries <= left) {
            table = Some(Table::fill(quantity, bits));
        }
        match &table {
            Some(table) if bits <= table.bits() => look_up(table, block, out),
            _ => compute(quantity, block, row, out)?,
        }
        row += out.len();
        left -= out.len();
    }
    Ok(())
}

/// Bits of the largest count of a block; 64 if any value is no count.
pub(crate) fn bits_of<R: CountRow>(block: &[R]) -> u32 {
    u64::BITS - R::bits(block).leading_zeros()
}

fn look_up<R: CountRow, V: Copy>(table: &Table<V>, block: &[R], out: &mut [V]) {
    // With the usual handful of votes the shifts are constants and no index can be out of range.
    if let Some(values) = table.of_four_bits() {
        for (row, out) in block.iter().zip(out) {
            let [minus, tie, plus] = row.small();
            let place = (minus << 8) | (tie << 4) | plus;
            *out = values[place % values.len()];
        }
        return;
    }
    for (row, out) in block.iter().zip(out) {
        let [minus, tie, plus] = row.small();
        *out = table.at(minus, tie, plus);
    }
}

fn compute<R: CountRow, Q: Quantity>(
    quantity: &Q,
    block: &[R],
    start: usize,
    out: &mut [Q::Value],
) -> Result<(), Error> {
    for (i, (row, out)) in block.iter().zip(out).enumerate() {
        *out = quantity.of(row.counts(start + i)?);
    }
    Ok(())
}
