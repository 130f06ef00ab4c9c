use btdagg::Label;
use btdagg::running::{Ids, Key, Keys, Settings, Texts, Votes};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList};

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

/// A sample that came with different votes: item, channel, number, and which votes.
type Conflict<'py> = (Bound<'py, PyAny>, u32, u32, [bool; 3]);

/// Ids and counts.
type Counted<'py> = (Bound<'py, PyAny>, Matrix<'py, i64>);

/// Ids, labels and counts of items that are settled.
type Settled<'py> = (Bound<'py, PyAny>, Vector<'py, i8>, Matrix<'py, i64>);

/// One id.
#[derive(FromPyObject)]
enum Item {
    Integer(i64),
    Text(PyBackedStr),
}

impl Item {
    fn key(&self) -> Key<'_> {
        match self {
            Self::Integer(key) => Key::Integer(*key),
            Self::Text(text) => Key::Text(text),
        }
    }
}

fn shown<'py>(py: Python<'py>, key: Key<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match key {
        Key::Integer(key) => key.into_pyobject(py)?.into_any(),
        Key::Text(text) => text.into_pyobject(py)?.into_any(),
    })
}

/// Votes of items by sample; ids are integers or texts. Its owner locks it.
#[pyclass(module = "btdagg._core")]
pub struct RunningTally(btdagg::running::RunningTally);

#[pymethods]
impl RunningTally {
    #[new]
    fn new(deduplicates: bool, corrects: bool, has_texts: bool, max_items: Option<usize>) -> Self {
        let max_items = max_items.unwrap_or(usize::MAX);
        let settings = Settings { deduplicates, corrects, has_texts, max_items };
        Self(btdagg::running::RunningTally::new(settings))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Whether ids are texts.
    #[getter]
    const fn has_texts(&self) -> bool {
        self.0.settings().has_texts
    }

    /// The number of a judge and an order.
    fn channel(&mut self, judge: &str, order: &str) -> u32 {
        self.0.channel(judge, order)
    }

    /// Judge and order of every channel.
    #[getter]
    fn channels(&self) -> Vec<(String, String)> {
        self.0.channels().to_vec()
    }

    /// Adds votes, all or none; the rows of those that were late and left out.
    #[expect(clippy::too_many_arguments, reason = "columns of votes")]
    fn add(
        &mut self,
        py: Python<'_>,
        items: Items<'_>,
        votes: InVector<'_, i8>,
        samples: Column<'_, u32>,
        channels: Column<'_, u32>,
        refuses_late: bool,
        n_threads: usize,
    ) -> PyResult<Vec<usize>> {
        let keys = items.keys()?;
        let votes = Votes {
            votes: votes.as_slice()?,
            samples: samples.as_ref().map(|samples| samples.as_slice()).transpose()?,
            channels: channels.as_ref().map(|channels| channels.as_slice()).transpose()?,
        };
        run(py, n_threads, |execution| self.0.add(&keys, &votes, refuses_late, execution))
    }

    /// Adds one vote; whether it was late and left out.
    fn add_one(&mut self, item: Item, vote: i8, sample: u32, channel: u32) -> PyResult<bool> {
        let vote = Label::parse(vote, "votes", 0).map_err(raise)?;
        self.0.add_one(item.key(), vote, sample, channel).map_err(raise)
    }

    /// Makes a sample count for nothing; whether its item was reported.
    fn withdraw(&mut self, item: Item, sample: u32, channel: u32) -> PyResult<bool> {
        self.0.withdraw(item.key(), sample, channel).map_err(raise)
    }

    /// Removes items, and says how many there were.
    fn forget(&mut self, items: Items<'_>) -> PyResult<usize> {
        self.0.forget(&items.keys()?).map_err(raise)
    }

    /// Removes the items that were reported as settled, and says how many there were.
    fn evict(&mut self) -> usize {
        self.0.evict()
    }

    /// Adds the votes of another tally; ids of reported items that have other counts now.
    fn merge<'py>(&mut self, py: Python<'py>, other: &Self) -> PyResult<Bound<'py, PyAny>> {
        let changed = run(py, 1, |_| self.0.merge(&other.0))?;
        listed(py, changed)
    }

    /// Another tally with the same votes.
    fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// (n, 3) counts of items; zeros of unknown ones.
    fn counts_of<'py>(&self, py: Python<'py>, items: Items<'py>) -> PyResult<Matrix<'py, i64>> {
        let keys = items.keys()?;
        self.0.check_kind(&keys).map_err(raise)?;
        let counts = |row| signed(self.0.counts(keys.get(row)).unwrap_or_default());
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

    /// No item was reported, from now on.
    fn reopen(&mut self) {
        self.0.reopen();
    }

    /// The samples that came with different votes, by item in ascending order.
    fn conflicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Conflict<'py>>> {
        let conflicts = self.0.conflicts().map_err(raise)?.into_iter();
        let listed = conflicts
            .map(|(key, channel, sample, votes)| Ok((shown(py, key)?, channel, sample, votes)));
        listed.collect()
    }

    /// The whole tally as bytes, with a text.
    fn to_bytes<'py>(&self, py: Python<'py>, about: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, 1, |_| self.0.to_bytes(about))?))
    }

    /// The tally that was written so, and the text.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<(Self, String)> {
        let (tally, about) = run(py, 1, |_| btdagg::running::RunningTally::from_bytes(data))?;
        Ok((Self(tally), about))
    }

    /// Takes over what a state of version 1 holds.
    fn absorb(
        &mut self,
        py: Python<'_>,
        items: Items<'_>,
        reported: InVector<'_, bool>,
        planes: InVector<'_, u64>,
        lanes: Vec<(u32, u16)>,
    ) -> PyResult<()> {
        let (keys, reported) = (items.keys()?, reported.as_slice()?);
        let planes = planes.as_slice()?.as_chunks().0;
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
