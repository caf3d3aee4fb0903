//! Rules of a value: keywords of its schema as keys of `#[api(..)]`. What has no key stays as it is, for the key `schema`.

use serde_json::{Map, Value, json};

use super::compare::without_markers;
use super::markers::{COMPONENT, TYPE};

/// A default as a Rust expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Code(String),
    /// A variant of an enum.
    Variant(usize, String),
    List(Vec<Literal>),
}

/// The rules of a value in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Arguments of `#[api(..)]`.
    pub(super) keys: Vec<String>,
    pub(super) default: Option<Literal>,
    /// Keywords that have no key yet.
    rest: Map<String, Value>,
}

/// Keywords that only readers see; documentation comments have them.
const DOCS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Keywords that have keys of their own, or a value that is kept as JSON has no use for.
const PATCH_STRATEGY: &str = "x-kubernetes-patch-strategy";

const PATCH_KEY: &str = "x-kubernetes-patch-merge-key";

/// Keywords that judge a whole struct, and are said on its type.
const OF_TYPE: [&str; 6] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Formats that have a key, with their words. kube-apiserver is less strict than this server for others that it knows.
const FORMATS: [(&str, &str); 5] = [
    ("date", "date"),
    ("date-time", "date_time"),
    ("ipv4", "ipv4"),
    ("ipv6", "ipv6"),
    ("cidr", "cidr"),
];

impl Rules {
    /// All keywords of a schema but for its documentation, and what says nothing.
    pub(super) fn of(schema: &Value) -> Self {
        let mut rest = schema.as_object().cloned().unwrap_or_default();
        rest.retain(|name, value| {
            let is_read = DOCS.contains(&name.as_str()) || name == COMPONENT || name == TYPE;
            !is_read && !says_nothing(name, value)
        });
        Self {
            rest,
            ..Self::default()
        }
    }

    /// A whole schema in one key.
    pub(super) fn whole(schema: &Value) -> Self {
        let mut rest = match without_markers(schema) {
            Value::Object(rest) => rest,
            _ => Map::new(),
        };
        rest.remove("description");
        Self {
            rest,
            ..Self::default()
        }
    }

    /// Forgets a keyword that is said otherwise.
    pub(super) fn take(&mut self, name: &str) {
        self.rest.remove(name);
    }

    /// Forgets a keyword, and returns whether it was `true`.
    pub(super) fn takes_flag(&mut self, name: &str) -> bool {
        self.rest.remove(name).is_some_and(|value| value == true)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.rest.contains_key(name)
    }

    pub(super) fn put(&mut self, name: &str, value: Value) {
        self.rest.insert(name.to_owned(), value);
    }

    /// Takes the rules that are said on the type of the value.
    pub(super) fn of_type(&mut self) -> Self {
        let mut rest = Map::new();
        for name in OF_TYPE {
            rest.extend(self.rest.remove_entry(name));
        }
        for name in ["properties", "required", "additionalProperties", "type"] {
            self.rest.remove(name);
        }
        Self {
            rest,
            ..Self::default()
        }
    }

    /// What tells two types with these rules apart.
    pub(super) fn identity(&self, schema: &Value) -> Value {
        let mut identity = self.rest.clone();
        let mut required = schema["required"].clone();
        if let Some(names) = required.as_array_mut() {
            names.sort_by_key(Value::to_string);
        }
        identity.insert("required".to_owned(), required);
        identity.insert("properties".to_owned(), schema["properties"].clone());
        Value::Object(identity)
    }

    /// The rules of the items of a list, or of the values of a map.
    pub(super) fn each(&mut self, rules: Rules) {
        let keys = rules.into_keys();
        if !keys.is_empty() {
            self.keys.push(format!("each({})", keys.join(", ")));
        }
    }

    pub(super) fn text(&mut self, schema: &Value) {
        self.bounds("len", "minLength", "maxLength");
        if let Some(pattern) = schema["pattern"].as_str() {
            self.take("pattern");
            self.keys.push(format!("pattern = {}", raw(pattern)));
        }
        let format = schema["format"].as_str().unwrap_or_default();
        if let Some((_, word)) = FORMATS.iter().find(|(name, _)| *name == format) {
            self.take("format");
            self.keys.push(format!("format = {word}"));
        }
    }

    pub(super) fn list(&mut self, _schema: &Value) {
        self.bounds("items", "minItems", "maxItems");
    }

    pub(super) fn object(&mut self, schema: &Value) {
        self.bounds("props", "minProperties", "maxProperties");
        let map_type = schema["x-kubernetes-map-type"].as_str().unwrap_or_default();
        if matches!(map_type, "atomic" | "granular") {
            self.take("x-kubernetes-map-type");
            self.keys.push(format!("map = {map_type}"));
        }
    }

    /// How strategic merge patches treat the value; `field` gives the Rust name of a field of its items. Items that are objects
    /// are merged by a field, or not at all.
    pub(super) fn patch(&mut self, needs_key: bool, field: impl Fn(&str) -> Option<String>) {
        let text = |name: &str| self.rest.get(name).and_then(Value::as_str);
        let Some(strategy) = text(PATCH_STRATEGY) else {
            return;
        };
        let words = strategy.split(',').map(|word| match word {
            "merge" | "replace" => Some(word.to_owned()),
            "retainKeys" => Some("retain_keys".to_owned()),
            _ => None,
        });
        let Some(mut words) = words.collect::<Option<Vec<_>>>() else {
            return;
        };
        match text(PATCH_KEY).and_then(field) {
            Some(key) => words.push(format!("key = {key}")),
            None if needs_key => words.retain(|word| word != "merge"),
            None => {}
        }
        self.take(PATCH_STRATEGY);
        self.take(PATCH_KEY);
        if !words.is_empty() {
            self.keys.push(format!("patch({})", words.join(", ")));
        }
    }

    /// `len = 1..=63`.
    fn bounds(&mut self, key: &str, least: &str, most: &str) {
        let bound = |name: &str| self.rest.get(name).map(Value::as_u64);
        // A bound that is no count stays JSON, where it is reported.
        let (min, max) = match (bound(least), bound(most)) {
            (Some(None), _) | (_, Some(None)) | (None, None) => return,
            (min, max) => (min.flatten(), max.flatten()),
        };
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            return;
        }
        self.take(least);
        self.take(most);
        let shown = |bound: Option<u64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        let operator = if max.is_some() { "..=" } else { ".." };
        self.keys
            .push(format!("{key} = {}{operator}{}", shown(min), shown(max)));
    }

    /// The bounds of a number whose literals `is_literal` accepts.
    fn numbers(&mut self, schema: &Value, literal: impl Fn(&Value) -> Option<String>) {
        let bounds = [
            ("minimum", "exclusiveMinimum", "min", "gt"),
            ("maximum", "exclusiveMaximum", "max", "lt"),
        ];
        for (bound, exclusive, key, strict) in bounds {
            let Some(text) = schema.get(bound).and_then(&literal) else {
                continue;
            };
            self.take(bound);
            let key = if self.takes_flag(exclusive) {
                strict
            } else {
                key
            };
            self.keys.push(format!("{key} = {text}"));
        }
        if let Some(step) = schema.get("multipleOf").and_then(&literal) {
            self.take("multipleOf");
            self.keys.push(format!("multiple_of = {step}"));
        }
        let key = |name: &str| {
            self.keys.iter().find_map(|key| {
                key.strip_prefix(name)?
                    .strip_prefix(" = ")
                    .map(str::to_owned)
            })
        };
        if let (Some(min), Some(max)) = (key("min"), key("max")) {
            self.keys
                .retain(|key| !key.starts_with("min = ") && !key.starts_with("max = "));
            self.keys.push(format!("range = {min}..={max}"));
        }
    }

    /// Rules in CEL as keys `cel(..)`, but for those that no key can say. `field` gives the Rust name of a field of the value
    /// by its name in JSON.
    pub(super) fn cel(&mut self, field: impl Fn(&str) -> Option<String>) {
        let Some(Value::Array(rules)) = self.rest.get(VALIDATIONS) else {
            return;
        };
        let mut others = Vec::new();
        for rule in rules {
            match cel_key(rule, &field) {
                Some(key) => self.keys.push(key),
                None => others.push(rule.clone()),
            }
        }
        if others.is_empty() {
            self.take(VALIDATIONS);
        } else {
            self.put(VALIDATIONS, others.into());
        }
    }

    /// The arguments of `#[api(..)]`; the last one has what has no key.
    pub(super) fn into_keys(mut self) -> Vec<String> {
        self.cel(|_| None);
        let mut keys = self.keys;
        if !self.rest.is_empty() {
            keys.push(format!(
                "schema = {}",
                raw(&Value::Object(self.rest).to_string())
            ));
        }
        keys
    }
}

/// The keyword of rules in CEL.
const VALIDATIONS: &str = "x-kubernetes-validations";

/// The reasons of rules, with their words.
const REASONS: [(&str, &str); 4] = [
    ("FieldValueInvalid", "invalid"),
    ("FieldValueForbidden", "forbidden"),
    ("FieldValueRequired", "required"),
    ("FieldValueDuplicate", "duplicate"),
];

/// A rule in CEL as a key; `None` if no key can say all of it.
fn cel_key(rule: &Value, field: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let entries = rule.as_object()?;
    let text = |name: &str| entries.get(name).and_then(Value::as_str);
    let mut arguments = vec![raw(text("rule")?)];
    let mut said = 1;
    for (name, key) in [
        ("message", "message"),
        ("messageExpression", "message_expression"),
    ] {
        if let Some(text) = text(name) {
            arguments.push(format!("{key} = {}", raw(text)));
            said += 1;
        }
    }
    if let Some(reason) = text("reason") {
        let (_, word) = REASONS.iter().find(|(name, _)| *name == reason)?;
        arguments.push(format!("reason = {word}"));
        said += 1;
    }
    if let Some(path) = text("fieldPath") {
        arguments.push(format!("path = {}", field(path.strip_prefix('.')?)?));
        said += 1;
    }
    if entries.get("optionalOldSelf") == Some(&Value::Bool(true)) {
        arguments.push("optional_old".to_owned());
        said += 1;
    }
    let is_all = said == entries.len();
    is_all.then(|| format!("cel({})", arguments.join(", ")))
}

/// Whether a keyword with this value is the same as none.
fn says_nothing(name: &str, value: &Value) -> bool {
    match name {
        "nullable"
        | "uniqueItems"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => value == false,
        "minLength" | "minItems" | "minProperties" => value == 0,
        "required"
        | "enum"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "x-kubernetes-validations"
        | "x-kubernetes-list-map-keys" => value == &json!([]),
        "format" | "pattern" => value == "",
        "default" => value.is_null(),
        _ => false,
    }
}

/// The type of an integer; `None` if there is none.
pub(super) fn integer(schema: &Value, rules: &mut Rules) -> Option<&'static str> {
    let format = schema["format"].as_str().unwrap_or_default();
    let fits = |value: &Value| {
        value
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok())
    };
    let bounds = ["minimum", "maximum", "multipleOf", "default"];
    let is_small =
        format == "int32" && bounds.iter().all(|name| schema.get(*name).is_none_or(fits));
    let ty = match format {
        "" | "int64" => "i64",
        "int32" if is_small => "i32",
        // Its bounds do not fit its format.
        "int32" => return None,
        // kube-apiserver ignores other formats, as does this server where it cannot print them.
        _ => "i64",
    };
    rules.take("format");
    rules.numbers(schema, |value| {
        value
            .as_i64()
            .or_else(|| whole(value))
            .map(|number| number.to_string())
    });
    Some(ty)
}

/// The type of a number.
pub(super) fn float(schema: &Value, rules: &mut Rules) -> Option<&'static str> {
    let ty = match schema["format"].as_str() {
        Some("float") => "f32",
        _ => "f64",
    };
    rules.take("format");
    rules.numbers(schema, decimal);
    Some(ty)
}

/// The integer that a number such as `1.0` is.
fn whole(value: &Value) -> Option<i64> {
    let float = value.as_f64()?;
    #[allow(clippy::cast_possible_truncation, reason = "compared just below")]
    let number = float as i64;
    #[allow(
        clippy::cast_precision_loss,
        reason = "a number that is not the same is refused"
    )]
    let back = number as f64;
    (back == float && number.unsigned_abs() < 1 << 53).then_some(number)
}

fn decimal(value: &Value) -> Option<String> {
    let float = value.as_f64().filter(|float| float.is_finite())?;
    Some(format!("{float:?}"))
}

/// A default of a plain type as a Rust expression.
pub(super) fn literal(ty: &str, value: &Value) -> Option<String> {
    match (ty, value) {
        ("bool", Value::Bool(value)) => Some(value.to_string()),
        ("String", Value::String(text)) => Some(quoted(text)),
        ("i32", Value::Number(_)) => {
            let number = i32::try_from(value.as_i64()?).ok()?;
            Some(number.to_string())
        }
        ("i64", Value::Number(_)) => value.as_i64().map(|number| number.to_string()),
        ("f32" | "f64", Value::Number(_)) => decimal(value),
        _ => None,
    }
}

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// The most `#` around a raw literal that is still good to read; rustc takes 255.
const MAX_HASHES: usize = 8;

/// A string literal, raw where that is better to read.
pub(super) fn raw(text: &str) -> String {
    // What is not printed as it is has no escapes in a raw literal; rustc refuses some of it there.
    let is_plain = text
        .chars()
        .all(|c| c.escape_debug().count() == 1 || c == '\\' || c == '"' || c == '\'');
    if !text.contains(['\\', '"']) || !is_plain {
        return quoted(text);
    }
    let hashes = (0..=MAX_HASHES).map(|count| "#".repeat(count));
    let mut free = hashes.filter(|hashes| !text.contains(&format!("\"{hashes}")));
    match free.next() {
        Some(hashes) => format!("r{hashes}\"{text}\"{hashes}"),
        None => quoted(text),
    }
}
