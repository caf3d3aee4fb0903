//! Times in the format of the API: RFC 3339 in UTC, in seconds or microseconds.
//!
//! Parsed with the rules and error texts of Go's `time.Parse`, which clients know.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::field::go_quote;

const MICROS_PER_SECOND: i64 = 1_000_000;
/// 0000-01-01T00:00:00Z to 9999-12-31T23:59:59Z: the range of years with four digits.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// A point in time with second precision: `2026-11-21T09:28:46Z`.
///
/// ```
/// use apiloom_schema::types::Time;
/// let time: Time = "2026-11-21T10:28:46.7+01:00".parse().unwrap();
/// assert_eq!(time.to_string(), "2026-11-21T09:28:46Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The current time, in seconds.
    pub fn now() -> Self {
        Self::from_unix_seconds(jiff::Timestamp::now().as_second())
    }
    /// A time from seconds since the Unix epoch; saturates at the years 0 and 9999.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.clamp(*SECONDS.start(), *SECONDS.end()))
    }
    /// Seconds since the Unix epoch.
    pub fn unix_seconds(self) -> i64 {
        self.0
    }
    /// The time elapsed since `earlier`; zero if that is later.
    pub fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0 - earlier.0).unwrap_or_default())
    }
    /// The time after a duration; fractions of a second are dropped.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self::from_unix_seconds(self.0.saturating_add_unsigned(duration.as_secs()))
    }
}

/// A point in time with microsecond precision: `2026-11-21T09:28:46.000000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(i64);

impl MicroTime {
    /// The current time, in microseconds.
    pub fn now() -> Self {
        Self::from_unix_micros(jiff::Timestamp::now().as_microsecond())
    }
    /// A time from microseconds since the Unix epoch; saturates at the years 0 and 9999.
    pub fn from_unix_micros(micros: i64) -> Self {
        let last = SECONDS.end() * MICROS_PER_SECOND + (MICROS_PER_SECOND - 1);
        Self(micros.clamp(SECONDS.start() * MICROS_PER_SECOND, last))
    }
    /// Microseconds since the Unix epoch.
    pub fn unix_micros(self) -> i64 {
        self.0
    }
    /// The time elapsed since `earlier`; zero if that is later.
    pub fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or_default())
    }
    /// The time after a duration; fractions of a microsecond are dropped.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self::from_unix_micros(self.0.saturating_add_unsigned(micros))
    }
}

impl From<MicroTime> for Time {
    fn from(time: MicroTime) -> Self {
        Self(time.0.div_euclid(MICROS_PER_SECOND))
    }
}

impl From<Time> for MicroTime {
    fn from(time: Time) -> Self {
        Self(time.0 * MICROS_PER_SECOND)
    }
}

/// Writes date and time of day, without fraction and offset.
fn write_civil(f: &mut fmt::Formatter<'_>, seconds: i64) -> fmt::Result {
    let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let time = epoch.saturating_add(SignedDuration::from_secs(seconds));
    let mut text = *b"0000-00-00T00:00:00";
    let mut put = |range: Range<usize>, number: i16| {
        // Neither a year nor any other number is negative or longer than its place.
        let mut rest = number.unsigned_abs();
        for digit in text[range].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    };
    put(0..4, time.year());
    put(5..7, time.month().into());
    put(8..10, time.day().into());
    put(11..13, time.hour().into());
    put(14..16, time.minute().into());
    put(17..19, time.second().into());
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_civil(f, self.0)?;
        f.write_str("Z")
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_civil(f, self.0.div_euclid(MICROS_PER_SECOND))?;
        write!(f, ".{:06}Z", self.0.rem_euclid(MICROS_PER_SECOND))
    }
}

/// Error of a malformed time; its text is that of Go's `time.ParseError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parsing time {}{why}", go_quote(text))]
pub struct ParseTimeError {
    text: String,
    why: String,
}

impl FromStr for Time {
    type Err = ParseTimeError;
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        parse(text, "2006-01-02T15:04:05Z07:00").map(|(seconds, _)| Self(seconds))
    }
}

impl FromStr for MicroTime {
    type Err = ParseTimeError;
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        let (seconds, nanos) = parse(text, "2006-01-02T15:04:05.000000Z07:00")?;
        Ok(Self(seconds * MICROS_PER_SECOND + i64::from(nanos) / 1_000))
    }
}

/// Parses seconds since the epoch and nanoseconds. The layout is used in errors only.
fn parse(text: &str, layout: &'static str) -> Result<(i64, u32), ParseTimeError> {
    let fail = |why: String| ParseTimeError {
        text: text.to_owned(),
        why,
    };
    let mut scan = Scan { rest: text, layout };
    scan.time().map_err(&fail).and_then(|(seconds, nanos)| {
        if SECONDS.contains(&seconds) {
            Ok((seconds, nanos))
        } else {
            Err(fail(": year out of range".to_owned()))
        }
    })
}

struct Scan<'t> {
    rest: &'t str,
    layout: &'static str,
}

impl Scan<'_> {
    fn time(&mut self) -> Result<(i64, u32), String> {
        let year = self.number("2006", 4, 0..=9999, "year")?;
        self.literal("-")?;
        let month = self.number("01", 2, 1..=12, "month")?;
        self.literal("-")?;
        let day = self.number("02", 2, 0..=99, "day")?;
        self.literal("T")?;
        // Go takes an hour of one digit.
        let second = self.rest.as_bytes().get(1);
        let is_short = second.is_some_and(|byte| !byte.is_ascii_digit());
        let digits = if is_short { 1 } else { 2 };
        let hour = self.number("15", digits, 0..=23, "hour")?;
        self.literal(":")?;
        let minute = self.number("04", 2, 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.number("05", 2, 0..=59, "second")?;
        let nanos = self.fraction();
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(format!(": extra text: {}", go_quote(self.rest)));
        }
        // All numbers have at most four digits, so the casts are exact.
        let civil = DateTime::new(
            year as i16,
            month as i8,
            day as i8,
            hour as i8,
            minute as i8,
            second as i8,
            0,
        );
        let civil = civil.map_err(|_| ": day out of range".to_owned())?;
        let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
        Ok((civil.duration_since(epoch).as_secs() - offset, nanos))
    }

    fn unexpected(&self, element: &str) -> String {
        format!(
            " as {}: cannot parse {} as {}",
            go_quote(self.layout),
            go_quote(self.rest),
            go_quote(element)
        )
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self
            .rest
            .strip_prefix(literal)
            .ok_or_else(|| self.unexpected(literal))?;
        Ok(())
    }

    /// Parses exactly this number of digits.
    fn number(
        &mut self,
        element: &str,
        digits: usize,
        range: std::ops::RangeInclusive<i64>,
        name: &str,
    ) -> Result<i64, String> {
        let text = self
            .rest
            .get(..digits)
            .filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
        let value: i64 = text
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| self.unexpected(element))?;
        if !range.contains(&value) {
            return Err(format!(": {name} out of range"));
        }
        self.rest = &self.rest[digits..];
        Ok(value)
    }

    /// Parses the nanoseconds of an optional fraction; further digits are dropped.
    fn fraction(&mut self) -> u32 {
        let Some(behind) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let len = behind
            .bytes()
            .position(|b| !b.is_ascii_digit())
            .unwrap_or(behind.len());
        if len == 0 {
            return 0;
        }
        self.rest = &behind[len..];
        let digits = behind[..len].bytes().chain(std::iter::repeat(b'0')).take(9);
        digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
    }

    /// Parses the offset from UTC, in seconds.
    fn offset(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let wrong = self.unexpected(ELEMENT);
        let sign = match self.rest.as_bytes() {
            [b'+', _, _, b':', ..] => 1,
            [b'-', _, _, b':', ..] => -1,
            _ => return Err(wrong),
        };
        self.rest = &self.rest[1..];
        let hours = self
            .number(ELEMENT, 2, 0..=24, "time zone offset hour")
            .map_err(|why| narrowed(why, &wrong))?;
        self.rest = &self.rest[1..];
        let minutes = self
            .number(ELEMENT, 2, 0..=60, "time zone offset minute")
            .map_err(|why| narrowed(why, &wrong))?;
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

/// Go quotes the whole malformed offset with its sign; for one out of range it has a separate text.
fn narrowed(why: String, whole: &str) -> String {
    if why.starts_with(" as ") {
        whole.to_owned()
    } else {
        why
    }
}

macro_rules! on_the_wire {
    ($time:ident, $precision:literal, $description:literal) => {
        impl Serialize for $time {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $time {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $time;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an RFC 3339 time")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$time, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl JsonSchema for $time {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($time).into()
            }
            fn schema_id() -> std::borrow::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($time)).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": "date-time", "x-apiloom-canonical": $precision, "description": $description })
            }
        }
    };
}

on_the_wire!(
    Time,
    "seconds",
    "Time is a point in time, in RFC 3339 form."
);
on_the_wire!(
    MicroTime,
    "microseconds",
    "MicroTime is a point in time with microsecond precision, in RFC 3339 form."
);

#[cfg(test)]
mod tests;
