//! Counts votes as judges cast them, and says over HTTP which label each item has.
//!
//! ```console
//! $ cargo run --release -- model.json tally.state 8
//! $ curl --json '{"item": "q1", "judge": "gpt", "sample": 0, "vote": 1}' localhost:8080/votes
//! {"accepted":1,"late":[],"refused":[]}
//! $ curl localhost:8080/items/q1
//! {"counts":[0.0,0.0,1.0],"label":0,"probabilities":[0.10...,0.66...,0.23...]}
//! ```
//!
//! `model.json` is what `btdagg calibrate` wrote, and 8 the most votes that an item gets. The state is
//! read at the start, and written every ten seconds and at the end; Python opens it by
//! `OnlineTally.load("tally.state", model)`. After a crash send the last votes again: a sample, which
//! is an item, a judge and a number, counts once however often it comes.

use std::{env, error::Error, fs, io::Write, sync::Arc, time::Duration};

use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::get, routing::post};
use btdagg::running::{Ids, Key, Keys, RunningTally, Settings, Texts};
use btdagg::stopping::{Criterion, StoppingRule};
use btdagg::{CompiledModel, Execution, Label, Model};
use serde::Deserialize;
use serde_json::{Value, from_value, json};
use tokio::signal::{ctrl_c, unix::SignalKind, unix::signal};
use tokio::{net::TcpListener, sync::Mutex, task::block_in_place, time::sleep};

/// Votes that would open more items are refused, so that no flood of ids takes all memory.
const MAX_ITEMS: usize = 1_000_000;
const SNAPSHOT_EVERY: Duration = Duration::from_secs(10);

struct Service {
    model: CompiledModel,
    rule: StoppingRule,
    tally: Mutex<RunningTally>,
    /// What Python writes beside the votes, such as the model that decides them.
    header: Value,
    /// Path of the state, locked while it is written.
    state: Mutex<String>,
}

type Shared = State<Arc<Service>>;
type Refusal = (StatusCode, String);
type Answer = Result<Json<Value>, Refusal>;

fn refused(error: btdagg::Error) -> Refusal {
    match error {
        btdagg::Error::Input(input) => (StatusCode::UNPROCESSABLE_ENTITY, input.to_string()),
        error => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    item: String,
    sample: u32,
    #[serde(default)]
    judge: String,
    /// −1, 0 or 1; a withdrawal has none.
    vote: Option<i8>,
}

/// Adds a vote or a list of them. Rows that are late or wrong are listed, the others count.
async fn add_votes(State(service): Shared, Json(votes): Json<Value>) -> (StatusCode, Json<Value>) {
    let rows = if let Value::Array(rows) = votes { rows } else { vec![votes] };
    let (mut n_accepted, mut late, mut refused) = (0, Vec::new(), Vec::new());
    let mut tally = service.tally.lock().await;
    for (row, vote) in rows.into_iter().enumerate() {
        match add_vote(&mut tally, vote, row) {
            Ok(false) => n_accepted += 1,
            Ok(true) => late.push(row),
            Err(error) => refused.push(json!({ "row": row, "detail": error.to_string() })),
        }
    }
    let is_refused = !refused.is_empty() && n_accepted + late.len() == 0;
    let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    (status, Json(json!({ "accepted": n_accepted, "late": late, "refused": refused })))
}

/// Adds a vote; whether it was late, for an item that `settle` had reported.
fn add_vote(tally: &mut RunningTally, vote: Value, row: usize) -> Result<bool, Box<dyn Error>> {
    let Sample { item, sample, judge, vote } = from_value(vote)?;
    let label = Label::parse(vote.ok_or("missing field `vote`")?, "votes", row)?;
    let channel = tally.channel(&judge, "");
    let added = tally.add_one(Key::Text(&item), label, sample, channel);
    Ok(added.map_err(|error| error.at(&[row]))?)
}

/// Makes a sample count for nothing, whether its vote has come or comes later.
async fn withdraw(State(service): Shared, Json(vote): Json<Sample>) -> Answer {
    let mut tally = service.tally.lock().await;
    let channel = tally.channel(&vote.judge, "");
    let was_settled = tally.withdraw(Key::Text(&vote.item), vote.sample, channel);
    Ok(Json(json!({ "was_settled": was_settled.map_err(refused)? })))
}

async fn show_item(State(service): Shared, Path(item): Path<String>) -> Answer {
    let counts = service.tally.lock().await.counts(Key::Text(&item));
    let counts = counts.ok_or((StatusCode::NOT_FOUND, format!("no votes for {item:?}")))?;
    Ok(Json(json!({
        "counts": [counts.minus(), counts.tie(), counts.plus()],
        "label": service.model.decide(counts).value(),
        "probabilities": service.model.probabilities(counts),
    })))
}

async fn forget_item(State(service): Shared, Path(item): Path<String>) -> Answer {
    let ends = [item.len() as i64];
    let key = Texts::new(item.as_bytes(), 0, &ends).map_err(refused)?;
    let n_items = service.tally.lock().await.forget(&Keys::Texts(key)).map_err(refused)?;
    Ok(Json(json!({ "forgotten": n_items })))
}

/// Reports the items that no further vote can change; votes for them are late from then on.
async fn settle(State(service): Shared) -> Answer {
    let mut tally = service.tally.lock().await;
    let settled = block_in_place(|| tally.settle(&service.rule));
    let (Ids::Texts(items), labels, _) = settled.map_err(refused)? else {
        return Ok(Json(json!([])));
    };
    let rows = items.iter().zip(labels);
    Ok(Json(rows.map(|(item, label)| json!({ "item": item, "label": label.value() })).collect()))
}

/// Decides rows of counts that somebody else has counted: `[[minus, tie, plus], ...]`.
async fn decide(State(service): Shared, Json(counts): Json<Vec<[f64; 3]>>) -> Answer {
    let (model, single) = (service.model.model(), Execution::single());
    let (mut labels, mut p) = (vec![0_i8; counts.len()], vec![[0.0; 3]; counts.len()]);
    model.decide_into(&counts[..], &mut labels, single).map_err(refused)?;
    model.probabilities_into(&counts[..], &mut p, single).map_err(refused)?;
    Ok(Json(json!({ "labels": labels, "probabilities": p })))
}

async fn snapshot(State(service): Shared) -> Answer {
    let failed = |error: Box<dyn Error>| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    service.snapshot().await.map_err(failed)?;
    Ok(Json(json!({ "items": service.tally.lock().await.len() })))
}

impl Service {
    fn open(model: &str, state: &str, n_votes: usize) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(model).map_err(|error| format!("{model}: {error}"))?;
        let model = Model::from_json(&text).map_err(|error| format!("{model}: {error}"))?;
        let settings = Settings { has_texts: true, max_items: MAX_ITEMS, ..Settings::default() };
        let mut tally = RunningTally::new(settings);
        let mut header = json!({
            "format": "btdagg.tally", "version": 2, "rule": null, "model": text, "late": "drop",
            "deduplicate": true, "differing": "neither", "max_items": MAX_ITEMS, "n_late": 0,
        });
        if fs::exists(state)? {
            let saved = load(state, &model).map_err(|error| format!("{state}: {error}"))?;
            if !saved.0.is_empty() {
                (tally, header) = saved;
            }
        }
        let rule = StoppingRule::new(model.clone(), n_votes, 1, Criterion::Lossless, None)?;
        let (tally, state) = (tally.into(), state.to_owned().into());
        Ok(Self { model: model.compile(n_votes as u64), rule, tally, header, state })
    }

    /// Replaces the state, whole or not at all. Votes wait only while the tally is copied.
    async fn snapshot(&self) -> Result<(), Box<dyn Error>> {
        let path = self.state.lock().await;
        let (tally, mut header) = (self.tally.lock().await.clone(), self.header.clone());
        header["is_empty"] = tally.is_empty().into();
        block_in_place(|| {
            let new = format!("{path}.new");
            let mut file = fs::File::create(&new)?;
            file.write_all(&tally.to_bytes(&header.to_string())?)?;
            file.sync_all()?;
            Ok(fs::rename(&new, &*path)?)
        })
    }
}

/// The tally of a state and its header, unless another model decided the votes.
fn load(state: &str, model: &Model) -> Result<(RunningTally, Value), Box<dyn Error>> {
    let (tally, header) = RunningTally::from_bytes(&fs::read(state)?)?;
    let header: Value = serde_json::from_str(&header)?;
    let saved = header["model"].as_str().map(Model::from_json).transpose()?;
    if header["rule"] != Value::Null || saved.as_ref() != Some(model) {
        return Err("another model or rule decided its votes".into());
    }
    Ok((tally, header))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, state, n_votes, address @ ..] = &arguments[..] else {
        return Err("usage: btdagg-service MODEL STATE VOTES [ADDRESS]".into());
    };
    let service = Service::open(model, state, n_votes.parse()?)?;
    // Rather now than with the first votes.
    service.snapshot().await.map_err(|error| format!("{state} cannot be written: {error}"))?;
    let service = Arc::new(service);
    let app = Router::new()
        .route("/votes", post(add_votes).delete(withdraw))
        .route("/items/{item}", get(show_item).delete(forget_item))
        .route("/settle", post(settle))
        .route("/decide", post(decide))
        .route("/snapshot", post(snapshot))
        .with_state(Arc::clone(&service));
    let address = address.first().map_or("127.0.0.1:8080", String::as_str);
    let listener = TcpListener::bind(address).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    println!("listening on {}", listener.local_addr()?);

    let regular = Arc::clone(&service);
    tokio::spawn(async move {
        loop {
            sleep(SNAPSHOT_EVERY).await;
            if let Err(error) = regular.snapshot().await {
                eprintln!("the state could not be written: {error}");
            }
        }
    });
    let stop = async move {
        tokio::select! { _ = terminated.recv() => {}, _ = ctrl_c() => {} }
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    service.snapshot().await
}
