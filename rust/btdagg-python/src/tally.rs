use std::hash::Hash;

use btdagg::Tally;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::call::{InputError, run};

/// Rows between two looks at Ctrl-C. Strings are copied out of Python a block at a time, so that
/// the GIL is free while they are tallied.
const BLOCK: usize = 1 << 16;

/// What a tally returns: items and their counts.
type Tallied<'py, Items> = PyResult<(Items, Bound<'py, PyArray2<i64>>)>;

/// Counts by item for integer ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_integers<'py>(
    py: Python<'py>,
    items: PyReadonlyArray1<'py, i64>,
    votes: PyReadonlyArray1<'py, i8>,
) -> Tallied<'py, Bound<'py, PyArray1<i64>>> {
    let (items, votes) = (items.as_slice()?, votes.as_slice()?);
    same_length(items.len(), votes.len())?;
    let mut tally = Tally::new();
    for (block, (items, votes)) in items.chunks(BLOCK).zip(votes.chunks(BLOCK)).enumerate() {
        py.check_signals()?;
        run(py, 1, |_| tally.add_all(items, votes, block * BLOCK))?;
    }
    Ok((PyArray1::from_slice(py, tally.items()), counts_of(py, &tally)))
}

/// Counts by item for string ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_strings<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyList>,
    votes: PyReadonlyArray1<'py, i8>,
) -> Tallied<'py, Vec<String>> {
    let votes = votes.as_slice()?;
    same_length(items.len(), votes.len())?;
    let mut tally = Tally::<String>::new();
    for (block, votes) in votes.chunks(BLOCK).enumerate() {
        py.check_signals()?;
        let start = block * BLOCK;
        let (text, ends) = copy_strings(items, start, votes.len())?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let items = starts.zip(&ends).map(|(start, &end)| text.get(start..end).unwrap_or_default());
        run(py, 1, |_| tally.add_all(items, votes, start))?;
    }
    let counts = counts_of(py, &tally);
    Ok((tally.items().to_vec(), counts))
}

/// The strings of a stretch of a list, one after the other, and where each ends.
pub fn copy_strings(
    items: &Bound<'_, PyList>,
    start: usize,
    len: usize,
) -> PyResult<(String, Vec<usize>)> {
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(len));
    for row in start..start + len {
        let item = items.get_item(row)?;
        let item = item.cast::<PyString>().map_err(|_| {
            let kind = item.get_type();
            InputError::new_err(format!("items[{row}] is {item} of {kind}, want a str as before"))
        })?;
        text.push_str(item.to_str().map_err(|_| {
            InputError::new_err(format!("items[{row}] is no valid text, it has a lone surrogate"))
        })?);
        ends.push(text.len());
    }
    Ok((text, ends))
}

fn same_length(items: usize, votes: usize) -> PyResult<()> {
    if items == votes {
        return Ok(());
    }
    Err(InputError::new_err(format!("votes has {votes} rows, want {items} as in items")))
}

fn counts_of<'py, K: Eq + Hash + Clone>(
    py: Python<'py>,
    tally: &Tally<K>,
) -> Bound<'py, PyArray2<i64>> {
    let counts = tally.counts();
    let columns = |row: usize| counts.get(row).map_or([0; 3], |c| [c.minus, c.tie, c.plus]);
    Array2::from_shape_fn((counts.len(), 3), |(row, column)| {
        columns(row).get(column).map_or(0, |&count| i64::try_from(count).unwrap_or(i64::MAX))
    })
    .into_pyarray(py)
}
