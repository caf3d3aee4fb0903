//! The memory that the schemas of one definition make a server keep, estimated in sum and before anything of them is compiled.

use std::collections::HashSet;

use serde_json::Value;

use super::reading::{self, JUNCTORS, VALIDATIONS, branches, members, part, text, values_of_map};
use crate::field::{FieldError, FieldPath};
use crate::regexp::Pattern;
use crate::schema::node::Node;

/// Maximum memory of the schemas of one definition, of all its versions together, in bytes. Of 206 definitions of other projects
/// the largest takes a tenth of it.
pub const MAX_FOOTPRINT: usize = 32 * 1024 * 1024;

/// What a value of an enum or a default takes beside its text, in bytes.
const VALUE: usize = size_of::<Value>() + 16;

/// What a rule takes for each byte of its text: its syntax tree and its program.
const RULE: usize = 128;

/// The sum of the schemas of one definition.
#[derive(Debug, Default)]
pub struct Footprint<'s> {
    bytes: usize,
    /// A pattern is kept once, wherever it stands.
    patterns: HashSet<&'s str>,
}

impl<'s> Footprint<'s> {
    /// Adds a schema, whose path is given.
    ///
    /// # Errors
    /// The place at which the sum exceeds [`MAX_FOOTPRINT`].
    pub fn add(&mut self, schema: &'s Value, path: &FieldPath) -> Result<(), FieldError> {
        let own = size_of::<Node>() + bytes_of_values(schema) + bytes_of_rules(schema);
        self.take(own, path)?;
        if let Some(pattern) = text(schema, "pattern")
            && self.patterns.insert(pattern)
            && let Ok(parsed) = Pattern::new(pattern)
        {
            self.take(parsed.cost(), &path.child("pattern"))?;
        }
        for (name, property) in members(schema, "properties") {
            self.take(name.len(), path)?;
            self.add(property, &path.child("properties").key(name))?;
        }
        let single = [
            ("items", part(schema, "items")),
            ("additionalProperties", values_of_map(schema)),
            ("not", part(schema, "not")),
        ];
        for (name, schema) in single {
            if let Some(schema) = schema {
                self.add(schema, &path.child(name))?;
            }
        }
        for name in JUNCTORS {
            for (index, branch) in branches(schema, name) {
                self.add(branch, &path.child(name).index(index))?;
            }
        }
        Ok(())
    }

    /// The bytes so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn take(&mut self, bytes: usize, path: &FieldPath) -> Result<(), FieldError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MAX_FOOTPRINT {
            return Ok(());
        }
        let allowed = MAX_FOOTPRINT / (1024 * 1024);
        let why = format!(
            "up to here the patterns, rules, values and fields of this definition take more than the {allowed} MiB of \
             memory that one may take: use fewer or shorter patterns, with smaller repetitions"
        );
        Err(FieldError::forbidden(path, &why))
    }
}

fn bytes_of_values(schema: &Value) -> usize {
    let values = ["enum", "default"]
        .iter()
        .filter_map(|name| schema.get(name));
    values.map(bytes_of_value).sum()
}

fn bytes_of_value(value: &Value) -> usize {
    let below: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of_value).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| VALUE + name.len() + bytes_of_value(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + below
}

fn bytes_of_rules(schema: &Value) -> usize {
    let rules = branches(schema, VALIDATIONS).flat_map(|(_, rule)| {
        let texts = ["rule", "messageExpression"];
        texts
            .into_iter()
            .filter_map(|name| reading::text(rule, name))
    });
    rules.map(|text| RULE * text.len()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error_of(schemas: &[Value]) -> Option<String> {
        let mut footprint = Footprint::default();
        let mut paths = (0..).map(|at| FieldPath::new("versions").index(at));
        let mut added = schemas
            .iter()
            .map(|schema| footprint.add(schema, &paths.next()?).err());
        added.find_map(|error| error).map(|error| error.to_string())
    }

    /// A schema with as many different patterns, each far below what a pattern may cost.
    fn patterns(count: usize) -> Value {
        let property = |at: usize| {
            let pattern = format!("^(a|b{at}){{1,200}}[\\pL]{{0,100}}$");
            (
                format!("p{at}"),
                json!({"type": "string", "pattern": pattern}),
            )
        };
        json!({"type": "object", "properties": (0..count).map(property).collect::<serde_json::Map<_, _>>()})
    }

    #[test]
    fn patterns_are_bounded_in_sum_and_not_compiled() {
        assert_eq!(error_of(&[patterns(3)]), None);
        let error = error_of(&[patterns(5_000)]).unwrap();
        assert!(error.starts_with("versions[0].properties[p"), "{error}");
        assert!(
            error.contains(".pattern: Forbidden: up to here the patterns"),
            "{error}"
        );
    }

    #[test]
    fn versions_are_summed_and_equal_patterns_count_once() {
        assert_eq!(error_of(&[patterns(4), patterns(4), patterns(4)]), None);
        let other = |at: usize| {
            let schema = patterns(4).to_string().replace("(a|", &format!("(c{at}|"));
            serde_json::from_str(&schema).unwrap()
        };
        let schemas: Vec<Value> = (0..5).map(other).collect();
        let error = error_of(&schemas).unwrap();
        assert!(!error.starts_with("versions[0]"), "{error}");
    }

    #[test]
    fn values_rules_and_fields_count() {
        let long = "x".repeat(1024);
        let many = |value: Value| Value::Array(vec![value; 33 * 1024]);
        for schema in [
            json!({"enum": many(json!(long))}),
            json!({"default": {"a": many(json!([long]))}}),
            json!({"x-kubernetes-validations": (0..300).map(|_| json!({"rule": long})).collect::<Vec<_>>()}),
            json!({"allOf": (0..300).map(|_| json!({"not": {"items": {"additionalProperties": {"enum": [long.repeat(110)]}}}})).collect::<Vec<_>>()}),
            json!({"properties": (0..100_000).map(|at| (at.to_string(), json!({}))).collect::<serde_json::Map<_, _>>()}),
        ] {
            assert!(error_of(std::slice::from_ref(&schema)).is_some());
        }
    }
}
