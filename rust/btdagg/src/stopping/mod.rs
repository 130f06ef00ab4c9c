//! When to stop asking: rules on the lattice of counts that `n` votes can reach.
//!
//! A [`Model`](crate::Model) is calibrated for `n` votes an item. A [`StoppingRule`] says for the
//! counts so far whether the item may stop short of them, and with which label:
//!
//! | [`Criterion`] | stops |
//! |---|---|
//! | `Lossless` | once whatever votes may come lead to the label of all `n` |
//! | `RiskBounded` | once the label of all `n` is another than the likeliest with probability below epsilon |
//! | `CostOptimal` | where a further vote costs more than it takes off the expected error |
//!
//! The last two need the chances of the next votes: a [`Predictive`], a mirror-symmetric mixture of
//! Dirichlet-multinomials. They are of whole votes, and so is a lossless rule unless it is made for
//! votes with strength by [`StoppingRule::of_strengths`].
//!
//! ```
//! use btdagg::stopping::{Criterion, StoppingRule};
//! use btdagg::{Counts, Label, Model};
//!
//! let model = Model::new(1.2, 2.0, 0.8)?;
//! let rule = StoppingRule::new(model, 8, 1, Criterion::Lossless, None)?;
//! let votes = Counts::whole(4, 0, 1); // no three votes make A win
//! assert_eq!(rule.stops(votes)?, rule.stops(votes.mirrored())?);
//! assert!(rule.stops(Counts::whole(8, 0, 0))?);
//! assert_eq!(rule.decide(Counts::whole(8, 0, 0))?, Label::Minus);
//! # Ok::<(), btdagg::Error>(())
//! ```
//!
//! # How
//!
//! Votes of an item are exchangeable, so the chance of a *sequence* of votes is a function of its
//! counts, and that of the counts is the sum over the three votes that may come next. Kept apart by
//! the label of the full `n`, these sums are the joint chances of counts and label; weighted by
//! risks they are joint expected errors. Backward induction is thus addition of non-negative
//! numbers: it neither cancels nor underflows.

mod forecast;
mod fractional;
mod lattice;
mod offsets;
mod outlook;
mod predictive;
mod rule;

pub use forecast::Forecast;
pub use lattice::MAX_VOTES;
pub use offsets::WithOffsets;
pub use predictive::Predictive;
pub use rule::{Criterion, StoppingRule};
