use btdagg::{Design, Error, Kind, Part, Posterior};
use numpy::{PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{
    InMatrix, InVector, Matrices, Matrix, Vector, array_of, array_of_rows, by_rows, collected,
    written,
};
use crate::call::{raise, run};

type InMatrices<'py> = PyReadonlyArray3<'py, f64>;

/// What each parameter of a model of pairs adds to the logits of the labels, (n, 3, p): of columns
/// that change their sign with the sides, (n, a), and of columns of the tie logit, (n, b).
#[pyfunction]
pub fn pairs_design<'py>(
    sides: InMatrix<'py, f64>,
    ties: InMatrix<'py, f64>,
) -> PyResult<Matrices<'py, f64>> {
    let (n_sides, ties_by_rows) = (sides.shape()[1], by_rows(&ties));
    let design = Design::of_pairs(&by_rows(&sides), n_sides, &ties_by_rows).map_err(raise)?;
    values_of(sides.py(), &design)
}

/// The same of grades, (n, K, p): of columns that the log odds of neighbouring grades are linear in,
/// (n, a).
#[pyfunction]
pub fn grades_design(columns: InMatrix<'_, f64>, n_grades: usize) -> PyResult<Matrices<'_, f64>> {
    let n_columns = columns.shape()[1];
    let design = Design::of_grades(&by_rows(&columns), n_columns, n_grades).map_err(raise)?;
    values_of(columns.py(), &design)
}

fn values_of<'py>(py: Python<'py>, design: &Design) -> PyResult<Matrices<'py, f64>> {
    let shape = (design.n_rows(), design.n_outcomes(), design.n_parameters());
    written(py, shape, |out| {
        out.copy_from_slice(design.values());
        Ok(())
    })
}

fn shaped(name: &'static str, got: &[usize], wanted: &[usize]) -> PyResult<()> {
    if got == wanted {
        return Ok(());
    }
    Err(raise(Error::input(name, format!("has shape {got:?}"), format!("{wanted:?}"))))
}

/// Shares, means and covariances.
type Parts<'py> = (Vector<'py, f64>, Matrix<'py, f64>, Matrices<'py, f64>);

/// Parameters, what is held by neighbours, by votes that say something and by votes that say
/// nothing, covariances, and whether each converged.
type Posteriors<'py> = (Matrix<'py, f64>, Matrix<'py, f64>, Matrices<'py, f64>, Vector<'py, bool>);

/// What is believed of parameters before the labels.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Prior(btdagg::Prior);

#[pymethods]
impl Prior {
    /// Of normal densities: their shares, means and covariances, and the least values.
    #[new]
    fn new(
        shares: InVector<'_, f64>,
        means: InMatrix<'_, f64>,
        covariances: InMatrices<'_>,
        least: Vec<f64>,
    ) -> PyResult<Self> {
        let n = least.len().max(1);
        shaped("means", means.shape(), &[shares.len(), n])?;
        shaped("covariances", covariances.shape(), &[shares.len(), n, n])?;
        let (means, covariances) = (by_rows(&means), by_rows(&covariances));
        let parts = means.chunks(n).zip(covariances.chunks(n * n)).zip(by_rows(&shares).to_vec());
        let parts = parts.map(|((mean, covariance), share)| Part {
            kind: Kind::Votes,
            share,
            mean: mean.to_vec(),
            covariance: covariance.to_vec(),
        });
        btdagg::Prior::new(parts.collect(), least).map(Self).map_err(raise)
    }

    /// Of pairs, by judges with so many votes on an item.
    #[staticmethod]
    fn of_pairs(usual_votes: Vec<f64>) -> PyResult<Self> {
        btdagg::Prior::of_pairs(&usual_votes).map(Self).map_err(raise)
    }

    /// Of grades, by the centre and spread of the mean votes.
    #[staticmethod]
    fn of_grades(n_grades: usize, centre: f64, spread: f64) -> PyResult<Self> {
        btdagg::Prior::of_grades(n_grades, centre, spread).map(Self).map_err(raise)
    }

    /// With neighbours, each its parameters and their covariance, beside which this keeps a share.
    fn with_neighbours(
        &self,
        parameters: InMatrix<'_, f64>,
        covariances: InMatrices<'_>,
        share: f64,
    ) -> PyResult<Self> {
        let n = parameters.shape()[1].max(1);
        shaped("covariances", covariances.shape(), &[parameters.shape()[0], n, n])?;
        let (parameters, covariances) = (by_rows(&parameters), by_rows(&covariances));
        let both = parameters.chunks(n).zip(covariances.chunks(n * n));
        let both: Vec<_> = both.map(|(mean, square)| (mean.to_vec(), square.to_vec())).collect();
        self.0.with_neighbours(&both, share).map(Self).map_err(raise)
    }

    /// With so many covariates after that many parameters.
    fn with_covariates(&self, n_covariates: usize, after: usize) -> PyResult<Self> {
        self.0.with_covariates(n_covariates, after).map(Self).map_err(raise)
    }

    /// Shares, means and covariances of its parts.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let (parts, n) = (self.0.parts(), self.0.n_parameters());
        let means = written(py, (parts.len(), n), |out| {
            let rows = out.chunks_exact_mut(n).zip(parts);
            rows.for_each(|(row, part)| row.copy_from_slice(&part.mean));
            Ok(())
        })?;
        let covariances = written(py, (parts.len(), n, n), |out| {
            let rows = out.chunks_exact_mut(n * n).zip(parts);
            rows.for_each(|(row, part)| row.copy_from_slice(&part.covariance));
            Ok(())
        })?;
        Ok((array_of(py, parts.iter().map(|part| part.share))?, means, covariances))
    }

    /// The least value of each parameter.
    #[getter]
    fn least(&self) -> Vec<f64> {
        self.0.least().to_vec()
    }

    /// The posteriors of labels of the rows of a design, (n, K, p), under weights of the outcomes,
    /// (m, n, K), over rows that occur so many times.
    #[pyo3(signature = (design, weights, n_threads, occurring = None, times = None))]
    fn posteriors<'py>(
        &self,
        design: InMatrices<'py>,
        weights: InMatrices<'py>,
        n_threads: usize,
        occurring: Option<InMatrices<'py>>,
        times: Option<InVector<'py, f64>>,
    ) -> PyResult<Posteriors<'py>> {
        let py = design.py();
        let made = |array: &InMatrices<'_>| {
            let &[_, k, n] = array.shape() else { unreachable!("it has three dimensions") };
            Design::new(by_rows(array).into_owned(), k, n).map_err(raise)
        };
        shaped("weights", &weights.shape()[1..], &design.shape()[..2])?;
        let (rows, others) = (made(&design)?, occurring.as_ref().map(made).transpose()?);
        let times = times.as_ref().map(|times| by_rows(times));
        let occurring = others.as_ref().zip(times.as_deref());
        let mut found = collected((0..weights.shape()[0]).map(|_| Posterior::default()))?;
        let weights = &*by_rows(&weights);
        run(py, n_threads, |execution| {
            self.0.posteriors_into(&rows, weights, occurring, &mut found, execution)
        })?;
        let (m, n) = (found.len(), self.0.n_parameters());
        let parameters = written(py, (m, n), |out| {
            let rows = out.chunks_exact_mut(n).zip(&found);
            rows.for_each(|(row, found)| row.copy_from_slice(&found.parameters));
            Ok(())
        })?;
        let kinds = [Kind::Neighbours, Kind::Votes, Kind::Nothing];
        let shares = found.iter().map(|found| kinds.map(|kind| found.share(&self.0, kind)));
        let covariances = written(py, (m, n, n), |out| {
            let rows = out.chunks_exact_mut(n * n).zip(&found);
            rows.for_each(|(row, found)| row.copy_from_slice(&found.covariance));
            Ok(())
        })?;
        let converged = array_of(py, found.iter().map(|found| found.converged))?;
        Ok((parameters, array_of_rows(py, shares)?, covariances, converged))
    }
}
