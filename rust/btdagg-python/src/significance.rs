use std::num::NonZeroU64;

use btdagg::significance::{Alternative, Grouping, Losses, Method, PermutationTest};
use btdagg::{Error, Execution};
use numpy::IntoPyArray;
use numpy::ndarray::Array2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{InMatrix, InVector, Matrix, by_rows};
use crate::call::{raise, run};

/// Settings of a permutation test, checked once.
#[pyclass(frozen, module = "btdagg._core", name = "PermutationTest")]
pub struct Test(PermutationTest);

#[pymethods]
impl Test {
    #[new]
    fn new(
        alternative: &str,
        method: &str,
        n_resamples: NonZeroU64,
        seed: u64,
        stream: u64,
    ) -> PyResult<Self> {
        let alternative = match alternative {
            "two-sided" => Alternative::TwoSided,
            "less" => Alternative::Less,
            "greater" => Alternative::Greater,
            other => {
                let expected = "'two-sided', 'less' or 'greater'";
                return Err(raise(Error::value("alternative", format!("'{other}'"), expected)));
            }
        };
        let method = match method {
            "auto" => Method::Auto,
            "exact" => Method::Exact,
            "monte-carlo" => Method::MonteCarlo,
            other => {
                let expected = "'auto', 'exact' or 'monte-carlo'";
                return Err(raise(Error::value("method", format!("'{other}'"), expected)));
            }
        };
        Ok(Self(PermutationTest { alternative, method, n_resamples, seed, stream }))
    }

    /// Mean of `a - b`, its p-value, and whether that is exact.
    fn paired(
        &self,
        py: Python<'_>,
        a: InVector<'_, f64>,
        b: InVector<'_, f64>,
        groups: Option<InVector<'_, i64>>,
        n_threads: usize,
    ) -> PyResult<(f64, f64, bool)> {
        let (a, b) = (a.as_slice()?, b.as_slice()?);
        let grouping = grouping(groups.as_ref())?;
        let found = run(py, n_threads, |execution| {
            let (a, b) = (Losses::new("a", None, a)?, Losses::new("b", None, b)?);
            self.0.paired(&a, &b, grouping.as_ref(), execution)
        })?;
        Ok((found.statistic, found.p_value, found.is_exact()))
    }

    /// P-values between every two rows of losses.
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        losses: InMatrix<'py, f64>,
        groups: Option<InVector<'py, i64>>,
        n_threads: usize,
    ) -> PyResult<Matrix<'py, f64>> {
        between_rows(py, &losses, groups.as_ref(), n_threads, |methods, grouping, execution| {
            self.0.pairwise(methods, grouping, execution)
        })
    }

    /// Corrected p-values between every two rows of losses.
    fn max_t<'py>(
        &self,
        py: Python<'py>,
        losses: InMatrix<'py, f64>,
        groups: Option<InVector<'py, i64>>,
        n_threads: usize,
    ) -> PyResult<Matrix<'py, f64>> {
        between_rows(py, &losses, groups.as_ref(), n_threads, |methods, grouping, execution| {
            self.0.max_t(methods, grouping, execution)
        })
    }
}

/// A (methods, methods) matrix from rows of losses.
fn between_rows<'py>(
    py: Python<'py>,
    losses: &InMatrix<'py, f64>,
    groups: Option<&InVector<'py, i64>>,
    n_threads: usize,
    p_values: impl Fn(&[Losses<'_>], Option<&Grouping>, Execution<'_>) -> Result<Vec<f64>, Error> + Sync,
) -> PyResult<Matrix<'py, f64>> {
    let (n_methods, n_items) = losses.as_array().dim();
    let losses = &*by_rows(losses);
    let grouping = grouping(groups)?;
    let p_values = run(py, n_threads, |execution| {
        let row = |method| &losses[method * n_items..(method + 1) * n_items];
        let method = |number| Losses::new("losses", Some(number), row(number));
        let methods = (0..n_methods).map(method).collect::<Result<Vec<_>, _>>()?;
        p_values(&methods, grouping.as_ref(), execution)
    })?;
    let matrix = Array2::from_shape_vec((n_methods, n_methods), p_values);
    Ok(matrix.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
}

fn grouping(groups: Option<&InVector<'_, i64>>) -> PyResult<Option<Grouping>> {
    let groups = groups.map(|groups| groups.as_slice()).transpose()?;
    Ok(groups.map(Grouping::new))
}
