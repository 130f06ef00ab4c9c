//! The versioned JSON of a model: what Python's `DavidsonModel.save` writes and `load` reads.
//!
//! The file is one flat object of two texts and numbers, so a small reader of just that takes the
//! place of a dependency.

use crate::{Error, Model};

const FORMAT: &str = "btdagg.davidson";
const VERSION: f64 = 1.0;
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
        let fields = Reader { rest: text.trim_start_matches(BLANK), whole: text }.object()?;
        // Of a name that is there twice the last counts, as in Python.
        let find = |name: &str| fields.iter().rev().find(|(key, _)| key == name);
        if !matches!(find("format"), Some((_, Value::Text(format))) if format == FORMAT) {
            return Err(wrong(format!(
                "no btdagg model, want an object with \"format\": \"{FORMAT}\""
            )));
        }
        match find("version") {
            Some((_, Value::Number(version))) if *version == VERSION => {}
            Some((_, Value::Number(version))) => {
                return Err(wrong(format!("model version {version}, want version {VERSION}")));
            }
            _ => return Err(wrong(format!("no model version, want version {VERSION}"))),
        }
        let known = |key: &str| NUMBERS.contains(&key) || ["format", "version"].contains(&key);
        if let Some((key, _)) = fields.iter().find(|(key, _)| !known(key)) {
            let shown: String = key.chars().take(60).collect();
            return Err(wrong(format!("unknown field {shown:?}, want {}", NUMBERS.join(", "))));
        }
        let mut values = [0.0; 5];
        for (value, name) in values.iter_mut().zip(NUMBERS) {
            match find(name) {
                Some((_, Value::Number(number))) => *value = *number,
                Some(_) => return Err(wrong(format!("{name} is no number"))),
                None => return Err(wrong(format!("no field {name:?}"))),
            }
        }
        let [beta, eta0, gamma, alpha, kappa] = values;
        Self::new(beta, eta0, gamma)?.with_smoothing(alpha, kappa)
    }

    /// The model as versioned JSON; floats keep every bit.
    #[must_use]
    pub fn to_json(&self) -> String {
        let p = self.parameters();
        let (alpha, kappa) = self.smoothing();
        let numbers = NUMBERS.iter().zip([p.beta, p.eta0, p.gamma, alpha, kappa]);
        let lines: Vec<String> =
            numbers.map(|(name, value)| format!(",\n  \"{name}\": {value:?}")).collect();
        format!("{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION}{}\n}}", lines.concat())
    }
}

const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

enum Value {
    Text(String),
    Number(f64),
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
    fn object(mut self) -> Result<Vec<(String, Value)>, Error> {
        let mut fields = Vec::new();
        self.expect('{')?;
        if !self.take('}') {
            loop {
                let key = self.text()?;
                self.expect(':')?;
                let value = if self.rest.starts_with('"') {
                    Value::Text(self.text()?)
                } else {
                    Value::Number(self.number()?)
                };
                fields.push((key, value));
                if !self.take(',') {
                    break;
                }
            }
            self.expect('}')?;
        }
        if self.rest.is_empty() { Ok(fields) } else { Err(self.wanted("the end")) }
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

    /// A text without escapes: none of the file's names and words has one.
    fn text(&mut self) -> Result<String, Error> {
        let inside = self.rest.strip_prefix('"').ok_or_else(|| self.wanted("a text"))?;
        let end = inside.find('"').ok_or_else(|| self.wanted("a text that ends"))?;
        let (text, rest) = inside.split_at(end);
        if text.chars().any(|c| c == '\\' || c.is_control()) {
            return Err(self.wanted("a text without escapes"));
        }
        self.rest = rest;
        self.expect('"')?;
        Ok(text.to_owned())
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
