//! The paths and schemas of a document, one kind after the other: as values all of them together would take many times the memory of the
//! document.

use std::collections::BTreeSet;

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::Verb;
use serde_json::{Map, Value};

use super::components::{self, kind_schema, list_schema};
use super::{meta_types, names, operations};
use crate::documents::references::{SCHEMAS, references};
use crate::shape::texts::{Texts, text};

/// What becomes of the parts of a document of 3.0 in another version of OpenAPI.
pub(super) struct Conversion {
    /// For the item of a path, with the kind whose path it is.
    pub(super) path_item: fn(Value, Option<&ResourceDef>) -> Value,
    pub(super) schema: fn(Value) -> Value,
}

/// The paths and schemas of a document that is being made.
pub(super) struct Content<'a> {
    conversion: Conversion,
    paths: Texts,
    schemas: Texts,
    /// The components to which paths and schemas refer.
    wanted: BTreeSet<String>,
    /// The groups and versions of the kinds that are served. Kinds of bodies belong to groups that are not.
    groups: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Content<'a> {
    pub(super) fn new(conversion: Conversion) -> Self {
        Self {
            conversion,
            paths: Texts::new(),
            schemas: Texts::new(),
            wanted: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    /// Adds the discovery of a group and version.
    pub(super) fn add_discovery(&mut self, group: &str, version: &str) {
        let mut paths = Map::new();
        operations::add_discovery(group, version, &mut paths);
        self.add_paths(paths, None);
    }

    /// Adds the operations, the schema and the list of a kind.
    pub(super) fn add_kind(&mut self, def: &'a ResourceDef, schema: Value) {
        let mut paths = Map::new();
        operations::add(def, &mut paths);
        self.add_paths(paths, Some(def));
        if !def.verbs.is_empty() {
            self.groups.insert((&def.group, &def.version));
        }
        self.add_schema(components::name(def), kind_schema(def, schema));
        if def.has_verb(Verb::List) {
            self.add_schema(components::list_name(def), list_schema(def));
        }
    }

    /// Replaces the schema of a kind by one that is not converted.
    pub(super) fn replace_schema(&mut self, def: &ResourceDef, schema: &Value) {
        self.schemas.insert(components::name(def), text(schema));
    }

    /// The paths, and the schemas with all those to which something refers.
    pub(super) fn finish(mut self) -> (Texts, Texts) {
        let groups: Vec<(&str, &str)> = std::mem::take(&mut self.groups).into_iter().collect();
        while let Some(name) = self.wanted.pop_first() {
            if self.schemas.contains_key(&name) {
                continue;
            }
            let kind = names::meta_type(&name);
            if let Some(schema) = kind.and_then(|kind| meta_types::component(kind, &groups)) {
                self.add_schema(name, schema);
            }
        }
        (self.paths, self.schemas)
    }

    fn add_paths(&mut self, paths: Map<String, Value>, def: Option<&ResourceDef>) {
        for (path, item) in paths {
            self.note_references(&item);
            let item = (self.conversion.path_item)(item, def);
            self.paths.insert(path, text(&item));
        }
    }

    fn add_schema(&mut self, name: String, schema: Value) {
        self.note_references(&schema);
        let schema = (self.conversion.schema)(schema);
        self.schemas.insert(name, text(&schema));
    }

    /// Notes the names of the components to which a value refers.
    fn note_references(&mut self, value: &Value) {
        let mut names = Vec::new();
        references(value, SCHEMAS, &mut names);
        self.wanted.extend(names.into_iter().map(str::to_owned));
    }
}
