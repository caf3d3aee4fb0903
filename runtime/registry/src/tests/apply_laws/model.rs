//! A model of who owns what: an object is a map of leaves, and each writer has a set of them.

use std::collections::{BTreeMap, BTreeSet};

use apiloom_meta::Object;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value, json};

/// The values of an object by their paths: `labels/a`, `ports/80`, `ports/80/name`. An item of a list
/// or a map is a leaf beside its fields, with null as its value: who owns it and drops it removes its fields too.
pub(super) type Leaves = BTreeMap<String, Value>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Hub,
    Alpha,
}

impl Version {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::Hub => "test.example.com/v1",
            Self::Alpha => "test.example.com/v1alpha1",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Hub => Self::Alpha,
            Self::Alpha => Self::Hub,
        }
    }
}

/// Who writes, in which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) name: &'static str,
    pub(super) version: Version,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// With `force` or without.
    Apply(Writer, Leaves, bool),
    /// Replaces all fields.
    Update(Writer, Leaves),
    /// A merge patch with these fields.
    Patch(Writer, Leaves),
}

impl Operation {
    pub(super) fn writer(&self) -> Writer {
        match self {
            Self::Apply(writer, ..) | Self::Update(writer, _) | Self::Patch(writer, _) => *writer,
        }
    }
}

/// The applies of a manager are one entry in any version, its updates one in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Apply(&'static str),
    Update(&'static str, Version),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) leaves: Leaves,
    owned: BTreeMap<Owner, BTreeSet<String>>,
    /// The version of the last apply of a manager.
    versions: BTreeMap<&'static str, Version>,
}

impl Model {
    /// The object after the first apply, of a field that no other operation touches. Without any entry an object would
    /// get none until the next apply.
    pub(super) fn new(writer: Writer) -> Self {
        let mut model = Self::default();
        model.apply(writer, &base(), false);
        model
    }

    /// Runs an operation; false if it is refused.
    pub(super) fn run(&mut self, operation: &Operation) -> bool {
        let writer = operation.writer();
        match operation {
            Operation::Apply(_, leaves, force) => return self.apply(writer, leaves, *force),
            Operation::Update(_, leaves) => {
                let mut all = leaves.clone();
                all.extend(base());
                self.update(writer, all);
            }
            Operation::Patch(_, leaves) => {
                let mut all = self.leaves.clone();
                // A list of a merge patch replaces the present one.
                for list in ["ports", "tags"] {
                    let inside = format!("{list}/");
                    if leaves.keys().any(|path| path.starts_with(&inside)) {
                        all.retain(|path, _| !path.starts_with(&inside));
                    }
                }
                // The fields of a struct that is owned as a whole are merged.
                for (path, value) in leaves {
                    match (all.get_mut(path), value) {
                        (Some(Value::Object(present)), Value::Object(fields)) => {
                            present.extend(fields.clone());
                        }
                        _ => drop(all.insert(path.clone(), value.clone())),
                    }
                }
                self.update(writer, all);
            }
        }
        true
    }

    fn update(&mut self, writer: Writer, leaves: Leaves) {
        let changed: BTreeSet<String> = leaves
            .iter()
            .filter(|(path, value)| self.leaves.get(*path) != Some(value))
            .map(|(path, _)| path.clone())
            .collect();
        self.leaves = leaves;
        self.drop_absent();
        self.take(Owner::Update(writer.name, writer.version), &changed);
    }

    fn apply(&mut self, writer: Writer, leaves: &Leaves, force: bool) -> bool {
        let own = Owner::Apply(writer.name);
        let changed: BTreeSet<String> = leaves
            .iter()
            .filter(|(path, value)| self.leaves.get(*path).is_some_and(|live| live != *value))
            .map(|(path, _)| path.clone())
            .collect();
        let others = |owner: &Owner| *owner != own;
        let is_conflict =
            (self.owned.iter()).any(|(owner, paths)| others(owner) && !paths.is_disjoint(&changed));
        if is_conflict && !force {
            return false;
        }
        let last = self.owned.remove(&own).unwrap_or_default();
        let last_version = self.versions.insert(writer.name, writer.version);
        self.leaves.extend(leaves.clone());
        self.owned.insert(own, leaves.keys().cloned().collect());
        if let Some(version) = last_version {
            self.prune(&last, version);
        }
        self.drop_absent();
        self.take(own, &changed);
        true
    }

    /// Removes what a manager applied last, in a version, and no entry owns. As in Kubernetes, each version sees only its
    /// own entries, that of the last apply first: a field goes if its item is owned only in a version that comes later.
    fn prune(&mut self, last: &BTreeSet<String>, version: Version) {
        let mut kept = without(&self.leaves, last);
        for version in [version, version.other()] {
            let owners = self.owned.iter();
            let owners = owners.filter(|(owner, _)| self.version_of(owner) == version);
            let owned: BTreeSet<&String> = owners.flat_map(|(_, paths)| paths).collect();
            let gone = self.leaves.keys();
            let gone = gone.filter(|path| !kept.contains_key(*path) && !owned.contains(path));
            kept = without(&self.leaves, &gone.cloned().collect());
        }
        let gone = last.iter().filter(|path| !kept.contains_key(*path));
        self.leaves = without(&self.leaves, &gone.cloned().collect());
    }

    fn version_of(&self, owner: &Owner) -> Version {
        match owner {
            Owner::Apply(name) => self.versions[name],
            Owner::Update(_, version) => *version,
        }
    }

    /// Gives paths to an owner, from all others.
    fn take(&mut self, owner: Owner, paths: &BTreeSet<String>) {
        for (other, owned) in &mut self.owned {
            if *other != owner {
                owned.retain(|path| !paths.contains(path));
            }
        }
        self.owned
            .entry(owner)
            .or_default()
            .extend(paths.iter().cloned());
        self.owned.retain(|_, paths| !paths.is_empty());
    }

    fn drop_absent(&mut self) {
        for paths in self.owned.values_mut() {
            paths.retain(|path| self.leaves.contains_key(path));
        }
        self.owned.retain(|_, paths| !paths.is_empty());
    }

    /// Who owns which leaves, as in managedFields.
    pub(super) fn owners(&self) -> BTreeMap<String, BTreeSet<String>> {
        let text = |owner: &Owner| match owner {
            Owner::Apply(name) => format!("{name} Apply {}", self.versions[name].api_version()),
            Owner::Update(name, version) => format!("{name} Update {}", version.api_version()),
        };
        self.owned
            .iter()
            .map(|(owner, paths)| (text(owner), paths.clone()))
            .collect()
    }

    /// What managers own is what the object has.
    pub(super) fn check_union(&self) -> Result<(), TestCaseError> {
        let owned: BTreeSet<&String> = self.owned.values().flatten().collect();
        prop_assert_eq!(owned, self.leaves.keys().collect::<BTreeSet<_>>());
        Ok(())
    }
}

/// The leaves without some, and those below them.
fn without(leaves: &Leaves, gone: &BTreeSet<String>) -> Leaves {
    let mut kept = leaves.clone();
    kept.retain(|path, _| {
        let item = path.rsplit_once('/').map(|(item, _)| item);
        !gone.contains(path) && item.is_none_or(|item| !gone.contains(item))
    });
    kept
}

/// Whether a path of a set is that of a leaf, rather than of a map, a list or a struct.
pub(super) fn is_leaf(path: &str) -> bool {
    let depth = path.split('/').count();
    match path.split('/').next() {
        Some("size" | "on" | "point" | "args") => depth == 1,
        Some("labels" | "tags") => depth == 2,
        Some("ports" | "groups") => depth == 2 || depth == 3,
        Some("deep") => depth == 3,
        _ => false,
    }
}

/// Who owns which leaves, by the managedFields of an object.
pub(super) fn owners(object: &Object) -> BTreeMap<String, BTreeSet<String>> {
    let metadata = object.clone().into_tree()["metadata"].clone();
    let entries = metadata["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let owners = entries.iter().map(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let who = format!(
            "{} {} {}",
            text("manager"),
            text("operation"),
            text("apiVersion")
        );
        let mut paths = BTreeSet::new();
        members("", &entry["fieldsV1"]["f:spec"], &mut paths);
        paths.retain(|path| is_leaf(path));
        (who, paths)
    });
    owners.filter(|(_, paths)| !paths.is_empty()).collect()
}

/// Adds the paths of a set's members below a field, with the names of the hub version.
fn members(path: &str, fields: &Value, paths: &mut BTreeSet<String>) {
    let Value::Object(fields) = fields else {
        return;
    };
    if !path.is_empty() && (fields.is_empty() || fields.contains_key(".")) {
        paths.insert(path.to_owned());
    }
    for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
        let name = match key.split_at(2) {
            ("f:", "amount") => "size".to_owned(),
            ("f:", "marks") => "labels".to_owned(),
            ("f:", name) => name.to_owned(),
            ("v:", value) => serde_json::from_str(value).unwrap(),
            (_, keys) => {
                let keys: Value = serde_json::from_str(keys).unwrap();
                keys["port"].to_string()
            }
        };
        let path = if path.is_empty() {
            name
        } else {
            format!("{path}/{name}")
        };
        members(&path, below, paths);
    }
}

/// The leaves of a `spec`.
pub(super) fn leaves(spec: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    for (name, value) in spec.as_object().into_iter().flatten() {
        if name == "groups" {
            let groups = value.as_object().into_iter().flatten();
            leaves.extend(groups.map(|(group, _)| (format!("groups/{group}"), Value::Null)));
        }
        match (name.as_str(), value) {
            ("point" | "args", value) => drop(leaves.insert(name.clone(), value.clone())),
            ("tags", Value::Array(tags)) => {
                let tags = tags.iter().filter_map(Value::as_str);
                leaves.extend(tags.map(|tag| (format!("tags/{tag}"), Value::Null)));
            }
            ("ports", Value::Array(ports)) => {
                for port in ports {
                    let item = format!("ports/{}", port["port"]);
                    for (name, value) in port.as_object().into_iter().flatten() {
                        leaves.insert(format!("{item}/{name}"), value.clone());
                    }
                    leaves.insert(item, Value::Null);
                }
            }
            (_, value) => add(name, value, &mut leaves),
        }
    }
    leaves
}

fn add(path: &str, value: &Value, leaves: &mut Leaves) {
    match value {
        Value::Object(fields) => {
            (fields.iter()).for_each(|(name, value)| add(&format!("{path}/{name}"), value, leaves));
        }
        Value::Null => {}
        value => drop(leaves.insert(path.to_owned(), value.clone())),
    }
}

/// The `spec` with these leaves.
pub(super) fn spec(leaves: &Leaves) -> Value {
    let mut spec = Map::new();
    for (path, value) in leaves {
        let steps: Vec<&str> = path.split('/').collect();
        let list = spec.get_mut(steps[0]);
        match (&steps[..], list) {
            (["tags", tag], Some(Value::Array(tags))) => tags.push(json!(tag)),
            (["tags", tag], _) => drop(spec.insert("tags".to_owned(), json!([tag]))),
            // The item comes before its fields.
            (["ports", _], Some(Value::Array(ports))) => ports.push(json!({})),
            (["ports", _], _) => drop(spec.insert("ports".to_owned(), json!([{}]))),
            (["ports", _, field], Some(Value::Array(ports))) => {
                ports.last_mut().unwrap()[*field] = value.clone();
            }
            (["groups", _], _) => {}
            ([name], _) => drop(spec.insert((*name).to_owned(), value.clone())),
            ([name, rest @ ..], _) => {
                let field = spec.entry(*name).or_insert_with(|| json!({}));
                let field = rest.iter().fold(field, |field, step| &mut field[*step]);
                *field = value.clone();
            }
            ([], _) => {}
        }
    }
    Value::Object(spec)
}

pub(super) fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::Hub), Just(Version::Alpha)]
}

/// Any fields, seldom many.
pub(super) fn leaves_of_any() -> impl Strategy<Value = Leaves> {
    let scalar = |path: &'static str| (0..3_i64).prop_map(move |value| leaf(path, json!(value)));
    let part = prop_oneof![
        scalar("size"),
        ("[ab]", "[xy]").prop_map(|(key, value)| leaf(&format!("labels/{key}"), json!(value))),
        (0..2_i64, prop::option::of(0..2_i64)).prop_map(|(x, y)| leaf(
            "point",
            y.map_or_else(|| json!({"x": x}), |y| json!({"x": x, "y": y}))
        )),
        (80..83_i64, prop::option::of("[ab]")).prop_map(|(port, name)| {
            let item = format!("ports/{port}");
            let mut leaves = leaf(&item, Value::Null);
            leaves.insert(format!("{item}/port"), json!(port));
            leaves.extend(name.map(|name| (format!("{item}/name"), json!(name))));
            leaves
        }),
        "[abc]".prop_map(|tag| leaf(&format!("tags/{tag}"), Value::Null)),
        prop::collection::vec("[ab]", 1..3).prop_map(|args| leaf("args", json!(args))),
        scalar("deep/inner/x"),
        scalar("deep/inner/y"),
        ("[gh]", "[xy]", 0..3_i64).prop_map(|(group, field, value)| {
            let mut leaves = leaf(&format!("groups/{group}"), Value::Null);
            leaves.insert(format!("groups/{group}/{field}"), json!(value));
            leaves
        }),
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.into_iter().flatten().collect())
}

/// The fields of the first apply.
pub(super) fn base() -> Leaves {
    leaf("on", json!(true))
}

fn leaf(path: &str, value: Value) -> Leaves {
    Leaves::from([(path.to_owned(), value)])
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let name = prop_oneof![Just("one"), Just("two"), Just("three")];
    let writer = (name, version()).prop_map(|(name, version)| Writer { name, version });
    (writer, leaves_of_any(), 0..8_u8).prop_map(|(writer, leaves, kind)| match kind {
        0..=2 => Operation::Apply(writer, leaves, false),
        3..=4 => Operation::Apply(writer, leaves, true),
        5 => Operation::Update(writer, leaves),
        _ => Operation::Patch(writer, leaves),
    })
}
