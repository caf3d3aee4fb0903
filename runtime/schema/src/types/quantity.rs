//! Fixed-point quantities with suffixes: `100m`, `1Gi`, `1e3`.
//!
//! A quantity is a decimal number with at most nine fractional digits, never a float. It keeps the suffix family of
//! its text, and prints in canonical form: without fraction, with the largest suffix that fits.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Neg;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::ParseQuantityError;

/// Smallest exponent: amounts below one nano are rounded away from zero.
const NANO: i32 = -9;
/// Largest exponent with a decimal suffix, `E`.
const EXA: i32 = 18;

/// Which family of suffixes a [`Quantity`] prints with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantityFormat {
    /// Powers of 1000: `n u m k M G T P E`, or none.
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki Mi Gi Ti Pi Ei`.
    BinarySi,
    /// A decimal exponent: `e3`.
    DecimalExponent,
}

/// A quantity; keeps the suffix family it was written in.
///
/// Quantities are equal when their amounts are, in any family. Amounts have up to 38 digits.
///
/// ```
/// use apiloom_schema::types::Quantity;
/// let quantity: Quantity = "1.5Gi".parse().unwrap();
/// assert_eq!(quantity.to_string(), "1536Mi");
/// assert_eq!("0.5".parse::<Quantity>().unwrap().to_string(), "500m");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    /// The amount is `digits * 10^exponent`. Digits do not end in zero, so that equal amounts have equal fields; zero
    /// has exponent zero. Never `i128::MIN`, so negation cannot overflow.
    digits: i128,
    /// Exponent of ten, at least [`NANO`].
    exponent: i32,
    format: QuantityFormat,
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self {
        digits: 0,
        exponent: 0,
        format: QuantityFormat::DecimalSi,
    };

    /// An integer with this suffix family.
    pub fn new(amount: i64, format: QuantityFormat) -> Self {
        Self {
            digits: i128::from(amount),
            exponent: 0,
            format,
        }
        .normalized()
    }

    /// An amount in thousandths, such as millicores.
    pub fn from_milli(amount: i64) -> Self {
        Self {
            digits: i128::from(amount),
            exponent: -3,
            format: QuantityFormat::DecimalSi,
        }
        .normalized()
    }

    /// The suffix family.
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// The sign: -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        self.digits.signum() as i32
    }

    /// The amount, if it is an integer in the range of `i64`.
    pub fn to_i64(&self) -> Option<i64> {
        let (amount, exact) = self.scaled(0)?;
        i64::try_from(amount).ok().filter(|_| exact)
    }

    /// The amount, rounded away from zero to an integer; `None` outside of the range of `i64`.
    pub fn ceil(&self) -> Option<i64> {
        i64::try_from(self.scaled(0)?.0).ok()
    }

    /// The amount in thousandths, rounded away from zero; `None` outside of the range of `i64`.
    pub fn milli(&self) -> Option<i64> {
        i64::try_from(self.scaled(-3)?.0).ok()
    }

    /// The nearest float, for display and ratios only.
    pub fn to_f64(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// The sum, in the suffix family of the first, or of the second if the first is zero. `None` if it exceeds 38
    /// digits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let digits = self
            .digits_at(exponent)?
            .checked_add(other.digits_at(exponent)?)?;
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        (digits != i128::MIN).then(|| {
            Self {
                digits,
                exponent,
                format,
            }
            .normalized()
        })
    }

    /// The difference, in the suffix family of [`Quantity::checked_add`]. `None` if it exceeds 38 digits.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(-other)
    }

    /// The digits of the amount for a lower exponent.
    fn digits_at(&self, exponent: i32) -> Option<i128> {
        if self.digits == 0 {
            return Some(0);
        }
        let up = u32::try_from(i64::from(self.exponent) - i64::from(exponent)).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(up)?)
    }

    /// The amount in units of `10^exponent`, rounded away from zero, and whether it is exact.
    fn scaled(&self, exponent: i32) -> Option<(i128, bool)> {
        if self.exponent >= exponent {
            return Some((self.digits_at(exponent)?, true));
        }
        Some(divided(
            self.digits,
            i64::from(exponent) - i64::from(self.exponent),
        ))
    }

    fn normalized(mut self) -> Self {
        if self.digits == 0 {
            self.exponent = 0;
        }
        while self.digits != 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            // Cannot overflow: a number has at most 38 trailing zeros, and parsing limits the exponent.
            self.exponent = self.exponent.saturating_add(1);
        }
        self
    }

    /// The amount with a suffix of powers of 1024; `None` if it is not an integer, or less than 1024.
    fn binary(&self) -> Option<String> {
        let (mut amount, exact) = self.scaled(0)?;
        if !exact || amount.abs() < 1024 {
            return None;
        }
        let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi"].iter();
        let mut suffix = suffixes.next()?;
        while amount % 1024 == 0 {
            amount /= 1024;
            match suffixes.next() {
                Some(next) => suffix = next,
                None => return Some(format!("{amount}Ei")),
            }
        }
        Some(format!("{amount}{suffix}"))
    }
}

/// Digits divided by `10^places`, rounded away from zero, and whether the result is exact.
fn divided(digits: i128, places: i64) -> (i128, bool) {
    match u32::try_from(places)
        .ok()
        .and_then(|places| 10_i128.checked_pow(places))
    {
        Some(unit) if digits % unit == 0 => (digits / unit, true),
        Some(unit) => (digits / unit + digits.signum(), false),
        // Fewer digits than places: only the rounding remains.
        None => (digits.signum(), digits == 0),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        if let Some(text) = Some(self.format)
            .filter(|f| *f == QuantityFormat::BinarySi)
            .and_then(|_| self.binary())
        {
            return f.write_str(&text);
        }
        // Suffixes exist for every third exponent up to E; the rest is written as zeros.
        let exponential = self.format == QuantityFormat::DecimalExponent || self.exponent > 2 * EXA;
        let third = self.exponent - self.exponent.rem_euclid(3);
        let exponent = if exponential { third } else { third.min(EXA) };
        let zeros = "0".repeat(usize::try_from(self.exponent - exponent).unwrap_or_default());
        write!(f, "{}{zeros}", self.digits)?;
        match exponent {
            0 => Ok(()),
            _ if exponential => write!(f, "e{exponent}"),
            _ => f.write_str(decimal_suffix(exponent)),
        }
    }
}

fn decimal_suffix(exponent: i32) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        EXA => "E",
        _ => "",
    }
}

impl Neg for Quantity {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            digits: -self.digits,
            ..self
        }
    }
}

impl From<i64> for Quantity {
    fn from(amount: i64) -> Self {
        Self::new(amount, QuantityFormat::DecimalSi)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.digits, self.exponent) == (other.digits, other.exponent)
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.digits, self.exponent).hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.signum().cmp(&other.signum()).then_with(|| {
            let magnitude = magnitude_cmp(self, other);
            if self.digits < 0 {
                magnitude.reverse()
            } else {
                magnitude
            }
        })
    }
}

/// Compares the magnitudes of amounts with the same sign.
fn magnitude_cmp(a: &Quantity, b: &Quantity) -> Ordering {
    if a.is_zero() || b.is_zero() {
        return b.is_zero().cmp(&a.is_zero());
    }
    let places = |q: &Quantity| i64::from(q.digits.unsigned_abs().ilog10()) + i64::from(q.exponent);
    places(a).cmp(&places(b)).then_with(|| {
        // Both have the same number of integer digits: the number with the lower exponent has more digits, and the
        // other one scaled to it has as many, at most 39. If that exceeds a u128, it is the larger one.
        let exponent = a.exponent.min(b.exponent);
        let digits = |q: &Quantity| {
            let up = u32::try_from(i64::from(q.exponent) - i64::from(exponent)).ok()?;
            q.digits
                .unsigned_abs()
                .checked_mul(10_u128.checked_pow(up)?)
        };
        match (digits(a), digits(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    })
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.trim().parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<Quantity, E> {
                Ok(Quantity::from(amount))
            }
            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Quantity, E> {
                self.visit_str(&amount.to_string())
            }
            fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Quantity, E> {
                self.visit_str(&amount.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Pattern of quantities, for objects that are not decoded to Rust types.
const PATTERN: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        concat!(module_path!(), "::Quantity").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Quantity is a fixed-point number with an optional suffix, such as 100m, 1.5Gi or 2e3.",
            "format": "quantity",
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests;
