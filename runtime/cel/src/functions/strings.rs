//! Strings and patterns.

use apiloom_schema::regexp::Pattern;

use super::{arg, int, list, text};
use crate::meter::{Meter, tenth};
use crate::stop::Stop;
use crate::value::{Outcome, Text, Value};

/// A part of a text: without a copy if the text is from the document.
fn part<'a>(whole: &Value<'a>, start: usize, end: usize) -> Value<'a> {
    match whole {
        Value::Text(Text::Borrowed(text)) => {
            Value::Text(Text::Borrowed(text.get(start..end).unwrap_or_default()))
        }
        Value::Text(Text::Shared(text)) => Value::text(text.get(start..end).unwrap_or_default()),
        other => other.clone(),
    }
}

/// The byte at which a character begins; the length for the end.
fn offset(text: &str, character: i64) -> Option<usize> {
    let character = usize::try_from(character).ok()?;
    let starts = text.char_indices().map(|(at, _)| at);
    starts.chain([text.len()]).nth(character)
}

pub(crate) fn contains<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let (target, part) = (arg(args, 0)?, arg(args, 1)?);
    meter.charge(tenth(target.size()).saturating_mul(tenth(part.size())))?;
    Ok(Value::Bool(text(target)?.contains(text(part)?)))
}

pub(crate) fn starts_with<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    Ok(Value::Bool(
        text(arg(args, 0)?)?.starts_with(text(arg(args, 1)?)?),
    ))
}

pub(crate) fn ends_with<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    Ok(Value::Bool(
        text(arg(args, 0)?)?.ends_with(text(arg(args, 1)?)?),
    ))
}

/// The cost of a search with a pattern.
fn charge_pattern<'a>(
    meter: &mut Meter<'a>,
    target: &Value<'a>,
    pattern: &Value<'a>,
) -> Result<Pattern, Stop> {
    let passes = tenth(target.size() + 1);
    meter.charge(passes.saturating_mul(pattern.size().div_ceil(4)))?;
    meter.pattern(text(pattern)?)
}

pub(crate) fn matches<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let pattern = charge_pattern(meter, arg(args, 0)?, arg(args, 1)?)?;
    Ok(Value::Bool(pattern.is_match(text(arg(args, 0)?)?)))
}

/// As [`charge_pattern`], for Kubernetes' own functions, which have another text for a malformed pattern.
fn searched_pattern<'a>(
    meter: &mut Meter<'a>,
    target: &Value<'a>,
    pattern: &Value<'a>,
) -> Result<Pattern, Stop> {
    charge_pattern(meter, target, pattern).map_err(|stop| match stop {
        Stop::Error(why) if why.starts_with("error parsing regexp") => {
            Stop::error(format!("Illegal regex: {why}"))
        }
        stop => stop,
    })
}

pub(crate) fn find<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let pattern = searched_pattern(meter, target, arg(args, 1)?)?;
    let found = pattern.find(text(target)?);
    Ok(found.map_or_else(
        || Value::text(""),
        |found| part(target, found.start, found.end),
    ))
}

pub(crate) fn find_all<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let pattern = searched_pattern(meter, target, arg(args, 1)?)?;
    let limit = args.get(2).map_or(Ok(-1), int)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut all = Vec::new();
    let searched = pattern.find_each(text(target)?, |found| {
        if all.len() == limit {
            return Err(None);
        }
        meter.charge(1).map_err(Some)?;
        all.push(part(target, found.start, found.end));
        Ok(())
    });
    match searched {
        Err(Some(stop)) => Err(stop),
        Ok(()) | Err(None) => Ok(Value::list(all)),
    }
}

pub(crate) fn char_at<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let index = int(arg(args, 1)?)?;
    meter.charge(1)?;
    meter.work(tenth(target.size()))?;
    let characters = text(target)?;
    let outside = || Stop::error(format!("index out of range: {index}"));
    let start = offset(characters, index).ok_or_else(outside)?;
    let length = characters[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part(target, start, start + length))
}

/// `indexOf` and `lastIndexOf` of strings.
pub(crate) fn position<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    is_last: bool,
) -> Outcome<'a> {
    let (target, wanted) = (text(arg(args, 0)?)?, text(arg(args, 1)?)?);
    meter.charge(target.len() as u64 / 10)?;
    let length = target.chars().count() as i64;
    let from = match args.get(2) {
        Some(from) => int(from)?,
        None if is_last => length,
        None => 0,
    };
    // cel-go 0.26 finds the empty text wherever it is asked to begin.
    if wanted.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(Stop::error(format!("index out of range: {from}")));
    }
    if from >= length && args.len() == 3 {
        return Ok(Value::Int(-1));
    }
    let start = offset(target, from).unwrap_or(target.len());
    let found = if is_last {
        let end = (start + wanted.len()).min(target.len());
        let end = (end..=target.len()).find(|end| target.is_char_boundary(*end));
        target[..end.unwrap_or(target.len())].rfind(wanted)
    } else {
        target[start..].find(wanted).map(|at| start + at)
    };
    let found = found.map_or(-1, |at| target[..at].chars().count() as i64);
    Ok(Value::Int(found))
}

pub(crate) fn lower_ascii<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    Ok(Value::text(text(arg(args, 0)?)?.to_ascii_lowercase()))
}

pub(crate) fn upper_ascii<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    Ok(Value::text(text(arg(args, 0)?)?.to_ascii_uppercase()))
}

pub(crate) fn replace<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = text(arg(args, 0)?)?;
    let (old, new) = (text(arg(args, 1)?)?, text(arg(args, 2)?)?);
    let limit = args.get(3).map_or(Ok(-1), int)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    meter.charge((arg(args, 0)?.size().saturating_mul(2)).div_ceil(10))?;
    // The result may be much longer than the arguments, so its size is paid for before it is made.
    let count = target.matches(old).take(limit).count();
    let size = count.saturating_mul(new.len()).saturating_add(target.len());
    meter.charge((size as u64).saturating_sub(target.len() as u64) / 10)?;
    Ok(Value::text(target.replacen(old, new, limit)))
}

pub(crate) fn split<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let (whole, separator) = (text(target)?, text(arg(args, 1)?)?);
    let limit = args.get(2).map_or(Ok(-1), int)?;
    meter.charge((target.size().saturating_mul(2)).div_ceil(10))?;
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut start = 0;
    while parts.len() + 1 < limit {
        let end = if separator.is_empty() {
            let length = whole[start..].chars().next().map_or(0, char::len_utf8);
            (start + length < whole.len()).then_some(start + length)
        } else {
            whole[start..].find(separator).map(|at| start + at)
        };
        let Some(end) = end else { break };
        meter.step()?;
        parts.push(part(target, start, end));
        start = end + separator.len();
    }
    if !(separator.is_empty() && whole.is_empty()) {
        parts.push(part(target, start, whole.len()));
    }
    Ok(Value::list(parts))
}

pub(crate) fn substring<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    let whole = text(target)?;
    meter.charge(tenth(target.size()))?;
    let start = int(arg(args, 1)?)?;
    let outside = |at: i64| Stop::error(format!("index out of range: {at}"));
    let end = match args.get(2) {
        Some(end) => {
            let end = int(end)?;
            if start > end {
                return Err(Stop::error(format!(
                    "invalid substring range. start: {start}, end: {end}"
                )));
            }
            end
        }
        None => whole.chars().count() as i64,
    };
    let from = offset(whole, start).ok_or_else(|| outside(start))?;
    let to = offset(whole, end).ok_or_else(|| outside(end))?;
    Ok(part(target, from, to))
}

pub(crate) fn trim<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let target = arg(args, 0)?;
    meter.charge(tenth(target.size()))?;
    let whole = text(target)?;
    let start = whole.len() - whole.trim_start().len();
    Ok(part(target, start, start + whole.trim().len()))
}

pub(crate) fn join<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let list = list(arg(args, 0)?)?;
    let separator = args.get(1).map_or(Ok(""), text)?;
    let mut joined = String::new();
    let (mut length, mut index) = (0, 0);
    while let Some(item) = list.get(index) {
        let item = item?;
        let piece = text(&item)?;
        let before = if index == 0 { "" } else { separator };
        meter.step()?;
        let paid = tenth(2 * length);
        length += (piece.chars().count() + before.chars().count()) as u64;
        meter.charge(tenth(2 * length) - paid)?;
        joined.push_str(before);
        joined.push_str(piece);
        index += 1;
    }
    Ok(Value::text(joined))
}

pub(crate) fn quote<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    let mut quoted = String::from("\"");
    for c in text(arg(args, 0)?)?.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}

pub(crate) fn format<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(tenth(arg(args, 0)?.size()))?;
    let list = list(arg(args, 1)?)?;
    let found = super::text_format::format(meter, text(arg(args, 0)?)?, &list)?;
    Ok(Value::text(found))
}
