use super::lattice::MAX_VOTES;
use crate::Error;
use crate::index::to_f64;

/// Bounds of the parameters: within them no chance of at most [`MAX_VOTES`] votes underflows.
const BOUNDS: (f64, f64) = (1e-3, 1e3);

/// Chances of an item's votes: a mixture of Dirichlet-multinomials and their mirror images.
///
/// A component stands for a kind of item. Half of its weight goes to its mirror image, so that the
/// votes of swapped responses have swapped chances.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictive {
    components: Vec<(f64, [f64; 3])>,
}

impl Predictive {
    /// Components as weight and Dirichlet parameters in label order; weights are scaled to sum 1.
    ///
    /// # Errors
    /// [`Error::Input`] without a component, [`Error::Input`] for a weight that is not finite
    /// and positive or a parameter that is not within 0.001 and 1000.
    pub fn new(components: &[(f64, [f64; 3])]) -> Result<Self, Error> {
        if components.is_empty() {
            return Err(Error::input("components", "is empty", "at least one item"));
        }
        for (row, &(weight, alpha)) in components.iter().enumerate() {
            let wrong = |got, expected| Error::input("components", got, expected).at(&[row]);
            if !(weight.is_finite() && weight > 0.0) {
                return Err(wrong(format!("has weight {weight}"), "a finite number above 0"));
            }
            if let Some(value) = alpha.into_iter().find(|a| !(BOUNDS.0..=BOUNDS.1).contains(a)) {
                let got = format!("has Dirichlet parameter {value}");
                return Err(wrong(got, "a number from 0.001 to 1000"));
            }
        }
        let largest = components.iter().map(|&(weight, _)| weight).fold(0.0, f64::max);
        let total: f64 = components.iter().map(|&(weight, _)| weight / largest).sum();
        let scaled = components.iter().map(|&(w, alpha)| (w / largest / total, alpha)).collect();
        Ok(Self { components: scaled })
    }

    /// Weight and Dirichlet parameters of each component; weights sum to 1.
    pub fn components(&self) -> &[(f64, [f64; 3])] {
        &self.components
    }

    /// The chance of one sequence of `n` votes, by its counts.
    pub(crate) fn sequence_chance(&self, n: usize) -> impl Fn([usize; 3]) -> f64 {
        let kinds: Vec<_> = self.components.iter().map(|&(w, a)| Kind::new(w, a, n)).collect();
        move |counts| kinds.iter().map(|kind| kind.chance(counts)).sum()
    }

    /// Chances of the next vote after the votes so far, in label order.
    ///
    /// ```
    /// use btdagg::stopping::Predictive;
    ///
    /// // Laplace's rule of succession.
    /// let chances = Predictive::new(&[(1.0, [1.0; 3])])?.next([0, 0, 1])?;
    /// assert!((chances[2] - 0.5).abs() < 1e-15);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] for [`MAX_VOTES`] votes or more.
    pub fn next(&self, counts: [usize; 3]) -> Result<[f64; 3], Error> {
        let total = counts.iter().fold(0_usize, |sum, &count| sum.saturating_add(count));
        if total >= MAX_VOTES {
            let expected = format!("an integer from 0 to {}", MAX_VOTES - 1);
            return Err(Error::value("minus + tie + plus", total, expected));
        }
        let [minus, tie, plus] = counts;
        let next = [[minus + 1, tie, plus], [minus, tie + 1, plus], [minus, tie, plus + 1]];
        let chances = next.map(self.sequence_chance(total + 1));
        let sum = super::lattice::mirrored_sum(chances[0], chances[1], chances[2]);
        Ok(chances.map(|chance| chance / sum))
    }
}

/// A component as tables of its factors.
struct Kind {
    half_weight: f64,
    /// By label and count: rising factorials, each vote scaled by the same constant so that the
    /// product over `n` votes is the chance.
    factors: [Vec<f64>; 3],
}

impl Kind {
    fn new(weight: f64, alpha: [f64; 3], n: usize) -> Self {
        let total = super::lattice::mirrored_sum(alpha[0], alpha[1], alpha[2]);
        let steps = || (0..n as u64).map(to_f64);
        let scale = steps().map(|i| (total + i).ln()).sum::<f64>() / to_f64(n.max(1) as u64);
        let per_vote = (-scale).exp();
        // Multiplied rather than summed as logarithms: a factor carries n roundings at most.
        let factors = alpha.map(|start| {
            let rising = steps().scan(1.0, |product, i| {
                *product *= (start + i) * per_vote;
                Some(*product)
            });
            std::iter::once(1.0).chain(rising).collect()
        });
        Self { half_weight: weight / 2.0, factors }
    }

    fn chance(&self, [minus, tie, plus]: [usize; 3]) -> f64 {
        let factor = |label: usize, count: usize| self.factors[label][count];
        let ties = self.half_weight * factor(1, tie);
        ties * (factor(0, minus) * factor(2, plus) + factor(0, plus) * factor(2, minus))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lattice::counts_of;
    use super::*;

    #[test]
    fn chances_of_all_sequences_sum_to_one_and_mirror() {
        let kinds = [(1.0, [0.2, 1.0, 7.0]), (2.0, [1.5, 3.0, 1.5])];
        let predictive = Predictive::new(&kinds).unwrap();
        let mut ways = vec![1.0];
        for n in 1..=20_usize {
            ways.push(ways[n - 1] * to_f64(n as u64));
            let chances = counts_of(n).map(predictive.sequence_chance(n));
            let total: f64 = counts_of(n)
                .zip(chances)
                .map(|([m, t, p], chance)| chance * ways[n] / ways[m] / ways[t] / ways[p])
                .sum();
            assert!((total - 1.0).abs() < 1e-13, "{n} {total}");
        }
        let [minus, tie, plus] = predictive.next([3, 1, 0]).unwrap();
        assert_eq!(predictive.next([0, 1, 3]).unwrap(), [plus, tie, minus]);
    }

    #[test]
    fn extremes_neither_underflow_nor_overflow() {
        let (least, most) = BOUNDS;
        for alpha in [[least, least, most], [most; 3], [least; 3], [least, most, most]] {
            let predictive = Predictive::new(&[(1.0, alpha)]).unwrap();
            for n in [1, MAX_VOTES] {
                let chances: Vec<f64> = counts_of(n).map(predictive.sequence_chance(n)).collect();
                assert!(chances.iter().all(|c| c.is_normal() && *c <= 1.0), "{alpha:?} {n}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_component_is_said() {
        let error = |components: &[_]| Predictive::new(components).unwrap_err().to_string();
        assert_eq!(error(&[]), "components is empty, expected at least one item");
        assert_eq!(
            error(&[(1.0, [1.0; 3]), (0.0, [1.0; 3])]),
            "components[1] has weight 0, expected a finite number above 0"
        );
        assert_eq!(
            error(&[(1.0, [1.0, f64::NAN, 1.0])]),
            "components[0] has Dirichlet parameter NaN, expected a number from 0.001 to 1000"
        );
    }
}
