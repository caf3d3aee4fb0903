//! Authentication: an ordered list of authenticators, of which the first that returns a user decides.

use std::sync::{Arc, LazyLock};

use apiloom_meta::ApiError;
use apiloom_meta::field::echoed;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use super::answer::{Answer, BoxError, aggregate};
use super::credential_headers::CredentialHeaders;
use super::credentials::{Connection, Credentials, unauthorized};
use crate::UserInfo;

/// Authenticates requests by one kind of credentials.
///
/// Authenticators run in order until one returns a user: first the server's own (its administrator's token), then
/// those of the builder (`Builder::authenticator`) in the order they were
/// added. A request without a user is anonymous if it has no credentials, and refused with 401 if it has a bearer
/// token or if an authenticator failed.
///
/// A client certificate is a credential only for an authenticator of the program: no authenticator of the server reads it.
/// What TLS has checked of it is said at [`Connection::certificates`].
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Arc;
///
/// use apiloom_registry::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
///
/// /// Users by their certificates in DER form, which are known beforehand. The client has proved that it has the key, and
/// /// the whole certificate is compared: its issuer and its names do not matter.
/// struct UsersByCertificate(HashMap<Vec<u8>, Arc<UserInfo>>);
///
/// impl Authenticator for UsersByCertificate {
///     fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
///         let certificate = credentials.connection().certificates.first();
///         let user = certificate.and_then(|certificate| self.0.get(certificate.as_ref()));
///         // Another certificate is no error: the client may have a token as well.
///         Answer::Now(Ok(user.cloned()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an authenticator",
    note = "implement `apiloom::server::auth::Authenticator` for it"
)]
pub trait Authenticator: Send + Sync + 'static {
    /// The user of a request; `None` without credentials, or if they are of another kind. Called for every request,
    /// before anything but its path is read; must not block. The group `system:authenticated` is added to the user's
    /// groups if it is missing.
    ///
    /// # Errors
    /// If the credentials are of this kind but invalid, or cannot be verified. The next authenticator runs; if none returns a user, the
    /// errors are logged, and the client gets 401 without them.
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication>;

    /// The headers that are credentials for it, beside `Authorization`: a request whose user is known has them no more. Asked once. Default:
    /// none.
    fn headers(&self) -> CredentialHeaders {
        CredentialHeaders::default()
    }

    /// Whether a request without credentials for this path may be one of the anonymous user; all authenticators must agree, or it is refused
    /// with 401. Default: true.
    fn allows_anonymous(&self, path: &str) -> bool {
        let _ = path;
        true
    }

    /// The audiences of a token whose user it has returned, among those that a review asks for ([`Credentials::audiences`]).
    /// Default: `None`, for tokens that name no audience. They are for this server.
    fn audiences(&self, credentials: &Credentials<'_>) -> Option<Vec<String>> {
        let _ = credentials;
        None
    }
}

/// One that others have too, such as a task that keeps it up to date.
impl<A: Authenticator> Authenticator for Arc<A> {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        (**self).authenticate(credentials)
    }

    fn headers(&self) -> CredentialHeaders {
        (**self).headers()
    }

    fn allows_anonymous(&self, path: &str) -> bool {
        (**self).allows_anonymous(path)
    }

    fn audiences(&self, credentials: &Credentials<'_>) -> Option<Vec<String>> {
        (**self).audiences(credentials)
    }
}

/// The result of an [`Authenticator`]. The user is shared, so that a prepared one needs no allocation per request.
pub type Authentication = Result<Option<Arc<UserInfo>>, BoxError>;

/// An authenticated user, the anonymous one, or one that an authenticated user may be. Only this module can construct it.
#[derive(Clone, Debug)]
pub struct Authenticated(Arc<UserInfo>);

/// The name of the anonymous user.
pub(super) const ANONYMOUS: &str = "system:anonymous";
/// The groups of anonymous users and of all others.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(super) const AUTHENTICATED: &str = "system:authenticated";

impl Authenticated {
    /// The user.
    pub fn user(&self) -> &Arc<UserInfo> {
        &self.0
    }

    /// Whether the request had no credentials.
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

    /// The user that another one may be.
    pub(super) fn impersonated(user: Arc<UserInfo>) -> Self {
        Self(user)
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
pub struct Authenticators {
    all: Vec<Box<dyn Authenticator>>,
    headers: CredentialHeaders,
}

impl Authenticators {
    /// Appends an authenticator.
    pub fn push(&mut self, authenticator: impl Authenticator) {
        self.headers.extend(authenticator.headers());
        self.all.push(Box::new(authenticator));
    }

    /// Prepends an authenticator.
    pub fn push_first(&mut self, authenticator: impl Authenticator) {
        self.headers.extend(authenticator.headers());
        self.all.insert(0, Box::new(authenticator));
    }

    /// Takes the credentials out of the headers of a request for a path and authenticates them. Requests without any are anonymous;
    /// invalid ones are an error, never anonymous. Headers of proxies are removed whether they were believed or not.
    ///
    /// # Errors
    /// Unauthorized.
    pub async fn authenticate(
        &self,
        connection: &Connection,
        path: &str,
        headers: &mut HeaderMap,
        deadline: Instant,
    ) -> Result<Authenticated, ApiError> {
        let credentials = Credentials::take(connection, headers)?;
        let (known, errors) = self.ask(&credentials, deadline).await;
        let has_token = credentials.token().is_some();
        self.headers.remove_from(headers);
        if let Some((user, _)) = known {
            return Ok(Authenticated::known(user));
        }
        for error in &errors {
            tracing::error!(error = ?echoed(error), "unable to authenticate the request");
        }
        if has_token || !errors.is_empty() {
            return Err(unauthorized());
        }
        if !self.all.iter().all(|one| one.allows_anonymous(path)) {
            return Err(unauthorized());
        }
        Ok(Authenticated::anonymous())
    }

    /// What the authenticators say of a token, with these audiences or, if there are none, with those of this server. Without an
    /// audience in the answer the token names none.
    pub(super) async fn review(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        deadline: Instant,
    ) -> TokenVerdict {
        let connection = Connection::in_process();
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::try_from(format!("Bearer {token}")) {
            headers.insert(AUTHORIZATION, value);
        }
        let credentials = match Credentials::take(&connection, &mut headers) {
            Ok(credentials) if credentials.token().is_some() => credentials,
            Ok(_) | Err(_) => return TokenVerdict::default(),
        };
        let credentials = credentials.for_audiences(audiences);
        let (known, errors) = self.ask(&credentials, deadline).await;
        let identity = known.map(|(user, authenticator)| {
            let user = Arc::clone(Authenticated::known(user).user());
            (user, authenticator.audiences(&credentials))
        });
        TokenVerdict {
            identity,
            error: (!errors.is_empty()).then(|| aggregate(&errors)),
        }
    }

    /// The user of credentials with the authenticator that knows it, and the errors of those before that.
    async fn ask(
        &self,
        credentials: &Credentials<'_>,
        deadline: Instant,
    ) -> (Option<(Arc<UserInfo>, &dyn Authenticator)>, Vec<String>) {
        let mut errors = Vec::new();
        for authenticator in &self.all {
            let answer = authenticator.authenticate(credentials).by(deadline).await;
            let error = match answer {
                Ok(Ok(Some(user))) => return (Some((user, &**authenticator)), errors),
                Ok(Ok(None)) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "an authenticator is too slow".to_owned(),
            };
            errors.push(error);
        }
        (None, errors)
    }
}

/// What the authenticators say of a token.
#[derive(Clone, Debug, Default)]
pub struct TokenVerdict {
    /// The user, and the audiences of the token among those that were asked for; `None` if it names none.
    pub identity: Option<(Arc<UserInfo>, Option<Vec<String>>)>,
    /// The errors of authenticators that know such a token.
    pub error: Option<String>,
}
