//! Built-in authorization rules: `system:masters` may do everything, all users may read health and version.

use super::answer::Answer;
use super::authorize::{Attributes, Authorization, Authorizer, Decision};
use super::permissions::{Permissions, ResourcePermission};
use super::token::MASTERS;
use crate::UserInfo;

/// Allows everything to the group `system:masters`.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        allow_if(is_master(attributes.user))
    }

    fn permissions(&self, user: &UserInfo, _: &str, permissions: &mut Permissions) {
        if is_master(user) {
            let all = || vec!["*".to_owned()];
            permissions.resources.push(ResourcePermission {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                resource_names: Vec::new(),
            });
            permissions.add_paths("*", &["*"]);
        }
    }
}

/// Allows all users, including anonymous ones, to read the paths of the role `system:public-info-viewer`.
pub struct PublicInfo;

impl Authorizer for PublicInfo {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        allow_if(attributes.verb == "get" && is_public(attributes.path))
    }

    fn permissions(&self, _: &UserInfo, _: &str, permissions: &mut Permissions) {
        let paths = HEALTH
            .iter()
            .flat_map(|path| [(*path).to_owned(), format!("{path}/*")]);
        let paths: Vec<String> = paths
            .chain(["/version", "/version/"].map(str::to_owned))
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        permissions.add_paths("get", &paths);
    }
}

/// The paths of health, and all below them.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

fn is_master(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

fn allow_if(is_allowed: bool) -> Answer<'static, Authorization> {
    Answer::Now(Ok(if is_allowed {
        Decision::allow()
    } else {
        Decision::no_opinion()
    }))
}

fn is_public(path: &str) -> bool {
    matches!(path.trim_end_matches('/'), "/version")
        || HEALTH.iter().any(|root| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}
