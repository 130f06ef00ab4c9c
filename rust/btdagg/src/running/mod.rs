//! Votes as they come: any order, repeats, many sources that are merged.
//!
//! A [`RunningTally`] holds for every item its counts and which of its samples voted what, a bit a
//! sample and label, in memory that grows with the votes. Adding a vote sets a bit and merging two
//! tallies takes the union, so that neither order nor repetition matters. A sample that came with
//! different votes is in conflict: it counts for no label, whichever came first, unless the last
//! vote of a sample is to count.
//!
//! ```
//! use btdagg::running::{Key, Keys, RunningTally, Votes};
//! use btdagg::{Counts, Execution};
//!
//! let mut tally = RunningTally::default();
//! let items = Keys::Integers(&[7, 7, 7]);
//! let votes = Votes { votes: &[1, 1, 1], samples: Some(&[0, 1, 0]), channels: None };
//! tally.add(&items, &votes, false, Execution::single())?; // the first came twice
//! assert_eq!(tally.counts(Key::Integer(7)), Some(Counts::whole(0, 0, 2)));
//!
//! tally.withdraw(Key::Integer(7), 1, 0)?;
//! let bytes = tally.to_bytes("where the stream stands")?;
//! let (tally, about) = RunningTally::from_bytes(&bytes)?;
//! assert_eq!(tally.counts(Key::Integer(7)), Some(Counts::whole(0, 0, 1)));
//! assert_eq!(about, "where the stream stands");
//! # Ok::<(), btdagg::Error>(())
//! ```

mod ids;
mod shard;
mod state;
mod tally;

pub use ids::{Key, Keys, Texts};
pub use tally::{Conflict, Ids, MAX_SAMPLES, RunningTally, Settings, Votes};
