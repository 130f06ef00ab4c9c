//! NumPy arrays of counts of any number type and memory order as rows that the core reads.

use std::borrow::Cow;

use btdagg::{CountRow, CountValue, Counts, Error, Rows};
use numpy::ndarray::{ArrayView2, Axis, Dimension};
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArray3, PyArrayDescrMethods, PyArrayMethods,
    PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
    dtype,
};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::call::raise;

/// An array of counts of any type; arrays of one type that come in, and that go out.
pub type Untyped<'py> = Bound<'py, PyUntypedArray>;
pub type InVector<'py, T> = PyReadonlyArray1<'py, T>;
pub type InMatrix<'py, T> = PyReadonlyArray2<'py, T>;
pub type Vector<'py, T> = Bound<'py, PyArray1<T>>;
pub type Matrix<'py, T> = Bound<'py, PyArray2<T>>;
pub type Matrices<'py, T> = Bound<'py, PyArray3<T>>;

/// The values of an array row by row, copied where its memory has another order.
///
/// `as_slice` of a matrix takes columns that lie one after the other for rows.
pub fn by_rows<'a, T: Element + Copy, D: Dimension>(
    array: &'a PyReadonlyArray<'_, T, D>,
) -> Cow<'a, [T]> {
    match array.as_array().to_slice() {
        Some(rows) => Cow::Borrowed(rows),
        None => Cow::Owned(array.as_array().iter().copied().collect()),
    }
}

pub fn rows_of(counts: &Untyped<'_>) -> usize {
    counts.shape()[0]
}

/// Values in a vector; where memory is short that is a `MemoryError`.
pub fn collected<T>(
    values: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> PyResult<Vec<T>> {
    let values = values.into_iter();
    let mut all = Vec::new();
    all.try_reserve_exact(values.len()).map_err(|_| raise(Error::Memory))?;
    all.extend(values);
    Ok(all)
}

/// A new array that `write` fills. `numpy.zeros` makes it, which raises `MemoryError`.
pub fn written<'py, T: Element, D: Dimension>(
    py: Python<'py>,
    shape: impl IntoPyObject<'py>,
    write: impl FnOnce(&mut [T]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let array = py.import("numpy")?.call_method1("zeros", (shape, dtype::<T>(py)))?;
    let array = array.cast_into::<PyArray<T, D>>()?;
    write(array.try_readwrite()?.as_slice_mut()?)?;
    Ok(array)
}

/// A new (n, N) array that `write` fills row by row.
pub fn written_rows<T: Element, const N: usize>(
    py: Python<'_>,
    n_rows: usize,
    write: impl FnOnce(&mut [[T; N]]) -> PyResult<()>,
) -> PyResult<Matrix<'_, T>> {
    written(py, (n_rows, N), |out| write(out.as_chunks_mut().0))
}

/// A new array of values.
pub fn array_of<T: Element>(
    py: Python<'_>,
    values: impl ExactSizeIterator<Item = T>,
) -> PyResult<Vector<'_, T>> {
    written(py, values.len(), |out| {
        out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
        Ok(())
    })
}

/// A new (n, N) array of rows.
pub fn array_of_rows<T: Element, const N: usize>(
    py: Python<'_>,
    rows: impl ExactSizeIterator<Item = [T; N]>,
) -> PyResult<Matrix<'_, T>> {
    written_rows(py, rows.len(), |out| {
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = row);
        Ok(())
    })
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
            let got = format!("is {item} of {}", item.get_type());
            raise(Error::input("items", got, "a str as before").at(&[row]))
        })?;
        text.push_str(item.to_str().map_err(|_| {
            let expected = "a text without lone surrogates";
            raise(Error::input("items", "is no valid text", expected).at(&[row]))
        })?);
        ends.push(text.len());
    }
    Ok((text, ends))
}

/// Rows of three numbers as counts.
pub fn cells_of(counts: &[f64]) -> impl ExactSizeIterator<Item = PyResult<Counts>> {
    let rows = counts.as_chunks::<3>().0.iter().enumerate();
    rows.map(|(row, counts)| counts.counts(row).map_err(raise))
}

/// Whole counts as Python's integers.
#[expect(clippy::cast_possible_truncation, reason = "whole; the cast saturates")]
pub fn signed(counts: Counts) -> [i64; 3] {
    [counts.minus(), counts.tie(), counts.plus()].map(|count| count as i64)
}

macro_rules! count_arrays {
    ($($variant:ident $t:ty),*) => {
        /// A borrowed matrix of counts.
        pub enum CountArray<'py> {
            $(#[doc = stringify!($t)] $variant(PyReadonlyArray2<'py, $t>)),*
        }

        impl<'py> CountArray<'py> {
            fn borrow(counts: &Untyped<'py>) -> PyResult<Self> {
                let py = counts.py();
                let got = counts.dtype();
                $(if got.is_equiv_to(&dtype::<$t>(py)) {
                    return Ok(Self::$variant(counts.extract()?));
                })*
                let expected = "an integer or float type in native byte order";
                Err(raise(Error::input("counts", format!("has dtype {got}"), expected)))
            }
        }

        /// Runs `$body` with `$array` bound to the array, of whatever type it is.
        macro_rules! with_array {
            ($counts:expr, $array:ident => $body:expr) => {
                match &$counts {
                    $($crate::arrays::CountArray::$variant($array) => $body),*
                }
            };
        }
    };
}
count_arrays!(
    I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64
);

/// A new array with a value for so many items, which a method of the core writes.
macro_rules! mapped {
    ($written:ident, $model:expr, $offsets:ident, $counts:ident,
     $n:expr, $n_threads:ident, $method:ident) => {
        if let Some(offsets) = &$offsets {
            let offsets = by_rows(offsets);
            let model = $model.with_offsets(&offsets);
            mapped!($written, model, $counts, $n, $n_threads, $method)
        } else {
            mapped!($written, $model, $counts, $n, $n_threads, $method)
        }
    };
    ($written:ident, $model:expr, $counts:ident, $n:expr, $n_threads:ident, $method:ident) => {{
        let py = $counts.py();
        let borrowed = crate::arrays::borrow_counts($counts, 3)?;
        crate::arrays::$written(py, $n, |out| {
            with_array!(borrowed, array => {
                let rows = crate::arrays::ArrayRows::new(array);
                crate::call::run(py, $n_threads, |execution| {
                    $model.$method(&rows, out, execution)
                })
            })
        })
    }};
}

/// Borrows an array of counts after a look at its shape.
///
/// # Errors
/// `InputError` if it has not so many columns, is not aligned, or not of a number type.
pub fn borrow_counts<'py>(counts: &Untyped<'py>, n_columns: usize) -> PyResult<CountArray<'py>> {
    let shape = counts.shape();
    if !matches!(shape, &[_, columns] if columns == n_columns) {
        let shape = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let expected = format!("(n, {n_columns})");
        return Err(raise(Error::input("counts", format!("has shape ({shape})"), expected)));
    }
    if !counts.is_aligned() {
        return Err(raise(Error::input("counts", "is not aligned in memory", "an aligned array")));
    }
    CountArray::borrow(counts)
}

/// Rows of a view: read in place where they are contiguous, copied a block at a time elsewhere.
pub struct ArrayRows<'a, T> {
    view: ArrayView2<'a, T>,
    contiguous: Option<&'a [[T; 3]]>,
}

impl<'a, T: CountValue + Element> ArrayRows<'a, T> {
    pub fn new(array: &'a InMatrix<'_, T>) -> Self {
        let view = array.as_array();
        Self { view, contiguous: view.to_slice().map(|all| all.as_chunks().0) }
    }
}

impl<T: CountValue> Rows for ArrayRows<'_, T> {
    type Row = [T; 3];

    fn len(&self) -> usize {
        self.view.nrows()
    }

    fn block<'b>(&'b self, start: usize, len: usize, buffer: &'b mut Vec<[T; 3]>) -> &'b [[T; 3]] {
        if let Some(rows) = self.contiguous {
            return &rows[start..start + len];
        }
        buffer.clear();
        let block = self.view.slice_axis(Axis(0), (start..start + len).into());
        let columns = [0, 1, 2].map(|column| block.index_axis(Axis(1), column).into_iter());
        let [minus, tie, plus] = columns;
        buffer.extend(minus.zip(tie).zip(plus).map(|((&m, &t), &p)| [m, t, p]));
        buffer
    }
}
