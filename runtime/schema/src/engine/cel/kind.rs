//! CEL types of the values of a printed schema.

use serde_json::{Map, Value};

/// CEL type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Float,
    Bool,
    List,
    Map,
    Bytes,
    IntOrString,
    /// Objects and times: values that can be compared, but have no size.
    Other,
}

impl Kind {
    /// The type of a printed schema; `None` for a field without a type or value in kube-apiserver, which rules cannot
    /// refer to.
    pub(super) fn of(printed: &Map<String, Value>) -> Option<Self> {
        let has = |name: &str| printed.get(name) == Some(&Value::Bool(true));
        if has("x-kubernetes-int-or-string") {
            return Some(Self::IntOrString);
        }
        let format = printed.get("format").and_then(Value::as_str);
        let fields = printed.get("properties").and_then(Value::as_object);
        let has_fields = fields.is_some_and(|fields| !fields.is_empty());
        match printed.get("type").and_then(Value::as_str)? {
            "string" if format == Some("byte") => Some(Self::Bytes),
            "string" if matches!(format, Some("date" | "date-time" | "duration")) => {
                Some(Self::Other)
            }
            "string" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Float),
            "boolean" => Some(Self::Bool),
            "array" => Self::of(printed.get("items")?.as_object()?).map(|_| Self::List),
            "object" => match printed.get("additionalProperties") {
                Some(Value::Object(values)) => Self::of(values).map(|_| Self::Map),
                // kube-apiserver has no value for an object without fields, and refuses rules about it. An open object
                // has a value, but a rule cannot check whether it is empty.
                _ => (has_fields || has("x-kubernetes-embedded-resource")).then_some(Self::Other),
            },
            _ => None,
        }
    }
}
