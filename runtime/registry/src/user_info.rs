//! Who sent a request.

use std::collections::BTreeMap;

/// The user of a request: `UserInfo` of `authentication.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// Name, unique among the active users; `system:anonymous` for a request without credentials.
    pub name: String,
    /// Unique id of the user over time: another user of the same name has another uid. Empty if the authenticator
    /// gives none.
    pub uid: String,
    /// Names of the groups that the user belongs to.
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator, by keys in lower case, such as `example.com/scopes`.
    pub extra: BTreeMap<String, Vec<String>>,
}
