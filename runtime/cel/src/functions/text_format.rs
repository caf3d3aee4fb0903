//! `format`: texts from a format string with `%s`, `%d`, `%f`, `%e`, `%x`, `%X`, `%o` and `%b`, as cel-go's library of strings in its
//! version 2 makes them: decimal numbers are those of English, with commas and `×10⁰⁴`.

use std::fmt::Write as _;

use apiloom_schema::field::{go_quote, number_error};

use super::numbers;
use crate::meter::{Meter, tenth};
use crate::stop::Stop;
use crate::value::timestamp::shown_duration;
use crate::value::{List, Map, Value};

/// Digits after the point, if the clause says no other number.
const PLACES: usize = 6;

/// Maximum number of digits after the point: no double has more.
const MAX_PRECISION: usize = 1100;

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Makes the text. Its length is part of the cost.
pub(crate) fn format<'a>(
    meter: &mut Meter<'a>,
    template: &str,
    args: &List<'a>,
) -> Result<String, Stop> {
    let mut out = String::new();
    let mut rest = template;
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some(value) = args.get(next) else {
            return Err(Stop::error(format!("index {next} out of range")));
        };
        next += 1;
        if rest.is_empty() {
            return Err(Stop::error("unexpected end of string"));
        }
        let (clause, after) = Clause::read(rest)?;
        rest = after;
        let before = out.len();
        clause.write(meter, &mut out, &value?)?;
        meter.charge(tenth((out.len() - before) as u64))?;
    }
    out.push_str(rest);
    Ok(out)
}

/// What stands behind a `%`.
struct Clause {
    verb: char,
    precision: Option<usize>,
}

impl Clause {
    /// Reads a clause, and returns the text behind it.
    fn read(text: &str) -> Result<(Self, &str), Stop> {
        let wrong = |why: String| Stop::error(format!("could not parse formatting clause: {why}"));
        let (precision, rest) = read_precision(text)
            .map_err(|why| wrong(format!("error while parsing precision: {why}")))?;
        let mut characters = rest.chars();
        match characters.next() {
            Some(verb @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => {
                Ok((Self { verb, precision }, characters.as_str()))
            }
            _ => {
                // A byte, in cel-go.
                let verb = rest.bytes().next().map_or('%', char::from);
                Err(wrong(format!("unrecognized formatting clause \"{verb}\"")))
            }
        }
    }

    fn write<'a>(
        &self,
        meter: &mut Meter<'a>,
        out: &mut String,
        value: &Value<'a>,
    ) -> Result<(), Stop> {
        let expected = match (self.verb, value) {
            ('s', value) => return text(meter, out, value),
            ('d' | 'o' | 'b' | 'x' | 'X', Value::Int(number)) => {
                if *number < 0 {
                    out.push('-');
                }
                self.digits(out, number.unsigned_abs());
                return Ok(());
            }
            ('d' | 'o' | 'b' | 'x' | 'X', Value::Uint(number)) => {
                self.digits(out, *number);
                return Ok(());
            }
            ('b', Value::Bool(flag)) => {
                out.push(if *flag { '1' } else { '0' });
                return Ok(());
            }
            ('x' | 'X', Value::Text(text)) => {
                return self.hex(meter, out, text.as_str().as_bytes());
            }
            ('x' | 'X', Value::Bytes(bytes)) => return self.hex(meter, out, bytes),
            ('f' | 'e', value) => match (double(value), self.verb) {
                (Some(number), _) => {
                    self.decimal(out, number);
                    return Ok(());
                }
                (None, 'f') => "fixed-point clause can only be used on doubles",
                (None, _) => "scientific clause can only be used on doubles",
            },
            ('d', _) => "decimal clause can only be used on integers",
            ('b', _) => "only integers and bools can be formatted as binary",
            ('o', _) => "octal clause can only be used on integers",
            _ => "only integers, byte buffers, and strings can be formatted as hex",
        };
        Err(wrong_value(expected, value))
    }

    /// A whole number to the base of the clause.
    fn digits(&self, out: &mut String, number: u64) {
        let _ = match self.verb {
            'b' => write!(out, "{number:b}"),
            'o' => write!(out, "{number:o}"),
            'X' => write!(out, "{number:X}"),
            'x' => write!(out, "{number:x}"),
            _ => write!(out, "{number}"),
        };
    }

    fn hex(&self, meter: &mut Meter<'_>, out: &mut String, bytes: &[u8]) -> Result<(), Stop> {
        meter.charge(tenth(bytes.len() as u64))?;
        for byte in bytes {
            let _ = if self.verb == 'X' {
                write!(out, "{byte:02X}")
            } else {
                write!(out, "{byte:02x}")
            };
        }
        Ok(())
    }

    /// A number as English writes it.
    fn decimal(&self, out: &mut String, number: f64) {
        let mut shown = String::new();
        if number < 0.0 {
            shown.push('-');
        }
        if number.is_nan() {
            shown.push_str("NaN");
        } else if number.is_infinite() {
            shown.push('∞');
        } else if self.verb == 'f' {
            fixed(&mut shown, number.abs(), self.precision.unwrap_or(PLACES));
        } else {
            scientific(&mut shown, number.abs());
        }
        // cel-go takes the precision of `%e` for its width.
        let width = match self.verb {
            'e' => self.precision.unwrap_or(PLACES).min(MAX_PRECISION),
            _ => 0,
        };
        let _ = write!(out, "{shown:>width$}");
    }
}

/// Reads `.` and digits.
fn read_precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(after) = text.strip_prefix('.') else {
        return Ok((None, text));
    };
    let end = after.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = after.split_at(end);
    if rest.is_empty() {
        return Err("could not find end of precision specifier".to_owned());
    }
    let number: i64 = digits.parse().map_err(|error| {
        let why = number_error("Atoi", digits, &error);
        format!("error while converting precision to integer: {why}")
    })?;
    Ok((Some(usize::try_from(number).unwrap_or(usize::MAX)), rest))
}

/// The number of `%f` and `%e`, or one of the texts that stand for numbers.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Text(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A number with so many digits after the point, and commas before it.
fn fixed(out: &mut String, number: f64, precision: usize) {
    let shown = format!("{number:.*}", precision.min(MAX_PRECISION));
    let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    // Kubernetes keeps the least number of digits in a byte.
    let least = precision % 256;
    let fraction = match fraction.trim_end_matches('0').len() {
        digits if precision > 255 => &fraction[..digits.max(least)],
        _ => fraction,
    };
    if !fraction.is_empty() {
        let _ = write!(out, ".{fraction}");
    }
}

/// A number with one digit before the point, six behind it, and a power of ten.
fn scientific(out: &mut String, number: f64) {
    let shown = format!("{number:.PLACES$e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let _ = write!(out, "{mantissa}×10");
    let digits = match exponent.strip_prefix('-') {
        Some(digits) => {
            out.push('⁻');
            digits
        }
        None => exponent,
    };
    if digits.len() < 2 {
        out.push('⁰');
    }
    let superscripts = digits.chars().filter_map(|digit| digit.to_digit(10));
    out.extend(superscripts.map(|digit| SUPERSCRIPTS[digit as usize]));
}

fn wrong_value(expected: &str, value: &Value<'_>) -> Stop {
    let kind = value.type_name();
    Stop::error(format!(
        "error during formatting: {expected}, was given {kind}"
    ))
}

/// The text of `%s`. Its length is paid for as it grows: values may share parts.
fn text<'a>(meter: &mut Meter<'a>, out: &mut String, value: &Value<'a>) -> Result<(), Stop> {
    meter.step()?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        Value::Double(number) => out.push_str(&numbers::shown(*number)),
        Value::Text(text) => {
            meter.charge(tenth(text.as_str().len() as u64))?;
            out.push_str(text.as_str());
        }
        Value::Bytes(bytes) => out.push_str(text_of(meter, bytes)?),
        Value::Duration(nanos) => out.push_str(&shown_duration(*nanos)),
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Type(name) => out.push_str(name),
        Value::List(items) => list(meter, out, items)?,
        Value::Map(entries) => map(meter, out, entries)?,
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(wrong_value(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
                value,
            ));
        }
    }
    Ok(())
}

fn text_of<'b>(meter: &mut Meter<'_>, bytes: &'b [u8]) -> Result<&'b str, Stop> {
    meter.charge(tenth(bytes.len() as u64))?;
    std::str::from_utf8(bytes).map_err(|_| {
        Stop::error(
            "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string",
        )
    })
}

fn list<'a>(meter: &mut Meter<'a>, out: &mut String, items: &List<'a>) -> Result<(), Stop> {
    out.push('[');
    let mut index = 0;
    while let Some(item) = items.get(index) {
        if index > 0 {
            out.push_str(", ");
        }
        literal(meter, out, &item?)?;
        index += 1;
    }
    out.push(']');
    Ok(())
}

fn map<'a>(meter: &mut Meter<'a>, out: &mut String, map: &Map<'a>) -> Result<(), Stop> {
    meter.charge(tenth(map.len()))?;
    let mut entries = Vec::new();
    for (key, value) in map.entries()? {
        let mut shown = String::new();
        match key {
            Value::Text(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                literal(meter, &mut shown, &key)?;
            }
            _ => {
                let kind = key.type_name();
                return Err(Stop::error(format!(
                    "error during formatting: no formatting function for map key of type {kind}"
                )));
            }
        }
        entries.push((shown, value));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.push('{');
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let _ = write!(out, "{key}:");
        literal(meter, out, value)?;
    }
    out.push('}');
    Ok(())
}

/// A value inside of a list or a map, as it is written in an expression.
fn literal<'a>(meter: &mut Meter<'a>, out: &mut String, value: &Value<'a>) -> Result<(), Stop> {
    match value {
        Value::Text(text) => {
            meter.charge(tenth(text.as_str().len() as u64))?;
            out.push_str(&go_quote(text.as_str()));
        }
        Value::Bytes(bytes) => {
            let quoted = go_quote(text_of(meter, bytes)?);
            let _ = write!(out, "b{quoted}");
        }
        Value::Double(number) if number.is_finite() => {
            meter.step()?;
            let _ = write!(out, "{number:.PLACES$}");
        }
        Value::Double(number) => out.push_str(&go_quote(&numbers::shown(*number))),
        Value::Duration(_) => call(meter, out, "duration", value)?,
        Value::Timestamp(_) => call(meter, out, "timestamp", value)?,
        Value::Optional(_) | Value::Opaque(_) => {
            let kind = value.type_name();
            return Err(Stop::error(format!(
                "error during formatting: no formatting function for {kind}"
            )));
        }
        value => text(meter, out, value)?,
    }
    Ok(())
}

fn call<'a>(
    meter: &mut Meter<'a>,
    out: &mut String,
    function: &str,
    value: &Value<'a>,
) -> Result<(), Stop> {
    let _ = write!(out, "{function}(\"");
    text(meter, out, value)?;
    out.push_str("\")");
    Ok(())
}
