//! What else is known of items: numbers that a model weighs beside their votes.

use crate::Error;
use crate::error::same_length;

/// How far an offset goes, so that margins stay finite.
const FARTHEST: f64 = 1e300;

/// A number that is known of items, and its weight in a model.
///
/// ```
/// use btdagg::{Counts, Covariate, Execution, Label, Model};
///
/// let file = r#"{"format": "btdagg.davidson", "version": 1, "beta": 1.2, "eta0": 0.5,
///     "gamma": 0.8, "alpha": 1.0, "kappa": 1.0,
///     "covariates": [{"name": "length", "weight": 2.0, "scale": 0.5, "centre": 0.0}]}"#;
/// let (model, known) = Model::with_covariates_from_json(file)?;
/// let offsets = [Covariate::offset(&known, &[0.9])?, Covariate::offset(&known, &[f64::NAN])?];
/// let (rows, mut labels): ([[u8; 3]; 2], _) = ([[2, 1, 2], [2, 1, 2]], [Label::Tie; 2]);
/// model.with_offsets(&offsets).decide_into(&rows[..], &mut labels, Execution::single())?;
/// assert_eq!(labels, [Label::Plus, Label::Tie]); // the second is not known
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Covariate {
    /// Its name.
    pub name: String,
    /// What one scale of it adds to the margin, of grades to the log odds of neighbouring grades.
    pub weight: f64,
    /// Its scale, above 0.
    pub scale: f64,
    /// The value that adds nothing.
    pub centre: f64,
}

impl Covariate {
    /// What the values of an item's covariates add to its margin, in their order; NaN is a missing
    /// value, which adds nothing.
    ///
    /// # Errors
    /// [`Error::Input`] if there is not a value for each.
    pub fn offset(covariates: &[Self], values: &[f64]) -> Result<f64, Error> {
        same_length("values", values.len(), covariates.len(), "covariates")?;
        let mut offset = 0.0;
        for (covariate, value) in covariates.iter().zip(values) {
            let scaled = (value - covariate.centre) / covariate.scale;
            let known = if scaled.is_nan() { 0.0 } else { scaled.clamp(f64::MIN, f64::MAX) };
            offset += known * covariate.weight;
        }
        Ok(offset.clamp(-FARTHEST, FARTHEST))
    }
}
