//! Finds the values of a query, as client-go does: each part makes new values of all that the part before it found, and one that
//! does not fit a value ends the search.

use std::cmp::Ordering;

use apiloom_vocabulary::Comparison;
use serde_json::Value;

use super::node::{Filter, Node, Operator, Slice};
use crate::{interrupt, number};

/// A value that a query found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueryValue<'a> {
    /// A value of the document, or a text, fraction or boolean in the query itself.
    Value(&'a Value),
    /// An integer in the query itself; only columns of text show it.
    Integer(i64),
    /// A byte of a text, which `.*` takes apart; only columns of text show it.
    Byte(u8),
}

impl<'a> QueryValue<'a> {
    /// The value; `None` for what only columns of text show.
    pub fn as_value(self) -> Option<&'a Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Integer(_) | Self::Byte(_) => None,
        }
    }
}

type Values<'a> = Vec<QueryValue<'a>>;

/// Why the values of a part are not found.
enum Failure<'a> {
    /// It does not fit a value. A filter that only asks for the presence of values takes these for what was found.
    Misfit(Values<'a>),
    /// Too many values would have to be looked at.
    Exhausted,
}

type Found<'a> = Result<Values<'a>, Failure<'a>>;

/// The first value of the first action, if all of them can be evaluated.
pub(super) fn first<'a>(
    value: Option<&'a Value>,
    actions: impl Iterator<Item = &'a Vec<Node>>,
    max_values: usize,
) -> Option<QueryValue<'a>> {
    let mut search = Search { left: max_values };
    let mut shown = None;
    for (index, steps) in actions.enumerate() {
        let input = value.map(QueryValue::Value).into_iter().collect();
        let found = search.all(input, steps).ok()?;
        if index == 0 {
            shown = Some(*found.first()?);
        }
    }
    shown
}

struct Search {
    /// How many values may still be looked at.
    left: usize,
}

impl Search {
    fn look<'a>(&mut self, count: usize) -> Result<(), Failure<'a>> {
        if interrupt::spend(count.try_into().unwrap_or(u32::MAX)) {
            return Err(Failure::Exhausted);
        }
        self.left = self.left.checked_sub(count).ok_or(Failure::Exhausted)?;
        Ok(())
    }

    fn all<'a>(&mut self, input: Values<'a>, steps: &'a [Node]) -> Found<'a> {
        steps
            .iter()
            .try_fold(input, |input, step| self.step(input, step))
    }

    fn step<'a>(&mut self, input: Values<'a>, step: &'a Node) -> Found<'a> {
        self.look(input.len() + 1)?;
        match step {
            Node::Field(name) => Ok(input
                .iter()
                .filter_map(|value| value.as_value()?.get(name).map(QueryValue::Value))
                .collect()),
            Node::Item(number) => items(input, *number),
            Node::Slice(slice) => self.slice(input, *slice),
            Node::Every => self.every(&input),
            Node::Descend => self.descend(&input),
            Node::Where(filter) => self.filter(input, filter),
            Node::Union(parts) => self.union(&input, parts),
            // A text is there once, also where there is nothing before it.
            Node::Literal(value @ Value::String(_)) => Ok(vec![QueryValue::Value(value)]),
            Node::Literal(value) => Ok(vec![QueryValue::Value(value); input.len()]),
            Node::Integer(integer) => Ok(vec![QueryValue::Integer(*integer); input.len()]),
            Node::Word(word) if word == "end" => Err(Failure::Misfit(Vec::new())),
            Node::Word(_) => Err(Failure::Misfit(input)),
        }
    }

    fn slice<'a>(&mut self, input: Values<'a>, slice: Slice) -> Found<'a> {
        let mut found = Vec::new();
        for value in &input {
            if is_null(*value) {
                continue;
            }
            let Some(Value::Array(list)) = value.as_value() else {
                return Err(Failure::Misfit(input));
            };
            match range(list.len(), slice) {
                Range::Nothing => return Ok(found),
                Range::Outside => return Err(Failure::Misfit(input)),
                Range::Of { from, to, step } => {
                    self.look(to - from)?;
                    let chosen = list[from..to].iter().step_by(step);
                    found.extend(chosen.map(QueryValue::Value));
                }
            }
        }
        Ok(found)
    }

    /// The parts of the values: items of lists, values of objects and bytes of texts.
    fn every<'a>(&mut self, input: &[QueryValue<'a>]) -> Found<'a> {
        let mut found = Vec::new();
        for value in input {
            match value.as_value() {
                Some(Value::Array(items)) => found.extend(items.iter().map(QueryValue::Value)),
                Some(Value::Object(fields)) => found.extend(fields.values().map(QueryValue::Value)),
                Some(Value::String(text)) => found.extend(text.bytes().map(QueryValue::Byte)),
                _ => {}
            }
        }
        self.look(found.len())?;
        Ok(found)
    }

    /// The values that have parts, each before those below it.
    fn descend<'a>(&mut self, input: &[QueryValue<'a>]) -> Found<'a> {
        let mut found = Vec::new();
        for value in input {
            let parts = self.every(&[*value])?;
            if !parts.is_empty() {
                found.push(*value);
                found.extend(self.descend(&parts)?);
            }
        }
        Ok(found)
    }

    fn union<'a>(&mut self, input: &[QueryValue<'a>], parts: &'a [Vec<Node>]) -> Found<'a> {
        let mut found = Vec::new();
        for part in parts {
            match self.all(input.to_vec(), part) {
                Ok(more) => found.extend(more),
                Err(Failure::Misfit(_)) => return Err(Failure::Misfit(input.to_vec())),
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
            }
        }
        Ok(found)
    }

    fn filter<'a>(&mut self, input: Values<'a>, filter: &'a Filter) -> Found<'a> {
        let mut found = Vec::new();
        for value in &input {
            let Some(Value::Array(items)) = value.as_value() else {
                return Err(Failure::Misfit(input));
            };
            for item in items {
                let item = QueryValue::Value(item);
                match self.passes(item, filter) {
                    Ok(true) => found.push(item),
                    Ok(false) => {}
                    Err(Failure::Misfit(_)) => return Err(Failure::Misfit(input)),
                    Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                }
            }
        }
        Ok(found)
    }

    fn passes<'a>(
        &mut self,
        item: QueryValue<'a>,
        filter: &'a Filter,
    ) -> Result<bool, Failure<'a>> {
        let left = self.all(vec![item], &filter.left);
        let Some((operator, right)) = &filter.test else {
            return match left {
                Ok(left) | Err(Failure::Misfit(left)) => Ok(!left.is_empty()),
                Err(Failure::Exhausted) => Err(Failure::Exhausted),
            };
        };
        let Some(left) = single(left?)? else {
            return Ok(false);
        };
        let Some(right) = single(self.all(vec![item], right)?)? else {
            return Ok(false);
        };
        let holds = match operator {
            Operator::Known(comparison) => holds(*comparison, left, right),
            Operator::Unknown(_) => None,
        };
        holds.ok_or(Failure::Misfit(Vec::new()))
    }
}

/// The value of a list of one; of more values none can be compared.
fn single(values: Values<'_>) -> Result<Option<QueryValue<'_>>, Failure<'_>> {
    match values[..] {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(Failure::Misfit(values)),
    }
}

/// The item of each list.
fn items(input: Values<'_>, number: i64) -> Found<'_> {
    let mut found = Vec::with_capacity(input.len());
    for value in &input {
        if is_null(*value) {
            continue;
        }
        let list = value.as_value().and_then(Value::as_array);
        match list.and_then(|list| item(list, number)) {
            Some(item) => found.push(QueryValue::Value(item)),
            None => return Err(Failure::Misfit(input)),
        }
    }
    Ok(found)
}

fn is_null(value: QueryValue<'_>) -> bool {
    value.as_value().is_some_and(Value::is_null)
}

fn item(list: &[Value], number: i64) -> Option<&Value> {
    let from_end = usize::try_from(number.unsigned_abs()).ok()?;
    let at = match number {
        ..0 => list.len().checked_sub(from_end)?,
        0.. => from_end,
    };
    list.get(at)
}

/// What a slice is of a list.
enum Range {
    Of {
        from: usize,
        to: usize,
        step: usize,
    },
    /// Its bounds are the same: the search finds no more than it has, even in the lists after this one.
    Nothing,
    Outside,
}

fn range(len: usize, slice: Slice) -> Range {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |bound: i64| match bound {
        ..0 => bound.saturating_add(len),
        0.. => bound,
    };
    let from = from_end(slice.from.unwrap_or(0));
    let to = from_end(slice.to.unwrap_or(len));
    if from == to {
        return Range::Nothing;
    }
    let is_inside = (0..len).contains(&from) && (from..=len).contains(&to);
    let bounds = (
        usize::try_from(from),
        usize::try_from(to),
        usize::try_from(slice.step.unwrap_or(1)),
    );
    match bounds {
        (Ok(from), Ok(to), Ok(step)) if is_inside && step > 0 => Range::Of { from, to, step },
        _ => Range::Outside,
    }
}

/// A value that can be compared with others of its kind.
#[derive(PartialEq, PartialOrd)]
enum Comparable<'a> {
    Text(&'a str),
    Boolean(bool),
    Integer(i64),
    Float(f64),
}

impl<'a> Comparable<'a> {
    fn of(value: QueryValue<'a>) -> Option<Self> {
        Some(match value {
            QueryValue::Integer(integer) => Self::Integer(integer),
            QueryValue::Byte(byte) => Self::Integer(byte.into()),
            QueryValue::Value(Value::String(text)) => Self::Text(text),
            QueryValue::Value(Value::Bool(flag)) => Self::Boolean(*flag),
            QueryValue::Value(Value::Number(number)) => match number.as_i64() {
                Some(integer) => Self::Integer(integer),
                None => Self::Float(number::float(number)),
            },
            QueryValue::Value(_) => return None,
        })
    }
}

/// Whether a comparison is true; `None` if the values cannot be compared: those of different kinds, an integer and a
/// fraction among them, and the order of booleans.
fn holds(comparison: Comparison, left: QueryValue<'_>, right: QueryValue<'_>) -> Option<bool> {
    let (left, right) = (Comparable::of(left)?, Comparable::of(right)?);
    if std::mem::discriminant(&left) != std::mem::discriminant(&right) {
        return None;
    }
    let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if is_order && matches!(left, Comparable::Boolean(_)) {
        return None;
    }
    let order = left.partial_cmp(&right)?;
    Some(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}
