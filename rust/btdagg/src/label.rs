use crate::Error;

/// A vote or a label from A's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum Label {
    /// −1: B is better.
    Minus = -1,
    /// 0: neither is better.
    Tie = 0,
    /// +1: A is better.
    Plus = 1,
}

impl Label {
    /// All labels in label order.
    pub const ALL: [Self; 3] = [Self::Minus, Self::Tie, Self::Plus];

    /// −1, 0 or +1.
    pub const fn value(self) -> i8 {
        self as i8
    }

    /// Column of this label in arrays with one column per label: 0, 1 or 2.
    pub const fn column(self) -> usize {
        self.column_bits() as usize
    }

    /// The column in few bits.
    pub(crate) const fn column_bits(self) -> u8 {
        (self as i8 + 1).cast_unsigned()
    }

    /// The label after A and B have changed places.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Minus => Self::Plus,
            Self::Tie => Self::Tie,
            Self::Plus => Self::Minus,
        }
    }

    /// Labels from −1, 0 and +1; `name` and the position go into the error.
    ///
    /// # Errors
    /// [`Error::Input`] for any other value.
    pub fn parse(value: i8, name: &'static str, row: usize) -> Result<Self, Error> {
        Self::try_from(value).map_err(|value| Error::value(name, value, "-1, 0 or 1").at(&[row]))
    }
}

impl TryFrom<i8> for Label {
    type Error = i8;

    /// # Errors
    /// The value itself if it is not −1, 0 or +1.
    fn try_from(value: i8) -> Result<Self, i8> {
        match value {
            -1 => Ok(Self::Minus),
            0 => Ok(Self::Tie),
            1 => Ok(Self::Plus),
            other => Err(other),
        }
    }
}

impl From<Label> for i8 {
    fn from(label: Label) -> Self {
        label.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip_and_mirror() {
        for (column, label) in Label::ALL.into_iter().enumerate() {
            assert_eq!(Label::try_from(label.value()), Ok(label));
            assert_eq!(label.column(), column);
            assert_eq!(label.mirrored().value(), -label.value());
        }
        assert_eq!(Label::try_from(2), Err(2));
    }
}
