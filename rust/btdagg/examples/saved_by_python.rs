//! `cargo run --example saved_by_python -- panel panel.json votes.csv`, or `rule rule.json votes.csv`
//!
//! Uses what Python's `PanelModel.save` and `StoppingRule.save` wrote. The lines of votes are an
//! item, a judge and a vote (-1, 0 or 1), such as `sum-7,gpt,-1`, below a header.

use std::collections::BTreeMap;
use std::{env, error::Error, fs};

use btdagg::stopping::StoppingRule;
use btdagg::{Label, Panel, Tally};

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

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, file, votes] = &arguments[..] else { return Err("expected three arguments".into()) };
    let (file, votes) = (fs::read_to_string(file)?, read(votes)?);
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
        _ => return Err(format!("{kind}: expected panel or rule").into()),
    }
    Ok(())
}
