//! Comparison of JSON numbers, exact for 64-bit integers.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The floats below it fit into an `i128`: 2 to the power of 127.
const MAX_INTEGRAL: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// Compares two numbers; integers exactly, floats as floats. NaN does not occur in JSON and counts as equal.
#[inline]
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

/// Whether two numbers have the same value, exactly: a float is not equal to the integers that it is only close to.
#[inline]
pub(crate) fn is_equal(a: &Number, b: &Number) -> bool {
    match (integral(a), integral(b)) {
        (Some(a), Some(b)) => a == b,
        _ => float(a) == float(b),
    }
}

/// The number as an integer, if its value is one, with or without the syntax of one.
#[inline]
pub(crate) fn integral(number: &Number) -> Option<i128> {
    whole(number).or_else(|| {
        let float = float(number);
        let is_integral = float.fract() == 0.0 && float.abs() < MAX_INTEGRAL;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is an integer of 127 bits"
        )]
        is_integral.then_some(float as i128)
    })
}

/// Whether `number` is a multiple of `step`, which is not zero.
pub(crate) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (whole(number), whole(step)) {
        return step == 0 || number % step == 0;
    }
    // Decimal fractions are not exact in binary, so a quotient close to an integer counts as one.
    let quotient = float(number) / float(step);
    !quotient.is_finite()
        || (quotient - quotient.round()).abs() <= quotient.abs().max(1.0) * f64::EPSILON * 4.0
}

/// The format of IntOrString. Not printed: clients use `x-kubernetes-int-or-string` instead.
pub(crate) const INT_OR_STRING: &str = "int-or-string";

/// The range of an integer format; `None` for formats without one.
#[inline]
pub fn format_bounds(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        // IntOrString has integers of 32 bits.
        "int32" | INT_OR_STRING => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" | "uint" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Whether a float is out of the range of its format: a Rust type would decode it as infinite.
#[inline]
pub fn overflows(format: Option<&str>, value: f64) -> bool {
    format == Some("float") && value.abs() > f64::from(f32::MAX)
}

/// The number as an integer, if it has the syntax of one.
#[inline]
pub fn whole(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

/// The number as a float, rounded if necessary.
#[inline]
pub(crate) fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// A float; as an integer if it is printed like one, so that storing and decoding does not change it.
pub fn shortest(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e21 && !(value == 0.0 && value.is_sign_negative()) {
        let digits = value.to_string();
        if let Ok(whole) = digits.parse::<i64>() {
            return Value::from(whole);
        }
        if let Ok(whole) = digits.parse::<u64>() {
            return Value::from(whole);
        }
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Replaces the numbers of a document of a custom resource by those that it has after it was stored: 1.0 by 1, and an integer of more
/// than 63 bits by the nearest float.
pub fn settle(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => *value = shortest(float(number)),
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(fields) => fields.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> Number {
        serde_json::from_str(text).expect("a number")
    }

    #[test]
    fn big_integers_compare_exactly() {
        assert_eq!(
            compare(&n("9223372036854775807"), &n("9223372036854775806")),
            Ordering::Greater
        );
        assert_eq!(
            compare(&n("18446744073709551615"), &n("-1")),
            Ordering::Greater
        );
        assert_eq!(compare(&n("1.5"), &n("2")), Ordering::Less);
    }

    #[test]
    fn equal_numbers_have_the_same_value() {
        for (a, b, expected) in [
            ("1", "1.0", true),
            ("0", "-0.0", true),
            ("18446744073709551615", "18446744073709551615", true),
            ("18446744073709551615", "18446744073709551614", false),
            ("18446744073709551615", "18446744073709551616.0", false),
            ("18446744073709551616", "18446744073709551616.0", true),
            ("1e300", "1e300", true),
            ("1.5", "1", false),
        ] {
            assert_eq!(is_equal(&n(a), &n(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn decimal_steps_count_as_people_mean_them() {
        for (number, step, expected) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("10", "5", true),
            ("11", "5", false),
            ("1", "0.5", true),
        ] {
            assert_eq!(
                is_multiple(&n(number), &n(step)),
                expected,
                "{number} / {step}"
            );
        }
    }
}
