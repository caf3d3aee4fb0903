//! Built-in authorization rules: `system:masters` may do everything, all users may read health and version.

use super::answer::Answer;
use super::authorize::{Attributes, Authorization, Authorizer, Decision};
use super::token::MASTERS;

/// Allows everything to the group `system:masters`.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        allow_if(attributes.user.groups.iter().any(|group| group == MASTERS))
    }
}

/// Allows all users, including anonymous ones, to read the paths of the role `system:public-info-viewer`.
pub struct PublicInfo;

impl Authorizer for PublicInfo {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        allow_if(attributes.verb == "get" && is_public(attributes.path))
    }
}

fn allow_if(is_allowed: bool) -> Answer<'static, Authorization> {
    Answer::Now(Ok(if is_allowed {
        Decision::Allow
    } else {
        Decision::NoOpinion
    }))
}

fn is_public(path: &str) -> bool {
    matches!(path.trim_end_matches('/'), "/version")
        || ["/healthz", "/livez", "/readyz"].iter().any(|root| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}
