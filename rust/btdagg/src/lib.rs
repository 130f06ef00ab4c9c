//! Calibrated labels from repeated three-way votes of an LLM judge.
//!
//! A judge is asked several times which of two responses is better: A, B or a tie. This crate
//! turns the [`Counts`] of those votes into a label and its probabilities with a three-parameter
//! Bradley–Terry–Davidson [`Model`], which it fits to the counts of a few dozen labelled items.
//!
//! ```
//! use btdagg::{Counts, Label, Model};
//!
//! let model = Model::new(1.2, 2.0, 0.8)?;
//! let votes = Counts::whole(1, 1, 10); // minus (B is better), tie, plus (A is better)
//! assert_eq!(model.decide(votes), Label::Plus);
//! # Ok::<(), btdagg::Error>(())
//! ```
//!
//! # Where to look
//!
//! | module item | what |
//! |---|---|
//! | [`Counts`], [`Label`], [`Tally`] | votes and counts |
//! | [`Rows`] | what decisions and calibrations read: a tally's counts, triples, arrays of your own |
//! | [`features`] | margin and tie features of counts |
//! | [`Model`] | probabilities, risks, decisions; one item or many, [with an offset](Model::with_offsets) each |
//! | [`Model::from_json`], [`Panel::from_json`], [`grades::Grades::from_json`], [`stopping::StoppingRule::from_json`] | files that the Python package writes (feature `json`, on by default) |
//! | [`Covariate`] | what else is known of items, as offsets |
//! | [`Panel`] | decisions from the votes of several judges |
//! | [`Provenance`] | what a model was fitted to, if its file says so |
//! | [`CalibrationSet`] | labelled counts: the fit to them, their DRPS and its gradient |
//! | [`Design`], [`Prior`], [`Posterior`] | few labels, of pairs, panels or grades: what is believed beside them, and what they then say |
//! | [`running`] | tallies of votes as they come, merged and deduplicated |
//! | [`stopping`] | rules for asking fewer votes for the same labels |
//! | [`grades`] | grades on an ordered scale, from the mean of a judge's votes |
//! | [`drift`] | whether a stream still falls as the calibration did |
//! | [`Refits`] | thousands of fits without a prior, under other weights |
//! | [`significance`] | paired permutation tests of two or more methods' losses |
//!
//! # Conventions
//!
//! Votes are from A's point of view. Whatever has one entry per label has them in label order
//! −1, 0, +1. Swapping A and B mirrors every result to the last bit. No input makes the
//! crate panic; bad input is an [`Error`]. Nothing keeps threads alive between calls or holds a lock,
//! so a process may fork at any time.

mod calibration_set;
mod compiled;
mod counts;
mod covariates;
mod davidson;
mod descent;
mod design;
pub mod drift;
mod error;
mod expansion;
pub mod features;
mod fit;
mod gather;
pub mod grades;
mod grid;
mod index;
#[cfg(feature = "json")]
mod json;
mod label;
mod linear;
mod loss_table;
mod memory;
mod model;
mod panel;
mod parallel;
mod posterior;
mod prior;
mod provenance;
mod refits;
mod region;
mod rows;
pub mod running;
pub mod significance;
mod splitmix;
pub mod stopping;
mod table;
mod tally;

pub use calibration_set::CalibrationSet;
pub use compiled::CompiledModel;
pub use counts::{CountRow, CountValue, Counts, Rows};
pub use covariates::Covariate;
pub use design::Design;
pub use error::{Error, Input};
pub use features::usual_votes;
pub use fit::Fit;
pub use label::Label;
pub use model::{Model, Parameters, WithOffsets};
pub use panel::{Judge, Panel};
pub use parallel::Execution;
pub use posterior::Posterior;
pub use prior::{Kind, Part, Prior};
pub use provenance::Provenance;
pub use refits::{Cell, Refits};
pub use region::Bounds;
pub use rows::Loss;
pub use tally::{Tally, Vote};

/// The example of the crate's README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
