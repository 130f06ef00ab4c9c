use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use crate::counts::sealed::Sealed;
use crate::error::same_length;
use crate::{Counts, Error, Label};

/// Long votes, one at a time or many, gathered into counts by item.
///
/// Items keep the order in which they were first seen.
///
/// ```
/// use btdagg::{Counts, Label, Tally};
///
/// let mut tally = Tally::<String>::new();
/// for (item, vote) in [("x", Label::Plus), ("y", Label::Tie), ("x", Label::Minus)] {
///     tally.add(item, vote);
/// }
/// assert_eq!(tally.items(), ["x", "y"]);
/// assert_eq!(tally.counts(), [Counts::whole(1, 0, 1), Counts::whole(0, 1, 0)]);
/// assert_eq!(tally.get("y"), Some(Counts::whole(0, 1, 0)));
/// ```
#[derive(Debug, Clone)]
pub struct Tally<K> {
    places: HashMap<K, usize, FxBuildHasher>,
    items: Vec<K>,
    counts: Vec<Counts>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { places: HashMap::default(), items: Vec::new(), counts: Vec::new() }
    }
}

impl<K: Eq + Hash + Clone> Tally<K> {
    /// No votes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for so many further items, so that adding them cannot run out of memory but for
    /// that of the items themselves.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn try_reserve(&mut self, n_items: usize) -> Result<(), Error> {
        let reserved = (self.places.try_reserve(n_items)).and_then(|()| {
            Ok((self.items.try_reserve(n_items)?, self.counts.try_reserve(n_items)?))
        });
        reserved.map(|_| ()).map_err(|_| Error::Memory)
    }

    /// Counts one vote for `item`.
    pub fn add<Q>(&mut self, item: &Q, vote: Label)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        *self.counts_of(item).of(vote) += 1.0;
    }

    fn counts_of<Q>(&mut self, item: &Q) -> &mut Counts
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let place = self.places.get(item).copied().unwrap_or_else(|| {
            self.places.insert(item.to_owned(), self.items.len());
            self.items.push(item.to_owned());
            self.counts.push(Counts::default());
            self.items.len() - 1
        });
        &mut self.counts[place]
    }

    /// Counts one vote for each item: −1, 0 or +1 (`i8`), or a strength between them (`f64`).
    ///
    /// # Errors
    /// [`Error::Input`] for the first vote that is none, where the votes before
    /// it are counted.
    pub fn add_all<'a, Q>(
        &mut self,
        items: impl IntoIterator<Item = &'a Q, IntoIter: ExactSizeIterator>,
        votes: &[impl Vote],
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized + 'a,
    {
        let items = items.into_iter();
        same_length("votes", votes.len(), items.len(), "items")?;
        for (row, (item, &vote)) in items.zip(votes).enumerate() {
            vote.add_to(self.counts_of(item), row)?;
        }
        Ok(())
    }

    /// Counts of one item; `None` if it has no votes.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, item: &Q) -> Option<Counts>
    where
        K: Borrow<Q>,
    {
        self.places.get(item).map(|&place| self.counts[place])
    }

    /// Items in the order in which they were first seen.
    pub fn items(&self) -> &[K] {
        &self.items
    }

    /// Counts of each of the [`items`](Self::items).
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }
}

/// A vote: a label as −1, 0 or +1, or how strongly it is for B (down to −1) or A (up to +1).
pub trait Vote: Copy + Sealed {
    /// Adds it to counts; the row goes into the error.
    ///
    /// # Errors
    /// [`Error::Input`] if it is no vote.
    fn add_to(self, counts: &mut Counts, row: usize) -> Result<(), Error>;
}

impl Vote for i8 {
    fn add_to(self, counts: &mut Counts, row: usize) -> Result<(), Error> {
        *counts.of(Label::parse(self, "votes", row)?) += 1.0;
        Ok(())
    }
}

/// A vote of strength w is w of a win and 1 − w of a tie.
impl Vote for f64 {
    fn add_to(self, counts: &mut Counts, row: usize) -> Result<(), Error> {
        let strength = self.abs();
        if strength.is_nan() || strength > 1.0 {
            return Err(Error::value("votes", self, "a number from -1 to 1").at(&[row]));
        }
        counts.tie += 1.0 - strength;
        *(if self < 0.0 { &mut counts.minus } else { &mut counts.plus }) += strength;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_split_their_votes_and_whole_ones_are_labels() {
        let mut tally = Tally::<i64>::new();
        tally.add_all(&[1, 1, 2], &[0.25, -0.5, 1.0]).unwrap();
        assert_eq!(tally.counts(), [Counts::new(0.5, 1.25, 0.25).unwrap(), Counts::whole(0, 0, 1)]);
        let error = tally.add_all(&[1, 1], &[0.0, f64::NAN]).unwrap_err();
        assert_eq!(error.to_string(), "votes[1] is NaN, expected a number from -1 to 1");
    }

    #[test]
    fn tallies_are_additive_and_keep_first_seen_order() {
        let votes: Vec<(i64, Label)> = (0..1000)
            .map(|i| ((i * 37) % 101 - 50, Label::ALL[usize::try_from(i % 3).unwrap()]))
            .collect();
        let tally_of = |votes: &[(i64, Label)]| {
            let mut tally = Tally::<i64>::new();
            votes.iter().for_each(|(item, vote)| tally.add(item, *vote));
            tally
        };
        let (all, first, second) =
            (tally_of(&votes), tally_of(&votes[..400]), tally_of(&votes[400..]));
        for (item, counts) in all.items().iter().zip(all.counts()) {
            let part = |tally: &Tally<i64>| {
                let place = tally.items().iter().position(|other| other == item);
                let counts = place.map(|place| tally.counts()[place]);
                assert_eq!(tally.get(item), counts);
                counts.unwrap_or_default()
            };
            let (a, b) = (part(&first), part(&second));
            let sum = Counts::new(a.minus + b.minus, a.tie + b.tie, a.plus + b.plus).unwrap();
            assert_eq!(*counts, sum);
        }
        let error = |votes| Tally::<i64>::new().add_all(&[1, 2], votes).unwrap_err().to_string();
        assert_eq!(error(&[0, 3]), "votes[1] is 3, expected -1, 0 or 1");
        assert_eq!(error(&[0]), "votes has 1 rows, expected 2 as in items");
        assert_eq!(all.items()[0], -50);
        assert_eq!(all.items().len(), 101);
    }
}
