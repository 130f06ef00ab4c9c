//! The versioned JSON of a model: what Python's `DavidsonModel.save` writes and `load` reads.
//!
//! The file is one object of two texts and numbers, and where it is known what the model was fitted
//! to another object within, so a small reader of just that takes the place of a dependency.

use std::str::Chars;

use crate::counts::CountValue;
use crate::{Error, Model, Provenance};

const FORMAT: &str = "btdagg.davidson";
const VERSION: f64 = 1.0;
const PROVENANCE: &str = "provenance";
const NUMBERS: [&str; 5] = ["beta", "eta0", "gamma", "alpha", "kappa"];

impl Model {
    /// The model that [`to_json`](Self::to_json), or the Python package's `save`, wrote.
    ///
    /// ```
    /// use btdagg::Model;
    ///
    /// let model = Model::new(1.2, 2.0, 0.8)?;
    /// assert_eq!(Model::from_json(&model.to_json())?, model);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ModelText`] if the text is no such JSON or of another version;
    /// [`Error::Parameter`] or [`Error::Smoothing`] if a number is out of range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let fields = Reader { rest: text.trim_start_matches(BLANK), whole: text }.file()?;
        let find = |name: &str| find(&fields, name);
        if !matches!(find("format"), Some(Value::Text(format)) if format == FORMAT) {
            return Err(wrong(format!(
                "no btdagg model, want an object with \"format\": \"{FORMAT}\""
            )));
        }
        match find("version") {
            Some(Value::Number(version)) if *version == VERSION => {}
            Some(Value::Number(version)) => {
                return Err(wrong(format!("model version {version}, want version {VERSION}")));
            }
            _ => return Err(wrong(format!("no model version, want version {VERSION}"))),
        }
        let known =
            |key: &str| NUMBERS.contains(&key) || ["format", "version", PROVENANCE].contains(&key);
        if let Some((key, _)) = fields.iter().find(|(key, _)| !known(key)) {
            let shown: String = key.chars().take(60).collect();
            return Err(wrong(format!("unknown field {shown:?}, want {}", NUMBERS.join(", "))));
        }
        let mut values = [0.0; 5];
        for (value, name) in values.iter_mut().zip(NUMBERS) {
            match find(name) {
                Some(Value::Number(number)) => *value = *number,
                Some(_) => return Err(wrong(format!("{name} is no number"))),
                None => return Err(wrong(format!("no field {name:?}"))),
            }
        }
        let [beta, eta0, gamma, alpha, kappa] = values;
        let model = Self::new(beta, eta0, gamma)?.with_smoothing(alpha, kappa)?;
        Ok(match find(PROVENANCE) {
            None => model,
            Some(Value::Object(fields)) => model.with_provenance(provenance_of(fields)?),
            Some(_) => return Err(wrong("provenance is no object")),
        })
    }

    /// The model as versioned JSON; floats keep every bit.
    #[must_use]
    pub fn to_json(&self) -> String {
        let p = self.parameters();
        let (alpha, kappa) = self.smoothing();
        let numbers = NUMBERS.iter().zip([p.beta, p.eta0, p.gamma, alpha, kappa]);
        let lines: Vec<String> =
            numbers.map(|(name, value)| format!(",\n  \"{name}\": {value:?}")).collect();
        let provenance = self.provenance().map(text_of).unwrap_or_default();
        format!(
            "{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION}{}{provenance}\n}}",
            lines.concat()
        )
    }
}

const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

enum Value {
    Text(String),
    Number(f64),
    Texts(Vec<String>),
    Object(Fields),
}

type Fields = Vec<(String, Value)>;

/// A field; of a name that is there twice the last, as in Python.
fn find<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn provenance_of(fields: &Fields) -> Result<Provenance, Error> {
    let empty = Provenance::default();
    let known: Vec<&str> = (empty.numbers().iter().map(|(name, _)| *name))
        .chain(empty.columns().iter().map(|(name, _)| *name))
        .collect();
    if let Some((key, _)) = fields.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        let shown: String = key.chars().take(60).collect();
        return Err(wrong(format!(
            "unknown field {shown:?} of provenance, want {}",
            known.join(", ")
        )));
    }
    let number = |name: &str| match find(fields, name) {
        None => Ok(None),
        Some(Value::Number(number)) => number.to_count().map(Some).ok_or(()),
        Some(_) => Err(()),
    };
    let number = |name: &str| {
        number(name)
            .map_err(|()| wrong(format!("{name} of provenance is no integer of at least 0")))
    };
    let column = |name: &str| match find(fields, name) {
        None => Ok(Vec::new()),
        Some(Value::Texts(texts)) => Ok(texts.clone()),
        Some(_) => Err(wrong(format!("{name} of provenance is no list of texts"))),
    };
    Ok(Provenance {
        n_votes: number("n_votes")?,
        n_labels: number("n_labels")?,
        judge: column("judge")?,
        template: column("template")?,
        temperature: column("temperature")?,
        task: column("task")?,
    })
}

/// What is known, as the last field of the file.
fn text_of(provenance: &Provenance) -> String {
    let numbers = provenance.numbers();
    let numbers =
        numbers.iter().filter_map(|(name, value)| Some((name, value.as_ref()?.to_string())));
    let columns = provenance.columns();
    let columns = columns.iter().filter(|(_, texts)| !texts.is_empty()).map(|(name, texts)| {
        let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        (name, format!("[{}]", quoted.join(", ")))
    });
    let lines: Vec<String> =
        numbers.chain(columns).map(|(name, value)| format!("\n    \"{name}\": {value}")).collect();
    format!(",\n  \"{PROVENANCE}\": {{{}\n  }}", lines.join(","))
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.extend(format!("\\u{:04x}", u32::from(c)).chars()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn wrong(message: impl Into<String>) -> Error {
    Error::ModelText { message: message.into() }
}

/// Reads a flat object from left to right.
struct Reader<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl Reader<'_> {
    fn file(mut self) -> Result<Fields, Error> {
        let fields = self.object(true)?;
        if self.rest.is_empty() { Ok(fields) } else { Err(self.wanted("the end")) }
    }

    fn object(&mut self, is_whole: bool) -> Result<Fields, Error> {
        let mut fields = Vec::new();
        self.expect('{')?;
        if !self.take('}') {
            loop {
                let key = self.text()?;
                self.expect(':')?;
                fields.push((key, self.value(is_whole)?));
                if !self.take(',') {
                    break;
                }
            }
            self.expect('}')?;
        }
        Ok(fields)
    }

    /// A value of the whole file, which may be an object, or of an object within, a list of texts.
    fn value(&mut self, is_of_file: bool) -> Result<Value, Error> {
        match self.rest.chars().next() {
            Some('"') => self.text().map(Value::Text),
            Some('{') if is_of_file => self.object(false).map(Value::Object),
            Some('[') if !is_of_file => self.texts().map(Value::Texts),
            _ => self.number().map(Value::Number),
        }
    }

    fn texts(&mut self) -> Result<Vec<String>, Error> {
        let mut texts = Vec::new();
        self.expect('[')?;
        if !self.take(']') {
            loop {
                texts.push(self.text()?);
                if !self.take(',') {
                    break;
                }
            }
            self.expect(']')?;
        }
        Ok(texts)
    }

    fn wanted(&self, what: &str) -> Error {
        let place = self.whole.len() - self.rest.len();
        wrong(format!("not a flat JSON object: want {what} at byte {place}"))
    }

    /// Steps over a character and the blanks behind it, if it comes next.
    fn take(&mut self, character: char) -> bool {
        self.rest.strip_prefix(character).is_some_and(|rest| {
            self.rest = rest.trim_start_matches(BLANK);
            true
        })
    }

    fn expect(&mut self, character: char) -> Result<(), Error> {
        if self.take(character) { Ok(()) } else { Err(self.wanted(&format!("'{character}'"))) }
    }

    fn text(&mut self) -> Result<String, Error> {
        let mut rest = self.rest.strip_prefix('"').ok_or_else(|| self.wanted("a text"))?.chars();
        let mut text = String::new();
        loop {
            match rest.next() {
                Some('"') => break,
                Some('\\') => {
                    let escaped = escaped(&mut rest).ok_or_else(|| self.wanted("a text"))?;
                    text.push(escaped);
                }
                Some(c) if !c.is_ascii_control() => text.push(c),
                _ => return Err(self.wanted("a text that ends")),
            }
        }
        self.rest = rest.as_str().trim_start_matches(BLANK);
        Ok(text)
    }

    fn number(&mut self) -> Result<f64, Error> {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c));
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        if !is_number(number) {
            return Err(self.wanted("a text or a number"));
        }
        let value = number.parse().map_err(|_| self.wanted("a number"))?;
        self.rest = rest.trim_start_matches(BLANK);
        Ok(value)
    }
}

/// The character that an escape stands for, after its backslash.
fn escaped(rest: &mut Chars<'_>) -> Option<char> {
    Some(match rest.next()? {
        c @ ('"' | '\\' | '/') => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => match hexadecimal(rest)? {
            high @ 0xd800..0xdc00 if rest.next()? == '\\' && rest.next()? == 'u' => {
                let low = hexadecimal(rest)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)?
            }
            code => char::from_u32(code)?,
        },
        _ => return None,
    })
}

fn hexadecimal(rest: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(16 * number + rest.next()?.to_digit(16)?))
}

/// Whether a text is a number of JSON's grammar, which is narrower than Rust's.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (decimal, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match decimal.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (decimal, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent
            .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `DavidsonModel(0.1, -1e-300, 2, 0.5, 1e+22).save` writes.
    const PYTHON: &str = "{\n  \"format\": \"btdagg.davidson\",\n  \"version\": 1,\n  \"beta\": 0.1,\n  \"eta0\": -1e-300,\n  \"gamma\": 2.0,\n  \"alpha\": 0.5,\n  \"kappa\": 1e+22\n}\n";

    #[test]
    fn a_file_of_python_is_read_and_every_bit_kept() {
        let model = Model::new(0.1, -1e-300, 2.0).unwrap().with_smoothing(0.5, 1e22).unwrap();
        assert_eq!(Model::from_json(PYTHON).unwrap(), model);
        for (beta, eta0) in [(f64::MAX, f64::MIN_POSITIVE), (1.0 / 3.0, -0.0), (5e-324, 700.1)] {
            let model = Model::new(beta, eta0, 1e16).unwrap();
            assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
        }
    }

    /// What Python writes of a model that knows what it was fitted to.
    const KNOWING: &str = "{\n  \"format\": \"btdagg.davidson\",\n  \"version\": 1,\n  \"beta\": 0.1,\n  \"eta0\": -1e-300,\n  \"gamma\": 2.0,\n  \"alpha\": 0.5,\n  \"kappa\": 1e+22,\n  \"provenance\": {\n    \"n_votes\": 8,\n    \"n_labels\": 50,\n    \"judge\": [\n      \"caf\\u00e9 \\ud83d\\ude00\",\n      \"a \\\"b\\\" \\\\ \\n\"\n    ],\n    \"temperature\": [\n      \"0.5\"\n    ]\n  }\n}\n";

    #[test]
    fn what_a_model_was_fitted_to_is_kept() {
        let model = Model::from_json(KNOWING).unwrap();
        let wanted = Provenance {
            n_votes: Some(8),
            n_labels: Some(50),
            judge: vec!["café 😀".into(), "a \"b\" \\ \n".into()],
            temperature: vec!["0.5".into()],
            ..Provenance::default()
        };
        assert_eq!(model.provenance(), Some(&wanted));
        assert_eq!(Model::from_json(&model.to_json()).unwrap().provenance(), Some(&wanted));
        assert_eq!(model.compile(8).model().provenance(), Some(&wanted));
        assert_eq!(model.clone().with_smoothing(1.0, 2.0).unwrap().provenance(), Some(&wanted));
        // It is no part of what the model says.
        assert_eq!(model, Model::from_json(PYTHON).unwrap());
        assert_eq!(Model::from_json(PYTHON).unwrap().provenance(), None);
        let empty = Model::new(1.0, 1.0, 1.0).unwrap().with_provenance(Provenance::default());
        let found = Model::from_json(&empty.to_json()).unwrap();
        assert_eq!(found.provenance(), Some(&Provenance::default()));
    }

    #[test]
    fn wrong_provenance_is_named() {
        let with = |from: &str, to: &str| {
            assert!(KNOWING.contains(from), "{from}");
            Model::from_json(&KNOWING.replace(from, to)).unwrap_err().to_string()
        };
        assert_eq!(with(": 8,", ": -8,"), "n_votes of provenance is no integer of at least 0");
        assert_eq!(with("50", "\"50\""), "n_labels of provenance is no integer of at least 0");
        assert_eq!(
            with("\"judge\": [", "\"judge\": 1, \"task\": ["),
            "judge of provenance is no list of texts"
        );
        assert!(
            with("judge", "judges").starts_with(
                "unknown field \"judges\" of provenance, want n_votes, n_labels, judge,"
            )
        );
        assert!(with("\\u00e9", "\\ud83d").contains("want a text at byte"));
        assert!(with("\\u00e9", "\\x").contains("want a text at byte"));
        assert!(with("[\n      \"0.5\"\n    ]", "[0.5]").contains("want a text at byte"));
        assert!(with("50", "{}").contains("want a text or a number at byte"));
        let one = KNOWING.replace("{\n    \"n_votes\"", "1, \"x\": {\n    \"n_votes\"");
        assert!(Model::from_json(&one).unwrap_err().to_string().starts_with("unknown field \"x\""));
        let cut = |at: usize| KNOWING.get(..at).map(Model::from_json);
        assert!((0..KNOWING.len() - 2).all(|at| matches!(cut(at), Some(Err(_)) | None)));
        let deep = KNOWING.replace("\"0.5\"", &"[".repeat(1_000_000));
        assert!(Model::from_json(&deep).is_err());
    }

    #[test]
    fn anything_else_is_named() {
        let error = |text: &str| Model::from_json(text).unwrap_err().to_string();
        let with = |from: &str, to: &str| error(&PYTHON.replace(from, to));
        assert_eq!(error(""), "not a flat JSON object: want '{' at byte 0");
        assert!(error("{}").starts_with("no btdagg model, want an object with \"format\""));
        assert_eq!(with("\"version\": 1", "\"version\": 2"), "model version 2, want version 1");
        assert_eq!(with("\"version\": 1,", ""), "no model version, want version 1");
        assert_eq!(with("\"beta\": 0.1", "\"beta\": \"0.1\""), "beta is no number");
        assert_eq!(with("  \"beta\": 0.1,\n", ""), "no field \"beta\"");
        assert!(with("\"beta\"", "\"bet\"").starts_with("unknown field \"bet\", want beta, "));
        assert_eq!(with("0.5", "0"), "alpha is 0, want a finite number above 0");
        assert_eq!(with("0.1", "1e999"), "beta is inf, want a finite number");
        for bad in ["NaN", "inf", "+1", "01", ".5", "1.", "1e", "true", "null", "[1]", "0x1"] {
            let message = with("0.1", bad);
            assert!(message.contains("want a text or a number at byte 59"), "{bad}: {message}");
        }
        assert!(with("\"beta\"", &format!("\"{}\"", "b".repeat(1_000_000))).len() < 200);
        // Of a name that is there twice the last counts, whatever it is.
        let twice = PYTHON.replace("\"beta\": 0.1", "\"beta\": \"x\", \"beta\": 0.1");
        assert_eq!(Model::from_json(&twice).unwrap(), Model::from_json(PYTHON).unwrap());
        assert_eq!(with("2.0", "2.0, \"gamma\": \"2\""), "gamma is no number");
        // Neither many digits nor many fields take long.
        let long = format!("0.1{}", "0".repeat(1_000_000));
        assert!(Model::from_json(&PYTHON.replace("0.1", &long)).is_ok());
        assert_eq!(with("0.1", &"9".repeat(1_000_000)), "beta is inf, want a finite number");
        let gamma = "\"gamma\": 2.0";
        let many = PYTHON.replace(gamma, &vec![gamma; 100_000].join(","));
        assert!(Model::from_json(&many).is_ok());
        let cut = |at: usize| PYTHON.get(..at).map(Model::from_json);
        assert!((0..PYTHON.len() - 2).all(|at| matches!(cut(at), Some(Err(_)))));
        assert!(error(&format!("{PYTHON}x")).contains("want the end"));
    }
}
