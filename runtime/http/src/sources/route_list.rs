//! The routes of a server as `print-routes` lists them. Each source tells its own.

use std::collections::BTreeMap;

use apiloom_meta::ResourceDef;
use serde::Serialize;

use crate::part_name::{HOST, PartName};

/// A path that a server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedRoute {
    /// The path. Names of objects and namespaces are in braces, and `*` at its end stands for all paths that begin so.
    pub path: String,
    /// The verbs: those of the API for resources, methods in lower case for other paths, `*` for all.
    pub verbs: Vec<&'static str>,
    /// The source that answers it.
    pub source: &'static str,
    /// The part that brought it: `host` for the server itself, `program`, or the name of a part.
    pub part: PartName,
    /// The resource, for a path of one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ListedResource>,
}

/// The resource that a route is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedResource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

impl ListedRoute {
    /// A route of the server itself.
    pub(crate) fn new(
        source: &'static str,
        path: impl Into<String>,
        verbs: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self {
            path: path.into(),
            verbs: verbs.into_iter().collect(),
            source,
            part: HOST,
            resource: None,
        }
    }

    /// The same route, which a part brought.
    pub(crate) fn of_part(self, part: PartName) -> Self {
        Self { part, ..self }
    }
}

/// The parts that brought kinds, by group and plural name. Other kinds are those of the server itself.
#[derive(Clone, Debug, Default)]
pub struct KindParts(BTreeMap<(String, String), PartName>);

impl KindParts {
    /// Notes the part of a kind. Its first version decides.
    pub fn add(&mut self, group: &str, plural: &str, part: PartName) {
        let key = (group.to_owned(), plural.to_owned());
        self.0.entry(key).or_insert(part);
    }

    /// The part of a kind.
    pub(crate) fn part_of(&self, def: &ResourceDef) -> PartName {
        let key = (def.group.to_string(), def.plural.to_string());
        self.0.get(&key).copied().unwrap_or(HOST)
    }
}
