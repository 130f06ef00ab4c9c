use std::hash::Hash;

use btdagg::{Error, Tally, Vote};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{InVector, Vector, array_of, array_of_rows, copy_strings, signed};
use crate::call::run;

/// Rows between two looks at Ctrl-C. Strings are copied out of Python a block at a time, so that
/// the GIL is free while they are tallied.
const BLOCK: usize = 1 << 16;

/// What a tally returns: items and their counts.
type Tallied<'py, Items> = PyResult<(Items, Bound<'py, PyAny>)>;

/// Votes as labels, or with a strength.
#[derive(FromPyObject)]
pub enum Votes<'py> {
    Labels(InVector<'py, i8>),
    Strengths(InVector<'py, f64>),
}

/// Counts by item for integer ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_integers<'py>(
    py: Python<'py>,
    items: InVector<'py, i64>,
    votes: Votes<'py>,
) -> Tallied<'py, Vector<'py, i64>> {
    let items = items.as_slice()?;
    let tally = match &votes {
        Votes::Labels(votes) => of_integers(py, items, votes.as_slice()?),
        Votes::Strengths(votes) => of_integers(py, items, votes.as_slice()?),
    }?;
    let ids = array_of(py, tally.items().iter().copied())?;
    Ok((ids, counts_of(py, &tally, &votes)?))
}

fn of_integers(py: Python<'_>, items: &[i64], votes: &[impl Vote + Sync]) -> PyResult<Tally<i64>> {
    let mut tally = Tally::new();
    for (block, (items, votes)) in items.chunks(BLOCK).zip(votes.chunks(BLOCK)).enumerate() {
        py.check_signals()?;
        run(py, 1, |_| {
            tally.try_reserve(items.len())?;
            tally.add_all(items, votes).map_err(counted_from(block * BLOCK))
        })?;
    }
    Ok(tally)
}

/// Counts by item for string ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_strings<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyList>,
    votes: Votes<'py>,
) -> Tallied<'py, Vec<String>> {
    let tally = match &votes {
        Votes::Labels(votes) => of_strings(py, items, votes.as_slice()?),
        Votes::Strengths(votes) => of_strings(py, items, votes.as_slice()?),
    }?;
    let counts = counts_of(py, &tally, &votes)?;
    Ok((tally.items().to_vec(), counts))
}

fn of_strings(
    py: Python<'_>,
    items: &Bound<'_, PyList>,
    votes: &[impl Vote + Sync],
) -> PyResult<Tally<String>> {
    let mut tally = Tally::<String>::new();
    for (block, votes) in votes.chunks(BLOCK).enumerate() {
        py.check_signals()?;
        let start = block * BLOCK;
        let (text, ends) = copy_strings(items, start, votes.len())?;
        let end_before = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
        let items = (0..ends.len()).map(|row| &text[end_before(row)..ends[row]]);
        run(py, 1, |_| {
            tally.try_reserve(items.len())?;
            tally.add_all(items, votes).map_err(counted_from(start))
        })?;
    }
    Ok(tally)
}

/// The error of a block, its row counted from the first row of all.
fn counted_from(start: usize) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Input(input) => {
            let place: Vec<usize> = input.place.iter().map(|row| start + row).collect();
            Error::Input(input).at(&place)
        }
        other => other,
    }
}

/// Integers where votes are labels, floats where they have a strength.
fn counts_of<'py, K: Eq + Hash + Clone>(
    py: Python<'py>,
    tally: &Tally<K>,
    votes: &Votes<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let counts = tally.counts().iter().copied();
    Ok(match votes {
        Votes::Labels(_) => array_of_rows(py, counts.map(signed))?.into_any(),
        Votes::Strengths(_) => {
            array_of_rows(py, counts.map(|c| [c.minus(), c.tie(), c.plus()]))?.into_any()
        }
    })
}
