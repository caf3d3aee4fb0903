//! Converts the object of a write to the hub, whose schema applies to every version, and to the storage version.
//!
//! A version may lack fields of another. So an update does not replace the present object by the converted new one: the
//! present and the new object are both converted, and the difference between them, which is the client's change, is
//! applied to the present object in the other version.

use std::sync::{Arc, OnceLock};

use apiloom_meta::schema::merge_difference;
use apiloom_meta::{ApiError, Object};

use super::fields;
use crate::objects::kind_version::KindVersion;
use crate::objects::kind_versions::KindVersions;
use crate::objects::present_object::PresentObject;
use crate::objects::versioned_resource::VersionedResource;

/// The present object in the versions that an update needs.
pub(crate) struct PresentVersions {
    /// In the version of the request.
    pub(crate) object: Object,
    /// In the hub, with the hub's defaults, if the version of the request is neither the hub nor the storage version.
    hub: Option<Object>,
    /// In the storage version, if that is not the version of the request and the kind has a hub.
    stored: Option<Object>,
}

impl PresentVersions {
    /// Whether a change is applied to the object in other versions than that of the request too.
    pub(crate) fn is_merged(&self) -> bool {
        self.stored.is_some()
    }
}

/// The object of a write, in the hub.
pub(crate) struct HubObject<'a> {
    pub(crate) new: Object,
    pub(crate) old: PresentInHub<'a>,
}

/// The present object in the hub, with the hub's defaults.
pub(crate) enum PresentInHub<'a> {
    /// The object is new.
    Absent,
    Converted(&'a Object),
    /// Stored in the version of the request, and converted when it is first read; most writes do not read it.
    Stored {
        versions: &'a KindVersions,
        object: &'a Object,
        /// `None` if the object cannot be converted, so that an update can repair it.
        converted: OnceLock<Option<Object>>,
    },
}

impl PresentInHub<'_> {
    /// The object, if it exists and can be converted.
    pub(crate) fn get(&self) -> Option<&Object> {
        match self {
            Self::Absent => None,
            Self::Converted(object) => Some(object),
            Self::Stored {
                versions,
                object,
                converted,
            } => {
                let convert = || {
                    let object = Object::clone(object);
                    let converted =
                        versions.convert_with_defaults(object, versions.stored, versions.hub);
                    converted.ok()
                };
                converted.get_or_init(convert).as_ref()
            }
        }
    }
}

/// The object of a write, in the versions besides that of the request.
pub(crate) struct Draft<'a> {
    /// In the hub, if that is another version.
    pub(crate) hub: Option<HubObject<'a>>,
    /// In the storage version, if that is another one than the hub and the version of the request, and the object is
    /// not new.
    stored: Result<Option<Object>, ApiError>,
}

/// Makes of the object of a request those of the other versions that the write needs.
#[derive(Debug)]
pub(crate) struct Versions {
    resource: Arc<VersionedResource>,
}

impl Versions {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self { resource }
    }

    /// Whether the version of the request is the hub, or the kind has no hub. The object is validated only in that
    /// version then.
    fn is_hub(&self) -> bool {
        let versions = &self.resource.kind.versions;
        self.resource.version == versions.hub || !versions.has_hub()
    }

    /// Decodes the present object in the versions that an update needs.
    ///
    /// # Errors
    /// If it cannot be decoded or converted to the version of the request.
    pub(crate) async fn present_versions(
        &self,
        present: &PresentObject,
    ) -> Result<PresentVersions, ApiError> {
        let (kind, version) = (&self.resource.kind, self.resource.version);
        let versions = &kind.versions;
        if version == versions.stored || !versions.has_hub() {
            return Ok(PresentVersions {
                object: kind.present_in(present, version).await?,
                hub: None,
                stored: None,
            });
        }
        let stored = kind.present_in(present, versions.stored).await?;
        let object = versions.convert(stored.clone(), versions.stored, version)?;
        let hub = if self.is_hub() {
            None
        } else {
            let (from, to) = (versions.stored, versions.hub);
            Some(versions.convert_with_defaults(stored.clone(), from, to)?)
        };
        Ok(PresentVersions {
            object,
            hub,
            stored: Some(stored),
        })
    }

    /// The present object of code, which answers in the version of the request, in the versions that an update needs.
    ///
    /// # Errors
    /// If it cannot be converted to the hub.
    pub(crate) fn versions_of_code(&self, object: Object) -> Result<PresentVersions, ApiError> {
        let (versions, version) = (&self.resource.kind.versions, self.resource.version);
        let hub = if self.is_hub() {
            None
        } else {
            Some(versions.convert_with_defaults(object.clone(), version, versions.hub)?)
        };
        Ok(PresentVersions {
            object,
            hub,
            stored: None,
        })
    }

    /// The present object with those defaults of the request's version that the new object gets too, so that they do not
    /// count as a change. `None` if no difference is needed: the object is stored in the version of the request, or the
    /// kind has no hub.
    pub(crate) fn comparable(
        &self,
        subresource: &str,
        before: &PresentVersions,
        sent: Option<&Object>,
    ) -> Option<Object> {
        let versions = &self.resource.kind.versions;
        let (old, sent) = (&before.object, sent.filter(|_| versions.has_hub())?);
        let mut comparable = old.clone();
        versions.default(&mut comparable, self.resource.version);
        self.resource.schema().remove_sent_defaults(
            comparable.fields_mut(),
            old.fields(),
            sent.fields(),
        );
        fields::restore_unwritten(self.resource.def(), subresource, &mut comparable, old);
        Some(comparable)
    }

    /// Converts a new object to the hub, if that is another version.
    pub(crate) fn new_in_hub<'a>(
        &self,
        object: &Object,
    ) -> Result<Option<HubObject<'a>>, ApiError> {
        if self.is_hub() {
            return Ok(None);
        }
        let (versions, version) = (&self.resource.kind.versions, self.resource.version);
        let new = versions.try_convert_with_defaults(object.clone(), version, versions.hub);
        // The client sent this object, so a failed conversion is its error and not an InternalError.
        let new = new.map_err(|why| self.resource.unusable(&why))?;
        let old = PresentInHub::Absent;
        Ok(Some(HubObject { new, old }))
    }

    /// Converts a changed object to the hub, if that is another version. Fields that the request's version lacks are
    /// kept from the present object.
    pub(crate) fn changed_in_hub<'a>(
        &'a self,
        subresource: &str,
        new: &Object,
        before: &'a PresentVersions,
        comparable: Option<&Object>,
    ) -> Result<Option<HubObject<'a>>, ApiError> {
        let versions = &self.resource.kind.versions;
        let Some(mut in_hub) = self.new_in_hub(new)? else {
            return Ok(None);
        };
        let Some(old) = &before.hub else {
            in_hub.old = PresentInHub::Stored {
                versions,
                object: &before.object,
                converted: OnceLock::new(),
            };
            return Ok(Some(in_hub));
        };
        if let Some(comparable) = comparable {
            let (from, hub) = (self.resource.version, versions.hub);
            let comparable = versions.convert_with_defaults(comparable.clone(), from, hub)?;
            in_hub.new = apply_update(&versions[hub], old.clone(), &comparable, in_hub.new);
            fields::restore_unwritten(self.resource.def(), subresource, &mut in_hub.new, old);
        }
        in_hub.old = PresentInHub::Converted(old);
        Ok(Some(in_hub))
    }

    /// The changed object in the hub and in the storage version. Fields of the storage version that the hub lacks are
    /// kept from the present object.
    pub(crate) fn draft<'a>(
        &self,
        subresource: &str,
        new: &Object,
        hub: Option<HubObject<'a>>,
        before: &PresentVersions,
        comparable: Option<&Object>,
    ) -> Draft<'a> {
        let stored = self.changed_in_store(subresource, new, hub.as_ref(), before, comparable);
        Draft { hub, stored }
    }

    fn changed_in_store(
        &self,
        subresource: &str,
        new: &Object,
        hub: Option<&HubObject<'_>>,
        before: &PresentVersions,
        comparable: Option<&Object>,
    ) -> Result<Option<Object>, ApiError> {
        let versions = &self.resource.kind.versions;
        let (from, to) = (versions.hub, versions.stored);
        let (old_in_hub, new_in_hub) = match hub {
            Some(hub) => (before.hub.as_ref(), &hub.new),
            None => (comparable, new),
        };
        let (Some(stored), Some(old_in_hub)) = (&before.stored, old_in_hub) else {
            return Ok(None);
        };
        if from == to {
            return Ok(None);
        }
        let old = versions.convert_with_defaults(old_in_hub.clone(), from, to)?;
        let new = versions.convert_with_defaults(new_in_hub.clone(), from, to)?;
        let mut document = apply_update(&versions[to], stored.clone(), &old, new);
        fields::restore_unwritten(self.resource.def(), subresource, &mut document, stored);
        Ok(Some(document))
    }

    /// Whether the update increases the generation. The objects in the storage version or the hub are compared, if there
    /// are any: the request's version may lack fields, or leave out defaults that are applied again.
    pub(crate) fn draft_differs(
        &self,
        new: &Object,
        before: &PresentVersions,
        draft: &Result<Draft<'_>, ApiError>,
    ) -> bool {
        let def = self.resource.def();
        if let (Some(old), Ok(draft)) = (&before.stored, draft) {
            match (&draft.stored, &draft.hub) {
                (Ok(Some(stored)), _) => return fields::spec_differs(def, stored, old),
                (Ok(None), Some(hub)) => return fields::spec_differs(def, &hub.new, old),
                _ => {}
            }
        }
        fields::spec_differs(def, new, &before.object)
    }

    /// The object in the storage version, if that is not the version of the request. Of a kind with a hub the metadata is that of
    /// the object; a converter may change labels and annotations.
    ///
    /// # Errors
    /// If the object cannot be converted.
    pub(crate) async fn to_store(
        &self,
        object: &Object,
        draft: Draft<'_>,
    ) -> Result<Option<Object>, ApiError> {
        let (versions, version) = (&self.resource.kind.versions, self.resource.version);
        let to = versions.stored;
        if version == to {
            return Ok(None);
        }
        let mut document = match (draft.stored?, draft.hub) {
            (Some(stored), _) => stored,
            (None, Some(hub)) => versions.convert_with_defaults(hub.new, versions.hub, to)?,
            (None, None) if versions.has_hub() => {
                versions.convert_with_defaults(object.clone(), version, to)?
            }
            (None, None) => {
                let converted = versions.stored_object(object.clone(), version);
                return converted.await.map(Some);
            }
        };
        put_metadata(&mut document, object);
        Ok(Some(document))
    }

    /// The object as a read returns it after the write: converted from the storage version.
    ///
    /// # Errors
    /// If the object in the storage version cannot be converted back.
    pub(crate) async fn as_read(
        &self,
        object: Object,
        stored: Option<&Object>,
    ) -> Result<Object, ApiError> {
        let Some(stored) = stored else {
            return Ok(object);
        };
        let versions = &self.resource.kind.versions;
        versions
            .object_in(stored.clone(), versions.stored, self.resource.version)
            .await
    }
}

impl<'a> Draft<'a> {
    /// The draft of a new object.
    pub(crate) fn of_new(hub: Option<HubObject<'a>>) -> Self {
        let stored = Ok(None);
        Self { hub, stored }
    }
}

/// Applies the difference between `before` and `after`, both converted from another version, to an object of `version`. The
/// metadata is that of `after`; all other fields are kept.
fn apply_update(
    version: &KindVersion,
    mut document: Object,
    before: &Object,
    mut after: Object,
) -> Object {
    // The metadata is the same in all versions.
    let metadata = after.fields_mut().remove("metadata");
    let schema = Some(version.schema().as_ref());
    let after = std::mem::take(after.fields_mut());
    merge_difference(schema, document.fields_mut(), before.fields(), after);
    document.set_field("metadata", metadata);
    document
}

/// Copies the metadata of the object in another version.
pub(crate) fn put_metadata(object: &mut Object, other: &Object) {
    match other.meta() {
        metadata if metadata == object.meta() => {}
        Some(metadata) => object.meta_mut().clone_from(metadata),
        None => object.set_field("metadata", None),
    }
}
