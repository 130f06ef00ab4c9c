use btdagg::{Judge, PanelSet};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::arrays::{InMatrix, InVector, Matrix, Untyped, Vector, by_rows, rows_of};
use crate::call::{raise, run};
use crate::model::Offsets;

/// Labelled items with the features of several judges.
#[pyclass(frozen, module = "btdagg._core")]
pub struct PanelItems(PanelSet);

#[pymethods]
impl PanelItems {
    /// Of the features s and t, both (n, judges), labels, weights and, if given, offsets.
    #[new]
    #[pyo3(signature = (s, t, labels, weights, offsets = None))]
    fn new(
        s: InMatrix<'_, f64>,
        t: InMatrix<'_, f64>,
        labels: InVector<'_, i8>,
        weights: InVector<'_, f64>,
        offsets: Offsets<'_>,
    ) -> PyResult<Self> {
        let n_judges = s.shape()[1];
        PanelSet::new(&by_rows(&s), &by_rows(&t), labels.as_slice()?, weights.as_slice()?, n_judges)
            .and_then(|set| match &offsets {
                Some(offsets) => set.with_offsets(&by_rows(offsets)),
                None => Ok(set),
            })
            .map(Self)
            .map_err(raise)
    }

    /// Parameters of least penalised loss from a start, that loss, and whether it is an optimum.
    fn fit(
        &self,
        py: Python<'_>,
        start: Vec<f64>,
        penalty: InMatrix<'_, f64>,
        lower: Vec<f64>,
        upper: Vec<f64>,
    ) -> PyResult<(Vec<f64>, f64, bool)> {
        let (set, penalty) = (&self.0, by_rows(&penalty).into_owned());
        run(py, 1, |_| set.fit(&start, &penalty, &lower, &upper))
            .map(|fit| (fit.parameters, fit.loss, fit.converged))
    }
}

/// A panel's model: decisions from the votes of several judges.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Panel(btdagg::Panel);

#[pymethods]
impl Panel {
    /// Of beta, gamma and whether it is heard of each judge.
    #[new]
    fn new(judges: Vec<(f64, f64, bool)>, eta0: f64, alpha: f64, kappa: f64) -> PyResult<Self> {
        let judges = judges.into_iter().map(|(beta, gamma, is_heard)| Judge {
            name: String::new(),
            beta,
            gamma,
            is_heard,
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
}
