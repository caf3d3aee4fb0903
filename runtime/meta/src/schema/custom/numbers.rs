//! The rules for numbers of custom resources.

use serde_json::{Number, Value};

use super::super::node::{Node, Types};
use super::outcome::{Outcome, invalid_name};
use crate::field::{FieldError, FieldPath};
use crate::go_value::float_text;
use crate::number;

/// The largest integer that a float has without neighbors of the same value.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;
/// How far, relatively, a quotient may be from an integer and count as one.
const TOLERANCE: f64 = 1e-9;

/// The number as an integer: with the syntax of one, or a float without fraction.
pub(super) fn integer(value: &Number) -> Option<i128> {
    match number::whole(value) {
        Some(whole) => Some(whole).filter(|whole| i64::try_from(*whole).is_ok()),
        None => {
            let float = number::float(value);
            let is_whole = float.fract() == 0.0 && float.abs() <= MAX_EXACT;
            #[allow(clippy::cast_possible_truncation, reason = "it is a small integer")]
            is_whole.then_some(float as i128)
        }
    }
}

/// Whether Go decodes the number as an integer.
pub(super) fn has_integer_syntax(value: &Number) -> bool {
    number::whole(value).is_some_and(|whole| i64::try_from(whole).is_ok())
}

/// Whether a number is one of an enum. Where the enum has an integer, the fraction of the number does not count, as in
/// kube-openapi, which converts the number to the type of the enum's. Numbers that Go does not decode as integers are floats.
pub(super) fn is_allowed(allowed: &Number, value: &Number) -> bool {
    match (has_integer_syntax(allowed), has_integer_syntax(value)) {
        (true, true) => allowed == value,
        (true, false) => whole_part(value) == whole_part(allowed),
        (false, _) => number::float(allowed) == number::float(value),
    }
}

/// Checks a number.
pub(super) fn check(node: &Node, value: &Number, name: &str, at: &FieldPath, out: &mut Outcome) {
    let range = Range::of(node);
    if !range.has(value) {
        out.add(|| range.error("Checked", name));
    }
    let rules = &node.rules;
    let shown = || shown(value);
    // The limits of an integer are integers too: their fractions do not count.
    let is_integer = has_integer_syntax(value);
    if let Some(step) = &rules.multiple_of {
        if !range.has(step) {
            out.add(|| range.error("MultipleOf", name));
        }
        let step = if is_integer && range.has(step) {
            whole_part(step)
        } else {
            step.clone()
        };
        if is_integer && number::float(&step) <= 0.0 {
            let detail = format!("factor MultipleOf declared for {name} must be positive: {step}");
            out.add(|| FieldError::invalid(at, Value::Number(step.clone()), &detail));
        } else if !is_multiple(value, &step) {
            let detail = format!(
                "should be a multiple of {}",
                float_text(number::float(&step))
            );
            out.add(|| invalid_name(at, shown(), name, &detail));
        }
    }
    for (limit, is_exclusive, is_minimum) in [
        (&rules.minimum, false, true),
        (&rules.exclusive_minimum, true, true),
        (&rules.maximum, false, false),
        (&rules.exclusive_maximum, true, false),
    ] {
        let Some(limit) = limit else { continue };
        let (boundary, words) = match (is_minimum, is_exclusive) {
            (true, false) => ("Minimum boundary", "greater than or equal to"),
            (true, true) => ("Minimum boundary", "greater than"),
            (false, false) => ("Maximum boundary", "less than or equal to"),
            (false, true) => ("Maximum boundary", "less than"),
        };
        let in_range = range.has(limit);
        if !in_range {
            out.add(|| range.error(boundary, name));
        }
        let limit = if is_integer && in_range {
            whole_part(limit)
        } else {
            limit.clone()
        };
        let order = number::compare(value, &limit);
        let order = if is_minimum { order } else { order.reverse() };
        if order.is_lt() || (is_exclusive && order.is_eq()) {
            let limit = if is_integer && in_range {
                limit.to_string()
            } else {
                float_text(number::float(&limit))
            };
            let detail = format!("should be {words} {limit}");
            out.add(|| invalid_name(at, shown(), name, &detail));
        }
    }
}

/// The range of a type and a format.
struct Range<'a> {
    json_type: &'static str,
    format: Option<&'a str>,
}

impl<'a> Range<'a> {
    fn of(node: &'a Node) -> Self {
        let json_type = match node.types {
            Types::INTEGER => "integer",
            Types::NUMBER => "number",
            _ => "",
        };
        let format = node.format.as_deref().filter(|_| !json_type.is_empty());
        Self { json_type, format }
    }

    fn has(&self, value: &Number) -> bool {
        match (self.json_type, self.format) {
            ("integer", Some("int32")) => {
                integer(value).is_some_and(|whole| i32::try_from(whole).is_ok())
            }
            ("integer", _) => integer(value).is_some(),
            (_, Some("float")) => number::float(value).abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    /// The error of kube-openapi, which has no path.
    fn error(&self, what: &str, name: &str) -> FieldError {
        let format = match self.format {
            Some(format) => format!("with format {format}"),
            None => "(default format)".to_owned(),
        };
        let json_type = self.json_type;
        let detail = format!("{what} value must be of type {json_type} {format} in {name}");
        FieldError::invalid(&FieldPath::root(), "", &detail)
    }
}

/// A limit without its fraction; of one that is too large, the nearest integer of 64 bits.
pub(super) fn whole_part(limit: &Number) -> Number {
    match number::whole(limit).and_then(|whole| i64::try_from(whole).ok()) {
        Some(whole) => whole.into(),
        #[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
        None => (number::float(limit) as i64).into(),
    }
}

/// Whether a number is a multiple of a positive step: integers exactly, others with the tolerance of kube-openapi, which divides
/// them as floats and accepts no quotient that is too large to be exact.
fn is_multiple(value: &Number, step: &Number) -> bool {
    if has_integer_syntax(value) && has_integer_syntax(step) {
        return number::is_multiple(value, step);
    }
    let (value, step) = (number::float(value), number::float(step));
    let quotient = if step < 1.0 {
        1.0 / step * value
    } else {
        value / step
    };
    let whole = quotient.round();
    let difference = (quotient - whole).abs();
    quotient.abs() <= MAX_EXACT && (difference == 0.0 || difference < TOLERANCE * whole.abs())
}

/// A value in an error; see [`shown`].
pub(super) fn shown_value(value: &Value) -> Value {
    value.as_number().map_or_else(|| value.clone(), shown)
}

/// A number in an error. One that is too large for an integer of 64 bits is a float for Go.
fn shown(value: &Number) -> Value {
    if has_integer_syntax(value) {
        Value::Number(value.clone())
    } else {
        number::float(value).into()
    }
}
