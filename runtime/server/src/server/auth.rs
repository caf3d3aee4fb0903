//! Who is asking, and whether they may: one administrator by bearer token, everybody else may read health and version.

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, StatusReason};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::http::RequestInfo;
use crate::registry::UserInfo;

/// The one token that is known, as its digest: comparing digests takes the same time whatever is presented.
pub(super) struct Authenticator {
    admin_token: digest::Digest,
}

/// A user whose credentials were checked. Only [`Authenticator::authenticate`] makes one.
#[derive(Clone, Debug)]
pub(super) struct Authenticated(pub(super) UserInfo);

impl Authenticated {
    /// Whether no credentials were presented.
    pub(super) fn is_anonymous(&self) -> bool {
        self.0.name == ANONYMOUS
    }
}

/// The name of a user without credentials.
const ANONYMOUS: &str = "system:anonymous";

impl Authenticator {
    pub(super) fn new(admin_token: &str) -> Self {
        Self {
            admin_token: digest::digest(&digest::SHA256, admin_token.as_bytes()),
        }
    }

    /// Takes the credentials out of the headers. None at all is the anonymous user; wrong ones are an error, never
    /// anonymous.
    pub(super) fn authenticate(&self, headers: &mut HeaderMap) -> Result<Authenticated, ApiError> {
        let presented = headers.remove(AUTHORIZATION);
        let Some(token) = presented
            .as_ref()
            .and_then(|value| bearer(value.as_bytes()))
        else {
            return Ok(Authenticated(UserInfo {
                name: ANONYMOUS.to_owned(),
                groups: vec!["system:unauthenticated".to_owned()],
            }));
        };
        let digest = digest::digest(&digest::SHA256, token);
        if verify_slices_are_equal(digest.as_ref(), self.admin_token.as_ref()).is_err() {
            return Err(ApiError::new(StatusReason::Unauthorized, "Unauthorized"));
        }
        Ok(Authenticated(UserInfo {
            name: "kubernetes-admin".to_owned(),
            groups: vec![
                "system:masters".to_owned(),
                "system:authenticated".to_owned(),
            ],
        }))
    }
}

/// The token of a `Bearer` header, which may be any bytes; the scheme in any letter case, an empty token is none.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = header.split_at(space);
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

/// Whether the user may do what the request asks; the error is the 403 of RBAC's words.
pub(super) fn authorize(user: &Authenticated, info: &RequestInfo) -> Result<(), ApiError> {
    let Authenticated(user) = user;
    if user.groups.iter().any(|group| group == "system:masters")
        || (is_public(&info.path) && info.verb == "get")
    {
        return Ok(());
    }
    let who = html_escape(&user.name);
    if !info.is_resource_request {
        let path = html_escape(&echoed(&info.path));
        let message = format!(
            "forbidden: User {} cannot {} path {}",
            go_quote(&who),
            echoed(&info.verb),
            go_quote(&path)
        );
        return Err(
            ApiError::new(StatusReason::Forbidden, message).with_details(Default::default())
        );
    }
    let (group, name) = (echoed(&info.api_group), echoed(&info.name));
    let plural = echoed(&info.resource);
    let resource = match info.subresource.as_str() {
        "" => plural.clone(),
        subresource => format!("{plural}/{}", echoed(subresource)).into(),
    };
    let scope = if info.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {}", go_quote(&echoed(&info.namespace)))
    };
    let why = format!(
        "User {} cannot {} resource {} in API group {} {scope}",
        go_quote(&who),
        info.verb,
        go_quote(&resource),
        go_quote(&group)
    );
    Err(ApiError::forbidden(
        &GroupResource::new(&*group, &*plural),
        &name,
        &why,
    ))
}

/// What `system:public-info-viewer` lets everybody read.
fn is_public(path: &str) -> bool {
    matches!(path.trim_end_matches('/'), "/version")
        || ["/healthz", "/livez", "/readyz"].iter().any(|root| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

fn html_escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(header: Option<&str>) -> Result<String, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.insert(AUTHORIZATION, value);
        }
        let user = Authenticator::new("right").authenticate(&mut headers)?;
        assert!(headers.is_empty(), "credentials go no further");
        Ok(user.0.name)
    }

    #[test]
    fn a_wrong_token_is_never_anonymous() {
        assert_eq!(user(Some("Bearer right")).unwrap(), "kubernetes-admin");
        assert_eq!(user(Some("bearer right")).unwrap(), "kubernetes-admin");
        assert_eq!(
            user(Some("Bearer wrong")).unwrap_err().reason,
            Some(StatusReason::Unauthorized)
        );
        // Issue 9, point 15.
        for wrong in [
            "Bearer schl\u{fc}ssel",
            "bearer \u{fc}",
            "Bearer \u{fffd} right",
        ] {
            let error = user(Some(wrong)).unwrap_err();
            assert_eq!(error.reason, Some(StatusReason::Unauthorized), "{wrong}");
        }
        for none in [
            None,
            Some("Bearer "),
            Some("Bearer"),
            Some("Basic abc"),
            Some("Basic \u{fc}"),
        ] {
            assert_eq!(user(none).unwrap(), "system:anonymous");
        }
    }

    #[test]
    fn everybody_reads_health_and_version_and_nothing_else() {
        for path in [
            "/healthz",
            "/livez/ping",
            "/readyz",
            "/version",
            "/version/",
        ] {
            assert!(is_public(path), "{path}");
        }
        for path in ["/", "/healthzz", "/metrics", "/api", "/versions"] {
            assert!(!is_public(path), "{path}");
        }
    }
}
