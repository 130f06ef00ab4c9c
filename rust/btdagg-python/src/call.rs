//! One way in and out of the core: the GIL free, Ctrl-C honoured, errors turned into Python's.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use btdagg::{Error, Execution};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::import_exception;
use pyo3::prelude::*;

/// How long Ctrl-C may wait.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

import_exception!(btdagg._util.errors, InputError);

/// Runs a kernel with the GIL released.
pub fn run<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    kernel: impl FnOnce(Execution<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let n_threads = NonZeroUsize::new(n_threads)
        .ok_or_else(|| InputError::new_err("n_threads is 0, expected at least 1"))?;
    let signal = Mutex::new(None);
    let last_look = Mutex::new(Instant::now());
    let should_stop = || {
        // Taking the GIL may mean waiting for another thread, so not at every block.
        let mut last_look = last_look.lock().unwrap_or_else(PoisonError::into_inner);
        if last_look.elapsed() < BETWEEN_LOOKS {
            return false;
        }
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is less general")]
        let pending = Python::attach(|py| py.check_signals()).err();
        *last_look = Instant::now();
        let stop = pending.is_some();
        if stop {
            *signal.lock().unwrap_or_else(PoisonError::into_inner) = pending;
        }
        stop
    };
    py.detach(|| kernel(Execution::threads(n_threads).stop_when(&should_stop))).map_err(|error| {
        match (error, signal.into_inner().unwrap_or_else(PoisonError::into_inner)) {
            (Error::Interrupted, Some(signal)) => signal,
            (Error::Interrupted, None) => PyKeyboardInterrupt::new_err(()),
            (error, _) => raise(error),
        }
    })
}

/// The Python exception for a core error.
pub fn raise(error: Error) -> PyErr {
    match error {
        Error::Memory => PyMemoryError::new_err(error.to_string()),
        error => InputError::new_err(error.to_string()),
    }
}
