//! Field errors: a path in an object, the kind of rule, and the text, as in an `Invalid` response.
//!
//! Texts and cause reasons are those of `k8s.io/apimachinery/pkg/util/validation/field`, which clients depend on.

mod text_prefix;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};

use serde::Serialize;
use serde_json::Value;

use crate::go_value;

pub use self::text_prefix::TextPrefix;

/// Maximum length of a path in an error, in bytes. It contains keys of maps, which may be as long as the body, so that
/// many errors below one key could make a response many times its size.
pub const MAX_PATH_BYTES: usize = 1024;

/// Maximum length of a value, and of a detail, in an error, in bytes. A longer one is truncated: of it, only this much and one more byte
/// need to be known.
pub const MAX_SHOWN_BYTES: usize = 8 * 1024;

/// Maximum number of errors of a document, which are the causes in an `Invalid` error, so that the response to a body with many mistakes
/// is not many times its size.
pub const MAX_CAUSES: usize = 1_000;

/// Mark at the end of a truncated text.
pub const CUT: &str = "...";

/// A path such as `spec.containers[0].name` or `metadata.annotations[foo]`. The root path is empty. A path of more
/// than 1024 bytes is truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of the object itself; `<nil>` in error texts.
    pub fn root() -> Self {
        Self::default()
    }
    /// A path that begins with a field of the object.
    pub fn new(field: impl Into<String>) -> Self {
        Self(field.into())
    }
    /// A field below this one.
    #[must_use]
    pub fn child(&self, field: &str) -> Self {
        if self.0.is_empty() {
            Self(shortened(field, MAX_PATH_BYTES).into_owned())
        } else {
            self.followed_by([".", field, ""])
        }
    }
    /// An element of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.followed_by(["[", &index.to_string(), "]"])
    }
    /// An entry of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.followed_by(["[", key, "]"])
    }
    /// The path with a step: the name of a field or a key, and what is before and after it.
    fn followed_by(&self, [before, name, after]: [&str; 3]) -> Self {
        if self.0.len() > MAX_PATH_BYTES {
            return self.clone();
        }
        let path = [&self.0, before, beginning(name, MAX_PATH_BYTES), after].concat();
        Self(match shortened(&path, MAX_PATH_BYTES) {
            Cow::Borrowed(_) => path,
            Cow::Owned(cut) => cut,
        })
    }
    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

impl From<&str> for FieldPath {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

/// The kind of rule that a field violates; the cause reason on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// A value is required.
    Required,
    /// The value is not valid.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is not one of the supported ones.
    NotSupported,
    /// The value occurs twice.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// The value refers to an object that does not exist.
    NotFound,
    /// The string is too long.
    TooLong,
    /// The string is too short.
    TooShort,
    /// The list or map has too many entries.
    TooMany,
    /// The list or map has too few entries.
    TooFew,
    /// The validation itself failed.
    Internal,
}

impl FieldErrorKind {
    /// The spelling of `StatusCause.reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }
}

/// A violated rule: path, kind and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The kind of rule.
    pub kind: FieldErrorKind,
    /// The path of the value.
    pub path: FieldPath,
    /// The text after the path, complete: `Invalid value: "x": must be y`.
    pub body: String,
}

/// Formats a value for error texts: strings quoted, numbers and booleans plain, floats as Go prints them, others as JSON with the fields of
/// structs in declared order. Long values are truncated.
fn shown(value: impl Serialize) -> String {
    let write = |prefix: &mut TextPrefix| serde_json::to_writer(prefix, &value);
    let Some(json) = TextPrefix::of(MAX_SHOWN_BYTES + 1, write) else {
        return "null".to_owned();
    };
    if json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && json.contains(['.', 'e'])
    {
        return json.parse().map_or(json, go_value::float_text);
    }
    if json.starts_with('"') {
        let text = match serde_json::to_value(&value) {
            Ok(Value::String(text)) => text,
            _ => String::new(),
        };
        return go_quote(&shortened(&text, MAX_SHOWN_BYTES));
    }
    html_escaped(&shortened(&json, MAX_SHOWN_BYTES))
}

/// The beginning of a text, of at most `max_bytes`.
pub fn beginning(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text truncated to `max_bytes`, with a mark if it was longer.
pub fn shortened(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned([beginning(text, max_bytes), CUT].concat())
    }
}

/// Escapes characters in strings of JSON that Go's JSON encoder escapes.
fn html_escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// Maximum length of a client's text, such as a path or a name, in an error, in bytes.
pub const MAX_ECHOED_BYTES: usize = 1024;

/// A client's text for an error or the log: truncated if it is longer than [`MAX_ECHOED_BYTES`], so that the response
/// to a bad request is not large.
///
/// ```
/// use apiloom_schema::field::echoed;
///
/// assert_eq!(echoed("a name"), "a name");
/// assert!(echoed(&"x".repeat(100_000)).ends_with("x...TRUNCATED"));
/// ```
pub fn echoed(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_ECHOED_BYTES {
        return Cow::Borrowed(text);
    }
    let end = (0..=MAX_ECHOED_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end));
    Cow::Owned(format!("{}...TRUNCATED", &text[..end.unwrap_or(0)]))
}

/// The error of a function of Go's `strconv` for a text that is no number of its type.
pub fn number_error(function: &str, text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    let shown = go_quote(&echoed(text));
    format!("strconv.{function}: parsing {shown}: {why}")
}

/// Quotes a text as Go's `%q` does, which is the form of strings in Kubernetes' error texts.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_printable(c) => out.push(c),
            c if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether Go considers the character printable: letters, marks, numbers, punctuation, symbols, and the ASCII space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // std's debug format escapes exactly the other characters; after another character it does not escape combining
    // marks.
    let mut buffer = [b'a', 0, 0, 0, 0];
    let len = 1 + c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..len]).is_ok_and(|text| text.escape_debug().nth(1) != Some('\\'))
}

/// Several errors as one text: a single one plain, several in brackets, equal texts only once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    let mut seen = HashSet::with_capacity(errors.len());
    for text in errors.iter().map(ToString::to_string) {
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    if texts.len() == 1 {
        texts.remove(0)
    } else {
        format!("[{}]", texts.join(", "))
    }
}

/// Maximum length of the text of an error, in bytes.
const MAX_BODY_BYTES: usize = 2 * MAX_SHOWN_BYTES;

impl FieldError {
    fn new(kind: FieldErrorKind, path: &FieldPath, body: String) -> Self {
        // The value is truncated already; this is for details with texts of the client.
        let body = match shortened(&body, MAX_BODY_BYTES) {
            Cow::Borrowed(_) => body,
            Cow::Owned(cut) => cut,
        };
        Self {
            kind,
            path: path.clone(),
            body,
        }
    }
    /// A required value is missing; the detail may be empty.
    pub fn required(path: &FieldPath, detail: &str) -> Self {
        let body = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self::new(FieldErrorKind::Required, path, body)
    }
    /// The value violates the rule in the detail.
    pub fn invalid(path: &FieldPath, value: impl Serialize, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            path,
            format!("Invalid value: {}: {detail}", shown(value)),
        )
    }
    /// The value has the wrong type.
    pub fn type_invalid(path: &FieldPath, value: impl Serialize, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::TypeInvalid,
            path,
            format!("Invalid value: {}: {detail}", shown(value)),
        )
    }
    /// The value is not one of the supported values.
    pub fn not_supported(
        path: &FieldPath,
        value: impl Serialize,
        supported: impl IntoIterator<Item: AsRef<str>>,
    ) -> Self {
        let mut list = String::new();
        for supported in supported {
            let separator = if list.is_empty() { "" } else { ", " };
            list = list + separator + &go_quote(supported.as_ref());
            // What follows would be cut off. A document may have an error for each of its values.
            if list.len() > MAX_BODY_BYTES {
                break;
            }
        }
        let shown = shown(value);
        let body = format!("Unsupported value: {shown}: supported values: {list}");
        Self::new(FieldErrorKind::NotSupported, path, body)
    }
    /// The value occurs twice.
    pub fn duplicate(path: &FieldPath, value: impl Serialize) -> Self {
        Self::new(
            FieldErrorKind::Duplicate,
            path,
            format!("Duplicate value: {}", shown(value)),
        )
    }
    /// The field must not be set or changed.
    pub fn forbidden(path: &FieldPath, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::Forbidden,
            path,
            format!("Forbidden: {detail}"),
        )
    }
    /// The value refers to an object that does not exist.
    pub fn not_found(path: &FieldPath, value: impl Serialize) -> Self {
        Self::new(
            FieldErrorKind::NotFound,
            path,
            format!("Not found: {}", shown(value)),
        )
    }
    /// The string has more than `max_bytes` bytes.
    pub fn too_long(path: &FieldPath, max_bytes: usize) -> Self {
        Self::new(
            FieldErrorKind::TooLong,
            path,
            format!(
                "Too long: may not be more than {max_bytes} {}",
                if max_bytes == 1 { "byte" } else { "bytes" }
            ),
        )
    }
    /// The string has fewer than `min` characters.
    pub fn too_short(path: &FieldPath, min: usize) -> Self {
        Self::new(
            FieldErrorKind::TooShort,
            path,
            format!("Too short: must be at least {min} characters"),
        )
    }
    /// The list or map has more than `max` entries.
    pub fn too_many(path: &FieldPath, actual: usize, max: usize) -> Self {
        Self::new(
            FieldErrorKind::TooMany,
            path,
            format!(
                "Too many: {actual}: must have at most {max} {}",
                if max == 1 { "item" } else { "items" }
            ),
        )
    }
    /// The list or map has fewer than `min` entries.
    pub fn too_few(path: &FieldPath, actual: usize, min: usize) -> Self {
        Self::new(
            FieldErrorKind::TooFew,
            path,
            format!("Too few: {actual}: must have at least {min} items"),
        )
    }
    /// The validation itself failed.
    pub fn internal(path: &FieldPath, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::Internal,
            path,
            format!("Internal error: {detail}"),
        )
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

#[cfg(test)]
mod tests;
