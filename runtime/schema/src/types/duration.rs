//! Durations in Go's syntax, in nanoseconds.

use std::fmt;
use std::str::FromStr;
use std::time;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Units with their length in nanoseconds. Both signs for micro are parsed, the first one is printed.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", MICROSECOND),
    ("\u{b5}s", MICROSECOND),
    ("\u{3bc}s", MICROSECOND),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

/// Magnitude of the most negative duration, in nanoseconds; the longest positive one is a nanosecond shorter.
const LONGEST: u64 = 1 << 63;

/// A length of time, which may be negative: `1h30m0s`. About 292 years at most.
///
/// ```
/// use apiloom_schema::types::Duration;
/// let duration: Duration = "1.5h".parse().unwrap();
/// assert_eq!(duration.to_string(), "1h30m0s");
/// assert_eq!(duration.as_nanos(), 5_400_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// The duration zero.
    pub const ZERO: Self = Self(0);
    /// The most negative duration.
    pub const MIN: Self = Self(i64::MIN);
    /// The longest duration.
    pub const MAX: Self = Self(i64::MAX);

    /// A duration in nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// A duration in seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(SECOND as i64))
    }
    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// The duration in seconds, with its fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }
    /// Whether the duration is negative.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

/// Error of a duration that cannot be converted to or from the standard library's, which has no negative ones, and
/// longer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the duration is out of range")]
pub struct DurationRangeError(());

impl TryFrom<Duration> for time::Duration {
    type Error = DurationRangeError;
    fn try_from(duration: Duration) -> Result<Self, DurationRangeError> {
        let nanos = u64::try_from(duration.0).map_err(|_| DurationRangeError(()))?;
        Ok(Self::from_nanos(nanos))
    }
}

impl TryFrom<time::Duration> for Duration {
    type Error = DurationRangeError;
    fn try_from(duration: time::Duration) -> Result<Self, DurationRangeError> {
        let nanos = i64::try_from(duration.as_nanos()).map_err(|_| DurationRangeError(()))?;
        Ok(Self(nanos))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.is_negative() {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write_decimal(f, nanos, MICROSECOND, "\u{b5}s"),
            MILLISECOND..SECOND => write_decimal(f, nanos, MILLISECOND, "ms"),
            _ => {
                if nanos >= HOUR {
                    write!(f, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(f, "{}m", nanos % HOUR / MINUTE)?;
                }
                write_decimal(f, nanos % MINUTE, SECOND, "s")
            }
        }
    }
}

/// Writes nanoseconds in a larger unit, without trailing zeros in the fraction.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let (mut fraction, mut width) = (nanos % unit, unit.ilog10() as usize);
    if fraction > 0 {
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")?;
    }
    f.write_str(name)
}

/// Error of a malformed duration; its text is that of Go's `time.ParseDuration`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time: {0}")]
pub struct ParseDurationError(String);

impl FromStr for Duration {
    type Err = ParseDurationError;
    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let is_negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let nanos = match unsigned {
            "0" => 0,
            "" => return Err(invalid(text)),
            unsigned => parse(text, unsigned)?,
        };
        let nanos = if is_negative {
            0i64.checked_sub_unsigned(nanos)
        } else {
            i64::try_from(nanos).ok()
        };
        nanos.map(Self).ok_or_else(|| invalid(text))
    }
}

fn invalid(text: &str) -> ParseDurationError {
    ParseDurationError(format!("invalid duration {}", quoted(text)))
}

/// Parses numbers with units, up to [`LONGEST`]. Errors quote the whole text.
fn parse(whole: &str, text: &str) -> Result<u64, ParseDurationError> {
    let mut rest = text;
    let mut nanos = 0u64;
    while !rest.is_empty() {
        let number = take(&mut rest, |c| c.is_ascii_digit());
        let fraction = match rest.strip_prefix('.') {
            Some(behind) => {
                rest = behind;
                take(&mut rest, |c| c.is_ascii_digit())
            }
            None => "",
        };
        if number.is_empty() && fraction.is_empty() {
            return Err(invalid(whole));
        }
        let number = if number.is_empty() { "0" } else { number };
        let count: u64 = number.parse().map_err(|_| invalid(whole))?;
        let name = take(&mut rest, |c| c != '.' && !c.is_ascii_digit());
        if name.is_empty() {
            let text = format!("missing unit in duration {}", quoted(whole));
            return Err(ParseDurationError(text));
        }
        let Some((_, unit)) = UNITS.iter().find(|(known, _)| *known == name) else {
            let text = format!(
                "unknown unit {} in duration {}",
                quoted(name),
                quoted(whole)
            );
            return Err(ParseDurationError(text));
        };
        let part = count
            .checked_mul(*unit)
            .and_then(|part| part.checked_add(part_of(fraction, *unit)))
            .filter(|part| *part <= LONGEST);
        nanos = part
            .and_then(|part| nanos.checked_add(part))
            .filter(|nanos| *nanos <= LONGEST)
            .ok_or_else(|| invalid(whole))?;
    }
    Ok(nanos)
}

/// Removes the leading characters that match, and returns them.
fn take<'t>(rest: &mut &'t str, fits: impl Fn(char) -> bool) -> &'t str {
    let (taken, behind) = rest.split_at(rest.find(|c| !fits(c)).unwrap_or(rest.len()));
    *rest = behind;
    taken
}

/// The nanoseconds of a decimal fraction of a unit. Digits beyond an integer's range, and parts of a nanosecond, are
/// dropped, as in Go, which uses 64-bit floats.
fn part_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let next = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit));
        let Some(next) = next.filter(|next| value <= (LONGEST - 1) / 10 && *next <= LONGEST) else {
            break;
        };
        (value, scale) = (next, scale * 10.0);
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Quotes a text as Go's package `time` does: bytes that are not printable ASCII in hexadecimal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Duration;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 1h30m")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        concat!(module_path!(), "::Duration").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "duration",
            "x-apiloom-canonical": "duration",
            "description": "Duration is a length of time such as 1h30m, in the form of Go.",
        })
    }
}

#[cfg(test)]
mod tests;
