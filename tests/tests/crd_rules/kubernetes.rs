//! Evaluates the rules of a CustomResourceDefinition as kube-apiserver does: which values are `self` and `oldSelf`, and
//! when rules are evaluated. The crate `cel` compiles and runs the expressions.
//!
//! Generated rules use no function of Kubernetes' own library, so none is implemented here: [`Definition::new`] refuses
//! expressions with other than the standard functions.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use apiloom::prelude::{Duration, MicroTime};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cel::{Context, Env, Program, Value as Cel};
use serde_json::{Map, Value, json};

/// The functions of generated rules, besides operators: standard ones only.
const FUNCTIONS: [&str; 2] = ["bytes", "size"];

/// The rules of a version, compiled.
pub(crate) struct Definition {
    env: Arc<Env>,
    root: Place,
}

/// A value that a schema describes, with its rules.
struct Place {
    path: String,
    schema: Value,
    rules: Vec<Rule>,
    properties: BTreeMap<String, Place>,
    /// The value below every key of a map, or every index of a list.
    below: Option<Box<Place>>,
}

struct Rule {
    text: String,
    program: Program,
    /// Whether it uses `oldSelf`, so that it is evaluated for changes only.
    is_transition: bool,
    kept: Cell<usize>,
    broken: Cell<usize>,
}

impl Definition {
    /// Compiles the rules of an `openAPIV3Schema`.
    pub(crate) fn new(schema: &Value) -> Self {
        let env = Arc::new(Env::stdlib());
        let root = Place::new(&env, schema, String::new());
        Self { env, root }
    }

    /// The rules that a new document or a change violates.
    pub(crate) fn broken(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut broken = Vec::new();
        self.root.judge(&self.env, new, old, &mut broken);
        broken
    }

    /// How often each rule was satisfied and violated so far, by the place of its value and its text.
    pub(crate) fn counts(&self) -> BTreeMap<(&str, &str), (usize, usize)> {
        let mut counts = BTreeMap::new();
        self.root.count(&mut counts);
        counts
    }
}

impl Place {
    fn new(env: &Env, schema: &Value, path: String) -> Self {
        let rules = schema["x-kubernetes-validations"].as_array();
        let rules = rules.into_iter().flatten();
        let rules = rules.map(|rule| Rule::new(env, rule, schema, &path));
        let properties = fields(schema).map(|(name, field)| {
            let place = Place::new(env, field, format!("{path}.{name}"));
            (name.clone(), place)
        });
        let below = ["additionalProperties", "items"]
            .iter()
            .find_map(|keyword| schema.get(keyword).filter(|below| below.is_object()));
        Self {
            rules: rules.collect(),
            properties: properties.collect(),
            below: below.map(|below| Box::new(Place::new(env, below, format!("{path}[]")))),
            schema: schema.clone(),
            path,
        }
    }

    fn count<'a>(&'a self, counts: &mut BTreeMap<(&'a str, &'a str), (usize, usize)>) {
        for rule in &self.rules {
            let count = (rule.kept.get(), rule.broken.get());
            counts.insert((&self.path, &rule.text), count);
        }
        for place in self.properties.values().chain(self.below.as_deref()) {
            place.count(counts);
        }
    }

    fn judge(&self, env: &Arc<Env>, new: &Value, old: Option<&Value>, broken: &mut Vec<String>) {
        if new.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.evaluate(env, new, old, broken);
        match new {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let place = self.properties.get(name).or(self.below.as_deref());
                    let old = old.and_then(|old| old.get(name));
                    if let Some(place) = place {
                        place.judge(env, value, old, broken);
                    }
                }
            }
            Value::Array(items) => {
                let Some(place) = &self.below else { return };
                for item in items {
                    let old = old.and_then(|old| self.old_item(item, old));
                    place.judge(env, item, old, broken);
                }
            }
            _ => {}
        }
    }

    /// The item of the old list with the same keys; only lists of type map have one. In kube-apiserver the keys 1 and
    /// 1.0 differ, as the types of Go do; here they are equal, as in its rules.
    fn old_item<'a>(&self, item: &Value, old: &'a Value) -> Option<&'a Value> {
        let keys = list_keys(&self.schema)?;
        let is_same = |other: &&Value| {
            keys.iter()
                .all(|key| order(other.get(key), item.get(key)).is_eq())
        };
        old.as_array()?.iter().find(is_same)
    }

    fn evaluate(&self, env: &Arc<Env>, new: &Value, old: Option<&Value>, broken: &mut Vec<String>) {
        if self.rules.is_empty() {
            return;
        }
        let mut context = Context::with_env(env.clone());
        context.add_variable_from_value("self", value(&self.schema, new));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", value(&self.schema, old));
        }
        let all = self.rules.iter();
        for rule in all.filter(|rule| old.is_some() || !rule.is_transition) {
            match rule.program.execute(&context) {
                Ok(Cel::Bool(true)) => rule.kept.set(rule.kept.get() + 1),
                Ok(Cel::Bool(false)) => {
                    rule.broken.set(rule.broken.get() + 1);
                    broken.push(format!("{}: {}", self.path, rule.text));
                }
                other => panic!(
                    "{}: {}: {other:?}\nself: {new}\noldSelf: {old:?}",
                    self.path, rule.text
                ),
            }
        }
    }
}

impl Rule {
    fn new(env: &Env, rule: &Value, schema: &Value, path: &str) -> Self {
        let keywords: Vec<&String> = rule.as_object().unwrap().keys().collect();
        // `optionalOldSelf`, `messageExpression` and the like would have to be implemented here.
        assert_eq!(keywords, ["message", "rule"], "{path}: {rule}");
        let text = rule["rule"].as_str().unwrap().to_owned();
        let program = match env.compile(&text) {
            Ok(program) => program,
            Err(error) => panic!("{path}: {text}: {error}"),
        };
        let references = program.references();
        for function in references.functions() {
            // Operators have names like `_&&_` and `@in`.
            let is_operator = !function.starts_with(char::is_alphanumeric);
            assert!(
                is_operator || FUNCTIONS.contains(&function),
                "{path}: {text}: the function {function} is not known here"
            );
        }
        let is_transition = references.has_variable("oldSelf");
        check_fields(&text, schema, path);
        Self {
            text,
            program,
            is_transition,
            kept: Cell::default(),
            broken: Cell::default(),
        }
    }
}

/// Checks that a rule names only fields that are declared: kube-apiserver compiles rules against the types of the
/// fields, which the crate does not support.
fn check_fields(rule: &str, schema: &Value, path: &str) {
    let named = regex::Regex::new(r"\b(?:self|oldSelf)\.([A-Za-z0-9_]+)(\()?").unwrap();
    for found in named
        .captures_iter(rule)
        .filter(|found| found.get(2).is_none())
    {
        let name = &found[1];
        let field = fields(schema).find(|(field, _)| escape(field) == name);
        let is_typed = field.is_some_and(|(_, field)| has_type(field));
        assert!(is_typed, "{path}: {rule}: kube-apiserver knows no {name}");
    }
}

/// Whether CEL has a type for a schema, and its values can be built.
fn has_type(schema: &Value) -> bool {
    if is_true(schema, "x-kubernetes-int-or-string") {
        return true;
    }
    match schema["type"].as_str() {
        Some("array") => has_type(&schema["items"]),
        Some("object") => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => has_type(values),
            // An object without declared content has no value in CEL.
            _ => {
                fields(schema).next().is_some()
                    || is_true(schema, "x-kubernetes-preserve-unknown-fields")
                    || is_true(schema, "x-kubernetes-embedded-resource")
            }
        },
        json_type => json_type.is_some(),
    }
}

fn is_true(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == true
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn list_keys(schema: &Value) -> Option<Vec<&str>> {
    let is_map = schema["x-kubernetes-list-type"] == "map";
    let keys = schema["x-kubernetes-list-map-keys"].as_array()?.iter();
    is_map.then(|| keys.filter_map(Value::as_str).collect())
}

/// The CEL name of a field, by the documentation of CustomResourceDefinitions.
fn escape(name: &str) -> String {
    const RESERVED: &str = " true false null in as break const continue else for function if import let loop package \
        namespace return var void while ";
    if RESERVED.contains(&format!(" {name} ")) {
        return format!("__{name}__");
    }
    let name = name.replace("__", "__underscores__");
    let name = name.replace('.', "__dot__").replace('-', "__dash__");
    name.replace('/', "__slash__")
}

/// The CEL value of a JSON value, by its schema.
///
/// Times and durations are numbers here, as `cel` has neither without a crate of time zones: rules compare them, and
/// they have no size either. Two sets, or two lists of type map, are equal in any order: they are sorted here, which no
/// generated rule can distinguish.
fn value(schema: &Value, json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) if schema["type"] == "number" => Cel::Float(number.as_f64().unwrap()),
        Value::Number(number) => Cel::Int(number.as_i64().unwrap()),
        Value::String(text) => self::text(schema, text),
        Value::Array(items) => {
            let of_items = &schema["items"];
            let keys = list_keys(schema);
            let is_set = schema["x-kubernetes-list-type"] == "set";
            let mut items: Vec<&Value> = items.iter().collect();
            items.sort_by(|a, b| match &keys {
                Some(keys) => {
                    let by_key = keys.iter().map(|key| order(a.get(key), b.get(key)));
                    by_key.fold(Ordering::Equal, Ordering::then)
                }
                None if is_set => order(Some(a), Some(b)),
                None => Ordering::Equal,
            });
            let items = items.into_iter().map(|item| value(of_items, item));
            Cel::from(items.collect::<Vec<_>>())
        }
        Value::Object(fields) => Cel::from(object(schema, fields)),
    }
}

/// Compares scalars: numbers by value, regardless of their spelling.
fn order(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a.and_then(Value::as_f64), b.and_then(Value::as_f64)) {
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        _ => a.map(Value::to_string).cmp(&b.map(Value::to_string)),
    }
}

fn object(schema: &Value, fields: &Map<String, Value>) -> HashMap<String, Cel> {
    let values = schema.get("additionalProperties");
    let entry = |(name, json): (&String, &Value)| match (&schema["properties"].get(name), values) {
        // Null fields of an object are absent.
        (Some(_), _) if json.is_null() => None,
        (Some(field), _) => Some((escape(name), value(field, json))),
        (None, Some(values @ Value::Object(_))) => Some((name.clone(), value(values, json))),
        // Fields without a schema have no name in CEL, and take part in comparisons.
        (None, _) => Some((format!("unknown {name}"), Cel::from(json.to_string()))),
    };
    fields.iter().filter_map(entry).collect()
}

fn text(schema: &Value, text: &str) -> Cel {
    if is_true(schema, "x-kubernetes-int-or-string") {
        return Cel::from(text);
    }
    match schema["format"].as_str() {
        Some("byte") => Cel::from(STANDARD.decode(text).unwrap()),
        Some("duration") => Cel::Int(text.parse::<Duration>().unwrap().as_nanos()),
        Some("date-time") => Cel::Int(text.parse::<MicroTime>().unwrap().unix_micros()),
        Some("date") => self::text(
            &json!({ "format": "date-time" }),
            &format!("{text}T00:00:00Z"),
        ),
        _ => Cel::from(text),
    }
}
