use btdagg::{Bounds, Error, Parameters};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{ArrayRows, InMatrix, InVector, Untyped, Vector, borrow_counts, by_rows};
use crate::call::{raise, run};

/// Labelled counts reduced to their distinct rows: the DRPS and its gradient.
#[pyclass(frozen, module = "btdagg._core")]
pub struct CalibrationSet(pub btdagg::CalibrationSet);

#[pymethods]
impl CalibrationSet {
    /// Items with one label each and, if given, a weight each.
    #[new]
    #[pyo3(signature = (counts, labels, weights, alpha, kappa, usual_votes = None))]
    fn new(
        counts: &Untyped<'_>,
        labels: InVector<'_, i8>,
        weights: Option<InVector<'_, f64>>,
        alpha: f64,
        kappa: f64,
        usual_votes: Option<f64>,
    ) -> PyResult<Self> {
        let borrowed = borrow_counts(counts, 3)?;
        let labels = labels.as_slice()?;
        let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
        with_array!(borrowed, array => {
            let rows = ArrayRows::new(array);
            run(counts.py(), 1, |execution| {
                btdagg::CalibrationSet::new(&rows, labels, weights, (alpha, kappa), execution)
            })
        })
        .and_then(|set| set.with_usual_votes(usual_votes).map_err(raise))
        .map(Self)
    }

    /// Items with soft labels: a weight for each label.
    #[staticmethod]
    #[pyo3(signature = (counts, weights, alpha, kappa, usual_votes = None))]
    fn soft(
        counts: &Untyped<'_>,
        weights: InMatrix<'_, f64>,
        alpha: f64,
        kappa: f64,
        usual_votes: Option<f64>,
    ) -> PyResult<Self> {
        let borrowed = borrow_counts(counts, 3)?;
        let weights = by_rows(&weights);
        let weights = weights.as_chunks().0;
        with_array!(borrowed, array => {
            let rows = ArrayRows::new(array);
            run(counts.py(), 1, |execution| {
                btdagg::CalibrationSet::soft(&rows, weights, (alpha, kappa), execution)
            })
        })
        .and_then(|set| set.with_usual_votes(usual_votes).map_err(raise))
        .map(Self)
    }

    /// Items with a weight for each label and an offset each.
    #[staticmethod]
    #[pyo3(signature = (counts, weights, offsets, alpha, kappa, usual_votes = None))]
    fn with_offsets(
        counts: &Untyped<'_>,
        weights: InMatrix<'_, f64>,
        offsets: InVector<'_, f64>,
        alpha: f64,
        kappa: f64,
        usual_votes: Option<f64>,
    ) -> PyResult<Self> {
        let borrowed = borrow_counts(counts, 3)?;
        let (weights, offsets) = (by_rows(&weights), by_rows(&offsets));
        let weights = weights.as_chunks().0;
        with_array!(borrowed, array => {
            let rows = ArrayRows::new(array);
            run(counts.py(), 1, |execution| {
                let smoothing = (alpha, kappa);
                btdagg::CalibrationSet::with_offsets(&rows, weights, &offsets, smoothing, execution)
            })
        })
        .and_then(|set| set.with_usual_votes(usual_votes).map_err(raise))
        .map(Self)
    }

    /// Mean DRPS at (beta, eta0, gamma) and its gradient.
    fn loss<'py>(
        &self,
        py: Python<'py>,
        theta: InVector<'py, f64>,
        n_threads: usize,
    ) -> PyResult<(f64, Vector<'py, f64>)> {
        let &[beta, eta0, gamma] = theta.as_slice()? else {
            return Err(raise(Error::input("theta", "has another length", "beta, eta0, gamma")));
        };
        let theta = Parameters { beta, eta0, gamma };
        let loss = run(py, n_threads, |execution| self.0.loss(theta, execution))?;
        Ok((loss.drps, PyArray1::from_slice(py, &loss.gradient)))
    }

    /// The fit within the bounds of beta, eta0 and gamma.
    fn fit(
        &self,
        py: Python<'_>,
        lower: [f64; 3],
        upper: [f64; 3],
        n_threads: usize,
    ) -> PyResult<Fit> {
        let bounds = Bounds { lower: Parameters::of(lower), upper: Parameters::of(upper) };
        let fit = run(py, n_threads, |execution| self.0.fit(&bounds, execution))?;
        Ok(Fit {
            parameters: fit.parameters.vector().into(),
            drps: fit.drps,
            converged: fit.converged,
            at_bounds: fit.at_bounds.into(),
            neutral: fit.neutral.into(),
            n_starts: fit.n_starts,
        })
    }

    /// Number of items with a weight above 0.
    #[getter]
    fn n_items(&self) -> usize {
        self.0.n_items()
    }

    /// Largest number of votes of an item.
    #[getter]
    fn max_votes(&self) -> u64 {
        self.0.max_votes()
    }

    /// Whether some item leans to a side.
    #[getter]
    fn has_margins(&self) -> bool {
        self.0.has_margins()
    }

    /// Whether tie features differ between items.
    #[getter]
    fn has_tie_contrast(&self) -> bool {
        self.0.has_tie_contrast()
    }

    /// Weight of all items together by label, in label order.
    #[getter]
    fn label_weights(&self) -> (f64, f64, f64) {
        self.0.label_weights().into()
    }
}

/// Where a fit ended.
#[pyclass(frozen, get_all, module = "btdagg._core")]
pub struct Fit {
    /// Parameters beta, eta0 and gamma of least DRPS.
    parameters: (f64, f64, f64),
    /// Mean DRPS there.
    drps: f64,
    /// Whether it is an optimum.
    converged: bool,
    /// Whether each of the three is at one of its bounds.
    at_bounds: (bool, bool, bool),
    /// Whether each of the three is left neutral, since the items cannot identify it.
    neutral: (bool, bool, bool),
    /// Number of starts that were followed downhill.
    n_starts: usize,
}
