//! Lossless stopping of counts that are not whole: of votes that have a strength.
//!
//! What `left` more votes add lies in the simplex of that total. With gamma at most 0 a win is final
//! if it survives them all for the other side, else if it survives any split of them into ties and
//! votes for the other side; with gamma at least 0 a tie is final if it survives them all for
//! either side, else if it survives any split into ties and votes for one. Along such a split the
//! lead and the tie logit each change in one direction, which bounds the decision on an interval.

use crate::counts::Counts;
use crate::davidson;
use crate::{Label, Model};

/// Strengths of votes are multiples of this: between two of them there is no vote.
const STEP: f64 = 1.0 / 1024.0;

/// The label that so many more votes cannot change at an offset, if there is one.
pub(crate) fn settled(model: &Model, counts: Counts, left: f64, offset: f64) -> Option<Label> {
    if left <= 0.0 {
        return Some(model.decide_at(counts, offset));
    }
    if model.parameters().beta < 0.0 {
        return None;
    }
    let (as_seen, mirrored) = ((counts, offset), (counts.mirrored(), -offset));
    let is_tie = stays_tie(model, as_seen, left) && stays_tie(model, mirrored, left);
    let is_final = [
        (Label::Tie, is_tie),
        (Label::Plus, stays_plus(model, as_seen, left)),
        (Label::Minus, stays_plus(model, mirrored, left)),
    ];
    is_final.into_iter().find(|(_, is_final)| *is_final).map(|(label, _)| label)
}

fn stays_plus(model: &Model, (counts, offset): (Counts, f64), left: f64) -> bool {
    let Counts { minus, tie, plus } = counts;
    let after = |votes: f64| Counts { minus: minus + votes, tie: tie + (left - votes), plus };
    if model.parameters().gamma <= 0.0 {
        return model.decide_at(after(left), offset) == Label::Plus;
    }
    throughout(model, &|votes| (after(votes), offset), Label::Plus, (0.0, left))
}

/// Whether no votes for A make A win.
fn stays_tie(model: &Model, (counts, offset): (Counts, f64), left: f64) -> bool {
    let Counts { minus, tie, plus } = counts;
    let after = |votes: f64| Counts { minus, tie: tie + (left - votes), plus: plus + votes };
    if model.parameters().gamma >= 0.0 {
        return model.decide_at(after(left), offset) == Label::Tie;
    }
    throughout(model, &|votes| (after(votes), offset), Label::Tie, (0.0, left))
}

/// Whether a decision holds after every number of votes from `low` to `high`, where the lead is
/// least favourable to it at `high` and the tie logit at `low`.
fn throughout(
    model: &Model,
    after: &impl Fn(f64) -> (Counts, f64),
    label: Label,
    (low, high): (f64, f64),
) -> bool {
    let ((first, offset), (last, _)) = (after(low), after(high));
    let tie = model.tie_logit(first.tie, first.minus + first.plus);
    let worst = davidson::decision(model.margin_logit(last.minus, last.plus), tie, offset);
    if worst == label || label == Label::Tie && worst == Label::Minus {
        // Where B leads at most, another search looks at it.
        return true;
    }
    if [first, last].iter().any(|counts| model.decide_at(*counts, offset) != label) {
        return false;
    }
    if high - low <= STEP {
        return true;
    }
    let middle = (0.5 * (low + high) / STEP).round() * STEP;
    let holds = |part| throughout(model, after, label, part);
    holds((low, middle)) && holds((middle, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels that votes on a grid can still lead to, by enumeration.
    fn reachable(model: &Model, counts: Counts, left: u32, parts: u32, offset: f64) -> Vec<Label> {
        let n = left * parts;
        let mut labels: Vec<Label> = (0..=n)
            .flat_map(|minus| (0..=n - minus).map(move |plus| (minus, plus)))
            .map(|(minus, plus)| {
                let [minus, plus] = [minus, plus].map(|votes| f64::from(votes) / f64::from(parts));
                let after = Counts {
                    minus: counts.minus + minus,
                    tie: counts.tie + (f64::from(left) - minus - plus),
                    plus: counts.plus + plus,
                };
                model.decide_at(after, offset)
            })
            .collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    #[test]
    fn what_is_final_no_votes_change_and_the_rest_some_do() {
        let mut n_final = [0; 2];
        for (beta, eta0, gamma) in [
            (1.2, 1.0, 0.8),
            (2.5, 0.2, 2.0),
            (0.7, -0.5, -1.5),
            (3.0, 1.5, -0.4),
            (1.0, 0.3, 0.0),
            (2.0, 2.5, 5.0),
            (4.0, -1.0, -6.0),
        ] {
            let model = Model::new(beta, eta0, gamma).unwrap();
            for (left, offset) in
                (1..=4_u32).flat_map(|left| [0.0, 0.6, -1.7].map(|offset| (left, offset)))
            {
                let seen = f64::from(6 - left);
                for i in 0..=12_u32 {
                    for j in 0..=12 - i {
                        let [minus, plus] = [i, j].map(|k| f64::from(k) / 12.0 * seen);
                        let counts = Counts { minus, tie: (seen - minus - plus).max(0.0), plus };
                        let found = settled(&model, counts, left.into(), offset);
                        let labels = reachable(&model, counts, left, 6, offset);
                        if let Some(label) = found {
                            assert_eq!(labels, [label], "{model:?} {counts:?} {left} {offset}");
                        } else if labels.len() == 1 {
                            // Sixths do not show it: a finer grid does.
                            let finer = reachable(&model, counts, left, 64, offset);
                            assert!(finer.len() > 1, "{model:?} {counts:?} {left} {offset}");
                        }
                        n_final[usize::from(found.is_some())] += 1;
                        let mirrored = settled(&model, counts.mirrored(), left.into(), -offset);
                        assert_eq!(mirrored, found.map(Label::mirrored));
                    }
                }
            }
        }
        assert!(n_final[0] > 200 && n_final[1] > 200, "{n_final:?}");
    }
}
