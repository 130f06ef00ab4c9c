//! The crate as a WebAssembly module without imports, for pages, Node, workers and plugins.
//!
//! ```console
//! rustup target add wasm32-unknown-unknown
//! cargo build --release --target wasm32-unknown-unknown
//! node decide.mjs model.json 0 1 11
//! ```
//!
//! An instance holds one model. The caller asks for room, writes into the instance's memory, and calls
//! what reads it: `text` and `load`, then `counts` and `decide` or `probabilities`. Where these fail,
//! `text` has the message, of `text_len` bytes. `model.mjs` does all of it.

use std::cell::RefCell;

use btdagg::{Execution, Model};

#[derive(Default)]
struct Instance {
    text: Vec<u8>,
    model: Option<Model>,
    counts: Vec<[f64; 3]>,
    labels: Vec<i8>,
    probabilities: Vec<[f64; 3]>,
}

thread_local! {
    static INSTANCE: RefCell<Instance> = RefCell::default();
}

/// Room for a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn text(len: usize) -> *mut u8 {
    INSTANCE.with_borrow_mut(|instance| {
        instance.text.resize(len, 0);
        instance.text.as_mut_ptr()
    })
}

/// Length of the message of the last call that failed.
#[unsafe(no_mangle)]
pub extern "C" fn text_len() -> usize {
    INSTANCE.with_borrow(|instance| instance.text.len())
}

/// Takes the text for a model, as Python's `save` wrote it; whether it is one.
#[unsafe(no_mangle)]
pub extern "C" fn load() -> bool {
    INSTANCE.with_borrow_mut(|instance| {
        let model = Model::from_json(&String::from_utf8_lossy(&instance.text));
        instance.model = model.map_err(|error| instance.text = error.to_string().into()).ok();
        instance.model.is_some()
    })
}

/// Room for so many rows of three numbers: minus, tie, plus.
#[unsafe(no_mangle)]
pub extern "C" fn counts(n: usize) -> *mut [f64; 3] {
    INSTANCE.with_borrow_mut(|instance| {
        instance.counts.resize(n, [0.0; 3]);
        instance.counts.as_mut_ptr()
    })
}

/// The label of every row, or null.
#[unsafe(no_mangle)]
pub extern "C" fn decide() -> *const i8 {
    INSTANCE.with_borrow_mut(|Instance { text, model, counts, labels, .. }| {
        labels.resize(counts.len(), 0);
        written(model, text, |model| model.decide_into(&counts[..], labels, Execution::single()))
            .map_or(std::ptr::null(), |()| labels.as_ptr())
    })
}

/// The probabilities of −1, 0 and 1 of every row, or null.
#[unsafe(no_mangle)]
pub extern "C" fn probabilities() -> *const [f64; 3] {
    INSTANCE.with_borrow_mut(|Instance { text, model, counts, probabilities: p, .. }| {
        p.resize(counts.len(), [0.0; 3]);
        written(model, text, |model| model.probabilities_into(&counts[..], p, Execution::single()))
            .map_or(std::ptr::null(), |()| p.as_ptr())
    })
}

/// Writes by the model; where that fails, the text says why.
fn written(
    model: &Option<Model>,
    text: &mut Vec<u8>,
    write: impl FnOnce(&Model) -> Result<(), btdagg::Error>,
) -> Option<()> {
    let result = match model {
        Some(model) => write(model).map_err(|error| error.to_string()),
        None => Err("no model is loaded".to_owned()),
    };
    result.map_err(|message| *text = message.into()).ok()
}
