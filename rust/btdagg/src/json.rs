//! The versioned JSON of models, panels and stopping rules: what Python's `save` writes.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::same_length;
use crate::grades::Grades;
use crate::panel::Judge;
use crate::stopping::{Criterion, Predictive, StoppingRule};
use crate::{Covariate, Error, Model, Panel, Parameters, Provenance};

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
    /// [`Error::Input`] if the text is no such JSON or of another version, or a number is out of
    /// range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Object::of_file(text, "btdagg.davidson")?.model()
    }

    /// The same of a model that weighs covariates, with these.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_covariates_from_json(text: &str) -> Result<(Self, Vec<Covariate>), Error> {
        let mut file = Object::of_file(text, "btdagg.davidson")?;
        let covariates = file.take_covariates()?;
        Ok((file.model()?, covariates))
    }

    /// The model as versioned JSON; floats keep every bit.
    pub fn to_json(&self) -> String {
        let (alpha, kappa) = self.smoothing();
        let Parameters { beta, eta0, gamma } = self.parameters();
        let provenance = self.provenance().map(text_of).unwrap_or_default();
        let usual = |votes: f64| format!(",\n  \"usual_votes\": {votes}");
        let usual = self.usual_votes().map(usual).unwrap_or_default();
        format!(
            "{{\n  \"format\": \"btdagg.davidson\",\n  \"version\": 1,\n  \"beta\": {beta:?},\n  \
             \"eta0\": {eta0:?},\n  \"gamma\": {gamma:?},\n  \"alpha\": {alpha:?},\n  \
             \"kappa\": {kappa:?}{usual}{provenance}\n}}"
        )
    }
}

impl Panel {
    /// The panel that Python's `PanelModel.save` wrote.
    ///
    /// # Errors
    /// [`Error::Input`] if the text is no such JSON or of another version, or a number is out of
    /// range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::of_file(&Object::of_file(text, "btdagg.panel")?)
    }

    /// The same of a panel that weighs covariates, with these.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_covariates_from_json(text: &str) -> Result<(Self, Vec<Covariate>), Error> {
        let mut file = Object::of_file(text, "btdagg.panel")?;
        let covariates = file.take_covariates()?;
        Ok((Self::of_file(&file)?, covariates))
    }

    fn of_file(file: &Object) -> Result<Self, Error> {
        file.require_votes_alone()?;
        let judges: Vec<String> = file.get("judges", "a list of texts")?;
        let unheard: Vec<String> = file.get("unheard", "a list of texts")?;
        let beta: Vec<f64> = file.get("beta", "a list of numbers")?;
        let gamma: Vec<f64> = file.get("gamma", "a list of numbers")?;
        let usual: Option<Vec<f64>> = file.get("usual_votes", "a list of numbers, or null")?;
        same_length("beta", beta.len(), judges.len(), "judges")?;
        same_length("gamma", gamma.len(), judges.len(), "judges")?;
        let judges = judges.into_iter().zip(beta.into_iter().zip(gamma));
        let judges = judges.map(|(name, (beta, gamma))| {
            let is_heard = !unheard.contains(&name);
            Judge { name, beta, gamma, is_heard, usual_votes: None }
        });
        let mut judges: Vec<Judge> = judges.collect();
        if let Some(usual) = usual {
            same_length("usual_votes", usual.len(), judges.len(), "judges")?;
            let both = judges.iter_mut().zip(usual);
            both.for_each(|(judge, usual)| judge.usual_votes = Some(usual));
        }
        let panel = Self::new(judges, file.number("eta0")?)?
            .with_smoothing(file.number("alpha")?, file.number("kappa")?)?;
        Ok(panel.with_provenance(file.provenance()?))
    }
}

impl Grades {
    /// The model that Python's `GradeModel.save` wrote, with its covariates.
    ///
    /// # Errors
    /// [`Error::Input`] if the text is no such JSON or of another version, or a number is out of
    /// range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let mut file = Object::of_file(text, "btdagg.grades")?;
        let covariates = file.take_covariates()?;
        let points = |name: &'static str, path| -> Result<Vec<f64>, Error> {
            let scale = Object { fields: file.get(name, "an object")?, path };
            scale.get("points", "a list of numbers")
        };
        let (votes, labels) = (points("scale", "scale.")?, points("label_scale", "label_scale.")?);
        let cuts: Vec<f64> = file.get("cuts", "a list of numbers")?;
        Ok(Self::new(&votes, &labels, file.number("beta")?, &cuts)?.with_covariates(covariates))
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
    /// assert_eq!(rule.votes_to_ask(Counts::whole(0, 0, 4))?, 0);
    /// # Ok::<(), btdagg::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] if the text is no such JSON or of another version, or a number is out of
    /// range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let file = Object::of_file(text, "btdagg.stopping-rule")?;
        let kinds = "lossless, risk-bounded or cost-optimal";
        let kind: String = file.get("kind", kinds)?;
        let criterion = match kind.as_str() {
            "lossless" => Criterion::Lossless,
            "risk-bounded" => Criterion::RiskBounded { epsilon: file.number("epsilon")? },
            "cost-optimal" => Criterion::CostOptimal { price: file.number("price")? },
            _ => return Err(Error::value("kind", kind, kinds)),
        };
        let components: Option<Vec<(f64, [f64; 3])>> =
            file.get("votes", "pairs of a weight and three numbers, or null")?;
        let predictive = components.map(|components| Predictive::new(&components)).transpose()?;
        let model = Object { fields: file.get("model", "an object")?, path: "model." };
        let strength = model.fields.get("provenance").and_then(|known| known.get("strength"));
        let strengths: Option<bool> = file.get("strengths", "true, false or null")?;
        let has_strength = strengths.unwrap_or_else(|| strength.is_some_and(|kind| kind != "none"));
        let [n, step] = [file.count("n")?, file.count("step")?].map(crate::index::index);
        let rule = Self::new(model.model()?, n, step, criterion, predictive.as_ref())?;
        if has_strength { rule.of_strengths() } else { Ok(rule) }
    }
}

/// The fields of an object, and where it is in the file.
struct Object {
    fields: Map<String, Value>,
    path: &'static str,
}

impl Object {
    /// The object of a file of that format, and of the version that is read.
    fn of_file(text: &str, format: &str) -> Result<Self, Error> {
        let fields: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Error::value("file", format!("not JSON: {error}"), "an object"))?;
        let file = Self { fields, path: "" };
        for (name, expected) in [("format", Value::from(format)), ("version", Value::from(1))] {
            let value: Value = file.get(name, &expected.to_string())?;
            if value != expected {
                return Err(wrong(name, &value, &expected.to_string()));
            }
        }
        Ok(file)
    }

    /// A field as a type.
    fn get<T: DeserializeOwned>(&self, name: &str, expected: &str) -> Result<T, Error> {
        let value = self.fields.get(name).unwrap_or(&Value::Null);
        T::deserialize(value).map_err(|_| wrong(&format!("{}{name}", self.path), value, expected))
    }

    fn number(&self, name: &str) -> Result<f64, Error> {
        self.get(name, "a number")
    }

    fn count(&self, name: &str) -> Result<u64, Error> {
        self.get(name, "an integer of at least 0")
    }

    /// The covariates, which are no field of what is left.
    fn take_covariates(&mut self) -> Result<Vec<Covariate>, Error> {
        let listed: Option<Vec<Map<String, Value>>> = self.get("covariates", "a list, or null")?;
        self.fields.remove("covariates");
        let covariate = |fields| {
            let of = Self { fields, path: "covariates." };
            let scale = of.number("scale")?;
            if scale <= 0.0 {
                return Err(Error::value("covariates.scale", scale, "a number above 0"));
            }
            let name = of.get("name", "a text")?;
            Ok(Covariate {
                name,
                weight: of.number("weight")?,
                scale,
                centre: of.number("centre")?,
            })
        };
        listed.unwrap_or_default().into_iter().map(covariate).collect()
    }

    fn require_votes_alone(&self) -> Result<(), Error> {
        let Some(covariates) = self.fields.get("covariates") else { return Ok(()) };
        let expected = "none; with_covariates_from_json reads them";
        Err(wrong(&format!("{}covariates", self.path), covariates, expected))
    }

    fn model(&self) -> Result<Model, Error> {
        self.require_votes_alone()?;
        let model = Model::new(self.number("beta")?, self.number("eta0")?, self.number("gamma")?)?
            .with_smoothing(self.number("alpha")?, self.number("kappa")?)?
            .with_usual_votes(self.get("usual_votes", "a number or null")?)?;
        Ok(model.with_provenance(self.provenance()?))
    }

    fn provenance(&self) -> Result<Option<Provenance>, Error> {
        let Some(fields) = self.get("provenance", "an object")? else { return Ok(None) };
        let object = Self { fields, path: "provenance." };
        let count = |name| object.get(name, "an integer of at least 0");
        let texts = |name| -> Result<Vec<String>, Error> {
            Ok(object.get::<Option<_>>(name, "a list of texts")?.unwrap_or_default())
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

fn wrong(name: &str, value: &Value, expected: &str) -> Error {
    let text = value.to_string();
    let mut value: String = text.chars().take(SHOWN).collect();
    if value.len() < text.len() {
        value.push('…');
    }
    Error::value(name.to_owned(), value, expected.to_owned())
}

/// What is known, as the last field of the file.
fn text_of(provenance: &Provenance) -> String {
    let Provenance { n_votes, n_labels, judge, template, temperature, task } = provenance;
    let texts = |texts: &[String]| (!texts.is_empty()).then(|| Value::from(texts));
    let fields = [
        ("n_votes", n_votes.map(Value::from)),
        ("n_labels", n_labels.map(Value::from)),
        ("judge", texts(judge)),
        ("template", texts(template)),
        ("temperature", texts(temperature)),
        ("task", texts(task)),
    ];
    let lines = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let lines: Vec<String> =
        lines.map(|(name, value)| format!("\n    \"{name}\": {value}")).collect();
    format!(",\n  \"provenance\": {{{}\n  }}", lines.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;

    /// What Python's `DavidsonModel.save` writes of a model that knows what it was fitted to.
    const PYTHON: &str = "{\n  \"format\": \"btdagg.davidson\",\n  \"version\": 1,\n  \"beta\": 0.1,\n  \"eta0\": -1e-300,\n  \"gamma\": 2.0,\n  \"alpha\": 0.5,\n  \"kappa\": 1e+22,\n  \"provenance\": {\n    \"n_votes\": 8,\n    \"n_labels\": 50,\n    \"judge\": [\n      \"caf\\u00e9 \\ud83d\\ude00\",\n      \"a \\\"b\\\" \\\\ \\n\"\n    ],\n    \"temperature\": [\n      \"0.5\"\n    ]\n  }\n}\n";

    #[test]
    fn a_file_of_python_is_read_and_every_bit_kept() {
        let model = Model::new(0.1, -1e-300, 2.0).unwrap().with_smoothing(0.5, 1e22).unwrap();
        let read = Model::from_json(PYTHON).unwrap();
        assert_eq!(read, model);
        let provenance = Provenance {
            n_votes: Some(8),
            n_labels: Some(50),
            judge: vec!["café 😀".into(), "a \"b\" \\ \n".into()],
            temperature: vec!["0.5".into()],
            ..Provenance::default()
        };
        assert_eq!(read.provenance(), Some(&provenance));
        assert_eq!(Model::from_json(&read.to_json()).unwrap().provenance(), Some(&provenance));
        assert_eq!(Model::from_json(&model.to_json()).unwrap().provenance(), None);
        for (beta, eta0) in [(f64::MAX, f64::MIN_POSITIVE), (1.0 / 3.0, -0.0), (5e-324, 700.1)] {
            let model = Model::new(beta, eta0, 1e16).unwrap();
            assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
        }
    }

    #[test]
    fn errors_name_the_field() {
        let with = |from: &str, to: &str| {
            assert!(PYTHON.contains(from), "{from}");
            Model::from_json(&PYTHON.replace(from, to)).unwrap_err().to_string()
        };
        for (from, to, message) in [
            (PYTHON, "", "file is not JSON: EOF"),
            ("\"alpha\"", "\"covariates\": [], \"alpha\"", "covariates is [], expected none"),
            ("btdagg.davidson", "x", "format is \"x\", expected \"btdagg.davidson\""),
            ("\"version\": 1", "\"version\": 2", "version is 2, expected 1"),
            ("\"version\": 1,", "", "version is null, expected 1"),
            ("\"beta\": 0.1,", "", "beta is null, expected a number"),
            ("0.1", "[1]", "beta is [1], expected a number"),
            ("0.1", "NaN", "file is not JSON: expected value at line 4 column 11"),
            ("0.1", "1e999", "file is not JSON: number out of range at line 4 column 15"),
            ("\"alpha\": 0.5", "\"alpha\": 0", "alpha is 0, expected a finite number above 0"),
            (": 8,", ": -8,", "provenance.n_votes is -8, expected an integer of at least 0"),
            ("[\n      \"0.5\"\n    ]", "[0.5]", "provenance.temperature is [0.5], expected a"),
        ] {
            let error = with(from, to);
            assert!(error.starts_with(message), "{error}");
        }
        let panel = r#"{"format": "btdagg.panel", "version": 1, "covariates": [0]}"#;
        let error = Panel::from_json(panel).unwrap_err().to_string();
        assert!(error.starts_with("covariates is [0], expected none"), "{error}");
        let deep = PYTHON.replace("\"0.5\"", &"[".repeat(1_000_000));
        assert!(Model::from_json(&deep).is_err());
        assert!(with("0.1", &format!("\"{}\"", "b".repeat(1_000_000))).len() < 200);
        let cut = |at: usize| PYTHON.get(..at).map(Model::from_json);
        assert!((0..PYTHON.len() - 2).all(|at| matches!(cut(at), Some(Err(_)) | None)));
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
        let lossless =
            [("cost-optimal", "lossless"), ("1.2", "1.8"), ("0.5", "1.5"), (": 8", ": 6")]
                .into_iter()
                .fold(RULE.to_owned(), |text, (from, to)| text.replace(from, to));
        let margin = r#""kappa": 1.0, "provenance": {"strength": "margin"}}"#;
        let strong = lossless.replace(r#""kappa": 1.0}"#, margin);
        let said = lossless.replace(r#""n": 6"#, r#""strengths": true, "n": 6"#);
        let stops = |text| StoppingRule::from_json(text)?.stops(Counts::whole(0, 0, 4));
        assert_eq!((stops(&lossless), stops(&strong)), (Ok(true), Ok(false)));
        assert_eq!(stops(&said), Ok(false));
        let strong = strong.replace("lossless", "cost-optimal");
        let error = StoppingRule::from_json(&strong).unwrap_err().to_string();
        assert!(error.ends_with("lossless, the only rule for votes with strength"), "{error}");
        let of_panel =
            |from, to| Panel::from_json(&PANEL.replace(from, to)).unwrap_err().to_string();
        let of_rule =
            |from, to| StoppingRule::from_json(&RULE.replace(from, to)).unwrap_err().to_string();
        for (error, message) in [
            (of_panel("[1.0, 0.4]", "[1.0]"), "beta has 1 rows, expected 2 as in judges"),
            (of_panel("[1.0, 0.4]", "[1.0, -0.4]"), "beta is -0.4, expected a number of at least"),
            (of_panel("\"unheard\"", "\"heard\""), "unheard is null, expected a list of texts"),
            (of_rule("cost-optimal", "x"), "kind is x, expected lossless, risk-bounded or"),
            (of_rule("\"n\": 8", "\"n\": 7"), "n is 7, expected a multiple of the step 2"),
            (of_rule("\"n\": 8", "\"n\": 8.5"), "n is 8.5, expected an integer of at least 0"),
            (of_rule("[0.8, 0.4, 0.8]", "[0.8, 0.4]"), "votes is [[1.0,[0.8,0.4]]], expected pa"),
            (of_rule("\"beta\": 1.2, ", ""), "model.beta is null, expected a number"),
        ] {
            assert!(error.starts_with(message), "{error}");
        }
    }
}
