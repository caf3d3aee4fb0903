//! Who is asking, and whether they may: one administrator by bearer token, everybody else may read health and version.

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, StatusReason};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

use crate::http::RequestInfo;
use crate::registry::UserInfo;

/// The one token that is known, as its digest: comparing digests takes the same time whatever is presented.
pub(crate) struct Authenticator {
    admin_token: digest::Digest,
}

/// A user whose credentials were checked. Only [`Authenticator::authenticate`] makes one.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated(pub(super) UserInfo);

impl Authenticated {
    /// Whether no credentials were presented.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.0.name == ANONYMOUS
    }
}

/// The name of a user without credentials.
const ANONYMOUS: &str = "system:anonymous";

impl Authenticator {
    pub(crate) fn new(admin_token: &str) -> Self {
        Self {
            admin_token: digest::digest(&digest::SHA256, admin_token.as_bytes()),
        }
    }

    /// Takes the credentials out of the headers. None at all is the anonymous user; wrong ones are an error, never
    /// anonymous.
    pub(crate) fn authenticate(&self, headers: &mut HeaderMap) -> Result<Authenticated, ApiError> {
        let presented = headers.remove(AUTHORIZATION);
        let token = presented
            .as_ref()
            .and_then(|value| bearer(value.as_bytes()));
        let of_websocket = match token {
            Some(_) => None,
            None => websocket_token(headers)?,
        };
        let Some(token) = token.or(of_websocket.as_deref().map(str::as_bytes)) else {
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

/// What the subprotocol of WebSocket begins with that carries a token: browsers can send no other credentials.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Takes the token out of the subprotocols that a request for WebSocket offers. There must be another one, for the answer
/// to name.
fn websocket_token(headers: &mut HeaderMap) -> Result<Option<String>, ApiError> {
    let is_websocket = headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_websocket || !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return Ok(None);
    }
    let unauthorized = || ApiError::new(StatusReason::Unauthorized, "Unauthorized");
    let mut tokens = Vec::new();
    let mut others = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let value = value.to_str().map_err(|_| unauthorized())?;
        for protocol in value.split(',').map(str::trim) {
            match protocol.strip_prefix(BEARER_PROTOCOL) {
                Some(token) => tokens.push(token.to_owned()),
                None => others.push(protocol.to_owned()),
            }
        }
    }
    let token = match (&tokens[..], others.is_empty()) {
        ([], _) => return Ok(None),
        ([token], false) => URL_SAFE_NO_PAD.decode(token).ok(),
        _ => None,
    };
    let token = token.and_then(|token| String::from_utf8(token).ok());
    let token = token.ok_or_else(unauthorized)?;
    let others = HeaderValue::from_str(&others.join(",")).map_err(|_| unauthorized())?;
    headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// Whether the user may do what the request asks; the error is the 403 of RBAC's words.
pub(crate) fn authorize(user: &Authenticated, info: &RequestInfo) -> Result<(), ApiError> {
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
    fn a_websocket_brings_its_token_as_a_protocol() {
        // Of "right" and "wrong".
        let (right, wrong) = ("cmlnaHQ", "d3Jvbmc");
        let user = |upgrade: &'static str, protocols: &[String]| {
            let mut headers = HeaderMap::new();
            headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
            for protocols in protocols {
                headers.append(SEC_WEBSOCKET_PROTOCOL, protocols.parse().unwrap());
            }
            let user = Authenticator::new("right").authenticate(&mut headers);
            let left = headers.get(SEC_WEBSOCKET_PROTOCOL);
            let left = left.map(|value| value.to_str().unwrap().to_owned());
            user.map(|user| (user.0.name, left.unwrap_or_default()))
                .map_err(|error| error.reason)
        };
        let bearer = |token: &str| format!("{BEARER_PROTOCOL}{token}");
        let admin = |left: &str| Ok(("kubernetes-admin".to_owned(), left.to_owned()));
        let anonymous = |left: &str| Ok(("system:anonymous".to_owned(), left.to_owned()));
        let unauthorized = Err(Some(StatusReason::Unauthorized));
        let with = |token: &str| format!("{}, a , b", bearer(token));
        assert_eq!(user("WebSocket", &[with(right)]), admin("a,b"));
        assert_eq!(
            user("websocket", &["a".to_owned(), bearer(right)]),
            admin("a")
        );
        assert_eq!(user("websocket", &["a,b".to_owned()]), anonymous("a,b"));
        assert_eq!(user("websocket", &[]), anonymous(""));
        assert_eq!(user("h2c", &[with(right)]), anonymous(&with(right)));
        for protocols in [
            with(wrong),
            with("not base64!"),
            with("_w"),
            bearer(right),
            format!("{},{}", with(right), bearer(right)),
        ] {
            assert_eq!(user("websocket", &[protocols]), unauthorized);
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
