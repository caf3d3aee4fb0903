//! Reads a quantity.

use std::str::FromStr;

use super::{NANO, Quantity, QuantityFormat, divided};

/// Why a text is no quantity, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// More digits than a quantity holds.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// No such suffix.
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
            // Overflows only for 20 digits and more; as a whole number that is beyond the cap below, as a fraction
            // it is finer than any quantity.
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

/// The number, sign included, and the suffix.
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

/// The base and power that a suffix multiplies with, and its family.
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

/// A number as read: `digits * 10^exponent`, and a little more when `more` says so.
struct Number {
    digits: i128,
    exponent: i64,
    more: bool,
    negative: bool,
}

impl Number {
    /// Reads a sign, digits and at most one point. Zeros are put in only when another digit follows them, so any
    /// number of them may begin or end the text.
    fn read(text: &str) -> Self {
        let mut number = Self {
            digits: 0,
            exponent: 0,
            more: false,
            negative: text.starts_with('-'),
        };
        // Counts of digits: seen so far, up to the last one that was taken in, and before the point.
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
            // The digits left out were beyond 38; if those down to the nanos fit, they are less than one nano.
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

/// The digits moved up so many places, with one more in the last; `None` when that is too many.
fn appended(digits: i128, places: i64, digit: u8) -> Option<i128> {
    let moved = match digits {
        0 => 0,
        _ => digits.checked_mul(10_i128.checked_pow(u32::try_from(places).ok()?)?)?,
    };
    moved.checked_add(i128::from(digit))
}

/// Binary suffixes stand for sizes: no larger than an `i64` holds, and what is below one prints as a decimal.
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
