//! What a model says of counts, in the form that tables and batches take, and of many items at once.

use std::marker::PhantomData;

use crate::davidson::{self, Lead, TieLogit};
use crate::table::Quantity;
use crate::{Error, Execution, Label, Model, Rows, batch, features};

/// Margin and tie feature, as `[s, t]`.
pub(crate) struct FeatureValues<'a>(pub(crate) &'a Model);

impl Quantity for FeatureValues<'_> {
    type Side = f64;
    type Tie = f64;
    type Value = [f64; 2];

    fn side(&self, minus: f64, plus: f64) -> f64 {
        features::margin(minus, plus, self.0.smoothing().0)
    }

    fn tie(&self, tie: f64, decisive: f64) -> f64 {
        features::tie(tie, decisive, self.0.smoothing().1)
    }

    fn value(&self, s: f64, t: f64) -> [f64; 2] {
        [s, t]
    }
}

/// Something of the probabilities of −1, 0 and +1.
pub(crate) struct OfProbabilities<'a, F>(pub(crate) &'a Model, pub(crate) F);

impl<F: Fn([f64; 3]) -> [f64; 3] + Sync> Quantity for OfProbabilities<'_, F> {
    type Side = f64;
    type Tie = TieLogit;
    type Value = [f64; 3];

    fn side(&self, minus: f64, plus: f64) -> f64 {
        self.0.margin_logit(minus, plus)
    }

    fn tie(&self, tie: f64, decisive: f64) -> TieLogit {
        self.0.tie_logit(tie, decisive)
    }

    fn value(&self, u: f64, eta: TieLogit) -> [f64; 3] {
        (self.1)(davidson::probabilities(u, eta))
    }
}

/// Decisions, as whatever a label turns into.
pub(crate) struct Decisions<'a, L>(&'a Model, PhantomData<fn() -> L>);

impl<'a, L> Decisions<'a, L> {
    pub(crate) const fn of_model(model: &'a Model) -> Self {
        Self(model, PhantomData)
    }
}

impl<L: From<Label> + Copy + Send> Quantity for Decisions<'_, L> {
    type Side = Lead;
    type Tie = TieLogit;
    type Value = L;

    fn side(&self, minus: f64, plus: f64) -> Lead {
        Lead::new(self.0.margin_logit(minus, plus))
    }

    fn tie(&self, tie: f64, decisive: f64) -> TieLogit {
        self.0.tie_logit(tie, decisive)
    }

    fn value(&self, lead: Lead, eta: TieLogit) -> L {
        davidson::action(lead, eta).into()
    }
}

impl Model {
    /// Margin and tie feature of every row, as `[s, t]`.
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, [`Error::Interrupted`].
    pub fn features_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 2]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        batch::map(&FeatureValues(self), rows, out, execution)
    }

    /// Probabilities of every row.
    ///
    /// # Errors
    /// As [`features_into`](Self::features_into).
    pub fn probabilities_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        batch::map(&OfProbabilities(self, |p| p), rows, out, execution)
    }

    /// Risks of every row.
    ///
    /// # Errors
    /// As [`features_into`](Self::features_into).
    pub fn risks_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        batch::map(&OfProbabilities(self, davidson::risks), rows, out, execution)
    }

    /// Decision of every row, as [`Label`] or as −1, 0, +1 (`i8`).
    ///
    /// Small counts are looked up in a table, at close to the speed of reading them.
    ///
    /// ```
    /// use btdagg::{Execution, Model};
    ///
    /// let model = Model::new(1.2, 2.0, 0.8)?;
    /// let rows: [[u8; 3]; 3] = [[0, 1, 11], [5, 2, 5], [12, 0, 0]];
    /// let mut labels = [0_i8; 3];
    /// model.decide_into(&rows[..], &mut labels, Execution::single())?;
    /// assert_eq!(labels, [1, 0, -1]);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`features_into`](Self::features_into).
    pub fn decide_into<R: Rows + ?Sized, L: From<Label> + Copy + Send>(
        &self,
        rows: &R,
        out: &mut [L],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        batch::map(&Decisions::of_model(self), rows, out, execution)
    }
}
