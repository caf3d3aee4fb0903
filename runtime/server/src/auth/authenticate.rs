//! Authentication: an ordered list of authenticators, and the user that one of them answers.

use std::sync::{Arc, LazyLock};

use apiloom_meta::ApiError;
use apiloom_meta::field::echoed;
use http::HeaderMap;
use tokio::time::Instant;

use super::answer::{Answer, BoxError};
use super::credentials::{Connection, Credentials, unauthorized};
use crate::registry::UserInfo;

/// Finds out who sends a request, by one kind of credentials.
///
/// Authenticators are asked in order until one answers a user: those of the server (its administrator's token), then those
/// given to the builder ([`Builder::authenticator`](crate::server::Builder::authenticator)), as they were added. A request
/// without user is anonymous if it has no credentials, and refused with 401 if it has a bearer token or if an authenticator
/// failed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an authenticator",
    note = "implement `apiloom::server::auth::Authenticator` for it"
)]
pub trait Authenticator: Send + Sync + 'static {
    /// Answers the user of a request; `None` for credentials of another kind, or none at all. It is called for every
    /// request before anything but its path is read, and must not block. The group `system:authenticated` is added to
    /// the user's groups, and need not be among them.
    ///
    /// # Errors
    /// When the credentials are of this kind and bad, or cannot be checked. The error is logged and the next authenticator
    /// is asked; if none answers a user, the client is told no more than 401.
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication>;
}

/// The answer of an [`Authenticator`]. The user is shared, so that one who is known beforehand costs nothing per request.
pub type Authentication = Result<Option<Arc<UserInfo>>, BoxError>;

/// A user whose credentials were checked, or the anonymous one. Only authentication makes one.
#[derive(Clone, Debug)]
pub struct Authenticated(Arc<UserInfo>);

/// The name of a user without credentials.
const ANONYMOUS: &str = "system:anonymous";
/// The group of users without credentials, and that of all others.
const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(super) const AUTHENTICATED: &str = "system:authenticated";

impl Authenticated {
    /// The user.
    pub fn user(&self) -> &Arc<UserInfo> {
        &self.0
    }

    /// Whether no credentials were presented.
    pub fn is_anonymous(&self) -> bool {
        self.0.name == ANONYMOUS
    }

    fn anonymous() -> Self {
        static USER: LazyLock<Arc<UserInfo>> = LazyLock::new(|| {
            Arc::new(UserInfo {
                name: ANONYMOUS.to_owned(),
                groups: vec![UNAUTHENTICATED.to_owned()],
                ..UserInfo::default()
            })
        });
        Self(Arc::clone(&USER))
    }

    fn known(mut user: Arc<UserInfo>) -> Self {
        let has_group = |name: &str| user.groups.iter().any(|group| group == name);
        if user.name != ANONYMOUS && !has_group(AUTHENTICATED) && !has_group(UNAUTHENTICATED) {
            let groups = &mut Arc::make_mut(&mut user).groups;
            groups.push(AUTHENTICATED.to_owned());
        }
        Self(user)
    }
}

/// The authenticators of a server, in order.
#[derive(Default)]
pub(crate) struct Authenticators(Vec<Box<dyn Authenticator>>);

impl Authenticators {
    /// Adds one behind those that are there.
    pub(crate) fn push(&mut self, authenticator: impl Authenticator) {
        self.0.push(Box::new(authenticator));
    }

    /// Adds one before those that are there.
    pub(crate) fn push_first(&mut self, authenticator: impl Authenticator) {
        self.0.insert(0, Box::new(authenticator));
    }

    /// Takes the credentials out of the headers and finds out whose they are. None at all are the anonymous user's; wrong
    /// ones are an error, never anonymous.
    ///
    /// # Errors
    /// Unauthorized.
    pub(crate) async fn authenticate(
        &self,
        connection: &Connection,
        headers: &mut HeaderMap,
        deadline: Instant,
    ) -> Result<Authenticated, ApiError> {
        let credentials = Credentials::take(connection, headers)?;
        let mut has_failed = credentials.token().is_some();
        for authenticator in &self.0 {
            match authenticator.authenticate(&credentials).by(deadline).await {
                Ok(Ok(Some(user))) => return Ok(Authenticated::known(user)),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    let error = error.to_string();
                    tracing::error!(error = ?echoed(&error), "unable to authenticate the request");
                    has_failed = true;
                }
                Err(_) => {
                    tracing::error!(
                        "unable to authenticate the request: an authenticator is too slow"
                    );
                    has_failed = true;
                }
            }
        }
        if has_failed {
            return Err(unauthorized());
        }
        Ok(Authenticated::anonymous())
    }
}
