//! `format`: texts from a format string with `%s`, `%d`, `%f`, `%e`, `%x`, `%X`, `%o` and `%b`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::numbers;
use crate::run::{Run, Stop, tenth};
use crate::value::{List, OpaqueValue, Value};

/// Maximum number of digits after the point.
const MAX_PRECISION: usize = 1000;

/// Makes the text. Its length is part of the cost.
pub(crate) fn format<'a>(
    run: &mut Run<'a>,
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
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let number: usize = after[..digits].parse().map_err(|_| {
                Stop::error("could not parse formatting clause: error while parsing precision")
            })?;
            precision = Some(number.min(MAX_PRECISION));
            rest = &after[digits..];
        }
        let mut characters = rest.chars();
        let verb = characters.next().ok_or_else(|| {
            Stop::error("could not parse formatting clause: unexpected end of string")
        })?;
        rest = characters.as_str();
        let Some(value) = args.get(next) else {
            return Err(Stop::error(format!("index {next} out of range")));
        };
        next += 1;
        clause(run, &mut out, verb, precision, &value?)?;
    }
    out.push_str(rest);
    Ok(out)
}

fn clause<'a>(
    run: &mut Run<'a>,
    out: &mut String,
    verb: char,
    precision: Option<usize>,
    value: &Value<'a>,
) -> Result<(), Stop> {
    let wrong = |allowed: &str| {
        Stop::error(format!(
            "error during formatting: {allowed}, was given {}",
            value.type_name()
        ))
    };
    let places = precision.unwrap_or(6);
    let number = match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        _ => None,
    };
    let digits = |out: &mut String, number: u64, is_negative: bool| {
        let sign = if is_negative { "-" } else { "" };
        let _ = match verb {
            'b' => write!(out, "{sign}{number:b}"),
            'o' => write!(out, "{sign}{number:o}"),
            'X' => write!(out, "{sign}{number:X}"),
            'x' => write!(out, "{sign}{number:x}"),
            _ => write!(out, "{sign}{number}"),
        };
    };
    let before = out.len();
    match (verb, value) {
        ('s', value) => plain(run, out, value)?,
        ('d', Value::Double(number)) if !number.is_finite() => out.push_str(&special(*number)),
        ('d' | 'b' | 'o' | 'x' | 'X', Value::Int(number)) => {
            digits(out, number.unsigned_abs(), *number < 0);
        }
        ('d' | 'b' | 'o' | 'x' | 'X', Value::Uint(number)) => digits(out, *number, false),
        ('b', Value::Bool(flag)) => out.push(if *flag { '1' } else { '0' }),
        ('x' | 'X', Value::Text(text)) => hex(run, out, verb, text.as_str().as_bytes())?,
        ('x' | 'X', Value::Bytes(bytes)) => hex(run, out, verb, bytes)?,
        ('f' | 'e', Value::Double(number)) if !number.is_finite() => {
            out.push_str(&special(*number));
        }
        ('f', _) => {
            let number =
                number.ok_or_else(|| wrong("fixed point clause can only be used on numbers"))?;
            let _ = write!(out, "{number:.places$}");
        }
        ('e', _) => {
            let number =
                number.ok_or_else(|| wrong("scientific clause can only be used on numbers"))?;
            let text = format!("{number:.places$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            let _ = write!(out, "{mantissa}e{sign}{exponent:0>2}");
        }
        ('d', _) => return Err(wrong("decimal clause can only be used on numbers")),
        ('o', _) => return Err(wrong("octal clause can only be used on integers")),
        ('b', _) => {
            return Err(wrong(
                "binary clause can only be used on integers and bools",
            ));
        }
        ('x' | 'X', _) => {
            return Err(wrong(
                "hex clause can only be used on integers, byte buffers, and strings",
            ));
        }
        _ => {
            return Err(Stop::error(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{verb}\""
            )));
        }
    }
    run.charge(tenth((out.len() - before) as u64))
}

fn special(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number > 0.0 {
        "Infinity".to_owned()
    } else {
        "-Infinity".to_owned()
    }
}

fn hex(run: &mut Run<'_>, out: &mut String, verb: char, bytes: &[u8]) -> Result<(), Stop> {
    run.charge(tenth(bytes.len() as u64))?;
    for byte in bytes {
        let _ = if verb == 'X' {
            write!(out, "{byte:02X}")
        } else {
            write!(out, "{byte:02x}")
        };
    }
    Ok(())
}

/// Adds the text of any value. Its length is paid for as it grows: values may share parts.
fn plain<'a>(run: &mut Run<'a>, out: &mut String, value: &Value<'a>) -> Result<(), Stop> {
    run.step()?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        Value::Double(number) if !number.is_finite() => out.push_str(&special(*number)),
        Value::Double(number) => out.push_str(&numbers::shown(*number)),
        Value::Text(text) => {
            run.charge(tenth(text.as_str().len() as u64))?;
            out.push_str(text.as_str());
        }
        Value::Bytes(bytes) => {
            run.charge(tenth(bytes.len() as u64))?;
            match std::str::from_utf8(bytes) {
                Ok(text) => out.push_str(text),
                Err(_) => out.push_str(&STANDARD.encode(bytes)),
            }
        }
        Value::Duration(nanos) => out.push_str(&super::time::shown_duration(*nanos)),
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Type(name) => out.push_str(name),
        Value::List(list) => {
            out.push('[');
            let mut index = 0;
            while let Some(item) = list.get(index) {
                if index > 0 {
                    out.push_str(", ");
                }
                plain(run, out, &item?)?;
                index += 1;
            }
            out.push(']');
        }
        Value::Map(map) => {
            run.charge(tenth(map.len()))?;
            let mut entries = map.entries()?;
            entries.sort_by_cached_key(|(key, _)| crate::value::plain(key));
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                plain(run, out, key)?;
                out.push_str(": ");
                plain(run, out, value)?;
            }
            out.push('}');
        }
        Value::Optional(_) => {
            return Err(Stop::error(
                "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
            ));
        }
        Value::Opaque(opaque) => match &**opaque {
            OpaqueValue::Ip(ip) => out.push_str(&ip.to_string()),
            OpaqueValue::Cidr(cidr) => out.push_str(&cidr.to_string()),
            OpaqueValue::Quantity(quantity) => out.push_str(&quantity.to_string()),
            other => out.push_str(other.kind().name()),
        },
    }
    Ok(())
}
