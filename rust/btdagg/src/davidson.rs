//! Davidson probabilities, risks and the MAE-Bayes action from margin and tie logit.

use crate::Label;

/// Largest logit that is told apart from infinity; sums and differences of two stay finite.
pub(crate) const SATURATED: f64 = f64::MAX / 4.0;

/// Latent margin `u = beta · s + offset`.
pub(crate) fn margin_logit(beta: f64, s: f64, offset: f64) -> f64 {
    (beta * s + offset).clamp(-SATURATED, SATURATED)
}

/// Tie logit `eta = eta0 + gamma · t`, kept as an unevaluated sum of two floats.
///
/// An exponent near 700 rounded to one float would already cost the probabilities 6e-14 of
/// relative accuracy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TieLogit {
    high: f64,
    low: f64,
    /// Size of the terms that were added: bounds the rounding error of the sum.
    scale: f64,
}

impl TieLogit {
    pub(crate) fn new(eta0: f64, gamma: f64, t: f64) -> Self {
        let slope = gamma * t;
        let (high, low) = two_sum(eta0, slope);
        let scale = eta0.abs() + slope.abs();
        if high.abs() < SATURATED {
            Self { high, low, scale }
        } else {
            Self::of_sum(high.clamp(-SATURATED, SATURATED), SATURATED)
        }
    }

    /// A sum of terms of that size, as it was rounded.
    pub(crate) const fn of_sum(high: f64, scale: f64) -> Self {
        Self { high, low: 0.0, scale }
    }
}

/// `a + b` as the rounded sum and its exact rounding error (Knuth).
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_rounded = sum - a;
    (sum, (a - (sum - b_rounded)) + (b - b_rounded))
}

/// Probabilities of −1, 0 and +1: `exp(−u)`, `exp(eta)` and `exp(u)` over their sum.
///
/// Scaled by the largest of the three, so nothing overflows and each is accurate relative to
/// itself until it underflows.
pub(crate) fn probabilities(u: f64, eta: TieLogit) -> [f64; 3] {
    let size = u.abs();
    let (gap, gap_low) = two_sum(eta.high, -size); // tie against the leading side
    let gap_low = gap_low + eta.low;
    let apart = (-2.0 * size).exp(); // trailing side against the leading one
    let (trailing, tie, leading) = if gap > 0.0 {
        let leading = exp_sum(-gap, -gap_low);
        (leading * apart, 1.0, leading)
    } else {
        (apart, exp_sum(gap, gap_low), 1.0)
    };
    let total = trailing + tie + leading;
    let (trailing, tie, leading) = (trailing / total, tie / total, leading / total);
    if u >= 0.0 { [trailing, tie, leading] } else { [leading, tie, trailing] }
}

/// `exp(high + low)` for a `low` that is at most a rounding error of `high`.
pub(crate) fn exp_sum(high: f64, low: f64) -> f64 {
    let exp = high.exp();
    exp + exp * low
}

/// Expected absolute error of each label: the paper's risks.
pub(crate) fn risks([minus, tie, plus]: [f64; 3]) -> [f64; 3] {
    [tie + 2.0 * plus, minus + plus, 2.0 * minus + tie]
}

/// What the action needs of the margin: who leads, and `ln(2 sinh|u|)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    leader: Label,
    log: f64,
}

impl Lead {
    pub(crate) fn new(u: f64) -> Self {
        let size = u.abs();
        let log = size + (-(-2.0 * size).exp_m1()).ln(); // −∞ where nobody leads
        Self { leader: if u > 0.0 { Label::Plus } else { Label::Minus }, log }
    }
}

/// The label of least expected absolute error: the median of the predicted distribution.
///
/// The leader wins where `2 sinh|u| > exp(eta)`, compared as logarithms. Risks that differ by no
/// more than the rounding error of that comparison are equal, and equal risks give a tie.
pub(crate) fn action(lead: Lead, eta: TieLogit) -> Label {
    let excess = excess(lead, eta);
    let rounding = 8.0 * f64::EPSILON * (1.0 + lead.log.abs() + eta.scale);
    if excess > rounding { lead.leader } else { Label::Tie }
}

/// Half the width of the margins that are ties, `asinh(exp(eta) / 2)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfWidth {
    eta: TieLogit,
    width: f64,
    /// That [`action`] allows for, as one of the margin.
    rounding: f64,
}

impl HalfWidth {
    pub(crate) fn new(eta: TieLogit) -> Self {
        let is_large = eta.high > 40.0; // where exp may overflow, and asinh is a logarithm
        let width = if is_large { eta.high } else { exp_sum(eta.high, eta.low) / 2.0 };
        let width = if is_large { width } else { width.asinh() };
        Self { eta, width, rounding: width.tanh() * (1.0 + 2.0 * eta.scale) }
    }
}

/// The offsets between which an item is a tie: below them B is decided, above them A.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ties {
    pub(crate) below: f64,
    pub(crate) above: f64,
}

impl Ties {
    /// Of a margin and a half width. At offset 0 the decision is that of the action.
    pub(crate) fn new((u, lead): (f64, Lead), half: HalfWidth) -> Self {
        let width = half.width + 8.0 * f64::EPSILON * (half.rounding + u.abs());
        let (below, above) = (-width - u, width - u);
        match action(lead, half.eta) {
            Label::Minus => Self { below: below.max(f64::MIN_POSITIVE), above },
            Label::Tie => Self { below: below.min(0.0), above: above.max(0.0) },
            Label::Plus => Self { below, above: above.min(-f64::MIN_POSITIVE) },
        }
    }

    pub(crate) fn decide(self, offset: f64) -> Label {
        // A look-up, since a branch on what varies from item to item is slow.
        const LABELS: [Label; 4] = [Label::Tie, Label::Plus, Label::Minus, Label::Tie];
        let (is_above, is_below) = (offset > self.above, offset < self.below);
        LABELS[usize::from(is_above) + 2 * usize::from(is_below)]
    }
}

/// The label of margin `u` and an offset: that of the action where the offset is 0.
pub(crate) fn decision(u: f64, eta: TieLogit, offset: f64) -> Label {
    let lead = Lead::new(u);
    if offset == 0.0 {
        return action(lead, eta);
    }
    Ties::new((u, lead), HalfWidth::new(eta)).decide(offset)
}

/// By how much `ln(2 sinh|u|)` exceeds the tie logit.
pub(crate) fn excess(lead: Lead, eta: TieLogit) -> f64 {
    (lead.log - eta.high) - eta.low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(eta: f64) -> TieLogit {
        TieLogit::new(eta, 0.0, 0.0)
    }

    #[test]
    fn probabilities_sum_to_one_and_mirror_exactly() {
        for u in [0.0, 1e-9, 0.3, 5.0, 55.0, 700.0, 1e300] {
            for eta in [-1e300, -700.0, -1.0, 0.0, 2.0, 700.0, 1e300] {
                let [minus, tie, plus] = probabilities(u, plain(eta));
                assert!((minus + tie + plus - 1.0).abs() < 4.0 * f64::EPSILON, "{u} {eta}");
                assert_eq!(probabilities(-u, plain(eta)), [plus, tie, minus]);
            }
        }
    }

    #[test]
    fn action_is_the_least_risk() {
        for i in -40..=40 {
            for j in -40..=40 {
                let (u, eta) = (f64::from(i) * 0.17, f64::from(j) * 0.23);
                let [minus, tie, plus] = risks(probabilities(u, plain(eta)));
                let least = if minus < tie && minus < plus {
                    Label::Minus
                } else if plus < tie && plus < minus {
                    Label::Plus
                } else {
                    Label::Tie
                };
                assert_eq!(action(Lead::new(u), plain(eta)), least, "u {u} eta {eta}");
            }
        }
    }

    #[test]
    fn ties_end_where_the_action_does() {
        for i in -20..=20 {
            for eta in [-700.0, -30.0, -1.3, 0.4, 2.0, 39.9, 40.1, 600.0].map(plain) {
                let u = f64::from(i) * 0.31;
                let of = |u| Ties::new((u, Lead::new(u)), HalfWidth::new(eta));
                let (ties, mirrored) = (of(u), of(-u));
                assert_eq!((ties.below, ties.above), (-mirrored.above, -mirrored.below));
                assert_eq!(ties.decide(0.0), action(Lead::new(u), eta));
                for j in -40..=40 {
                    let offset = f64::from(j) * 0.173;
                    assert_eq!(ties.decide(offset), action(Lead::new(u + offset), eta));
                }
                for end in [ties.below, ties.above] {
                    assert_eq!(ties.decide(end), Label::Tie);
                }
            }
        }
    }

    #[test]
    fn equal_risks_give_a_tie() {
        // Counts (1, 14, 2) with beta = 2, eta0 = 0, gamma = 1: 3/2 − 2/3 = 15/18 exactly.
        let s = crate::features::margin(1.0, 2.0, 1.0);
        let t = crate::features::tie(14.0, 3.0, 1.0);
        assert_eq!(action(Lead::new(2.0 * s), TieLogit::new(0.0, 1.0, t)), Label::Tie);
        assert_eq!(action(Lead::new(2.0 * s), TieLogit::new(-1e-13, 1.0, t)), Label::Plus);
        assert_eq!(action(Lead::new(0.0), plain(-1e300)), Label::Tie);
    }

    #[test]
    fn any_finite_parameters_are_stable() {
        for big in [f64::MAX, -f64::MAX] {
            let u = margin_logit(big, 22.0, -big);
            for eta in [TieLogit::new(big, big, -22.0), TieLogit::new(big, -big, -22.0)] {
                assert!(probabilities(u, eta).iter().all(|p| (0.0..=1.0).contains(p)));
            }
        }
    }
}
