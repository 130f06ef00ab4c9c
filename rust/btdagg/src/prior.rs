use crate::region::{Region, Vector, parameters, vector};
use crate::{Bounds, Error, Parameters};

/// Parameters that are equally likely before the first label.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    pub(crate) thetas: Vec<Vector>,
}

impl Prior {
    /// Of equally likely parameters.
    ///
    /// # Errors
    /// [`Error::NoWeight`] if there are none; [`Error::Parameter`] if one lies outside the default
    /// bounds.
    pub fn new(thetas: &[Parameters]) -> Result<Self, Error> {
        if thetas.is_empty() {
            return Err(Error::NoWeight);
        }
        let region = Region::new(&Bounds::default())?;
        for theta in thetas.iter().copied().map(vector) {
            let near = region.nearest(theta);
            for (i, name) in ["beta", "eta0", "gamma"].into_iter().enumerate() {
                if near[i] != theta[i] {
                    return Err(Error::Parameter { name, value: theta[i] });
                }
            }
        }
        Ok(Self { thetas: thetas.iter().copied().map(vector).collect() })
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameters> {
        self.thetas.iter().copied().map(parameters).collect()
    }
}
