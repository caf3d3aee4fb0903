//! YAML encoding, and extraction of the first of several documents.

mod text;
mod writer;

use bytes::Bytes;
use serde_json::Value;

use super::encode::Encoder;

pub use writer::{YamlError, YamlWriter};

impl Encoder<'_> {
    /// Encodes a value as YAML, with sorted keys and a trailing newline. Strings that a parser of YAML 1.1 or 1.2 would
    /// read as another type are quoted. A value that exceeds the maximum nesting is encoded as JSON, which is valid YAML.
    pub fn yaml(value: &Value) -> Bytes {
        let mut out = Vec::new();
        let mut writer = YamlWriter::document(&mut out);
        writer.value(value);
        match writer.finish() {
            Ok(_) => out.into(),
            Err(YamlError) => {
                let mut json = Vec::new();
                Encoder::append_json(value, &mut json);
                json.push(b'\n');
                json.into()
            }
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
        let is_marker = |marker: &str| {
            let rest = bare.strip_prefix(marker);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        let (is_start, is_end) = (is_marker("---"), is_marker("..."));
        if begun && (is_start || is_end) {
            return &text[..start];
        }
        // The marker begins a document even if the rest of its line is empty: an empty document counts.
        begun = begun || is_start || !is_end && has_content(bare);
        start += line.len();
    }
    text
}

/// Whether a line is part of a document, and neither blank nor a comment or a directive.
fn has_content(line: &str) -> bool {
    let text = line.trim_start();
    !(text.is_empty() || text.starts_with('#') || line.starts_with('%'))
}

#[cfg(test)]
mod tests;
