//! Numbers as types of Go, as kube-openapi compares them.

use std::borrow::Cow;

use serde_json::{Number, Value};

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
pub(super) fn is_multiple(value: &Number, step: &Number) -> bool {
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
pub(super) fn shown_value(value: &Value) -> Cow<'_, Value> {
    value
        .as_number()
        .map_or(Cow::Borrowed(value), |number| Cow::Owned(shown(number)))
}

/// A number in an error. One that is too large for an integer of 64 bits is a float for Go.
pub(super) fn shown(value: &Number) -> Value {
    if has_integer_syntax(value) {
        Value::Number(value.clone())
    } else {
        number::float(value).into()
    }
}
