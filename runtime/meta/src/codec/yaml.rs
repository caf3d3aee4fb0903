//! YAML encoding, and extraction of the first of several documents.

mod text;
mod writer;

use bytes::Bytes;
use serde_json::Value;

pub use writer::{YamlError, YamlWriter};

/// Encodes a value as a YAML document.
pub(super) fn encode(value: &Value) -> Bytes {
    let mut out = Vec::new();
    let mut writer = YamlWriter::document(&mut out);
    writer.value(value);
    match writer.finish() {
        Ok(_) => out.into(),
        // JSON is valid YAML.
        Err(YamlError) => {
            let mut json = Vec::new();
            super::encode::append(value, &mut json);
            json.push(b'\n');
            json.into()
        }
    }
}

/// The text of the first document, up to the marker that ends it. A marker is at the beginning of a line, where a
/// scalar cannot continue.
pub(super) fn first_document(text: &str) -> &str {
    let mut begun = false;
    let mut start = 0;
    // A carriage return ends a line too.
    for line in text.split_inclusive(['\n', '\r']) {
        let bare = line.trim_end_matches(['\n', '\r']);
        let rest = bare
            .strip_prefix("---")
            .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        let is_end = bare
            .strip_prefix("...")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if begun && (rest.is_some() || is_end) {
            return &text[..start];
        }
        let is_directive = bare.starts_with('%');
        // The marker begins a document even if the rest of its line is empty: an empty document counts.
        begun |= rest.is_some()
            || !(bare.trim().is_empty()
                || bare.trim_start().starts_with('#')
                || is_directive
                || is_end);
        start += line.len();
    }
    text
}

#[cfg(test)]
mod tests;
