//! Users whose tokens were checked a moment ago.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_registry::auth::UserInfo;

use crate::confirmations::{Confirmations, hash};
use crate::now::now;
use crate::users::bytes;

/// For how long a token is not checked again, as in kube-apiserver: so late may a key that is gone, and a changed group of a distributed
/// claim, be seen.
const KEPT: Duration = Duration::from_secs(10);

/// The most bytes of a user that is kept: groups may come from elsewhere, and expressions may make more of them than a token has.
const MAX_USER_BYTES: usize = 16 * 1024;

/// Users by their tokens, of all issuers of a configuration.
#[derive(Default)]
pub(super) struct KnownUsers(Confirmations<Known>);

#[derive(Clone)]
struct Known {
    user: Arc<UserInfo>,
    until: Instant,
    /// Of the token, in seconds since 1970.
    expiry: f64,
}

impl std::fmt::Debug for KnownUsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KnownUsers").finish_non_exhaustive()
    }
}

impl KnownUsers {
    /// The user of a token.
    pub(super) fn get(&self, token: &[u8]) -> Option<Arc<UserInfo>> {
        let known = self.0.get(&hash(token))?;
        let is_valid = known.until > Instant::now() && known.expiry >= now();
        is_valid.then_some(known.user)
    }

    /// Keeps the user of a token that ends at `expiry`, unless it is large.
    pub(super) fn insert(&self, token: &[u8], user: &Arc<UserInfo>, expiry: f64) {
        if bytes(user) > MAX_USER_BYTES {
            return;
        }
        let known = Known {
            user: Arc::clone(user),
            until: Instant::now() + KEPT,
            expiry,
        };
        self.0.insert(hash(token), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirmations::MAX_KNOWN;

    #[test]
    fn what_is_known_of_users_is_bounded() {
        let known = KnownUsers::default();
        let user = |groups: usize| {
            Arc::new(UserInfo {
                groups: vec!["group".to_owned(); groups],
                ..UserInfo::default()
            })
        };
        known.insert(b"small", &user(10), f64::MAX);
        assert!(known.get(b"small").is_some() && known.get(b"other").is_none());
        known.insert(b"large", &user(1_000), f64::MAX);
        assert!(known.get(b"large").is_none());
        known.insert(b"ended", &user(1), now() - 1.0);
        assert!(known.get(b"ended").is_none());
        for token in 0..3 * MAX_KNOWN {
            known.insert(&token.to_ne_bytes(), &user(1), f64::MAX);
            assert!(known.0.len() <= MAX_KNOWN);
        }
    }
}
