//! Evaluates macros over lists and maps, and compares values as a whole.

use std::rc::Rc;

use serde_json::Value as Json;

use crate::ast::{Fold, FoldOp, OptionalMap};
use crate::functions::lists;
use crate::run::{LIST_COST, Outcome, Run, Stop};
use crate::schema::{Decl, Topology};
use crate::value::{List, Made, Map, Text, Value, compare_numbers};

/// The elements that a macro visits, in order. None is made before it is visited.
enum Range<'a> {
    List(List<'a>, u64),
    Object(Fields<'a>, &'a Decl),
    Json(Fields<'a>, &'a Decl),
    Made(Rc<Made<'a>>, usize),
}

type Fields<'a> = serde_json::map::Iter<'a>;

/// The index or key of an element, its value, and the one of both that a single variable has.
type Element<'a> = (Value<'a>, Value<'a>, Value<'a>);

impl<'a> Range<'a> {
    fn of(value: &Value<'a>) -> Result<Self, Stop> {
        Ok(match value {
            Value::List(list) => Self::List(list.clone(), 0),
            Value::Map(Map::Object(fields, decl)) => Self::Object(fields.iter(), decl),
            Value::Map(Map::Json(fields, values)) => Self::Json(fields.iter(), values),
            Value::Map(Map::Made(made)) => Self::Made(Rc::clone(made), 0),
            other => return Err(not_iterable(other)),
        })
    }

    fn next(&mut self) -> Option<Result<Element<'a>, Stop>> {
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
struct Found<'a> {
    items: Vec<Value<'a>>,
    keys: Vec<Value<'a>>,
    made: Made<'a>,
    matches: u64,
    error: Option<Stop>,
}

impl<'a> Run<'a> {
    #[inline(never)]
    pub(crate) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.value(&fold.range)?;
        let mut range = Range::of(&range)?;
        let mut found = Found::default();
        while let Some(element) = range.next() {
            let (key, value, single) = element?;
            let one = [single.clone()];
            let is_done = if fold.variables.len() == 1 {
                self.with(one, |run| run.element(fold, single, None, &mut found))?
            } else {
                let variables = [key.clone(), value];
                self.with(variables, |run| {
                    run.element(fold, single, Some(key), &mut found)
                })?
            };
            if is_done {
                // As in kube-apiserver, the condition is looked at once more, unless this element is the last one.
                if range.next().is_some() {
                    self.charge(if fold.op == FoldOp::All { 2 } else { 3 })?;
                }
                break;
            }
        }
        self.charge(1)?;
        if let Some(stop) = found.error {
            return Err(stop);
        }
        match fold.op {
            FoldOp::All => Ok(Value::Bool(found.matches == 0)),
            FoldOp::Exists => Ok(Value::Bool(found.matches > 0)),
            FoldOp::ExistsOne => {
                self.charge(1)?;
                Ok(Value::Bool(found.matches == 1))
            }
            FoldOp::Map | FoldOp::Filter => Ok(Value::list(found.items)),
            FoldOp::SortBy => lists::sort_by(self, found.items, found.keys),
            FoldOp::TransformMap | FoldOp::TransformMapEntry => {
                Ok(Value::Map(Map::Made(Rc::new(found.made))))
            }
        }
    }

    /// Visits an element, whose variables are set. Returns whether the result is known.
    fn element(
        &mut self,
        fold: &'a Fold,
        single: Value<'a>,
        key: Option<Value<'a>>,
        found: &mut Found<'a>,
    ) -> Result<bool, Stop> {
        if let Some(filter) = &fold.filter
            && !self.condition(filter)?
        {
            self.step()?;
            return Ok(false);
        }
        match fold.op {
            FoldOp::All | FoldOp::Exists => {
                let is_all = fold.op == FoldOp::All;
                self.charge(if is_all { 3 } else { 4 })?;
                match self.condition(&fold.body) {
                    Ok(flag) if flag != is_all => {
                        // It decides, whichever errors other elements have.
                        found.matches = 1;
                        found.error = None;
                        return Ok(true);
                    }
                    Ok(_) => {}
                    Err(Stop::Cost) => return Err(Stop::Cost),
                    Err(stop) => {
                        found.error.get_or_insert(stop);
                    }
                }
            }
            FoldOp::ExistsOne => {
                let is_match = self.condition(&fold.body)?;
                self.step()?;
                self.charge(if is_match { 2 } else { 0 })?;
                found.matches += u64::from(is_match);
            }
            FoldOp::Map => {
                let value = self.value(&fold.body)?;
                self.charge(LIST_COST + 2)?;
                found.items.push(value);
            }
            FoldOp::Filter => {
                let is_match = self.condition(&fold.body)?;
                self.step()?;
                self.charge(if is_match { LIST_COST + 3 } else { 0 })?;
                if is_match {
                    found.items.push(single);
                }
            }
            FoldOp::SortBy => {
                let order = self.value(&fold.body)?;
                self.charge(LIST_COST + 2)?;
                found.keys.push(order);
                found.items.push(single);
            }
            FoldOp::TransformMap => {
                let value = self.value(&fold.body)?;
                self.charge(3)?;
                found.made.insert(key.unwrap_or(single), value)?;
            }
            FoldOp::TransformMapEntry => {
                let Value::Map(entries) = self.value(&fold.body)? else {
                    return Err(Stop::overload());
                };
                self.charge(2)?;
                self.work(entries.len())?;
                for (key, value) in entries.entries()? {
                    found.made.insert(key, value)?;
                }
            }
        }
        Ok(false)
    }

    #[inline(never)]
    pub(crate) fn optional_map(&mut self, map: &'a OptionalMap) -> Outcome<'a> {
        let before = self.cost();
        let target = self.value(&map.target)?;
        let again = self.cost() - before;
        self.charge(1)?;
        let Value::Optional(target) = target else {
            return Err(Stop::overload());
        };
        let Some(inner) = target else {
            self.charge(1)?;
            return Ok(Value::Optional(None));
        };
        // As in kube-apiserver, the optional is evaluated for its value too.
        self.charge(again + 1)?;
        let value = self.with([(*inner).clone()], |run| run.value(&map.body))?;
        self.charge(u64::from(!map.is_flat))?;
        match value {
            value if !map.is_flat => Ok(Value::some(value)),
            value @ Value::Optional(_) => Ok(value),
            _ => Err(Stop::overload()),
        }
    }

    /// Whether two values are equal; values of different types are not, but lists and objects of documents and the
    /// values of Kubernetes' own types cannot be compared with them.
    pub(crate) fn equal(&mut self, a: &Value<'a>, b: &Value<'a>) -> Result<bool, Stop> {
        self.step()?;
        if let Some(order) = compare_numbers(a, b) {
            return Ok(order == Some(std::cmp::Ordering::Equal));
        }
        let is_comparable = match (a, b) {
            (_, Value::Null)
            | (Value::List(_), Value::List(_))
            | (Value::Map(_), Value::Map(_)) => true,
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
                (Some(a), Some(b)) => return self.equal(a, b),
                _ => false,
            },
            (Value::Opaque(a), Value::Opaque(b)) => a == b,
            (Value::List(a), Value::List(b)) => return self.equal_lists(a, b),
            (Value::Map(a), Value::Map(b)) => return self.equal_maps(a, b),
            _ => a.compare(b).is_some_and(std::cmp::Ordering::is_eq),
        })
    }

    fn equal_lists(&mut self, a: &List<'a>, b: &List<'a>) -> Result<bool, Stop> {
        if a.len() != b.len() {
            return Ok(false);
        }
        if *a.topology() != Topology::Atomic {
            return lists::equal_in_any_order(self, a, b);
        }
        let mut index = 0;
        while let (Some(one), Some(other)) = (a.get(index), b.get(index)) {
            if !self.equal(&one?, &other?)? {
                return Ok(false);
            }
            index += 1;
        }
        Ok(true)
    }

    fn equal_maps(&mut self, a: &Map<'a>, b: &Map<'a>) -> Result<bool, Stop> {
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
                if !self.equal_fields(value, other, decl.field(name))? {
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
            if !self.equal(&value, &other?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal_fields(
        &mut self,
        a: &'a Json,
        b: &'a Json,
        decl: Option<&'a std::sync::Arc<Decl>>,
    ) -> Result<bool, Stop> {
        let Some(decl) = decl else {
            return self.equal_json(a, b);
        };
        let (a, b) = (Value::of(a, decl)?, Value::of(b, decl)?);
        self.equal(&a, &b)
    }

    /// Whether two values without a type are equal.
    fn equal_json(&mut self, a: &Json, b: &Json) -> Result<bool, Stop> {
        self.step()?;
        match (a, b) {
            (Json::Array(a), Json::Array(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (one, other) in a.iter().zip(b) {
                    if !self.equal_json(one, other)? {
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
                        Some(other) if self.equal_json(value, other)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (a, b) => Ok(a == b),
        }
    }
}
