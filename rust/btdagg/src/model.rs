use std::sync::Arc;

use crate::davidson::{self, HalfWidth, Lead, TieLogit, Ties};
use crate::features::{self, Features, Usual, check_usual_votes};
use crate::table::{Kept, Quantity};
use crate::{Counts, Error, Execution, Label, Provenance, Rows};

/// The three fitted numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Margin sensitivity β.
    pub beta: f64,
    /// Tie baseline η₀ = ln ν.
    pub eta0: f64,
    /// Tie-count sensitivity γ.
    pub gamma: f64,
}

impl Parameters {
    /// Of beta, eta0 and gamma.
    pub const fn of([beta, eta0, gamma]: [f64; 3]) -> Self {
        Self { beta, eta0, gamma }
    }

    /// Beta, eta0 and gamma.
    pub const fn vector(self) -> [f64; 3] {
        [self.beta, self.eta0, self.gamma]
    }

    pub(crate) fn margin_logit(&self, s: f64, offset: f64) -> f64 {
        davidson::margin_logit(self.beta, s, offset)
    }

    pub(crate) fn tie_logit(&self, t: f64) -> TieLogit {
        TieLogit::new(self.eta0, self.gamma, t)
    }

    pub(crate) fn probabilities(&self, s: f64, t: f64, offset: f64) -> [f64; 3] {
        davidson::probabilities(self.margin_logit(s, offset), self.tie_logit(t))
    }
}

/// A Bradley–Terry–Davidson model of labels given vote counts: three fitted numbers and two
/// smoothing constants.
///
/// With `s` and `t` the [`features`], `u = beta · s` and `eta = eta0 + gamma · t`, the
/// probabilities of −1, 0 and +1 are proportional to `exp(−u)`, `exp(eta)` and `exp(u)`.
#[derive(Debug, Clone)]
pub struct Model {
    parameters: Parameters,
    alpha: f64,
    kappa: f64,
    usual_votes: Option<f64>,
    provenance: Option<Arc<Provenance>>,
    kept: Arc<KeptTables>,
}

/// Tables of a model's quantities, which its clones share.
#[derive(Default)]
struct KeptTables {
    labels: Kept<Label>,
    probabilities: Kept<[f64; 3]>,
    risks: Kept<[f64; 3]>,
}

impl std::fmt::Debug for KeptTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("tables")
    }
}

/// Models are equal where their numbers are.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.smoothing() == other.smoothing()
            && self.usual_votes == other.usual_votes
    }
}

impl Model {
    /// A model with both smoothing constants 1.
    ///
    /// # Errors
    /// [`Error::Input`] if a parameter is not finite.
    pub fn new(beta: f64, eta0: f64, gamma: f64) -> Result<Self, Error> {
        for (name, value) in [("beta", beta), ("eta0", eta0), ("gamma", gamma)] {
            if !value.is_finite() {
                return Err(Error::not_finite(name, value));
            }
        }
        let parameters = Parameters { beta, eta0, gamma };
        let (usual_votes, provenance, kept) = (None, None, Arc::default());
        Ok(Self { parameters, alpha: 1.0, kappa: 1.0, usual_votes, provenance, kept })
    }

    /// The same model with other smoothing constants.
    ///
    /// # Errors
    /// [`Error::Input`] if one is not finite and positive.
    pub fn with_smoothing(self, alpha: f64, kappa: f64) -> Result<Self, Error> {
        check_smoothing(alpha, kappa)?;
        Ok(Self { alpha, kappa, kept: Arc::default(), ..self })
    }

    /// The same model, for items that have usually so many votes: features of items with more or
    /// fewer are compared with theirs, each as a share of that of a unanimous item.
    ///
    /// Without it features of any number of votes are taken as they are.
    ///
    /// ```
    /// use btdagg::{Counts, Model};
    ///
    /// let model = Model::new(1.2, 2.0, 0.8)?;
    /// let usual = model.clone().with_usual_votes(Some(8.0))?;
    /// assert_eq!(usual.decide(Counts::whole(2, 1, 5)), model.decide(Counts::whole(2, 1, 5)));
    /// let [unanimous, of_two] = [8, 2].map(|n| usual.probabilities(Counts::whole(0, 0, n))[2]);
    /// assert!((unanimous - of_two).abs() < 1e-12);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the number is not finite and above 0.
    pub fn with_usual_votes(self, usual_votes: Option<f64>) -> Result<Self, Error> {
        check_usual_votes(usual_votes)?;
        Ok(Self { usual_votes, kept: Arc::default(), ..self })
    }

    /// How many votes an item has usually, where the model compares others with these.
    pub const fn usual_votes(&self) -> Option<f64> {
        self.usual_votes
    }

    /// The model that decides items of so many votes as this one does, by their features as they are.
    #[must_use]
    pub fn at(self, n_votes: f64) -> Self {
        let (of_margin, of_tie) = self.usual().factors(n_votes);
        let Parameters { beta, eta0, gamma } = self.parameters;
        let parameters = Parameters { beta: beta * of_margin, eta0, gamma: gamma * of_tie };
        Self { parameters, usual_votes: None, kept: Arc::default(), ..self }
    }

    pub(crate) fn usual(&self) -> Usual {
        Usual::new(self.usual_votes, self.alpha, self.kappa)
    }

    /// The same model, knowing what it was fitted to.
    #[must_use]
    pub fn with_provenance(self, provenance: impl Into<Option<Provenance>>) -> Self {
        Self { provenance: provenance.into().map(Arc::new), ..self }
    }

    /// What the model was fitted to, if that is known.
    pub fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_deref()
    }

    /// The three fitted numbers.
    pub const fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Smoothing constants alpha and kappa.
    pub const fn smoothing(&self) -> (f64, f64) {
        (self.alpha, self.kappa)
    }

    /// Margin and tie feature.
    pub fn features(&self, counts: Counts) -> Features {
        Features::beside(counts, self.alpha, self.kappa, self.usual())
    }

    /// Probabilities of −1, 0 and +1.
    pub fn probabilities(&self, counts: Counts) -> [f64; 3] {
        let (u, eta) = self.logits(counts);
        davidson::probabilities(u, eta)
    }

    /// Expected absolute error of answering −1, 0 and +1.
    pub fn risks(&self, counts: Counts) -> [f64; 3] {
        davidson::risks(self.probabilities(counts))
    }

    /// The label of least expected absolute error; equal risks give a tie.
    pub fn decide(&self, counts: Counts) -> Label {
        self.decide_at(counts, 0.0)
    }

    /// The model of items that each have an offset: what else is known of them, added to their
    /// margins `u`.
    ///
    /// ```
    /// use btdagg::{Execution, Model};
    ///
    /// let model = Model::new(1.2, 2.0, 0.8)?;
    /// let rows: [[u8; 3]; 2] = [[5, 2, 5], [5, 2, 5]];
    /// let mut labels = [0_i8; 2];
    /// model.with_offsets(&[2.5, -2.5]).decide_into(&rows[..], &mut labels, Execution::single())?;
    /// assert_eq!(labels, [1, -1]);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    pub const fn with_offsets<'a>(&'a self, offsets: &'a [f64]) -> WithOffsets<'a> {
        WithOffsets { model: self, offsets }
    }

    /// Whether every item with at most `n_votes` votes is decided a tie, however they fall.
    ///
    /// Such a model says no more than the constant 0 does. It cannot be constant otherwise: an
    /// item without votes is a tie, and mirrored items have mirrored decisions.
    ///
    /// ```
    /// use btdagg::Model;
    ///
    /// let model = Model::new(1.0, 1.0, 0.0)?;
    /// assert!(model.always_ties(8)); // 2 sinh(½ ln 9) < e
    /// assert!(!model.always_ties(9));
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    pub fn always_ties(&self, n_votes: u64) -> bool {
        if self.usual_votes.is_none() {
            return self.ties_at(n_votes);
        }
        // Unanimous items say the same, however many votes they have; mixed ones are as fine as
        // their number allows.
        let few = (1..=n_votes.min(64)).chain([n_votes]);
        few.into_iter().all(|n| self.clone().at(crate::index::to_f64(n)).ties_at(n))
    }

    /// The same of a model that takes features as they are.
    fn ties_at(&self, n_votes: u64) -> bool {
        // Of all items with as many decisive votes the unanimous ones lead furthest. Where ties
        // make a tie likelier, none is best and so are as many decisive votes as there can be.
        let unanimous = |decisive: u64| {
            let tie = if self.parameters.gamma >= 0.0 { 0 } else { n_votes - decisive };
            Counts::whole(0, tie, decisive)
        };
        // Elsewhere all others are ties. The lead's excess over the tie logit is a concave function
        // of the decisive votes: its summit is where it begins to fall.
        let excess = |decisive: u64| {
            let counts = unanimous(decisive);
            let lead = Lead::new(self.margin_logit(0.0, counts.plus));
            davidson::excess(lead, self.tie_logit(counts.tie, counts.plus))
        };
        let (mut low, mut high) = (0, n_votes);
        while low < high {
            let middle = low + (high - low) / 2;
            if excess(middle + 1) > excess(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // For enormous numbers a step is below rounding and the search may end early: look at the
        // far end as well.
        [low, n_votes].into_iter().all(|decisive| self.decide(unanimous(decisive)) == Label::Tie)
    }

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
        let usual = self.usual();
        let tie = |tie, decisive| {
            let (of_margin, of_tie) = usual.factors(decisive + tie);
            (of_margin, features::tie(tie, decisive, self.kappa) * of_tie)
        };
        let value = |s: f64, (of_margin, t): (f64, f64)| [s * of_margin, t];
        Quantity { side: self.margin(), tie, value }.map(rows, None, out, execution)
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
        let value = |s, (of_margin, eta)| {
            davidson::probabilities(self.parameters.margin_logit(s * of_margin, 0.0), eta)
        };
        let quantity = Quantity { side: self.margin(), tie: self.tie(), value };
        quantity.map(rows, Some(&self.kept.probabilities), out, execution)
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
        let value = |s, (of_margin, eta)| {
            let u = self.parameters.margin_logit(s * of_margin, 0.0);
            davidson::risks(davidson::probabilities(u, eta))
        };
        let quantity = Quantity { side: self.margin(), tie: self.tie(), value };
        quantity.map(rows, Some(&self.kept.risks), out, execution)
    }

    /// Decision of every row, as [`Label`] or as −1, 0, +1 (`i8`).
    ///
    /// Small counts are looked up in a table, at close to the speed of reading them. Once a model was
    /// asked for some 500 items it keeps that of counts below 16, for batches of any size.
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
        let value = |s, (of_margin, eta)| {
            let lead = Lead::new(self.parameters.margin_logit(s * of_margin, 0.0));
            davidson::action(lead, eta)
        };
        let quantity = Quantity { side: self.margin(), tie: self.tie(), value };
        quantity.map(rows, Some(&self.kept.labels), out, execution)
    }

    /// The label with an offset.
    pub(crate) fn decide_at(&self, counts: Counts, offset: f64) -> Label {
        let (u, eta) = self.logits(counts);
        davidson::decision(u, eta, offset)
    }

    /// Margin and tie logit of counts.
    fn logits(&self, counts: Counts) -> (f64, TieLogit) {
        let Features { s, t } = self.features(counts);
        (self.parameters.margin_logit(s, 0.0), self.parameters.tie_logit(t))
    }

    /// The margin feature as it is, of minus and plus.
    fn margin(&self) -> impl Fn(f64, f64) -> f64 + Sync {
        |minus, plus| features::margin(minus, plus, self.alpha)
    }

    /// What the margin feature is multiplied by, and the tie logit, of ties and decisive votes.
    fn tie(&self) -> impl Fn(f64, f64) -> (f64, TieLogit) + Sync {
        let usual = self.usual();
        move |tie, decisive| {
            let (of_margin, of_tie) = usual.factors(decisive + tie);
            let t = features::tie(tie, decisive, self.kappa) * of_tie;
            (of_margin, self.parameters.tie_logit(t))
        }
    }

    /// The offsets between which counts are a tie.
    pub(crate) fn ties(&self, Counts { minus, tie, plus }: Counts) -> Ties {
        let u = self.margin_logit(minus, plus);
        Ties::new((u, Lead::new(u)), HalfWidth::new(self.tie_logit(tie, minus + plus)))
    }

    pub(crate) fn margin_logit(&self, minus: f64, plus: f64) -> f64 {
        self.parameters.margin_logit(features::margin(minus, plus, self.alpha), 0.0)
    }

    pub(crate) fn tie_logit(&self, tie: f64, decisive: f64) -> TieLogit {
        self.parameters.tie_logit(features::tie(tie, decisive, self.kappa))
    }
}

/// A model, or a panel, and the offset of each item in the order of the rows; see
/// [`Model::with_offsets`].
#[derive(Debug, Clone, Copy)]
pub struct WithOffsets<'a, M = Model> {
    pub(crate) model: &'a M,
    pub(crate) offsets: &'a [f64],
}

impl WithOffsets<'_> {
    /// Decision of every row, by comparing its offset with those at which its counts are no longer
    /// a tie.
    ///
    /// # Errors
    /// [`Error::Input`] if there is not one offset for each row, or one is not finite; as [`Model::features_into`].
    pub fn decide_into<R: Rows + ?Sized, L: From<Label> + Copy + Send>(
        &self,
        rows: &R,
        out: &mut [L],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        let model = self.model;
        let of_ties = model.tie();
        let tie = |tie, decisive| {
            let (of_margin, eta) = of_ties(tie, decisive);
            (of_margin, HalfWidth::new(eta))
        };
        let value = |s, (of_margin, half)| {
            let u = model.parameters.margin_logit(s * of_margin, 0.0);
            Ties::new((u, Lead::new(u)), half)
        };
        let decide = |ties: Ties, offset| ties.decide(offset).into();
        let quantity = Quantity { side: model.margin(), tie, value };
        quantity.map_with(rows, None, self.offsets, out, execution, decide)
    }

    /// Probabilities of every row.
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn probabilities_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.of_probabilities(rows, out, execution, |p| p)
    }

    /// Risks of every row.
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn risks_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.of_probabilities(rows, out, execution, davidson::risks)
    }

    fn of_probabilities<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
        of: impl Fn([f64; 3]) -> [f64; 3] + Sync,
    ) -> Result<(), Error> {
        let model = self.model;
        let value = |s, (of_margin, eta)| (model.parameters.margin_logit(s * of_margin, 0.0), eta);
        let finish = |(u, eta), offset| {
            of(davidson::probabilities(davidson::margin_logit(1.0, u, offset), eta))
        };
        let quantity = Quantity { side: model.margin(), tie: model.tie(), value };
        quantity.map_with(rows, None, self.offsets, out, execution, finish)
    }
}

/// # Errors
/// [`Error::Input`] if a constant is not finite and positive.
pub(crate) fn check_smoothing(alpha: f64, kappa: f64) -> Result<(), Error> {
    for (name, value) in [("alpha", alpha), ("kappa", kappa)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::value(name, value, "a finite number above 0"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountRow;

    #[test]
    fn wrong_constants_are_named() {
        let error = Model::new(1.0, f64::NAN, 0.0).unwrap_err();
        assert_eq!(error.to_string(), "eta0 is NaN, expected a finite number");
        let error = Model::new(1.0, 0.0, 0.0).unwrap().with_smoothing(-1.0, 1.0).unwrap_err();
        assert_eq!(error.to_string(), "alpha is -1, expected a finite number above 0");
    }

    #[test]
    fn batches_equal_single_items_at_any_number_of_threads() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        let rows: Vec<[u64; 3]> =
            (0..30_000_u64).map(|i| [i % 13, (i / 13) % 11, (i * i) % 300]).collect();
        let direct: Vec<i8> =
            rows.iter().map(|&[m, t, p]| model.decide(Counts::whole(m, t, p)).value()).collect();
        for n_threads in [1, 2, 3, 7] {
            let execution = Execution::threads(n_threads.try_into().unwrap());
            let mut labels = vec![0_i8; rows.len()];
            model.decide_into(&rows[..], &mut labels, execution).unwrap();
            assert_eq!(labels, direct);
        }
    }

    #[test]
    fn large_counts_among_small_ones_are_decided_wherever_they_are() {
        fn check<T: crate::CountValue + From<u8> + std::fmt::Debug>(large: T) {
            let small =
                |i: usize| [i % 13, i / 13 % 7, i * i % 11].map(|n| T::from(n.to_le_bytes()[0]));
            let counts = |row: [T; 3]| row.counts(0).unwrap();
            for row in [0, 1, 15, 16, 63, 64, 100, 4095, 4096, 4113, 8191, 9_000, 9_006] {
                // Each has tables of its own, none of which is made yet.
                let model = Model::new(0.9, 1.4, 0.7).unwrap();
                let mut rows: Vec<[T; 3]> = (0..9_007).map(small).collect();
                rows[row][row % 3] = large;
                let (mut labels, mut p) = (vec![Label::Tie; 9_007], vec![[0.0; 3]; 9_007]);
                model.decide_into(&rows[..], &mut labels, Execution::single()).unwrap();
                model.probabilities_into(&rows[..], &mut p, Execution::single()).unwrap();
                for ((&row, label), p) in rows.iter().zip(labels).zip(p) {
                    assert_eq!(label, model.decide(counts(row)), "{row:?}");
                    assert_eq!(p, model.probabilities(counts(row)), "{row:?}");
                }
            }
        }
        check(16_i64);
        check(1_i64 << 40);
        check(200_u8);
        check(31_u16);
        check(2.5_f32);
        check(1e300);
    }

    #[test]
    fn tables_that_are_kept_have_the_same_bits_and_are_of_their_own_model() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        for most in [12, 30] {
            let rows: Vec<[u64; 3]> =
                (0..5_000_u64).map(|i| [i % most, i / 7 % most, i * i % most]).collect();
            let counts = |&[m, t, p]: &[u64; 3]| Counts::whole(m, t, p);
            let direct: Vec<_> = rows.iter().map(|row| model.probabilities(counts(row))).collect();
            let clone = model.clone();
            for (size, model) in [(rows.len(), &model), (10, &model), (1, &clone), (4000, &clone)] {
                for (rows, direct) in rows.chunks(size).zip(direct.chunks(size)) {
                    let (mut p, mut risks) = (vec![[0.0; 3]; 5_000], vec![[0.0; 3]; 5_000]);
                    let mut labels = vec![Label::Tie; 5_000];
                    let single = Execution::single();
                    model.probabilities_into(rows, &mut p[..rows.len()], single).unwrap();
                    model.risks_into(rows, &mut risks[..rows.len()], single).unwrap();
                    model.decide_into(rows, &mut labels[..rows.len()], single).unwrap();
                    assert_eq!(&p[..rows.len()], direct);
                    for ((row, risks), label) in rows.iter().zip(risks).zip(labels) {
                        assert_eq!(risks, model.risks(counts(row)));
                        assert_eq!(label, model.decide(counts(row)));
                    }
                }
            }
            let others = [
                model.clone().with_smoothing(0.3, 2.0).unwrap(),
                model.clone().with_usual_votes(Some(3.0)).unwrap(),
                model.clone().with_usual_votes(Some(3.0)).unwrap().at(9.0),
            ];
            for other in others {
                let mut p = vec![[0.0; 3]; rows.len()];
                other.probabilities_into(&rows[..], &mut p, Execution::single()).unwrap();
                for (row, p) in rows.iter().zip(p) {
                    assert_eq!(p, other.probabilities(counts(row)));
                }
            }
        }
    }

    #[test]
    fn offsets_of_0_change_nothing_and_others_mirror() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        let rows: Vec<[u64; 3]> =
            (0..30_000_u64).map(|i| [i % 13, (i / 13) % 11, (i * i) % 300]).collect();
        let single = Execution::single();
        let decide = |rows: &[[u64; 3]], offsets: &[f64], n_threads: usize| {
            let mut labels = vec![0_i8; rows.len()];
            let execution = Execution::threads(n_threads.try_into().unwrap());
            let model = model.with_offsets(offsets);
            model.decide_into(rows, &mut labels, execution).unwrap();
            labels
        };
        let of = |rows: &[[u64; 3]], offsets: &[f64]| {
            let mut p = vec![[0.0; 3]; rows.len()];
            model.with_offsets(offsets).probabilities_into(rows, &mut p, single).unwrap();
            p
        };
        let (mut labels, mut p) = (vec![0_i8; rows.len()], vec![[0.0; 3]; rows.len()]);
        model.decide_into(&rows[..], &mut labels, single).unwrap();
        model.probabilities_into(&rows[..], &mut p, single).unwrap();
        let zeros = vec![0.0; rows.len()];
        assert_eq!((decide(&rows, &zeros, 1), of(&rows, &zeros)), (labels, p));

        let offsets: Vec<f64> = (0..30_000_i32).map(|i| f64::from(i % 101 - 50) * 0.07).collect();
        let turned: Vec<f64> = offsets.iter().map(|offset| -offset).collect();
        let mut mirrored = rows.clone();
        mirrored.iter_mut().for_each(|row| row.reverse());
        let mut p = of(&mirrored, &turned);
        p.iter_mut().for_each(|p| p.reverse());
        assert_eq!(p, of(&rows, &offsets));
        let labels = decide(&rows, &offsets, 3);
        let turned: Vec<i8> = decide(&mirrored, &turned, 1).iter().map(|label| -label).collect();
        assert_eq!(labels, turned);
        for (label, [minus, tie, plus]) in labels.iter().zip(p) {
            let risks = davidson::risks([minus, tie, plus]);
            let place = usize::try_from(1 + label).unwrap();
            assert!(risks.iter().all(|risk| risks[place] <= risk + 1e-12));
        }
        let error = |offsets: &[f64]| {
            let mut out = [0_i8; 2];
            let decided = model.with_offsets(offsets).decide_into(&rows[..2], &mut out, single);
            decided.unwrap_err().to_string()
        };
        assert_eq!(error(&[0.0, f64::NAN]), "offsets[1] is NaN, expected a finite number");
        assert_eq!(error(&[0.0]), "offsets has 1 rows, expected 2 as in counts");
    }

    #[test]
    fn counts_are_rows_as_triples_are() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        for most in [9, 30, u64::MAX] {
            let triples: Vec<[u64; 3]> = (0..9_000_u64)
                .map(|i| [i * i % 10, i % 7, i.wrapping_mul(most / 9) % most.min(300)])
                .collect();
            let counts: Vec<Counts> =
                triples.iter().map(|&[m, t, p]| Counts::whole(m, t, p)).collect();
            let mut expected = vec![[0.0; 3]; triples.len()];
            let mut found = expected.clone();
            model.probabilities_into(&triples[..], &mut expected, Execution::single()).unwrap();
            model.probabilities_into(&counts[..], &mut found, Execution::single()).unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_first_bad_row_is_reported_at_any_number_of_threads() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        let mut rows = vec![[1_i32, 2, 3]; 50_000];
        rows[20_000][1] = -7;
        rows[49_000][0] = -1;
        for n_threads in [1, 2, 5] {
            let execution = Execution::threads(n_threads.try_into().unwrap());
            let mut out = vec![[0.0; 3]; rows.len()];
            let error = model.probabilities_into(&rows[..], &mut out, execution).unwrap_err();
            assert!(error.to_string().starts_with("counts[20000, 1] (tie) is -7, expected"));
        }
    }

    #[test]
    fn work_stops_when_asked_and_lengths_are_checked() {
        let model = Model::new(0.9, 1.4, 0.7).unwrap();
        let rows = vec![[1_u8, 2, 3]; 1 << 21];
        let mut out = vec![0_i8; rows.len()];
        let execution = Execution::single().stop_when(&|| true);
        let result = model.decide_into(&rows[..], &mut out, execution);
        assert_eq!(result, Err(Error::Interrupted));
        let error = model.decide_into(&rows[..2], &mut out[..3], Execution::single()).unwrap_err();
        assert_eq!(error.to_string(), "out has 3 rows, expected 2 as in counts");
    }
}
