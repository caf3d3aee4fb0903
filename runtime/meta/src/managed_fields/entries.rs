//! The entries of `metadata.managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use crate::object::Object;
use crate::types::Time;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes: entries of the same writer are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The name: `fieldManager` of the request, or the first part of its user agent.
    pub name: String,
    /// How it writes.
    pub operation: Operation,
    /// The version of the write, such as `apps/v1`; the fields of the entry are those of this version. Entries of
    /// [`Operation::Apply`] with different versions are one.
    pub api_version: String,
    /// The subresource of the write; empty for the object itself.
    pub subresource: String,
}

impl Manager {
    fn is_same(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// What tells entries apart.
    fn identity(&self) -> (&str, Operation, &str, &str) {
        let version = match self.operation {
            Operation::Apply => "",
            Operation::Update => self.api_version.as_str(),
        };
        (&self.name, self.operation, &self.subresource, version)
    }
}

/// As in messages about conflicts.
impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedEntry {
    /// Who owns them.
    pub manager: Manager,
    /// When the set, or for [`Operation::Update`] a value, last changed; as in the document. `None` if the write that
    /// created the entry changed no value.
    pub time: Option<String>,
    /// The fields.
    pub fields: FieldSet,
}

/// Who owns which fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    entries: Vec<ManagedEntry>,
}

/// The most entries of [`Operation::Update`]; the oldest ones are merged.
pub const MAX_UPDATE_ENTRIES: usize = 10;

/// The manager of merged entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

impl ManagedFields {
    /// The entries.
    pub fn entries(&self) -> &[ManagedEntry] {
        &self.entries
    }

    /// The entries, mutable. [`ManagedFields::write`] drops those without fields.
    pub fn entries_mut(&mut self) -> &mut Vec<ManagedEntry> {
        &mut self.entries
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of a manager.
    pub fn entry_mut(&mut self, manager: &Manager) -> Option<&mut ManagedEntry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.manager.is_same(manager))
    }

    /// Removes and returns the entry of a manager.
    pub fn take(&mut self, manager: &Manager) -> Option<ManagedEntry> {
        let found = self
            .entries
            .iter()
            .position(|entry| entry.manager.is_same(manager))?;
        Some(self.entries.remove(found))
    }

    /// The entries of an object as they are in the document.
    pub fn value(object: &Object) -> Option<&Value> {
        object.meta()?.get("managedFields")
    }

    /// Reads the entries of an object.
    ///
    /// # Errors
    /// If one of them is not valid; the text says why.
    pub fn read(object: &Object) -> Result<Self, String> {
        let entries = Self::value(object).and_then(Value::as_array);
        let entries = entries.into_iter().flatten();
        let entries: Result<Vec<ManagedEntry>, String> = entries
            .enumerate()
            .map(|(index, entry)| read_entry(index, entry))
            .collect();
        let mut entries = entries?;
        // The last of several entries of a manager counts. A client may send thousands.
        if entries.len() > 1 {
            let last: BTreeMap<_, usize> = (entries.iter().enumerate())
                .map(|(index, entry)| (entry.manager.identity(), index))
                .collect();
            if last.len() < entries.len() {
                let kept: BTreeSet<usize> = last.into_values().collect();
                let mut index = 0..;
                entries.retain(|_| index.next().is_some_and(|index| kept.contains(&index)));
            }
        }
        Ok(Self { entries })
    }

    /// Whether the entries that a client sends ask to clear them: there is one, and it is empty.
    pub fn are_cleared(object: &Object) -> bool {
        let entries = Self::value(object).and_then(Value::as_array);
        let entries = entries.map(Vec::as_slice);
        matches!(entries, Some([Value::Object(entry)]) if entry.is_empty())
    }

    /// Writes the entries to an object, sorted, without those that own nothing.
    pub fn write(mut self, object: &mut Object) {
        self.entries.retain(|entry| !entry.fields.is_empty());
        self.entries.sort_by(|a, b| {
            let (a, b) = ((seconds(a), &a.manager), (seconds(b), &b.manager));
            (a.1.operation.cmp(&b.1.operation))
                .then_with(|| a.0.cmp(&b.0))
                .then_with(|| a.1.name.cmp(&b.1.name))
                .then_with(|| a.1.api_version.cmp(&b.1.api_version))
                .then_with(|| a.1.subresource.cmp(&b.1.subresource))
        });
        let entries: Vec<Value> = self.entries.into_iter().map(to_value).collect();
        if entries.is_empty() {
            if object
                .meta()
                .is_some_and(|meta| meta.contains_key("managedFields"))
            {
                object.meta_mut().remove("managedFields");
            }
        } else {
            object
                .meta_mut()
                .insert("managedFields".to_owned(), Value::Array(entries));
        }
    }

    /// Merges the oldest entries of [`Operation::Update`] of each version while there are more than
    /// [`MAX_UPDATE_ENTRIES`].
    pub fn merge_oldest(&mut self) {
        let is_update = |entry: &ManagedEntry| entry.manager.operation == Operation::Update;
        let mut updates = self.entries.iter().filter(|entry| is_update(entry)).count();
        if updates <= MAX_UPDATE_ENTRIES {
            return;
        }
        let (mut oldest, others): (Vec<_>, Vec<_>) = self.entries.drain(..).partition(is_update);
        oldest.sort_by(|a, b| {
            (seconds(a).cmp(&seconds(b))).then_with(|| a.manager.name.cmp(&b.manager.name))
        });
        let mut kept: Vec<ManagedEntry> = others;
        let mut oldest = oldest.into_iter();
        // The first entry of each version stays its own until a second one of this version is merged with it.
        let mut merged: Vec<ManagedEntry> = Vec::new();
        while updates > MAX_UPDATE_ENTRIES
            && let Some(entry) = oldest.next()
        {
            let version = &entry.manager.api_version;
            let same = merged
                .iter_mut()
                .find(|merged| merged.manager.api_version == *version);
            match same {
                Some(bucket) => {
                    bucket.manager.name = ANCIENT_CHANGES.to_owned();
                    bucket.manager.subresource = String::new();
                    bucket.fields = bucket.fields.union(&entry.fields);
                    bucket.time = entry.time;
                    updates -= 1;
                }
                None => merged.push(entry),
            }
        }
        // The entry of earlier merges may be among those that were not merged now.
        for entry in merged.into_iter().chain(oldest) {
            let is_merged = entry.manager.name == ANCIENT_CHANGES;
            let mut same = kept.iter_mut().filter(|_| is_merged);
            match same.find(|kept| kept.manager.is_same(&entry.manager)) {
                Some(kept) => kept.fields = kept.fields.union(&entry.fields),
                None => kept.push(entry),
            }
        }
        self.entries = kept;
    }

    /// Whether the entries differ from others in nothing but their times.
    pub fn differ_in_time(&self, other: &Self) -> bool {
        if self.entries.len() != other.entries.len() || self == other {
            return false;
        }
        let sorted = |managed: &Self| {
            let mut entries = managed.entries.clone();
            entries.sort_by(|a, b| a.manager.identity().cmp(&b.manager.identity()));
            entries
        };
        let mut pairs = sorted(self).into_iter().zip(sorted(other));
        pairs.all(|(a, b)| a.manager == b.manager && a.fields == b.fields)
    }
}

/// The time as seconds, 0 for none, since that is the precision in which entries are sorted.
fn seconds(entry: &ManagedEntry) -> i64 {
    let time = entry
        .time
        .as_deref()
        .and_then(|time| time.parse::<Time>().ok());
    time.map_or(0, |time| time.unix_seconds())
}

fn read_entry(index: usize, entry: &Value) -> Result<ManagedEntry, String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => {
            return Err(format!(
                "metadata.managedFields[{index}]: operation must be `Apply` or `Update`"
            ));
        }
    };
    if text("apiVersion").is_empty() {
        return Err(format!(
            "metadata.managedFields[{index}]: apiVersion must not be empty"
        ));
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(format!(
            "metadata.managedFields[{index}]: fieldsType must be `FieldsV1`"
        ));
    }
    let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
    let fields = FieldSet::from_value(fields)
        .map_err(|error| format!("metadata.managedFields[{index}]: {error}"))?;
    Ok(ManagedEntry {
        manager: Manager {
            name: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
        },
        time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
        fields,
    })
}

fn to_value(entry: ManagedEntry) -> Value {
    let Manager {
        name,
        operation,
        api_version,
        subresource,
    } = entry.manager;
    let mut value = Map::new();
    let mut put = |field: &str, text: String| {
        if !text.is_empty() {
            value.insert(field.to_owned(), Value::String(text));
        }
    };
    put("manager", name);
    put("operation", operation.as_str().to_owned());
    put("apiVersion", api_version);
    put("time", entry.time.unwrap_or_default());
    put("fieldsType", "FieldsV1".to_owned());
    put("subresource", subresource);
    value.insert("fieldsV1".to_owned(), entry.fields.to_value());
    Value::Object(value)
}
