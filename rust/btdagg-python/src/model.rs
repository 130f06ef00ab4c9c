use btdagg::{CountValue, Counts, Error, Provenance};
use numpy::{PyArray1, PyArray2, PyUntypedArray};
use pyo3::prelude::*;

use crate::arrays::{borrow_counts, rows_of};
use crate::call::raise;

/// The Davidson model of the core: five numbers and what they say of counts.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Model(pub btdagg::Model);

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (beta, eta0, gamma, alpha, kappa))]
    fn new(beta: f64, eta0: f64, gamma: f64, alpha: f64, kappa: f64) -> PyResult<Self> {
        btdagg::Model::new(beta, eta0, gamma)
            .and_then(|model| model.with_smoothing(alpha, kappa))
            .map(Self)
            .map_err(raise)
    }

    /// The label of each row of counts, −1, 0 or +1.
    fn decide<'py>(
        &self,
        counts: &Bound<'py, PyUntypedArray>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i8>>> {
        mapped!(written, self, counts, rows_of(counts), n_threads, decide_into)
    }

    /// The label of one item.
    fn decide_one(
        &self,
        minus: &Bound<'_, PyAny>,
        tie: &Bound<'_, PyAny>,
        plus: &Bound<'_, PyAny>,
    ) -> PyResult<i8> {
        let (minus, tie, plus) = (count(minus, "minus")?, count(tie, "tie")?, count(plus, "plus")?);
        Ok(self.0.decide(Counts::new(minus, tie, plus)).value())
    }

    /// Whether every item with at most so many votes is decided a tie.
    fn always_ties(&self, n_votes: u64) -> bool {
        self.0.always_ties(n_votes)
    }

    /// Probabilities of each row of counts.
    fn predict_proba<'py>(
        &self,
        counts: &Bound<'py, PyUntypedArray>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        mapped!(written_rows, self, counts, rows_of(counts), n_threads, probabilities_into)
    }

    /// Expected absolute error of each label for each row of counts.
    fn risks<'py>(
        &self,
        counts: &Bound<'py, PyUntypedArray>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        mapped!(written_rows, self, counts, rows_of(counts), n_threads, risks_into)
    }

    /// Margin and tie feature of each row of counts, as columns.
    fn features<'py>(
        &self,
        counts: &Bound<'py, PyUntypedArray>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        mapped!(written_rows, self, counts, rows_of(counts), n_threads, features_into)
    }
}

/// Whether items have more votes than a model was fitted for, by a look at the first of them.
#[pyfunction]
pub fn exceeds(counts: &Bound<'_, PyUntypedArray>, n_votes: u64) -> PyResult<bool> {
    let borrowed = borrow_counts(counts)?;
    let provenance = Provenance { n_votes: Some(n_votes), ..Provenance::default() };
    with_rows!(borrowed, rows => Ok(provenance.is_exceeded_by(&rows)))
}

/// One count from whatever Python number it is.
pub fn count(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<f64> {
    let number = value.extract::<f64>().ok();
    number
        .and_then(CountValue::to_count)
        .ok_or_else(|| raise(Error::value(name, value, "a finite number of at least 0")))
}
