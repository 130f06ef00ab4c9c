use btdagg::{Bounds, Counts, Parameters};
use pyo3::prelude::*;

use crate::arrays::{InMatrix, Matrix, array_of_rows, by_rows, cells_of, collected};
use crate::calibration_set::CalibrationSet;
use crate::call::{raise, run};
use crate::model::Offsets;

/// Equally likely parameters that neighbours have left.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Prior(pub btdagg::Prior);

#[pymethods]
impl Prior {
    /// Of the rows of beta, eta0 and gamma.
    #[new]
    fn new(thetas: InMatrix<'_, f64>) -> PyResult<Self> {
        let rows = thetas.as_slice()?.as_chunks().0.iter();
        let thetas: Vec<Parameters> = rows.copied().map(Parameters::of).collect();
        btdagg::Prior::new(&thetas).map(Self).map_err(raise)
    }

    /// So many parameters of a neighbour, whose items are worth so many labels and are thinned to a
    /// number of votes.
    #[staticmethod]
    fn of_neighbour(
        py: Python<'_>,
        set: PyRef<'_, CalibrationSet>,
        n_labels: f64,
        n_votes: u64,
        n: usize,
    ) -> PyResult<Self> {
        let set = &set.0;
        run(py, 1, |_| btdagg::Prior::of_neighbour(set, n_labels, n_votes, n)).map(Self)
    }

    /// Beta, eta0 and gamma, (n, 3).
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, f64>> {
        array_of_rows(py, self.0.parameters().into_iter().map(Parameters::vector))
    }
}

/// What labels and a prior say of the parameters.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Posterior(btdagg::Posterior);

#[pymethods]
impl Posterior {
    /// Of a set whose weights are worth so many labels; of 0 labels the weights say how often its
    /// counts occur.
    #[new]
    fn new(
        py: Python<'_>,
        set: PyRef<'_, CalibrationSet>,
        n_labels: f64,
        prior: Option<PyRef<'_, Prior>>,
        weak_share: f64,
    ) -> PyResult<Self> {
        let set = set.0.clone();
        let prior = prior.as_ref().map(|prior| (&prior.0, weak_share));
        run(py, 1, |_| {
            let set = set.binned()?;
            let labels = set.labels_worth(n_labels);
            let occurrences: Vec<f64> =
                set.labels().iter().map(|weights| weights.iter().sum()).collect();
            btdagg::Posteriors::new(&set, prior)?.posterior(&labels, Some(&occurrences))
        })
        .map(Self)
    }

    /// Parameters beta, eta0 and gamma of the model closest to it.
    #[getter]
    fn parameters(&self) -> (f64, f64, f64) {
        self.0.parameters.vector().into()
    }

    /// What is held by neighbours, by the weak prior and by votes that say nothing.
    #[getter]
    fn shares(&self) -> (f64, f64, f64) {
        self.0.shares.into()
    }

    /// The chance of each decision of each row of counts.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn decisions<'py>(
        &self,
        counts: InMatrix<'py, f64>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        let (py, items) = (counts.py(), items_of(&counts, &offsets)?);
        let found = run(py, n_threads, |execution| self.0.decisions(&items, execution))?;
        array_of_rows(py, found.into_iter())
    }

    /// Mean probabilities of the labels of each row of counts.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn probabilities<'py>(
        &self,
        counts: InMatrix<'py, f64>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Matrix<'py, f64>> {
        let (py, items) = (counts.py(), items_of(&counts, &offsets)?);
        let found = run(py, n_threads, |execution| self.0.probabilities(&items, execution))?;
        array_of_rows(py, found.into_iter())
    }
}

/// Rows of counts, each with its offset, or 0 where there are none.
fn items_of(counts: &InMatrix<'_, f64>, offsets: &Offsets<'_>) -> PyResult<Vec<(Counts, f64)>> {
    let offsets = offsets.as_ref().map(|offsets| by_rows(offsets));
    let offset = |row: usize| offsets.as_ref().map_or(0.0, |offsets| offsets[row]);
    let counts = by_rows(counts);
    let items = cells_of(&counts).enumerate();
    collected(items.map(|(row, counts)| Ok((counts?, offset(row)))))?.into_iter().collect()
}

/// Ends of the profile intervals of beta, eta0 and gamma around the fit next to some.
#[pyfunction]
pub fn profile(
    py: Python<'_>,
    set: PyRef<'_, CalibrationSet>,
    near: [f64; 3],
    n_labels: f64,
    critical: f64,
) -> PyResult<[[f64; 2]; 3]> {
    let (set, near) = (&set.0, Parameters::of(near));
    run(py, 1, |_| set.profile(&Bounds::default(), near, n_labels, critical))
}
