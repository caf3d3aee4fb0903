//! The objects of the test in the clients' form: their keys, both versions, every format.

use apiloom_tests::revision;
use serde_json::{Value, json};

/// The namespaces of the objects. Keys are in byte order, in which `n1-a/x` comes before `n1/x`.
pub(crate) const NAMESPACES: [&str; 3] = ["default", "n1", "n1-a"];

/// The names of flunders in each of them: few, so that each object changes often.
pub(crate) const NAMES: [&str; 4] = ["a", "a-1", "b", "c"];

/// The fischers.
pub(crate) const FISCHERS: [&str; 3] = ["f", "f-1", "g"];

/// The annotation of objects that another tool writes to etcd. Such a revision may have several changes, so a client
/// that has seen one of them must not resume from it.
pub(crate) const OUTSIDE: &str = "outside";

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    Fischers,
    Flunders,
}

impl Resource {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Fischers => "Fischer",
            Self::Flunders => "Flunder",
        }
    }
}

/// A served version of flunders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The stored one, v1alpha1; fischers have no other.
    Stored,
    /// v1beta1.
    Hub,
}

impl Version {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Stored => "wardle.example.com/v1alpha1",
            Self::Hub => "wardle.example.com/v1beta1",
        }
    }
}

/// The identity of an object. Keys are ordered as in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: Resource,
    /// `NAMESPACE/NAME`, or the name alone.
    path: String,
}

impl Key {
    pub(crate) fn flunder(namespace: &str, name: &str) -> Self {
        let path = format!("{namespace}/{name}");
        let resource = Resource::Flunders;
        Self { resource, path }
    }

    pub(crate) fn fischer(name: &str) -> Self {
        let path = name.to_owned();
        let resource = Resource::Fischers;
        Self { resource, path }
    }

    /// The key of an object, which may be shown as metadata only.
    pub(crate) fn of(resource: Resource, object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        match resource {
            Resource::Flunders => Self::flunder(text("namespace"), text("name")),
            Resource::Fischers => Self::fischer(text("name")),
        }
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        Some(self.path.split_once('/')?.0)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    /// The URL of the object.
    pub(crate) fn url(&self, version: Version) -> String {
        let collection = collection(self.resource, version, self.namespace());
        format!("{collection}/{}", self.name())
    }

    /// The key in etcd.
    pub(crate) fn in_etcd(&self) -> String {
        match self.resource {
            Resource::Flunders => format!("/registry/wardle.example.com/flunders/{}", self.path),
            Resource::Fischers => format!("/registry/wardle.example.com/fischers/{}", self.path),
        }
    }
}

/// The URL of lists and watches.
pub(crate) fn collection(resource: Resource, version: Version, namespace: Option<&str>) -> String {
    let root = format!("/apis/{}", version.api_version());
    match (resource, namespace) {
        (Resource::Fischers, _) => format!("{root}/fischers"),
        (Resource::Flunders, None) => format!("{root}/flunders"),
        (Resource::Flunders, Some(namespace)) => format!("{root}/namespaces/{namespace}/flunders"),
    }
}

/// An object in the stored version, converted if the response had another one.
pub(crate) fn to_stored(mut object: Value) -> Value {
    if object["apiVersion"] == Version::Hub.api_version() {
        object["apiVersion"] = Version::Stored.api_version().into();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            let flunder = spec.remove("flunderReference");
            let fischer = spec.remove("fischerReference");
            if let Some(reference) = flunder.or(fischer) {
                spec.insert("reference".to_owned(), reference);
            }
        }
    }
    object
}

/// An object of the stored version converted to another one.
pub(crate) fn in_version(object: &Value, version: Version) -> Value {
    let mut object = object.clone();
    if version == Version::Hub {
        object["apiVersion"] = Version::Hub.api_version().into();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            let field = match spec.get("referenceType").and_then(Value::as_str) {
                Some("Flunder") => Some("flunderReference"),
                Some("Fischer") => Some("fischerReference"),
                _ => None,
            };
            if let (Some(reference), Some(field)) = (spec.remove("reference"), field) {
                spec.insert(field.to_owned(), reference);
            }
        }
    }
    object
}

/// The spec with a reference to an object of a type, or without one.
pub(crate) fn spec(version: Version, reference: Option<(&str, &str)>) -> Value {
    match (reference, version) {
        (None, _) => Value::Null,
        (Some((kind, name)), Version::Stored) => json!({"referenceType": kind, "reference": name}),
        (Some(("Flunder", name)), Version::Hub) => {
            json!({"referenceType": "Flunder", "flunderReference": name, "fischerReference": null})
        }
        (Some((kind, name)), Version::Hub) => {
            json!({"referenceType": kind, "fischerReference": name, "flunderReference": null})
        }
    }
}

/// The version of `meta.k8s.io` in which tables and metadata are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meta {
    V1,
    V1beta1,
}

impl Meta {
    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }
}

/// The part of the object in a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Metadata,
    Object,
    None,
}

/// The form in which objects are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Partial(Meta),
    Table(Meta, Include),
}

impl Form {
    /// The parameters of the media type.
    pub(crate) fn parameters(self, is_list: bool) -> String {
        let list = if is_list { "List" } else { "" };
        match self {
            Self::Object => String::new(),
            Self::Partial(meta) => format!(
                ";as=PartialObjectMetadata{list};v={};g=meta.k8s.io",
                meta.name()
            ),
            Self::Table(meta, _) => format!(";as=Table;v={};g=meta.k8s.io", meta.name()),
        }
    }

    /// The additional query parameters.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::Table(_, Include::Object) => "&includeObject=Object",
            Self::Table(_, Include::None) => "&includeObject=None",
            _ => "",
        }
    }

    fn partial(meta: Meta, object: &Value) -> Value {
        let api_version = format!("meta.k8s.io/{}", meta.name());
        let metadata = &object["metadata"];
        json!({"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata})
    }

    /// A row of a table, whose age is removed by [`settle_rows`].
    fn row(meta: Meta, include: Include, resource: Resource, object: &Value) -> Value {
        let name = &object["metadata"]["name"];
        let cells = match resource {
            Resource::Flunders => {
                let spec = &object["spec"];
                let mut references = ["reference", "flunderReference", "fischerReference"].iter();
                let reference = references.find_map(|field| spec.get(*field));
                json!([name, spec["referenceType"], reference, "AGE"])
            }
            Resource::Fischers => json!([name, object["metadata"]["creationTimestamp"]]),
        };
        let object = match include {
            Include::None => Value::Null,
            Include::Object => object.clone(),
            Include::Metadata => Self::partial(meta, object),
        };
        json!({"cells": cells, "object": object})
    }

    /// The object in an event of a watch.
    pub(crate) fn of_event(self, resource: Resource, object: &Value) -> Value {
        match self {
            Self::Object => object.clone(),
            Self::Partial(meta) => Self::partial(meta, object),
            Self::Table(meta, include) => json!({
                "kind": "Table",
                "apiVersion": format!("meta.k8s.io/{}", meta.name()),
                "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
                "rows": [Self::row(meta, include, resource, object)],
            }),
        }
    }

    /// The object in a list.
    pub(crate) fn of_item(self, resource: Resource, object: &Value) -> Value {
        match self {
            Self::Object => {
                let mut object = object.clone();
                let fields = object.as_object_mut().unwrap();
                fields.remove("kind");
                fields.remove("apiVersion");
                object
            }
            Self::Partial(meta) => Self::partial(meta, object),
            Self::Table(meta, include) => Self::row(meta, include, resource, object),
        }
    }

    /// The object inside its form: `None` for a table without objects.
    pub(crate) fn object(self, shown: &Value) -> Option<&Value> {
        match self {
            Self::Table(_, Include::None) => None,
            // A list has a row, an event a table with one.
            Self::Table(..) => Some(match shown.get("rows") {
                Some(rows) => &rows[0]["object"],
                None => &shown["object"],
            }),
            _ => Some(shown),
        }
    }
}

/// Removes the parts of a table that the model does not predict: its creation time and its columns. Returns whether it
/// had columns, which must be the resource's, and checks that ages are valid.
pub(crate) fn settle_table(resource: Resource, table: &mut Value) -> Result<bool, String> {
    let fields = table.as_object_mut().ok_or("no table")?;
    let columns = fields.remove("columnDefinitions").unwrap_or_default();
    let names: Option<Vec<&str>> = columns.as_array().map(|columns| {
        let names = columns.iter().map(|column| column["name"].as_str());
        names.map(Option::unwrap_or_default).collect()
    });
    let expected: &[&str] = match resource {
        Resource::Flunders => &["Name", "Type", "Reference", "Age"],
        Resource::Fischers => &["Name", "Created At"],
    };
    if names.as_ref().is_some_and(|names| names != expected) {
        return Err(format!("the columns are {names:?}"));
    }
    let rows = fields.get_mut("rows").and_then(Value::as_array_mut);
    for row in rows.ok_or("a table without rows")? {
        let age = row["cells"]
            .as_array_mut()
            .and_then(|cells| cells.last_mut());
        if let (Resource::Flunders, Some(age)) = (resource, age) {
            let text = age.as_str().unwrap_or_default();
            let is_age = text.ends_with(|c: char| c.is_ascii_lowercase())
                && text.starts_with(|c: char| c.is_ascii_digit());
            // A bookmark has no age.
            if !is_age && text != "<unknown>" {
                return Err(format!("{age} is no age"));
            }
            *age = "AGE".into();
        }
    }
    Ok(names.is_some())
}

/// Whether a client that has seen this object may resume from its revision: whether nothing else changed in it.
pub(crate) fn is_alone(object: &Value) -> bool {
    object["metadata"]["annotations"].get(OUTSIDE).is_none()
}

/// An object with another resourceVersion, as in the event of its deletion.
pub(crate) fn shown_at(object: &Value, at: u64) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = at.to_string().into();
    object
}

/// Whether a response to a write is the last state of a deleted object.
pub(crate) fn is_released(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata.get("deletionTimestamp").is_some() && metadata.get("finalizers").is_none()
}

/// Key and revision, for messages.
pub(crate) fn brief(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or("-").to_owned();
    let revision = metadata.get("resourceVersion").map(|_| revision(object));
    format!(
        "{}/{} at {revision:?}, labels {}, spec {}",
        text("namespace"),
        text("name"),
        metadata["labels"],
        object["spec"]
    )
}
