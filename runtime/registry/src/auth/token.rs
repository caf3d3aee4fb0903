//! Authentication by bearer tokens that the server itself generated: for its administrator, and for requests in
//! process.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;

use super::answer::Answer;
use super::authenticate::{AUTHENTICATED, Authentication, Authenticator};
use super::credentials::Credentials;
use crate::UserInfo;

/// The group that may do everything.
pub(super) const MASTERS: &str = "system:masters";

/// One token and its user. Only the token's digest is kept: comparing digests takes the same time for every token.
pub struct StaticToken {
    digest: digest::Digest,
    user: Arc<UserInfo>,
    /// Whether it is accepted only for requests in process.
    in_process: bool,
}

impl StaticToken {
    /// The token of the administrator.
    pub fn of_admin(token: &str) -> Self {
        let user = UserInfo {
            name: "kubernetes-admin".to_owned(),
            ..UserInfo::default()
        };
        Self::new(token, user, false)
    }

    /// The token of the server itself, which clients on the network cannot use.
    pub fn of_loopback(token: &str) -> Self {
        let user = UserInfo {
            name: "system:apiserver".to_owned(),
            uid: uuid::Uuid::new_v4().to_string(),
            ..UserInfo::default()
        };
        Self::new(token, user, true)
    }

    fn new(token: &str, mut user: UserInfo, in_process: bool) -> Self {
        user.groups = [MASTERS, AUTHENTICATED].map(str::to_owned).to_vec();
        Self {
            digest: digest::digest(&digest::SHA256, token.as_bytes()),
            user: Arc::new(user),
            in_process,
        }
    }
}

impl Authenticator for StaticToken {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        if self.in_process && credentials.connection().peer.is_some() {
            return Answer::Now(Ok(None));
        }
        let is_known = |token: &[u8]| {
            let digest = digest::digest(&digest::SHA256, token);
            verify_slices_are_equal(digest.as_ref(), self.digest.as_ref()).is_ok()
        };
        let is_user = credentials.token().is_some_and(is_known);
        Answer::Now(Ok(is_user.then(|| Arc::clone(&self.user))))
    }
}
