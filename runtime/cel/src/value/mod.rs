//! Values of expressions. Those of documents are borrowed.

pub(crate) mod address;
pub(crate) mod amount;
pub(crate) mod go_address;
pub(crate) mod go_url;
mod json;
pub(crate) mod name_format;
pub(crate) mod semver;
pub(crate) mod timestamp;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as JsonMap, Value as Json};

use self::address::Cidr;
use self::amount::Amount;
use self::go_url::Url;
use self::name_format::Format;
use self::semver::Semver;
use self::timestamp::{Timestamp, parse_duration, parse_timestamp};
use crate::schema::{Decl, Shape, Topology};
use crate::stop::Stop;
use crate::types::Opaque;

/// A value, or why there is none.
pub(crate) type Outcome<'a> = Result<Value<'a>, Stop>;

/// A string.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Value<'a>>>),
    Type(&'static str),
    Opaque(Rc<OpaqueValue>),
}

/// A value of a type of Kubernetes' libraries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpaqueValue {
    Ip(std::net::IpAddr),
    Cidr(Cidr),
    Quantity(Amount),
    Url(Box<Url>),
    Semver(Semver),
    Format(Format),
}

impl OpaqueValue {
    pub(crate) fn kind(&self) -> Opaque {
        match self {
            Self::Ip(_) => Opaque::Ip,
            Self::Cidr(_) => Opaque::Cidr,
            Self::Quantity(_) => Opaque::Quantity,
            Self::Url(_) => Opaque::Url,
            Self::Semver(_) => Opaque::Semver,
            Self::Format(_) => Opaque::Format,
        }
    }
}

/// A list. Two lists that are added are not copied.
#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    Json(&'a [Json], &'a Decl, &'a Topology),
    Items(Rc<Vec<Value<'a>>>),
    /// The sum of a set or of a list with keys.
    Sum(Rc<Vec<Value<'a>>>, &'a Topology),
    /// Two lists, and the number of items of both.
    Joined(Rc<(List<'a>, List<'a>, u64)>),
}

impl<'a> List<'a> {
    pub(crate) fn new(items: Vec<Value<'a>>) -> Self {
        Self::Items(Rc::new(items))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Json(items, ..) => items.len() as u64,
            Self::Items(items) | Self::Sum(items, _) => items.len() as u64,
            Self::Joined(both) => both.2,
        }
    }

    /// The item at an index.
    pub(crate) fn get(&self, index: u64) -> Option<Outcome<'a>> {
        let (mut list, mut index) = (self, index);
        loop {
            match list {
                Self::Json(items, decl, _) => {
                    let item = items.get(usize::try_from(index).ok()?)?;
                    return Some(Value::of(item, decl));
                }
                Self::Items(items) | Self::Sum(items, _) => {
                    return items.get(usize::try_from(index).ok()?).cloned().map(Ok);
                }
                Self::Joined(both) => {
                    let first = both.0.len();
                    if index < first {
                        list = &both.0;
                    } else {
                        index -= first;
                        list = &both.1;
                    }
                }
            }
        }
    }

    /// How the items are told apart, for a list of a document.
    pub(crate) fn topology(&self) -> &'a Topology {
        match self {
            Self::Json(_, _, topology) | Self::Sum(_, topology) => topology,
            Self::Items(_) | Self::Joined(_) => &Topology::Atomic,
        }
    }

    /// Whether the list is of a document, or begins with one.
    fn is_of_document(&self) -> bool {
        let mut list = self;
        while let Self::Joined(both) = list {
            list = &both.0;
        }
        match list {
            Self::Json(_, items, _) => !items.is_any(),
            Self::Sum(..) => true,
            Self::Items(_) | Self::Joined(_) => false,
        }
    }
}

/// A key of a map, without the difference between types of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    Text(Box<str>),
}

impl Key {
    /// The key for a value; `None` for values that no key equals.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Number(i128::from(*number)),
            Value::Uint(number) => Self::Number(i128::from(*number)),
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 1e30 => {
                Self::Number(*number as i128)
            }
            Value::Text(text) => Self::Text(text.as_str().into()),
            _ => return None,
        })
    }
}

/// A map that an expression made.
#[derive(Debug, Default)]
pub(crate) struct Made<'a> {
    pub(crate) entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key, usize>,
}

impl<'a> Made<'a> {
    /// Adds an entry; an error if the key is not one, or is there already.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), Stop> {
        let found = match &key {
            Value::Double(_) => None,
            key => Key::of(key),
        };
        let found = found.ok_or_else(|| Stop::error("unsupported key type"))?;
        if self.index.contains_key(&found) {
            return Err(Stop::error(format!(
                "insert failed: key {} already exists",
                plain(&key)
            )));
        }
        self.index.insert(found, self.entries.len());
        self.entries.push((key, value));
        Ok(())
    }

    /// Adds an entry, or replaces that of the key.
    pub(crate) fn set(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), Stop> {
        let known = Key::of(&key).and_then(|key| self.index.get(&key).copied());
        match known.and_then(|index| self.entries.get_mut(index)) {
            Some(entry) => *entry = (key, value),
            None => self.insert(key, value)?,
        }
        Ok(())
    }

    fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        let index = *self.index.get(&Key::of(key)?)?;
        self.entries.get(index).map(|(_, value)| value.clone())
    }
}

/// A map, or an object of a document.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Object(&'a JsonMap<String, Json>, &'a Decl),
    /// A map of a document, and the type of its values.
    Json(&'a JsonMap<String, Json>, &'a Decl),
    Made(Rc<Made<'a>>),
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Object(fields, _) | Self::Json(fields, _) => fields.len() as u64,
            Self::Made(made) => made.entries.len() as u64,
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &Value<'_>) -> Option<Outcome<'a>> {
        match (self, key) {
            (Self::Made(made), key) => made.get(key).map(Ok),
            (_, Value::Text(text)) => self.field(text.as_str()),
            _ => None,
        }
    }

    /// The value of a field or a key, by its name in rules. A field that is null is absent.
    pub(crate) fn field(&self, name: &str) -> Option<Outcome<'a>> {
        match self {
            Self::Object(fields, decl) => {
                let Shape::Object(known) = &decl.shape else {
                    return None;
                };
                let (name, decl) = known.named(name)?;
                let value = fields.get(name).filter(|value| !value.is_null())?;
                Some(Value::of(value, decl))
            }
            Self::Json(fields, values) => fields.get(name).map(|value| Value::of(value, values)),
            Self::Made(made) => made.get(&Value::Text(Text::Shared(name.into()))).map(Ok),
        }
    }

    /// Keys and values.
    pub(crate) fn entries(&self) -> Result<Vec<(Value<'a>, Value<'a>)>, Stop> {
        let pair =
            |name: &'a String, value: Outcome<'a>| Ok((Value::Text(Text::Borrowed(name)), value?));
        match self {
            Self::Object(fields, decl) => {
                let fields = fields.iter().filter(|(_, value)| !value.is_null());
                let known =
                    fields.filter_map(|(name, value)| Some((name, value, decl.field(name)?)));
                known
                    .map(|(name, value, decl)| pair(name, Value::of(value, decl)))
                    .collect()
            }
            Self::Json(fields, values) => fields
                .iter()
                .map(|(name, value)| pair(name, Value::of(value, values)))
                .collect(),
            Self::Made(made) => Ok(made.entries.clone()),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Shared(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::new(items))
    }

    pub(crate) fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn opaque(value: OpaqueValue) -> Self {
        Self::Opaque(Rc::new(value))
    }

    /// The value of a document by its type.
    pub(crate) fn of(json: &'a Json, decl: &'a Decl) -> Outcome<'a> {
        let wrong = |expected: &str| Err(Stop::error(format!("invalid data, expected {expected}")));
        Ok(match (json, &decl.shape) {
            (Json::Null, _) => Self::Null,
            (Json::Bool(flag), Shape::Bool) => Self::Bool(*flag),
            (Json::Number(number), Shape::Int | Shape::IntOrText) => match number.as_i64() {
                Some(number) => Self::Int(number),
                None => return wrong("int"),
            },
            (Json::Number(number), Shape::Double) => match number.as_f64() {
                Some(number) => Self::Double(number),
                None => return wrong("float"),
            },
            (Json::String(text), Shape::Text | Shape::IntOrText) => {
                Self::Text(Text::Borrowed(text))
            }
            (Json::String(text), Shape::Bytes) => match STANDARD.decode(text) {
                Ok(bytes) => Self::Bytes(bytes.into()),
                Err(_) => return wrong("base64"),
            },
            (Json::String(text), Shape::Duration) => match parse_duration(text) {
                Some(nanos) => Self::Duration(nanos),
                None => return wrong("a duration"),
            },
            (Json::String(text), Shape::Time) => match parse_timestamp(text) {
                Some(found) => Self::Timestamp(found),
                None => return wrong("a date-time"),
            },
            (Json::String(text), Shape::Date) => {
                match parse_timestamp(&format!("{text}T00:00:00Z")) {
                    Some(found) => Self::Timestamp(found),
                    None => return wrong("a date"),
                }
            }
            (Json::Array(items), Shape::List(element, topology)) => {
                Self::List(List::Json(items, element, topology))
            }
            (Json::Object(fields), Shape::Map(values)) => Self::Map(Map::Json(fields, values)),
            (Json::Object(fields), Shape::Object(_)) => Self::Map(Map::Object(fields, decl)),
            (json, Shape::Any) => Self::of_any(json),
            _ => return wrong("a value of the type in the schema"),
        })
    }

    /// A value of a document whose form no schema says.
    fn of_any(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => Self::Double(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Self::Text(Text::Borrowed(text)),
            Json::Array(items) => Self::List(List::Json(items, Decl::any(), &Topology::Atomic)),
            Json::Object(fields) => Self::Map(Map::Json(fields, Decl::any())),
        }
    }

    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Opaque(value) => value.kind().name(),
        }
    }

    /// Whether the value is a list or an object of a document, whose comparison with a value of another type is an error.
    pub(crate) fn is_part_of_document(&self) -> bool {
        match self {
            Self::List(list) => list.is_of_document(),
            Self::Map(Map::Json(_, values)) => !values.is_any(),
            Self::Map(map) => matches!(map, Map::Object(..)),
            _ => false,
        }
    }

    /// Whether values of the type have an order.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Int(_)
                | Self::Uint(_)
                | Self::Double(_)
                | Self::Text(_)
                | Self::Bytes(_)
                | Self::Duration(_)
                | Self::Timestamp(_)
        )
    }

    /// The size that costs are counted by: characters, bytes, items or entries; 1 for other values.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.as_str().chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Optional(Some(value)) => value.size(),
            Self::Opaque(value) => match &**value {
                OpaqueValue::Ip(ip) => {
                    if ip.is_ipv4() {
                        4
                    } else {
                        16
                    }
                }
                OpaqueValue::Cidr(cidr) => {
                    if cidr.address.is_ipv4() {
                        4
                    } else {
                        16
                    }
                }
                _ => 1,
            },
            _ => 1,
        }
    }

    /// The order of two values of a type with an order.
    pub(crate) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Value::Text(b)) => Some(a.as_str().cmp(b.as_str())),
            (Self::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            _ => compare_numbers(self, other).flatten(),
        }
    }
}

/// The order of two numbers; `None` if one is not a number, and inside if one is NaN.
#[allow(
    clippy::option_option,
    reason = "not a number, and without an order, differ"
)]
pub(crate) fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (whole(a), whole(b), a, b) {
        (Some(a), Some(b), ..) => Some(Some(a.cmp(&b))),
        (_, _, Value::Double(a), Value::Double(b)) => Some(a.partial_cmp(b)),
        // Whole numbers are rounded to doubles, as in cel-go.
        (Some(a), None, _, Value::Double(b)) => Some((a as f64).partial_cmp(b)),
        (None, Some(b), Value::Double(a), _) => Some(a.partial_cmp(&(b as f64))),
        _ => None,
    }
}

/// A key or a scalar for messages.
pub(crate) fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => apiloom_schema::field::echoed(text.as_str()).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        other => other.type_name().to_owned(),
    }
}
