//! Options of a request, decoded from the query or the body, and its context: user and warnings.

use std::sync::{Arc, OnceLock};

use apiloom_storage::Revision;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::audit::AuditRecord;
use crate::user_info::UserInfo;

/// Limit for the number of warnings: more than a response can have, whose warnings are limited to 4096 characters.
const MAX_WARNINGS: usize = 1024;

/// Part of a bound that a request holds for what it writes. Dropped with the request.
pub trait Reservation: std::fmt::Debug + Send + Sync {
    /// Notes that the object was written, at a revision.
    fn settle(&self, revision: Revision);
}

/// Context of a request besides its options: the user, and the warnings for the response.
#[derive(Debug, Default)]
pub struct RequestContext {
    /// The user of the request; its name is empty for operations of the server itself.
    pub user: Arc<UserInfo>,
    warnings: Mutex<Vec<String>>,
    /// Capacity reserved for a large document.
    large: OnceLock<Vec<OwnedSemaphorePermit>>,
    /// What the admission of the last attempt has reserved.
    reservation: Mutex<Option<Box<dyn Reservation>>>,
    /// What its audit records; `None` if it is not audited.
    audit: Option<Arc<AuditRecord>>,
}

impl RequestContext {
    /// A context for this user.
    pub fn new(user: impl Into<Arc<UserInfo>>) -> Self {
        Self {
            user: user.into(),
            warnings: Mutex::default(),
            large: OnceLock::new(),
            reservation: Mutex::default(),
            audit: None,
        }
    }

    /// The context of a request that is audited.
    #[must_use]
    pub fn audited(mut self, record: Option<Arc<AuditRecord>>) -> Self {
        self.audit = record;
        self
    }

    /// What the audit of the request records; `None` if it is not audited. Admission plugins add their annotations to it.
    pub fn audit(&self) -> Option<&Arc<AuditRecord>> {
        self.audit.as_ref()
    }
    /// Whether capacity was reserved for a large document.
    pub(crate) fn is_large(&self) -> bool {
        self.large.get().is_some()
    }
    /// Keeps the capacity for a large document until the request ends.
    pub(super) fn set_large(&self, room: Vec<OwnedSemaphorePermit>) {
        // A reservation that the request already has is kept.
        let _ = self.large.set(room);
    }
    /// Replaces what an earlier attempt has reserved. The earlier reservation is given back first.
    ///
    /// # Errors
    /// That of `reserve`; nothing is reserved then.
    pub fn reserve<R: Reservation + 'static, E>(
        &self,
        reserve: impl FnOnce() -> Result<R, E>,
    ) -> Result<(), E> {
        let mut reservation = self.reservation.lock();
        *reservation = None;
        *reservation = Some(Box::new(reserve()?));
        Ok(())
    }
    /// Whether the admission of this attempt has reserved something.
    pub fn has_reservation(&self) -> bool {
        self.reservation.lock().is_some()
    }
    /// Settles what was reserved for the object that was written at a revision.
    pub(super) fn settle(&self, revision: Revision) {
        if let Some(reservation) = &*self.reservation.lock() {
            reservation.settle(revision);
        }
    }
    /// Adds a `Warning` header to the response. Duplicates are dropped, and so is everything above the number that a
    /// response can have.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    /// Removes and returns the warnings.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }
}

/// The `fieldValidation` parameter: how unknown and duplicate fields of a body are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them.
    Ignore,
    /// Drops them and warns the client; the default.
    #[default]
    Warn,
    /// Refuses the request.
    Strict,
}

/// `CreateOptions` of the API.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Runs every step but the write (`dryRun=All`).
    pub dry_run: bool,
    /// How unknown and duplicate fields are handled.
    pub field_validation: FieldValidation,
    /// `fieldManager`; empty when absent.
    pub field_manager: String,
}

/// `UpdateOptions` of the API.
pub type UpdateOptions = CreateOptions;

/// `PatchOptions` of the API.
#[derive(Clone, Debug, Default)]
pub struct PatchOptions {
    /// Runs every step but the write (`dryRun=All`).
    pub dry_run: bool,
    /// How unknown and duplicate fields are handled.
    pub field_validation: FieldValidation,
    /// `fieldManager`; empty when absent.
    pub field_manager: String,
    /// `force`: an apply takes fields from other managers in place of a conflict.
    pub force: bool,
}

/// `GetOptions` of the API.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// `resourceVersion` as the client sent it; empty when absent.
    pub resource_version: String,
}

/// The `resourceVersionMatch` parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state at exactly this resourceVersion.
    Exact,
    /// This state or a newer one.
    NotOlderThan,
}

/// `ListOptions` of the API, for list, watch and deletecollection. `http` has validated the combinations.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Label selector; selects all objects by default.
    pub label_selector: apiloom_meta::selector::LabelQuery,
    /// Field selector; selects all objects by default.
    pub field_selector: apiloom_meta::selector::FieldSelector,
    /// Maximum number of items in a page; 0 for all.
    pub limit: u64,
    /// `continue` token of the page before; empty for the first page.
    pub continue_token: String,
    /// `resourceVersion` as the client sent it; empty when absent.
    pub resource_version: String,
    /// `resourceVersionMatch`, which says how `resource_version` is applied; `None` when absent.
    pub version_match: Option<VersionMatch>,
    /// Watch: begins with the existing objects (`sendInitialEvents`), with the API's default filled in.
    pub send_initial_events: Option<bool>,
    /// Watch: sends bookmarks.
    pub allow_watch_bookmarks: bool,
    /// Watch: timeout in seconds; `None` for the server's default.
    pub timeout_seconds: Option<u64>,
}

/// `preconditions` of a delete, and those of a PUT on a subresource with a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
}

/// The `propagationPolicy` parameter: how the dependents of a deleted object are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum PropagationPolicy {
    Orphan,
    Background,
    Foreground,
}

/// `DeleteOptions` of the API, validated.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Runs every step but the write (`dryRun=All`).
    pub dry_run: bool,
    /// Grace period of the deletion, in seconds; `None` for the default of the kind.
    pub grace_period_seconds: Option<i64>,
    /// `orphanDependents`, the deprecated form of `propagationPolicy`.
    pub orphan_dependents: Option<bool>,
    /// `propagationPolicy`: how dependents are handled; `None` for the default of the kind.
    pub propagation_policy: Option<PropagationPolicy>,
    /// Conditions that the stored object must meet, else Conflict.
    pub preconditions: Preconditions,
}
