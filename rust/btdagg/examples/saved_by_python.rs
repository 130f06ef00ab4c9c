//! `cargo run --example saved_by_python -- panel panel.json votes.csv`, or `rule rule.json votes.csv`,
//! or `tally tally.state votes.csv`, or `counts model.json rows.csv`
//!
//! Uses what Python's `save` of panels, rules, tallies and models of pairs and grades wrote. The lines
//! of votes are an item, a judge and a vote (-1, 0 or 1), such as `sum-7,gpt,-1`, below a header. A
//! tally takes them as further samples, and its file is written anew for Python to go on with. Rows
//! are an item's counts, and the values of the model's covariates after them.

use std::collections::BTreeMap;
use std::{env, error::Error, fs};

use btdagg::grades::Grades;
use btdagg::running::{Ids, Key, RunningTally};
use btdagg::stopping::StoppingRule;
use btdagg::{Covariate, Execution, Label, Model, Panel, Tally};

/// Votes of each item in their order, with the judge of each.
type Votes = BTreeMap<String, Vec<(String, i8)>>;

fn read(path: &str) -> Result<Votes, Box<dyn Error>> {
    let mut votes = Votes::new();
    for line in fs::read_to_string(path)?.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [item, judge, vote] = fields[..] else { return Err(format!("{path}: {line}").into()) };
        votes.entry(item.into()).or_default().push((judge.into(), vote.parse()?));
    }
    Ok(votes)
}

/// Prints the label and the probabilities of rows of counts and values of covariates.
fn decide_rows(file: &str, rows: &str) -> Result<(), Box<dyn Error>> {
    let numbers = rows.lines().map(|line| line.split(',').map(str::parse).collect());
    let numbers: Vec<Vec<f64>> = numbers.collect::<Result<_, _>>()?;
    if let Ok(grades) = Grades::from_json(file) {
        for row in &numbers {
            let (counts, values) = row.split_at(row.len() - grades.covariates().len());
            let p = grades.probabilities(counts, values)?;
            println!("{:?},{p:?}", grades.decide(counts, values)?);
        }
        return Ok(());
    }
    let (model, known) = Model::with_covariates_from_json(file)?;
    for row in &numbers {
        let [minus, tie, plus, values @ ..] = &row[..] else { return Err("too short".into()) };
        let (counts, offset) = ([[*minus, *tie, *plus]], [Covariate::offset(&known, values)?]);
        let (mut label, mut p, single) = ([Label::Tie], [[0.0; 3]], Execution::single());
        let model = model.with_offsets(&offset);
        model.decide_into(&counts[..], &mut label, single)?;
        model.probabilities_into(&counts[..], &mut p, single)?;
        println!("{},{:?}", label[0].value(), p[0]);
    }
    Ok(())
}

/// Adds votes as samples from 100 on to a tally, and prints its counts.
fn add_to(file: &str, votes: &Votes) -> Result<(), Box<dyn Error>> {
    let (mut tally, about) = RunningTally::from_bytes(&fs::read(file)?)?;
    for (item, votes) in votes {
        for (sample, (judge, vote)) in (100..).zip(votes) {
            let channel = tally.channel(judge, "");
            let vote = Label::try_from(*vote).map_err(|vote| vote.to_string())?;
            tally.add_one(Key::Text(item), vote, sample, channel)?;
        }
    }
    let (Ids::Texts(items), counts) = tally.all_counts()? else {
        return Err("expected items with texts for ids".into());
    };
    for (item, counts) in items.iter().zip(counts) {
        println!("{item},{},{},{}", counts.minus(), counts.tie(), counts.plus());
    }
    fs::write(file, tally.to_bytes(&about)?)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, file, votes] = &arguments[..] else { return Err("expected three arguments".into()) };
    if kind == "counts" {
        return decide_rows(&fs::read_to_string(file)?, &fs::read_to_string(votes)?);
    }
    let votes = read(votes)?;
    if kind == "tally" {
        return add_to(file, &votes);
    }
    let file = fs::read_to_string(file)?;
    match kind.as_str() {
        "panel" => {
            let panel = Panel::from_json(&file)?;
            for (item, votes) in &votes {
                let mut tally = Tally::<String>::new();
                for (judge, vote) in votes {
                    tally.add(judge, Label::try_from(*vote).map_err(|vote| vote.to_string())?);
                }
                let judges = panel.judges().iter();
                let counts: Vec<_> =
                    judges.map(|judge| tally.get(&judge.name).unwrap_or_default()).collect();
                let [minus, tie, plus] = panel.probabilities(&counts)?;
                println!("{item},{},{minus:?},{tie:?},{plus:?}", panel.decide(&counts)?.value());
            }
        }
        "rule" => {
            let rule = StoppingRule::from_json(&file)?;
            for (item, votes) in &votes {
                let votes: Vec<i8> = votes.iter().map(|(_, vote)| *vote).collect();
                let (n_votes, label) = rule.follow(&votes)?;
                println!("{item},{n_votes},{}", label.value());
            }
        }
        _ => return Err(format!("{kind}: expected panel, rule, tally or counts").into()),
    }
    Ok(())
}
