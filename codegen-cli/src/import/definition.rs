//! What is imported: a kind with its names and versions, read from a CustomResourceDefinition.

use std::fmt::Debug;

use apiloom_meta::names::{dns_subdomain, dns1035_label};
use apiloom_meta::query::JsonQuery;
use serde_json::{Map, Value};

use super::compare::{canonical_root, differences};
use super::names;

/// A kind to import.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// Where it was read, for messages.
    pub(crate) source: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    /// The verbs in the spelling of `#[resource]`, if not all are served.
    pub(crate) verbs: Option<Vec<&'static str>>,
    /// Whether it takes strategic merge patches.
    pub(crate) has_strategic_patch: bool,
    /// Whether its status endpoint writes metadata too.
    pub(crate) status_writes_metadata: bool,
    /// What was seen of the kind and is not imported: a line each.
    pub(crate) left_out: Vec<String>,
    /// In the order of the document.
    pub(crate) versions: Vec<Version>,
}

/// A version of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) is_served: bool,
    pub(crate) is_stored: bool,
    pub(crate) is_deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    /// The `openAPIV3Schema`.
    pub(crate) schema: Value,
    pub(crate) columns: Vec<Column>,
    /// JSONPaths such as `.spec.color`.
    pub(crate) selectable: Vec<String>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
}

/// A printer column.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) json_path: String,
    pub(crate) column_type: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
}

/// The JSONPaths of a scale subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

impl Definition {
    /// The name of the definition: `widgets.example.com`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() {
            return self.plural.clone();
        }
        format!("{}.{}", self.plural, self.group)
    }

    /// Refuses names that Kubernetes refuses, which would be something else in the files of a package, and versions that are no
    /// modules.
    pub(super) fn check_names(&self) -> Result<(), String> {
        if !self.group.is_empty() {
            checked("the group", &self.group, dns_subdomain)?;
        }
        // A kind is a label but for its capitals.
        checked("the kind", &self.kind.to_ascii_lowercase(), dns1035_label)?;
        checked(
            "the kind of lists",
            &self.list_kind.to_ascii_lowercase(),
            dns1035_label,
        )?;
        checked("the plural", &self.plural, dns1035_label)?;
        checked("the singular", &self.singular, dns1035_label)?;
        for name in self.short_names.iter().chain(&self.categories) {
            checked("the short name or category", name, dns1035_label)?;
        }
        for version in &self.versions {
            checked("version", &version.name, dns1035_label)?;
            if !names::is_module(&version.name) {
                return Err(format!(
                    "version {:?} cannot be the name of a module\n  help: import a copy with another version, such as v1",
                    version.name
                ));
            }
        }
        Ok(())
    }

    /// How another definition differs from this one, a line each.
    pub(super) fn differences(&self, written: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, ours: &dyn Debug, theirs: &dyn Debug| {
            let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
            if ours != theirs {
                lines.push(format!("{what}: {ours} became {theirs}"));
            }
        };
        compare("group", &self.group, &written.group);
        compare("kind", &self.kind, &written.kind);
        compare("plural", &self.plural, &written.plural);
        compare("singular", &self.singular, &written.singular);
        compare("list kind", &self.list_kind, &written.list_kind);
        compare(
            "short names",
            &sorted(&self.short_names),
            &sorted(&written.short_names),
        );
        compare(
            "categories",
            &sorted(&self.categories),
            &sorted(&written.categories),
        );
        compare("verbs", &self.verbs, &written.verbs);
        compare(
            "strategic merge patches",
            &self.has_strategic_patch,
            &written.has_strategic_patch,
        );
        compare("namespaced", &self.is_namespaced, &written.is_namespaced);
        let of = |definition: &Self| {
            let names = definition
                .versions
                .iter()
                .map(|version| version.name.clone());
            sorted(&names.collect::<Vec<_>>())
        };
        compare("versions", &of(self), &of(written));
        for version in &self.versions {
            let twin = written
                .versions
                .iter()
                .find(|twin| twin.name == version.name);
            let below = twin.map_or_else(Vec::new, |twin| {
                version.differences(twin, self.versions.len() == 1)
            });
            lines.extend(
                below
                    .into_iter()
                    .map(|line| format!("{}: {line}", version.name)),
            );
        }
        lines
    }

    /// Reads a CustomResourceDefinition.
    ///
    /// # Errors
    /// What is missing, without the source.
    pub(crate) fn read(document: &Value, source: &str) -> Result<Self, String> {
        let spec = &document["spec"];
        let names = &spec["names"];
        let kind = required(names, "spec.names", "kind")?;
        let versions = items(&spec["versions"])
            .iter()
            .enumerate()
            .map(|(at, version)| Version::read(version, &format!("spec.versions[{at}]")))
            .collect::<Result<Vec<_>, _>>()?;
        if versions.is_empty() {
            return Err("spec.versions has no version".to_owned());
        }
        let mut seen: Vec<&str> = Vec::new();
        for version in &versions {
            if seen.contains(&&*version.name) {
                return Err(format!("version {:?} is there twice", version.name));
            }
            seen.push(&version.name);
        }
        let scope = required(spec, "spec", "scope")?;
        let is_namespaced = match scope.as_str() {
            "Namespaced" => true,
            "Cluster" => false,
            other => {
                return Err(format!(
                    "spec.scope is {other:?}, which is neither \"Namespaced\" nor \"Cluster\""
                ));
            }
        };
        let or = |name: &str, other: String| text(&names[name]).unwrap_or(other);
        Ok(Self {
            source: source.to_owned(),
            group: required(spec, "spec", "group")?,
            plural: required(names, "spec.names", "plural")?,
            singular: or("singular", kind.to_ascii_lowercase()),
            list_kind: or("listKind", format!("{kind}List")),
            kind,
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            is_namespaced,
            verbs: None,
            has_strategic_patch: false,
            status_writes_metadata: false,
            left_out: Vec::new(),
            versions,
        })
    }
}

impl Version {
    fn differences(&self, written: &Self, is_single: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, ours: &dyn Debug, theirs: &dyn Debug| {
            let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
            if ours != theirs {
                lines.push(format!("{what}: {ours} became {theirs}"));
            }
        };
        if is_single {
            compare("served", &self.is_served, &written.is_served);
        }
        compare("stored", &self.is_stored, &written.is_stored);
        compare("deprecated", &self.is_deprecated, &written.is_deprecated);
        compare(
            "columns",
            &columns(&self.columns),
            &columns(&written.columns),
        );
        compare(
            "selectable fields",
            &sorted(&self.selectable),
            &sorted(&written.selectable),
        );
        compare("status", &self.has_status, &written.has_status);
        compare("scale", &self.scale, &written.scale);
        lines.extend(differences(
            &canonical_root(&self.schema),
            &canonical_root(&written.schema),
        ));
        lines
    }

    fn read(version: &Value, at: &str) -> Result<Self, String> {
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            return Err(format!("{at}.schema.openAPIV3Schema is missing"));
        }
        let subresources = &version["subresources"];
        Ok(Self {
            name: required(version, at, "name")?,
            is_served: version["served"] != false,
            is_stored: version["storage"] == true,
            is_deprecated: version["deprecated"] == true,
            deprecation_warning: text(&version["deprecationWarning"]),
            schema: schema.clone(),
            columns: items(&version["additionalPrinterColumns"])
                .iter()
                .map(Column::read)
                .collect(),
            selectable: items(&version["selectableFields"])
                .iter()
                .filter_map(|field| text(&field["jsonPath"]))
                .collect(),
            has_status: subresources["status"].is_object(),
            scale: Scale::read(&subresources["scale"]),
        })
    }
}

impl Column {
    fn read(column: &Value) -> Self {
        let said = |name: &str| text(&column[name]).unwrap_or_default();
        Self {
            name: said("name"),
            json_path: said("jsonPath"),
            column_type: said("type"),
            format: said("format"),
            description: said("description"),
            priority: column["priority"].as_i64().unwrap_or_default(),
        }
    }
}

impl Scale {
    fn read(scale: &Value) -> Option<Self> {
        Some(Self {
            spec: text(&scale["specReplicasPath"])?,
            status: text(&scale["statusReplicasPath"])?,
            selector: text(&scale["labelSelectorPath"]),
        })
    }
}

/// Columns with paths that are spelled alike.
fn columns(columns: &[Column]) -> Vec<Column> {
    let spelled = |path: &str| match JsonQuery::parse(&with_whole_keys(path)) {
        Ok(query) => query.to_string(),
        Err(_) => path.replace(' ', "").replace('\'', "\""),
    };
    let alike = |column: &Column| Column {
        json_path: spelled(&column.json_path),
        ..column.clone()
    };
    columns.iter().map(alike).collect()
}

/// A path whose keys in brackets have a backslash before each dot, as their authors mean them: Kubernetes takes a dot without one
/// for the end of a name.
fn with_whole_keys(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut is_key = false;
    for (at, character) in path.char_indices() {
        let before = &path[..at];
        match character {
            '\'' => is_key = !is_key && before.ends_with('['),
            '.' if is_key && !before.ends_with('\\') => out.push('\\'),
            _ => {}
        }
        out.push(character);
    }
    out
}

/// Refuses a name for the first reason that a check gives.
fn checked(what: &str, name: &str, reasons: fn(&str) -> Vec<String>) -> Result<(), String> {
    match reasons(name).first() {
        Some(reason) => Err(format!(
            "{what} {name:?} is no name in Kubernetes: {reason}"
        )),
        None => Ok(()),
    }
}

fn sorted(texts: &[String]) -> Vec<String> {
    let mut texts = texts.to_vec();
    texts.sort();
    texts
}

/// The items of a list; none if it is something else.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The entries of an object; none if it is something else.
pub(super) fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(super) fn texts(list: &Value) -> Vec<String> {
    items(list).iter().filter_map(text).collect()
}

fn required(object: &Value, at: &str, name: &str) -> Result<String, String> {
    let found = text(&object[name]).filter(|text| !text.is_empty());
    found.ok_or_else(|| format!("{at}.{name} is missing"))
}
