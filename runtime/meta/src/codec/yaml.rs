//! YAML out, and finding the first of several documents in it.

mod text;
mod writer;

use bytes::Bytes;
use serde_json::Value;

pub use writer::{NotWritten, YamlWriter};

/// A value as a YAML document.
pub(super) fn encode(value: &Value) -> Bytes {
    let mut out = Vec::new();
    let mut writer = YamlWriter::document(&mut out);
    writer.value(value);
    match writer.finish() {
        Ok(_) => out.into(),
        // JSON is YAML too.
        Err(NotWritten) => {
            let mut json = Vec::new();
            super::encode::append(value, &mut json);
            json.push(b'\n');
            json.into()
        }
    }
}

/// The text of the first document: from the start to the marker that ends it. A marker stands at the beginning of a line,
/// where no scalar of a document can go on.
pub(super) fn first_document(text: &str) -> &str {
    let mut begun = false;
    let mut start = 0;
    // A carriage return ends a line too, before any character.
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
        // The marker begins the document even when nothing else is on its line: an empty document is one too.
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
