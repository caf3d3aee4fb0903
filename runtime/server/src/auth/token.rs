//! Users by bearer tokens that the server itself made: its administrator.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;

use super::answer::Answer;
use super::authenticate::{Authentication, Authenticator};
use super::credentials::Credentials;
use crate::registry::UserInfo;

/// The group that may do everything.
pub(super) const MASTERS: &str = "system:masters";

/// One token and its user. The token is kept as its digest: comparing digests takes the same time for every token.
pub(crate) struct StaticToken {
    digest: digest::Digest,
    user: Arc<UserInfo>,
}

impl StaticToken {
    /// The token of the administrator.
    pub(crate) fn of_admin(token: &str) -> Self {
        Self::new(token, "kubernetes-admin")
    }

    fn new(token: &str, name: &str) -> Self {
        let user = UserInfo {
            name: name.to_owned(),
            groups: vec![MASTERS.to_owned(), "system:authenticated".to_owned()],
            ..UserInfo::default()
        };
        Self {
            digest: digest::digest(&digest::SHA256, token.as_bytes()),
            user: Arc::new(user),
        }
    }
}

impl Authenticator for StaticToken {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let is_known = |token: &[u8]| {
            let digest = digest::digest(&digest::SHA256, token);
            verify_slices_are_equal(digest.as_ref(), self.digest.as_ref()).is_ok()
        };
        let is_user = credentials.token().is_some_and(is_known);
        Answer::Now(Ok(is_user.then(|| Arc::clone(&self.user))))
    }
}
