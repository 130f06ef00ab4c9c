//! The least DRPS within a box, not left in a local minimum.
//!
//! Small calibration sets have local minima, and long flat valleys in which quasi-Newton methods
//! stop early. So a coarse grid over the whole box finds the basins, and damped Newton steps go
//! to the bottom of the best few. Both are cheap: the loss sees a few dozen distinct rows, on a
//! grid the exponentials of margin and tie logit are shared, and there are three parameters.

use crate::descent::Descent;
use crate::loss_table::LossTable;
use crate::parallel::Watch;
use crate::region::Region;
use crate::rows::WeightedRows;
use crate::{Error, Execution, Parameters};

/// A gamma that makes up for the bounds of nu has to lower the DRPS by more than this.
const LOWER: f64 = 1e-12;

/// The best point found and how it was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The parameters of least DRPS.
    pub parameters: Parameters,
    /// Mean DRPS there.
    pub drps: f64,
    /// Whether it is an optimum: no component of the gradient that could be followed without
    /// leaving the bounds is larger than 1e-8.
    pub converged: bool,
    /// Whether beta, eta0 and gamma are at one of their bounds. Bounds that leave a parameter one
    /// value do not count.
    pub at_bounds: [bool; 3],
    /// Whether beta, eta0 and gamma are left neutral, since the items cannot identify them: beta
    /// at 1, gamma at 0, or at the bound next to that. The second never is.
    pub neutral: [bool; 3],
    /// Number of starts that were followed downhill.
    pub n_starts: usize,
}

impl Default for Fit {
    /// No fit yet: its numbers are NaN.
    fn default() -> Self {
        Self {
            parameters: Parameters { beta: f64::NAN, eta0: f64::NAN, gamma: f64::NAN },
            drps: f64::NAN,
            converged: false,
            at_bounds: [false; 3],
            neutral: [false; 3],
            n_starts: 0,
        }
    }
}

/// The one policy of single fits and refits; see [`CalibrationSet::fit`](crate::CalibrationSet::fit).
///
/// `table` is one of the rows over the region, where there is one already.
pub(crate) fn fit_rows(
    rows: &WeightedRows,
    region: &Region,
    table: Option<&LossTable>,
    execution: Execution<'_>,
) -> Result<Fit, Error> {
    let (margins, contrast) = (rows.has_margins(), rows.has_tie_contrast());
    if let (true, true, Some(table)) = (margins, contrast, table) {
        return lowest(rows, region, table, execution);
    }
    let rows = &rows.renumbered()?;
    let within =
        |region: &Region| lowest(rows, region, &LossTable::new(&rows.rows, region)?, execution);
    let mut free = region.clone();
    if !margins {
        free.hold(0, 1.0);
    }
    let mut held = free.clone();
    if !contrast {
        held.hold(2, 0.0);
    }
    let mut fit = within(&held)?;
    fit.neutral = [!margins, false, !contrast];
    if !contrast {
        let other = within(&free)?;
        if other.drps < fit.drps - LOWER {
            fit = Fit { neutral: [!margins, false, false], ..other };
        }
    }
    fit.at_bounds = region.at_bounds(fit.parameters);
    Ok(fit)
}

/// The lowest of the bottoms below the starts of a table.
fn lowest(
    rows: &WeightedRows,
    region: &Region,
    table: &LossTable,
    execution: Execution<'_>,
) -> Result<Fit, Error> {
    let watch = Watch::alone(execution);
    let expansion = |theta| rows.expansion(theta, execution);
    let starts = table.starts(rows);
    let mut bottoms: Vec<Descent<'_>> = Vec::new();
    for &start in &starts {
        let mut descent = Descent::new(start, region, expansion)?;
        let is_new = loop {
            if !descent.step(expansion)? {
                break true;
            }
            watch.ask_now()?;
            if bottoms.iter().any(|bottom| descent.joins(bottom)) {
                break false;
            }
        };
        if is_new {
            bottoms.push(descent);
        }
    }
    let Some(best) = bottoms.into_iter().min_by(|a, b| a.here.value.total_cmp(&b.here.value))
    else {
        return Ok(Fit::default());
    };
    let parameters = Parameters::of(best.theta);
    Ok(Fit {
        parameters,
        drps: rows.loss(parameters, execution)?.drps,
        converged: best.is_optimum(),
        at_bounds: region.at_bounds(parameters),
        neutral: [false; 3],
        n_starts: starts.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, CalibrationSet, Model};

    /// Items of `n_votes` votes whose soft labels are what a model says of them.
    fn exact(model: &Model, n_votes: u64) -> CalibrationSet {
        let rows: Vec<[u64; 3]> = (0..=n_votes)
            .flat_map(|minus| (0..=n_votes - minus).map(move |tie| (minus, tie)))
            .map(|(minus, tie)| [minus, tie, n_votes - minus - tie])
            .collect();
        let weights: Vec<[f64; 3]> = rows
            .iter()
            .map(|&[minus, tie, plus]| model.probabilities(crate::Counts::whole(minus, tie, plus)))
            .collect();
        CalibrationSet::soft(&rows[..], &weights, (1.0, 1.0), Execution::single()).unwrap()
    }

    #[test]
    fn the_true_parameters_are_recovered() {
        for (beta, eta0, gamma) in [(0.6, 0.3, 0.5), (1.2, 2.7, 0.5), (2.9, 6.8, 2.2)] {
            let model = Model::new(beta, eta0, gamma).unwrap();
            let found =
                exact(&model, 12).fit(&Bounds::default(), Execution::single()).unwrap().parameters;
            let off = [found.beta - beta, found.eta0 - eta0, found.gamma - gamma];
            assert!(off.iter().all(|off| off.abs() < 1e-6), "{off:?}");
        }
    }

    #[test]
    fn a_wider_box_has_no_higher_minimum() {
        let vast = |size: f64| Bounds {
            lower: Parameters { beta: 1e-9, eta0: -size, gamma: -size },
            upper: Parameters { beta: size, eta0: size, gamma: size },
        };
        let rows: Vec<[u64; 3]> = (0..30).map(|i| [i * i % 5, i % 3, i * 7 % 6]).collect();
        let labels: Vec<i8> = (0..30_i32).map(|i| i8::try_from(i * i % 3).unwrap() - 1).collect();
        let set =
            CalibrationSet::new(&rows[..], &labels, None, (1.0, 1.0), Execution::single()).unwrap();
        let usual = set.fit(&Bounds::default(), Execution::single()).unwrap();
        for size in [20.0, 200.0, 1e300] {
            let fit = set.fit(&vast(size), Execution::single()).unwrap();
            assert!(fit.drps <= usual.drps + 1e-12, "{size}: {} {}", fit.drps, usual.drps);
        }
    }

    #[test]
    fn the_fit_stays_in_its_box_and_wrong_boxes_are_named() {
        let set = exact(&Model::new(2.0, 3.0, 1.0).unwrap(), 8);
        let mut bounds = Bounds::default();
        bounds.upper.beta = 0.5;
        bounds.lower.gamma = 1.5;
        let found = set.fit(&bounds, Execution::single()).unwrap().parameters;
        assert_eq!((found.beta, found.gamma), (0.5, 1.5));
        let fit = set.fit(&bounds, Execution::single()).unwrap();
        assert_eq!((fit.at_bounds, fit.converged), ([true, false, true], true));
        bounds.lower.eta0 = f64::NAN;
        let message = set.fit(&bounds, Execution::single()).unwrap_err().to_string();
        assert!(message.starts_with("bounds of eta0 are [NaN, 6.9"), "{message}");
    }

    fn set_of(rows: &[[u64; 3]], labels: &[i8]) -> CalibrationSet {
        CalibrationSet::new(rows, labels, None, (1.0, 1.0), Execution::single()).unwrap()
    }

    #[test]
    fn what_the_items_cannot_identify_is_left_neutral() {
        let fit = |rows: &[[u64; 3]], labels: &[i8], bounds: &Bounds| {
            set_of(rows, labels).fit(bounds, Execution::single()).unwrap()
        };
        let usual = Bounds::default();
        let no_ties = fit(&[[0, 0, 4], [4, 0, 0], [3, 0, 1], [1, 0, 3]], &[1, -1, 0, 0], &usual);
        assert_eq!((no_ties.neutral, no_ties.parameters.gamma), ([false, false, true], 0.0));
        let no_side = fit(&[[3, 1, 3], [2, 8, 2], [1, 1, 1]], &[1, 0, -1], &usual);
        assert_eq!((no_side.neutral, no_side.parameters.beta), ([true, false, false], 1.0));
        let no_votes = fit(&[[0; 3]; 4], &[1, 0, -1, 0], &usual);
        assert_eq!(no_votes.neutral, [true, false, true]);
        // p(0) = nu / (nu + 2) is the share of ties.
        assert!((no_votes.parameters.eta0 - 2.0_f64.ln()).abs() < 1e-7);
        assert!([no_ties, no_side, no_votes].iter().all(|fit| fit.converged));
        let narrow = Bounds { lower: Parameters { gamma: 0.5, ..usual.lower }, ..usual };
        let next_to_it =
            fit(&[[0, 0, 4], [4, 0, 0], [3, 0, 1], [1, 0, 3]], &[1, -1, 0, 0], &narrow);
        assert_eq!((next_to_it.parameters.gamma, next_to_it.at_bounds[2]), (0.5, true));
    }

    #[test]
    fn a_gamma_that_makes_up_for_the_bounds_of_nu_is_free() {
        let rows = [[0, 0, 2], [2, 0, 0], [1, 0, 1]].repeat(7);
        let labels: Vec<i8> = (0..21).map(|row| i8::from(row == 20)).collect();
        let mut bounds = Bounds::default();
        bounds.upper.eta0 = 2.0_f64.ln();
        let set = set_of(&rows, &labels);
        let free = set.fit(&bounds, Execution::single()).unwrap();
        assert!(free.parameters.gamma < 0.0 && !free.neutral[2]);
        (bounds.lower.gamma, bounds.upper.gamma) = (0.0, 0.0);
        let held = set.fit(&bounds, Execution::single()).unwrap();
        assert!(free.drps < held.drps - 1e-3);
    }

    #[test]
    fn bounds_that_leave_no_choice_are_not_hit() {
        let set = exact(&Model::new(2.0, 3.0, 1.0).unwrap(), 8);
        let mut bounds = Bounds::default();
        (bounds.lower.gamma, bounds.upper.gamma, bounds.upper.beta) = (0.5, 0.5, 1.5);
        let fit = set.fit(&bounds, Execution::single()).unwrap();
        assert_eq!((fit.parameters.gamma, fit.at_bounds), (0.5, [true, false, false]));
    }
}
