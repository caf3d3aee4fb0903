//! What is known of users beside their names.

use apiloom_kinds::authentication::v1::UserInfo as ShownUser;
use apiloom_registry::auth::UserInfo;

/// The extra attribute that says by what the user was identified.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A user as reviews show it.
pub(crate) fn shown(user: &UserInfo) -> ShownUser {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ShownUser {
        username: text(&user.name),
        uid: text(&user.uid),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    }
}

/// About how much memory a user takes.
pub(crate) fn bytes(user: &UserInfo) -> usize {
    let of = |text: &String| size_of::<String>() + text.len();
    let extra = user
        .extra
        .iter()
        .map(|(key, values)| of(key) + values.iter().map(of).sum::<usize>());
    let groups = user.groups.iter().map(of);
    of(&user.name) + of(&user.uid) + groups.sum::<usize>() + extra.sum::<usize>()
}
