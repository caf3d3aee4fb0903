//! The operations of a JSON patch, as they are parsed: what is missing in one, or has the wrong type, is an error only when the
//! operation is applied.

mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use self::written::LiteralValue;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operation {
    Add(Pointer, Value),
    Remove(Pointer),
    Replace(Pointer, Value),
    Move {
        from: Pointer,
        path: Pointer,
    },
    Copy {
        from: Pointer,
        path: Pointer,
    },
    Test(Pointer, ExpectedValue),
    /// Has no known `op`, or not the paths that its `op` needs.
    Unknown,
}

impl Operation {
    /// The operation of a document; `raw` is the text of its value, if that is known. A missing value is null.
    pub(super) fn of(mut document: Value, raw: Option<&str>) -> Self {
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        let pointer = |name: &str| text(name).map(|text| Pointer(text.to_owned()));
        let (op, path, from) = (
            text("op").map(str::to_owned),
            pointer("path"),
            pointer("from"),
        );
        let value = document.get_mut("value").map(Value::take);
        let value = value.unwrap_or_default();
        match (op.as_deref(), path, from) {
            (Some("add"), Some(path), _) => Self::Add(path, value),
            (Some("remove"), Some(path), _) => Self::Remove(path),
            (Some("replace"), Some(path), _) => Self::Replace(path, value),
            (Some("move"), Some(path), Some(from)) => Self::Move { from, path },
            (Some("copy"), Some(path), Some(from)) => Self::Copy { from, path },
            (Some("test"), Some(path), _) => {
                let written = raw.and_then(LiteralValue::parse);
                Self::Test(path, ExpectedValue { value, written })
            }
            _ => Self::Unknown,
        }
    }

    /// The paths that it reads and writes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Pointer> {
        let paths = match self {
            Self::Add(path, _)
            | Self::Remove(path)
            | Self::Replace(path, _)
            | Self::Test(path, _) => [Some(path), None],
            Self::Move { from, path } | Self::Copy { from, path } => [Some(path), Some(from)],
            Self::Unknown => [None, None],
        };
        paths.into_iter().flatten()
    }
}

/// The texts of the values of all operations; empty if the body is not a list of objects.
pub(super) fn raw_values(body: &[u8]) -> Vec<Option<&str>> {
    let operations: Result<Vec<BTreeMap<String, &RawValue>>, _> = serde_json::from_slice(body);
    let operations = operations.unwrap_or_default();
    let values = operations.iter().map(|operation| operation.get("value"));
    values.map(|value| Some((*value?).get())).collect()
}

/// A path of RFC 6901, as text. One that does not begin with a slash has no parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer(String);

impl Pointer {
    /// Whether it is the path of the whole document.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of the parent, as its parts, and the last part; `None` for the whole document.
    pub(super) fn split_last(&self) -> Option<(Parts<'_>, Cow<'_, str>)> {
        let (parent, last) = self.0.rsplit_once('/')?;
        Some((Parts(parent), unescaped(last)))
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        Parts(&self.0)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The parts of a path. What is before the first slash is none, as for kube-apiserver.
#[derive(Clone, Copy)]
pub(super) struct Parts<'p>(&'p str);

impl<'p> Parts<'p> {
    pub(super) fn iter(self) -> impl Iterator<Item = Cow<'p, str>> {
        self.0.split('/').skip(1).map(unescaped)
    }
}

/// A part of a path without escapes. What is no escape stays.
fn unescaped(part: &str) -> Cow<'_, str> {
    if !part.contains('~') {
        return Cow::Borrowed(part);
    }
    let mut text = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, behind)) = rest.split_once('~') {
        text.push_str(before);
        let (character, after) = match behind.as_bytes().first() {
            Some(b'0') => ('~', &behind[1..]),
            Some(b'1') => ('/', &behind[1..]),
            _ => ('~', behind),
        };
        text.push(character);
        rest = after;
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The value that a `test` expects.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectedValue {
    pub(super) value: Value,
    /// As the patch has it. kube-apiserver compares the texts of scalars, with those of its own JSON: `1.0` is not `1`, and `"<"`
    /// is nothing that it writes.
    written: Option<LiteralValue>,
}

impl ExpectedValue {
    /// Whether a value of a document is the expected one.
    pub(super) fn is(&self, value: &Value) -> bool {
        match &self.written {
            Some(written) => written.is(value),
            None => *value == self.value,
        }
    }
}
