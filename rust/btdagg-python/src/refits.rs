use btdagg::{Bounds, Cell, Counts, Error, Fit, Label, Parameters};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::arrays::by_rows;
use crate::call::{raise, run};

/// Parameters, DRPS, convergence and bounds hit, as arrays.
type Outcome<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray2<bool>>,
);

/// Labelled counts that are fitted again and again under other weights.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Refits(btdagg::Refits);

#[pymethods]
impl Refits {
    #[new]
    fn new(
        counts: PyReadonlyArray2<'_, u64>,
        labels: PyReadonlyArray1<'_, i8>,
        alpha: f64,
        kappa: f64,
        lower: [f64; 3],
        upper: [f64; 3],
    ) -> PyResult<Self> {
        let cells = cells_of(&by_rows(&counts))
            .zip(labels.as_slice()?)
            .enumerate()
            .map(|(row, (counts, &label))| Ok(Cell { counts, label: label_of(label, row)? }))
            .collect::<PyResult<Vec<Cell>>>()?;
        let bounds = Bounds { lower: parameters(lower), upper: parameters(upper) };
        btdagg::Refits::new(&cells, alpha, kappa, &bounds).map(Self).map_err(raise)
    }

    /// Parameters (beta, eta0, gamma), DRPS, convergence and bounds hit of the fit under each row
    /// of weights.
    fn fit<'py>(
        &self,
        weights: PyReadonlyArray2<'py, f64>,
        n_threads: usize,
    ) -> PyResult<Outcome<'py>> {
        let py = weights.py();
        let n_refits = weights.as_array().nrows();
        let weights = &*by_rows(&weights);
        let mut fits = vec![Fit::default(); n_refits];
        run(py, n_threads, |execution| self.0.fit_into(weights, &mut fits, execution))?;
        let thetas: Vec<f64> = fits.iter().flat_map(|fit| vector(fit.parameters)).collect();
        let at_bounds: Vec<bool> = fits.iter().flat_map(|fit| fit.at_bounds).collect();
        Ok((
            PyArray1::from_vec(py, thetas).reshape([n_refits, 3])?,
            PyArray1::from_iter(py, fits.iter().map(|fit| fit.drps)),
            PyArray1::from_iter(py, fits.iter().map(|fit| fit.converged)),
            PyArray1::from_vec(py, at_bounds).reshape([n_refits, 3])?,
        ))
    }

    /// Derivatives of the DRPS of each cell by beta, eta0 and gamma.
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        theta: [f64; 3],
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let flat: Vec<f64> = self.0.gradients(parameters(theta)).into_iter().flatten().collect();
        PyArray1::from_vec(py, flat).reshape([self.0.n_cells(), 3])
    }

    /// Second derivatives of the mean DRPS under the weights of the cells.
    fn hessian(
        &self,
        theta: [f64; 3],
        weights: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<[[f64; 3]; 3]> {
        self.0.hessian(parameters(theta), weights.as_slice()?).map_err(raise)
    }
}

/// The decision of each row of counts under each row of parameters, (sets, rows).
#[pyfunction]
pub fn decide_under<'py>(
    thetas: PyReadonlyArray2<'py, f64>,
    alpha: f64,
    kappa: f64,
    counts: PyReadonlyArray2<'py, u64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<i8>>> {
    let py = thetas.py();
    let sets: Vec<Parameters> =
        by_rows(&thetas).as_chunks().0.iter().copied().map(parameters).collect();
    let counts: Vec<Counts> = cells_of(&by_rows(&counts)).collect();
    let mut out = vec![0; sets.len() * counts.len()];
    run(py, n_threads, |execution| {
        btdagg::decide_under(&sets, (alpha, kappa), &counts, &mut out, execution)
    })?;
    PyArray1::from_vec(py, out).reshape([sets.len(), counts.len()])
}

fn cells_of(counts: &[u64]) -> impl Iterator<Item = Counts> {
    counts.as_chunks().0.iter().map(|&[minus, tie, plus]| Counts::new(minus, tie, plus))
}

fn label_of(label: i8, row: usize) -> PyResult<Label> {
    let name = "labels";
    Label::try_from(label)
        .map_err(|value| raise(Error::Label { name, row, value: value.to_string() }))
}

const fn parameters([beta, eta0, gamma]: [f64; 3]) -> Parameters {
    Parameters { beta, eta0, gamma }
}

const fn vector(p: Parameters) -> [f64; 3] {
    [p.beta, p.eta0, p.gamma]
}
