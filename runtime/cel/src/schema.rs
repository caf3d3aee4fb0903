//! Types of a schema's values, as rules see them: names, sizes, and how lists are compared.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

/// Size of the largest request, in bytes; estimates assume it where a schema has no bound.
pub(crate) const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// Names that the grammar keeps, which a field may have only in an escaped form.
const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Atomic,
    Set,
    /// Items are objects with these keys.
    Map(Vec<String>),
}

/// A value's form.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any value of JSON, as of an object whose kind is not known.
    Any,
    /// An integer or a string, checked when a rule runs.
    IntOrText,
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Duration,
    /// A day, `2006-01-02`.
    Date,
    Time,
    List(Arc<Decl>, Topology),
    Map(Arc<Decl>),
    Object(Fields),
}

/// The fields of an object.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// By the name in rules: the name in documents, and the type.
    pub(crate) by_rule_name: HashMap<String, (String, Arc<Decl>)>,
    /// By the name in documents; without those that rules cannot see.
    pub(crate) by_name: HashMap<String, Arc<Decl>>,
}

impl Fields {
    /// The name in documents, and the type, of a field as a rule names it: escaped, or a reserved word as it is.
    pub(crate) fn named(&self, name: &str) -> Option<&(String, Arc<Decl>)> {
        let escaped = || KEYWORDS.contains(&name).then(|| format!("__{name}__"));
        self.by_rule_name
            .get(name)
            .or_else(|| self.by_rule_name.get(&escaped()?))
    }
}

/// The type of a value of a schema.
#[derive(Debug)]
pub(crate) struct Decl {
    pub(crate) shape: Shape,
    /// Largest number of bytes, items or entries; 0 for values of a fixed size.
    pub(crate) max_elements: u64,
    /// Smallest size in JSON, in bytes.
    pub(crate) min_size: u64,
}

impl Decl {
    fn new(shape: Shape, max_elements: u64, min_size: u64) -> Self {
        Self {
            shape,
            max_elements,
            min_size,
        }
    }

    /// The type of a schema; `None` if rules cannot see its values. `is_resource` adds `apiVersion`, `kind` and the
    /// names of the metadata.
    pub(crate) fn of(schema: &Value, is_resource: bool) -> Option<Self> {
        let number = |keyword: &str| {
            let number = schema.get(keyword)?;
            Some(number.as_u64().unwrap_or(0))
        };
        let longest = number("maxLength").map(|max| max.saturating_mul(4));
        if is_true(schema, "x-kubernetes-int-or-string") {
            let most = longest.unwrap_or(MAX_REQUEST - 2);
            return Some(Self::new(Shape::IntOrText, most, 1));
        }
        match schema.get("type").and_then(Value::as_str)? {
            "array" => {
                let items = schema.get("items").filter(|items| items.is_object())?;
                let items = Self::of(items, is_embedded(items))?;
                let most = number("maxItems")
                    .unwrap_or_else(|| (MAX_REQUEST - 2) / (items.min_size.saturating_add(1)));
                let shape = Shape::List(Arc::new(items), topology(schema));
                Some(Self::new(shape, most, 2))
            }
            "object" => {
                if let Some(values) = values_of(schema) {
                    let values = Self::of(values, is_embedded(values))?;
                    let most = number("maxProperties")
                        .unwrap_or_else(|| (MAX_REQUEST - 2) / (values.min_size.saturating_add(6)));
                    return Some(Self::new(Shape::Map(Arc::new(values)), most, 2));
                }
                Some(Self::object(schema, is_resource))
            }
            "string" => {
                let format = schema.get("format").and_then(Value::as_str);
                Some(match format {
                    Some("byte") => {
                        let most = number("maxLength").unwrap_or(MAX_REQUEST - 2);
                        Self::new(Shape::Bytes, most, 2)
                    }
                    Some("duration") => Self::new(Shape::Duration, 32, 3),
                    Some("date") => Self::new(Shape::Date, 12, 12),
                    Some("date-time") => Self::new(Shape::Time, 32, 21),
                    _ => {
                        let values = schema.get("enum").and_then(Value::as_array);
                        let longest_value = values.filter(|values| !values.is_empty()).map(|all| {
                            let lengths = all.iter().filter_map(Value::as_str).map(str::len);
                            lengths.max().unwrap_or(0) as u64
                        });
                        let most = longest.or(longest_value).unwrap_or(MAX_REQUEST - 2);
                        Self::new(Shape::Text, most, 2)
                    }
                })
            }
            "boolean" => Some(Self::new(Shape::Bool, 0, 4)),
            "number" => Some(Self::new(Shape::Double, 0, 1)),
            "integer" => Some(Self::new(Shape::Int, 0, 1)),
            _ => None,
        }
    }

    fn object(schema: &Value, is_resource: bool) -> Self {
        let of_resource = is_resource.then(|| {
            let text = json!({ "type": "string" });
            let names = json!({ "name": text, "generateName": text });
            let metadata = json!({ "type": "object", "properties": names });
            json!({ "apiVersion": text, "kind": text, "metadata": metadata })
        });
        let of_resource = of_resource.as_ref().and_then(Value::as_object);
        let is_own = |name: &String| of_resource.is_none_or(|fields| !fields.contains_key(name));
        let own = properties(schema).into_iter().flatten();
        let own = own.filter(|(name, _)| is_own(name));
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
        };
        let mut fields = Fields::default();
        let mut min_size: u64 = 2;
        for (name, property) in own.chain(of_resource.into_iter().flatten()) {
            let Some(decl) = Self::of(property, is_embedded(property)) else {
                continue;
            };
            if is_required(name) && property.get("default").is_none() {
                let size = decl.min_size.saturating_add(name.len() as u64 + 4);
                min_size = min_size.saturating_add(size);
            }
            let decl = Arc::new(decl);
            if let Some(escaped) = escape(name) {
                let entry = (name.clone(), Arc::clone(&decl));
                fields.by_rule_name.insert(escaped, entry);
            }
            fields.by_name.insert(name.clone(), decl);
        }
        Self::new(Shape::Object(fields), 0, min_size)
    }

    /// The type of values of any form.
    pub(crate) fn any() -> &'static Arc<Self> {
        static ANY: LazyLock<Arc<Decl>> =
            LazyLock::new(|| Arc::new(Decl::new(Shape::Any, MAX_REQUEST, 1)));
        &ANY
    }

    /// A map with values of any type.
    pub(crate) fn map_of_any() -> Arc<Self> {
        let values = Arc::clone(Self::any());
        Arc::new(Self::new(Shape::Map(values), MAX_REQUEST, 2))
    }

    pub(crate) fn is_any(&self) -> bool {
        matches!(self.shape, Shape::Any)
    }

    /// The same with one more field of an object.
    pub(crate) fn with_field(mut self, name: &str, decl: &Arc<Self>) -> Self {
        if let (Shape::Object(fields), Some(escaped)) = (&mut self.shape, escape(name)) {
            let entry = (name.to_owned(), Arc::clone(decl));
            fields.by_rule_name.insert(escaped, entry);
            fields.by_name.insert(name.to_owned(), Arc::clone(decl));
        }
        self
    }

    /// The type of a property, by its name in documents.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<Decl>> {
        match &self.shape {
            Shape::Object(fields) => fields.by_name.get(name),
            _ => None,
        }
    }

    /// The type of items of a list, or of values of a map.
    pub(crate) fn element(&self) -> Option<&Arc<Decl>> {
        match &self.shape {
            Shape::List(element, _) | Shape::Map(element) => Some(element),
            _ => None,
        }
    }
}

/// Whether a keyword is `true`.
pub(crate) fn is_true(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

/// Whether values are whole objects of some kind.
pub(crate) fn is_embedded(schema: &Value) -> bool {
    is_true(schema, "x-kubernetes-embedded-resource")
}

/// The schema of a map's values.
pub(crate) fn values_of(schema: &Value) -> Option<&Value> {
    schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
}

/// The properties of a schema.
pub(crate) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The list type of a schema.
pub(crate) fn topology(schema: &Value) -> Topology {
    let keyword = |name: &str| schema.get(name);
    match keyword("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Topology::Set,
        Some("map") => {
            let keys = keyword("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            Topology::Map(keys.map(str::to_owned).collect())
        }
        _ => Topology::Atomic,
    }
}

/// The name of a field in rules; `None` if rules cannot name it.
pub(crate) fn escape(name: &str) -> Option<String> {
    if KEYWORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '-' | '/');
    let is_name =
        name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    is_name.then(|| {
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__")
    })
}

/// The name of a key that is escaped; `None` for one that is not.
pub(crate) fn unescape(escaped: &str) -> Option<String> {
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((before, after)) = rest.split_once("__") {
        name.push_str(before);
        let Some((word, after)) = after.split_once("__").filter(|(word, _)| is_word(word)) else {
            // The second of the underscores may begin the next sequence.
            name.push('_');
            rest = &rest[before.len() + 1..];
            continue;
        };
        match word {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            // A word is escaped as a whole name only.
            keyword if escaped.len() == word.len() + 4 && KEYWORDS.contains(&keyword) => {
                name.push_str(keyword);
            }
            _ => return None,
        }
        rest = after;
    }
    name.push_str(rest);
    (name != escaped).then_some(name)
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.contains('_')
}
