//! The parser of quantities.

use std::str::FromStr;

use super::{NANO, Quantity, QuantityFormat, divided};

/// Error of a malformed quantity, with the text of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text is not a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number has more digits than a quantity can hold.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let (number, suffix) = split(text)?;
        let (base, power, format) = suffix_meaning(suffix).ok_or(ParseQuantityError::Suffix)?;
        let mut number = Number::read(number);
        if base == 2 {
            // Overflows only for 20 digits or more: a larger integer exceeds the limit below, a longer fraction is
            // finer than any quantity.
            number.digits = number
                .digits
                .checked_mul(1_i128 << power)
                .ok_or(ParseQuantityError::Numeric)?;
        } else {
            number.exponent += power;
        }
        let quantity = number.rounded(format)?;
        Ok(if format == QuantityFormat::BinarySi {
            capped(quantity)
        } else {
            quantity
        })
    }
}

/// Splits a text into the number, with its sign, and the suffix.
fn split(text: &str) -> Result<(&str, &str), ParseQuantityError> {
    let behind_number = text
        .bytes()
        .skip(usize::from(text.starts_with(['+', '-'])))
        .position(|b| !b.is_ascii_digit() && b != b'.');
    let at = behind_number.map_or(text.len(), |len| {
        len + usize::from(text.starts_with(['+', '-']))
    });
    let (number, suffix) = text.split_at(at);
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let malformed = !digits.bytes().all(|b| b.is_ascii_digit())
        || number.matches('.').count() > 1
        || !number.contains(|c: char| c.is_ascii_digit());
    if malformed {
        Err(ParseQuantityError::Format)
    } else {
        Ok((number, suffix))
    }
}

/// Base and power of a suffix, and its family.
fn suffix_meaning(suffix: &str) -> Option<(u8, i64, QuantityFormat)> {
    use QuantityFormat::{BinarySi, DecimalExponent, DecimalSi};
    Some(match suffix {
        "n" => (10, -9, DecimalSi),
        "u" => (10, -6, DecimalSi),
        "m" => (10, -3, DecimalSi),
        "" => (10, 0, DecimalSi),
        "k" => (10, 3, DecimalSi),
        "M" => (10, 6, DecimalSi),
        "G" => (10, 9, DecimalSi),
        "T" => (10, 12, DecimalSi),
        "P" => (10, 15, DecimalSi),
        "E" => (10, 18, DecimalSi),
        "Ki" => (2, 10, BinarySi),
        "Mi" => (2, 20, BinarySi),
        "Gi" => (2, 30, BinarySi),
        "Ti" => (2, 40, BinarySi),
        "Pi" => (2, 50, BinarySi),
        "Ei" => (2, 60, BinarySi),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (10, i64::from(exponent), DecimalExponent)
        }
    })
}

/// A parsed number: `digits * 10^exponent`, or slightly more if `more` is set.
struct Number {
    digits: i128,
    exponent: i64,
    more: bool,
    negative: bool,
}

impl Number {
    /// Parses a sign, digits and at most one point. Zeros are appended only when another digit follows, so that
    /// leading and trailing zeros never overflow.
    fn read(text: &str) -> Self {
        let mut number = Self {
            digits: 0,
            exponent: 0,
            more: false,
            negative: text.starts_with('-'),
        };
        // Numbers of digits: parsed so far, up to the last one appended, and before the point.
        let (mut seen, mut taken, mut whole) = (0_i64, 0_i64, None);
        for byte in text.trim_start_matches(['+', '-']).bytes() {
            if byte == b'.' {
                whole = Some(seen);
                continue;
            }
            seen += 1;
            if byte == b'0' || number.more {
                continue;
            }
            match appended(number.digits, seen - taken, byte - b'0') {
                Some(digits) => (number.digits, taken) = (digits, seen),
                None => number.more = true,
            }
        }
        number.exponent = whole.unwrap_or(seen) - taken;
        number
    }

    /// The quantity, rounded away from zero to nanos.
    fn rounded(self, format: QuantityFormat) -> Result<Quantity, ParseQuantityError> {
        let places = i64::from(NANO) - self.exponent;
        let (mut digits, mut exponent) = (self.digits, self.exponent);
        if places > 0 || self.more {
            // The omitted digits are beyond the 38th; if those down to nanos fit, the omitted ones are less than one
            // nano.
            let (nanos, exact) = if places > 0 {
                divided(digits, places)
            } else {
                (
                    appended(digits, -places, 0).ok_or(ParseQuantityError::Numeric)?,
                    true,
                )
            };
            digits = nanos
                .checked_add(i128::from(exact && self.more))
                .ok_or(ParseQuantityError::Numeric)?;
            exponent = i64::from(NANO);
        }
        let exponent = i32::try_from(exponent).map_err(|_| ParseQuantityError::Numeric)?;
        let digits = if self.negative { -digits } else { digits };
        Ok(Quantity {
            digits,
            exponent,
            format,
        }
        .normalized())
    }
}

/// The digits shifted by so many places, with another digit at the end; `None` on overflow.
fn appended(digits: i128, places: i64, digit: u8) -> Option<i128> {
    let moved = match digits {
        0 => 0,
        _ => digits.checked_mul(10_i128.checked_pow(u32::try_from(places).ok()?)?)?,
    };
    moved.checked_add(i128::from(digit))
}

/// Limits for binary suffixes, as in Kubernetes: at most the range of an `i64`; amounts below one become decimal.
fn capped(quantity: Quantity) -> Quantity {
    let max = Quantity::new(i64::MAX, QuantityFormat::BinarySi);
    let (sign, magnitude) = if quantity.signum() < 0 {
        (-1, -quantity)
    } else {
        (1, quantity)
    };
    if magnitude > max {
        return if sign < 0 { -max } else { max };
    }
    let below_one = !quantity.is_zero() && magnitude < Quantity::from(1);
    Quantity {
        format: if below_one {
            QuantityFormat::DecimalSi
        } else {
            quantity.format
        },
        ..quantity
    }
}
