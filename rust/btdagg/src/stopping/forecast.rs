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

impl From<Forecast> for [f64; 3] {
    fn from(Forecast { votes_left, change, error }: Forecast) -> Self {
        [votes_left, change, error]
    }
}
