//! The versioned JSON of models, panels and stopping rules: what Python's `save` writes.

use serde_json::{Map, Value};

use crate::counts::CountValue;
use crate::panel::Judge;
use crate::stopping::{Criterion, Predictive, StoppingRule};
use crate::{Error, Model, Panel, Provenance};

const NUMBERS: [&str; 5] = ["beta", "eta0", "gamma", "alpha", "kappa"];
const FORMAT: &str = "btdagg.davidson";
const VERSION: u64 = 1;
const PROVENANCE: &str = "provenance";

/// Characters of a value that a message shows.
const SHOWN: usize = 60;

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
    /// [`Error::File`] if the text is no such JSON or of another version; [`Error::Parameter`] or
    /// [`Error::Smoothing`] if a number is out of range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Object::of_file(&parse(text)?, FORMAT, "model")?.model()
    }

    /// The model as versioned JSON; floats keep every bit.
    #[must_use]
    pub fn to_json(&self) -> String {
        let p = self.parameters();
        let (alpha, kappa) = self.smoothing();
        let numbers = NUMBERS.iter().zip([p.beta, p.eta0, p.gamma, alpha, kappa]);
        let lines: Vec<String> =
            numbers.map(|(name, value)| format!(",\n  \"{name}\": {value:?}")).collect();
        let lines = lines.concat();
        let provenance = self.provenance().map(text_of).unwrap_or_default();
        format!("{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION}{lines}{provenance}\n}}")
    }
}

impl Panel {
    /// The panel that Python's `PanelModel.save` wrote.
    ///
    /// # Errors
    /// [`Error::File`] if the text is no such JSON or of another version; as [`Panel::new`] and
    /// [`Panel::with_smoothing`] if a number is out of range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let file = parse(text)?;
        let file = Object::of_file(&file, "btdagg.panel", "panel")?;
        let names = ["judges", "beta", "eta0", "gamma", "alpha", "kappa", "unheard"];
        file.check_names(&names, &[PROVENANCE])?;
        let (judges, unheard) = (file.texts("judges")?, file.texts("unheard")?);
        if let Some(name) = unheard.iter().find(|name| !judges.contains(name)) {
            return Err(file.wrong("unheard", &Value::from(name.as_str()), "a name of judges"));
        }
        let (beta, gamma) = (file.numbers("beta")?, file.numbers("gamma")?);
        for (name, numbers) in [("beta", &beta), ("gamma", &gamma)] {
            let (got, wanted) = (numbers.len(), judges.len());
            if got != wanted {
                return Err(Error::Length { name, got, wanted, other: "judges" });
            }
        }
        let judges = judges.into_iter().zip(beta.into_iter().zip(gamma));
        let judges = judges.map(|(name, (beta, gamma))| {
            let is_heard = !unheard.contains(&name);
            Judge { name, beta, gamma, is_heard }
        });
        let panel = Self::new(judges.collect(), file.number("eta0")?)?
            .with_smoothing(file.number("alpha")?, file.number("kappa")?)?;
        Ok(match file.provenance()? {
            Some(provenance) => panel.with_provenance(provenance),
            None => panel,
        })
    }
}

impl StoppingRule {
    /// The rule that Python's `StoppingRule.save` wrote, with its model.
    ///
    /// ```
    /// use btdagg::{Counts, Label};
    /// use btdagg::stopping::StoppingRule;
    ///
    /// let file = r#"{"format": "btdagg.stopping-rule", "version": 1, "kind": "risk-bounded",
    ///     "n": 8, "step": 2, "epsilon": 0.05, "price": null, "votes": [[1.0, [0.8, 0.4, 0.8]]],
    ///     "model": {"beta": 1.2, "eta0": 0.5, "gamma": 0.8, "alpha": 1.0, "kappa": 1.0}}"#;
    /// let rule = StoppingRule::from_json(file)?;
    /// assert_eq!(rule.follow(&[1, 1, 1, 1, 1, -1, 1, 0])?, (4, Label::Plus));
    /// assert_eq!(rule.votes_to_ask(Counts::new(0, 0, 4))?, 0);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] if the text is no such JSON or of another version; as [`StoppingRule::new`]
    /// and [`Model::from_json`] if a number is out of range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let file = parse(text)?;
        let file = Object::of_file(&file, "btdagg.stopping-rule", "stopping rule")?;
        file.check_names(&["kind", "n", "step", "epsilon", "price", "votes", "model"], &[])?;
        let criterion = match file.text("kind")? {
            "lossless" => Criterion::Lossless,
            "risk-bounded" => Criterion::RiskBounded { epsilon: file.number("epsilon")? },
            "cost-optimal" => Criterion::CostOptimal { price: file.number("price")? },
            _ => return Err(file.expected("kind", "lossless, risk-bounded or cost-optimal")),
        };
        for (name, is_used) in [
            ("epsilon", matches!(criterion, Criterion::RiskBounded { .. })),
            ("price", matches!(criterion, Criterion::CostOptimal { .. })),
        ] {
            if !(is_used || file.is_null(name)) {
                return Err(file.expected(name, "null for a rule of this kind"));
            }
        }
        let predictive = match file.get("votes")? {
            Value::Null => None,
            Value::Array(components) => {
                let components = components.iter().map(component).collect::<Option<Vec<_>>>();
                let components = components
                    .ok_or_else(|| file.expected("votes", "pairs of a weight and three numbers"))?;
                Some(Predictive::new(&components)?)
            }
            _ => return Err(file.expected("votes", "a list or null")),
        };
        let Value::Object(model) = file.get("model")? else {
            return Err(file.expected("model", "an object"));
        };
        let model = Object { fields: model, path: "model.".into() }.model()?;
        let [n, step] = [file.size("n")?, file.size("step")?];
        Self::new(model, n, step, criterion, predictive.as_ref())
    }
}

fn component(value: &Value) -> Option<(f64, [f64; 3])> {
    let [weight, alpha] = value.as_array()?.as_slice() else { return None };
    let [minus, tie, plus] = alpha.as_array()?.as_slice() else { return None };
    Some((weight.as_f64()?, [minus.as_f64()?, tie.as_f64()?, plus.as_f64()?]))
}

fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| wrong(format!("not JSON: {error}")))
}

fn wrong(message: String) -> Error {
    Error::File { message }
}

/// A text cut to what a message shows.
fn shown(text: &str) -> String {
    if text.chars().nth(SHOWN).is_none() {
        return text.into();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

/// The fields of an object, and where it is in the file.
struct Object<'a> {
    fields: &'a Map<String, Value>,
    path: String,
}

impl<'a> Object<'a> {
    /// The file, if it is of that format and of the version that is read.
    fn of_file(file: &'a Value, format: &str, what: &str) -> Result<Self, Error> {
        let fields = file.as_object().filter(|fields| {
            fields.get("format").is_some_and(|found| found.as_str() == Some(format))
        });
        let fields = fields.ok_or_else(|| {
            wrong(format!("no btdagg {what}, expected an object with \"format\": \"{format}\""))
        })?;
        match fields.get("version") {
            Some(version) if version.as_f64() == Some(1.0) => {
                Ok(Self { fields, path: String::new() })
            }
            Some(version) => {
                let version = shown(&version.to_string());
                Err(wrong(format!("{what} version {version}, expected version {VERSION}")))
            }
            None => Err(wrong(format!("no {what} version, expected version {VERSION}"))),
        }
    }

    /// Refuses fields that are none of these.
    fn check_names(&self, names: &[&str], optional: &[&str]) -> Result<(), Error> {
        let is_known = |name: &str| {
            names.contains(&name)
                || optional.contains(&name)
                || self.path.is_empty() && ["format", "version"].contains(&name)
        };
        match self.fields.keys().find(|name| !is_known(name)) {
            Some(name) => {
                let name = shown(&format!("{}{name}", self.path));
                Err(wrong(format!("unknown field {name:?}, expected {}", names.join(", "))))
            }
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Result<&'a Value, Error> {
        self.fields.get(name).ok_or_else(|| wrong(format!("no field \"{}{name}\"", self.path)))
    }

    fn is_null(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(Value::is_null)
    }

    fn wrong(&self, name: &str, value: &Value, expected: &str) -> Error {
        wrong(format!("{}{name} is {}, expected {expected}", self.path, shown(&value.to_string())))
    }

    fn expected(&self, name: &str, expected: &str) -> Error {
        self.wrong(name, self.fields.get(name).unwrap_or(&Value::Null), expected)
    }

    /// What `read` makes of a field, or an error that says what it should be.
    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, Error> {
        read(self.get(name)?).ok_or_else(|| self.expected(name, expected))
    }

    fn number(&self, name: &str) -> Result<f64, Error> {
        self.read(name, "a number", Value::as_f64)
    }

    fn count(&self, name: &str) -> Result<u64, Error> {
        let count = |value: &Value| {
            value.as_u64().or_else(|| value.as_f64().and_then(CountValue::to_count))
        };
        self.read(name, "an integer of at least 0", count)
    }

    fn size(&self, name: &str) -> Result<usize, Error> {
        self.count(name).map(crate::index::index)
    }

    fn text(&self, name: &str) -> Result<&'a str, Error> {
        self.read(name, "a text", Value::as_str)
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, Error> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.read(name, "a list of texts", |value| value.as_array()?.iter().map(text).collect())
    }

    fn numbers(&self, name: &str) -> Result<Vec<f64>, Error> {
        let numbers = |value: &'a Value| value.as_array()?.iter().map(Value::as_f64).collect();
        self.read(name, "a list of numbers", numbers)
    }

    fn model(&self) -> Result<Model, Error> {
        self.check_names(&NUMBERS, &[PROVENANCE])?;
        let model = Model::new(self.number("beta")?, self.number("eta0")?, self.number("gamma")?)?
            .with_smoothing(self.number("alpha")?, self.number("kappa")?)?;
        Ok(match self.provenance()? {
            Some(provenance) => model.with_provenance(provenance),
            None => model,
        })
    }

    fn provenance(&self) -> Result<Option<Provenance>, Error> {
        let fields = match self.fields.get(PROVENANCE) {
            None => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(self.expected(PROVENANCE, "an object")),
        };
        let object = Self { fields, path: format!("{}{PROVENANCE}.", self.path) };
        let empty = Provenance::default();
        let names = empty.numbers().map(|(name, _)| name).into_iter();
        let names: Vec<&str> = names.chain(empty.columns().map(|(name, _)| name)).collect();
        object.check_names(&names, &[])?;
        let count = |name| fields.contains_key(name).then(|| object.count(name)).transpose();
        let texts = |name| {
            if fields.contains_key(name) { object.texts(name) } else { Ok(Vec::new()) }
        };
        Ok(Some(Provenance {
            n_votes: count("n_votes")?,
            n_labels: count("n_labels")?,
            judge: texts("judge")?,
            template: texts("template")?,
            temperature: texts("temperature")?,
            task: texts("task")?,
        }))
    }
}

impl Provenance {
    /// The numbers by their names in a model file.
    const fn numbers(&self) -> [(&'static str, Option<u64>); 2] {
        [("n_votes", self.n_votes), ("n_labels", self.n_labels)]
    }

    /// The values of columns by their names there.
    const fn columns(&self) -> [(&'static str, &Vec<String>); 4] {
        [
            ("judge", &self.judge),
            ("template", &self.template),
            ("temperature", &self.temperature),
            ("task", &self.task),
        ]
    }
}

/// What is known, as the last field of the file.
fn text_of(provenance: &Provenance) -> String {
    let numbers = provenance.numbers().into_iter();
    let numbers = numbers.filter_map(|(name, value)| Some((name, Value::from(value?))));
    let columns = provenance.columns().into_iter().filter(|(_, texts)| !texts.is_empty());
    let columns = columns.map(|(name, texts)| (name, Value::from(texts.as_slice())));
    let lines: Vec<String> =
        numbers.chain(columns).map(|(name, value)| format!("\n    \"{name}\": {value}")).collect();
    format!(",\n  \"{PROVENANCE}\": {{{}\n  }}", lines.join(","))
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
        assert_eq!(
            with(": 8,", ": -8,"),
            "provenance.n_votes is -8, expected an integer of at least 0"
        );
        assert_eq!(
            with("50", "\"50\""),
            "provenance.n_labels is \"50\", expected an integer of at least 0"
        );
        assert_eq!(
            with("\"judge\": [", "\"judge\": 1, \"task\": ["),
            "provenance.judge is 1, expected a list of texts"
        );
        assert!(with("judge", "judges").starts_with(
            "unknown field \"provenance.judges\", expected n_votes, n_labels, judge,"
        ));
        assert!(with("\\u00e9", "\\ud83d").starts_with("not JSON: "));
        assert!(with("\\u00e9", "\\x").contains("invalid escape at line 13 column"));
        assert!(
            with("[\n      \"0.5\"\n    ]", "[0.5]")
                .contains("temperature is [0.5], expected a list of")
        );
        assert!(with("50", "{}").contains("n_labels is {}, expected an integer"));
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
        assert!(error("").starts_with("not JSON: EOF"));
        assert!(error("{}").starts_with("no btdagg model, expected an object with \"format\""));
        assert_eq!(with("\"version\": 1", "\"version\": 2"), "model version 2, expected version 1");
        assert_eq!(with("\"version\": 1,", ""), "no model version, expected version 1");
        assert_eq!(
            with("\"beta\": 0.1", "\"beta\": \"0.1\""),
            "beta is \"0.1\", expected a number"
        );
        assert_eq!(with("  \"beta\": 0.1,\n", ""), "no field \"beta\"");
        assert!(with("\"beta\"", "\"bet\"").starts_with("unknown field \"bet\", expected beta, "));
        assert_eq!(with("0.5", "0"), "alpha is 0, expected a finite number above 0");
        assert_eq!(with("0.1", "1e999"), "not JSON: number out of range at line 4 column 15");
        for bad in ["NaN", "inf", "+1", "01", ".5", "1.", "1e", "0x1"] {
            let message = with("0.1", bad);
            assert!(message.starts_with("not JSON: "), "{bad}: {message}");
        }
        for bad in ["true", "null", "[1]"] {
            assert_eq!(with("0.1", bad), format!("beta is {bad}, expected a number"));
        }
        assert!(with("\"beta\"", &format!("\"{}\"", "b".repeat(1_000_000))).len() < 200);
        // Of a name that is there twice the last counts, whatever it is.
        let twice = PYTHON.replace("\"beta\": 0.1", "\"beta\": \"x\", \"beta\": 0.1");
        assert_eq!(Model::from_json(&twice).unwrap(), Model::from_json(PYTHON).unwrap());
        assert_eq!(with("2.0", "2.0, \"gamma\": \"2\""), "gamma is \"2\", expected a number");
        // Neither many digits nor many fields take long.
        let long = format!("0.1{}", "0".repeat(1_000_000));
        assert!(Model::from_json(&PYTHON.replace("0.1", &long)).is_ok());
        assert!(with("0.1", &"9".repeat(1_000_000)).starts_with("not JSON: number out of range"));
        let gamma = "\"gamma\": 2.0";
        let many = PYTHON.replace(gamma, &vec![gamma; 100_000].join(","));
        assert!(Model::from_json(&many).is_ok());
        let cut = |at: usize| PYTHON.get(..at).map(Model::from_json);
        assert!((0..PYTHON.len() - 2).all(|at| matches!(cut(at), Some(Err(_)))));
        assert!(error(&format!("{PYTHON}x")).contains("trailing characters"));
    }

    #[test]
    fn what_is_wrong_with_panels_and_rules_is_named() {
        const PANEL: &str = r#"{"format": "btdagg.panel", "version": 1, "judges": ["a", "b"],
            "beta": [1.0, 0.4], "eta0": 1.0, "gamma": [0.5, 0.2], "alpha": 1.0, "kappa": 1.0,
            "unheard": ["b"], "provenance": {"n_votes": 8}}"#;
        const RULE: &str = r#"{"format": "btdagg.stopping-rule", "version": 1,
            "kind": "cost-optimal", "n": 8, "step": 2, "epsilon": null, "price": 0.01,
            "votes": [[1.0, [0.8, 0.4, 0.8]]], "model": {"beta": 1.2, "eta0": 0.5, "gamma": 0.8,
            "alpha": 1.0, "kappa": 1.0}}"#;
        let panel = Panel::from_json(PANEL).unwrap();
        assert_eq!(panel.provenance().unwrap().n_votes, Some(8));
        assert!(panel.judges()[0].is_heard && !panel.judges()[1].is_heard);
        let rule = StoppingRule::from_json(RULE).unwrap();
        assert_eq!(rule.model().parameters().beta, 1.2);
        let of_panel =
            |from, to| Panel::from_json(&PANEL.replace(from, to)).unwrap_err().to_string();
        let of_rule =
            |from, to| StoppingRule::from_json(&RULE.replace(from, to)).unwrap_err().to_string();
        for (found, message) in [
            (of_panel("btdagg.panel", "x"), "no btdagg panel, expected an object with"),
            (of_panel("[1.0, 0.4]", "[1.0]"), "beta has 1 rows, expected 2 as in judges"),
            (
                of_panel("[1.0, 0.4]", "[1.0, -0.4]"),
                "beta is -0.4, expected a number of at least 0",
            ),
            (of_panel("[\"b\"]", "[\"c\"]"), "unheard is \"c\", expected a name of judges"),
            (
                of_panel("\"unheard\"", "\"heard\""),
                "unknown field \"heard\", expected judges, beta,",
            ),
            (of_rule("cost-optimal", "x"), "kind is \"x\", expected lossless, risk-bounded or"),
            (
                of_rule("\"cost-optimal\"", "\"lossless\""),
                "price is 0.01, expected null for a rule",
            ),
            (of_rule("\"n\": 8", "\"n\": 7"), "n is 7, expected a multiple of the step 2"),
            (of_rule("\"n\": 8", "\"n\": 8.5"), "n is 8.5, expected an integer of at least 0"),
            (
                of_rule("[0.8, 0.4, 0.8]", "[0.8, 0.4]"),
                "votes is [[1.0,[0.8,0.4]]], expected pairs of",
            ),
            (of_rule("\"beta\": 1.2, ", ""), "no field \"model.beta\""),
            (of_rule("1.2", "true"), "model.beta is true, expected a number"),
        ] {
            assert!(found.starts_with(message), "{found}");
        }
    }
}
