//! Kernels of the core on one thread: `cargo bench` in this folder.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

use std::hint::black_box;

use btdagg::{
    Bounds, CalibrationSet, Counts, Execution, Model, Parameters, Posteriors, Prior, Tally,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

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

fn kernels(c: &mut Criterion) {
    let model = Model::new(1.2, 2.0, 0.8).expect("finite parameters");
    let (wide, narrow) = (rows::<i64>(), rows::<u8>());
    let counts: Vec<Counts> = rows::<u64>()
        .into_iter()
        .map(|[minus, tie, plus]| Counts::whole(minus, tie, plus))
        .collect();
    let mut labels = vec![0_i8; N_ITEMS];
    let mut probabilities = vec![[0.0; 3]; N_ITEMS];

    let mut group = c.benchmark_group("per item");
    group.throughput(Throughput::Elements(N_ITEMS as u64));
    group.bench_function("decide i64", |b| {
        b.iter(|| model.decide_into(&wide[..], &mut labels, Execution::single()));
    });
    group.bench_function("decide u8", |b| {
        b.iter(|| model.decide_into(&narrow[..], &mut labels, Execution::single()));
    });
    group.bench_function("decide Counts", |b| {
        b.iter(|| model.decide_into(&counts[..], &mut labels, Execution::single()));
    });
    group.bench_function("probabilities i64", |b| {
        b.iter(|| model.probabilities_into(&wide[..], &mut probabilities, Execution::single()));
    });
    group.bench_function("gather a calibration set", |b| b.iter(|| calibration_set(N_ITEMS)));
    let items: Vec<i64> = (0..N_ITEMS as i64).map(|i| (i * 7919) % 100_000).collect();
    let votes: Vec<i8> = (0..N_ITEMS).map(|i| (i % 3) as i8 - 1).collect();
    group.bench_function("tally", |b| {
        b.iter(|| Tally::<i64>::new().add_all(&items, &votes));
    });
    group.finish();

    let compiled = model.compile(N_VOTES);
    let votes = Counts::new(1, 3, 8);
    c.bench_function("decide one, compiled", |b| b.iter(|| compiled.decide(black_box(votes))));
    c.bench_function("decide one", |b| b.iter(|| model.decide(black_box(votes))));
    let set = calibration_set(50);
    let parameters = Parameters { beta: 1.0, eta0: 1.0, gamma: 0.5 };
    c.bench_function("loss and gradient, 50 items", |b| {
        b.iter(|| set.loss(black_box(parameters), Execution::single()));
    });
    c.bench_function("fit, 50 items", |b| {
        b.iter(|| set.fit(black_box(&Bounds::default()), Execution::single()));
    });
    posteriors(c);
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

fn posteriors(c: &mut Criterion) {
    let set = judged(50, 0);
    let neighbours: Vec<CalibrationSet> = (1..15).map(|i| judged(400, 1000 * i)).collect();
    let learn = || {
        let learned = neighbours.iter().flat_map(|set| {
            Prior::of_neighbour(set, 400.0, N_VOTES, 1024 / 14).expect("labels").parameters()
        });
        Prior::new(&learned.collect::<Vec<_>>()).expect("parameters within the bounds")
    };
    let prior = learn();
    c.bench_function("prior of 14 neighbours", |b| b.iter(learn));
    for (name, prior) in [("weak prior", None), ("neighbours", Some((&prior, 0.1)))] {
        c.bench_function(&format!("posterior of 50 labels, {name}"), |b| {
            b.iter(|| {
                Posteriors::new(&set, prior).and_then(|all| all.posterior(&set.labels(), None))
            });
        });
        let all = Posteriors::new(&set, prior).expect("a share");
        // Each leaves out some of the rows, as a fold of a cross-validation does.
        let labels = set.labels();
        let folds: Vec<Vec<[f64; 3]>> = (0..1000)
            .map(|fold| {
                let kept =
                    |row: usize| f64::from(u8::from(!(fold * 31 + row * 7).is_multiple_of(10)));
                (0..labels.len()).map(|row| labels[row].map(|weight| weight * kept(row))).collect()
            })
            .collect();
        let mut group = c.benchmark_group("posteriors that share their tables");
        group.throughput(Throughput::Elements(folds.len() as u64)).sample_size(10);
        group.bench_function(format!("45 labels, {name}"), |b| {
            b.iter(|| folds.iter().filter(|labels| all.posterior(labels, None).is_ok()).count());
        });
        group.finish();
    }
    let parameters = Parameters { beta: 1.0, eta0: 1.0, gamma: 0.5 };
    c.bench_function("profile intervals of 50 labels", |b| {
        b.iter(|| set.profile(&Bounds::default(), parameters, 50.0, 2.0));
    });
}

criterion_group!(benches, kernels);
criterion_main!(benches);
