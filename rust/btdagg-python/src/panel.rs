use btdagg::PanelSet;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::by_rows;
use crate::call::{raise, run};

/// Labelled items with the features of several judges.
#[pyclass(frozen, module = "btdagg._core")]
pub struct PanelItems(PanelSet);

#[pymethods]
impl PanelItems {
    /// Of the features s and t, both (n, judges), labels and weights.
    #[new]
    fn new(
        s: PyReadonlyArray2<'_, f64>,
        t: PyReadonlyArray2<'_, f64>,
        labels: PyReadonlyArray1<'_, i8>,
        weights: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Self> {
        let n_judges = s.shape()[1];
        PanelSet::new(&by_rows(&s), &by_rows(&t), labels.as_slice()?, weights.as_slice()?, n_judges)
            .map(Self)
            .map_err(raise)
    }

    /// Parameters of least penalised loss from a start, that loss, and whether it is an optimum.
    fn fit(
        &self,
        py: Python<'_>,
        start: Vec<f64>,
        penalty: PyReadonlyArray2<'_, f64>,
        lower: Vec<f64>,
        upper: Vec<f64>,
    ) -> PyResult<(Vec<f64>, f64, bool)> {
        let (set, penalty) = (&self.0, by_rows(&penalty).into_owned());
        run(py, 1, |_| set.fit(&start, &penalty, &lower, &upper))
            .map(|fit| (fit.parameters, fit.loss, fit.converged))
    }
}
