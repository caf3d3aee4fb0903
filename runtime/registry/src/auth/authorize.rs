//! Authorization: an ordered list of authorizers, of which the first that allows or denies decides.

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, StatusReason};
use tokio::time::Instant;

use super::answer::{Answer, BoxError};
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
}

/// The result of an [`Authorizer`].
pub type Authorization = Result<Decision, BoxError>;

/// The decision of an [`Authorizer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is forbidden (403). The reason is shown to the client; it may be empty.
    Deny(String),
    /// The next authorizer decides.
    NoOpinion,
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

    /// Appends other authorizers.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Runs the authorizers until one decides.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        let mut failures: Vec<String> = Vec::new();
        for authorizer in &self.0 {
            let answer = authorizer.authorize(attributes).by(deadline).await;
            match answer.map_err(|_| Refusal::OutOfTime)? {
                Ok(Decision::Allow) => return Ok(()),
                Ok(Decision::Deny(reason)) => {
                    return Err(Refusal::Forbidden(forbidden(attributes, &reason)));
                }
                Ok(Decision::NoOpinion) => {}
                Err(error) => failures.push(error.to_string()),
            }
        }
        if failures.is_empty() {
            return Err(Refusal::Forbidden(forbidden(attributes, "")));
        }
        Err(Refusal::Failed(failures.join(", ")))
    }
}

/// The 403 with the message of kube-apiserver.
fn forbidden(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let user = html_escape(&attributes.user.name);
    let reason = match reason {
        "" => String::new(),
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
