use std::borrow::Cow;
use std::fmt;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument is not as expected.
    Input(Box<Input>),
    /// Not enough memory for what the sizes of the arguments ask for.
    Memory,
    /// The caller asked to stop.
    Interrupted,
}

/// An argument that is not as expected; its message is `labels[3] is 7, expected -1, 0 or 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name of the argument, or of the field of a file.
    pub argument: Cow<'static, str>,
    /// Where in the argument: its row, or row and column.
    pub place: Vec<usize>,
    /// What came, as a clause: `is 7`, `has 2 rows`.
    pub got: String,
    /// What is expected instead.
    pub expected: Cow<'static, str>,
}

impl Error {
    /// An argument with what came, as a clause, and what is expected.
    pub fn input(
        argument: impl Into<Cow<'static, str>>,
        got: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (argument, got, expected) = (argument.into(), got.into(), expected.into());
        Self::Input(Box::new(Input { argument, place: Vec::new(), got, expected }))
    }

    /// An argument that is a value which is not expected.
    pub fn value(
        argument: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::input(argument, format!("is {value}"), expected)
    }

    /// The same at a row, or a row and a column, of the argument.
    #[must_use]
    pub fn at(mut self, place: &[usize]) -> Self {
        if let Self::Input(input) = &mut self {
            input.place = place.into();
        }
        self
    }

    /// A number that is not finite.
    pub(crate) fn not_finite(argument: &'static str, value: f64) -> Self {
        Self::value(argument, value, "a finite number")
    }

    /// No item has a weight.
    pub(crate) fn no_weight() -> Self {
        Self::input("counts", "hold no item with a weight above 0", "at least one")
    }

    /// Weights that are finite one by one and not in sum.
    pub(crate) fn weight_overflow() -> Self {
        Self::input("weights", "of equal counts have no finite sum", "smaller ones")
    }
}

/// Two lengths that must agree.
///
/// # Errors
/// [`Error::Input`] if they do not.
pub(crate) fn same_length(
    argument: &'static str,
    got: usize,
    expected: usize,
    other: &str,
) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::input(argument, format!("has {got} rows"), format!("{expected} as in {other}")))
}

/// # Errors
/// [`Error::Input`] for the first value that is not finite, the row of the first of them being
/// `start`.
pub(crate) fn check_finite(name: &'static str, values: &[f64], start: usize) -> Result<(), Error> {
    // Several at a time, as long as all are.
    if values.iter().fold(true, |good, value| good & value.is_finite()) {
        return Ok(());
    }
    let row = values.iter().position(|value| !value.is_finite()).unwrap_or_default();
    Err(Error::not_finite(name, values[row]).at(&[start + row]))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Memory => f.write_str("not enough memory for arguments of this size"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, place, got, expected } = self;
        f.write_str(argument)?;
        if !place.is_empty() {
            write!(f, "{place:?}")?;
        }
        write!(f, " {got}, expected {expected}")
    }
}

impl std::error::Error for Error {}
