//! Conversion of typed values between versions.
//!
//! Every conversion is written or derived, never guessed: integers are widened but never narrowed, and fields are
//! dropped only where the type declares it.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::hash::Hash;

use crate::types::SortedMap;

/// Error of a conversion: the path of the value, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConvertError {
    path: String,
    message: String,
}

impl ConvertError {
    /// An error about the value itself; callers add the path with [`ConvertError::inside`].
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
        }
    }
    /// Prepends the field that contains the value to the path.
    #[must_use]
    pub fn inside(mut self, field: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{field}{dot}{}", self.path);
        self
    }
}

impl From<Infallible> for ConvertError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Conversion from the corresponding type of another version.
///
/// `#[api(convert(peer = T))]` derives it for both directions; options, boxes, lists and maps of such types convert
/// too. Equal types need no impl: the macros move the value. Integers are widened; narrowing them back needs `with`.
#[diagnostic::on_unimplemented(
    message = "`{A}` cannot be converted to `{Self}` automatically",
    note = "say how: `#[api(convert(peer = ..))]` on the type, `#[api(convert(with = (to, from)))]` on the field, or `impl ConvertFrom`",
    note = "a number is narrowed by a function that may fail: `#[api(convert(with = (i64::from, i32::try_from)))]`"
)]
pub trait ConvertFrom<A>: Sized {
    /// Converts a value.
    ///
    /// # Errors
    /// If the other version's value cannot be expressed in this type.
    fn convert_from(value: A) -> Result<Self, ConvertError>;
}

macro_rules! widens {
    ($($narrow:ident => $($wide:ident),+;)+) => { $($(
        impl ConvertFrom<$narrow> for $wide {
            fn convert_from(value: $narrow) -> Result<Self, ConvertError> {
                Ok(Self::from(value))
            }
        }
    )+)+ };
}

// Floats are not widened: the digits of an `f32` change in an `f64`.
widens! {
    i8 => i16, i32, i64;
    i16 => i32, i64;
    i32 => i64;
    u8 => u16, u32, u64, i16, i32, i64;
    u16 => u32, u64, i32, i64;
    u32 => u64, i64;
}

impl<A, B: ConvertFrom<A>> ConvertFrom<Option<A>> for Option<B> {
    fn convert_from(value: Option<A>) -> Result<Self, ConvertError> {
        value.map(B::convert_from).transpose()
    }
}

impl<A, B: ConvertFrom<A>> ConvertFrom<Box<A>> for Box<B> {
    fn convert_from(value: Box<A>) -> Result<Self, ConvertError> {
        B::convert_from(*value).map(Box::new)
    }
}

impl<A, B: ConvertFrom<A>> ConvertFrom<Vec<A>> for Vec<B> {
    fn convert_from(value: Vec<A>) -> Result<Self, ConvertError> {
        let convert = |(index, item)| {
            B::convert_from(item).map_err(|error| error.inside(&format!("[{index}]")))
        };
        value.into_iter().enumerate().map(convert).collect()
    }
}

fn entry<K: fmt::Debug, A, B: ConvertFrom<A>>(
    (key, value): (K, A),
) -> Result<(K, B), ConvertError> {
    match B::convert_from(value) {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(error.inside(&format!("[{key:?}]"))),
    }
}

/// The maps with sorted keys, from either.
macro_rules! sorted {
    ($($from:ident => $to:ident),+) => { $(
        impl<K: Ord + fmt::Debug, A, B: ConvertFrom<A>> ConvertFrom<$from<K, A>> for $to<K, B> {
            fn convert_from(value: $from<K, A>) -> Result<Self, ConvertError> {
                value.into_iter().map(entry).collect()
            }
        }
    )+ };
}

sorted!(BTreeMap => BTreeMap, SortedMap => SortedMap, BTreeMap => SortedMap, SortedMap => BTreeMap);

impl<K: Hash + Eq + fmt::Debug, A, B: ConvertFrom<A>> ConvertFrom<HashMap<K, A>> for HashMap<K, B> {
    fn convert_from(value: HashMap<K, A>) -> Result<Self, ConvertError> {
        value.into_iter().map(entry).collect()
    }
}
