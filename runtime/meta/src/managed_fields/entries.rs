//! The entries of `metadata.managedFields`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::Value;

use super::changes::FieldChanges;
use super::entry_text::{EntryJson, EntryText, MemberOrder, entry_texts, to_text};
use super::field_set::FieldSet;
use super::fields_json::FieldsError;
use super::limits::{SUBRESOURCE_MAX_BYTES, is_field_manager};
use super::scan::{has_all, is_untouched};
use crate::codec::limits::MAX_DEPTH;
use crate::object::Object;
use crate::schema::Schema;
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
    /// Whether both have one entry.
    pub fn is_same(&self, other: &Self) -> bool {
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
#[derive(Clone, Debug)]
pub struct ManagedEntry {
    /// Who owns them.
    pub manager: Manager,
    /// When the set, or for [`Operation::Update`] a value, last changed; as in the document. `None` if the write that
    /// created the entry changed no value.
    pub time: Option<String>,
    fields: EntryFields,
}

/// The fields of an entry: as the document has them, as a set once that is needed, or both.
#[derive(Clone, Debug)]
struct EntryFields {
    /// The JSON of the document; `None` after a change.
    json: Option<String>,
    set: OnceLock<FieldSet>,
}

impl ManagedEntry {
    /// An entry with these fields.
    pub fn new(manager: Manager, time: Option<String>, fields: FieldSet) -> Self {
        let fields = EntryFields {
            json: None,
            set: fields.into(),
        };
        Self {
            manager,
            time,
            fields,
        }
    }

    /// The fields, which the first call reads from the JSON of the document.
    ///
    /// # Errors
    /// If that is not valid.
    pub fn fields(&self) -> Result<&FieldSet, FieldsError> {
        let EntryFields { json, set } = &self.fields;
        if let (None, Some(json)) = (set.get(), json) {
            let read = FieldSet::from_json(json)?;
            return Ok(set.get_or_init(|| read));
        }
        Ok(set.get_or_init(FieldSet::default))
    }

    /// Sets the fields.
    pub fn set_fields(&mut self, fields: FieldSet) {
        self.fields = EntryFields {
            json: None,
            set: fields.into(),
        };
    }

    /// The fields as JSON, which is that of the document if they were not set.
    pub fn fields_json(&self) -> Cow<'_, str> {
        let EntryFields { json, set } = &self.fields;
        match json {
            Some(json) => Cow::Borrowed(json),
            None => Cow::Owned(set.get().map(FieldSet::to_json).unwrap_or_default()),
        }
    }

    /// Whether a change leaves the fields as they are: it is about others, and they have the form of the schema. `false` if
    /// that is not certain without reading them.
    pub fn is_untouched_by(&self, changes: &FieldChanges, schema: &Schema) -> bool {
        let json = self.fields.json.as_deref();
        json.is_some_and(|json| is_untouched(json, changes.sets(), schema))
    }

    /// As [`ManagedEntry::is_untouched_by`], for a change by the manager itself: it loses only fields that are gone.
    pub fn is_untouched_by_own(&self, changes: &FieldChanges, schema: &Schema) -> bool {
        let json = self.fields.json.as_deref();
        json.is_some_and(|json| is_untouched(json, [&changes.removed], schema))
    }

    /// Whether all members of a set are among its fields.
    ///
    /// # Errors
    /// As [`ManagedEntry::fields`].
    pub fn has_all(&self, set: &FieldSet) -> Result<bool, FieldsError> {
        let json = self.fields.json.as_deref();
        Ok(json.is_some_and(|json| has_all(json, set)) || set.is_subset(self.fields()?))
    }

    /// Whether it has no fields. JSON that is not valid has some.
    fn is_empty(&self) -> bool {
        let EntryFields { json, set } = &self.fields;
        match (set.get(), json) {
            (Some(set), _) => set.is_empty(),
            (None, Some(json)) => json == "{}",
            (None, None) => true,
        }
    }

    /// Whether validation of the metadata accepts it.
    fn is_valid(&self) -> bool {
        let Manager {
            name, subresource, ..
        } = &self.manager;
        is_field_manager(name) && subresource.len() <= SUBRESOURCE_MAX_BYTES
    }

    /// Whether a document with it would be deeper than documents may be. One that came with a document is not.
    fn is_too_deep(&self) -> bool {
        let EntryFields { json, set } = &self.fields;
        // They are in the entry, that is in the list, that is in the metadata, which are in the object.
        json.is_none() && set.get().is_some_and(|set| set.depth() + 4 >= MAX_DEPTH)
    }

    /// Its members as they are written.
    fn text(&self) -> EntryText<'_> {
        let manager = &self.manager;
        EntryText {
            manager: manager.name.as_str().into(),
            operation: manager.operation.as_str().into(),
            api_version: manager.api_version.as_str().into(),
            time: self.time.as_deref().map(Cow::Borrowed),
            fields_type: "FieldsV1".into(),
            fields: EntryJson::Text(self.fields_json()),
            subresource: manager.subresource.as_str().into(),
        }
    }

    fn has_same_fields(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|entry| entry.fields.json.as_ref());
        (a.is_some() && a == b)
            || matches!((self.fields(), other.fields()), (Ok(a), Ok(b)) if a == b)
    }
}

/// Who owns which fields of an object.
#[derive(Clone, Debug, Default)]
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

    /// The entries of an object as they are in the document: a string with their JSON, see [`Object::into_tree`], or an
    /// array as a client or the code of a program may write it.
    pub fn value(object: &Object) -> Option<&Value> {
        object.meta()?.get("managedFields")
    }

    /// Reads the entries of an object that was stored. Their fields are not read before they are needed.
    ///
    /// # Errors
    /// If one of them is not valid; the text says why.
    pub fn read(object: &Object) -> Result<Self, String> {
        Self::read_entries(object, |_| Ok(()))
    }

    /// Reads the entries that a client sends, with their fields; except for those fields that are those of `known`
    /// entries, they are written as they are read.
    ///
    /// # Errors
    /// As [`ManagedFields::read`].
    pub fn read_sent(object: &Object, known: &Self) -> Result<Self, String> {
        let known = known.entries.iter();
        let known: BTreeSet<&str> = known
            .filter_map(|entry| entry.fields.json.as_deref())
            .collect();
        Self::read_entries(object, |entry| {
            let json = entry.fields.json.as_deref();
            if json.is_some_and(|json| known.contains(json)) {
                return Ok(());
            }
            entry.fields()?;
            entry.fields.json = None;
            Ok(())
        })
    }

    fn read_entries(
        object: &Object,
        check: impl Fn(&mut ManagedEntry) -> Result<(), FieldsError>,
    ) -> Result<Self, String> {
        let entries = Self::value(object).map_or_else(|| Ok(Vec::new()), entry_texts)?;
        let read = |(index, entry)| {
            let mut entry = read_entry(index, entry)?;
            check(&mut entry).map_err(|why| format!("metadata.managedFields[{index}]: {why}"))?;
            Ok(entry)
        };
        let entries: Result<Vec<ManagedEntry>, String> =
            entries.into_iter().enumerate().map(read).collect();
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

    /// Checks the entries of an object, with their fields.
    ///
    /// # Errors
    /// As [`ManagedFields::read`].
    pub fn check(object: &Object) -> Result<(), String> {
        Self::read_sent(object, &Self::default()).map(drop)
    }

    /// Whether two objects have the same text of entries, as an object has that a client read and sends back.
    pub fn have_same_text(a: &Object, b: &Object) -> bool {
        let [a, b] = [a, b].map(|object| Self::value(object).and_then(Value::as_str));
        a.is_some() && a == b
    }

    /// Whether the entries that a client sends ask to clear them: there is none in the list, or one that is empty.
    pub fn are_cleared(object: &Object) -> bool {
        // The server does not write an empty entry as text.
        let entries = Self::value(object).and_then(Value::as_array);
        match entries.map(Vec::as_slice) {
            Some([]) => true,
            Some([Value::Object(entry)]) => entry.is_empty(),
            _ => false,
        }
    }

    /// Writes the entries to an object, sorted, without those that own nothing. They become one text; if validation of the
    /// metadata would refuse one, an array, which it then reads.
    pub fn write(self, object: &mut Object) {
        self.write_in(MemberOrder::Declared, object);
    }

    /// As [`ManagedFields::write`], for a custom resource: the members of entries are sorted, as all of its fields are.
    pub fn write_sorted(self, object: &mut Object) {
        self.write_in(MemberOrder::Sorted, object);
    }

    fn write_in(mut self, order: MemberOrder, object: &mut Object) {
        self.entries.retain(|entry| !entry.is_empty());
        self.entries.sort_by(|a, b| {
            let by_time = compare_times(a, b);
            let (a, b) = (&a.manager, &b.manager);
            (a.operation.cmp(&b.operation))
                .then(by_time)
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        if self.entries.is_empty() {
            if object
                .meta()
                .is_some_and(|meta| meta.contains_key("managedFields"))
            {
                object.meta_mut().remove("managedFields");
            }
        } else {
            if self.entries.iter().any(ManagedEntry::is_too_deep) {
                // The object could not be read again. Its fields are deeper in here than in itself.
                object.meta_mut().remove("managedFields");
                return;
            }
            let text = to_text(self.entries.iter().map(ManagedEntry::text), order);
            let is_valid = self.entries.iter().all(ManagedEntry::is_valid);
            let entries = (!is_valid).then(|| serde_json::from_str(&text).ok());
            let entries = entries.flatten().unwrap_or(Value::String(text));
            object
                .meta_mut()
                .insert("managedFields".to_owned(), entries);
        }
    }

    /// Merges the oldest entries of [`Operation::Update`] of each version while there are more than
    /// [`MAX_UPDATE_ENTRIES`].
    ///
    /// # Errors
    /// If the fields of an entry that is merged are not valid.
    pub fn merge_oldest(&mut self) -> Result<(), FieldsError> {
        let is_update = |entry: &ManagedEntry| entry.manager.operation == Operation::Update;
        let mut updates = self.entries.iter().filter(|entry| is_update(entry)).count();
        if updates <= MAX_UPDATE_ENTRIES {
            return Ok(());
        }
        let (mut oldest, others): (Vec<_>, Vec<_>) = self.entries.drain(..).partition(is_update);
        oldest
            .sort_by(|a, b| compare_times(a, b).then_with(|| a.manager.name.cmp(&b.manager.name)));
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
                    bucket.set_fields(bucket.fields()?.union(entry.fields()?));
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
                Some(kept) => kept.set_fields(kept.fields()?.union(entry.fields()?)),
                None => kept.push(entry),
            }
        }
        self.entries = kept;
        Ok(())
    }

    /// Whether the entries differ from others in nothing but their times.
    pub fn differ_in_time(&self, other: &Self) -> bool {
        if self.entries.len() != other.entries.len() {
            return false;
        }
        let [own, others] = [self, other].map(|managed| {
            let mut entries: Vec<&ManagedEntry> = managed.entries.iter().collect();
            entries.sort_by(|a, b| a.manager.identity().cmp(&b.manager.identity()));
            entries
        });
        let pairs = || own.iter().zip(&others);
        pairs().any(|(a, b)| a.time != b.time)
            && pairs().all(|(a, b)| a.manager == b.manager && a.has_same_fields(b))
    }
}

/// Compares the times of entries, in seconds.
fn compare_times(a: &ManagedEntry, b: &ManagedEntry) -> Ordering {
    if a.time == b.time {
        return Ordering::Equal;
    }
    seconds(a).cmp(&seconds(b))
}

/// The time as seconds, 0 for none, since that is the precision in which entries are sorted.
fn seconds(entry: &ManagedEntry) -> i64 {
    let time = entry
        .time
        .as_deref()
        .and_then(|time| time.parse::<Time>().ok());
    time.map_or(0, |time| time.unix_seconds())
}

fn read_entry(index: usize, entry: EntryText<'_>) -> Result<ManagedEntry, String> {
    let refuse = |why: &str| Err(format!("metadata.managedFields[{index}]: {why}"));
    let operation = match &*entry.operation {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return refuse("operation must be `Apply` or `Update`"),
    };
    if entry.api_version.is_empty() {
        return refuse("apiVersion must not be empty");
    }
    if entry.fields_type != "FieldsV1" {
        return refuse("fieldsType must be `FieldsV1`");
    }
    let of_tree = |tree: &Value| match FieldSet::from_value(tree) {
        Ok(set) => Ok(EntryFields {
            json: None,
            set: set.into(),
        }),
        Err(error) => Err(format!("metadata.managedFields[{index}]: {error}")),
    };
    let fields = match entry.fields {
        EntryJson::Text(json) => EntryFields {
            json: Some(json.into_owned()),
            set: OnceLock::new(),
        },
        EntryJson::Tree(tree) => of_tree(tree)?,
        EntryJson::Absent => of_tree(&Value::Null)?,
    };
    Ok(ManagedEntry {
        manager: Manager {
            name: entry.manager.into_owned(),
            operation,
            api_version: entry.api_version.into_owned(),
            subresource: entry.subresource.into_owned(),
        },
        time: entry.time.map(Cow::into_owned),
        fields,
    })
}
