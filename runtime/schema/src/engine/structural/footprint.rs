//! The memory that the schemas of one definition make a server keep, estimated in sum and before anything of them is compiled.
//!
//! One visitor walks a schema as a document and as JSON, in one pass: a server that starts counts what is stored without making it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::reading::{JUNCTORS, VALIDATIONS};
use crate::engine::enum_index::Position;
use crate::engine::node::{CustomRules, Node, Property, Rules};
use crate::field::{FieldError, FieldPath};
use crate::regexp::Pattern;

/// Maximum memory of the schemas of one definition, of all its versions together, in bytes. Of 359 definitions of other projects
/// the largest takes 12 MB, for its patterns, and half of them less than 36 KB.
pub const MAX_FOOTPRINT: usize = 32 * 1024 * 1024;

/// What the allocator adds to what is asked for, in bytes.
const ALLOCATION: usize = 16;

/// What a value of an enum or a default takes beside its text, in bytes, with its place in the index of the enum.
const VALUE: usize = size_of::<Value>() + ALLOCATION + size_of::<Position>();

/// What a node of the tree of an object takes, which has up to 11 fields, in bytes.
const FIELDS: usize = 11 * size_of::<(String, Value)>() + 24;

/// What a schema takes with its place in the one around it, in bytes.
const NODE: usize = size_of::<Node>() + size_of::<Property>() + 2 * ALLOCATION;

/// What a rule takes for each byte of its text: its syntax tree and its program.
const RULE: usize = 128;

/// What JSON that cannot be read takes for each of its bytes at most.
const UNREAD: usize = 64;

/// What some keywords need in a box of their own, once for each schema.
#[derive(Clone, Copy)]
enum Extra {
    Rules,
    Branches,
}

impl Extra {
    /// What a keyword needs.
    fn of(keyword: &str) -> Option<Self> {
        match keyword {
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
            | "minLength" | "maxLength" | "pattern" | "enum" | "minItems" | "maxItems"
            | "uniqueItems" | "minProperties" | "maxProperties" => Some(Self::Rules),
            "not" => Some(Self::Branches),
            other => JUNCTORS.contains(&other).then_some(Self::Branches),
        }
    }

    fn bytes(self) -> usize {
        let bytes = match self {
            Self::Rules => size_of::<Rules>(),
            Self::Branches => size_of::<CustomRules>(),
        };
        bytes + ALLOCATION
    }
}

/// The sum of the schemas of one definition.
#[derive(Debug, Default)]
pub struct Footprint {
    bytes: usize,
    /// A pattern is kept once, wherever it stands.
    patterns: HashSet<Box<str>>,
    /// The way from the place at which the sum is exceeded to the root.
    exceeded: Vec<Step>,
}

/// A part of a path.
#[derive(Debug)]
enum Step {
    Field(&'static str),
    Key(String),
    Index(usize),
}

impl Footprint {
    /// Adds a schema, whose path is given.
    ///
    /// # Errors
    /// The place at which the sum exceeds [`MAX_FOOTPRINT`].
    pub fn add(&mut self, schema: &Value, path: &FieldPath) -> Result<(), FieldError> {
        // A document has no error of its own.
        if self
            .walk(Place::Schema, MAX_FOOTPRINT)
            .deserialize(schema)
            .is_ok()
        {
            return Ok(());
        }
        let steps = std::mem::take(&mut self.exceeded).into_iter().rev();
        let place = steps.fold(path.clone(), |path, step| match step {
            Step::Field(name) => path.child(name),
            Step::Key(name) => path.key(&name),
            Step::Index(index) => path.index(index),
        });
        let allowed = MAX_FOOTPRINT / (1024 * 1024);
        let why = format!(
            "up to here the patterns, rules, values and fields of this definition take more than the {allowed} MiB of \
             memory that one may take: use fewer or shorter patterns, with smaller repetitions"
        );
        Err(FieldError::forbidden(&place, &why))
    }

    /// Adds a schema without a limit.
    pub fn count(&mut self, schema: &Value) {
        // A document has no error of its own.
        let _ = self.walk(Place::Schema, usize::MAX).deserialize(schema);
    }

    /// Adds the JSON of a schema without a limit.
    pub fn count_json(&mut self, json: &[u8]) {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let walk = self.walk(Place::Schema, usize::MAX);
        if walk.deserialize(&mut deserializer).is_err() {
            self.bytes = self.bytes.saturating_add(UNREAD.saturating_mul(json.len()));
        }
    }

    /// The bytes so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn walk(&mut self, place: Place, most: usize) -> Walk<'_> {
        Walk {
            footprint: self,
            place,
            most,
        }
    }
}

/// What stands at a place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    /// Schemas by name.
    Properties,
    /// A list of schemas.
    Branches,
    /// A value of an enum or a default, or a list of them.
    Values,
    Pattern,
    /// A format, or the names of required fields.
    Texts,
    /// A list of rules.
    Rules,
    Rule,
    /// An expression of a rule.
    Expression,
    /// A keyword that takes no memory beside its node.
    Other,
}

impl Place {
    /// The place at a field of this one, and the name of the field in a path.
    fn at(self, field: &str) -> (Self, Option<&'static str>) {
        let named = |place, name| (place, Some(name));
        match (self, field) {
            (Self::Schema, "properties") => named(Self::Properties, "properties"),
            (Self::Schema, "items") => named(Self::Schema, "items"),
            (Self::Schema, "additionalProperties") => named(Self::Schema, "additionalProperties"),
            (Self::Schema, "not") => named(Self::Schema, "not"),
            (Self::Schema, "enum") => named(Self::Values, "enum"),
            (Self::Schema, "default") => named(Self::Values, "default"),
            (Self::Schema, "pattern") => named(Self::Pattern, "pattern"),
            (Self::Schema, "format" | "required") => (Self::Texts, None),
            (Self::Schema, VALIDATIONS) => named(Self::Rules, VALIDATIONS),
            (Self::Schema, other) => {
                let junctor = JUNCTORS.into_iter().find(|junctor| *junctor == other);
                junctor.map_or((Self::Other, None), |name| named(Self::Branches, name))
            }
            (Self::Properties, _) => (Self::Schema, None),
            (Self::Rule, "rule") => named(Self::Expression, "rule"),
            (Self::Rule, "messageExpression") => named(Self::Expression, "messageExpression"),
            (Self::Values, _) => (Self::Values, None),
            _ => (Self::Other, None),
        }
    }

    /// The place of an item of this one.
    fn of_item(self) -> Self {
        match self {
            Self::Branches => Self::Schema,
            Self::Rules => Self::Rule,
            Self::Values => Self::Values,
            Self::Texts => Self::Texts,
            _ => Self::Other,
        }
    }
}

/// The name of a field, without a copy where it has no escapes.
#[derive(Deserialize)]
struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

/// Walks the part of a schema at a place.
struct Walk<'f> {
    footprint: &'f mut Footprint,
    place: Place,
    most: usize,
}

impl Walk<'_> {
    fn at(&mut self, place: Place) -> Walk<'_> {
        Walk {
            footprint: self.footprint,
            place,
            most: self.most,
        }
    }

    fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let sum = self.footprint.bytes.saturating_add(bytes);
        self.footprint.bytes = sum;
        if sum <= self.most {
            return Ok(());
        }
        Err(E::custom("too much memory"))
    }

    /// What was found below a step of the path, which is noted if that is an error.
    fn noted<T, E>(&mut self, found: Result<T, E>, step: impl FnOnce() -> Step) -> Result<T, E> {
        found.inspect_err(|_| self.footprint.exceeded.push(step()))
    }

    fn take_pattern<E: serde::de::Error>(&mut self, pattern: &str) -> Result<(), E> {
        if pattern.is_empty() || self.footprint.patterns.contains(pattern) {
            return Ok(());
        }
        self.footprint.patterns.insert(pattern.into());
        match Pattern::new(pattern) {
            Ok(parsed) => self.take(parsed.cost()),
            Err(_) => Ok(()),
        }
    }

    /// Any value that has no text and no parts.
    fn take_value<E: serde::de::Error>(mut self) -> Result<(), E> {
        match self.place {
            Place::Values => self.take(VALUE),
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.place {
            Place::Other => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a schema")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.take_value()
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        // Only `additionalProperties` may be one.
        if self.place == Place::Schema && !value {
            return self.take(Extra::Branches.bytes());
        }
        self.take_value()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.take_value()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.take_value()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.take_value()
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        match self.place {
            Place::Values => self.take(VALUE + text.len()),
            Place::Texts => self.take(size_of::<String>() + ALLOCATION + text.len()),
            Place::Pattern => self.take_pattern(text),
            Place::Expression => self.take(RULE.saturating_mul(text.len())),
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        match self.place {
            Place::Values => self.take(VALUE)?,
            Place::Branches => self.take(2 * ALLOCATION)?,
            _ => {}
        }
        let item = self.place.of_item();
        for index in 0.. {
            let found = items.next_element_seed(self.at(item));
            let found = match item {
                Place::Schema | Place::Rule => self.noted(found, || Step::Index(index)),
                _ => found,
            };
            if found?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        match self.place {
            Place::Schema => self.take(NODE)?,
            Place::Values => self.take(VALUE)?,
            _ => {}
        }
        let mut has_extra = [false; 2];
        let mut count = 0;
        while let Some(Name(field)) = fields.next_key::<Name<'de>>()? {
            let (place, name) = self.place.at(&field);
            match self.place {
                Place::Properties => self.take(field.len())?,
                Place::Values => {
                    self.take(ALLOCATION + field.len())?;
                    // A node that is full becomes two halves.
                    if count == 0 || count > 10 && count % 6 == 5 {
                        self.take(FIELDS)?;
                    }
                    count += 1;
                }
                Place::Schema => {
                    if let Some(extra) = Extra::of(&field)
                        && !std::mem::replace(&mut has_extra[extra as usize], true)
                    {
                        self.take(extra.bytes())?;
                    }
                }
                _ => {}
            }
            let found = fields.next_value_seed(self.at(place));
            match (self.place, name) {
                (Place::Properties, _) => {
                    self.noted(found, || Step::Key(field.into_owned()))?;
                }
                (_, Some(name)) => self.noted(found, || Step::Field(name))?,
                (_, None) => found?,
            }
        }
        Ok(())
    }
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
    fn json_counts_as_its_document() {
        let schema = json!({"properties": {"a": {"pattern": "^a{1,9}$", "enum": ["x", 1, null, {"b": [true]}]},
            "b": {"items": {"not": {"pattern": "^a{1,9}$"}}, "x-kubernetes-validations": [{"rule": "self == 1"}]}},
            "anyOf": [{"default": {"c": 1.5}}], "description": "d", "additionalProperties": false});
        let (mut document, mut json) = (Footprint::default(), Footprint::default());
        document.count(&schema);
        json.count_json(schema.to_string().as_bytes());
        assert_eq!(document.bytes(), json.bytes());
        assert!(json.bytes() > 7 * NODE);
        let before = json.bytes();
        json.count_json(b"{\"properties\":");
        assert!(json.bytes() > before);
    }

    #[test]
    fn the_error_has_the_whole_path() {
        let rules = vec![json!({"rule": "x".repeat(1000)}); 300];
        let schema = json!({"properties": {"a.b": {"items": {"allOf": [{}, {"x-kubernetes-validations": rules}]}}}});
        let error = error_of(&[schema]).unwrap();
        let place = "versions[0].properties[a.b].items.allOf[1].x-kubernetes-validations[262].rule: Forbidden: ";
        assert!(error.starts_with(place), "{error}");
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
