//! SubjectAccessReviews as webhooks get them and answer them.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_registry::auth::{Attributes, Authorization, Decision};
use apiloom_server::webhook::status_of_review;
use serde::{Deserialize, Serialize};

/// The version of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// What a webhook says of a request, or why that is not known.
pub(super) type JudgementResult = Result<Arc<Judgement>, Arc<str>>;

/// What a webhook says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) is_allowed: bool,
    pub(super) is_denied: bool,
    pub(super) reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: BTreeMap<(), ()>,
    spec: Spec<'a>,
    status: OpenStatus,
}

/// A status as a question has it.
#[derive(Serialize)]
struct OpenStatus {
    allowed: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<ResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<PathAttributes<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    /// The name of the groups in v1beta1.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    group: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Serialize)]
struct ResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct PathAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
}

impl ReviewVersion {
    /// That of a flag.
    ///
    /// # Errors
    /// For another one.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        match name {
            "v1" => Ok(Self::V1),
            "v1beta1" => Ok(Self::V1Beta1),
            _ => Err(format!(
                "unsupported webhook authorizer version {name:?}, supported versions are \"v1\", \"v1beta1\""
            )),
        }
    }

    /// The question whether a request is allowed, as JSON.
    pub(super) fn review(self, attributes: &Attributes<'_>) -> Vec<u8> {
        let user = attributes.user;
        let (api_version, groups, group) = match self {
            Self::V1 => ("authorization.k8s.io/v1", &*user.groups, &[][..]),
            Self::V1Beta1 => ("authorization.k8s.io/v1beta1", &[][..], &*user.groups),
        };
        let is_resource = attributes.is_resource_request;
        let review = Review {
            kind: "SubjectAccessReview",
            api_version,
            metadata: BTreeMap::new(),
            spec: Spec {
                resource_attributes: is_resource.then_some(ResourceAttributes {
                    namespace: attributes.namespace,
                    verb: attributes.verb,
                    group: attributes.api_group,
                    version: attributes.api_version,
                    resource: attributes.resource,
                    subresource: attributes.subresource,
                    name: attributes.name,
                }),
                non_resource_attributes: (!is_resource).then_some(PathAttributes {
                    path: attributes.path,
                    verb: attributes.verb,
                }),
                user: &user.name,
                groups,
                group,
                extra: &user.extra,
                uid: &user.uid,
            },
            status: OpenStatus { allowed: false },
        };
        let mut json = Vec::new();
        apiloom_meta::codec::Encoder::append_json(&review, &mut json);
        json
    }
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    allowed: Option<bool>,
    #[serde(default)]
    denied: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

/// What an answer says.
///
/// # Errors
/// If it is no SubjectAccessReview.
pub(super) fn judged(body: &[u8]) -> Result<Judgement, String> {
    let status: Status = status_of_review(body, "SubjectAccessReview", "authorization.k8s.io")?;
    Ok(Judgement {
        is_allowed: status.allowed.unwrap_or_default(),
        is_denied: status.denied.unwrap_or_default(),
        reason: status.reason.unwrap_or_default(),
    })
}

/// The decision of a judgement. An error is no opinion.
///
/// # Errors
/// What is not known.
pub(super) fn decision(judged: &JudgementResult) -> Authorization {
    let judgement = match judged {
        Ok(judgement) => judgement,
        Err(error) => return Err((&**error).into()),
    };
    let reason = judgement.reason.as_str().into();
    if judgement.is_denied && judgement.is_allowed {
        tracing::error!("webhook subject access review returned both allow and deny response");
    }
    Ok(if judgement.is_denied {
        Decision::Deny(reason)
    } else if judgement.is_allowed {
        Decision::Allow(reason)
    } else {
        Decision::NoOpinion(reason)
    })
}

/// About how much memory an answer takes.
pub(super) fn bytes(judged: &JudgementResult) -> usize {
    match judged {
        Ok(judgement) => size_of::<Judgement>() + judgement.reason.len(),
        Err(error) => error.len(),
    }
}
