//! Converts values between versions: moves values of the same type, converts others with `ConvertFrom`.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use crate::codec::Encoder;
use crate::convert::{ConvertError, ConvertFrom};
use crate::fields::HasFields;
use crate::gvk::GroupResource;
use crate::kind::Resource;
use crate::schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::const_text::{ConstText, next_not_among, same_text};

/// A value to be converted to another type. The inherent `convert` exists where both types are the same and takes
/// precedence over [`ConvertVia`], so that no blanket impl is needed and types of other crates are moved too.
#[derive(Debug)]
pub struct Conv<A, B> {
    /// The value.
    pub value: A,
    /// The type that it is converted to.
    pub target: PhantomData<B>,
}

impl<T> Conv<T, T> {
    /// Moves the value.
    ///
    /// # Errors
    /// Never; the form is that of [`ConvertVia::convert`].
    #[inline]
    pub fn convert(self, _field: &'static str) -> Result<T, Infallible> {
        Ok(self.value)
    }
}

/// The conversion between different types.
pub trait ConvertVia<A, B> {
    /// Converts the value of a field.
    ///
    /// # Errors
    /// The errors of the [`ConvertFrom`] impl.
    // The bound is on the method so that a missing impl is reported with the text of `ConvertFrom`.
    fn convert(self, field: &'static str) -> Result<B, ConvertError>
    where
        B: ConvertFrom<A>;
}

impl<A, B> ConvertVia<A, B> for Conv<A, B> {
    fn convert(self, field: &'static str) -> Result<B, ConvertError>
    where
        B: ConvertFrom<A>,
    {
        match B::convert_from(self.value) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.inside(field)),
        }
    }
}

/// The error of [`Conv`] or [`ReturnValue`].
pub fn convert_error(error: impl Into<ConvertError>) -> ConvertError {
    error.into()
}

/// Stands for a value of a type where only the types of its fields matter; there is never one.
pub const fn never<T>() -> Option<(&'static T, Infallible)> {
    None
}

/// The type of a field.
pub const fn type_of<T>(_: &T) -> PhantomData<T> {
    PhantomData
}

/// The result of a user's function for a value of type `B`: the value, or a `Result` of it. The inherent `value` exists
/// where it is the value itself.
#[derive(Debug)]
pub struct ReturnValue<A, B> {
    /// What the function returned.
    pub value: A,
    /// The type that is needed.
    pub target: PhantomData<B>,
}

impl<T> ReturnValue<T, T> {
    /// The value.
    ///
    /// # Errors
    /// Never; the form is that of [`ReturnValueVia::value`].
    pub fn value(self, _field: &'static str) -> Result<T, Infallible> {
        Ok(self.value)
    }
}

/// The value of a function that may fail.
pub trait ReturnValueVia<A, B> {
    /// The value of a field; without a name, the whole value.
    ///
    /// # Errors
    /// The errors of the function.
    // On the method as in `ConvertVia`, so that another type is reported with the text of `ResultOf`.
    fn value(self, field: &'static str) -> Result<B, ConvertError>
    where
        A: ResultOf<B>;
}

impl<A, B> ReturnValueVia<A, B> for ReturnValue<A, B> {
    fn value(self, field: &'static str) -> Result<B, ConvertError>
    where
        A: ResultOf<B>,
    {
        match self.value.into_result() {
            Err(error) if !field.is_empty() => Err(error.inside(field)),
            result => result,
        }
    }
}

/// The results that a conversion function may return.
#[diagnostic::on_unimplemented(
    message = "this conversion function gives `{Self}`, and `{T}` is needed",
    note = "it gives the value, or a `Result` of it with an error that can be shown"
)]
pub trait ResultOf<T> {
    /// The value.
    ///
    /// # Errors
    /// The errors of the function.
    fn into_result(self) -> Result<T, ConvertError>;
}

impl<T, E: fmt::Display + Any> ResultOf<T> for Result<T, E> {
    fn into_result(self) -> Result<T, ConvertError> {
        self.map_err(|error| {
            // An error of a nested conversion has its own path.
            let own = (&error as &dyn Any).downcast_ref::<ConvertError>();
            own.cloned()
                .unwrap_or_else(|| ConvertError::new(error.to_string()))
        })
    }
}

/// The names of a type's fields, if they are known. The inherent constant takes precedence over [`FieldNamesOther`].
#[derive(Debug)]
pub struct FieldNames<T>(PhantomData<T>);

impl<T: HasFields> FieldNames<T> {
    /// The names.
    pub const OF: Option<&'static [&'static str]> = T::NAMES;
}

/// The constant of [`FieldNames`] for types without known fields.
pub trait FieldNamesOther {
    /// No names.
    const OF: Option<&'static [&'static str]> = None;
}

impl<T> FieldNamesOther for FieldNames<T> {}

/// The text of an error that names fields which a conversion does not mention.
#[derive(Debug)]
pub struct MissingFields(ConstText);

/// The beginning of the error.
const LEAVES_OUT: &str = "this conversion leaves out `";

impl MissingFields {
    /// The error about a peer's fields, `None` if the conversion mentions each. `advice` follows the names.
    pub const fn find(
        names: Option<&[&str]>,
        mentioned: &[&str],
        peer: &str,
        advice: &str,
    ) -> Option<Self> {
        let Some(names) = names else { return None };
        let Some(mut index) = next_not_among(names, 0, mentioned) else {
            return None;
        };
        let mut text = ConstText::new();
        text.push(LEAVES_OUT);
        text.push(names[index]);
        while let Some(next) = next_not_among(names, index + 1, mentioned) {
            index = next;
            text.push("`, `");
            text.push(names[index]);
        }
        text.push("` of `");
        text.push(peer);
        text.push("`: ");
        text.push(advice);
        Some(Self(text))
    }

    /// The text.
    pub const fn as_str(&self) -> &str {
        self.0
            .as_str_or("this conversion leaves out fields of the peer")
    }
}

/// Gives a conversion the type of its peer only after its checks were evaluated: if one fails, rustc does not know the
/// type and reports no further errors about its fields.
#[derive(Debug)]
pub struct ValidIf<const IS_GOOD: bool>;

/// The type of [`ValidIf`].
pub trait TypeOf<T> {
    /// The type itself.
    type Type;
}

impl<T> TypeOf<T> for ValidIf<true> {
    type Type = T;
}

/// The members of a document that conversions do not change.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Converts a whole document through its types. `apiVersion`, `kind` and `metadata` stay as they are, so that metadata
/// fields which the type does not know are kept.
///
/// # Errors
/// When the document cannot be deserialized as the type, or a value has no counterpart.
pub fn convert_document<A: DeserializeOwned, B: ConvertFrom<A> + Serialize>(
    mut document: Value,
) -> Result<Value, String> {
    // They are large, and stay as they are.
    let managed = match document.get_mut("metadata") {
        Some(Value::Object(metadata)) => metadata.remove_entry("managedFields"),
        _ => None,
    };
    let mut envelope: Vec<(&str, Value)> = ENVELOPE
        .into_iter()
        .filter_map(|name| document.get(name).map(|value| (name, value.clone())))
        .collect();
    if let Some((_, Value::Object(metadata))) = envelope.last_mut() {
        metadata.extend(managed);
    }
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

/// Converts JSON to JSON: appends the converted document without its envelope.
///
/// # Errors
/// The errors of [`convert_document`], and errors of documents that have no JSON text.
pub fn convert_json<A: DeserializeOwned, B: ConvertFrom<A> + Serialize>(
    document: &[u8],
    schema: &Schema,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let typed: A = serde_json::from_slice(document).map_err(|error| error.to_string())?;
    let converted = B::convert_from(typed).map_err(|error| error.to_string())?;
    Encoder::of(schema)
        .append_typed(&converted, &ENVELOPE, out)
        .map_err(|error| error.to_string())
}

/// Whether the other type is the same kind, with the same plural, of another group.
pub const fn is_of_other_group<K: Resource, Other: Resource>() -> bool {
    !same_text(K::GROUP, Other::GROUP)
        && same_text(K::KIND, Other::KIND)
        && same_text(K::PLURAL, Other::PLURAL)
}

/// The group and resource of a hub that is of another group.
pub fn resource_of_other_group<K: Resource, Hub: Resource>() -> Option<GroupResource> {
    (K::GROUP != Hub::GROUP).then(|| GroupResource::new(Hub::GROUP, Hub::PLURAL))
}

/// Whether the hub is the same kind of the same group in another version.
pub const fn is_other_version<Spoke: Resource, Hub: Resource>() -> bool {
    same_text(Spoke::GROUP, Hub::GROUP)
        && same_text(Spoke::KIND, Hub::KIND)
        && !same_text(Spoke::VERSION, Hub::VERSION)
}
