//! JSON with the order of its keys and the text of its values.

use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    /// A string, number, boolean or null, as it was written.
    Leaf(String),
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl Json {
    /// Reads a document; `None` if the text is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        Some(Self::of(raw))
    }

    fn of(raw: &RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes()[0] {
            b'{' => {
                let Fields(fields) = serde_json::from_str(text).unwrap();
                let fields = fields.into_iter();
                Self::Object(fields.map(|(name, raw)| (name, Self::of(raw))).collect())
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).unwrap();
                Self::Array(items.into_iter().map(Self::of).collect())
            }
            _ => Self::Leaf(text.to_owned()),
        }
    }

    /// A field of an object.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let found = fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }

    /// The same, to change it.
    pub(crate) fn field_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let found = fields.iter_mut().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<String> {
        let Self::Leaf(text) = self else {
            return None;
        };
        serde_json::from_str(text).ok()
    }

    /// The text of a string in a field, empty if there is none.
    pub(crate) fn text_of(&self, name: &str) -> String {
        self.field(name).and_then(Self::text).unwrap_or_default()
    }

    /// A string.
    pub(crate) fn string(text: &str) -> Self {
        Self::Leaf(serde_json::to_string(text).unwrap())
    }

    /// All values below, and the value itself.
    pub(crate) fn values_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Object(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
            Self::Array(items) => items.iter_mut().collect(),
            Self::Leaf(_) => Vec::new(),
        }
    }

    /// The document, indented or not, without a newline at its end.
    pub(crate) fn write(&self, is_indented: bool) -> String {
        let mut text = String::new();
        self.write_to(&mut text, is_indented.then_some(0));
        text
    }

    fn write_to(&self, text: &mut String, depth: Option<usize>) {
        let (open, close, length) = match self {
            Self::Leaf(leaf) => return text.push_str(leaf),
            Self::Object(fields) => ('{', '}', fields.len()),
            Self::Array(items) => ('[', ']', items.len()),
        };
        text.push(open);
        let line = |text: &mut String, depth: usize| {
            let _ = write!(text, "\n{}", "  ".repeat(depth));
        };
        let begin = |text: &mut String, at: usize| {
            if at > 0 {
                text.push(',');
            }
            if let Some(depth) = depth {
                line(text, depth + 1);
            }
        };
        let below = depth.map(|depth| depth + 1);
        match self {
            Self::Object(fields) => {
                for (at, (name, value)) in fields.iter().enumerate() {
                    begin(text, at);
                    text.push_str(&serde_json::to_string(name).unwrap());
                    text.push_str(if depth.is_some() { ": " } else { ":" });
                    value.write_to(text, below);
                }
            }
            Self::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    begin(text, at);
                    value.write_to(text, below);
                }
            }
            Self::Leaf(_) => {}
        }
        if let Some(depth) = depth.filter(|_| length > 0) {
            line(text, depth);
        }
        text.push(close);
    }
}

#[test]
fn what_is_read_is_written() {
    for text in [
        r#"{"b":[1.50,{},[]],"a":{"c":"\u003c","b":null}}"#,
        "[]",
        "7",
    ] {
        let read = Json::read(text).unwrap();
        assert_eq!(read.write(false), text);
        assert_eq!(Json::read(&read.write(true)).unwrap().write(false), text);
    }
    let indented = "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}";
    assert_eq!(Json::read(indented).unwrap().write(true), indented);
}
