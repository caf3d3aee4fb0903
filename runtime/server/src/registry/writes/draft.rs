//! A write on its way through the versions: the object as the hub has it, whose rules hold in every version, and as it will
//! be stored.
//!
//! A version need not be able to say all that another can. So an update is not converted and put in the place of what is
//! there: the present object and the new one are converted, and what differs between them is changed in the present object
//! of the other version. What differs is what the client changed.

use apiloom_meta::schema::merge_difference;
use apiloom_meta::{ApiError, Object};

use super::Writes;
use super::stamp::put_field;
use crate::registry::objects::kind::Kind;
use crate::registry::objects::kind_version::VersionIndex;
use crate::registry::objects::prepared::Prepared;
use crate::registry::objects::present::Present;
use crate::registry::rules::strategy::ErasedStrategy;

/// The present object in the versions that an update goes through.
pub(crate) struct Before {
    /// In the version of the request.
    pub(crate) object: Object,
    /// In the hub, where that is another version, with the hub's defaults. `None`, too, for what is stored in the version of
    /// the request and cannot be converted: it must not stand in the way of its repair.
    hub: Option<Object>,
    /// In the version that is stored, where that is another one than the request's.
    stored: Option<Object>,
}

impl Before {
    /// Whether the object is stored in another version than the request's.
    pub(crate) fn is_converted(&self) -> bool {
        self.stored.is_some()
    }
}

/// An object about to be written, in the hub.
pub(crate) struct InHub {
    pub(crate) new: Object,
    /// The present object, if there is one that can be converted.
    pub(crate) old: Option<Object>,
}

/// An object about to be written, in the versions beside that of the request.
pub(crate) struct Draft {
    /// In the hub, where that is another version.
    pub(crate) hub: Option<InHub>,
    /// In the version that is stored, where that is neither of the others, and the object is not new.
    stored: Result<Option<Object>, ApiError>,
}

impl Kind {
    /// Makes in an object the changes that lead from `before` to `after`, which another version gave; all else stays.
    fn carry_changes(
        &self,
        version: VersionIndex,
        mut document: Object,
        before: &Object,
        mut after: Object,
    ) -> Object {
        // Every version says all of the metadata.
        let metadata = after.fields_mut().remove("metadata");
        let schema = Some(self.versions[version].schema().as_ref());
        let after = std::mem::take(after.fields_mut());
        merge_difference(schema, document.fields_mut(), before.fields(), after);
        put_field(&mut document, "metadata", metadata);
        document
    }
}

impl Writes {
    /// Refuses an object that is too large to be stored. One that is stored already, from when the limit was higher, may
    /// still be made smaller.
    ///
    /// # Errors
    /// RequestEntityTooLarge.
    pub(crate) fn check_size(
        &self,
        prepared: &Prepared,
        present: Option<&Present>,
    ) -> Result<(), ApiError> {
        let (limit, len) = (self.settings.max_object_bytes, prepared.stored.len());
        // What the cache has may be behind. The write is judged again by what is stored, then.
        let shrinks = present.is_some_and(|present| match present {
            Present::Stored(entry) => len < entry.value.len(),
            Present::Cached(_) => false,
        });
        if len <= limit || shrinks {
            Ok(())
        } else {
            Err(ApiError::too_large(limit))
        }
    }

    /// Whether the rules of the version of the request are all that judge: it is the hub, or the kind has none.
    fn is_hub(&self) -> bool {
        self.resource.version == self.resource.kind.hub || !self.resource.kind.has_hub()
    }

    /// The present object in the versions that an update of it goes through.
    ///
    /// # Errors
    /// For what cannot be read in the version of the request.
    pub(crate) async fn read_before(&self, present: &Present) -> Result<Before, ApiError> {
        let (kind, stored_version) = (&self.resource.kind, self.resource.kind.storage_version);
        let stored = kind.present_in(present, stored_version).await?;
        if self.resource.version == stored_version {
            let in_hub = || kind.carry(stored.clone(), stored_version, kind.hub).ok();
            let hub = if self.is_hub() { None } else { in_hub() };
            return Ok(Before {
                object: stored,
                hub,
                stored: None,
            });
        }
        let object = kind
            .object_in(stored.clone(), stored_version, self.resource.version)
            .await?;
        let hub = if self.is_hub() {
            None
        } else {
            Some(kind.carry(stored.clone(), stored_version, kind.hub)?)
        };
        Ok(Before {
            object,
            hub,
            stored: Some(stored),
        })
    }

    /// The present object with those defaults of the request's version that the new object, as it was sent, gets too: they
    /// are no change. `None` where nothing is compared with it, as in kinds without a hub: they are written as they are.
    pub(crate) fn comparable(
        &self,
        subresource: &str,
        before: &Before,
        sent: Option<&Object>,
    ) -> Option<Object> {
        let (old, sent) = (
            &before.object,
            sent.filter(|_| self.resource.kind.has_hub())?,
        );
        let mut comparable = old.clone();
        self.resource
            .kind
            .default(&mut comparable, self.resource.version);
        self.resource.schema().remove_sent_defaults(
            comparable.fields_mut(),
            old.fields(),
            sent.fields(),
        );
        self.isolate(subresource, &mut comparable, old);
        Some(comparable)
    }

    /// A new object as the hub has it, where that is another version.
    pub(crate) fn new_in_hub(&self, object: &Object) -> Result<Option<InHub>, ApiError> {
        if self.is_hub() {
            return Ok(None);
        }
        let (from, to) = (self.resource.version, self.resource.kind.hub);
        let new = self.resource.kind.try_carry(object.clone(), from, to);
        // It is the client's, so it is not the server's failure that the hub has no counterpart of it.
        let refuse = |why: String| {
            self.cannot_handle(
                &self.resource.def().kind,
                &self.resource.def().version,
                &why,
            )
        };
        let new = new.map_err(refuse)?;
        Ok(Some(InHub { new, old: None }))
    }

    /// A changed object as the hub has it, where that is another version: what the request's version cannot say is what it
    /// was.
    pub(crate) fn changed_in_hub(
        &self,
        subresource: &str,
        new: &Object,
        before: &Before,
        comparable: Option<&Object>,
    ) -> Result<Option<InHub>, ApiError> {
        let (kind, hub) = (&self.resource.kind, self.resource.kind.hub);
        let Some(mut in_hub) = self.new_in_hub(new)? else {
            return Ok(None);
        };
        in_hub.old.clone_from(&before.hub);
        if let (Some(old), Some(comparable)) = (&in_hub.old, comparable) {
            let comparable = kind.carry(comparable.clone(), self.resource.version, hub)?;
            in_hub.new = kind.carry_changes(hub, old.clone(), &comparable, in_hub.new);
            self.isolate(subresource, &mut in_hub.new, old);
        }
        Ok(Some(in_hub))
    }

    /// The object in all versions that it is written through: what the hub cannot say, but the stored version can, is what it
    /// was.
    pub(crate) fn draft(
        &self,
        subresource: &str,
        new: &Object,
        hub: Option<InHub>,
        before: &Before,
        comparable: Option<&Object>,
    ) -> Draft {
        let stored = self.changed_in_store(subresource, new, hub.as_ref(), before, comparable);
        Draft { hub, stored }
    }

    fn changed_in_store(
        &self,
        subresource: &str,
        new: &Object,
        hub: Option<&InHub>,
        before: &Before,
        comparable: Option<&Object>,
    ) -> Result<Option<Object>, ApiError> {
        let (from, to) = (self.resource.kind.hub, self.resource.kind.storage_version);
        let (old_in_hub, new_in_hub) = match hub {
            Some(hub) => (hub.old.as_ref(), &hub.new),
            None => (comparable, new),
        };
        let (Some(stored), Some(old_in_hub)) = (&before.stored, old_in_hub) else {
            return Ok(None);
        };
        if from == to {
            return Ok(None);
        }
        let old = self.resource.kind.carry(old_in_hub.clone(), from, to)?;
        let new = self.resource.kind.carry(new_in_hub.clone(), from, to)?;
        let mut document = self
            .resource
            .kind
            .carry_changes(to, stored.clone(), &old, new);
        self.isolate(subresource, &mut document, stored);
        Ok(Some(document))
    }

    /// Lets the rules that the request's version has of its own prepare an object, and puts in the defaults that follow from
    /// what they set.
    pub(crate) fn prepare(
        &self,
        object: &mut Object,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut Object) -> bool,
    ) {
        let own = self.resource.version().strategy.as_deref();
        if own.is_some_and(|strategy| hook(strategy, object)) {
            self.resource.kind.default(object, self.resource.version);
        }
    }

    /// Where it has none, lets the hub's rules prepare the object as the hub has it. What they change is changed in the
    /// request's version too, as far as that can say it.
    ///
    /// # Errors
    /// When what they left cannot be converted.
    pub(crate) fn prepare_in_hub(
        &self,
        object: &mut Object,
        in_hub: &mut InHub,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut InHub) -> bool,
    ) -> Result<(), ApiError> {
        let (kind, hub) = (&self.resource.kind, self.resource.kind.hub);
        let strategy = kind.strategy(self.resource.version);
        let Some((_, strategy)) = strategy.filter(|(version, _)| *version != self.resource.version)
        else {
            return Ok(());
        };
        let before = in_hub.new.clone();
        if !hook(strategy, in_hub) {
            return Ok(());
        }
        kind.default(&mut in_hub.new, hub);
        kind.put_back(
            object,
            self.resource.version,
            hub,
            [before, in_hub.new.clone()],
        )?;
        kind.default(object, self.resource.version);
        Ok(())
    }

    /// Whether the update changes what counts for the generation. What will be stored decides: another version may leave
    /// out a default that is put back, or drop a field that it does not know.
    pub(crate) fn draft_differs(
        &self,
        new: &Object,
        before: &Before,
        draft: &Result<Draft, ApiError>,
    ) -> bool {
        if let (Some(old), Ok(draft)) = (&before.stored, draft) {
            match (&draft.stored, &draft.hub) {
                (Ok(Some(stored)), _) => return self.spec_differs(stored, old),
                (Ok(None), Some(hub)) => return self.spec_differs(&hub.new, old),
                _ => {}
            }
        }
        self.spec_differs(new, &before.object)
    }

    /// The document to store, where it is not the object itself.
    ///
    /// # Errors
    /// When the object cannot be converted.
    pub(crate) async fn to_store(
        &self,
        object: &Object,
        draft: Draft,
    ) -> Result<Option<Object>, ApiError> {
        let (kind, stored_version) = (&self.resource.kind, self.resource.kind.storage_version);
        if self.resource.version == stored_version {
            return Ok(None);
        }
        let mut document = match (draft.stored?, draft.hub) {
            (Some(stored), _) => stored,
            (None, Some(hub)) => kind.carry(hub.new, kind.hub, stored_version)?,
            (None, None) if kind.has_hub() => {
                kind.carry(object.clone(), self.resource.version, stored_version)?
            }
            (None, None) => {
                let object = object.clone();
                kind.object_in(object, self.resource.version, stored_version)
                    .await?
            }
        };
        put_metadata(&mut document, object);
        Ok(Some(document))
    }

    /// The object as a read would give it, once it is stored.
    ///
    /// # Errors
    /// When what would be stored cannot be converted back.
    pub(crate) async fn as_read(
        &self,
        object: Object,
        stored: Option<&Object>,
    ) -> Result<Object, ApiError> {
        let Some(stored) = stored else {
            return Ok(object);
        };
        let from = self.resource.kind.storage_version;
        self.resource
            .kind
            .object_in(stored.clone(), from, self.resource.version)
            .await
    }
}

impl Draft {
    /// A new object in all versions that it is written through.
    pub(crate) fn of_new(hub: Option<InHub>) -> Self {
        let stored = Ok(None);
        Self { hub, stored }
    }
}

/// Gives an object the metadata that it has in another version.
pub(crate) fn put_metadata(object: &mut Object, other: &Object) {
    put_field(object, "metadata", other.fields().get("metadata").cloned());
}
