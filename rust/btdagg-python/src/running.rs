use btdagg::running::{Ids, Keys, Planes, Texts, Votes};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{
    InVector, Matrix, Vector, array_of, array_of_rows, collected, copy_strings, signed,
};
use crate::call::{raise, run};
use crate::stopping::StoppingRule;

/// Ids of rows: integers, or texts as UTF-8 bytes, where the first begins and where each ends.
#[derive(FromPyObject)]
enum Items<'py> {
    Integers(InVector<'py, i64>),
    Texts(InVector<'py, u8>, i64, InVector<'py, i64>),
}

impl Items<'_> {
    fn keys(&self) -> PyResult<Keys<'_>> {
        Ok(match self {
            Self::Integers(keys) => Keys::Integers(keys.as_slice()?),
            Self::Texts(data, start, ends) => {
                Keys::Texts(Texts::new(data.as_slice()?, *start, ends.as_slice()?).map_err(raise)?)
            }
        })
    }
}

type Column<'py, T> = Option<InVector<'py, T>>;

/// Ids as Python gets them: an array of integers, or a list of texts.
fn listed(py: Python<'_>, ids: Ids) -> PyResult<Bound<'_, PyAny>> {
    Ok(match ids {
        Ids::Integers(ids) => array_of(py, ids.into_iter())?.into_any(),
        Ids::Texts(ids) => PyList::new(py, ids)?.into_any(),
    })
}

/// What a tally holds: ids, whether each was reported, planes by item and lane, lanes.
type Parts<'py> = (Bound<'py, PyAny>, Vector<'py, bool>, Vector<'py, u64>, Vec<(u32, u32)>);

/// Ids and counts.
type Counted<'py> = (Bound<'py, PyAny>, Matrix<'py, i64>);

/// Ids, labels and counts of items that are settled.
type Settled<'py> = (Bound<'py, PyAny>, Vector<'py, i8>, Matrix<'py, i64>);

/// Votes of items by sample; ids are integers or texts. Its owner locks it.
#[pyclass(module = "btdagg._core")]
pub struct RunningTally(btdagg::running::RunningTally);

#[pymethods]
impl RunningTally {
    #[new]
    fn new(deduplicate: bool, has_texts: bool) -> Self {
        Self(btdagg::running::RunningTally::new(deduplicate, has_texts))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Adds votes, all or none, and says how many were for settled items and dropped.
    #[expect(clippy::too_many_arguments, reason = "columns of votes")]
    fn add(
        &mut self,
        py: Python<'_>,
        items: Items<'_>,
        votes: InVector<'_, i8>,
        samples: Column<'_, u32>,
        channels: Column<'_, u32>,
        drop_late: bool,
        n_threads: usize,
    ) -> PyResult<usize> {
        let keys = items.keys()?;
        let votes = Votes {
            votes: votes.as_slice()?,
            samples: samples.as_ref().map(|samples| samples.as_slice()).transpose()?,
            channels: channels.as_ref().map(|channels| channels.as_slice()).transpose()?,
        };
        run(py, n_threads, |execution| self.0.add(&keys, &votes, drop_late, execution))
    }

    /// (n, 3) counts of items; zeros of unknown ones.
    fn counts_of<'py>(&self, py: Python<'py>, items: Items<'py>) -> PyResult<Matrix<'py, i64>> {
        let keys = items.keys()?;
        if keys.is_empty() || matches!(keys, Keys::Texts(_)) != self.0.has_texts() {
            return Err(raise(btdagg::running::other_kind()));
        }
        let counts = |row| signed(self.0.counts(&keys, row).unwrap_or_default());
        array_of_rows(py, (0..keys.len()).map(counts))
    }

    /// Ids in ascending order and their (n, 3) counts.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Counted<'py>> {
        let (ids, counts) = run(py, 1, |_| self.0.all_counts())?;
        Ok((listed(py, ids)?, array_of_rows(py, counts.into_iter().map(signed))?))
    }

    /// Ids, labels and counts of the items that are settled and were not reported before.
    fn settle<'py>(&mut self, py: Python<'py>, rule: &StoppingRule) -> PyResult<Settled<'py>> {
        let (ids, labels, counts) = run(py, 1, |_| self.0.settle(&rule.0))?;
        let counts = array_of_rows(py, counts.into_iter().map(signed))?;
        Ok((listed(py, ids)?, array_of(py, labels.into_iter().map(i8::from))?, counts))
    }

    /// Counts items as reported that are settled; which of them were not before.
    fn report<'py>(
        &mut self,
        py: Python<'py>,
        settled: InVector<'py, bool>,
    ) -> PyResult<Vector<'py, bool>> {
        let settled = settled.as_slice()?;
        array_of(py, run(py, 1, |_| self.0.report(settled))?.into_iter())
    }

    /// All that the tally holds.
    fn export<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let (ids, reported, planes) = run(py, 1, |_| self.0.export())?;
        let planes = array_of(py, planes.as_flattened().iter().copied())?;
        let reported = array_of(py, reported.into_iter())?;
        Ok((listed(py, ids)?, reported, planes, self.0.lanes().to_vec()))
    }

    /// Takes over what `export` gave of another tally.
    fn absorb(
        &mut self,
        py: Python<'_>,
        items: Items<'_>,
        reported: InVector<'_, bool>,
        planes: InVector<'_, u64>,
        lanes: Vec<(u32, u32)>,
    ) -> PyResult<()> {
        let (keys, reported) = (items.keys()?, reported.as_slice()?);
        let planes: &[Planes] = planes.as_slice()?.as_chunks().0;
        run(py, 1, |_| self.0.absorb(&lanes, &keys, reported, planes))
    }
}

/// Texts as UTF-8 bytes and ends.
type Packed<'py> = (Vector<'py, u8>, Vector<'py, i64>);

/// The strings of a list as UTF-8 bytes and ends.
#[pyfunction]
pub fn pack_texts<'py>(py: Python<'py>, items: &Bound<'py, PyList>) -> PyResult<Packed<'py>> {
    let (text, ends) = copy_strings(items, 0, items.len())?;
    let ends = collected(ends.into_iter().map(|end| i64::try_from(end).unwrap_or(i64::MAX)))?;
    Ok((PyArray1::from_slice(py, text.as_bytes()), PyArray1::from_vec(py, ends)))
}
