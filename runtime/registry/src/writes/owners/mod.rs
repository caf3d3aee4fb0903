//! Keeps `metadata.managedFields`: who owns which fields of an object, for every write.
//!
//! A write other than apply owns the fields whose values it changes. Fields of other versions are compared in those
//! versions, so the object is converted to each version that an entry has. Nothing of it can fail such a write: an object
//! whose fields cannot be compared is stored without managedFields, as in kube-apiserver.

mod apply;

use std::sync::Arc;

use apiloom_meta::managed_fields::{
    FieldChanges, FieldSet, FieldsError, ManagedEntry, ManagedFields, Manager, Operation, Ownership,
};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, Object};
use serde_json::Value;

use super::request::WriteRequest;
use super::settings::WriteSettings;
use super::{fields, managed};
use crate::objects::kind_version::VersionIndex;
use crate::objects::versioned_resource::VersionedResource;

/// The manager of the fields that an object had before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// An object before and after a write.
#[derive(Clone, Copy)]
struct Difference<'a> {
    live: &'a Object,
    new: &'a Object,
}

/// Keeps the managedFields of the objects of a resource.
#[derive(Debug)]
pub(crate) struct Owners {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
}

impl Owners {
    pub(super) fn new(resource: Arc<VersionedResource>, settings: Arc<WriteSettings>) -> Self {
        Self { resource, settings }
    }

    /// Records in the new object which fields the manager of the request changes. `live` is the present object, `None`
    /// for a create.
    pub(crate) async fn own_changes(
        &self,
        request: WriteRequest<'_>,
        new: &mut Object,
        live: Option<&Object>,
    ) {
        if let Err(error) = self.try_own_changes(request, new, live).await {
            tracing::warn!(
                kind = %self.resource.group_kind(), name = request.name, error = error.message,
                "managedFields cannot be updated and are dropped"
            );
            self.write_owners(ManagedFields::default(), new);
        }
    }

    /// What every new object has of itself.
    fn blank(&self) -> Object {
        let strategy = self.resource.kind.versions.strategy(self.resource.version);
        strategy.map_or_else(Object::default, |(_, strategy)| strategy.blank())
    }

    /// Writes entries to an object in the order that its kind has.
    pub(super) fn write_owners(&self, managed: ManagedFields, object: &mut Object) {
        if self.resource.def().dialect.sorts_fields {
            managed.write_sorted(object);
        } else {
            managed.write(object);
        }
    }

    async fn try_own_changes(
        &self,
        request: WriteRequest<'_>,
        new: &mut Object,
        live: Option<&Object>,
    ) -> Result<(), ApiError> {
        if live.is_none() && is_longer(new.as_value(), self.settings.max_object_bytes) {
            // It is refused later, and a set of all its fields would need as much memory as the object.
            self.write_owners(ManagedFields::default(), new);
            return Ok(());
        }
        let mut managed = sent_or_live(request, new, live);
        if managed.is_empty() && live.is_some() {
            // They were cleared, and only an apply request begins anew.
            self.write_owners(managed, new);
            return Ok(());
        }
        let manager = self.manager(request, request.manager, Operation::Update);
        let blank = match live {
            None => self.blank(),
            Some(_) => Object::default(),
        };
        let live = live.unwrap_or(&blank);
        self.record_update(&mut managed, manager, Difference { live, new })
            .await?;
        managed.merge_oldest().map_err(unreadable)?;
        self.write_owners(managed, new);
        Ok(())
    }

    /// Gives the changed fields to the manager.
    async fn record_update(
        &self,
        managed: &mut ManagedFields,
        manager: Manager,
        difference: Difference<'_>,
    ) -> Result<(), ApiError> {
        let changes = self.changes(&manager.subresource, difference);
        self.drop_changes(managed, &manager, &changes, difference)
            .await?;
        let own = changes.into_set();
        if own.is_empty() {
            return Ok(());
        }
        let time = Some(self.settings.clock.now().to_string());
        match managed.entry_mut(&manager) {
            Some(entry) => {
                if !entry.has_all(&own).map_err(unreadable)? {
                    let fields = entry.fields().map_err(unreadable)?.union(&own);
                    entry.set_fields(fields);
                }
                entry.time = time;
            }
            None => managed
                .entries_mut()
                .push(ManagedEntry::new(manager, time, own)),
        }
        Ok(())
    }

    /// Removes the changed fields from all entries but that of the manager, which loses only fields that are gone.
    async fn drop_changes(
        &self,
        managed: &mut ManagedFields,
        manager: &Manager,
        changes: &FieldChanges,
        difference: Difference<'_>,
    ) -> Result<(), ApiError> {
        let own = Own::LosesRemoved(manager);
        let overlaps = self.overlaps(managed, own, changes, difference).await?;
        drop_overlaps(managed, overlaps)
    }

    /// What each entry has of the changed fields, in the order of the entries. The fields of entries are read, and changed to
    /// those of the current schema, only if that may change them.
    async fn overlaps(
        &self,
        managed: &mut ManagedFields,
        own: Own<'_>,
        changes: &FieldChanges,
        difference: Difference<'_>,
    ) -> Result<Vec<Overlap>, ApiError> {
        let versions = &self.resource.kind.versions;
        let mut by_version: Vec<(VersionIndex, FieldChanges)> = Vec::new();
        let mut overlaps = Vec::with_capacity(managed.entries().len());
        for entry in managed.entries_mut() {
            let Some(version) = versions.find(&entry.manager.api_version) else {
                overlaps.push(Overlap::Unserved);
                continue;
            };
            // A conversion that fails is an error of the write, even of one that changes nothing.
            let is_compared = !versions.has_hub() && version != self.resource.version;
            if (changes.is_empty() && !is_compared) || own.keeps_all(&entry.manager) {
                overlaps.push(Overlap::None);
                continue;
            }
            let changes = if version == self.resource.version {
                changes
            } else {
                let known = by_version.iter().position(|(known, _)| *known == version);
                let place = match known {
                    Some(place) => place,
                    None => {
                        let subresource = own.subresource();
                        let changes = self.changes_in(version, subresource, difference).await?;
                        by_version.push((version, changes));
                        by_version.len() - 1
                    }
                };
                &by_version[place].1
            };
            let schema = versions[version].schema();
            let keeps_values = own.keeps_values(&entry.manager);
            let is_untouched = if keeps_values {
                entry.is_untouched_by_own(changes, schema)
            } else {
                entry.is_untouched_by(changes, schema)
            };
            if is_untouched {
                overlaps.push(Overlap::None);
                continue;
            }
            let fields = reconciled_fields(entry, schema)?;
            let of_entry = |changed| fields.intersection(changed);
            let set = if keeps_values {
                FieldSet::default()
            } else {
                of_entry(&changes.modified).union(&of_entry(&changes.added))
            };
            let removed = fields.intersection(&changes.removed);
            overlaps.push(if set.is_empty() && removed.is_empty() {
                Overlap::None
            } else {
                Overlap::Some { set, removed }
            });
        }
        Ok(overlaps)
    }

    /// The changes in the version of the request, of the fields that its path writes.
    fn changes(&self, subresource: &str, difference: Difference<'_>) -> FieldChanges {
        let Difference { live, new } = difference;
        let schema = self.resource.schema();
        let changes = Ownership::of(schema).changed_fields(live.as_value(), new.as_value());
        changes.filter_root(|field| fields::is_written(self.resource.def(), subresource, field))
    }

    /// The same in another version.
    async fn changes_in(
        &self,
        version: VersionIndex,
        subresource: &str,
        difference: Difference<'_>,
    ) -> Result<FieldChanges, ApiError> {
        let failed = |which: &str, why: String| {
            ApiError::internal_text(format!("failed to convert {which} object: {why}"))
        };
        let live = self.in_version(difference.live, version).await;
        let live = live.map_err(|why| failed("old", why))?;
        let new = self.in_version(difference.new, version).await;
        let new = new.map_err(|why| failed("new", why))?;
        let version = &self.resource.kind.versions[version];
        let changes =
            Ownership::of(version.schema()).changed_fields(live.as_value(), new.as_value());
        Ok(changes.filter_root(|field| fields::is_written(&version.def, subresource, field)))
    }

    /// An object of the request's version in another version. An object that does not exist has no fields there either.
    ///
    /// # Errors
    /// As [`Owners::compared_in`].
    async fn in_version(&self, object: &Object, version: VersionIndex) -> Result<Object, String> {
        if object.fields().is_empty() {
            return Ok(Object::default());
        }
        self.compared_in(object.clone(), self.resource.version, version)
            .await
    }

    /// An object in the version in which its fields are compared. Of a kind without a hub nothing is pruned.
    ///
    /// # Errors
    /// Why it cannot be converted, or does not fit the schema of that version.
    async fn compared_in(
        &self,
        mut object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, String> {
        let versions = &self.resource.kind.versions;
        if from == to || versions.has_hub() {
            let converted = versions.convert(object, from, to);
            return converted.map_err(|error| error.message);
        }
        // The entries themselves are no fields that are compared.
        let entries = managed::take(&mut object);
        let converted = versions.unpruned_in(object, from, to).await;
        let mut converted = converted.map_err(|error| error.message)?;
        let schema = versions[to].schema();
        Ownership::of(schema).check_applied(converted.as_value())?;
        managed::put(&mut converted, entries);
        Ok(converted)
    }

    fn manager(&self, request: WriteRequest<'_>, name: &str, operation: Operation) -> Manager {
        Manager {
            name: name.to_owned(),
            operation,
            api_version: self.resource.version().api_version.clone(),
            subresource: request.subresource.to_owned(),
        }
    }
}

/// Whether the JSON of a value is longer than this, at the least: without escapes, commas and most digits.
fn is_longer(value: &Value, limit: usize) -> bool {
    fn spend(value: &Value, left: &mut usize) -> Option<()> {
        let own = match value {
            Value::String(text) => text.len() + 2,
            Value::Array(_) | Value::Object(_) => 2,
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        };
        *left = left.checked_sub(own)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| spend(item, left)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                *left = left.checked_sub(name.len() + 3)?;
                spend(value, left)
            }),
            _ => Some(()),
        }
    }
    spend(value, &mut { limit }).is_none()
}

/// What a change does to the entry of its own manager.
#[derive(Clone, Copy)]
enum Own<'a> {
    /// Nothing.
    KeepsAll(&'a Manager),
    /// It loses the fields that are gone, but none with a new value.
    LosesRemoved(&'a Manager),
}

impl Own<'_> {
    /// The subresource of the write.
    fn subresource(&self) -> &str {
        let (Self::KeepsAll(own) | Self::LosesRemoved(own)) = self;
        &own.subresource
    }

    fn keeps_all(self, manager: &Manager) -> bool {
        matches!(self, Self::KeepsAll(own) if own == manager)
    }

    fn keeps_values(self, manager: &Manager) -> bool {
        matches!(self, Self::LosesRemoved(own) if own.is_same(manager))
    }
}

/// What an entry has of the changed fields.
enum Overlap {
    None,
    /// The version of the entry is not served any more.
    Unserved,
    Some {
        /// Fields with a new value.
        set: FieldSet,
        /// Fields that the object no longer has.
        removed: FieldSet,
    },
}

/// Removes the changed fields from the entries. Entries of versions that are not served any more go.
fn drop_overlaps(managed: &mut ManagedFields, overlaps: Vec<Overlap>) -> Result<(), ApiError> {
    let mut kept = Vec::with_capacity(overlaps.len());
    let entries = std::mem::take(managed.entries_mut());
    for (mut entry, overlap) in entries.into_iter().zip(overlaps) {
        match overlap {
            Overlap::Unserved => continue,
            Overlap::None => {}
            Overlap::Some { set, removed } => {
                let fields = entry.fields().map_err(unreadable)?;
                let fields = fields.difference(&set).difference(&removed);
                entry.set_fields(fields);
            }
        }
        kept.push(entry);
    }
    *managed.entries_mut() = kept;
    Ok(())
}

/// The fields of an entry, changed to those of the current schema of its version.
fn reconciled_fields<'a>(
    entry: &'a mut ManagedEntry,
    schema: &Schema,
) -> Result<&'a FieldSet, ApiError> {
    let fields = entry.fields().map_err(unreadable)?;
    if let Some(reconciled) = Ownership::of(schema).reconciled_fields(fields) {
        entry.set_fields(reconciled);
    }
    entry.fields().map_err(unreadable)
}

fn unreadable(why: FieldsError) -> ApiError {
    ApiError::internal_text(format!("failed to decode managed fields: {why}"))
}

/// The entries to begin with: those that the client sends, if they are valid, else those of the present object. A
/// subresource does not write them.
fn sent_or_live(request: WriteRequest<'_>, new: &Object, live: Option<&Object>) -> ManagedFields {
    let read = live.map(ManagedFields::read);
    let present = read.and_then(Result::ok).unwrap_or_default();
    if !request.subresource.is_empty() {
        return present;
    }
    if live.is_some_and(|live| ManagedFields::have_same_text(live, new)) {
        return present;
    }
    if ManagedFields::are_cleared(new) {
        return ManagedFields::default();
    }
    match ManagedFields::read_sent(new, &present) {
        Ok(sent) if !sent.is_empty() => sent,
        _ => present,
    }
}
