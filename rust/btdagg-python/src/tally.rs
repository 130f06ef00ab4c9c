use std::borrow::Borrow;
use std::hash::Hash;

use btdagg::Tally;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{array_of, array_of_rows, copy_strings, signed};
use crate::call::run;

/// What a tally returns: items and their counts.
type Tallied<'py, Items> = PyResult<(Items, Bound<'py, PyAny>)>;

/// Votes as labels, or with a strength.
#[derive(FromPyObject)]
pub enum Votes<'py> {
    Labels(PyReadonlyArray1<'py, i8>),
    Strengths(PyReadonlyArray1<'py, f64>),
}

/// Counts by item for integer ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_integers<'py>(
    py: Python<'py>,
    items: PyReadonlyArray1<'py, i64>,
    votes: Votes<'py>,
) -> Tallied<'py, Bound<'py, PyArray1<i64>>> {
    let tally: Tally<i64> = tallied(py, items.as_slice()?.iter(), &votes)?;
    let ids = array_of(py, tally.items().iter().copied())?;
    Ok((ids, counts_of(py, &tally, &votes)?))
}

/// Counts by item for string ids: items in first-seen order and their (n, 3) counts.
#[pyfunction]
pub fn tally_strings<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyList>,
    votes: Votes<'py>,
) -> Tallied<'py, Vec<String>> {
    let (text, ends) = copy_strings(items)?;
    let start = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
    let texts = (0..ends.len()).map(|row| &text[start(row)..ends[row]]);
    let tally: Tally<String> = tallied(py, texts, &votes)?;
    Ok((tally.items().to_vec(), counts_of(py, &tally, &votes)?))
}

fn tallied<'a, K: Eq + Hash + Clone + Borrow<Q> + Send, Q>(
    py: Python<'_>,
    items: impl ExactSizeIterator<Item = &'a Q> + Send,
    votes: &Votes<'_>,
) -> PyResult<Tally<K>>
where
    Q: Eq + Hash + ToOwned<Owned = K> + ?Sized + 'a,
{
    let mut tally = Tally::new();
    match votes {
        Votes::Labels(votes) => {
            let votes = votes.as_slice()?;
            run(py, 1, |_| tally.add_all(items, votes))?;
        }
        Votes::Strengths(votes) => {
            let votes = votes.as_slice()?;
            run(py, 1, |_| tally.add_all(items, votes))?;
        }
    }
    Ok(tally)
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
            array_of_rows(py, counts.map(|c| [c.minus, c.tie, c.plus]))?.into_any()
        }
    })
}
