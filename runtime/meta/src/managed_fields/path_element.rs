//! One step of the path to a field, and its text in FieldsV1.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::codec;
use crate::go_value::go_text;

/// One step of the path to a field, as in `fieldsV1` of managedFields.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map.
    Field(Box<str>),
    /// The item of a list of type map that has these keys, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The item of a list of type set.
    Value(Value),
    /// The item at an index. No list of ours has such items, but other servers may write them.
    Index(i64),
}

/// Why a key of `fieldsV1` is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key {key:?} of fieldsV1 is malformed: {why}")]
pub struct PathElementError {
    /// The key.
    pub key: String,
    /// The reason.
    pub why: String,
}

impl PathElement {
    /// A field with this name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// An item with these keys.
    pub(super) fn key<'a>(keys: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut keys: Vec<(Box<str>, Value)> = keys
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(keys.into())
    }

    /// Parses a key of `fieldsV1`. `None` for a type of element that is not known, which readers leave out.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(key: &str) -> Result<Option<Self>, PathElementError> {
        let malformed = |why: String| PathElementError {
            key: key.to_owned(),
            why,
        };
        let Some((tag, text)) = key.split_at_checked(2) else {
            return Err(malformed(
                "it must begin with its type and a colon".to_owned(),
            ));
        };
        let json = || serde_json::from_str(text).map_err(|error| malformed(error.to_string()));
        Ok(Some(match tag {
            "f:" => Self::Field(text.into()),
            "v:" => Self::Value(json()?),
            "k:" => match json()? {
                Value::Object(keys) => {
                    Self::Key(keys.into_iter().map(|(k, v)| (k.into(), v)).collect())
                }
                _ => return Err(malformed("the keys must be a JSON object".to_owned())),
            },
            "i:" => Self::Index(
                text.parse()
                    .map_err(|_| malformed("the index must be an integer".to_owned()))?,
            ),
            _ if tag.ends_with(':') => return Ok(None),
            _ => {
                return Err(malformed(
                    "it must begin with its type and a colon".to_owned(),
                ));
            }
        }))
    }

    /// The key in `fieldsV1`.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let mut text = "k:{".to_owned();
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&json(&**name));
                    text.push(':');
                    text.push_str(&value_text(value));
                }
                text.push('}');
                text
            }
            Self::Value(value) => format!("v:{}", value_text(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// Compact JSON, with Go's escapes.
fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    String::from_utf8_lossy(&codec::Encoder::json(&value)).into_owned()
}

/// Compact JSON of a value in a key of `fieldsV1`: the exponent of a float has two digits at least, as the library has it that writes them
/// for kube-apiserver.
fn value_text(value: &Value) -> String {
    let text = json(value);
    match text.split_once("e-") {
        Some((digits, exponent)) if value.is_f64() && exponent.len() == 1 => {
            format!("{digits}e-0{exponent}")
        }
        _ => text,
    }
}

/// A value in the text of a path, where numbers are as Go prints them.
fn shown(value: &Value) -> String {
    if value.is_number() {
        go_text(value)
    } else {
        json(value)
    }
}

/// As in the causes of conflicts: `.name`, `[key="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Key(a), Self::Key(b)) => {
                let members = a.iter().zip(b.iter());
                members
                    .map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare(&a.1, &b.1)))
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Orders values by type, then by content. Integers and floats are compared as numbers.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_all(a.iter(), b.iter(), compare),
        (Value::Object(a), Value::Object(b)) => compare_fields(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_fields(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    compare_all(a.iter(), b.iter(), |a, b| {
        a.0.cmp(b.0).then_with(|| compare(a.1, b.1))
    })
}

fn compare_all<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                order => return order,
            },
        }
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(a).total_cmp(&float(b))
        }
    }
}

/// Whether two values are the same, where 1 and 1.0 are.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    a == b || compare(a, b).is_eq()
}
