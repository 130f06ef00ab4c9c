use std::sync::{Mutex, MutexGuard, PoisonError};

use btdagg::Execution;
use btdagg::running::{Integers, Keys, RunningTally, Texts, Vote, VoteRows};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

use crate::arrays::by_rows;
use crate::call::{InputError, run};
use crate::stopping::StoppingRule;
use crate::tally::copy_strings;

/// Columns of votes; samples and channels are 0 where they are not given.
struct Columns<'a> {
    votes: &'a [i8],
    samples: Option<&'a [u32]>,
    channels: Option<&'a [u32]>,
}

impl<'a> Columns<'a> {
    fn new(
        n_items: usize,
        votes: &'a PyReadonlyArray1<'_, i8>,
        samples: Option<&'a PyReadonlyArray1<'_, u32>>,
        channels: Option<&'a PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let votes = votes.as_slice()?;
        let samples = samples.map(|samples| samples.as_slice()).transpose()?;
        let channels = channels.map(|channels| channels.as_slice()).transpose()?;
        let lengths = [
            ("votes", Some(votes.len())),
            ("samples", samples.map(<[u32]>::len)),
            ("channels", channels.map(<[u32]>::len)),
        ];
        for (name, len) in lengths {
            if let Some(len) = len.filter(|&len| len != n_items) {
                return Err(InputError::new_err(format!(
                    "{name} has {len} rows, want {n_items} as in items"
                )));
            }
        }
        Ok(Self { votes, samples, channels })
    }
}

impl VoteRows for Columns<'_> {
    fn len(&self) -> usize {
        self.votes.len()
    }

    #[inline]
    fn vote(&self, row: usize) -> Vote {
        let at = |column: Option<&[u32]>| column.map_or(0, |column| column[row]);
        Vote { vote: self.votes[row], sample: at(self.samples), channel: at(self.channels) }
    }
}

/// What a tally holds: ids, whether each was reported, planes by item and lane, lanes.
type Parts<'py, Items> =
    (Items, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray2<u64>>, Vec<(u32, u32)>);

/// Ids as Python gets them: an array of integers, or texts and where each ends.
trait Listed<K: ?Sized>: Default + Send {
    fn push(&mut self, key: &K);
}

#[derive(Default)]
struct ListedIntegers(Vec<i64>);

impl Listed<i64> for ListedIntegers {
    fn push(&mut self, key: &i64) {
        self.0.push(*key);
    }
}

impl ListedIntegers {
    fn into_python(self, py: Python<'_>) -> Bound<'_, PyArray1<i64>> {
        self.0.into_pyarray(py)
    }
}

#[derive(Default)]
struct ListedTexts(Vec<u8>, Vec<i64>);

impl Listed<[u8]> for ListedTexts {
    fn push(&mut self, key: &[u8]) {
        self.0.extend_from_slice(key);
        self.1.push(i64::try_from(self.0.len()).unwrap_or(i64::MAX));
    }
}

/// Texts as UTF-8 bytes and ends.
type Packed<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

impl ListedTexts {
    fn into_python(self, py: Python<'_>) -> Packed<'_> {
        (self.0.into_pyarray(py), self.1.into_pyarray(py))
    }
}

/// For threads without the GIL.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For threads with the GIL, which is given up while waiting: who holds the lock may want it, to
/// look for Ctrl-C.
fn locked_attached<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

pub fn counts_array(py: Python<'_>, counts: Vec<i64>) -> PyResult<Bound<'_, PyArray2<i64>>> {
    let array = Array2::from_shape_vec((counts.len() / 3, 3), counts);
    Ok(array.map_err(|error| InputError::new_err(error.to_string()))?.into_pyarray(py))
}

pub fn signed(counts: btdagg::Counts) -> [i64; 3] {
    [counts.minus, counts.tie, counts.plus].map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

macro_rules! running_tally {
    ($(#[$doc:meta])* $name:ident $ids:ty, $items:ty, $listed:ident -> $given:ty, $one:ty,
     $rows:expr, $key:expr) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "btdagg._core")]
        pub struct $name(Mutex<RunningTally<$ids>>);

        #[pymethods]
        impl $name {
            #[new]
            fn new(deduplicate: bool) -> Self {
                Self(Mutex::new(RunningTally::new(deduplicate)))
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                locked_attached(py, &self.0).len()
            }

            /// Adds votes, all or none.
            fn add(
                &self,
                py: Python<'_>,
                items: $items,
                votes: PyReadonlyArray1<'_, i8>,
                samples: Option<PyReadonlyArray1<'_, u32>>,
                channels: Option<PyReadonlyArray1<'_, u32>>,
                n_threads: usize,
            ) -> PyResult<()> {
                let rows = $rows(&items)?;
                let n_items = Keys::<$ids>::len(rows.as_ref());
                let columns = Columns::new(n_items, &votes, samples.as_ref(), channels.as_ref())?;
                run(py, n_threads, |execution| {
                    locked(&self.0).add(rows.as_ref(), &columns, execution)
                })
            }

            /// Whether each row is a new vote for an item that was reported as settled; None if no
            /// item was.
            fn late<'py>(
                &self,
                py: Python<'py>,
                items: $items,
                votes: PyReadonlyArray1<'py, i8>,
                samples: Option<PyReadonlyArray1<'py, u32>>,
                channels: Option<PyReadonlyArray1<'py, u32>>,
            ) -> PyResult<Option<Bound<'py, PyArray1<bool>>>> {
                let rows = $rows(&items)?;
                let n_items = Keys::<$ids>::len(rows.as_ref());
                let columns = Columns::new(n_items, &votes, samples.as_ref(), channels.as_ref())?;
                let late = run(py, 1, |_| {
                    let tally = locked(&self.0);
                    let keys = rows.as_ref();
                    Ok(tally.has_reported().then(|| {
                        (0..n_items)
                            .map(|row| {
                                let key = Keys::<$ids>::key(keys, row);
                                tally.is_late(key, columns.vote(row))
                            })
                            .collect::<Vec<bool>>()
                    }))
                })?;
                Ok(late.map(|late| late.into_pyarray(py)))
            }

            /// Adds one vote of a sample and channel.
            fn add_one(
                &self,
                py: Python<'_>,
                item: $one,
                vote: i8,
                sample: u32,
                channel: u32,
            ) -> PyResult<()> {
                let vote = Vote { vote, sample, channel };
                let mut tally = locked_attached(py, &self.0);
                $key(&item, |keys| tally.add(keys, &[vote][..], Execution::single()))
                    .map_err(crate::call::raise)
            }

            /// Whether this is a new vote for an item that was reported as settled.
            fn is_late(
                &self,
                py: Python<'_>,
                item: $one,
                vote: i8,
                sample: u32,
                channel: u32,
            ) -> bool {
                let vote = Vote { vote, sample, channel };
                let tally = locked_attached(py, &self.0);
                $key(&item, |keys| tally.is_late(Keys::<$ids>::key(keys, 0), vote))
            }

            /// Counts of one item in label order, if it is there.
            fn counts_one(&self, py: Python<'_>, item: $one) -> Option<[i64; 3]> {
                let tally = locked_attached(py, &self.0);
                $key(&item, |keys| {
                    tally.counts(Keys::<$ids>::key(keys, 0)).map(signed)
                })
            }

            /// Ids in ascending order and their (n, 3) counts.
            fn counts<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<($given, Bound<'py, PyArray2<i64>>)> {
                let (mut ids, mut counts) = ($listed::default(), Vec::new());
                run(py, 1, |_| {
                    locked(&self.0).for_each(|key, found| {
                        ids.push(key);
                        counts.extend(signed(found));
                    });
                    Ok(())
                })?;
                Ok((ids.into_python(py), counts_array(py, counts)?))
            }

            /// Ids, labels and counts of the items that are settled and were not reported before.
            fn settle<'py>(
                &self,
                py: Python<'py>,
                rule: &StoppingRule,
            ) -> PyResult<($given, Bound<'py, PyArray1<i8>>, Bound<'py, PyArray2<i64>>)> {
                let (mut ids, mut labels, mut counts) =
                    ($listed::default(), Vec::new(), Vec::new());
                run(py, 1, |_| {
                    locked(&self.0).settle(&rule.0, |key, found, label| {
                        ids.push(key);
                        labels.push(label.value());
                        counts.extend(signed(found));
                    });
                    Ok(())
                })?;
                Ok((ids.into_python(py), labels.into_pyarray(py), counts_array(py, counts)?))
            }

            /// Row, channel, sample and labels of every sample that came with different votes.
            fn conflicts(&self, py: Python<'_>) -> Vec<(usize, u32, u32, [bool; 3])> {
                let found = py.detach(|| locked(&self.0).conflicts());
                found.iter().map(|c| (c.row, c.channel, c.sample, c.labels)).collect()
            }

            /// Takes over the votes of another tally, which is left empty: a `copy`, so that two
            /// tallies that take each other over do not wait for ever.
            fn merge(&self, py: Python<'_>, other: &Self, channels: Vec<u32>) -> PyResult<()> {
                run(py, 1, |_| {
                    let empty = RunningTally::new(locked(&other.0).deduplicates());
                    let other = std::mem::replace(&mut *locked(&other.0), empty);
                    locked(&self.0).merge(&other, &channels)
                })
            }

            /// A tally of its own with the same votes.
            fn copy(&self, py: Python<'_>) -> Self {
                Self(Mutex::new(py.detach(|| locked(&self.0).clone())))
            }

            /// All that the tally holds.
            fn export<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py, $given>> {
                let (mut ids, mut reported, mut planes) =
                    ($listed::default(), Vec::new(), Vec::new());
                let lanes = run(py, 1, |_| {
                    let tally = locked(&self.0);
                    tally.export(|key, was, own| {
                        ids.push(key);
                        reported.push(was);
                        planes.extend(own.flatten());
                    });
                    Ok(tally.lanes().to_vec())
                })?;
                let shape = (reported.len(), 3 * lanes.len());
                let planes = Array2::from_shape_vec(shape, planes)
                    .map_err(|error| InputError::new_err(error.to_string()))?;
                Ok((
                    ids.into_python(py),
                    reported.into_pyarray(py),
                    planes.into_pyarray(py),
                    lanes,
                ))
            }

            /// A tally that holds what `export` gave.
            #[staticmethod]
            fn restore(
                py: Python<'_>,
                deduplicate: bool,
                items: $items,
                reported: PyReadonlyArray1<'_, bool>,
                planes: PyReadonlyArray1<'_, u64>,
                lanes: Vec<(u32, u32)>,
            ) -> PyResult<Self> {
                let rows = $rows(&items)?;
                let (reported, planes) = (reported.as_slice()?, planes.as_slice()?.as_chunks().0);
                run(py, 1, |_| {
                    RunningTally::import(deduplicate, lanes, rows.as_ref(), reported, planes)
                })
                .map(|tally| Self(Mutex::new(tally)))
            }
        }
    };
}

/// Rows of integer ids.
fn integer_rows<'a>(items: &'a PyReadonlyArray1<'_, i64>) -> PyResult<&'a [i64]> {
    Ok(items.as_slice()?)
}

/// Texts as UTF-8, one after the other, as Arrow holds them: where the first begins and where each
/// ends.
struct TextRows<'a> {
    start: i64,
    data: &'a [u8],
    ends: &'a [i64],
}

impl Keys<Texts> for TextRows<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { self.start } else { self.ends[row - 1] };
        // `text_rows` has checked that all ends are within the data.
        let [start, end] = [start, self.ends[row]].map(|end| usize::try_from(end).unwrap_or(!0));
        &self.data[start..end]
    }
}

impl AsRef<Self> for TextRows<'_> {
    fn as_ref(&self) -> &Self {
        self
    }
}

type TextItems<'py> = (PyReadonlyArray1<'py, u8>, i64, PyReadonlyArray1<'py, i64>);

/// Rows of text ids.
fn text_rows<'a>((data, start, ends): &'a TextItems<'_>) -> PyResult<TextRows<'a>> {
    let rows = TextRows { start: *start, data: data.as_slice()?, ends: ends.as_slice()? };
    let mut least = 0;
    for &end in std::iter::once(start).chain(rows.ends) {
        if end < least || usize::try_from(end).map_or(true, |end| end > rows.data.len()) {
            let most = rows.data.len();
            return Err(InputError::new_err(format!(
                "items has a text that ends at {end}, want a number from {least} to {most}"
            )));
        }
        least = end;
    }
    Ok(rows)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "like with_text, for the macro")]
fn with_integer<R>(item: &i64, work: impl FnOnce(&[i64]) -> R) -> R {
    work(&[*item])
}

fn with_text<R>(item: &str, work: impl FnOnce(&[&str]) -> R) -> R {
    work(&[item])
}

running_tally!(
    /// Votes of integer ids.
    IntegerTally Integers, PyReadonlyArray1<'_, i64>, ListedIntegers -> Bound<'py, PyArray1<i64>>,
    i64, integer_rows, with_integer
);
running_tally!(
    /// Votes of text ids, given as UTF-8 bytes, where the first begins and where each ends.
    TextTally Texts, TextItems<'_>, ListedTexts -> Packed<'py>,
    &str, text_rows, with_text
);

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
