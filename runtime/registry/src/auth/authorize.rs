//! Authorization: an ordered list of authorizers, of which the first that allows or denies decides.

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, StatusReason};
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::answer::{Answer, BoxError, aggregate};
use super::permissions::Permissions;
use super::reason::Reason;
use crate::UserInfo;

/// Decides whether a user may perform a request.
///
/// Authorizers run in order until one allows or denies: first the rule that `system:masters` may do everything, then
/// those of the builder (`Builder::authorizer`) in the order they were added,
/// then the rule that all users may read health and version. A request without a decision is denied.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an authorizer",
    note = "implement `apiloom::server::auth::Authorizer` for it"
)]
pub trait Authorizer: Send + Sync + 'static {
    /// Decides about one request. Called for every request, before its body is read; must not block.
    ///
    /// # Errors
    /// If it cannot decide. The error is logged, and the next authorizer runs; if none decides, the response is 500
    /// with the text of the error, as in kube-apiserver. If the request's deadline passes before, the response is 504.
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization>;

    /// Whether it also says who may read health and version: then the rule that all users may is left out. Default no.
    fn is_policy(&self) -> bool {
        false
    }

    /// Adds what it allows a user in a namespace (empty: outside of all), for lists such as that of `kubectl auth can-i --list`. Default:
    /// that it cannot say, so that the list is incomplete.
    fn permissions(&self, user: &UserInfo, namespace: &str, permissions: &mut Permissions) {
        let _ = (user, namespace);
        permissions.is_incomplete = true;
    }
}

/// The result of an [`Authorizer`].
pub type Authorization = Result<Decision, BoxError>;

/// The decision of an [`Authorizer`]. Its reason may be empty: of a request that is forbidden the client sees it, of all others an access
/// review does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allow(Reason),
    /// The request is forbidden (403).
    Deny(Reason),
    /// The next authorizer decides. If none does, the request is forbidden with the reasons of all.
    NoOpinion(Reason),
}

impl Decision {
    /// Allows the request, without a reason.
    pub const fn allow() -> Self {
        Self::Allow(Reason::NONE)
    }

    /// Forbids the request for this reason.
    pub fn deny(reason: impl Into<Reason>) -> Self {
        Self::Deny(reason.into())
    }

    /// Leaves the decision to the next authorizer, without a reason.
    pub const fn no_opinion() -> Self {
        Self::NoOpinion(Reason::NONE)
    }
}

/// Attributes of a request. The verb, which depends on the query too, is the one that is executed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Attributes<'a> {
    /// The user of the request.
    pub user: &'a UserInfo,
    /// For resources the API's verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`), for other paths the HTTP method in lower case.
    pub verb: &'a str,
    /// Whether the request is for a resource; otherwise only `user`, `verb` and `path` are set.
    pub is_resource_request: bool,
    /// The group; empty for core.
    pub api_group: &'a str,
    /// The version.
    pub api_version: &'a str,
    /// The resource: its plural name.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for cluster-scoped resources and for all namespaces.
    pub namespace: &'a str,
    /// The name of the object, or the one that the field selector of a list or a watch requires; empty for others.
    pub name: &'a str,
    /// The decoded path.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// Attributes of a request that is not for a resource.
    pub fn of_path(user: &'a UserInfo, verb: &'a str, path: &'a str) -> Self {
        Self {
            user,
            verb,
            is_resource_request: false,
            api_group: "",
            api_version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path,
        }
    }
}

/// Whether a path of a rule, of permissions or of an audit policy, is this one, or ends with `*` and begins it.
pub fn covers_path(path: &str, requested: &str) -> bool {
    path == requested || path.ends_with('*') && requested.starts_with(path.trim_end_matches('*'))
}

/// What the authorizers of a server say of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether one of them allowed it.
    pub is_allowed: bool,
    /// Whether one of them denied it. Without both, none had an opinion.
    pub is_denied: bool,
    /// The reason of the one that decided; without one, those of all, one in a line. Empty if there is none.
    pub reason: Reason,
    /// Why they could not decide; none if one of them did.
    pub error: Option<String>,
}

/// Why a request is not authorized.
#[derive(Debug)]
pub enum Refusal {
    /// It was denied.
    Forbidden(ApiError),
    /// No authorizer decided, and one failed with this error.
    Failed(String),
    /// The deadline passed.
    OutOfTime,
}

/// The authorizers of a server, in order.
#[derive(Default)]
pub struct Authorizers(Vec<Box<dyn Authorizer>>);

impl Authorizers {
    /// Appends an authorizer.
    pub fn push(&mut self, authorizer: impl Authorizer) {
        self.0.push(Box::new(authorizer));
    }

    /// Whether one of them says who may read health and version.
    pub fn has_policy(&self) -> bool {
        self.0.iter().any(|authorizer| authorizer.is_policy())
    }

    /// Appends other authorizers.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Runs the authorizers until one decides.
    ///
    /// # Errors
    /// If the deadline passes before.
    pub async fn judge(
        &self,
        attributes: &Attributes<'_>,
        deadline: Instant,
    ) -> Result<Verdict, Elapsed> {
        let mut failures: Vec<String> = Vec::new();
        let mut reasons: Vec<Reason> = Vec::new();
        for authorizer in &self.0 {
            let (is_allowed, reason) = match authorizer.authorize(attributes).by(deadline).await? {
                Ok(Decision::Allow(reason)) => (true, reason),
                Ok(Decision::Deny(reason)) => (false, reason),
                Ok(Decision::NoOpinion(reason)) => {
                    reasons.extend(Some(reason).filter(|reason| !reason.is_empty()));
                    continue;
                }
                Err(error) => {
                    failures.push(error.to_string());
                    continue;
                }
            };
            return Ok(Verdict {
                is_allowed,
                is_denied: !is_allowed,
                reason,
                error: None,
            });
        }
        Ok(Verdict {
            reason: Reason::lines(reasons),
            error: (!failures.is_empty()).then(|| aggregate(&failures)),
            ..Verdict::default()
        })
    }

    /// What the authorizers allow a user in a namespace.
    pub fn permissions(&self, user: &UserInfo, namespace: &str) -> Permissions {
        let mut permissions = Permissions::default();
        for authorizer in &self.0 {
            authorizer.permissions(user, namespace, &mut permissions);
        }
        permissions
    }

    /// Authorizes a request, as its verdict says.
    ///
    /// # Errors
    /// A request that is not allowed.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        let judged = self.judge(attributes, deadline).await;
        let verdict = judged.map_err(|_| Refusal::OutOfTime)?;
        verdict.enforce(attributes)
    }
}

impl Verdict {
    /// Refuses a request with these attributes, unless it is allowed.
    ///
    /// # Errors
    /// A request that is not allowed.
    pub fn enforce(self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        match self.error {
            _ if self.is_allowed => Ok(()),
            Some(error) => Err(Refusal::Failed(error)),
            None => Err(Refusal::Forbidden(forbidden(attributes, &self.reason))),
        }
    }
}

/// The 403 with the message of kube-apiserver.
pub(super) fn forbidden(attributes: &Attributes<'_>, reason: &Reason) -> ApiError {
    let user = html_escape(&attributes.user.name);
    let reason = match reason.to_string() {
        reason if reason.is_empty() => reason,
        reason => format!(": {reason}"),
    };
    if !attributes.is_resource_request {
        let path = html_escape(&echoed(attributes.path));
        let message = format!(
            "forbidden: User {} cannot {} path {}{reason}",
            go_quote(&user),
            echoed(attributes.verb),
            go_quote(&path)
        );
        return ApiError::new(StatusReason::Forbidden, message).with_details(Default::default());
    }
    let (group, name) = (echoed(attributes.api_group), echoed(attributes.name));
    let plural = echoed(attributes.resource);
    let resource = match attributes.subresource {
        "" => plural.clone(),
        subresource => format!("{plural}/{}", echoed(subresource)).into(),
    };
    let scope = if attributes.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!(
            "in the namespace {}",
            go_quote(&echoed(attributes.namespace))
        )
    };
    let why = format!(
        "User {} cannot {} resource {} in API group {} {scope}{reason}",
        go_quote(&user),
        attributes.verb,
        go_quote(&resource),
        go_quote(&group)
    );
    ApiError::forbidden(&GroupResource::new(&*group, &*plural), &name, &why)
}

fn html_escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
