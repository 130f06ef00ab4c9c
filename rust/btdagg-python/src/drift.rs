use std::sync::{Mutex, PoisonError};

use btdagg::drift;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::arrays::{InVector, Vector, written};
use crate::call::{raise, run};

/// What a test holds: items by level, items seen, seed, shares of the bets, capital, peak.
type Parts = (Vec<u64>, u64, u64, Vec<f64>, f64, f64);

/// Running test of whether scores are exchangeable.
#[pyclass(frozen, module = "btdagg._core")]
pub struct ConformalTest(Mutex<drift::ConformalTest>);

#[pymethods]
impl ConformalTest {
    #[new]
    fn new(reference: Vec<u64>, seed: u64) -> Self {
        Self(Mutex::new(drift::ConformalTest::new(reference, seed)))
    }

    /// Takes the levels of further items and returns the largest log capital after each.
    fn observe<'py>(
        &self,
        py: Python<'py>,
        levels: InVector<'py, i64>,
    ) -> PyResult<Vector<'py, f64>> {
        let levels = levels.as_slice()?;
        written(py, levels.len(), |peaks| {
            run(py, 1, |_| {
                let mut test = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                for (peak, &level) in peaks.iter_mut().zip(levels) {
                    test.observe(usize::try_from(level).unwrap_or(usize::MAX))?;
                    *peak = test.log_peak;
                }
                Ok(())
            })
        })
    }

    /// Natural logarithm of the capital, and its peak.
    fn log_capital(&self, py: Python<'_>) -> (f64, f64) {
        let test = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        (test.log_capital, test.log_peak)
    }

    /// All that the test holds.
    fn state(&self, py: Python<'_>) -> Parts {
        let drift::ConformalTest { pool, n_seen, seed, shares, log_capital, log_peak } =
            self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).clone();
        (pool, n_seen, seed, shares, log_capital, log_peak)
    }

    /// The test that held this.
    #[staticmethod]
    fn from_state(parts: Parts) -> PyResult<Self> {
        let (pool, n_seen, seed, shares, log_capital, log_peak) = parts;
        let test = drift::ConformalTest { pool, n_seen, seed, shares, log_capital, log_peak };
        test.checked().map(|test| Self(Mutex::new(test))).map_err(raise)
    }
}
