//! One way in and out of the core: the GIL free, Ctrl-C honoured, errors turned into Python's.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use btdagg::{Error, Execution, Input};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
        .ok_or_else(|| raise(Error::value("n_threads", 0, "at least 1")))?;
    let interrupt = Interrupt::new();
    let should_stop = || interrupt.is_pending();
    py.detach(|| kernel(Execution::threads(n_threads).stop_when(&should_stop)))
        .map_err(|error| interrupt.raise(error))
}

/// Whether Python has a signal to handle, and what its handler raised.
struct Interrupt {
    signal: Mutex<Option<PyErr>>,
    last_look: Mutex<Instant>,
}

impl Interrupt {
    fn new() -> Self {
        Self { signal: Mutex::new(None), last_look: Mutex::new(Instant::now()) }
    }

    fn is_pending(&self) -> bool {
        // Taking the GIL may mean waiting for another thread, so not at every block.
        let mut last_look = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        if last_look.elapsed() < BETWEEN_LOOKS {
            return false;
        }
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is less general")]
        let pending = Python::attach(|py| py.check_signals()).err();
        *last_look = Instant::now();
        let stop = pending.is_some();
        if stop {
            *self.signal.lock().unwrap_or_else(PoisonError::into_inner) = pending;
        }
        stop
    }

    fn raise(self, error: Error) -> PyErr {
        match (error, self.signal.into_inner().unwrap_or_else(PoisonError::into_inner)) {
            (Error::Interrupted, Some(signal)) => signal,
            (Error::Interrupted, None) => PyKeyboardInterrupt::new_err(()),
            (error, _) => raise(error),
        }
    }
}

/// The Python exception for a core error.
pub fn raise(error: Error) -> PyErr {
    match error {
        Error::Memory => PyMemoryError::new_err(error.to_string()),
        Error::Input(ref input) => {
            Python::attach(|py| input_error(py, &error.to_string(), input)).unwrap_or_else(|e| e)
        }
        _ => InputError::new_err(error.to_string()),
    }
}

/// Python's error with the same message and fields.
fn input_error(py: Python<'_>, message: &str, input: &Input) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    fields.set_item("argument", &input.argument)?;
    fields.set_item("expected", &input.expected)?;
    match input.place[..] {
        [] => {}
        [row] => fields.set_item("row", row)?,
        _ => fields.set_item("row", PyTuple::new(py, &input.place)?)?,
    }
    if let Some((_, value)) = input.got.split_once("is ") {
        match (value.parse::<i128>(), value.parse::<f64>()) {
            (Ok(number), _) => fields.set_item("got", number)?,
            (_, Ok(number)) => fields.set_item("got", number)?,
            _ => fields.set_item("got", value)?,
        }
    }
    let error = py.get_type::<InputError>().call((message,), Some(&fields))?;
    Ok(PyErr::from_value(error))
}
