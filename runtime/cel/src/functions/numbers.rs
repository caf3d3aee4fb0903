//! Numbers, and conversions between types.

use super::arg;
use crate::meter::{Meter, tenth};
use crate::operator::Operator;
use crate::stop::Stop;
use crate::value::timestamp::shown_duration;
use crate::value::{OpaqueValue, Outcome, Value};

const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

/// The operators of numbers.
pub(crate) fn arithmetic<'a>(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Outcome<'a> {
    use Operator::{Add, Divide, Modulo, Multiply, Subtract};
    let zero = || {
        Stop::error(if operator == Divide {
            "division by zero"
        } else {
            "modulus by zero"
        })
    };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            let found = match operator {
                Add => a.checked_add(*b),
                Subtract => a.checked_sub(*b),
                Multiply => a.checked_mul(*b),
                Divide | Modulo if *b == 0 => return Err(zero()),
                Divide => a.checked_div(*b),
                Modulo => a.checked_rem(*b),
                _ => return Err(Stop::overload()),
            };
            found.map(Value::Int).ok_or_else(|| Stop::error(OVERFLOW))
        }
        (Value::Uint(a), Value::Uint(b)) => {
            let found = match operator {
                Add => a.checked_add(*b),
                Subtract => a.checked_sub(*b),
                Multiply => a.checked_mul(*b),
                Divide | Modulo if *b == 0 => return Err(zero()),
                Divide => a.checked_div(*b),
                Modulo => a.checked_rem(*b),
                _ => return Err(Stop::overload()),
            };
            found
                .map(Value::Uint)
                .ok_or_else(|| Stop::error(UNSIGNED_OVERFLOW))
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match operator {
            Add => a + b,
            Subtract => a - b,
            Multiply => a * b,
            Divide => a / b,
            _ => return Err(Stop::overload()),
        })),
        _ => Err(Stop::overload()),
    }
}

/// The operator `-` with one operand.
pub(crate) fn negate<'a>(value: &Value<'_>) -> Outcome<'a> {
    match value {
        Value::Int(number) => number
            .checked_neg()
            .map(Value::Int)
            .ok_or_else(|| Stop::error(OVERFLOW)),
        Value::Double(number) => Ok(Value::Double(-number)),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn dynamic<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(arg(args, 0)?.clone())
}

pub(crate) fn type_of<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    Ok(Value::Type(arg(args, 0)?.type_name()))
}

/// The error of a value that no conversion to a type takes.
pub(crate) fn not_converted<'a>(value: &Value<'_>, to: &str) -> Outcome<'a> {
    let from = value.type_name();
    Err(Stop::error(format!(
        "type conversion error from '{from}' to '{to}'"
    )))
}

pub(crate) fn to_bool<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    match arg(args, 0)? {
        Value::Bool(flag) => Ok(Value::Bool(*flag)),
        value @ Value::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => not_converted(value, "bool"),
        },
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn to_int<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let overflow = || Stop::error(OVERFLOW);
    let value = arg(args, 0)?;
    match value {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Uint(number) => i64::try_from(*number)
            .map(Value::Int)
            .map_err(|_| overflow()),
        Value::Double(number) => {
            // The bounds themselves are not representable as both, so they are refused, as in cel-go.
            if number.is_nan()
                || *number <= -9_223_372_036_854_775_808.0
                || *number >= 9_223_372_036_854_775_807.0
            {
                return Err(overflow());
            }
            Ok(Value::Int(*number as i64))
        }
        Value::Text(text) => match text.as_str().parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => not_converted(value, "int"),
        },
        Value::Timestamp(time) => Ok(Value::Int(time.seconds)),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn to_uint<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let overflow = || Stop::error(UNSIGNED_OVERFLOW);
    let value = arg(args, 0)?;
    match value {
        Value::Uint(number) => Ok(Value::Uint(*number)),
        Value::Int(number) => u64::try_from(*number)
            .map(Value::Uint)
            .map_err(|_| overflow()),
        Value::Double(number) => {
            if number.is_nan() || *number < 0.0 || *number >= 18_446_744_073_709_551_615.0 {
                return Err(overflow());
            }
            Ok(Value::Uint(*number as u64))
        }
        Value::Text(text) => match text.as_str().parse() {
            Ok(number) => Ok(Value::Uint(number)),
            Err(_) => not_converted(value, "uint"),
        },
        _ => Err(Stop::overload()),
    }
}

pub(crate) fn to_double<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    meter.charge(1)?;
    let value = arg(args, 0)?;
    match value {
        Value::Double(number) => Ok(Value::Double(*number)),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::Text(text) => match parse_double(text.as_str()) {
            Some(number) => Ok(Value::Double(number)),
            None => not_converted(value, "double"),
        },
        _ => Err(Stop::overload()),
    }
}

/// Reads a decimal number, an infinity or `nan`. A number that is too large for a double is none, and one underscore may
/// stand between two digits, as in Go.
fn parse_double(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        let byte = at.and_then(|at| bytes.get(at));
        byte.is_some_and(u8::is_ascii_digit)
    };
    let mut underscores = text.match_indices('_');
    if !underscores.all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))) {
        return None;
    }
    let digits = text.replace('_', "");
    let number: f64 = digits.parse().ok()?;
    let has_digits = digits.bytes().any(|byte| byte.is_ascii_digit());
    (number.is_finite() || !has_digits).then_some(number)
}

pub(crate) fn to_text<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    let value = arg(args, 0)?;
    Ok(match value {
        Value::Bytes(bytes) => {
            meter.charge(tenth(value.size()))?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Value::text(text),
                Err(_) => {
                    return Err(Stop::error(
                        "invalid UTF-8 in bytes, cannot convert to string",
                    ));
                }
            }
        }
        value => {
            meter.charge(1)?;
            match value {
                Value::Text(_) => value.clone(),
                Value::Bool(flag) => Value::text(flag.to_string()),
                Value::Int(number) => Value::text(number.to_string()),
                Value::Uint(number) => Value::text(number.to_string()),
                Value::Double(number) => Value::text(shown(*number)),
                Value::Timestamp(time) => Value::text(time.to_string()),
                Value::Duration(nanos) => Value::text(shown_duration(*nanos)),
                Value::Opaque(opaque) => match &**opaque {
                    OpaqueValue::Ip(ip) => Value::text(ip.to_string()),
                    OpaqueValue::Cidr(cidr) => Value::text(cidr.to_string()),
                    _ => return Err(Stop::overload()),
                },
                _ => return Err(Stop::overload()),
            }
        }
    })
}

pub(crate) fn to_bytes<'a>(meter: &mut Meter<'a>, args: &[Value<'a>]) -> Outcome<'a> {
    match arg(args, 0)? {
        value @ Value::Text(text) => {
            meter.charge(tenth(value.size()))?;
            Ok(Value::Bytes(text.as_str().as_bytes().into()))
        }
        value @ Value::Bytes(_) => {
            meter.charge(1)?;
            Ok(value.clone())
        }
        _ => Err(Stop::overload()),
    }
}

/// A number as Go prints it with the shortest form of `%g`.
pub(crate) fn shown(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    number.to_string()
}
