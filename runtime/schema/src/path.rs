//! Paths from the root of an object to one value, for columns and selectable fields.

use std::fmt;

use serde_json::{Map, Value};

/// A sequence of JSON field names, such as `.spec.referenceType`.
///
/// Without wildcards, filters or indexes; columns can have a [`JsonQuery`](crate::query::JsonQuery) for these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPath(Vec<String>);

impl JsonPath {
    /// A path of these field names.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// Parses `.spec.referenceType` or `spec.referenceType`. `None` for an empty path or an empty name in it.
    pub fn parse(text: &str) -> Option<Self> {
        let names: Vec<String> = text
            .strip_prefix('.')
            .unwrap_or(text)
            .split('.')
            .map(str::to_owned)
            .collect();
        if names
            .iter()
            .any(|n| n.is_empty() || n.contains(['[', ']', '*', '?', '@', '$']))
        {
            None
        } else {
            Some(Self(names))
        }
    }

    /// The field names, in order.
    #[inline]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The value at this path; `None` if a field is missing.
    #[inline]
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, name| value.get(name))
    }

    /// The value at this path below the fields of an object; `None` if a field is missing.
    #[inline]
    pub fn get_in<'a>(&self, fields: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter()
            .try_fold(fields.get(first)?, |value, name| value.get(name))
    }

    /// Sets the value at this path below the fields of an object, and adds missing objects on the way. Does nothing if
    /// a value on the way is not an object.
    pub fn put_in(&self, fields: &mut Map<String, Value>, value: Value) {
        let Some((last, way)) = self.0.split_last() else {
            return;
        };
        let mut inner = fields;
        for name in way {
            let next = inner
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(next) = next else { return };
            inner = next;
        }
        inner.insert(last.clone(), value);
    }

    /// The path in the syntax of field selectors: `spec.referenceType`.
    pub fn as_field(&self) -> String {
        self.0.join(".")
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_leading_dot_is_optional() {
        let path = JsonPath::new(["spec", "referenceType"]);
        assert_eq!(JsonPath::parse(".spec.referenceType"), Some(path.clone()));
        assert_eq!(JsonPath::parse("spec.referenceType"), Some(path.clone()));
        assert_eq!(
            (path.to_string(), path.as_field()),
            (
                ".spec.referenceType".to_owned(),
                "spec.referenceType".to_owned()
            )
        );
    }

    #[test]
    fn a_value_is_read_and_put_below_the_fields() {
        let path = JsonPath::new(["status", "phase"]);
        let mut fields = Map::new();
        assert_eq!(path.get_in(&fields), None);
        path.put_in(&mut fields, json!("Active"));
        assert_eq!(
            Value::Object(fields.clone()),
            json!({"status": {"phase": "Active"}})
        );
        path.put_in(&mut fields, json!("Terminating"));
        assert_eq!(path.get_in(&fields), Some(&json!("Terminating")));
        fields["status"] = json!("none");
        path.put_in(&mut fields, json!("Active"));
        assert_eq!(Value::Object(fields), json!({"status": "none"}));
    }

    #[test]
    fn only_plain_fields_are_named() {
        for bad in [
            "",
            ".",
            "..a",
            "a.",
            "a..b",
            ".a[0]",
            ".a[*]",
            "a.*",
            "$.a",
            ".a[?(@.b)]",
        ] {
            assert_eq!(JsonPath::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_missing_step_reads_as_nothing() {
        let document = json!({"spec": {"a": 1, "l": [1]}});
        let get = |path: &str| JsonPath::parse(path).unwrap().get(&document).cloned();
        assert_eq!(get("spec.a"), Some(json!(1)));
        assert_eq!(get("spec.b"), None);
        assert_eq!(get("spec.a.b"), None);
        assert_eq!(get("spec.l.0"), None);
    }
}
