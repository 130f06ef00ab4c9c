use btdagg::Judge;
use pyo3::prelude::*;

use crate::arrays::{Matrix, Untyped, Vector, by_rows, rows_of};
use crate::call::raise;
use crate::model::Offsets;

/// A panel's model: decisions from the votes of several judges.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Panel(btdagg::Panel);

#[pymethods]
impl Panel {
    /// Of beta, gamma, whether it is heard and its usual number of votes of each judge.
    #[new]
    fn new(
        judges: Vec<(f64, f64, bool, Option<f64>)>,
        eta0: f64,
        alpha: f64,
        kappa: f64,
    ) -> PyResult<Self> {
        let judges = judges.into_iter().map(|(beta, gamma, is_heard, usual_votes)| Judge {
            name: String::new(),
            beta,
            gamma,
            is_heard,
            usual_votes,
        });
        btdagg::Panel::new(judges.collect(), eta0)
            .and_then(|panel| panel.with_smoothing(alpha, kappa))
            .map(Self)
            .map_err(raise)
    }

    /// The label of each item, whose judges' counts are consecutive rows.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn decide<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Vector<'py, i8>> {
        let n = rows_of(counts) / self.0.judges().len();
        mapped!(written, self.0, offsets, counts, n, n_threads, decide_into)
    }

    /// Probabilities of the labels of each item.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn predict_proba<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        let n = rows_of(counts) / self.0.judges().len();
        mapped!(written_rows, self.0, offsets, counts, n, n_threads, probabilities_into)
    }

    /// Expected absolute error of each label for each item.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn risks<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        let n = rows_of(counts) / self.0.judges().len();
        mapped!(written_rows, self.0, offsets, counts, n, n_threads, risks_into)
    }
}
