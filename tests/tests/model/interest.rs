//! The selections of clients: a resource in a version, of one namespace or all, by name, field and label; with a naive
//! filter.

use serde_json::{Value, json};

use crate::objects::{FISCHERS, Key, NAMES, NAMESPACES, Resource, Version, collection};
use crate::random::{Random, one_in, pick};

/// The labels that objects may have, with their values.
pub(crate) const LABELS: [(&str, [&str; 3]); 3] = [
    ("tier", ["front", "back", "side"]),
    ("env", ["a", "b", ""]),
    ("weight", ["1", "5", "9"]),
];

/// The selectable field of flunders, which has an index.
const TYPE: &str = "spec.referenceType";

/// One requirement of a label selector.
#[derive(Clone, Debug)]
enum LabelTerm {
    Is(&'static str, &'static str),
    IsTwice(&'static str, &'static str),
    IsNot(&'static str, &'static str),
    In(&'static str, Vec<&'static str>),
    NotIn(&'static str, Vec<&'static str>),
    Has(&'static str),
    HasNot(&'static str),
    Above(&'static str, i64),
    Below(&'static str, i64),
}

impl LabelTerm {
    fn random(random: &mut Random) -> Self {
        let (key, values) = pick(random, &LABELS);
        let value = pick(random, &values);
        let mut some = || -> Vec<&'static str> {
            let chosen = values.iter().filter(|_| one_in(random, 2)).copied();
            chosen.chain([value]).collect()
        };
        let (some, number) = (some(), pick(random, &[2, 5, 8]));
        match random.below(9) {
            0 => Self::Is(key, value),
            1 => Self::IsTwice(key, value),
            2 => Self::IsNot(key, value),
            3 => Self::In(key, some),
            4 => Self::NotIn(key, some),
            5 => Self::Has(key),
            6 => Self::HasNot(key),
            7 => Self::Above("weight", number),
            _ => Self::Below("weight", number),
        }
    }

    fn matches(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let number = |key: &str| label(key).and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::Is(key, value) | Self::IsTwice(key, value) => label(key) == Some(*value),
            Self::IsNot(key, value) => label(key) != Some(*value),
            Self::In(key, values) => label(key).is_some_and(|label| values.contains(&label)),
            Self::NotIn(key, values) => label(key).is_none_or(|label| !values.contains(&label)),
            Self::Has(key) => label(key).is_some(),
            Self::HasNot(key) => label(key).is_none(),
            Self::Above(key, bound) => number(key).is_some_and(|number| number > *bound),
            Self::Below(key, bound) => number(key).is_some_and(|number| number < *bound),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Is(key, value) => format!("{key}={value}"),
            Self::IsTwice(key, value) => format!("{key}=={value}"),
            Self::IsNot(key, value) => format!("{key}!={value}"),
            Self::In(key, values) => format!("{key} in ({})", values.join(",")),
            Self::NotIn(key, values) => format!("{key} notin ({})", values.join(",")),
            Self::Has(key) => (*key).to_owned(),
            Self::HasNot(key) => format!("!{key}"),
            Self::Above(key, bound) => format!("{key}>{bound}"),
            Self::Below(key, bound) => format!("{key}<{bound}"),
        }
    }
}

/// One requirement of a field selector.
#[derive(Clone, Debug)]
struct FieldTerm {
    field: &'static str,
    equals: bool,
    value: &'static str,
}

impl FieldTerm {
    fn matches(&self, object: &Value) -> bool {
        let path = self.field.split('.');
        let value = path.fold(object, |value, name| &value[name]);
        (value.as_str().unwrap_or_default() == self.value) == self.equals
    }

    fn text(&self) -> String {
        let operator = if self.equals { "=" } else { "!=" };
        format!("{}{operator}{}", self.field, self.value)
    }
}

/// The objects that a client selects.
#[derive(Clone, Debug)]
pub(crate) struct Interest {
    pub(crate) resource: Resource,
    pub(crate) version: Version,
    namespace: Option<&'static str>,
    fields: Vec<FieldTerm>,
    labels: Vec<LabelTerm>,
    /// Whether a watch of one name uses the path of the object, below the old prefix `watch/`.
    by_path: bool,
}

impl Interest {
    /// All flunders, in the stored version.
    pub(crate) fn everything() -> Self {
        Self {
            resource: Resource::Flunders,
            version: Version::Stored,
            namespace: None,
            fields: Vec::new(),
            labels: Vec::new(),
            by_path: false,
        }
    }

    pub(crate) fn random(random: &mut Random) -> Self {
        let mut interest = Self::everything();
        let names: &[&str] = if one_in(random, 8) {
            interest.resource = Resource::Fischers;
            &FISCHERS
        } else {
            &NAMES
        };
        let mut field = |field, equals, value| {
            interest.fields.push(FieldTerm {
                field,
                equals,
                value,
            });
        };
        if one_in(random, 5) {
            field("metadata.name", true, pick(random, names));
        } else if one_in(random, 8) {
            field("metadata.name", false, pick(random, names));
        }
        if interest.resource == Resource::Flunders {
            if one_in(random, 2) {
                let value = pick(random, &["Flunder", "Fischer", "Flunder", "Fischer", ""]);
                field(TYPE, !one_in(random, 5), value);
            }
            if one_in(random, 10) {
                let value = pick(random, &NAMESPACES);
                field("metadata.namespace", !one_in(random, 3), value);
            }
            if one_in(random, 2) {
                interest.namespace = Some(pick(random, &NAMESPACES));
            }
            if one_in(random, 3) {
                interest.version = Version::Hub;
            }
        }
        for _ in 0..pick(random, &[0, 0, 0, 1, 1, 2]) {
            interest.labels.push(LabelTerm::random(random));
        }
        let one = interest.name().is_some() && interest.fields.len() == 1;
        let placed = interest.namespace.is_some() || interest.resource == Resource::Fischers;
        interest.by_path = one && placed && one_in(random, 2);
        interest
    }

    /// The selected name, if there is one.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let mut fields = self.fields.iter();
        let named = fields.find(|field| field.field == "metadata.name" && field.equals);
        named.map(|field| field.value)
    }

    /// Whether an object, in the requested version, is selected.
    pub(crate) fn matches(&self, key: &Key, object: &Value) -> bool {
        key.resource == self.resource
            && self
                .namespace
                .is_none_or(|namespace| key.namespace() == Some(namespace))
            && self.fields.iter().all(|field| field.matches(object))
            && self
                .labels
                .iter()
                .all(|label| label.matches(&object["metadata"]["labels"]))
    }

    /// The path and query of a list.
    pub(crate) fn list_url(&self) -> String {
        let collection = collection(self.resource, self.version, self.namespace);
        format!("{collection}?{}", self.selectors(&self.fields))
    }

    /// The path and query of a watch.
    pub(crate) fn watch_url(&self) -> String {
        let collection = collection(self.resource, self.version, self.namespace);
        match self.name().filter(|_| self.by_path) {
            Some(name) => {
                let version = format!("/apis/{}", self.version.api_version());
                let rest = collection.strip_prefix(&version).unwrap();
                format!("{version}/watch{rest}/{name}?{}", self.selectors(&[]))
            }
            None => format!("{collection}?watch=1&{}", self.selectors(&self.fields)),
        }
    }

    fn selectors(&self, fields: &[FieldTerm]) -> String {
        let fields: Vec<String> = fields.iter().map(FieldTerm::text).collect();
        let labels: Vec<String> = self.labels.iter().map(LabelTerm::text).collect();
        let mut query = String::new();
        for (parameter, terms) in [("fieldSelector", fields), ("labelSelector", labels)] {
            if !terms.is_empty() {
                query += &format!("&{parameter}={}", encoded(&terms.join(",")));
            }
        }
        query
    }

    /// An object that is selected, with this number in its name if the name is free; `None` if no object can be
    /// selected.
    pub(crate) fn example(&self, number: u64) -> Option<Example> {
        let name = self
            .name()
            .map_or_else(|| format!("closing-{number}"), str::to_owned);
        let (namespaces, types): (&[&str], &[Option<&str>]) = match self.resource {
            Resource::Fischers => (&[""], &[None]),
            Resource::Flunders => (&NAMESPACES, &[Some("Flunder"), Some("Fischer"), None]),
        };
        let choices = |index: usize| {
            let (_, values) = &LABELS[index];
            values.iter().copied().map(Some).chain([None])
        };
        for namespace in namespaces {
            for reference in types {
                for labels in choices(0).flat_map(|tier| {
                    choices(1)
                        .flat_map(move |env| choices(2).map(move |weight| [tier, env, weight]))
                }) {
                    let example = Example {
                        key: match self.resource {
                            Resource::Fischers => Key::fischer(&name),
                            Resource::Flunders => Key::flunder(namespace, &name),
                        },
                        reference: *reference,
                        labels,
                    };
                    if self.matches(&example.key, &example.object()) {
                        return Some(example);
                    }
                }
            }
        }
        None
    }
}

/// The properties of an object that a selection depends on.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) key: Key,
    /// The type of its reference.
    pub(crate) reference: Option<&'static str>,
    labels: [Option<&'static str>; 3],
}

impl Example {
    /// Its labels, null for absent ones.
    pub(crate) fn labels(&self) -> Value {
        let labels = LABELS.iter().zip(self.labels);
        labels
            .map(|((key, _), value)| ((*key).to_owned(), json!(value)))
            .collect()
    }

    fn object(&self) -> Value {
        let metadata = json!({
            "name": self.key.name(), "namespace": self.key.namespace(), "labels": self.labels(),
        });
        json!({"metadata": metadata, "spec": {"referenceType": self.reference}})
    }
}

/// A selector, encoded for a query.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
