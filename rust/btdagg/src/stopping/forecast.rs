/// What is expected of an item from some counts on, if the rule is followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Further votes.
    pub votes_left: f64,
    /// Chance that the label differs from that of the full `n` votes.
    pub change: f64,
    /// Absolute error of the label.
    pub error: f64,
}

impl From<[f64; 3]> for Forecast {
    fn from([votes_left, change, error]: [f64; 3]) -> Self {
        Self { votes_left, change, error }
    }
}
