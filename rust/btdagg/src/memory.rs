//! Vectors whose length depends on the input: memory that cannot be had is an error, not the end of
//! the process.

use crate::Error;

/// So many copies of a value.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>, Error> {
    let mut values = reserved(len)?;
    values.resize(len, value);
    Ok(values)
}

/// Values whose number is known.
pub(crate) fn collected<T>(
    values: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> Result<Vec<T>, Error> {
    let values = values.into_iter();
    let mut all = reserved(values.len())?;
    all.extend(values);
    Ok(all)
}

/// An empty vector with room for so many values.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::Memory)?;
    Ok(values)
}
