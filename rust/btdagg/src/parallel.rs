//! Threads for one call: started, joined and gone, so that forking between calls is safe.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// Rows that are handled as one block: small enough for the second-level cache.
pub(crate) const BLOCK: usize = 4096;

/// Blocks between two looks at whether to stop.
const BLOCKS_PER_POLL: usize = 128;

/// How a batch runs: on how many threads, and what may end it early.
///
/// Results have the same bits for any number of threads.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    n_threads: NonZeroUsize,
    should_stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Execution<'_> {
    /// On the calling thread, to the end.
    pub const fn single() -> Self {
        Self { n_threads: NonZeroUsize::MIN, should_stop: None }
    }

    /// On at most `n_threads` threads, the calling one among them.
    pub const fn threads(n_threads: NonZeroUsize) -> Self {
        Self { n_threads, should_stop: None }
    }

    /// The same threads, with nothing that ends the work early.
    pub(crate) const fn unstoppable(self) -> Execution<'static> {
        Execution { n_threads: self.n_threads, should_stop: None }
    }

    /// Ends early with [`Error::Interrupted`] once `should_stop` returns true.
    ///
    /// It is called on the calling thread, every half million rows or so.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use btdagg::{Error, Execution, Model};
    ///
    /// let (start, limit) = (Instant::now(), Duration::ZERO);
    /// let late = || start.elapsed() >= limit;
    /// let rows = vec![[1_u8, 2, 3]; 1 << 20];
    /// let mut labels = vec![0_i8; rows.len()];
    /// let execution = Execution::single().stop_when(&late);
    /// let result = Model::new(1.2, 2.0, 0.8)?.decide_into(&rows[..], &mut labels, execution);
    /// assert_eq!(result, Err(Error::Interrupted));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn stop_when(self, should_stop: &(dyn Fn() -> bool + Sync)) -> Execution<'_> {
        Execution { n_threads: self.n_threads, should_stop: Some(should_stop) }
    }
}

/// One thread's view of whether the work goes on.
pub(crate) struct Watch<'a> {
    /// Only the calling thread asks; the others see its answer in `stopped`.
    ask: Option<&'a (dyn Fn() -> bool + Sync)>,
    stopped: Option<&'a AtomicBool>,
    blocks: usize,
}

impl<'a> Watch<'a> {
    /// For work that stays on the calling thread.
    pub(crate) fn alone(execution: Execution<'a>) -> Self {
        Self { ask: execution.should_stop, stopped: None, blocks: 0 }
    }

    /// To be called once a block.
    pub(crate) fn poll(&mut self) -> Result<(), Error> {
        self.blocks += 1;
        if self.blocks.is_multiple_of(BLOCKS_PER_POLL) {
            return self.ask_now();
        }
        Ok(())
    }

    /// To be called between longer stretches of work.
    pub(crate) fn ask_now(&self) -> Result<(), Error> {
        let stop = self.ask.is_some_and(|ask| ask());
        if let Some(stopped) = self.stopped.filter(|_| stop) {
            stopped.store(true, Ordering::Relaxed);
        }
        if stop || self.stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// Runs `work(start, part, watch)` over contiguous parts of `out`, as many as there are threads.
///
/// Parts are multiples of `grain` long. The error of the earliest part wins, so an error does not
/// depend on the number of threads either.
pub(crate) fn for_each_part<V: Send>(
    out: &mut [V],
    grain: usize,
    execution: Execution<'_>,
    work: impl Fn(usize, &mut [V], Watch<'_>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let size = out.len().div_ceil(execution.n_threads.get()).next_multiple_of(grain).max(grain);
    let n_parts = out.len().div_ceil(size);
    let parts = Mutex::new(out.chunks_mut(size).enumerate());
    let work_on_next = |watch: Watch<'_>| {
        // A statement of its own, so that the lock is released before the work.
        let (number, part) = locked(&parts).next()?;
        Some((number, work(number * size, part, watch)))
    };
    drain(n_parts, execution, &work_on_next)
}

/// The number of a part, and how the work on it ended.
type Done = (usize, Result<(), Error>);

/// Works on one part after the other, on each of the threads, until there is none; compiled once.
fn drain(
    n_parts: usize,
    execution: Execution<'_>,
    work_on_next: &(dyn Fn(Watch<'_>) -> Option<Done> + Sync),
) -> Result<(), Error> {
    let stopped = AtomicBool::new(false);
    let first_error = Mutex::new(None::<(usize, Error)>);
    let work = |ask| {
        while !stopped.load(Ordering::Relaxed) {
            let watch = Watch { ask, stopped: Some(&stopped), blocks: 0 };
            let Some((number, done)) = work_on_next(watch) else { break };
            if let Err(error) = done {
                let mut first = locked(&first_error);
                if first.as_ref().is_none_or(|(earlier, _)| number < *earlier) {
                    *first = Some((number, error));
                }
            }
        }
    };
    thread::scope(|scope| {
        let work = &work;
        for _ in 1..n_parts {
            // Where the system has no thread to give, the others do its part.
            if thread::Builder::new().spawn_scoped(scope, || work(None)).is_err() {
                break;
            }
        }
        work(execution.should_stop);
    });
    let first_error = first_error.into_inner().unwrap_or_else(PoisonError::into_inner);
    first_error.map_or(Ok(()), |(_, error)| Err(error))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn threads_work_at_the_same_time() {
        // Each part waits for the other: one thread alone would wait for ever.
        let both = Barrier::new(2);
        let execution = Execution::threads(NonZeroUsize::new(2).unwrap());
        let mut out = [0; 8];
        for_each_part(&mut out, 4, execution, |start, part, _| {
            both.wait();
            part.fill(start);
            Ok(())
        })
        .unwrap();
        assert_eq!(out, [0, 0, 0, 0, 4, 4, 4, 4]);
    }

    #[test]
    fn one_stop_does_not_stop_what_comes_after() {
        let stop = || true;
        let mut watch = Watch::alone(Execution::single().stop_when(&stop));
        assert_eq!((0..BLOCKS_PER_POLL).try_for_each(|_| watch.poll()), Err(Error::Interrupted));
        let mut watch = Watch::alone(Execution::single());
        assert_eq!((0..BLOCKS_PER_POLL).try_for_each(|_| watch.poll()), Ok(()));
    }
}
