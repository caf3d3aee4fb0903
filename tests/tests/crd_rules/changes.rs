//! Random changes of documents, by the schema of a CustomResourceDefinition: fields are added and removed, texts, lists
//! and maps become empty, items are duplicated and moved, and numbers change their spelling.

use serde_json::{Map, Value, json};

#[path = "../../../runtime/storage/tests/random/mod.rs"]
mod numbers;

pub(crate) use numbers::Random;

/// Few values of each type, so that values are often equal.
const TEXTS: [&str; 5] = ["", "a", "b", "ab", "ä"];
const BYTES: [&str; 3] = ["", "YQ==", "YWJj"];
const TIMES: [&str; 2] = ["2026-11-22T10:00:00Z", "2026-11-22T10:00:01Z"];
const DATES: [&str; 2] = ["2026-11-22", "2026-11-23"];
const DURATIONS: [&str; 3] = ["0s", "1m0s", "1h0m0s"];
const KEYS: [&str; 3] = ["a", "b", "c"];

const RULES: &str = "x-kubernetes-validations";

/// Every value of a document that has a schema, as a JSON pointer.
fn places<'a>(
    schema: &'a Value,
    value: &Value,
    pointer: String,
    all: &mut Vec<(String, &'a Value)>,
) {
    match value {
        Value::Object(fields) => {
            let known = &schema["properties"];
            for (name, value) in fields {
                if let Some(schema) = known.get(name).or(schema.get("additionalProperties")) {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    places(schema, value, format!("{pointer}/{name}"), all);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(&schema["items"], item, format!("{pointer}/{index}"), all);
            }
        }
        _ => {}
    }
    all.push((pointer, schema));
}

impl Random {
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())].clone()
    }

    /// Changes a document in one to three places, half of which have rules. Some new values are from another document.
    pub(crate) fn change(&mut self, schema: &Value, document: &mut Value, other: &Value) {
        for _ in 0..=self.below(3) {
            let mut all = Vec::new();
            places(schema, document, String::new(), &mut all);
            let has_rules = |place: &(String, &Value)| place.1.get(RULES).is_some();
            let ruled: Vec<_> = all
                .iter()
                .filter(|place| has_rules(place))
                .cloned()
                .collect();
            let (pointer, schema) = if ruled.is_empty() || self.one_in(2) {
                self.pick(&all)
            } else {
                self.pick(&ruled)
            };
            let other = other.pointer(&pointer);
            self.value(schema, document.pointer_mut(&pointer).unwrap(), other);
        }
    }

    fn value(&mut self, schema: &Value, value: &mut Value, other: Option<&Value>) {
        match value {
            Value::Object(fields) => self.object(schema, fields, other),
            Value::Array(items) => self.array(schema, items, other),
            Value::Number(number) if schema["type"] == "number" && self.one_in(2) => {
                // 1 and 1.0 are the same number.
                *value = match number.as_i64() {
                    Some(whole) => json!(whole as f64),
                    None => json!(number.as_f64().unwrap_or_default().trunc() as i64),
                };
            }
            _ => *value = self.fresh(schema),
        }
    }

    fn object(&mut self, schema: &Value, fields: &mut Map<String, Value>, other: Option<&Value>) {
        let known = schema["properties"].as_object();
        let mut names: Vec<String> = known.into_iter().flat_map(Map::keys).cloned().collect();
        names.retain(|name| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        let values = schema.get("additionalProperties");
        if values.is_some() || schema["x-kubernetes-preserve-unknown-fields"] == true {
            if self.one_in(4) {
                return fields.clear();
            }
            names.extend(KEYS.map(str::to_owned));
        }
        if names.is_empty() {
            return;
        }
        let name = self.pick(&names);
        let no_schema = json!({});
        let of_field = schema["properties"].get(&name).or(values);
        let of_field = of_field.unwrap_or(&no_schema);
        let other = other.and_then(|other| other.get(&name));
        match (fields.get_mut(&name), other) {
            (Some(_), _) if self.one_in(4) => drop(fields.remove(&name)),
            (Some(field), Some(other)) if self.one_in(4) => *field = other.clone(),
            (Some(field), other) => self.value(of_field, field, other),
            (None, Some(other)) if self.one_in(2) => drop(fields.insert(name, other.clone())),
            (None, _) => drop(fields.insert(name, self.fresh(of_field))),
        }
    }

    fn array(&mut self, schema: &Value, items: &mut Vec<Value>, other: Option<&Value>) {
        let of_items = &schema["items"];
        let others = other.and_then(Value::as_array);
        match self.below(8) {
            0 => items.clear(),
            1 => items.reverse(),
            2 => items.push(self.fresh(of_items)),
            3 if !items.is_empty() => drop(items.remove(self.below(items.len()))),
            4 if !items.is_empty() => items.push(self.pick(items)),
            5 => items.extend(others.and_then(|others| others.first()).cloned()),
            _ if !items.is_empty() => {
                let at = self.below(items.len());
                let other = others.and_then(|others| others.get(at));
                self.value(of_items, &mut items[at], other);
            }
            _ => {}
        }
    }

    /// A value with few fields, or none if the schema allows that.
    fn fresh(&mut self, schema: &Value) -> Value {
        if let Some(choices) = schema["enum"].as_array() {
            return self.pick(choices);
        }
        if schema["x-kubernetes-int-or-string"] == true {
            let numbers = [json!(0), json!(1)];
            let texts = TEXTS.map(Value::from);
            return if self.one_in(2) {
                self.pick(&numbers)
            } else {
                self.pick(&texts)
            };
        }
        match schema["type"].as_str() {
            Some("object") => {
                let required = schema["required"].as_array().into_iter().flatten();
                let names = required.filter_map(Value::as_str);
                let field = |name: &str| (name.to_owned(), self.fresh(&schema["properties"][name]));
                Value::Object(names.map(field).collect())
            }
            Some("array") => {
                let count = self.below(3);
                Value::Array((0..count).map(|_| self.fresh(&schema["items"])).collect())
            }
            Some("string") => Value::from(match schema["format"].as_str() {
                Some("byte") => self.pick(&BYTES),
                Some("date-time") => self.pick(&TIMES),
                Some("date") => self.pick(&DATES),
                Some("duration") => self.pick(&DURATIONS),
                _ => self.pick(&TEXTS),
            }),
            Some("integer") => json!(self.below(3)),
            Some("number") => self.pick(&[
                json!(0),
                json!(0.0),
                json!(-0.0),
                json!(0.5),
                json!(1),
                json!(1.0),
            ]),
            Some("boolean") => json!(self.one_in(2)),
            _ => json!({ "a": self.below(2) }),
        }
    }
}
