//! Votes as they come: any order, repeats, many sources that are merged.
//!
//! A [`RunningTally`] holds for every item which of its samples voted what, three bits a sample.
//! Adding a vote sets a bit and merging two tallies takes the union, so that neither order nor
//! repetition matters. A sample that came with different votes is in conflict: it counts for no
//! label, whichever came first.
//!
//! ```
//! use btdagg::running::{Integers, RunningTally, Vote};
//! use btdagg::{Counts, Execution};
//!
//! let mut tally = RunningTally::<Integers>::new(true);
//! let vote = |sample, vote| Vote { vote, sample, channel: 0 };
//! let votes = [vote(0, 1), vote(1, 1), vote(0, 1)]; // the first came twice
//! tally.add(&[7, 7, 7][..], &votes[..], Execution::single())?;
//! assert_eq!(tally.counts(&7), Some(Counts::new(0, 0, 2)));
//! # Ok::<(), btdagg::Error>(())
//! ```

mod ids;
mod planes;
mod tally;

pub use ids::{Ids, Integers, Keys, Texts};
pub use planes::{Conflict, MAX_SAMPLES, Planes};
pub use tally::{RunningTally, Vote, VoteRows};
