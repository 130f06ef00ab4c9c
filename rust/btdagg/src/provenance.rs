use crate::counts::{CountRow, Rows};

/// Rows that are looked at for votes that a model was not fitted for.
const LOOKED_AT: usize = 32;

/// What a model was fitted to. Whatever is not known is empty.
///
/// It is for people and services to compare with what the model is used for; decisions do not
/// depend on it, and models that differ in it alone are equal.
///
/// ```
/// use btdagg::{Model, Provenance};
///
/// let judge = vec!["gpt-5.4".to_owned()];
/// let provenance = Provenance { n_votes: Some(8), judge, ..Provenance::default() };
/// let model = Model::new(1.2, 2.0, 0.8)?.with_provenance(provenance);
/// let found = Model::from_json(&model.to_json())?;
/// assert_eq!(found.provenance().and_then(|known| known.n_votes), Some(8));
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Votes per item.
    pub n_votes: Option<u64>,
    /// Labelled items.
    pub n_labels: Option<u64>,
    /// Judges that the votes are of.
    pub judge: Vec<String>,
    /// Templates that they were asked with.
    pub template: Vec<String>,
    /// Temperatures.
    pub temperature: Vec<String>,
    /// Tasks of the items.
    pub task: Vec<String>,
}

impl Provenance {
    /// Whether items have more votes than the model was fitted for: each of the first 32 does.
    ///
    /// It looks no further than the first that does not, so it costs nothing where all is well.
    ///
    /// ```
    /// use btdagg::Provenance;
    ///
    /// let provenance = Provenance { n_votes: Some(2), ..Provenance::default() };
    /// let counts: [[u8; 3]; 2] = [[3, 0, 5], [8, 0, 0]];
    /// assert!(provenance.is_exceeded_by(&counts[..]));
    /// ```
    pub fn is_exceeded_by<R: Rows + ?Sized>(&self, rows: &R) -> bool {
        let Some(n_votes) = self.n_votes else { return false };
        let mut buffer = Vec::new();
        let exceeds = |row: &R::Row| row.counts(0).is_ok_and(|counts| counts.n_votes() > n_votes);
        let rows = rows.block(0, rows.len().min(LOOKED_AT), &mut buffer);
        !rows.is_empty() && rows.iter().all(exceeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_which_one_is_as_it_should_be_exceed_nothing() {
        let of_eight = Provenance { n_votes: Some(8), ..Provenance::default() };
        let more: [[i64; 3]; 100] = [[9, 0, 0]; 100];
        assert!(of_eight.is_exceeded_by(&more[..]));
        assert!(of_eight.is_exceeded_by(&[[u64::MAX; 3]][..]));
        assert!(!Provenance::default().is_exceeded_by(&more[..]));
        let mut rows = more;
        rows[31] = [0, 8, 0];
        assert!(!of_eight.is_exceeded_by(&rows[..]));
        // What is no count is an error of whoever decides.
        for none in [&[][..], &[[-9, 30, 0]]] {
            assert!(!of_eight.is_exceeded_by(none));
        }
    }
}
