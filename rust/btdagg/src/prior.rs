use crate::region::{Region, Vector};
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
    /// [`Error::Input`] if there are none; [`Error::Input`] if one lies outside the default
    /// bounds.
    pub fn new(thetas: &[Parameters]) -> Result<Self, Error> {
        if thetas.is_empty() {
            return Err(Error::no_weight());
        }
        let region = Region::new(&Bounds::default())?;
        for theta in thetas.iter().copied().map(Parameters::vector) {
            let near = region.nearest(theta);
            for (i, name) in ["beta", "eta0", "gamma"].into_iter().enumerate() {
                if near[i] != theta[i] {
                    return Err(Error::value(name, theta[i], "a number within the bounds"));
                }
            }
        }
        Ok(Self { thetas: thetas.iter().copied().map(Parameters::vector).collect() })
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameters> {
        self.thetas.iter().copied().map(Parameters::of).collect()
    }
}
