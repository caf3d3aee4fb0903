//! [`Action`]: a request as data.

use std::fmt;

use apiloom_meta::kind::Verb;
use apiloom_server::http::{RequestInfo, RequestVerb};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, USER_AGENT};
use http::request::Parts;
use http::{Method, Uri};
use serde_json::Value;

/// A request that a test server received.
///
/// As text it is its verb, its resource, and the object with its namespace: `update flunders/status default/a`,
/// `list flunders default`, `get fischers a`. An apply is called `apply`. Other requests are their method and path:
/// `get /version`.
#[derive(Clone, Debug)]
pub struct Action {
    /// The verb; `None` for a request that is not for a resource.
    pub verb: Option<Verb>,
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// The plural name; empty for a request that is not for a resource.
    pub resource: String,
    /// Subresource; empty for none.
    pub subresource: String,
    /// Namespace; empty for none, or all.
    pub namespace: String,
    /// Method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The header `User-Agent`; empty if it is missing.
    pub user_agent: String,
    /// The header `Content-Type`; empty if it is missing.
    pub content_type: String,
    /// The body. Empty for one of unknown length, or of more than 16 MiB.
    pub body: Bytes,
    /// The name in the path.
    path_name: String,
}

impl Action {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Self {
        // A path that cannot be parsed is one of no resource; the server refuses it.
        let info = RequestInfo::parse(&parts.method, &parts.uri).unwrap_or_default();
        let text = |name: HeaderName| {
            let value = parts.headers.get(name).map(|value| value.as_bytes());
            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
        };
        let is_namespace = info.api_group.is_empty() && info.resource == "namespaces";
        Self {
            verb: match info.verb {
                RequestVerb::Api(verb) if info.is_resource_request => Some(verb),
                _ => None,
            },
            group: info.api_group,
            version: info.api_version,
            resource: info.resource,
            subresource: info.subresource,
            // Of a namespace itself it is its name.
            namespace: if is_namespace {
                String::new()
            } else {
                info.namespace
            },
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            user_agent: text(USER_AGENT),
            content_type: text(CONTENT_TYPE),
            body,
            path_name: info.name,
        }
    }

    /// The name of the object: that of the path, or for a create that of the body. Empty if there is none, as with
    /// `generateName`.
    pub fn name(&self) -> String {
        if !self.path_name.is_empty() || self.verb != Some(Verb::Create) {
            return self.path_name.clone();
        }
        let body = self.json();
        body["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Whether the request is an apply: a patch of that type.
    pub fn is_apply(&self) -> bool {
        self.verb == Some(Verb::Patch) && self.content_type.starts_with("application/apply-patch")
    }

    /// Whether it is a write.
    pub fn is_write(&self) -> bool {
        self.verb
            .is_some_and(|verb| !matches!(verb, Verb::Get | Verb::List | Verb::Watch))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(verb) = self.verb else {
            let method = self.method.as_str().to_ascii_lowercase();
            return write!(f, "{method} {}", self.uri.path());
        };
        let verb = if self.is_apply() {
            "apply"
        } else {
            verb.as_str()
        };
        write!(f, "{verb} {}", self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        let name = self.name();
        match (self.namespace.as_str(), name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " {namespace}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}
