use crate::index::index;
use crate::{Counts, Error, Execution, Label, Model, Rows};

/// Counts below these are tabulated at most.
const MOST_DECISIONS: u64 = 128;
const MOST_PROBABILITIES: u64 = 64;

/// A model with its decisions and probabilities tabulated: for services that ask item by item.
///
/// Counts that the tables do not hold are computed; the results are the same bits either way.
///
/// ```
/// use btdagg::{Counts, Model};
///
/// let model = Model::new(1.2, 2.0, 0.8)?;
/// let compiled = model.compile(20);
/// let votes = Counts::whole(4, 1, 15);
/// assert_eq!(compiled.decide(votes), model.decide(votes));
/// assert_eq!(compiled.probabilities(votes), model.probabilities(votes));
/// # Ok::<(), btdagg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CompiledModel {
    model: Model,
    decisions: Table<Label>,
    probabilities: Table<[f64; 3]>,
}

#[derive(Debug, Clone)]
struct Table<V> {
    n: u64,
    values: Vec<V>,
}

impl<V: Copy> Table<V> {
    fn new(n: u64, value: impl Fn(Counts) -> V) -> Self {
        let triples = (0..n).flat_map(|m| (0..n).flat_map(move |t| (0..n).map(move |p| (m, t, p))));
        Self { n, values: triples.map(|(m, t, p)| value(Counts::whole(m, t, p))).collect() }
    }

    fn get(&self, counts: Counts) -> Option<V> {
        let [minus, tie, plus] = counts.as_whole()?;
        let is_there = minus.max(tie).max(plus) < self.n;
        is_there.then(|| self.values[index((minus * self.n + tie) * self.n + plus)])
    }
}

impl CompiledModel {
    /// The model that was compiled.
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The label of least expected absolute error; equal risks give a tie.
    #[inline]
    pub fn decide(&self, counts: Counts) -> Label {
        self.decisions.get(counts).unwrap_or_else(|| self.model.decide(counts))
    }

    /// Decision of every row; see [`Model::decide_into`].
    ///
    /// # Errors
    /// [`Error::Input`] for the first bad row, [`Error::Interrupted`].
    pub fn decide_into<R: Rows + ?Sized, L: From<Label> + Copy + Send>(
        &self,
        rows: &R,
        out: &mut [L],
        execution: Execution<'_>,
    ) -> Result<(), Error> {
        self.model.decide_into(rows, out, execution)
    }

    /// Probabilities of −1, 0 and +1.
    #[inline]
    pub fn probabilities(&self, counts: Counts) -> [f64; 3] {
        self.probabilities.get(counts).unwrap_or_else(|| self.model.probabilities(counts))
    }
}

impl Model {
    /// Tabulates decisions and probabilities for all counts up to `max_count`.
    ///
    /// Decisions are tabulated for counts below 128 at most, probabilities below 64.
    pub fn compile(&self, max_count: u64) -> CompiledModel {
        let n = max_count.saturating_add(1);
        CompiledModel {
            decisions: Table::new(n.min(MOST_DECISIONS), |counts| self.decide(counts)),
            probabilities: Table::new(n.min(MOST_PROBABILITIES), |c| self.probabilities(c)),
            model: self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_equals_direct_inside_and_beyond_the_table() {
        let model = Model::new(1.7, 3.1, -0.6).unwrap().with_smoothing(0.5, 2.0).unwrap();
        for max_count in [0, 1, 5, 12] {
            let compiled = model.compile(max_count);
            let rows: Vec<[u64; 3]> = (0..700).map(|i| [i % 20, i / 20 % 20, i / 35]).collect();
            let mut labels = vec![Label::Tie; rows.len()];
            for _ in 0..2 {
                compiled.decide_into(&rows[..], &mut labels, Execution::single()).unwrap();
                for (&[minus, tie, plus], &label) in rows.iter().zip(&labels) {
                    assert_eq!(label, model.decide(Counts::whole(minus, tie, plus)));
                }
            }
            for minus in 0..20 {
                for tie in 0..20 {
                    for plus in 0..20 {
                        let counts = Counts::whole(minus, tie, plus);
                        assert_eq!(compiled.decide(counts), model.decide(counts));
                        assert_eq!(compiled.probabilities(counts), model.probabilities(counts));
                    }
                }
            }
        }
        let fractional = Counts::new(0.5, 1.25, 6.25).unwrap();
        for counts in [Counts::whole(u64::MAX, 3, 1 << 40), fractional] {
            assert_eq!(model.compile(12).decide(counts), model.decide(counts));
        }
    }
}
