//! Compares values as a whole.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::meter::Meter;
use crate::schema::{Decl, Topology};
use crate::stop::Stop;
use crate::value::{List, Map, Value, compare_numbers};

/// Whether two values are equal; values of different types are not, but lists and objects of documents and the
/// values of Kubernetes' own types cannot be compared with them.
pub(crate) fn equal<'a>(meter: &mut Meter<'a>, a: &Value<'a>, b: &Value<'a>) -> Result<bool, Stop> {
    meter.step()?;
    if let Some(order) = compare_numbers(a, b) {
        return Ok(order == Some(std::cmp::Ordering::Equal));
    }
    let is_comparable = match (a, b) {
        (_, Value::Null) | (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            true
        }
        (Value::Opaque(a), Value::Opaque(b)) => a.kind() == b.kind(),
        (a, _) => !a.is_part_of_document() && !matches!(a, Value::Opaque(_)),
    };
    if !is_comparable {
        return Err(Stop::overload());
    }
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => return equal(meter, a, b),
            _ => false,
        },
        (Value::Opaque(a), Value::Opaque(b)) => a == b,
        (Value::List(a), Value::List(b)) => return equal_lists(meter, a, b),
        (Value::Map(a), Value::Map(b)) => return equal_maps(meter, a, b),
        _ => a.compare(b).is_some_and(std::cmp::Ordering::is_eq),
    })
}

fn equal_lists<'a>(meter: &mut Meter<'a>, a: &List<'a>, b: &List<'a>) -> Result<bool, Stop> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if *a.topology() != Topology::Atomic {
        return equal_in_any_order(meter, a, b);
    }
    let mut index = 0;
    while let (Some(one), Some(other)) = (a.get(index), b.get(index)) {
        if !equal(meter, &one?, &other?)? {
            return Ok(false);
        }
        index += 1;
    }
    Ok(true)
}

fn equal_maps<'a>(meter: &mut Meter<'a>, a: &Map<'a>, b: &Map<'a>) -> Result<bool, Stop> {
    if let (Map::Object(a, decl), Map::Object(b, _)) = (a, b) {
        let fields = |map: &'a serde_json::Map<String, Json>| {
            map.iter().filter(|(_, value)| !value.is_null())
        };
        if fields(a).count() != fields(b).count() {
            return Ok(false);
        }
        for (name, value) in fields(a) {
            let Some(other) = b.get(name).filter(|other| !other.is_null()) else {
                return Ok(false);
            };
            if !equal_fields(meter, value, other, decl.field(name))? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a.entries()? {
        let Some(other) = b.get(&key) else {
            return Ok(false);
        };
        if !equal(meter, &value, &other?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_fields<'a>(
    meter: &mut Meter<'a>,
    a: &'a Json,
    b: &'a Json,
    decl: Option<&'a std::sync::Arc<Decl>>,
) -> Result<bool, Stop> {
    let Some(decl) = decl else {
        return equal_json(meter, a, b);
    };
    let (a, b) = (Value::of(a, decl)?, Value::of(b, decl)?);
    equal(meter, &a, &b)
}

/// Whether two values without a type are equal.
fn equal_json(meter: &mut Meter<'_>, a: &Json, b: &Json) -> Result<bool, Stop> {
    meter.step()?;
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (one, other) in a.iter().zip(b) {
                if !equal_json(meter, one, other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(a), Json::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, value) in a {
                match b.get(name) {
                    Some(other) if equal_json(meter, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a == b),
    }
}

pub(crate) fn has_item<'a>(
    meter: &mut Meter<'a>,
    list: &List<'a>,
    value: &Value<'a>,
) -> Result<bool, Stop> {
    let mut index = 0;
    while let Some(item) = list.get(index) {
        if is_equal(meter, &item?, value)? {
            return Ok(true);
        }
        index += 1;
    }
    Ok(false)
}

/// Whether an item is a value. Values that cannot be compared are not equal.
pub(crate) fn is_equal<'a>(
    meter: &mut Meter<'a>,
    item: &Value<'a>,
    value: &Value<'a>,
) -> Result<bool, Stop> {
    match equal(meter, item, value) {
        Err(Stop::Error(_)) => Ok(false),
        found => found,
    }
}

/// Whether two sets, or two lists with keys, have equal items.
fn equal_in_any_order<'a>(meter: &mut Meter<'a>, a: &List<'a>, b: &List<'a>) -> Result<bool, Stop> {
    if let (List::Json(a, decl, topology), List::Json(b, ..)) = (a, b) {
        // By their keys, so that the number of comparisons is that of the items.
        let identity = |item: &Json| match topology {
            Topology::Map(keys) => {
                let keys: Vec<&Json> = keys.iter().map(|key| &item[key.as_str()]).collect();
                format!("{keys:?}")
            }
            _ => item.to_string(),
        };
        let mut known = HashMap::with_capacity(a.len());
        for item in *a {
            meter.step()?;
            known.insert(identity(item), item);
        }
        for item in *b {
            let Some(other) = known.remove(&identity(item)) else {
                return Ok(false);
            };
            let (other, item) = (Value::of(other, decl)?, Value::of(item, decl)?);
            if !equal(meter, &other, &item)? {
                return Ok(false);
            }
        }
        return Ok(known.is_empty());
    }
    let mut index = 0;
    while let Some(item) = a.get(index) {
        if !has_item(meter, b, &item?)? {
            return Ok(false);
        }
        index += 1;
    }
    Ok(true)
}
