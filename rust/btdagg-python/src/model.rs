use btdagg::{CountValue, Counts, Error, Provenance};
use pyo3::prelude::*;

use crate::arrays::{
    ArrayRows, InVector, Matrix, Untyped, Vector, borrow_counts, by_rows, rows_of,
};
use crate::call::raise;

/// The Davidson model of the core: five numbers and what they say of counts.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Model(pub btdagg::Model);

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (beta, eta0, gamma, alpha, kappa, usual_votes = None))]
    fn new(
        beta: f64,
        eta0: f64,
        gamma: f64,
        alpha: f64,
        kappa: f64,
        usual_votes: Option<f64>,
    ) -> PyResult<Self> {
        btdagg::Model::new(beta, eta0, gamma)
            .and_then(|model| model.with_smoothing(alpha, kappa))
            .and_then(|model| model.with_usual_votes(usual_votes))
            .map(Self)
            .map_err(raise)
    }

    /// Beta, eta0 and gamma of the model that decides items of so many votes by features as they are.
    fn at(&self, n_votes: f64) -> (f64, f64, f64) {
        self.0.clone().at(n_votes).parameters().vector().into()
    }

    /// The label of each row of counts, −1, 0 or +1.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn decide<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Vector<'py, i8>> {
        mapped!(written, self.0, offsets, counts, rows_of(counts), n_threads, decide_into)
    }

    /// The label of one item.
    fn decide_one(&self, minus: Any<'_>, tie: Any<'_>, plus: Any<'_>) -> PyResult<i8> {
        Ok(self.0.decide(counts_of(minus, tie, plus)?).value())
    }

    /// Probabilities of −1, 0 and +1 of one item.
    fn predict_proba_one(
        &self,
        minus: Any<'_>,
        tie: Any<'_>,
        plus: Any<'_>,
    ) -> PyResult<(f64, f64, f64)> {
        Ok(self.0.probabilities(counts_of(minus, tie, plus)?).into())
    }

    /// Whether every item with at most so many votes is decided a tie.
    fn always_ties(&self, n_votes: u64) -> bool {
        self.0.always_ties(n_votes)
    }

    /// Probabilities of each row of counts.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn predict_proba<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        let n = rows_of(counts);
        mapped!(written_rows, self.0, offsets, counts, n, n_threads, probabilities_into)
    }

    /// Expected absolute error of each label for each row of counts.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn risks<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        mapped!(written_rows, self.0, offsets, counts, rows_of(counts), n_threads, risks_into)
    }

    /// Margin and tie feature of each row of counts, as columns.
    fn features<'py>(&self, counts: &Untyped<'py>, n_threads: usize) -> PyResult<Matrix<'py, f64>> {
        mapped!(written_rows, self.0, counts, rows_of(counts), n_threads, features_into)
    }
}

/// Whether items have more votes than a model was fitted for, by a look at the first of them.
#[pyfunction]
pub fn exceeds(counts: &Untyped<'_>, n_votes: u64) -> PyResult<bool> {
    let borrowed = borrow_counts(counts, 3)?;
    let provenance = Provenance { n_votes: Some(n_votes), ..Provenance::default() };
    with_array!(borrowed, array => Ok(provenance.is_exceeded_by(&ArrayRows::new(array))))
}

/// What else is known of each item, added to its margin.
pub type Offsets<'py> = Option<InVector<'py, f64>>;

/// A number of Python.
pub type Any<'a> = &'a Bound<'a, PyAny>;

/// The counts of one item.
pub fn counts_of(minus: Any<'_>, tie: Any<'_>, plus: Any<'_>) -> PyResult<Counts> {
    let count = |value: Any<'_>, name| {
        let count = value.extract::<f64>().ok().and_then(CountValue::to_count);
        count.ok_or_else(|| raise(Error::value(name, value, "a finite number of at least 0")))
    };
    Counts::new(count(minus, "minus")?, count(tie, "tie")?, count(plus, "plus")?).map_err(raise)
}
