use btdagg::grades::{GradeModel, VoteScale};
use numpy::Element;
use pyo3::prelude::*;

use crate::arrays::{
    InVector, Matrix, Untyped, Vector, array_of, borrow_counts, by_rows, rows_of, written,
};
use crate::call::{raise, run};

/// Mean vote of each row of counts of ordered votes.
#[pyfunction]
pub fn grade_means<'py>(
    counts: &Untyped<'py>,
    votes: InVector<'py, f64>,
    n_threads: usize,
) -> PyResult<Vector<'py, f64>> {
    let py = counts.py();
    let scale = VoteScale::new(&by_rows(&votes)).map_err(raise)?;
    let borrowed = borrow_counts(counts, votes.len()?)?;
    written(py, rows_of(counts), |out| {
        with_array!(borrowed, array => {
            let counts = &*by_rows(array);
            run(py, n_threads, |execution| scale.means_into(counts, out, execution))
        })
    })
}

/// The grade of each row of counts, by thresholds of the mean vote: values of `grades`, which are
/// int8, int64 or float64, or the grade's index.
#[pyfunction]
#[pyo3(signature = (counts, votes, thresholds, n_threads, grades = None, shifts = None))]
pub fn grade_decisions<'py>(
    counts: &Untyped<'py>,
    votes: InVector<'py, f64>,
    thresholds: InVector<'py, f64>,
    n_threads: usize,
    grades: Option<&Untyped<'py>>,
    shifts: Option<InVector<'py, f64>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shifts = shifts.as_ref().map(|shifts| by_rows(shifts));
    let means = (&votes, &thresholds, shifts.as_deref());
    let Some(grades) = grades else {
        return decided(counts, means, n_threads, &(0..=u8::MAX).collect::<Vec<_>>());
    };
    if let Ok(grades) = grades.extract::<InVector<'py, i8>>() {
        return decided(counts, means, n_threads, &by_rows(&grades));
    }
    if let Ok(grades) = grades.extract::<InVector<'py, i64>>() {
        return decided(counts, means, n_threads, &by_rows(&grades));
    }
    let grades: InVector<'py, f64> = grades.extract()?;
    decided(counts, means, n_threads, &by_rows(&grades))
}

/// Votes, thresholds of their mean, and what is added to it.
type Means<'a, 'py> = (&'a InVector<'py, f64>, &'a InVector<'py, f64>, Option<&'a [f64]>);

fn decided<'py, G: Element + Copy + Sync>(
    counts: &Untyped<'py>,
    (votes, thresholds, shifts): Means<'_, 'py>,
    n_threads: usize,
    grades: &[G],
) -> PyResult<Bound<'py, PyAny>> {
    let py = counts.py();
    let scale = VoteScale::new(&by_rows(votes)).map_err(raise)?;
    let borrowed = borrow_counts(counts, votes.len()?)?;
    let thresholds = &*by_rows(thresholds);
    let grades = &grades[..grades.len().min(thresholds.len() + 1)];
    let array: Vector<'py, G> = written(py, rows_of(counts), |out| {
        with_array!(borrowed, array => {
            let counts = &*by_rows(array);
            run(py, n_threads, |execution| {
                scale.decide_into(counts, thresholds, grades, shifts, out, execution)
            })
        })
    })?;
    Ok(array.into_any())
}

/// Probabilities of the grades at each mean vote and, if given, offset.
#[pyfunction]
#[pyo3(signature = (means, beta, intercepts, n_threads, offsets = None))]
pub fn grade_probabilities<'py>(
    means: InVector<'py, f64>,
    beta: f64,
    intercepts: InVector<'py, f64>,
    n_threads: usize,
    offsets: Option<InVector<'py, f64>>,
) -> PyResult<Matrix<'py, f64>> {
    let (py, means) = (means.py(), &*by_rows(&means));
    let offsets = offsets.as_ref().map(|offsets| by_rows(offsets));
    let model = GradeModel::new(beta, &by_rows(&intercepts)).map_err(raise)?;
    written(py, (means.len(), model.n_grades()), |out| {
        run(py, n_threads, |execution| {
            model.probabilities_into(means, offsets.as_deref(), out, execution)
        })
    })
}

/// The mean votes at which the decision changes.
#[pyfunction]
pub fn grade_thresholds(beta: f64, intercepts: InVector<'_, f64>) -> PyResult<Vector<'_, f64>> {
    let model = GradeModel::new(beta, &by_rows(&intercepts)).map_err(raise)?;
    array_of(intercepts.py(), model.thresholds().into_iter())
}
