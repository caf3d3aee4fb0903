//! Values by name as JSON text, for large documents: a value takes about ten times the memory of its text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use apiloom_meta::codec::{self, Format};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The texts of values by their names.
pub(crate) type Texts = BTreeMap<String, Box<RawValue>>;

/// The texts of the fields of an object, where they stand in its text.
pub(crate) type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The fields of an object; none of another value.
///
/// # Errors
/// If it is not JSON.
pub fn fields(text: &[u8]) -> serde_json::Result<Fields<'_>> {
    match serde_json::from_slice(text) {
        Err(error) if error.is_data() => Ok(Fields::new()),
        fields => fields,
    }
}

/// The text of a value, whose keys are in order: equal values have equal texts.
pub(crate) fn text(value: &Value) -> Box<RawValue> {
    // Every value has a text.
    to_raw_value(value).unwrap_or_default()
}

/// The value of a text.
pub(crate) fn value(text: &RawValue) -> Value {
    // It is the text of a value.
    codec::Decoder::new(Format::Json)
        .value(text.get().as_bytes())
        .unwrap_or_default()
}
