//! What macros visit, and what they have found so far.

use std::rc::Rc;

use crate::schema::Decl;
use crate::stop::Stop;
use crate::value::{List, Made, Map, Outcome, Text, Value};

/// The elements that a macro visits, in order. None is made before it is visited.
pub(crate) enum Range<'a> {
    List(List<'a>, u64),
    Object(Fields<'a>, &'a Decl),
    Json(Fields<'a>, &'a Decl),
    Made(Rc<Made<'a>>, usize),
}

pub(crate) type Fields<'a> = serde_json::map::Iter<'a>;

/// The index or key of an element, its value, and the one of both that a single variable has.
pub(crate) type Element<'a> = (Value<'a>, Value<'a>, Value<'a>);

impl<'a> Range<'a> {
    pub(crate) fn of(value: &Value<'a>) -> Result<Self, Stop> {
        Ok(match value {
            Value::List(list) => Self::List(list.clone(), 0),
            Value::Map(Map::Object(fields, decl)) => Self::Object(fields.iter(), decl),
            Value::Map(Map::Json(fields, values)) => Self::Json(fields.iter(), values),
            Value::Map(Map::Made(made)) => Self::Made(Rc::clone(made), 0),
            other => return Err(not_iterable(other)),
        })
    }

    pub(crate) fn next(&mut self) -> Option<Result<Element<'a>, Stop>> {
        let entry = |name: &'a String, value: Outcome<'a>| {
            let key = Value::Text(Text::Borrowed(name));
            Some(value.map(|value| (key.clone(), value, key)))
        };
        match self {
            Self::List(list, index) => {
                let item = list.get(*index)?;
                let position = i64::try_from(*index).unwrap_or(i64::MAX);
                *index += 1;
                Some(item.map(|item| (Value::Int(position), item.clone(), item)))
            }
            Self::Object(fields, decl) => {
                let known = fields.find_map(|(name, value)| {
                    let decl = decl.field(name).filter(|_| !value.is_null())?;
                    Some((name, Value::of(value, decl)))
                });
                let (name, value) = known?;
                entry(name, value)
            }
            Self::Json(fields, values) => {
                let (name, value) = fields.next()?;
                entry(name, Value::of(value, values))
            }
            Self::Made(made, index) => {
                let (key, value) = made.entries.get(*index)?;
                *index += 1;
                Some(Ok((key.clone(), value.clone(), key.clone())))
            }
        }
    }
}

/// The error of cel-go, with its name of the type.
fn not_iterable(value: &Value<'_>) -> Stop {
    let name = match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::Text(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        _ => return Stop::overload(),
    };
    Stop::error(format!("got '{name}', expected iterable type"))
}

/// What a macro has found so far.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub(crate) items: Vec<Value<'a>>,
    pub(crate) keys: Vec<Value<'a>>,
    pub(crate) made: Made<'a>,
    pub(crate) matches: u64,
    pub(crate) error: Option<Stop>,
}
