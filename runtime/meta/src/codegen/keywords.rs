//! The keywords of `#[api(..)]` as data, and what adds them to the schema that schemars derived.

use std::marker::PhantomData;

use crate::fields::Number;
use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A keyword of a schema or of its parts.
#[derive(Clone, Copy, Debug)]
pub enum Keyword {
    /// `true`.
    Flag(&'static str),
    /// A whole number.
    Integer(&'static str, i128),
    /// A string.
    Text(&'static str, &'static str),
    /// A list of strings.
    Texts(&'static str, &'static [&'static str]),
    /// The value of an expression of the user.
    Value(&'static str, fn() -> Value),
    /// Properties that must be present, though their types have a value for their absence.
    Required(&'static [&'static str]),
    /// Keywords of every list element or map value.
    Each(&'static [Keyword]),
    /// Keywords of every map key.
    Keys(&'static [Keyword]),
    /// The known values of a string type.
    OpenEnum(&'static [&'static str]),
    /// The list, map or struct is replaced as a whole by server-side apply.
    Atomic,
    /// The value is deprecated; the note may be empty.
    Deprecated(&'static str),
}

/// The value of a keyword. A value that is not JSON (a map with keys that are not strings) becomes null, which the
/// schema engine refuses when the server is built.
pub fn keyword_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Writes keywords into a schema.
pub fn apply_keywords(keywords: &[Keyword], schema: &mut Schema) {
    let known = keywords.iter().find_map(|keyword| match keyword {
        Keyword::OpenEnum(known) => Some(known),
        _ => None,
    });
    if let Some(known) = known {
        let description = schema.get("description").cloned();
        *schema = schemars::json_schema!({ "type": "string", "x-apiloom-open-enum": known });
        if let Some(text) = description {
            schema.insert("description".to_owned(), text);
        }
    }
    write(keywords, schema.ensure_object());
}

fn write(keywords: &[Keyword], schema: &mut Map<String, Value>) {
    for keyword in keywords {
        let (name, value) = match *keyword {
            Keyword::Flag(name) => (name, Value::Bool(true)),
            Keyword::Integer(name, number) => (name, keyword_value(number)),
            Keyword::Text(name, text) => (name, Value::from(text)),
            Keyword::Texts(name, texts) => (name, Value::from(texts)),
            Keyword::Value(name, value) => (name, value()),
            Keyword::Atomic => {
                let name = if schema.contains_key("items") {
                    "x-kubernetes-list-type"
                } else {
                    "x-kubernetes-map-type"
                };
                (name, Value::from("atomic"))
            }
            Keyword::Deprecated(note) => {
                deprecate(schema, note);
                continue;
            }
            Keyword::Required(names) => {
                make_required(schema, names);
                continue;
            }
            Keyword::Each(keywords) => {
                write(keywords, inside(schema));
                continue;
            }
            Keyword::Keys(keywords) => {
                write(keywords, object(schema, "propertyNames"));
                continue;
            }
            Keyword::OpenEnum(_) => continue,
        };
        schema.insert(name.to_owned(), value);
    }
}

fn make_required(schema: &mut Map<String, Value>, names: &[&str]) {
    let required = schema
        .entry("required")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for name in names {
            if !required.iter().any(|known| known == name) {
                required.push(Value::from(*name));
            }
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
