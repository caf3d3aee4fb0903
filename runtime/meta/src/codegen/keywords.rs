//! Adds the keywords of `#[api(..)]` to the schema that schemars derived.

use std::marker::PhantomData;

use crate::fields::Number;
use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Keywords of a schema and of its parts.
#[derive(Clone, Debug, Default)]
pub struct Keywords {
    own: Map<String, Value>,
    optional: &'static [&'static str],
    each: Option<Box<Keywords>>,
    keys: Option<Box<Keywords>>,
    open: Option<&'static [&'static str]>,
    atomic: bool,
    deprecated: Option<&'static str>,
}

impl Keywords {
    /// No keywords.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a keyword. A value that is not JSON (a map with keys that are not strings) becomes null, which the schema
    /// engine refuses when the server is built.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: impl Serialize) -> Self {
        self.own.insert(
            name.to_owned(),
            serde_json::to_value(value).unwrap_or_default(),
        );
        self
    }
    /// The properties of a struct in declared order, which a JSON object does not keep.
    #[must_use]
    pub fn order(self, properties: &'static [&'static str]) -> Self {
        self.set("x-apiloom-order", properties)
    }
    /// Properties that schemars lists as required and that are optional, because they have a default.
    #[must_use]
    pub fn optional(mut self, properties: &'static [&'static str]) -> Self {
        self.optional = properties;
        self
    }
    /// Keywords of every list element or map value.
    #[must_use]
    pub fn each(mut self, keywords: Keywords) -> Self {
        self.each = Some(Box::new(keywords));
        self
    }
    /// Keywords of every map key.
    #[must_use]
    pub fn keys(mut self, keywords: Keywords) -> Self {
        self.keys = Some(Box::new(keywords));
        self
    }
    /// The known values of a string type.
    #[must_use]
    pub fn open_enum(mut self, known: &'static [&'static str]) -> Self {
        self.open = Some(known);
        self
    }

    /// The list, map or struct is replaced as a whole by server-side apply.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }
    /// The value is deprecated; the note may be empty.
    #[must_use]
    pub fn deprecated(mut self, note: &'static str) -> Self {
        self.deprecated = Some(note);
        self
    }

    /// Writes the keywords into a schema.
    pub fn apply(self, schema: &mut Schema) {
        if let Some(known) = self.open {
            let description = schema.get("description").cloned();
            *schema = schemars::json_schema!({ "type": "string", "x-apiloom-open-enum": known });
            if let Some(text) = description {
                schema.insert("description".to_owned(), text);
            }
        }
        self.write(schema.ensure_object());
    }

    fn write(self, schema: &mut Map<String, Value>) {
        schema.extend(self.own);
        if self.atomic {
            let keyword = if schema.contains_key("items") {
                "x-kubernetes-list-type"
            } else {
                "x-kubernetes-map-type"
            };
            schema.insert(keyword.to_owned(), Value::from("atomic"));
        }
        if let Some(note) = self.deprecated {
            deprecate(schema, note);
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| {
                !name
                    .as_str()
                    .is_some_and(|name| self.optional.contains(&name))
            });
            if required.is_empty() {
                schema.remove("required");
            }
        }
        if let Some(each) = self.each {
            each.write(inside(schema));
        }
        if let Some(keys) = self.keys {
            keys.write(object(schema, "propertyNames"));
        }
    }
}

/// Marks a schema as deprecated, in the words of Kubernetes' own descriptions.
fn deprecate(schema: &mut Map<String, Value>, note: &str) {
    schema.insert("deprecated".to_owned(), Value::Bool(true));
    let said = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let text = format!("{said}\n\nDeprecated: {note}");
    if !note.is_empty() {
        schema.insert("description".to_owned(), Value::from(text.trim_start()));
    }
}

/// The schema of list elements or map values, which schemars puts below `anyOf` for an option.
fn inside(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let keyword = if schema.contains_key("items") {
        "items"
    } else {
        "additionalProperties"
    };
    object(schema, keyword)
}

fn object<'a>(schema: &'a mut Map<String, Value>, keyword: &str) -> &'a mut Map<String, Value> {
    let entry = schema
        .entry(keyword)
        .or_insert_with(|| Value::Object(Map::new()));
    // `true` is a schema without rules.
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    entry
        .as_object_mut()
        .expect("an object was put there just above")
}

/// A bound of a value of type `T`: rustc checks that it fits. The inherent function takes precedence over
/// [`BoundOther`].
#[derive(Debug)]
pub struct Bound<T>(PhantomData<T>);

impl<T: Number> Bound<T> {
    /// A bound of the field's number type, so that the literal gets that type.
    pub fn of(bound: T::Scalar) -> impl Serialize {
        bound
    }
}

/// The bound of a type that is not a number, which is reported elsewhere.
pub trait BoundOther {
    /// The bound as it was written.
    fn of<B: Serialize>(bound: B) -> B {
        bound
    }
}

impl<T> BoundOther for Bound<T> {}

/// A number of characters, bytes, elements or entries.
pub fn count(bound: usize) -> usize {
    bound
}
