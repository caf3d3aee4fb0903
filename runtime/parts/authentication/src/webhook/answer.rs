//! What a TokenReview tells that a webhook has answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_registry::auth::UserInfo;
use apiloom_server::webhook::status_of_review;
use serde::Deserialize;

/// The answer to a question: a user, or none, or why it is not known.
pub(super) type ReviewResult = Result<Option<Arc<Identity>>, Arc<str>>;

/// A user, and for whom its token is.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) user: Arc<UserInfo>,
    /// Empty if the webhook names none.
    pub(super) audiences: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    authenticated: Option<bool>,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    audiences: Option<Vec<String>>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    uid: Option<String>,
    #[serde(default)]
    groups: Option<Vec<String>>,
    #[serde(default)]
    extra: Option<BTreeMap<String, Option<Vec<String>>>>,
}

/// What an answer tells.
///
/// # Errors
/// If it is no TokenReview, and what it says itself if it has no user.
pub(super) fn reviewed(body: &[u8]) -> Result<Option<Arc<Identity>>, String> {
    let status: Status = status_of_review(body, "TokenReview", "authentication.k8s.io")?;
    if status.authenticated != Some(true) {
        let error = status.error.filter(|error| !error.is_empty());
        return error.map_or(Ok(None), Err);
    }
    let user = status.user.unwrap_or_default();
    let extra = user.extra.unwrap_or_default().into_iter();
    let user = UserInfo {
        name: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: extra
            .map(|(key, values)| (key, values.unwrap_or_default()))
            .collect(),
    };
    Ok(Some(Arc::new(Identity {
        user: Arc::new(user),
        audiences: status.audiences.unwrap_or_default(),
    })))
}

/// About how much memory an answer takes.
pub(super) fn bytes(reviewed: &ReviewResult) -> usize {
    let of = |text: &String| size_of::<String>() + text.len();
    match reviewed {
        Err(error) => error.len(),
        Ok(None) => 0,
        Ok(Some(identity)) => {
            size_of::<Identity>()
                + crate::users::bytes(&identity.user)
                + identity.audiences.iter().map(of).sum::<usize>()
        }
    }
}
