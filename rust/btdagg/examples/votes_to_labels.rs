//! `cargo run --example votes_to_labels -- votes.csv labels.csv model.json`

use std::{env, error::Error, fs};

use btdagg::stopping::{Criterion, StoppingRule};
use btdagg::{Bounds, CalibrationSet, Counts, Execution, Tally, usual_votes};

/// Reads lines of an item and a vote or label, such as `sum-7,-1`, below a header.
fn read(path: &str) -> Result<(Vec<String>, Vec<i8>), Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let wrong = |line: &str| format!("{path}: {line:?}, expected an item and -1, 0 or 1");
    let row = |line: &str| {
        let (item, value) = line.split_once(',').ok_or_else(|| wrong(line))?;
        Ok((item.to_owned(), value.parse::<i8>().map_err(|_| wrong(line))?))
    };
    text.lines().skip(1).map(row).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let [votes, labels, model_file] = &paths[..] else { return Err("expected three paths".into()) };

    let (items, votes) = read(votes)?;
    let mut tally = Tally::<String>::new();
    tally.add_all(&items, &votes)?;

    let (items, labels) = read(labels)?;
    let counts = items.iter().map(|item| tally.get(item).ok_or(format!("{item}: no votes")));
    let counts: Vec<Counts> = counts.collect::<Result<_, _>>()?;
    let set = CalibrationSet::new(&counts[..], &labels, None, (1.0, 1.0), Execution::single())?
        .with_usual_votes(Some(usual_votes(&counts)))?;
    let fit = set.fit(&Bounds::default(), Execution::single())?;
    let model = set.model(&fit)?; // look at fit.converged, at_bounds and neutral before it is used
    fs::write(model_file, model.to_json())?;

    let mut decisions = vec![0_i8; tally.counts().len()];
    model.decide_into(tally.counts(), &mut decisions, Execution::single())?;
    let n = set.max_votes().try_into()?;
    let rule = StoppingRule::new(model.clone(), n, 1, Criterion::Lossless, None)?;
    for ((item, &counts), decision) in tally.items().iter().zip(tally.counts()).zip(decisions) {
        let [minus, tie, plus] = model.probabilities(counts);
        let to_ask = rule.votes_to_ask(counts)?; // 0: no further vote can change the label
        println!("{item},{decision},{minus:?},{tie:?},{plus:?},{to_ask}");
    }
    Ok(())
}
