use btdagg::{Bounds, Cell, Fit, Label, Parameters};
use pyo3::prelude::*;

use crate::arrays::{
    InMatrix, InVector, Matrix, Vector, array_of, array_of_rows, by_rows, cells_of, collected,
};
use crate::call::{raise, run};

/// Parameters, DRPS, convergence and bounds hit, as arrays.
type Outcome<'py> = (Matrix<'py, f64>, Vector<'py, f64>, Vector<'py, bool>, Matrix<'py, bool>);

/// Labelled counts that are fitted again and again under other weights.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Refits(btdagg::Refits);

#[pymethods]
impl Refits {
    #[new]
    #[pyo3(signature = (counts, labels, alpha, kappa, lower, upper, usual_votes = None))]
    fn new(
        counts: InMatrix<'_, f64>,
        labels: InVector<'_, i8>,
        alpha: f64,
        kappa: f64,
        lower: [f64; 3],
        upper: [f64; 3],
        usual_votes: Option<f64>,
    ) -> PyResult<Self> {
        let cells = labelled(&counts, &labels)?;
        let bounds = Bounds { lower: Parameters::of(lower), upper: Parameters::of(upper) };
        btdagg::Refits::new(&cells, (alpha, kappa), usual_votes, &bounds).map(Self).map_err(raise)
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

fn labelled(counts: &InMatrix<'_, f64>, labels: &InVector<'_, i8>) -> PyResult<Vec<Cell>> {
    let counts = by_rows(counts);
    let cells =
        cells_of(&counts).zip(labels.as_slice()?).enumerate().map(|(row, (counts, &label))| {
            Ok(Cell { counts: counts?, label: Label::parse(label, "labels", row).map_err(raise)? })
        });
    collected(cells)?.into_iter().collect()
}
