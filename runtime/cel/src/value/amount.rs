//! Quantities of rules: beside the amount, the form that Kubernetes keeps it in decides whether it counts as an integer.

use std::str::FromStr;

use apiloom_schema::types::{ParseQuantityError, Quantity};

/// Digits with which a number always fits into 64 bits.
const MAX_DIGITS: usize = 18;

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    quantity: Quantity,
    /// The number and the power of ten by which Kubernetes keeps small amounts; those without are decimals of any size.
    scaled: Option<(i64, i32)>,
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.quantity.cmp(&other.quantity).is_eq()
    }
}

impl From<i64> for Amount {
    fn from(number: i64) -> Self {
        Self {
            quantity: Quantity::from(number),
            scaled: Some((number, 0)),
        }
    }
}

impl FromStr for Amount {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let quantity = text.parse::<Quantity>().or_else(|error| {
            // A number without digits is zero in Kubernetes, such as `Ki`.
            let at = text.len() - text.trim_start_matches(['+', '-']).len();
            let with_digit = format!("{}0{}", &text[..at], &text[at..]);
            let found = with_digit.parse().ok().filter(|_| !text.is_empty());
            found.ok_or(error)
        });
        Ok(Self {
            quantity: quantity?,
            scaled: scaled(text),
        })
    }
}

impl Amount {
    pub(crate) fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// The integer, if the amount has the form of one: `1.0` and `1000m` have not, nor have 19 digits.
    pub(crate) fn to_i64(self) -> Option<i64> {
        let (number, scale) = self.scaled?;
        number.checked_mul(10_i64.checked_pow(u32::try_from(scale).ok()?)?)
    }

    /// A double near the amount: the rounded number times the rounded power of ten.
    pub(crate) fn to_f64(self) -> f64 {
        match self.scaled {
            Some((number, 0)) => number as f64,
            // The nearest power of ten, which `powi` is not.
            Some((number, scale)) => number as f64 * power_of_ten(scale),
            None => self.quantity.to_f64(),
        }
    }

    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            quantity: self.quantity.checked_add(other.quantity)?,
            scaled: sum(self.scaled, other.scaled),
        })
    }

    pub(crate) fn checked_sub(self, other: Self) -> Option<Self> {
        let negated = other
            .scaled
            .and_then(|(number, scale)| Some((number.checked_neg()?, scale)));
        Some(Self {
            quantity: self.quantity.checked_sub(other.quantity)?,
            scaled: sum(self.scaled, negated),
        })
    }
}

fn power_of_ten(scale: i32) -> f64 {
    format!("1e{scale}").parse().unwrap_or(f64::INFINITY)
}

/// The sum by the lower power of ten, if it fits.
fn sum(a: Option<(i64, i32)>, b: Option<(i64, i32)>) -> Option<(i64, i32)> {
    let ((a, a_scale), (b, b_scale)) = (a?, b?);
    if b == 0 {
        return Some((a, a_scale));
    }
    if a == 0 {
        return Some((b, b_scale));
    }
    let scale = a_scale.min(b_scale);
    let at_scale = |number: i64, of: i32| {
        let power = 10_i64.checked_pow(u32::try_from(of - scale).ok()?)?;
        number.checked_mul(power)
    };
    Some((
        at_scale(a, a_scale)?.checked_add(at_scale(b, b_scale)?)?,
        scale,
    ))
}

/// The number and power of ten of a valid text, if Kubernetes keeps them so.
fn scaled(text: &str) -> Option<(i64, i32)> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return Some((0, 0));
    }
    let digits = whole.len().max(1) + fraction.len();
    let (scale, factor) = match suffix {
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => {
            let power = 10 * (1 + "KMGTPE".find(&suffix[..1])?);
            // About three decimal digits for ten binary ones.
            let is_small = fraction.is_empty() && whole.len() + power * 3 / 10 < 15;
            (0, is_small.then(|| 1_i64 << power)?)
        }
        _ => {
            if digits > MAX_DIGITS {
                return None;
            }
            (exponent(suffix)?, 1)
        }
    };
    let scale = scale.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if scale < -9 {
        return None;
    }
    let number: i64 = format!("0{whole}{fraction}").parse().ok()?;
    let number = number.checked_mul(factor)?;
    Some((if is_negative { -number } else { number }, scale))
}

/// The power of ten of a suffix.
fn exponent(suffix: &str) -> Option<i32> {
    Some(match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    })
}
