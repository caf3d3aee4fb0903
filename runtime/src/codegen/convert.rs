//! Carries values between versions: moves what has the same type, converts the rest by `ConvertFrom`.

use std::marker::PhantomData;

use apiloom_meta::codec::append_typed;
use apiloom_meta::convert::{ConvertError, ConvertFrom};
use apiloom_meta::kind::Resource;
use apiloom_meta::schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value of one type on its way to another. The inherent `convert` exists where both are the same and wins over
/// [`ConvertVia`], so that no blanket impl is needed and foreign types move too.
#[derive(Debug)]
pub struct Conv<A, B> {
    value: A,
    target: PhantomData<fn() -> B>,
}

impl<A, B> Conv<A, B> {
    /// A value on its way to a field; the function only tells the field's type.
    pub fn to_field<P>(value: A, _field: fn(&P) -> &B) -> Self {
        Self {
            value,
            target: PhantomData,
        }
    }
}

impl<T> Conv<T, T> {
    /// Moves the value.
    ///
    /// # Errors
    /// Never; the signature is that of [`ConvertVia::convert`].
    pub fn convert(self) -> Result<T, ConvertError> {
        Ok(self.value)
    }
}

/// The way between different types.
pub trait ConvertVia<A, B> {
    /// Converts the value.
    ///
    /// # Errors
    /// As the impl of [`ConvertFrom`] says.
    // The bound is on the method so that a missing impl is reported with the text of `ConvertFrom`.
    fn convert(self) -> Result<B, ConvertError>
    where
        B: ConvertFrom<A>;
}

impl<A, B> ConvertVia<A, B> for Conv<A, B> {
    fn convert(self) -> Result<B, ConvertError>
    where
        B: ConvertFrom<A>,
    {
        B::convert_from(self.value)
    }
}

/// What of a document no conversion touches.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Converts a whole document through its types. `apiVersion`, `kind` and `metadata` stay as they are, so that metadata
/// fields which the type does not know are kept.
///
/// # Errors
/// When the document does not have the type's shape, or a value has no counterpart.
pub fn convert_document<A: DeserializeOwned, B: ConvertFrom<A> + Serialize>(
    document: Value,
) -> Result<Value, String> {
    let envelope: Vec<(&str, Value)> = ENVELOPE
        .into_iter()
        .filter_map(|name| document.get(name).map(|value| (name, value.clone())))
        .collect();
    let typed: A = serde_json::from_value(document).map_err(|error| error.to_string())?;
    let converted = B::convert_from(typed).map_err(|error| error.to_string())?;
    let mut out = serde_json::to_value(converted).map_err(|error| error.to_string())?;
    if let Value::Object(fields) = &mut out {
        fields.extend(
            envelope
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
    }
    Ok(out)
}

/// The same from JSON to JSON: appends the converted document without its envelope.
///
/// # Errors
/// As [`convert_document`], and for what only documents can hold.
pub fn convert_json<A: DeserializeOwned, B: ConvertFrom<A> + Serialize>(
    document: &[u8],
    schema: &Schema,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let typed: A = serde_json::from_slice(document).map_err(|error| error.to_string())?;
    let converted = B::convert_from(typed).map_err(|error| error.to_string())?;
    append_typed(&converted, schema, &ENVELOPE, out).map_err(|error| error.to_string())
}

/// Whether the hub is the same kind of the same group in another version.
pub const fn is_other_version<Spoke: Resource, Hub: Resource>() -> bool {
    same_text(Spoke::GROUP, Hub::GROUP)
        && same_text(Spoke::KIND, Hub::KIND)
        && !same_text(Spoke::VERSION, Hub::VERSION)
}

/// `==` of strings is not const.
const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    a.len() == b.len() && index == a.len()
}
