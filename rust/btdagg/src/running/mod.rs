//! Votes as they come: any order, repeats, many sources that are merged.
//!
//! A [`RunningTally`] holds for every item which of its samples voted what, three bits a sample.
//! Adding a vote sets a bit and merging two tallies takes the union, so that neither order nor
//! repetition matters. A sample that came with different votes is in conflict: it counts for no
//! label, whichever came first.
//!
//! ```
//! use btdagg::running::{Keys, RunningTally, Votes};
//! use btdagg::{Counts, Execution};
//!
//! let mut tally = RunningTally::new(true, false);
//! let items = Keys::Integers(&[7, 7, 7]);
//! let votes = Votes { votes: &[1, 1, 1], samples: Some(&[0, 1, 0]), channels: None };
//! tally.add(&items, &votes, false, Execution::single())?; // the first came twice
//! assert_eq!(tally.counts(&items, 0), Some(Counts::whole(0, 0, 2)));
//! # Ok::<(), btdagg::Error>(())
//! ```

mod ids;
mod tally;

pub use ids::{Keys, Texts};
pub use tally::{Ids, MAX_SAMPLES, Planes, RunningTally, Votes, other_kind};
