use std::sync::{Mutex, MutexGuard, PoisonError};

use btdagg::running::{Id, Keys, Texts, Votes};
use btdagg::{Counts, Execution};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

use crate::arrays::{by_rows, copy_strings, signed};
use crate::call::{InputError, raise, run};
use crate::stopping::StoppingRule;

/// Ids of rows: integers, or texts as UTF-8 bytes, where the first begins and where each ends.
#[derive(FromPyObject)]
enum Items<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Texts(PyReadonlyArray1<'py, u8>, i64, PyReadonlyArray1<'py, i64>),
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

/// One id.
#[derive(FromPyObject)]
enum Item {
    Integer(i64),
    Text(String),
}

impl Item {
    fn with<R>(&self, work: impl FnOnce(&Keys<'_>) -> R) -> PyResult<R> {
        Ok(match self {
            Self::Integer(key) => work(&Keys::Integers(&[*key])),
            Self::Text(text) => {
                let end = [i64::try_from(text.len()).unwrap_or(i64::MAX)];
                work(&Keys::Texts(Texts::new(text.as_bytes(), 0, &end).map_err(raise)?))
            }
        })
    }
}

type Column<'py, T> = Option<PyReadonlyArray1<'py, T>>;

fn columns<'a>(
    votes: &'a PyReadonlyArray1<'_, i8>,
    samples: &'a Column<'_, u32>,
    channels: &'a Column<'_, u32>,
) -> PyResult<Votes<'a>> {
    Ok(Votes {
        votes: votes.as_slice()?,
        samples: samples.as_ref().map(|samples| samples.as_slice()).transpose()?,
        channels: channels.as_ref().map(|channels| channels.as_slice()).transpose()?,
    })
}

/// Texts as UTF-8 bytes and ends.
type Packed<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

/// Ids as Python gets them.
#[derive(IntoPyObject)]
enum Ids<'py> {
    Integers(Bound<'py, PyArray1<i64>>),
    Texts(Packed<'py>),
}

/// Ids that are handed out, one after the other.
#[derive(Default)]
struct Listed {
    integers: Vec<i64>,
    data: Vec<u8>,
    ends: Vec<i64>,
}

impl Listed {
    fn push(&mut self, id: Id<'_>) {
        match id {
            Id::Integer(id) => self.integers.push(id),
            Id::Text(text) => {
                self.data.extend_from_slice(text);
                self.ends.push(i64::try_from(self.data.len()).unwrap_or(i64::MAX));
            }
        }
    }

    fn into_python(self, py: Python<'_>, are_texts: bool) -> Ids<'_> {
        if are_texts {
            Ids::Texts((self.data.into_pyarray(py), self.ends.into_pyarray(py)))
        } else {
            Ids::Integers(self.integers.into_pyarray(py))
        }
    }
}

/// What a tally holds: ids, whether each was reported, planes by item and lane, lanes.
type Parts<'py> =
    (Ids<'py>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray2<u64>>, Vec<(u32, u32)>);

/// Ids, labels and counts of items that are settled.
type Settled<'py> = (Ids<'py>, Bound<'py, PyArray1<i8>>, Bound<'py, PyArray2<i64>>);

fn counts_array(py: Python<'_>, counts: Vec<[i64; 3]>) -> PyResult<Bound<'_, PyArray2<i64>>> {
    let n = counts.len();
    PyArray1::from_vec(py, counts.into_flattened()).reshape([n, 3])
}

/// For threads without the GIL.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Votes of items by sample; ids are integers or texts.
#[pyclass(frozen, module = "btdagg._core")]
pub struct RunningTally {
    tally: Mutex<btdagg::running::RunningTally>,
    #[pyo3(get)]
    has_texts: bool,
}

impl RunningTally {
    fn of(tally: btdagg::running::RunningTally) -> Self {
        Self { has_texts: tally.has_texts(), tally: Mutex::new(tally) }
    }

    /// For threads with the GIL, which is given up while waiting: who holds the lock may expected it,
    /// to look for Ctrl-C.
    fn attached(&self, py: Python<'_>) -> MutexGuard<'_, btdagg::running::RunningTally> {
        self.tally.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RunningTally {
    #[new]
    fn new(deduplicate: bool, has_texts: bool) -> Self {
        Self::of(btdagg::running::RunningTally::new(deduplicate, has_texts))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.attached(py).len()
    }

    /// Adds votes, all or none.
    fn add(
        &self,
        py: Python<'_>,
        items: Items<'_>,
        votes: PyReadonlyArray1<'_, i8>,
        samples: Column<'_, u32>,
        channels: Column<'_, u32>,
        n_threads: usize,
    ) -> PyResult<()> {
        let (keys, votes) = (items.keys()?, columns(&votes, &samples, &channels)?);
        run(py, n_threads, |execution| locked(&self.tally).add(&keys, &votes, execution))
    }

    /// Whether each row is a new vote for an item that was reported as settled; None if no item
    /// was.
    fn late<'py>(
        &self,
        py: Python<'py>,
        items: Items<'py>,
        votes: PyReadonlyArray1<'py, i8>,
        samples: Column<'py, u32>,
        channels: Column<'py, u32>,
    ) -> PyResult<Option<Bound<'py, PyArray1<bool>>>> {
        let (keys, votes) = (items.keys()?, columns(&votes, &samples, &channels)?);
        let late = run(py, 1, |_| locked(&self.tally).late(&keys, &votes))?;
        Ok(late.map(|late| late.into_pyarray(py)))
    }

    /// Adds one vote, and says whether it was; not if it is a new vote for an item that was
    /// reported as settled.
    fn add_one(
        &self,
        py: Python<'_>,
        item: Item,
        vote: i8,
        sample: u32,
        channel: u32,
    ) -> PyResult<bool> {
        let (vote, sample, channel) = ([vote], [sample], [channel]);
        let votes = Votes { votes: &vote, samples: Some(&sample), channels: Some(&channel) };
        let mut tally = self.attached(py);
        let added = item.with(|keys| {
            if tally.late(keys, &votes)? == Some(vec![true]) {
                return Ok(false);
            }
            tally.add(keys, &votes, Execution::single()).map(|()| true)
        })?;
        added.map_err(raise)
    }

    /// Counts of one item in label order, if it is there.
    fn counts_one(&self, py: Python<'_>, item: Item) -> PyResult<Option<[i64; 3]>> {
        let tally = self.attached(py);
        item.with(|keys| tally.counts(keys, 0).map(signed))
    }

    /// Ids in ascending order and their (n, 3) counts.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<(Ids<'py>, Bound<'py, PyArray2<i64>>)> {
        let (mut ids, mut all) = (Listed::default(), Vec::new());
        py.detach(|| {
            locked(&self.tally).for_each(|id, counts| {
                ids.push(id);
                all.push(signed(counts));
            });
        });
        Ok((ids.into_python(py, self.has_texts), counts_array(py, all)?))
    }

    /// Ids, labels and counts of the items that are settled and were not reported before.
    fn settle<'py>(&self, py: Python<'py>, rule: &StoppingRule) -> PyResult<Settled<'py>> {
        let (mut ids, mut labels, mut all) = (Listed::default(), Vec::new(), Vec::new());
        py.detach(|| {
            locked(&self.tally).settle(&rule.0, |id, counts: Counts, label| {
                ids.push(id);
                labels.push(label.value());
                all.push(signed(counts));
            });
        });
        let ids = ids.into_python(py, self.has_texts);
        Ok((ids, labels.into_pyarray(py), counts_array(py, all)?))
    }

    /// Row, channel, sample and labels of every sample that came with different votes.
    fn conflicts(&self, py: Python<'_>) -> Vec<(usize, u32, u32, [bool; 3])> {
        let conflicts = py.detach(|| locked(&self.tally).conflicts());
        conflicts.iter().map(|c| (c.row, c.channel, c.sample, c.labels)).collect()
    }

    /// Adds the votes of another tally: of a `copy`, so that two tallies that take each other over
    /// do not wait for ever.
    fn merge(&self, py: Python<'_>, other: &Self, channels: Vec<u32>) -> PyResult<()> {
        run(py, 1, |_| locked(&self.tally).merge(&locked(&other.tally), &channels))
    }

    /// A tally of its own with the same votes.
    fn copy(&self, py: Python<'_>) -> Self {
        Self::of(py.detach(|| locked(&self.tally).clone()))
    }

    /// All that the tally holds.
    fn export<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let (mut ids, mut reported, mut planes) = (Listed::default(), Vec::new(), Vec::new());
        let lanes = py.detach(|| {
            let tally = locked(&self.tally);
            tally.export(|id, was_reported, own| {
                ids.push(id);
                reported.push(was_reported);
                planes.extend(own.flatten());
            });
            tally.lanes().to_vec()
        });
        let planes = Array2::from_shape_vec((reported.len(), 3 * lanes.len()), planes)
            .map_err(|error| InputError::new_err(error.to_string()))?;
        let ids = ids.into_python(py, self.has_texts);
        Ok((ids, reported.into_pyarray(py), planes.into_pyarray(py), lanes))
    }

    /// A tally that holds what `export` gave.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        deduplicate: bool,
        items: Items<'_>,
        reported: PyReadonlyArray1<'_, bool>,
        planes: PyReadonlyArray1<'_, u64>,
        lanes: Vec<(u32, u32)>,
    ) -> PyResult<Self> {
        let keys = items.keys()?;
        let (reported, planes) = (reported.as_slice()?, planes.as_slice()?.as_chunks().0);
        run(py, 1, |_| {
            btdagg::running::RunningTally::import(deduplicate, lanes, &keys, reported, planes)
        })
        .map(Self::of)
    }
}

/// The strings of a list as UTF-8 bytes and ends.
#[pyfunction]
pub fn pack_texts<'py>(py: Python<'py>, items: &Bound<'py, PyList>) -> PyResult<Packed<'py>> {
    let (text, ends) = copy_strings(items, 0, items.len())?;
    let ends: Vec<i64> = ends.iter().map(|&end| i64::try_from(end).unwrap_or(i64::MAX)).collect();
    Ok((text.into_bytes().into_pyarray(py), ends.into_pyarray(py)))
}

/// Rows of code points, as NumPy keeps strings of a fixed width, as UTF-8 bytes and ends.
#[pyfunction]
pub fn pack_wide<'py>(py: Python<'py>, items: PyReadonlyArray2<'py, u32>) -> PyResult<Packed<'py>> {
    let (n_rows, width) = items.as_array().dim();
    let points = &*by_rows(&items);
    let (text, ends) = py
        .detach(|| {
            let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(n_rows));
            for row in 0..n_rows {
                let row_points = &points[row * width..(row + 1) * width];
                let len =
                    row_points.iter().rposition(|&point| point != 0).map_or(0, |last| last + 1);
                if row_points[..len].iter().all(|&point| point < 128) {
                    text.extend(row_points[..len].iter().map(|&p| u8::try_from(p).unwrap_or(b'?')));
                } else {
                    for &point in &row_points[..len] {
                        let Some(letter) = char::from_u32(point) else {
                            return Err(row);
                        };
                        text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
                ends.push(i64::try_from(text.len()).unwrap_or(i64::MAX));
            }
            Ok((text, ends))
        })
        .map_err(|row| {
            InputError::new_err(format!("items[{row}] is no valid text, it has a lone surrogate"))
        })?;
    Ok((text.into_pyarray(py), ends.into_pyarray(py)))
}
