//! What a request asks for beside the object: the `*Options` of the API, decoded, and who is asking.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

/// The user of a request: `UserInfo` of `authentication.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// Name, unique among the active users; `system:anonymous` for a request without credentials.
    pub name: String,
    /// Identifies the user over time: another user of the same name has another one. Empty when there is none.
    pub uid: String,
    /// Names of the groups that the user belongs to.
    pub groups: Vec<String>,
    /// What else the authenticator knows, by keys in lower case, such as `example.com/scopes`.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// More texts than an answer carries, whose warnings have 4096 characters together.
const MAX_WARNINGS: usize = 1024;

/// What every operation gets besides its options: who asks, and where warnings go.
#[derive(Debug, Default)]
pub struct RequestContext {
    /// The user of the request; without a name in what the server does by itself.
    pub user: Arc<UserInfo>,
    warnings: Mutex<Vec<String>>,
    /// The room that was reserved for a large document.
    large: OnceLock<OwnedSemaphorePermit>,
}

impl RequestContext {
    /// A context for this user.
    pub fn new(user: impl Into<Arc<UserInfo>>) -> Self {
        Self {
            user: user.into(),
            warnings: Mutex::default(),
            large: OnceLock::new(),
        }
    }
    /// Whether room was reserved for a large document.
    pub(crate) fn is_large(&self) -> bool {
        self.large.get().is_some()
    }
    /// Keeps the room for a large document until the request ends.
    pub(super) fn set_large(&self, room: OwnedSemaphorePermit) {
        // Room that was reserved before is as good.
        let _ = self.large.set(room);
    }
    /// Adds a text that the client is shown as a `Warning`; a text already there is not added again, nor is any behind as
    /// many as an answer could carry.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    /// Takes the warnings out.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }
}

/// What happens to unknown and duplicate fields of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped and the client is warned; the default.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// `CreateOptions`.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// Unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// Who manages the fields.
    pub field_manager: String,
}

/// `UpdateOptions`.
pub type UpdateOptions = CreateOptions;

/// `PatchOptions`; `force` is for apply only and refused before it gets here.
pub type PatchOptions = CreateOptions;

/// `GetOptions`.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// `resourceVersion` as given; empty when absent.
    pub resource_version: String,
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that state.
    Exact,
    /// That state or a newer one.
    NotOlderThan,
}

/// `ListOptions`, for list, watch and deletecollection. Combinations are validated by http before they get here.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Labels to select by.
    pub label_selector: apiloom_meta::selector::LabelQuery,
    /// Fields to select by.
    pub field_selector: apiloom_meta::selector::FieldSelector,
    /// At most so many items; 0 for all.
    pub limit: u64,
    /// Continue token; empty when absent.
    pub continue_token: String,
    /// `resourceVersion` as given; empty when absent.
    pub resource_version: String,
    /// How to read it.
    pub version_match: Option<VersionMatch>,
    /// Watch: begin with the present objects (`sendInitialEvents`), after the defaulting of the API.
    pub send_initial_events: Option<bool>,
    /// Watch: send bookmarks.
    pub allow_watch_bookmarks: bool,
    /// Watch: end after so many seconds.
    pub timeout_seconds: Option<u64>,
}

/// `preconditions` of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid the object must have.
    pub uid: Option<String>,
    /// The resourceVersion the object must have.
    pub resource_version: Option<String>,
}

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum PropagationPolicy {
    Orphan,
    Background,
    Foreground,
}

/// `DeleteOptions`, validated.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// Seconds a graceful deletion may take.
    pub grace_period_seconds: Option<i64>,
    /// Deprecated form of the policy.
    pub orphan_dependents: Option<bool>,
    /// What becomes of dependents.
    pub propagation_policy: Option<PropagationPolicy>,
    /// What must hold.
    pub preconditions: Preconditions,
}
