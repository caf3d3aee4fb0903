//! Finds the values of a kind's selectable fields in the JSON of an object.

use std::borrow::Cow;

use apiloom_meta::codec::Finder;
use apiloom_meta::kind::SelectableField;
use serde_json::Value;

use super::json::Json;

/// The paths of all selectable fields, in the order of their declaration.
#[derive(Clone, Debug)]
pub(crate) struct FieldFinder {
    finder: Finder,
    /// Number of paths of each field.
    counts: Box<[usize]>,
}

impl FieldFinder {
    pub(crate) fn new(fields: &[SelectableField]) -> Self {
        let paths = fields.iter().flat_map(|field| &field.paths);
        Self {
            finder: Finder::new(paths.cloned()),
            counts: fields.iter().map(|field| field.paths.len()).collect(),
        }
    }

    /// The values as selectors compare them.
    pub(crate) fn find(&self, json: &Json<'_>) -> Box<[Box<str>]> {
        let found = json.find(&self.finder);
        let mut left = &found[..];
        let counts = self.counts.iter();
        let values = counts.map(|count| {
            let (own, others) = left.split_at(*count);
            left = others;
            let mut texts = own.iter().map(|json| field_text(*json));
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        });
        values.collect()
    }
}

/// A value as selectors compare it: strings as they are, other scalars as JSON prints them, everything else as empty.
pub(crate) fn printed(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(scalar.to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// The JSON of a field as selectors compare it, see [`printed`].
fn field_text(json: Option<&[u8]>) -> Box<str> {
    let value: Option<Value> = json.and_then(|json| serde_json::from_slice(json).ok());
    printed(value.as_ref()).into()
}
