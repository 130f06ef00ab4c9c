use btdagg::{Bounds, Cell, Fit, Label, Parameters};
use pyo3::prelude::*;

use crate::arrays::{
    InMatrix, InVector, Matrix, Vector, array_of, array_of_rows, by_rows, cells_of, collected,
};
use crate::call::{raise, run};
use crate::prior::Prior;

/// Parameters, DRPS, convergence and bounds hit, as arrays.
type Outcome<'py> = (Matrix<'py, f64>, Vector<'py, f64>, Vector<'py, bool>, Matrix<'py, bool>);

/// Labelled counts that are fitted again and again under other weights.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Refits(btdagg::Refits);

#[pymethods]
impl Refits {
    #[new]
    fn new(
        counts: InMatrix<'_, f64>,
        labels: InVector<'_, i8>,
        alpha: f64,
        kappa: f64,
        lower: [f64; 3],
        upper: [f64; 3],
    ) -> PyResult<Self> {
        let cells = labelled(&counts, &labels)?;
        let bounds = Bounds { lower: Parameters::of(lower), upper: Parameters::of(upper) };
        btdagg::Refits::new(&cells, alpha, kappa, &bounds).map(Self).map_err(raise)
    }

    /// Parameters (beta, eta0, gamma), DRPS, convergence and bounds hit of the fit under each row
    /// of weights.
    fn fit<'py>(&self, weights: InMatrix<'py, f64>, n_threads: usize) -> PyResult<Outcome<'py>> {
        let py = weights.py();
        let n_refits = weights.as_array().nrows();
        let weights = &*by_rows(&weights);
        let mut fits = collected((0..n_refits).map(|_| Fit::default()))?;
        run(py, n_threads, |execution| self.0.fit_into(weights, &mut fits, execution))?;
        Ok((
            array_of_rows(py, fits.iter().map(|fit| fit.parameters.vector()))?,
            array_of(py, fits.iter().map(|fit| fit.drps))?,
            array_of(py, fits.iter().map(|fit| fit.converged))?,
            array_of_rows(py, fits.iter().map(|fit| fit.at_bounds))?,
        ))
    }
}

/// Labelled counts whose posterior is looked for again and again under other weights.
#[pyclass(frozen, module = "btdagg._core")]
pub struct PosteriorRefits(btdagg::PosteriorRefits);

#[pymethods]
impl PosteriorRefits {
    #[new]
    fn new(
        counts: InMatrix<'_, f64>,
        labels: InVector<'_, i8>,
        alpha: f64,
        kappa: f64,
        prior: Option<PyRef<'_, Prior>>,
        weak_share: f64,
    ) -> PyResult<Self> {
        let prior = prior.as_ref().map(|prior| (&prior.0, weak_share));
        let cells = labelled(&counts, &labels)?;
        btdagg::PosteriorRefits::new(&cells, (alpha, kappa), prior).map(Self).map_err(raise)
    }

    /// Beta, eta0 and gamma under each row of weights, which say how many labels each row has.
    fn fit<'py>(
        &self,
        weights: InMatrix<'py, f64>,
        n_threads: usize,
    ) -> PyResult<Matrix<'py, f64>> {
        let py = weights.py();
        let n_refits = weights.as_array().nrows();
        let weights = &*by_rows(&weights);
        let mut found = collected((0..n_refits).map(|_| Parameters::of([0.0; 3])))?;
        run(py, n_threads, |execution| self.0.fit_into(weights, &mut found, execution))?;
        array_of_rows(py, found.into_iter().map(Parameters::vector))
    }
}

fn labelled(counts: &InMatrix<'_, f64>, labels: &InVector<'_, i8>) -> PyResult<Vec<Cell>> {
    let counts = by_rows(counts);
    let cells =
        cells_of(&counts).zip(labels.as_slice()?).enumerate().map(|(row, (counts, &label))| {
            Ok(Cell { counts: counts?, label: Label::parse(label, "labels", row).map_err(raise)? })
        });
    collected(cells)?.into_iter().collect()
}
