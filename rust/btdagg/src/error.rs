use std::fmt;

const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// What was wrong with an input. Each message names the argument, the row, what came and what
/// was wanted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A model parameter that is not a finite number.
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// What came.
        value: f64,
    },
    /// A smoothing constant that is not finite and positive.
    Smoothing {
        /// `alpha` or `kappa`.
        name: &'static str,
        /// What came.
        value: f64,
    },
    /// A count that is not a non-negative integer below 2⁶⁴.
    Count {
        /// Row of the item.
        row: usize,
        /// Column, in label order.
        column: usize,
        /// What came.
        value: String,
    },
    /// A label or vote that is not −1, 0 or +1.
    Label {
        /// Name of the argument: `labels` or `votes`.
        name: &'static str,
        /// Row of the item.
        row: usize,
        /// What came.
        value: String,
    },
    /// A weight that is not finite and non-negative.
    Weight {
        /// Row of the item.
        row: usize,
        /// What came.
        value: f64,
    },
    /// Two arguments whose lengths must agree and do not.
    Length {
        /// Name of the argument that is off.
        name: &'static str,
        /// Its length.
        got: usize,
        /// The length that the other argument asks for.
        wanted: usize,
        /// Name of the other argument.
        other: &'static str,
    },
    /// A loss over no items, or over items whose weights are all zero.
    NoWeight,
    /// Bounds that are not finite or the wrong way round.
    Bounds {
        /// Name of the parameter.
        name: &'static str,
        /// Least value.
        lower: f64,
        /// Largest value.
        upper: f64,
    },
    /// Weights that are finite one by one and not in sum.
    WeightOverflow,
    /// A loss that is not finite.
    NotFinite {
        /// Argument and place in it.
        place: String,
        /// What came.
        value: f64,
    },
    /// Losses of no items.
    NoItems {
        /// Name of the argument.
        name: &'static str,
    },
    /// Losses of fewer than two methods where every two are compared.
    FewMethods {
        /// How many came.
        got: usize,
    },
    /// Losses whose sum is not finite.
    Huge {
        /// Losses of one method.
        a: String,
        /// Losses of the other.
        b: String,
    },
    /// A difference that is no integer, where the exact null distribution is asked for.
    NotIntegers {
        /// What the difference is of.
        place: String,
        /// What came.
        value: f64,
    },
    /// Integers with too many different sums for the exact null distribution.
    TooManySums {
        /// Items, or groups of items, whose differences are summed.
        n_units: usize,
    },
    /// A number out of its range.
    OutOfRange {
        /// Name of the argument.
        name: &'static str,
        /// What came.
        value: usize,
        /// Least that is allowed.
        least: usize,
        /// Most that is allowed.
        most: usize,
    },
    /// A number of votes that is not whole steps.
    NotAMultiple {
        /// Votes of an item.
        n: usize,
        /// Votes between two looks.
        step: usize,
    },
    /// A number out of its range in the criterion of a stopping rule.
    Criterion {
        /// Name of the argument.
        name: &'static str,
        /// What came.
        value: f64,
        /// What was wanted.
        expected: &'static str,
    },
    /// A component of a mixture with a number out of its range.
    Component {
        /// Place of the component.
        row: usize,
        /// Which of its numbers.
        what: &'static str,
        /// What came.
        value: f64,
        /// What was wanted.
        expected: &'static str,
    },
    /// A forecast, or a rule that needs one, without chances of the next votes.
    NoPredictive,
    /// More votes than a rule is made for.
    Beyond {
        /// Row of the item.
        row: usize,
        /// Number of its votes.
        total: String,
        /// Most votes.
        n: usize,
    },
    /// A number of a sample beyond the largest.
    Sample {
        /// Row of the vote.
        row: usize,
        /// What came.
        value: u32,
        /// Largest number.
        most: u32,
    },
    /// A new vote for an item that was reported as settled.
    Late {
        /// Row of the vote.
        row: usize,
        /// The item.
        item: String,
    },
    /// More channels, counted once for every 64 samples, than a tally can tell apart.
    TooManyChannels {
        /// Most that there can be.
        most: u16,
    },
    /// Ids of another kind than those of a tally: integers, or texts.
    IdKind,
    /// A text that does not end within the data, or before the one before it.
    TextEnd {
        /// Where it ends.
        value: i64,
        /// Where the text before it ends.
        least: i64,
        /// Where the data end.
        most: usize,
    },
    /// A saved state that contradicts itself.
    State {
        /// What was wanted of it.
        expected: &'static str,
    },
    /// A text that is no file of a model, panel or stopping rule.
    File {
        /// What is wrong with it.
        message: String,
    },
    /// Not enough memory for what the sizes of the arguments ask for.
    Memory,
    /// The caller asked to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { name, value } => {
                write!(f, "{name} is {value}, expected a finite number")
            }
            Self::Smoothing { name, value } => {
                write!(f, "{name} is {value}, expected a finite number above 0")
            }
            Self::Count { row, column, value } => {
                let name = ["minus", "tie", "plus"].get(*column).unwrap_or(&"?");
                let wanted = wanted_count(value);
                write!(f, "counts[{row}, {column}] ({name}) is {value}, expected {wanted}")
            }
            Self::Label { name, row, value } => {
                write!(f, "{name}[{row}] is {value}, expected -1, 0 or 1")
            }
            Self::Weight { row, value } => {
                write!(f, "weights[{row}] is {value}, expected a finite number of at least 0")
            }
            Self::Length { name, got, wanted, other } => {
                write!(f, "{name} has {got} rows, expected {wanted} as in {other}")
            }
            Self::NoWeight => {
                write!(f, "counts hold no item with a weight above 0, expected at least one")
            }
            Self::Bounds { name, lower, upper } => write!(
                f,
                "bounds of {name} are [{lower}, {upper}], expected two finite numbers in ascending order"
            ),
            Self::WeightOverflow => {
                write!(f, "weights of equal counts have no finite sum, expected smaller ones")
            }
            Self::NotFinite { place, value } => {
                write!(f, "{place} is {value}, expected a finite number")
            }
            Self::NoItems { name } => write!(f, "{name} is empty, expected at least one item"),
            Self::FewMethods { got } => {
                write!(f, "losses has {got} methods, expected at least two")
            }
            Self::Huge { a, b } => {
                write!(f, "{a} and {b} sum to more than the largest float, expected smaller losses")
            }
            Self::NotIntegers { place, value } => write!(
                f,
                "{place} is {value}, expected integers up to 2^51 in sum for an exact test; Monte \
                 Carlo takes others"
            ),
            Self::TooManySums { n_units } => write!(
                f,
                "differences of {n_units} items or groups have too many different sums, expected \
                 smaller integers for an exact test; Monte Carlo takes these"
            ),
            Self::OutOfRange { name, value, least, most } => {
                write!(f, "{name} is {value}, expected an integer from {least} to {most}")
            }
            Self::NotAMultiple { n, step } => {
                write!(f, "n is {n}, expected a multiple of the step {step}")
            }
            Self::Criterion { name, value, expected } => {
                write!(f, "{name} is {value}, expected {expected}")
            }
            Self::Component { row, what, value, expected } => {
                write!(f, "components[{row}] has {what} {value}, expected {expected}")
            }
            Self::NoPredictive => write!(
                f,
                "votes is None, expected the distribution of the votes: this rule or its forecasts \
                 depend on it"
            ),
            Self::Beyond { row, total, n } => {
                write!(
                    f,
                    "counts[{row}] has {total} votes, expected at most {n}, the n of the rule"
                )
            }
            Self::Sample { row, value, most } => {
                write!(f, "samples[{row}] is {value}, expected an integer from 0 to {most}")
            }
            Self::Late { row, item } => write!(
                f,
                "items[{row}] is {item}, which is settled, expected votes of open items; \
                 late='drop' leaves them out"
            ),
            Self::TooManyChannels { most } => write!(
                f,
                "judges, orders and samples make more than {most} channels of 64 samples, expected \
                 fewer"
            ),
            Self::IdKind => write!(f, "items are of another kind than before: integers or strings"),
            Self::TextEnd { value, least, most } => write!(
                f,
                "items has a text that ends at {value}, expected a number from {least} to {most}"
            ),
            Self::State { expected } => write!(f, "state contradicts itself, expected {expected}"),
            Self::File { message } => write!(f, "{message}"),
            Self::Memory => write!(f, "not enough memory for arguments of this size"),
            Self::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// What is wanted of a count instead of a value: its upper bound is said where it is at fault.
fn wanted_count(value: &str) -> &'static str {
    let too_large = |value: f64| value.is_finite() && value >= TWO_POW_64;
    if value.parse().is_ok_and(too_large) {
        "a non-negative integer below 2**64"
    } else {
        "a non-negative integer"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_names_argument_row_value_and_want() {
        let count = Error::Count { row: 12, column: 1, value: "-3".into() };
        assert_eq!(count.to_string(), "counts[12, 1] (tie) is -3, expected a non-negative integer");
        let large = Error::Count { row: 0, column: 2, value: "18446744073709551616".into() };
        assert_eq!(
            large.to_string(),
            "counts[0, 2] (plus) is 18446744073709551616, expected a non-negative integer below 2**64"
        );
        let label = Error::Label { name: "labels", row: 0, value: "2".into() };
        assert_eq!(label.to_string(), "labels[0] is 2, expected -1, 0 or 1");
        let weight = Error::Weight { row: 2, value: f64::NAN };
        assert_eq!(weight.to_string(), "weights[2] is NaN, expected a finite number of at least 0");
        let length = Error::Length { name: "labels", got: 3, wanted: 4, other: "counts" };
        assert_eq!(length.to_string(), "labels has 3 rows, expected 4 as in counts");
        let parameter = Error::Parameter { name: "beta", value: f64::INFINITY };
        assert_eq!(parameter.to_string(), "beta is inf, expected a finite number");
        let smoothing = Error::Smoothing { name: "kappa", value: 0.0 };
        assert_eq!(smoothing.to_string(), "kappa is 0, expected a finite number above 0");
        let bounds = Error::Bounds { name: "gamma", lower: 2.0, upper: 1.0 };
        assert_eq!(
            bounds.to_string(),
            "bounds of gamma are [2, 1], expected two finite numbers in ascending order"
        );
        assert_eq!(
            Error::WeightOverflow.to_string(),
            "weights of equal counts have no finite sum, expected smaller ones"
        );
        assert_eq!(Error::Interrupted.to_string(), "interrupted");
        assert_eq!(
            Error::NoWeight.to_string(),
            "counts hold no item with a weight above 0, expected at least one"
        );
    }
}
