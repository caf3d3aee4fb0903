//! Implementations of the functions, by the types that they are about.

pub(crate) mod lists;
pub(crate) mod network;
pub(crate) mod numbers;
pub(crate) mod strings;
pub(crate) mod text_format;
pub(crate) mod time;
pub(crate) mod versions;

use std::rc::Rc;

use crate::stop::Stop;
use crate::value::{List, OpaqueValue, Value};

/// The text of an argument.
pub(crate) fn text<'v>(value: &'v Value<'_>) -> Result<&'v str, Stop> {
    match value {
        Value::Text(text) => Ok(text.as_str()),
        _ => Err(Stop::overload()),
    }
}

/// The integer of an argument.
pub(crate) fn int(value: &Value<'_>) -> Result<i64, Stop> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(Stop::overload()),
    }
}

/// The argument at an index.
pub(crate) fn arg<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Result<&'v Value<'a>, Stop> {
    args.get(index).ok_or_else(Stop::overload)
}

/// A value of Kubernetes' types.
pub(crate) fn opaque<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v OpaqueValue, Stop> {
    match arg(args, index)? {
        Value::Opaque(value) => Ok(Rc::as_ref(value)),
        _ => Err(Stop::overload()),
    }
}

/// The list of an argument.
pub(crate) fn list<'a>(value: &Value<'a>) -> Result<List<'a>, Stop> {
    match value {
        Value::List(list) => Ok(list.clone()),
        _ => Err(Stop::overload()),
    }
}
