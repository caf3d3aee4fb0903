//! JSON values as Go has them, for the texts of Kubernetes that show a value or its type.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The name of a value's type in Go.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The name of a value's type in JSON, in the errors of Go's decoder.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The error of Go's decoder for a value that a type cannot hold as a whole, such as `map[string]interface {}`.
pub fn mistyped(value: &Value, wanted: &str) -> String {
    let found = json_type(value);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// A value as Go's `%v` prints it: `map[a:1 b:[x y]]`.
pub fn go_text(value: &Value) -> String {
    let mut out = String::new();
    append(value, &mut out);
    out
}

/// Appends the text of [`go_text`].
pub fn append(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => append_list(items, out),
        Value::Object(fields) => append_fields(fields, out),
        Value::Number(number) => match number.as_f64().filter(|_| !number.is_i64()) {
            Some(float) => out.push_str(&float_text(float)),
            None => append_plain(number, out),
        },
        Value::Bool(truth) => append_plain(truth, out),
    }
}

/// Appends a list as `%v` prints it.
pub fn append_list(items: &[Value], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        append(item, out);
    }
    out.push(']');
}

/// Appends the fields of an object as `%v` prints them.
pub fn append_fields(fields: &Map<String, Value>, out: &mut String) {
    out.push_str("map[");
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(name);
        out.push(':');
        append(value, out);
    }
    out.push(']');
}

fn append_plain(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{value}");
}

/// A float as `%v` prints it: without an exponent where it has at most six digits before the point, else with one of at least two
/// digits.
pub fn float_text(float: f64) -> String {
    // Zero has no sign after it was stored.
    let float = if float == 0.0 { 0.0 } else { float };
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_go_prints_them() {
        for (value, kind, text) in [
            (json!(null), "<nil>", "<nil>"),
            (json!(true), "bool", "true"),
            (json!(-3), "int64", "-3"),
            (json!(2.5), "float64", "2.5"),
            (json!(2.0), "float64", "2"),
            (json!(1e21), "float64", "1e+21"),
            (json!(123_456.5), "float64", "123456.5"),
            (json!(123_456_789.0), "float64", "1.23456789e+08"),
            (json!(1e6), "float64", "1e+06"),
            (json!(1e-4), "float64", "0.0001"),
            (json!(0.0), "float64", "0"),
            (json!(1.5e-7), "float64", "1.5e-07"),
            (json!(u64::MAX), "float64", "1.8446744073709552e+19"),
            (json!("x y"), "string", "x y"),
            (json!(["a", 1]), "[]interface {}", "[a 1]"),
            (
                json!({"b": {}, "a": [null]}),
                "map[string]interface {}",
                "map[a:[<nil>] b:map[]]",
            ),
        ] {
            assert_eq!((go_type(&value), go_text(&value).as_str()), (kind, text));
        }
    }
}
