//! A panel's decisions: the votes of several judges, each with a beta and a gamma of its own.

use crate::counts::{CountRow, Counts, Rows};
use crate::davidson::{self, Lead, SATURATED, TieLogit};
use crate::error::{check_finite, same_length};
use crate::features::{Features, Usual, check_usual_votes};
use crate::model::{WithOffsets, check_smoothing};
use crate::parallel::{BLOCK, Execution, for_each_part};
use crate::{Error, Label, Provenance};

/// Sums of a few products are off by a few roundings; risks that differ by no more are equal.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// One judge of a [`Panel`].
#[derive(Debug, Clone, PartialEq)]
pub struct Judge {
    /// Its name.
    pub name: String,
    /// Margin sensitivity, at least 0.
    pub beta: f64,
    /// Tie-count sensitivity.
    pub gamma: f64,
    /// Whether its votes count; they do not where no labelled item had any.
    pub is_heard: bool,
    /// How many votes it has usually on an item; see [`Model::with_usual_votes`](crate::Model).
    pub usual_votes: Option<f64>,
}

/// A Davidson model of the votes of several judges: what Python's `calibrate_panel` fits.
///
/// With the features s and t of each judge's votes, `u = Σ beta · s` and `eta = eta0 + Σ gamma · t`
/// take the place of those of a [`Model`](crate::Model). A judge without votes on an item gets the
/// mean features of those with votes.
///
/// ```
/// use btdagg::{Counts, Label, Panel};
///
/// let file = r#"{"format": "btdagg.panel", "version": 1, "judges": ["a", "b"],
///     "beta": [1.0, 0.4], "eta0": 1.0, "gamma": [0.5, 0.2], "alpha": 1.0, "kappa": 1.0,
///     "unheard": []}"#;
/// let panel = Panel::from_json(file)?;
/// let votes = [Counts::whole(0, 1, 7), Counts::whole(1, 3, 4)]; // of a, and of b
/// assert_eq!(panel.decide(&votes)?, Label::Plus);
/// let [minus, tie, plus] = panel.probabilities(&votes)?;
/// assert!(plus > tie && tie > minus);
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    judges: Vec<Judge>,
    eta0: f64,
    alpha: f64,
    kappa: f64,
    provenance: Option<Provenance>,
}

impl Panel {
    /// A panel with both smoothing constants 1.
    ///
    /// # Errors
    /// [`Error::Input`] without judges; [`Error::Input`] if a number is not finite;
    /// [`Error::Input`] if a beta is negative.
    pub fn new(judges: Vec<Judge>, eta0: f64) -> Result<Self, Error> {
        if judges.is_empty() {
            return Err(Error::input("judges", "is empty", "at least one item"));
        }
        let numbers = judges.iter().flat_map(|j| [("beta", j.beta), ("gamma", j.gamma)]);
        for (name, value) in numbers.chain([("eta0", eta0)]) {
            if !value.is_finite() {
                return Err(Error::not_finite(name, value));
            }
        }
        if let Some(judge) = judges.iter().find(|judge| judge.beta < 0.0) {
            return Err(Error::value("beta", judge.beta, "a number of at least 0"));
        }
        judges.iter().try_for_each(|judge| check_usual_votes(judge.usual_votes))?;
        Ok(Self { judges, eta0, alpha: 1.0, kappa: 1.0, provenance: None })
    }

    /// The same panel with other smoothing constants.
    ///
    /// # Errors
    /// [`Error::Input`] if one is not finite and positive.
    pub fn with_smoothing(self, alpha: f64, kappa: f64) -> Result<Self, Error> {
        check_smoothing(alpha, kappa)?;
        Ok(Self { alpha, kappa, ..self })
    }

    /// The same panel, knowing what it was fitted to.
    #[must_use]
    pub fn with_provenance(self, provenance: impl Into<Option<Provenance>>) -> Self {
        Self { provenance: provenance.into(), ..self }
    }

    /// What the panel was fitted to, if that is known.
    pub const fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_ref()
    }

    /// The judges, in the order in which their counts are given.
    pub fn judges(&self) -> &[Judge] {
        &self.judges
    }

    /// The label of least expected absolute error of one item; equal risks give a tie.
    ///
    /// # Errors
    /// [`Error::Input`] if there are not the counts of each judge.
    pub fn decide(&self, counts: &[Counts]) -> Result<Label, Error> {
        let mut out = [0_i8];
        self.decide_into(counts, &mut out, Execution::single())?;
        Label::parse(out[0], "labels", 0)
    }

    /// Probabilities of −1, 0 and +1 of one item.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub fn probabilities(&self, counts: &[Counts]) -> Result<[f64; 3], Error> {
        let mut out = [[0.0; 3]];
        self.probabilities_into(counts, &mut out, Execution::single())?;
        Ok(out[0])
    }

    /// The panel of items that each have an offset: what else is known of them, added to their `u`.
    pub const fn with_offsets<'a>(&'a self, offsets: &'a [f64]) -> WithOffsets<'a, Self> {
        WithOffsets { model: self, offsets }
    }

    /// Decision of every item, whose judges' counts are consecutive rows.
    ///
    /// # Errors
    /// [`Error::Input`] if there are not as many rows as items times judges; [`Error::Input`] for
    /// the first bad row; [`Error::Interrupted`].
    pub fn decide_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [i8],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.map(rows, None, out, execution, decision)
    }

    /// Probabilities of −1, 0 and +1 of every item; see [`decide_into`](Self::decide_into).
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn probabilities_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.map(rows, None, out, execution, probabilities)
    }

    /// Expected absolute error of answering −1, 0 and +1 for every item.
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn risks_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.map(rows, None, out, execution, |logits| davidson::risks(probabilities(logits)))
    }

    fn map<R: Rows + ?Sized, V: Send>(
        &self,
        rows: &R,
        offsets: Option<&[f64]>,
        out: &mut [V],
        execution: Execution<'_>,
        value: impl Fn([f64; 3]) -> V + Sync,
    ) -> Result<(), Error> {
        let n_judges = self.judges.len();
        let (got, wanted) = (rows.len(), out.len() * n_judges);
        same_length("counts", got, wanted, "items and judges")?;
        if let Some(offsets) = offsets {
            same_length("offsets", offsets.len(), out.len(), "items")?;
            check_finite("offsets", offsets, 0)?;
        }
        let usual = |judge: &Judge| Usual::new(judge.usual_votes, self.alpha, self.kappa);
        let usual: Vec<Usual> = self.judges.iter().map(usual).collect();
        for_each_part(out, BLOCK, execution, |start, part, mut watch| {
            let (mut buffer, mut features) = (Vec::new(), Vec::with_capacity(n_judges));
            let mut row = start * n_judges;
            for out in part.chunks_mut(BLOCK) {
                watch.poll()?;
                let block = rows.block(row, out.len() * n_judges, &mut buffer);
                for (item, out) in block.chunks(n_judges).zip(out) {
                    features.clear();
                    let offset = offsets.map_or(0.0, |offsets| offsets[row / n_judges]);
                    for ((judge, usual), counts) in self.judges.iter().zip(&usual).zip(item) {
                        let counts = counts.counts(row)?;
                        row += 1;
                        if judge.is_heard {
                            let has_votes = counts != Counts::default();
                            let found = Features::beside(counts, self.alpha, self.kappa, *usual);
                            features.push((judge, has_votes.then_some(found)));
                        }
                    }
                    *out = value(self.logits(&features, offset));
                }
            }
            Ok(())
        })
    }

    /// Margin and tie logit, and the sum of the sizes of what they are sums of. Of the features of
    /// the judges that are heard; none of one without votes.
    fn logits(&self, judges: &[(&Judge, Option<Features>)], offset: f64) -> [f64; 3] {
        let present = || judges.iter().filter_map(|(_, features)| features.as_ref());
        let n_present = present().fold(0.0, |n, _| n + 1.0_f64).max(1.0);
        let mean = Features {
            s: present().map(|features| features.s).sum::<f64>() / n_present,
            t: present().map(|features| features.t).sum::<f64>() / n_present,
        };
        let (mut u, mut eta) = (offset, self.eta0);
        let mut size = self.eta0.abs() + offset.abs();
        for (judge, features) in judges {
            let Features { s, t } = features.unwrap_or(mean);
            u += judge.beta * s;
            eta += judge.gamma * t;
            size += (judge.beta * s).abs() + (judge.gamma * t).abs();
        }
        let bounded = |x: f64| x.clamp(-SATURATED, SATURATED);
        [bounded(u), bounded(eta), size.min(SATURATED)]
    }
}

impl WithOffsets<'_, Panel> {
    /// Decision of every item; see [`Panel::decide_into`].
    ///
    /// # Errors
    /// [`Error::Input`] if there is not one finite offset for each item; as [`Panel::decide_into`].
    pub fn decide_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [i8],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.model.map(rows, Some(self.offsets), out, execution, decision)
    }

    /// Probabilities of −1, 0 and +1 of every item.
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn probabilities_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.model.map(rows, Some(self.offsets), out, execution, probabilities)
    }

    /// Expected absolute error of answering −1, 0 and +1 for every item.
    ///
    /// # Errors
    /// As [`decide_into`](Self::decide_into).
    pub fn risks_into<R: Rows + ?Sized>(
        &self,
        rows: &R,
        out: &mut [[f64; 3]],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.model.map(rows, Some(self.offsets), out, execution, |logits| {
            davidson::risks(probabilities(logits))
        })
    }
}

fn decision([u, eta, size]: [f64; 3]) -> i8 {
    let label = davidson::action(Lead::new(u), TieLogit::of_sum(eta, size));
    if u.abs() > ROUNDING * size { label.value() } else { 0 }
}

fn probabilities([u, eta, _]: [f64; 3]) -> [f64; 3] {
    let largest = u.abs().max(eta);
    let [minus, tie, plus] = [-u, eta, u].map(|logit| (logit - largest).exp());
    // Both sides first, so that mirrored items have mirrored sums.
    let sum = (minus + plus) + tie;
    [minus / sum, tie / sum, plus / sum]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn judge(name: &str, beta: f64, gamma: f64) -> Judge {
        Judge { name: name.into(), beta, gamma, is_heard: true, usual_votes: None }
    }

    #[test]
    fn a_panel_of_one_is_the_model_and_absent_judges_have_the_mean_of_the_others() {
        let model = Model::new(1.3, 0.7, 0.6).unwrap().with_smoothing(0.5, 2.0).unwrap();
        let one = Panel::new(vec![judge("a", 1.3, 0.6)], 0.7).unwrap();
        let one = one.with_smoothing(0.5, 2.0).unwrap();
        let halves = vec![judge("a", 0.9, 0.4), judge("b", 0.4, 0.2)];
        let two = Panel::new(halves, 0.7).unwrap().with_smoothing(0.5, 2.0).unwrap();
        for (minus, tie, plus) in [(0, 0, 0), (0, 1, 7), (3, 2, 3), (9, 4, 1), (1, 0, 0)] {
            let counts = Counts::whole(minus, tie, plus);
            assert_eq!(one.decide(&[counts]).unwrap(), model.decide(counts));
            assert_eq!(two.decide(&[counts, Counts::default()]).unwrap(), model.decide(counts));
            let mirrored = one.probabilities(&[counts.mirrored()]).unwrap();
            let pairs =
                one.probabilities(&[counts]).unwrap().into_iter().zip(mirrored.into_iter().rev());
            assert!(pairs.clone().all(|(p, q)| p == q));
            for (p, q) in pairs.zip(model.probabilities(counts)) {
                assert!((p.0 - q).abs() < 1e-15);
            }
        }
        let mut deaf = vec![judge("a", 1.3, 0.6), judge("b", 5.0, 9.0)];
        deaf[1].is_heard = false;
        let deaf = Panel::new(deaf, 0.7).unwrap().with_smoothing(0.5, 2.0).unwrap();
        let counts = [Counts::whole(0, 1, 7), Counts::whole(9, 0, 0)];
        assert_eq!(deaf.probabilities(&counts), one.probabilities(&counts[..1]));
    }

    #[test]
    fn an_offset_is_added_to_the_margin() {
        let model = Model::new(1.3, 0.7, 0.6).unwrap();
        let one = Panel::new(vec![judge("a", 1.3, 0.6)], 0.7).unwrap();
        let two = Panel::new(vec![judge("a", 0.9, 0.4), judge("b", 0.4, 0.2)], 0.7).unwrap();
        let single = Execution::single();
        let rows: Vec<[u8; 3]> = (0..200_u8).map(|i| [i % 5, i % 3, (i / 5) % 7]).collect();
        let offsets: Vec<f64> = (0..200).map(|i| f64::from(i % 41 - 20) * 0.15).collect();
        let (mut labels, mut wanted) = ([0_i8; 200], [0_i8; 200]);
        one.with_offsets(&offsets).decide_into(&rows[..], &mut labels, single).unwrap();
        model.with_offsets(&offsets).decide_into(&rows[..], &mut wanted, single).unwrap();
        assert_eq!(labels, wanted);
        let of = |rows: &[[u8; 3]], offsets: &[f64]| {
            let mut p = [[0.0; 3]; 100];
            two.with_offsets(offsets).probabilities_into(rows, &mut p, single).unwrap();
            p
        };
        let turned: Vec<[u8; 3]> = rows.iter().map(|&[m, t, p]| [p, t, m]).collect();
        let less: Vec<f64> = offsets[..100].iter().map(|offset| -offset).collect();
        for (p, [plus, tie, minus]) in of(&rows, &offsets[..100]).iter().zip(of(&turned, &less)) {
            assert_eq!(*p, [minus, tie, plus]);
        }
        let mut plain = [[0.0; 3]; 100];
        two.probabilities_into(&rows[..], &mut plain, single).unwrap();
        assert_eq!(of(&rows, &[0.0; 100]), plain);
        let error = two.with_offsets(&[0.0]).decide_into(&rows[..], &mut labels[..100], single);
        let text = "offsets has 1 rows, expected 100 as in items";
        assert_eq!(error.unwrap_err().to_string(), text);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |judges, eta0| Panel::new(judges, eta0).unwrap_err().to_string();
        assert_eq!(error(vec![], 0.0), "judges is empty, expected at least one item");
        assert_eq!(
            error(vec![judge("a", -1.0, 0.0)], 0.0),
            "beta is -1, expected a number of at least 0"
        );
        assert_eq!(
            error(vec![judge("a", 1.0, 0.0)], f64::NAN),
            "eta0 is NaN, expected a finite number"
        );
        let panel = Panel::new(vec![judge("a", 1.0, 0.0)], 0.0).unwrap();
        assert_eq!(
            panel.decide(&[]).unwrap_err().to_string(),
            "counts has 0 rows, expected 1 as in items and judges"
        );
    }
}
