//! Texts in the manifests of packages that are written.

/// A string of TOML: one of JSON, but for a control character that JSON takes as it is.
pub(crate) fn string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7F}', "\\u007F")
}
