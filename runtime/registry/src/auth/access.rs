//! The authenticators and authorizers of a server, and the way to them for code that is made before they are complete.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use apiloom_meta::{ApiError, StatusReason};
use tokio::time::Instant;

use super::authenticate::{Authenticators, TokenVerdict};
use super::authorize::{Attributes, Authorizers, Verdict};
use super::permissions::Permissions;
use crate::UserInfo;

/// For how long a question waits for its authorizers: as long as a request may take.
const LONGEST: Duration = Duration::from_secs(60);

/// The authenticators and authorizers of a server.
#[derive(Default)]
pub struct Auth {
    /// Those that find out who is asking.
    pub authenticators: Authenticators,
    /// Those that decide who may.
    pub authorizers: Authorizers,
}

/// Asks the authenticators and authorizers of a server, for handlers of reviews, admission plugins and the like: they are made before the server is
/// complete, and can ask once it serves. Clones ask the same server.
#[derive(Clone, Default)]
pub struct Access(Arc<OnceLock<Weak<Auth>>>);

impl Access {
    /// Says whose are asked. Only the first call counts.
    pub fn connect(&self, auth: &Arc<Auth>) {
        let _ = self.0.set(Arc::downgrade(auth));
    }

    fn auth(&self) -> Result<Arc<Auth>, ApiError> {
        let auth = self.0.get().and_then(Weak::upgrade);
        auth.ok_or_else(|| ApiError::internal("the server does not serve"))
    }

    /// What the authenticators say of a bearer token, which must be for one of these audiences, or for this server if there are none.
    ///
    /// # Errors
    /// InternalError before the server serves.
    pub async fn review_token(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<TokenVerdict, ApiError> {
        let auth = self.auth()?;
        let deadline = Instant::now() + LONGEST;
        Ok(auth.authenticators.review(token, audiences, deadline).await)
    }

    /// What the authorizers allow a user in a namespace.
    ///
    /// # Errors
    /// InternalError before the server serves.
    pub fn permissions(&self, user: &UserInfo, namespace: &str) -> Result<Permissions, ApiError> {
        Ok(self.auth()?.authorizers.permissions(user, namespace))
    }

    /// What the authorizers say of a request.
    ///
    /// # Errors
    /// InternalError before the server serves; Timeout if no authorizer decides within a minute.
    pub async fn judge(&self, attributes: &Attributes<'_>) -> Result<Verdict, ApiError> {
        let auth = self.auth()?;
        let judged = auth.authorizers.judge(attributes, Instant::now() + LONGEST);
        let judged = judged.await;
        judged
            .map_err(|_| ApiError::new(StatusReason::Timeout, "no authorizer has decided in time"))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_connected = self.0.get().is_some();
        f.debug_struct("Access")
            .field("is_connected", &is_connected)
            .finish()
    }
}
