//! `btdagg._core`: checks arrays, releases the GIL, calls the core. No mathematics here.

#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

#[macro_use]
mod arrays;
mod calibration_set;
mod call;
mod drift;
mod grades;
mod model;
mod panel;
mod prior;
mod refits;
mod running;
mod significance;
mod stopping;
mod tally;

use pyo3::prelude::*;

/// The compiled part of `btdagg`.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::calibration_set::{CalibrationSet, Fit};
    use crate::call::InputError;
    #[pymodule_export]
    use crate::drift::ConformalTest;
    #[pymodule_export]
    use crate::grades::{grade_decisions, grade_means, grade_probabilities, grade_thresholds};
    #[pymodule_export]
    use crate::model::{Model, exceeds};
    #[pymodule_export]
    use crate::panel::Panel;
    #[pymodule_export]
    use crate::prior::{Prior, grades_design, pairs_design};
    #[pymodule_export]
    use crate::refits::Refits;
    #[pymodule_export]
    use crate::running::{RunningTally, pack_texts};
    #[pymodule_export]
    use crate::significance::Test;
    #[pymodule_export]
    use crate::stopping::{Predictive, StoppingRule};
    #[pymodule_export]
    use crate::tally::{tally_integers, tally_strings};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("InputError", module.py().get_type::<InputError>())
    }
}
