//! Timestamps and durations.

use std::fmt;

use apiloom_meta::field::{echoed, go_quote};
use jiff::tz::TimeZone;

use super::{arg, text};
use crate::ast::Operator;
use crate::run::{Outcome, Run, Stop};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;

/// The seconds since 1970 of the first and the last moment: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A moment in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    /// Since 1970.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

impl Timestamp {
    /// The moment a number of nanoseconds after 1970.
    fn from_nanos(nanos: i128) -> Option<Self> {
        let second = i128::from(SECOND);
        let seconds = i64::try_from(nanos.div_euclid(second)).ok()?;
        SECONDS.contains(&seconds).then(|| Self {
            seconds,
            nanos: nanos.rem_euclid(second) as u32,
        })
    }

    fn as_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    /// The date and time in a zone.
    fn civil(self, zone: &TimeZone) -> Option<jiff::civil::DateTime> {
        let nanos = i32::try_from(self.nanos).ok()?;
        let offset = match zone.to_fixed_offset() {
            Ok(offset) => offset,
            Err(_) => zone.to_offset(jiff::Timestamp::new(self.seconds, nanos).ok()?),
        };
        let seconds = self.seconds + i64::from(offset.seconds());
        let since = jiff::SignedDuration::new(seconds, nanos);
        let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
        epoch.checked_add(since).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(civil) = self.civil(&TimeZone::UTC) else {
            return f.write_str("invalid");
        };
        let (date, time) = (civil.date(), civil.time());
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        )?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Reads a moment of RFC 3339.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let time: apiloom_meta::Time = text.parse().ok()?;
    // The type of times has seconds only.
    let fraction = text.get(19..)?.strip_prefix(['.', ',']).unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    let digits = digits.chain(std::iter::repeat(b'0')).take(9);
    let nanos = digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    let seconds = time.unix_seconds();
    SECONDS
        .contains(&seconds)
        .then_some(Timestamp { seconds, nanos })
}

/// Reads a duration in Go's syntax, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let duration: apiloom_meta::Duration = text.parse().ok()?;
    Some(duration.as_nanos())
}

/// A duration in seconds, with as many digits as it needs.
pub(crate) fn shown_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let (seconds, rest) = (size / SECOND as u64, size % SECOND as u64);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let digits = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", digits.trim_end_matches('0'))
}

/// The operators of moments and durations.
pub(crate) fn arithmetic<'a>(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Outcome<'a> {
    use Operator::{Add, Subtract};
    let moment = |time: &Timestamp, nanos: i128| {
        Timestamp::from_nanos(time.as_nanos() + nanos)
            .map(Value::Timestamp)
            .ok_or_else(|| Stop::error("timestamp overflow"))
    };
    let length = |nanos: i128| {
        i64::try_from(nanos)
            .map(Value::Duration)
            .map_err(|_| Stop::error("duration overflow"))
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

pub(crate) fn duration<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    match arg(args, 0)? {
        Value::Duration(nanos) | Value::Int(nanos) => Ok(Value::Duration(*nanos)),
        Value::Text(text) => match parse_duration(text.as_str()) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => Err(Stop::error(
                "type conversion error from 'string' to 'google.protobuf.Duration'",
            )),
        },
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn timestamp<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
    match arg(args, 0)? {
        value @ Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => Timestamp::from_nanos(i128::from(*seconds) * i128::from(SECOND))
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

/// The time zone of an argument: UTC without one, an offset such as `+02:00`, or a name that the system knows.
fn zone(args: &[Value<'_>]) -> Result<TimeZone, Stop> {
    let Some(name) = args.get(1) else {
        return Ok(TimeZone::UTC);
    };
    let name = text(name)?;
    let unknown = || {
        let name = echoed(name);
        Stop::error(format!("unknown time zone {name}"))
    };
    if matches!(name, "" | "UTC") {
        return Ok(TimeZone::UTC);
    }
    if let Some((hours, minutes)) = name.split_once(':') {
        let (hour, minute): (i32, i32) = match (hours.parse(), minutes.parse()) {
            (Ok(hour @ -23..=23), Ok(minute @ 0..=59)) => (hour, minute),
            _ => return Err(unknown()),
        };
        let minute = if hours.starts_with('-') {
            -minute
        } else {
            minute
        };
        let offset = jiff::tz::Offset::from_seconds(hour * 3600 + minute * 60);
        return offset.map(TimeZone::fixed).map_err(|_| unknown());
    }
    TimeZone::get(name).map_err(|_| unknown())
}

/// A part of the date or time of a moment.
fn part<'a>(
    run: &mut Run<'a>,
    args: &[Value<'a>],
    of: fn(jiff::civil::DateTime) -> i64,
) -> Outcome<'a> {
    run.charge(1)?;
    let Value::Timestamp(time) = arg(args, 0)? else {
        return Err(Stop::overload());
    };
    let civil = time.civil(&zone(args)?).ok_or_else(Stop::overload)?;
    Ok(Value::Int(of(civil)))
}

/// A part of the time of a moment, or a duration in another unit.
fn part_or_length<'a>(
    run: &mut Run<'a>,
    args: &[Value<'a>],
    nanos_of_unit: i64,
    of: fn(jiff::civil::DateTime) -> i64,
) -> Outcome<'a> {
    if let [Value::Duration(nanos)] = args {
        run.charge(1)?;
        return Ok(Value::Int(nanos / nanos_of_unit));
    }
    part(run, args, of)
}

pub(crate) fn full_year<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| i64::from(civil.year()))
}

/// The month, from 0.
pub(crate) fn month<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| i64::from(civil.month()) - 1)
}

/// The day of the year, from 0.
pub(crate) fn day_of_year<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| i64::from(civil.day_of_year()) - 1)
}

/// The day of the month, from 0.
pub(crate) fn day_of_month<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| i64::from(civil.day()) - 1)
}

/// The day of the month, from 1.
pub(crate) fn date<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| i64::from(civil.day()))
}

/// The day of the week, from 0 for Sunday.
pub(crate) fn day_of_week<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part(run, args, |civil| {
        i64::from(civil.weekday().to_sunday_zero_offset())
    })
}

pub(crate) fn hours<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(run, args, 3600 * SECOND, |civil| i64::from(civil.hour()))
}

pub(crate) fn minutes<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(run, args, 60 * SECOND, |civil| i64::from(civil.minute()))
}

pub(crate) fn seconds<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(run, args, SECOND, |civil| i64::from(civil.second()))
}

pub(crate) fn milliseconds<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    part_or_length(run, args, SECOND / 1000, |civil| {
        i64::from(civil.millisecond())
    })
}
