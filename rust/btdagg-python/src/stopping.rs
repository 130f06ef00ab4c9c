use btdagg::Error;
use btdagg::stopping::{self, Criterion};
use pyo3::prelude::*;

use crate::arrays::{Matrix, Untyped, Vector, by_rows, rows_of};
use crate::call::{raise, run};
use crate::model::{Any, Model, Offsets, counts_of};

/// A mirror-symmetric mixture of Dirichlet-multinomials.
#[pyclass(frozen, module = "btdagg._core")]
pub struct Predictive(stopping::Predictive);

#[pymethods]
impl Predictive {
    #[new]
    fn new(components: Vec<(f64, [f64; 3])>) -> PyResult<Self> {
        stopping::Predictive::new(&components).map(Self).map_err(raise)
    }

    /// Chances of the next vote in label order.
    fn next(&self, minus: usize, tie: usize, plus: usize) -> PyResult<(f64, f64, f64)> {
        self.0.next([minus, tie, plus]).map(Into::into).map_err(raise)
    }
}

/// Whether items may stop at their counts, and with which label.
#[pyclass(frozen, module = "btdagg._core")]
pub struct StoppingRule(pub stopping::StoppingRule);

#[pymethods]
impl StoppingRule {
    #[new]
    #[pyo3(signature = (model, n, step, kind, value, predictive, has_strength = false))]
    #[expect(clippy::too_many_arguments, reason = "what a rule is made of")]
    fn new(
        py: Python<'_>,
        model: &Model,
        n: usize,
        step: usize,
        kind: &str,
        value: f64,
        predictive: Option<&Predictive>,
        has_strength: bool,
    ) -> PyResult<Self> {
        let criterion = match kind {
            "lossless" => Criterion::Lossless,
            "risk-bounded" => Criterion::RiskBounded { epsilon: value },
            "cost-optimal" => Criterion::CostOptimal { price: value },
            other => {
                let expected = "'lossless', 'risk-bounded' or 'cost-optimal'";
                return Err(raise(Error::value("kind", other, expected)));
            }
        };
        let predictive = predictive.map(|predictive| &predictive.0);
        run(py, 1, |_| {
            let rule =
                stopping::StoppingRule::new(model.0.clone(), n, step, criterion, predictive)?;
            if has_strength { rule.of_strengths() } else { Ok(rule) }
        })
        .map(Self)
    }

    /// The least price at which an item gets no more than so many votes on average.
    #[staticmethod]
    fn price_within(
        py: Python<'_>,
        model: &Model,
        n: usize,
        step: usize,
        votes: f64,
        predictive: &Predictive,
    ) -> PyResult<f64> {
        run(py, 1, |_| {
            stopping::StoppingRule::within_budget(&model.0, n, step, votes, &predictive.0)
        })
        .map(|(_, price)| price)
    }

    /// Whether each row of counts is settled.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn stops<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Vector<'py, bool>> {
        mapped!(written, self.0, offsets, counts, rows_of(counts), n_threads, stops_into)
    }

    /// The label of each row of counts, −1, 0 or +1.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn decide<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Vector<'py, i8>> {
        mapped!(written, self.0, offsets, counts, rows_of(counts), n_threads, decide_into)
    }

    /// Votes left, chance of a change and expected error of each row of counts, as columns.
    fn forecasts<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
    ) -> PyResult<Matrix<'py, f64>> {
        mapped!(written_rows, self.0, counts, rows_of(counts), n_threads, forecasts_into)
    }

    /// Fewest votes after which each row of counts may be settled.
    #[pyo3(signature = (counts, n_threads, offsets = None))]
    fn votes_to_ask<'py>(
        &self,
        counts: &Untyped<'py>,
        n_threads: usize,
        offsets: Offsets<'_>,
    ) -> PyResult<Vector<'py, u8>> {
        mapped!(written, self.0, offsets, counts, rows_of(counts), n_threads, votes_to_ask_into)
    }

    /// Fewest votes after which one item may be settled.
    fn votes_to_ask_one(&self, minus: Any<'_>, tie: Any<'_>, plus: Any<'_>) -> PyResult<u8> {
        self.0.votes_to_ask(counts_of(minus, tie, plus)?).map_err(raise)
    }

    /// Whether one item is settled.
    fn stops_one(&self, minus: Any<'_>, tie: Any<'_>, plus: Any<'_>) -> PyResult<bool> {
        self.0.stops(counts_of(minus, tie, plus)?).map_err(raise)
    }

    /// The label of one item.
    fn decide_one(&self, minus: Any<'_>, tie: Any<'_>, plus: Any<'_>) -> PyResult<i8> {
        self.0.decide(counts_of(minus, tie, plus)?).map(i8::from).map_err(raise)
    }

    /// Votes, chance of a change and error that are expected of an item without votes.
    #[getter]
    fn start(&self) -> Option<(f64, f64, f64)> {
        self.0.start().map(|start| (start.votes_left, start.change, start.error))
    }
}
