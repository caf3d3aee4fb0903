//! Lists, sets, maps and optionals.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{arg, int, list};
use crate::equality::{self, has_item, is_equal};
use crate::meter::{LIST_COST, Meter, tenth};
use crate::operator::Operator;
use crate::schema::Topology;
use crate::stop::Stop;
use crate::value::timestamp::Timestamp;
use crate::value::{Key, List, Map, Outcome, Value, plain};

/// Adds the cost of one pass over a value.
pub(crate) fn traverse<'a>(meter: &mut Meter<'a>, value: &Value<'a>) -> Result<(), Stop> {
    match value {
        Value::Text(text) => meter.charge(text.as_str().len() as u64 / 10),
        Value::Bytes(bytes) => meter.charge(bytes.len() as u64 / 10),
        Value::List(list) => {
            let mut index = 0;
            while let Some(item) = list.get(index) {
                meter.step()?;
                traverse(meter, &item?)?;
                index += 1;
            }
            Ok(())
        }
        Value::Map(map) => {
            meter.charge(tenth(map.len()))?;
            for (key, value) in map.entries()? {
                traverse(meter, &key)?;
                traverse(meter, &value)?;
            }
            Ok(())
        }
        _ => meter.charge(1),
    }
}

/// The items of a list, each of which is a step.
fn items<'a>(meter: &mut Meter<'a>, value: &Value<'a>) -> Result<Vec<Value<'a>>, Stop> {
    let list = list(value)?;
    let mut items = Vec::new();
    while let Some(item) = list.get(items.len() as u64) {
        meter.step()?;
        items.push(item?);
    }
    Ok(items)
}

pub(crate) fn size<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match arg(args, 0)? {
        value @ (Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(Stop::overload()),
    }
}

/// The operator `[]`.
pub(crate) fn index<'a>(operand: &Value<'a>, at: &Value<'a>, is_optional: bool) -> Outcome<'a> {
    let found = match operand {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => return index(inner, at, true),
        Value::List(list) => {
            let position = match Key::of(at) {
                Some(Key::Number(position)) => position,
                _ => return Err(wrong_index(at.type_name())),
            };
            let found = u64::try_from(position).ok().and_then(|at| list.get(at));
            found.ok_or_else(|| Stop::error(format!("index out of bounds: {position}")))
        }
        Value::Map(map) => {
            let found = map.get(at);
            found.ok_or_else(|| Stop::error(format!("no such key: {}", plain(at))))
        }
        _ => Err(Stop::error(format!("no such key: {}", plain(at)))),
    };
    match (found, is_optional) {
        (Ok(value), false) => value,
        (Ok(value), true) => Ok(Value::some(value?)),
        (Err(_), true) => Ok(Value::Optional(None)),
        (Err(stop), false) => Err(stop),
    }
}

/// The error of an index that is not a number.
pub(crate) fn wrong_index(kind: &str) -> Stop {
    Stop::error(format!("unsupported index type '{kind}' in list"))
}

/// The operator `in`.
pub(crate) fn contains<'a>(
    meter: &mut Meter<'a>,
    value: &Value<'a>,
    range: &Value<'a>,
) -> Outcome<'a> {
    match range {
        Value::List(list) => {
            meter.charge(list.len())?;
            Ok(Value::Bool(has_item(meter, list, value)?))
        }
        Value::Map(map) => {
            meter.charge(1)?;
            Ok(Value::Bool(map.get(value).is_some()))
        }
        _ => Err(Stop::overload()),
    }
}

/// The operator `in` for a list that is written in the rule, which costs no more than its steps.
pub(crate) fn contains_literal<'a>(
    meter: &mut Meter<'a>,
    value: &Value<'a>,
    range: &Value<'a>,
) -> Outcome<'a> {
    Ok(Value::Bool(has_item(meter, &list(range)?, value)?))
}

/// The operator `+`. Sets and lists with keys take no item twice; an item of the second list replaces that with its keys.
pub(crate) fn join<'a>(meter: &mut Meter<'a>, a: &List<'a>, b: &List<'a>) -> Outcome<'a> {
    let topology = a.topology();
    if *topology == Topology::Atomic {
        if a.len() == 0 {
            return Ok(Value::List(b.clone()));
        }
        if b.len() == 0 {
            return Ok(Value::List(a.clone()));
        }
        let len = a.len().saturating_add(b.len());
        let both = (a.clone(), b.clone(), len);
        return Ok(Value::List(List::Joined(both.into())));
    }
    let mut all = items(meter, &Value::List(a.clone()))?;
    for item in items(meter, &Value::List(b.clone()))? {
        let mut place = None;
        for (index, known) in all.iter().enumerate() {
            if is_same_item(meter, topology, known, &item)? {
                place = Some(index);
                break;
            }
        }
        match place.and_then(|index| all.get_mut(index)) {
            Some(slot) => *slot = item,
            None => all.push(item),
        }
    }
    Ok(Value::List(List::Sum(Rc::new(all), topology)))
}

/// Whether two items are the same one of a set or of a list with keys.
fn is_same_item<'a>(
    meter: &mut Meter<'a>,
    topology: &Topology,
    a: &Value<'a>,
    b: &Value<'a>,
) -> Result<bool, Stop> {
    let Topology::Map(keys) = topology else {
        return equality::equal(meter, a, b);
    };
    let (Value::Map(Map::Object(a, _)), Value::Map(Map::Object(b, _))) = (a, b) else {
        return equality::equal(meter, a, b);
    };
    meter.step()?;
    Ok(keys.iter().all(|key| a.get(key) == b.get(key)))
}

pub(crate) fn index_of<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    position(meter, args, false)
}

pub(crate) fn last_index_of<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    position(meter, args, true)
}

fn position<'a>(meter: &mut Meter<'a>, args: &[Value<'a>], is_last: bool) -> Outcome<'a> {
    let (target, wanted) = (arg(args, 0)?, arg(args, 1)?);
    if let Value::Text(_) = target {
        return super::strings::position(meter, args, is_last);
    }
    traverse(meter, target)?;
    let mut found = -1;
    for (index, item) in items(meter, target)?.iter().enumerate() {
        if is_equal(meter, item, wanted)? {
            found = index as i64;
            if !is_last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

pub(crate) fn is_sorted<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    traverse(meter, arg(args, 0)?)?;
    let all = items(meter, arg(args, 0)?)?;
    if !all.iter().all(Value::is_ordered) {
        return Err(Stop::overload());
    }
    // Neighbors without an order, such as a number and a text, count as sorted.
    let mut pairs = all.windows(2);
    let is_sorted = pairs.all(|pair| pair[0].compare(&pair[1]) != Some(Ordering::Greater));
    Ok(Value::Bool(is_sorted))
}

pub(crate) fn sum<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    traverse(meter, arg(args, 0)?)?;
    let mut all = items(meter, arg(args, 0)?)?.into_iter();
    let Some(mut total) = all.next() else {
        return Ok(Value::Int(0));
    };
    for item in all {
        total = match (&total, &item) {
            (Value::Duration(a), Value::Duration(b)) => match a.checked_add(*b) {
                Some(sum) => Value::Duration(sum),
                None => return Err(Stop::error("duration overflow")),
            },
            (a, b) => super::numbers::arithmetic(Operator::Add, a, b)?,
        };
    }
    Ok(total)
}

pub(crate) fn max<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    extreme(meter, args, Ordering::Greater, "max called on empty list")
}

pub(crate) fn min<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    extreme(meter, args, Ordering::Less, "min called on empty list")
}

fn extreme<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    better: Ordering,
    empty: &'static str,
) -> Outcome<'a> {
    traverse(meter, arg(args, 0)?)?;
    let mut best: Option<Value<'a>> = None;
    for item in items(meter, arg(args, 0)?)? {
        if !item.is_ordered() {
            return Err(Stop::overload());
        }
        // An item that has no order with the best so far is not better.
        let is_better = match &best {
            None => true,
            Some(best) => item.compare(best) == Some(better),
        };
        if is_better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Stop::error(empty))
}

pub(crate) fn first<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    item_or_none(&list(arg(args, 0)?)?, Some(0))
}

pub(crate) fn last<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let list = list(arg(args, 0)?)?;
    item_or_none(&list, list.len().checked_sub(1))
}

fn item_or_none<'a>(list: &List<'a>, index: Option<u64>) -> Outcome<'a> {
    match index.and_then(|index| list.get(index)) {
        Some(item) => Ok(Value::some(item?)),
        None => Ok(Value::Optional(None)),
    }
}

/// The values of a list of optionals that have one.
pub(crate) fn unwrap<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let mut found = Vec::new();
    for item in items(meter, arg(args, 0)?)? {
        match item {
            Value::Optional(Some(value)) => found.push(Rc::unwrap_or_clone(value)),
            Value::Optional(None) => {}
            _ => return Err(Stop::overload()),
        }
    }
    Ok(Value::list(found))
}

pub(crate) fn slice<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(arg(args, 0)?)?;
    let (start, end) = (int(arg(args, 1)?)?, int(arg(args, 2)?)?);
    if start < 0 || end < 0 {
        return Err(Stop::error(format!(
            "cannot slice({start}, {end}), negative indexes not supported"
        )));
    }
    if start > end {
        return Err(Stop::error(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    let (start, end) = (start as u64, end as u64);
    if end > list.len() {
        return Err(Stop::error(format!(
            "cannot slice({start}, {end}), list is length {}",
            list.len()
        )));
    }
    charge_new_list(meter, 1.0, end - start)?;
    let found: Result<Vec<Value<'a>>, Stop> =
        (start..end).filter_map(|index| list.get(index)).collect();
    Ok(Value::list(found?))
}

pub(crate) fn flatten<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let depth = args.get(1).map_or(Ok(1), int)?;
    if depth < 0 {
        return Err(Stop::error("level must be non-negative"));
    }
    let mut found = Vec::new();
    let list = list(arg(args, 0)?)?;
    charge_new_list(meter, depth as f64, list.len())?;
    flatten_into(meter, &list, depth, &mut found)?;
    Ok(Value::list(found))
}

fn flatten_into<'a>(
    meter: &mut Meter<'a>,
    list: &List<'a>,
    depth: i64,
    found: &mut Vec<Value<'a>>,
) -> Result<(), Stop> {
    let mut index = 0;
    while let Some(item) = list.get(index) {
        meter.step()?;
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(meter, &inner, depth - 1, found)?,
            other => found.push(other),
        }
        index += 1;
    }
    Ok(())
}

pub(crate) fn reverse<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let list = list(target)?;
    charge_new_list(meter, 1.0, list.len())?;
    let mut all = (0..list.len())
        .filter_map(|index| list.get(index))
        .collect::<Result<Vec<_>, Stop>>()?;
    all.reverse();
    Ok(Value::list(all))
}

pub(crate) fn sort<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(arg(args, 0)?)?;
    charge_comparisons(meter, list.len(), list.get(0).transpose()?.as_ref())?;
    let all = (0..list.len())
        .filter_map(|index| list.get(index))
        .collect::<Result<Vec<_>, Stop>>()?;
    sorted(all.clone(), all)
}

/// The cost of a list that a function makes in some passes over its items.
fn charge_new_list(meter: &mut Meter<'_>, passes: f64, count: u64) -> Result<(), Stop> {
    // Casts of floats saturate.
    meter.charge(((count as f64 * passes) as u64).saturating_add(1 + LIST_COST))
}

/// The cost of comparing all items of a list, of which one is given, with each other.
fn charge_comparisons(
    meter: &mut Meter<'_>,
    count: u64,
    item: Option<&Value<'_>>,
) -> Result<(), Stop> {
    let is_text = matches!(item, Some(Value::Text(_) | Value::Bytes(_)));
    let passes = if is_text { 2.1 } else { 2.0 };
    charge_new_list(meter, passes, count.saturating_mul(count))
}

/// Sorts items by keys, which must have an order and one type.
pub(crate) fn sort_by<'a>(
    meter: &mut Meter<'a>,
    items: Vec<Value<'a>>,
    keys: Vec<Value<'a>>,
) -> Outcome<'a> {
    // The list is a variable, which is named twice.
    meter.charge(2)?;
    charge_comparisons(meter, keys.len() as u64, keys.first())?;
    sorted(items, keys)
}

fn sorted<'a>(items: Vec<Value<'a>>, keys: Vec<Value<'a>>) -> Outcome<'a> {
    if let Some(first) = keys.first() {
        if !first.is_ordered() {
            return Err(Stop::error("list elements must be comparable"));
        }
        if keys.iter().any(|key| key.type_name() != first.type_name()) {
            return Err(Stop::error("list elements must have the same type"));
        }
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items).collect();
    let has_order = |(key, _): &(Value<'a>, _)| key.compare(key).is_some();
    if pairs.iter().all(has_order) {
        pairs.sort_by(|(a, _), (b, _)| a.compare(b).unwrap_or(Ordering::Equal));
    } else {
        insert_in_order(&mut pairs);
    }
    Ok(Value::list(
        pairs.into_iter().map(|(_, item)| item).collect(),
    ))
}

/// Sorts by insertion, which leaves a key without an order, NaN, where it is: no other key is less than it. As many comparisons are
/// paid for.
fn insert_in_order<'a>(pairs: &mut [(Value<'a>, Value<'a>)]) {
    for end in 1..pairs.len() {
        let mut at = end;
        while at > 0 && pairs[at].0.compare(&pairs[at - 1].0) == Some(Ordering::Less) {
            pairs.swap(at, at - 1);
            at -= 1;
        }
    }
}

pub(crate) fn distinct<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(arg(args, 0)?)?;
    charge_comparisons(meter, list.len(), list.get(0).transpose()?.as_ref())?;
    let mut found: Vec<Value<'a>> = Vec::new();
    for index in 0..list.len() {
        let Some(item) = list.get(index).transpose()? else {
            break;
        };
        let mut is_known = false;
        for known in &found {
            if is_equal(meter, known, &item)? {
                is_known = true;
                break;
            }
        }
        if !is_known {
            found.push(item);
        }
    }
    Ok(Value::list(found))
}

pub(crate) fn range<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let end = int(arg(args, 0)?)?;
    charge_new_list(meter, 1.0, u64::try_from(end).unwrap_or(0))?;
    Ok(Value::list((0..end).map(Value::Int).collect()))
}

pub(crate) fn sets_contains<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let (list, sub) = set_pair(meter, args, 1)?;
    Ok(Value::Bool(has_all(meter, &list, &sub)?))
}

pub(crate) fn sets_equivalent<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let (a, b) = set_pair(meter, args, 2)?;
    Ok(Value::Bool(
        has_all(meter, &a, &b)? && has_all(meter, &b, &a)?,
    ))
}

pub(crate) fn sets_intersects<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let (list, other) = set_pair(meter, args, 1)?;
    let mut index = 0;
    while let Some(item) = other.get(index) {
        if has_item(meter, &list, &item?)? {
            return Ok(Value::Bool(true));
        }
        index += 1;
    }
    Ok(Value::Bool(false))
}

/// Two lists, each item of which may be compared with each of the other in some passes, at that cost.
fn set_pair<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    passes: u64,
) -> Result<(List<'a>, List<'a>), Stop> {
    let (a, b) = (list(arg(args, 0)?)?, list(arg(args, 1)?)?);
    let pairs = a.len().saturating_mul(b.len());
    meter.charge(pairs.saturating_mul(passes).saturating_add(1))?;
    Ok((a, b))
}

fn has_all<'a>(meter: &mut Meter<'a>, list: &List<'a>, sub: &List<'a>) -> Result<bool, Stop> {
    let mut index = 0;
    while let Some(item) = sub.get(index) {
        if !has_item(meter, list, &item?)? {
            return Ok(false);
        }
        index += 1;
    }
    Ok(true)
}

pub(crate) fn optional_of<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::some(arg(args, 0)?.clone()))
}

pub(crate) fn optional_of_non_zero<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let value = arg(args, 0)?;
    let is_zero = match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => {
            true
        }
        Value::Double(number) => *number == 0.0,
        Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        Value::Timestamp(time) => *time == Timestamp::FIRST,
        _ => false,
    };
    Ok(if is_zero {
        Value::Optional(None)
    } else {
        Value::some(value.clone())
    })
}

pub(crate) fn optional_none<'a>(meter: &mut Meter<'a>, _args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Optional(None))
}

pub(crate) fn has_value<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match arg(args, 0)? {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn value<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match arg(args, 0)? {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Err(Stop::error("optional.none() dereference")),
        _ => Err(Stop::overload()),
    }
}

/// What is no optional is its own value.
pub(crate) fn or_value<'a>(_run: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    match arg(args, 0)? {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Ok(arg(args, 1)?.clone()),
        other => Ok(other.clone()),
    }
}

pub(crate) fn or<'a>(_run: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    match (arg(args, 0)?, arg(args, 1)?) {
        (Value::Optional(None), other @ Value::Optional(_)) => Ok(other.clone()),
        (first @ Value::Optional(_), Value::Optional(_)) => Ok(first.clone()),
        _ => Err(Stop::overload()),
    }
}
