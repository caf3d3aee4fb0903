//! Moments and durations, as cel-go reads and prints them.

use std::cmp::Ordering;
use std::fmt;

use jiff::tz::TimeZone;

pub(crate) const SECOND: i64 = 1_000_000_000;

/// The seconds since 1970 of the first and the last moment: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A moment. Two of different offsets are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    /// Since 1970.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Of the time that it is printed in: seconds east of UTC.
    pub(crate) offset: i32,
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
    pub(crate) fn from_nanos(nanos: i128, offset: i32) -> Option<Self> {
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

    pub(crate) fn as_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    /// The date and time in a zone.
    pub(crate) fn civil(self, zone: &Zone) -> Option<jiff::civil::DateTime> {
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

/// A zone for parts of a moment.
pub(crate) enum Zone {
    /// Seconds east of UTC.
    Offset(i64),
    Named(TimeZone),
}

/// Reads a moment of RFC 3339.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let time: apiloom_schema::types::Time = text.parse().ok()?;
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
    let duration: apiloom_schema::types::Duration = text.parse().ok()?;
    Some(duration.as_nanos())
}

/// A duration in seconds, as the nearest double, like cel-go.
pub(crate) fn shown_duration(nanos: i64) -> String {
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
    let seconds = seconds as f64 + rest as f64 / SECOND as f64;
    format!("{seconds}s")
}
