//! Server-side apply: merges the fields of a manager into an object and removes those that it no longer applies.

use std::collections::BTreeSet;

use apiloom_meta::codec;
use apiloom_meta::managed_fields::{
    FieldChanges, FieldSet, ManagedEntry, ManagedFields, Manager, Operation, Ownership,
};
use apiloom_meta::{ApiError, Object, StatusCause, StatusDetails, StatusReason};
use serde_json::Value;

use super::{
    BEFORE_FIRST_APPLY, Difference, Overlap, Own, Owners, drop_overlaps, reconciled_fields,
    unreadable,
};
use crate::objects::kind_version::VersionIndex;
use crate::writes::fields;
use crate::writes::request::WriteRequest;

/// The manager whose applies take over from its applies on the client.
const KUBECTL: &str = "kubectl";

/// The annotation in which kubectl keeps what it applied on the client.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The result of an apply.
pub(crate) struct MergeResult {
    /// The present object with the applied fields; its managedFields are those of the present one.
    pub(crate) object: Object,
    /// The new entries of managedFields; `None` if they stay as they are.
    pub(crate) managed: Option<ManagedFields>,
    /// Whether the object differs from the present one.
    pub(crate) is_changed: bool,
}

/// Fields that other managers own with another value.
struct Conflicts(Vec<(Manager, FieldSet)>);

/// Why fields cannot be applied.
enum Refusal {
    Conflicts(Conflicts),
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Owners {
    /// The present object with the applied fields, and the entries of its managedFields; `live` is `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// Conflict with a cause for each field that others own, unless the request forces it; those of a document that does
    /// not fit the kind.
    pub(crate) async fn apply_fields(
        &self,
        request: WriteRequest<'_>,
        document: &Object,
        live: Option<&Object>,
    ) -> Result<MergeResult, ApiError> {
        self.check_applied(document)?;
        let empty = Object::default();
        let present = live.unwrap_or(&empty);
        let mut managed = ManagedFields::read(present).map_err(|why| {
            ApiError::internal_text(format!("failed to decode managed fields: {why}"))
        })?;
        if managed.is_empty() {
            let manager = self.manager(request, BEFORE_FIRST_APPLY, Operation::Update);
            let difference = Difference {
                live: &empty,
                new: present,
            };
            self.record_update(&mut managed, manager, difference)
                .await?;
        }
        self.check_compared(&managed, present).await?;
        let result = self
            .merge_and_prune(request, document, present, managed.clone())
            .await;
        let result = match result {
            Err(Refusal::Conflicts(conflicts))
                if request.manager == KUBECTL && self.are_of_kubectl(&conflicts, present) =>
            {
                let forced = WriteRequest {
                    force: true,
                    ..request
                };
                self.merge_and_prune(forced, document, present, managed)
                    .await
            }
            result => result,
        };
        let mut merged = result.map_err(|refusal| match refusal {
            Refusal::Conflicts(conflicts) => conflicts.into(),
            Refusal::Error(error) => error,
        })?;
        let object = &mut merged.object;
        let last_applied = object.annotation(LAST_APPLIED).unwrap_or_default();
        if request.manager == KUBECTL && !last_applied.is_empty() {
            set_last_applied(object, document);
            merged.is_changed = object != present;
        }
        Ok(merged)
    }

    /// Checks that the present object has a form in the version of each entry: of a kind without a hub it may have fields that
    /// another version does not know.
    async fn check_compared(&self, managed: &ManagedFields, live: &Object) -> Result<(), ApiError> {
        let versions = &self.resource.kind.versions;
        let entries = managed.entries().iter().filter(|_| !versions.has_hub());
        let of_entries = entries.filter_map(|entry| versions.find(&entry.manager.api_version));
        let others: BTreeSet<_> = of_entries
            .filter(|version| *version != self.resource.version)
            .collect();
        for version in others {
            let compared = self.in_version(live, version).await;
            compared.map_err(ApiError::internal_text)?;
        }
        Ok(())
    }

    /// Checks type and metadata of the document, and its fields against the schema.
    fn check_applied(&self, document: &Object) -> Result<(), ApiError> {
        let expected = self.resource.version().api_version.as_str();
        let gvk = format!("{}, Kind={}", gv(document.api_version()), document.kind());
        if document.api_version() != expected || document.kind() != self.resource.def().kind {
            return Err(ApiError::bad_request(format!("invalid object type: {gvk}")));
        }
        let metadata = document.fields().get("metadata");
        let managed = metadata.and_then(|metadata| metadata.get("managedFields"));
        if managed.is_some_and(|managed| !managed.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let checked = Ownership::of(self.resource.schema()).check_applied(document.as_value());
        checked.map_err(|why| {
            ApiError::internal_text(format!(
                "failed to create typed patch object ({}/{}; {gvk}): {why}",
                document.namespace(),
                document.name()
            ))
        })
    }

    async fn merge_and_prune(
        &self,
        request: WriteRequest<'_>,
        document: &Object,
        live: &Object,
        mut managed: ManagedFields,
    ) -> Result<MergeResult, Refusal> {
        let schema = self.resource.schema();
        let mut new = live.clone();
        let mut is_changed =
            Ownership::of(schema).merge_applied(new.fields_mut(), document.fields());
        let manager = self.manager(request, request.manager, Operation::Apply);
        let last = managed.take(&manager);
        let fields = Ownership::of(schema)
            .present_fields(document.as_value())
            .filter_root(|field| {
                fields::is_written(self.resource.def(), request.subresource, field)
            });
        // All fields of the document have an owner until it is merged, those of the system too.
        let own = ManagedEntry::new(manager.clone(), None, fields.clone());
        let mut entry = ManagedEntry::new(manager.clone(), None, fields.without_system_fields());
        let is_known = last.as_ref().is_some_and(|last| {
            last.manager == manager && last.fields_json() == entry.fields_json()
        });
        managed.entries_mut().push(own);
        if let Some(last) = last.as_ref().filter(|_| !is_known) {
            new = self.prune(new, last, &mut managed).await?;
            is_changed = live != &new;
        }
        let difference = Difference { live, new: &new };
        let changes = if is_changed {
            self.changes(request.subresource, difference)
        } else {
            FieldChanges::default()
        };
        let overlaps = self
            .overlaps(&mut managed, Own::KeepsAll(&manager), &changes, difference)
            .await?;
        if !request.force {
            Conflicts::of(&managed, &overlaps).map_or(Ok(()), Err)?;
        }
        let are_kept = || {
            overlaps
                .iter()
                .all(|overlap| matches!(overlap, Overlap::None))
        };
        if is_known && !is_changed && are_kept() {
            return Ok(MergeResult {
                object: new,
                managed: None,
                is_changed,
            });
        }
        drop_overlaps(&mut managed, overlaps)?;
        managed.take(&manager);
        let mut entry = match last {
            Some(last) if is_known => last,
            Some(last) => {
                entry.time = last.time;
                entry
            }
            None => entry,
        };
        if is_changed {
            entry.time = Some(self.settings.clock.now().to_string());
        }
        managed.entries_mut().push(entry);
        Ok(MergeResult {
            object: new,
            managed: Some(managed),
            is_changed,
        })
    }

    /// Removes what the manager applied before and does not apply now, unless others own it.
    async fn prune(
        &self,
        merged: Object,
        last: &ManagedEntry,
        managed: &mut ManagedFields,
    ) -> Result<Object, ApiError> {
        let versions = &self.resource.kind.versions;
        let request = self.resource.version;
        let Some(version) = versions.find(&last.manager.api_version) else {
            return Ok(merged);
        };
        let schema = versions[version].schema();
        let merged = self.compared_in(merged, request, version).await;
        let merged = merged.map_err(|why| {
            not_pruned(&format!(
                "failed to convert merged object to last applied version: {why}"
            ))
        })?;
        let last = last.fields().map_err(unreadable)?;
        let reconciled = Ownership::of(schema).reconciled_fields(last);
        let owned = Ownership::of(schema).with_named_fields(reconciled.as_ref().unwrap_or(last));
        let pruned = Ownership::of(schema).without_fields(merged.as_value(), &owned);
        let mut pruned = PrunedObject {
            merged: merged.clone(),
            pruned: object(pruned)?,
            version,
        };
        // Those of the same version first: conversions may need fields that are back then.
        let mut by_version: Vec<(VersionIndex, FieldSet)> = vec![(version, FieldSet::default())];
        for entry in managed.entries_mut() {
            let Some(version) = versions.find(&entry.manager.api_version) else {
                continue;
            };
            let fields = reconciled_fields(entry, versions[version].schema())?;
            match by_version.iter_mut().find(|(known, _)| *known == version) {
                Some((_, known)) => *known = known.union(fields),
                None => by_version.push((version, fields.clone())),
            }
        }
        for (version, fields) in by_version {
            pruned = self.put_back(pruned, version, &fields).await?;
        }
        // Nothing else may go than what the manager owned.
        let pruned = self
            .compared_in(pruned.pruned, pruned.version, version)
            .await;
        let pruned = pruned.map_err(|why| {
            not_pruned(&format!(
                "failed add back dangling items: failed to convert pruned object to last applied version: {why}"
            ))
        })?;
        let fields =
            |object: &Object| Ownership::of(schema).present_named_fields(object.as_value());
        let gone = fields(&merged)
            .difference(&fields(&pruned))
            .intersection(&owned);
        let pruned = object(Ownership::of(schema).without_fields(merged.as_value(), &gone))?;
        let pruned = self.compared_in(pruned, version, request).await;
        pruned.map_err(|why| not_pruned(&why))
    }

    /// Puts the fields of a set back that were pruned, in the version of the set.
    async fn put_back(
        &self,
        from: PrunedObject,
        version: VersionIndex,
        owned: &FieldSet,
    ) -> Result<PrunedObject, ApiError> {
        let kind = &self.resource.kind;
        let failed = |which: &str, why: String| {
            let api_version = &kind.versions[version].api_version;
            not_pruned(&format!(
                "failed add back owned items: failed to convert {which} object at version {api_version}: {why}"
            ))
        };
        let merged = self.compared_in(from.merged, from.version, version).await;
        let merged = merged.map_err(|why| failed("merged", why))?;
        let pruned = self.compared_in(from.pruned, from.version, version).await;
        let pruned = pruned.map_err(|why| failed("pruned", why))?;
        let schema = kind.versions[version].schema();
        let fields =
            |object: &Object| Ownership::of(schema).present_named_fields(object.as_value());
        let kept = fields(&pruned).union(&Ownership::of(schema).with_named_fields(owned));
        let gone = fields(&merged).difference(&kept);
        let pruned = object(Ownership::of(schema).without_fields(merged.as_value(), &gone))?;
        Ok(PrunedObject {
            merged,
            pruned,
            version,
        })
    }

    /// Whether the conflicts are only about fields that kubectl applied on the client, and that have this value still.
    fn are_of_kubectl(&self, conflicts: &Conflicts, live: &Object) -> bool {
        let Some(last_applied) = live.annotation(LAST_APPLIED) else {
            return false;
        };
        let format = codec::Format::Json;
        let Ok(last_applied) = codec::Decoder::new(format).value(last_applied.as_bytes()) else {
            return false;
        };
        let version = last_applied.get("apiVersion").and_then(Value::as_str);
        if version != Some(self.resource.version().api_version.as_str()) {
            return false;
        }
        let schema = self.resource.schema();
        let changes = Ownership::of(schema).changed_fields(&last_applied, live.as_value());
        let unchanged = Ownership::of(schema)
            .present_fields(&last_applied)
            .difference(&changes.set())
            .difference(&changes.removed);
        let mut fields = conflicts.0.iter().map(|(_, fields)| fields);
        fields.all(|fields| fields.difference(&unchanged).is_empty())
    }
}

/// A merged object before and after pruning, in one version.
struct PrunedObject {
    merged: Object,
    pruned: Object,
    version: VersionIndex,
}

/// The error of an apply whose pruning fails.
fn not_pruned(why: &str) -> ApiError {
    ApiError::internal_text(format!("failed to prune fields: {why}"))
}

fn object(value: Value) -> Result<Object, ApiError> {
    // A document whose fields are all gone is null.
    let value = if value.is_null() {
        Value::Object(serde_json::Map::new())
    } else {
        value
    };
    Object::from_value(value).ok_or_else(|| ApiError::internal("a pruned object is no object"))
}

/// A group and version as Go prints it in a kind: the core group is empty.
fn gv(api_version: &str) -> String {
    if api_version.contains('/') {
        api_version.to_owned()
    } else {
        format!("/{api_version}")
    }
}

/// Keeps what was applied in the annotation of kubectl's applies on the client, so that users of those see it.
fn set_last_applied(object: &mut Object, document: &Object) {
    let mut document = document.clone();
    if let Some(Value::Object(annotations)) = document.meta_mut().get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
    }
    let mut json = String::from_utf8_lossy(&codec::Encoder::json(document.as_value())).into_owned();
    json.push('\n');
    if let Some(Value::Object(annotations)) = object.meta_mut().get_mut("annotations") {
        annotations.insert(LAST_APPLIED.to_owned(), Value::String(json));
    }
}

impl Conflicts {
    /// The fields with a new value that the entries own; `None` if there are none.
    fn of(managed: &ManagedFields, overlaps: &[Overlap]) -> Option<Refusal> {
        let entries = managed.entries().iter().zip(overlaps);
        let conflicts = entries.filter_map(|(entry, overlap)| match overlap {
            Overlap::Some { set, .. } if !set.is_empty() => {
                Some((entry.manager.clone(), set.clone()))
            }
            _ => None,
        });
        let mut conflicts: Vec<(Manager, FieldSet)> = conflicts.collect();
        conflicts.sort_by(|(a, _), (b, _)| {
            (a.name.cmp(&b.name))
                .then_with(|| a.operation.cmp(&b.operation))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        (!conflicts.is_empty()).then_some(Refusal::Conflicts(Self(conflicts)))
    }
}

/// Conflict with a cause for each field. kubectl parses the causes to print advice.
impl From<Conflicts> for ApiError {
    fn from(Conflicts(conflicts): Conflicts) -> Self {
        let mut causes = Vec::new();
        let mut lines = String::new();
        for (manager, fields) in &conflicts {
            lines.push_str(&format!("conflicts with {manager}:\n"));
            for path in fields.paths() {
                lines.push_str(&format!("- {path}\n"));
                causes.push(StatusCause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {manager}"),
                    field: path,
                });
            }
        }
        let message = match &causes[..] {
            [one] => format!(
                "Apply failed with 1 conflict: {}: {}",
                one.message, one.field
            ),
            all => format!(
                "Apply failed with {} conflicts: {}",
                all.len(),
                lines.trim_end()
            ),
        };
        ApiError::new(StatusReason::Conflict, message).with_details(StatusDetails {
            causes,
            ..StatusDetails::default()
        })
    }
}
