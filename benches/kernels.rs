//! Kernels of the core on one thread: `cargo bench` in this folder.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss
)]

use std::collections::hash_map::Entry;
use std::hint::black_box;

use btdagg::running::{Key, Keys, RunningTally, Votes};
use btdagg::{
    Bounds, CalibrationSet, Counts, Execution, Label, Model, Parameters, Posterior, Prior, Tally,
};
use divan::{Bencher, counter::ItemsCount};
use rustc_hash::FxHashMap;

const N_ITEMS: usize = 1_000_000;
const N_VOTES: u64 = 12;

/// Counts of twelve votes that run through all 91 triples in a scrambled order.
fn rows<T: From<u8>>() -> Vec<[T; 3]> {
    let scramble = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (0..N_ITEMS as u64)
        .map(|i| {
            let minus = scramble(i) % (N_VOTES + 1);
            let tie = scramble(i + 7) % (N_VOTES - minus + 1);
            [minus, tie, N_VOTES - minus - tie].map(|count| T::from(count as u8))
        })
        .collect()
}

fn calibration_set(n_items: usize) -> CalibrationSet {
    let rows = rows::<u64>();
    let labels: Vec<i8> = (0..n_items).map(|i| (i % 3) as i8 - 1).collect();
    CalibrationSet::new(&rows[..n_items], &labels, None, (1.0, 1.0), Execution::single())
        .expect("valid smoothing")
}

fn model() -> Model {
    Model::new(1.2, 2.0, 0.8).expect("finite parameters")
}

const PARAMETERS: Parameters = Parameters { beta: 1.0, eta0: 1.0, gamma: 0.5 };

fn per_item<O>(bencher: Bencher, run: impl FnMut() -> O) {
    bencher.counter(ItemsCount::new(N_ITEMS)).bench_local(run);
}

#[divan::bench]
fn decide_i64(bencher: Bencher) {
    let (model, rows, mut labels) = (model(), rows::<i64>(), vec![0_i8; N_ITEMS]);
    per_item(bencher, || model.decide_into(&rows[..], &mut labels, Execution::single()));
}

#[divan::bench]
fn decide_u8(bencher: Bencher) {
    let (model, rows, mut labels) = (model(), rows::<u8>(), vec![0_i8; N_ITEMS]);
    per_item(bencher, || model.decide_into(&rows[..], &mut labels, Execution::single()));
}

/// As fast as the counts can be read on one thread.
#[divan::bench]
fn decide_peer_sum_i64(bencher: Bencher) {
    let rows = rows::<i64>();
    per_item(bencher, || rows.as_flattened().iter().fold(0_i64, |sum, n| sum.wrapping_add(*n)));
}

/// The loop that is written by hand for counts that are known to be below 16.
#[divan::bench(types = [i64, u8])]
fn decide_peer_loop<T: From<u8> + TryInto<usize> + Copy>(bencher: Bencher) {
    let model = model();
    let table: Vec<i8> = (0..1 << 12)
        .map(|place| model.decide(Counts::whole(place >> 8, place >> 4 & 15, place & 15)).value())
        .collect();
    let table: [i8; 1 << 12] = table.try_into().expect("as many");
    let (rows, mut labels) = (rows::<T>(), vec![0_i8; N_ITEMS]);
    per_item(bencher, || {
        for (row, label) in rows.iter().zip(&mut labels) {
            let [minus, tie, plus] = row.map(|count| count.try_into().unwrap_or(0));
            *label = table[(minus << 8 | tie << 4 | plus) % table.len()];
        }
    });
}

#[divan::bench]
fn decide_counts(bencher: Bencher) {
    let whole = |[minus, tie, plus]: [u64; 3]| Counts::whole(minus, tie, plus);
    let counts: Vec<Counts> = rows::<u64>().into_iter().map(whole).collect();
    let (model, mut labels) = (model(), vec![0_i8; N_ITEMS]);
    per_item(bencher, || model.decide_into(&counts[..], &mut labels, Execution::single()));
}

#[divan::bench]
fn probabilities_i64(bencher: Bencher) {
    let (model, rows, mut found) = (model(), rows::<i64>(), vec![[0.0; 3]; N_ITEMS]);
    per_item(bencher, || model.probabilities_into(&rows[..], &mut found, Execution::single()));
}

#[divan::bench]
fn gather_a_calibration_set(bencher: Bencher) {
    per_item(bencher, || drop(black_box(calibration_set(N_ITEMS))));
}

#[divan::bench]
fn tally(bencher: Bencher) {
    let items: Vec<i64> = (0..N_ITEMS as i64).map(|i| (i * 7919) % 100_000).collect();
    let votes: Vec<i8> = (0..N_ITEMS).map(|i| (i % 3) as i8 - 1).collect();
    per_item(bencher, || Tally::<i64>::new().add_all(&items, &votes));
}

#[divan::bench]
fn decide_one_compiled(bencher: Bencher) {
    let compiled = model().compile(N_VOTES);
    bencher.bench_local(|| compiled.decide(black_box(Counts::whole(1, 3, 8))));
}

#[divan::bench]
fn decide_one(bencher: Bencher) {
    let model = model();
    bencher.bench_local(|| model.decide(black_box(Counts::whole(1, 3, 8))));
}

#[divan::bench]
fn loss_and_gradient_of_50_labels(bencher: Bencher) {
    let set = calibration_set(50);
    bencher.bench_local(|| set.loss(black_box(PARAMETERS), Execution::single()));
}

#[divan::bench]
fn fit_of_50_labels(bencher: Bencher) {
    let set = calibration_set(50);
    bencher.bench_local(|| set.fit(black_box(&Bounds::default()), Execution::single()));
}

/// Items whose label follows the votes where these are decided, and scrambled labels elsewhere.
fn judged(n_items: usize, first: usize) -> CalibrationSet {
    let rows = &rows::<u64>()[first..first + n_items];
    let label = |&[minus, tie, plus]: &[u64; 3]| match plus as i64 - minus as i64 {
        lead if lead.unsigned_abs() > tie + 1 => lead.signum() as i8,
        lead => (lead.rem_euclid(3) == 1).into(),
    };
    let labels: Vec<i8> = rows.iter().map(label).collect();
    CalibrationSet::new(rows, &labels, None, (1.0, 1.0), Execution::single())
        .expect("valid smoothing")
}

/// The weak prior of one judge, or beside fourteen neighbours of 400 labels.
fn prior_of(name: &str) -> Prior {
    let weak = Prior::of_pairs(&[N_VOTES as f64]).expect("one judge");
    if name == "weak prior" {
        return weak;
    }
    let fitted = (1..15).map(|i| {
        let (design, labels) = judged(400, 1000 * i).design().expect("pairs");
        let found = weak.posterior(&design, &labels, None, Execution::single()).expect("labels");
        (found.parameters, found.covariance)
    });
    weak.with_neighbours(&fitted.collect::<Vec<_>>(), 0.1).expect("neighbours")
}

#[divan::bench]
fn prior_of_14_neighbours(bencher: Bencher) {
    bencher.bench_local(|| prior_of("neighbours"));
}

const PRIORS: [&str; 2] = ["weak prior", "neighbours"];

#[divan::bench(args = PRIORS)]
fn posterior_of_50_labels(bencher: Bencher, name: &str) {
    let (set, prior) = (judged(50, 0), prior_of(name));
    let (design, labels) = set.design().expect("pairs");
    bencher.bench_local(|| prior.posterior(&design, &labels, None, Execution::single()));
}

/// Each leaves out some of the rows, as a fold of a cross-validation does.
#[divan::bench(args = PRIORS, sample_count = 10)]
fn posteriors_of_45_labels(bencher: Bencher, name: &str) {
    let (set, prior) = (judged(50, 0), prior_of(name));
    let (design, labels) = set.design().expect("pairs");
    let folds: Vec<f64> = (0..1000)
        .flat_map(|fold| {
            let kept =
                move |row: usize| f64::from(u8::from(!(fold * 31 + row * 7).is_multiple_of(10)));
            labels.iter().enumerate().map(move |(place, weight)| weight * kept(place / 3))
        })
        .collect();
    let mut found = vec![Posterior::default(); 1000];
    bencher.counter(ItemsCount::new(1000_usize)).bench_local(|| {
        prior.posteriors_into(&design, &folds, None, &mut found, Execution::single())
    });
}

/// A stream of votes in batches, of 100,000 items and eight samples each.
struct Stream {
    items: Vec<i64>,
    votes: Vec<i8>,
    samples: Vec<u32>,
}

fn stream() -> Stream {
    let scramble = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let rows = 0..N_ITEMS as u64;
    Stream {
        items: rows.clone().map(|i| (scramble(i) % 100_000) as i64).collect(),
        votes: rows.clone().map(|i| (scramble(i + 3) % 3) as i8 - 1).collect(),
        samples: rows.map(|i| (scramble(i + 9) % 8) as u32).collect(),
    }
}

#[divan::bench(args = [1, 100, 10_000, 1_000_000])]
fn stream_tally(bencher: Bencher, batch: usize) {
    let Stream { items, votes, samples } = stream();
    per_item(bencher, || {
        let mut tally = RunningTally::default();
        for start in (0..N_ITEMS).step_by(batch) {
            let rows = start..N_ITEMS.min(start + batch);
            if batch == 1 {
                let vote = Label::try_from(votes[start]).expect("a vote");
                let late = tally.add_one(Key::Integer(items[start]), vote, samples[start], 0);
                late.expect("memory");
                continue;
            }
            let votes = Votes {
                votes: &votes[rows.clone()],
                samples: Some(&samples[rows.clone()]),
                channels: None,
            };
            let keys = Keys::Integers(&items[rows]);
            tally.add(&keys, &votes, false, Execution::single()).expect("memory");
        }
        tally.len()
    });
}

/// The same by hand: maps with a hash that anybody can foresee, of samples and of counts.
#[divan::bench]
fn stream_fx_maps(bencher: Bencher) {
    let Stream { items, votes, samples } = stream();
    per_item(bencher, || {
        let mut seen = FxHashMap::<(i64, u32), i8>::default();
        let mut counts = FxHashMap::<i64, [u64; 3]>::default();
        for row in 0..N_ITEMS {
            let column = |vote: i8| usize::from((vote + 1).cast_unsigned());
            let counts = counts.entry(items[row]).or_default();
            match seen.entry((items[row], samples[row])) {
                Entry::Vacant(entry) => {
                    counts[column(*entry.insert(votes[row]))] += 1;
                }
                Entry::Occupied(mut entry) if *entry.get() != votes[row] && *entry.get() < 2 => {
                    counts[column(*entry.get())] -= 1;
                    entry.insert(2);
                }
                Entry::Occupied(_) => {}
            }
        }
        counts.len()
    });
}

fn main() {
    divan::main();
}
