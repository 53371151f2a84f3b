//! Checks a body against Azure's JSON Schemas and OpenAPI documents.
//!
//! It differs from a general validator in what Azure's documents need. A key that no schema names is a fault, although
//! most of them do not forbid it; `additionalProperties: false` in a part of `allOf`, which would forbid the keys of the
//! other parts, is covered by that. `oneOf` is satisfied by several, as with a string and an expression. An integer in the
//! schemas of templates may be any number.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use regex::Regex;
use serde_json::Value;

pub(crate) struct Documents {
    root: PathBuf,
    loaded: RefCell<BTreeMap<PathBuf, Rc<Value>>>,
}

/// A schema within a document.
#[derive(Clone)]
pub(crate) struct Schema {
    file: PathBuf,
    document: Rc<Value>,
    pointer: String,
}

/// The keys that a schema knows.
enum Known {
    All,
    Keys(BTreeSet<String>),
}

impl Known {
    fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Keys(keys), Self::Keys(more)) => keys.extend(more),
            (_, Self::All) => *self = Self::All,
            (Self::All, Self::Keys(_)) => {}
        }
    }
}

impl Schema {
    fn value(&self) -> &Value {
        self.document
            .pointer(&self.pointer)
            .unwrap_or_else(|| panic!("{} has no {}", self.file.display(), self.pointer))
    }

    fn at(&self, key: &str) -> Self {
        Self {
            pointer: format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1")),
            ..self.clone()
        }
    }

    fn list(&self, key: &str) -> Vec<Self> {
        let count = self.value()[key].as_array().map_or(0, Vec::len);
        (0..count).map(|index| self.at(key).at(&index.to_string())).collect()
    }
}

impl Documents {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, loaded: RefCell::default() }
    }

    /// A document below the root, and a JSON pointer in it.
    pub(crate) fn schema(&self, file: &str, pointer: &str) -> Schema {
        let file = self.root.join(file);
        Schema { document: self.load(&file), file, pointer: pointer.to_owned() }
    }

    fn load(&self, file: &Path) -> Rc<Value> {
        if let Some(document) = self.loaded.borrow().get(file) {
            return document.clone();
        }
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let document: Rc<Value> = Rc::new(serde_json::from_str(&text).unwrap());
        self.loaded.borrow_mut().insert(file.to_owned(), document.clone());
        document
    }

    fn resolve(&self, schema: &Schema, reference: &str) -> Schema {
        let (address, pointer) = reference.split_once('#').unwrap();
        let file = if address.is_empty() {
            schema.file.clone()
        } else if let Some(path) = address.strip_prefix("https://schema.management.azure.com/schemas/") {
            self.root.join("arm-schemas").join(path)
        } else {
            without_dots(&schema.file.parent().unwrap().join(address))
        };
        Schema { document: self.load(&file), file, pointer: pointer.to_owned() }
    }

    /// Everything wrong with a body; nothing if it is valid.
    pub(crate) fn faults(&self, schema: &Schema, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, "", &mut faults);
        faults
    }

    /// Checks a value, and that all its keys are known.
    fn check(&self, schema: &Schema, value: &Value, at: &str, faults: &mut Vec<String>) {
        let known = self.evaluate(schema, value, at, faults);
        if let (Value::Object(object), Known::Keys(keys)) = (value, known) {
            let unknown = object.keys().filter(|key| !keys.contains(*key));
            faults.extend(unknown.map(|key| format!("{at}/{key} is unknown")));
        }
    }

    fn evaluate(&self, schema: &Schema, value: &Value, at: &str, faults: &mut Vec<String>) -> Known {
        let rules = schema.value();
        if let Some(reference) = rules["$ref"].as_str() {
            return self.evaluate(&self.resolve(schema, reference), value, at, faults);
        }
        if rules["readOnly"] == Value::Bool(true) {
            faults.push(format!("{at} is read-only"));
        }
        let is_template = schema.file.starts_with(self.root.join("arm-schemas"));
        scalar_faults(rules, value, at, is_template, faults);
        if let Value::Array(entries) = value
            && rules.get("items").is_some()
        {
            for (index, entry) in entries.iter().enumerate() {
                self.check(&schema.at("items"), entry, &format!("{at}/{index}"), faults);
            }
        }
        let mut known = self.evaluate_keys(schema, value, at, faults);
        for part in schema.list("allOf") {
            let part = self.evaluate(&part, value, at, faults);
            // A part that only names what it requires does not open the whole.
            if matches!(part, Known::Keys(_)) {
                known.join(part);
            }
        }
        for key in ["oneOf", "anyOf"] {
            let choices = schema.list(key);
            if choices.is_empty() {
                continue;
            }
            let mut best: Vec<Vec<String>> = Vec::new();
            let mut is_valid = false;
            for choice in choices {
                let mut own = Vec::new();
                let keys = self.evaluate(&choice, value, at, &mut own);
                if own.is_empty() {
                    is_valid = true;
                    known.join(keys);
                } else {
                    best.push(own);
                }
            }
            if !is_valid {
                // What is meant is of the right type, unlike the expression that may stand for anything.
                let of_type = format!("{at} is not of type");
                best.sort_by_key(|own| (own.iter().any(|fault| fault.starts_with(&of_type)), own.len()));
                faults.extend(best.into_iter().next().unwrap_or_default());
            }
        }
        known
    }

    fn evaluate_keys(&self, schema: &Schema, value: &Value, at: &str, faults: &mut Vec<String>) -> Known {
        let rules = schema.value();
        let Value::Object(object) = value else { return Known::All };
        let empty = serde_json::Map::new();
        let properties = rules["properties"].as_object().unwrap_or(&empty);
        let mut keys = BTreeSet::new();
        for (key, entry) in object {
            let place = format!("{at}/{key}");
            if properties.contains_key(key) {
                self.check(&schema.at("properties").at(key), entry, &place, faults);
                keys.insert(key.clone());
            } else if rules["additionalProperties"].is_object() {
                self.check(&schema.at("additionalProperties"), entry, &place, faults);
                keys.insert(key.clone());
            }
        }
        for key in rules["required"].as_array().into_iter().flatten() {
            if !object.contains_key(key.as_str().unwrap()) {
                faults.push(format!("{at} has no {}", key.as_str().unwrap()));
            }
        }
        let has_parts = ["allOf", "oneOf", "anyOf"].iter().any(|key| rules.get(*key).is_some());
        let is_open =
            properties.is_empty() && !has_parts && rules["additionalProperties"] != Value::Bool(false);
        if is_open { Known::All } else { Known::Keys(keys) }
    }
}

/// Type, enumeration, pattern and limits.
fn scalar_faults(rules: &Value, value: &Value, at: &str, is_template: bool, faults: &mut Vec<String>) {
    if let Some(kind) = rules["type"].as_str() {
        let fits = match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64() || (is_template && value.is_number()),
            other => panic!("unknown type {other}"),
        };
        if !fits {
            faults.push(format!("{at} is not of type {kind}"));
        }
    }
    if let Some(values) = rules["enum"].as_array() {
        // The list of sizes is open and ends before all current GPU sizes. The resource manager's documentation writes
        // the scope of expressions in lower case, as it is read in any.
        let is_open = at.ends_with("/vmSize");
        let folds_case = at.ends_with("/expressionEvaluationOptions/scope");
        let is_same = |known: &Value| match (known.as_str(), value.as_str()) {
            (Some(known), Some(value)) if folds_case => known.eq_ignore_ascii_case(value),
            _ => known == value,
        };
        if !is_open && !values.iter().any(is_same) {
            faults.push(format!("{at} is none of {values:?}"));
        }
    }
    if rules.get("const").is_some_and(|only| only != value) {
        faults.push(format!("{at} is not {}", rules["const"]));
    }
    if let Some(text) = value.as_str() {
        // One pattern looks ahead, which this engine does not; the name it is for has a test of its own.
        if let Some(pattern) = rules["pattern"].as_str().filter(|pattern| !pattern.contains("(?!"))
            && !Regex::new(pattern).unwrap().is_match(text)
        {
            faults.push(format!("{at} does not match {pattern}"));
        }
        let length = text.chars().count() as u64;
        if rules["minLength"].as_u64().is_some_and(|least| length < least)
            || rules["maxLength"].as_u64().is_some_and(|most| length > most)
        {
            faults.push(format!("{at} has {length} letters"));
        }
    }
    if let Some(number) = value.as_f64()
        && (rules["minimum"].as_f64().is_some_and(|least| number < least)
            || rules["maximum"].as_f64().is_some_and(|most| number > most))
    {
        faults.push(format!("{at} is {number}"));
    }
    if let Some(list) = value.as_array()
        && rules["maxItems"].as_u64().is_some_and(|most| list.len() as u64 > most)
    {
        faults.push(format!("{at} has {} entries", list.len()));
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
