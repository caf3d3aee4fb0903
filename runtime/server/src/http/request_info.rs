//! What a request is about, from its method and URL alone: what authentication, authorization, audit and metrics read.
//!
//! Everything is decided on the percent-decoded path. No resource is looked up here, so the answer is the same for
//! resources that exist and for those that do not.

use std::borrow::Cow;
use std::sync::LazyLock;

use apiloom_meta::field::echoed;
use apiloom_meta::kind::Verb;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_meta::{Resource as _, ResourceDef};
use http::{Method, Uri};

use super::query::{Query, decode};
use crate::auth::Attributes;
use crate::registry::{Namespace, UserInfo};

/// The segment before a namespace in paths of namespaced resources: the resource of the namespaces themselves.
pub(super) const NAMESPACES: &str = Namespace::PLURAL;

/// What namespaces declare: which segments after a namespace are its subresources.
static NAMESPACE: LazyLock<ResourceDef> = LazyLock::new(Namespace::definition);

/// The attributes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the request is for a resource; otherwise only `path` and `verb` are set.
    pub is_resource_request: bool,
    /// The decoded path.
    pub path: String,
    /// The API's verb for resources, the lower-case method for everything else.
    pub verb: RequestVerb,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// Group; empty for core.
    pub api_group: String,
    /// Version.
    pub api_version: String,
    /// Namespace; empty when there is none in the path.
    pub namespace: String,
    /// Resource, the plural.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Name in the path, or the one that the field selector of a list or watch requires.
    pub name: String,
    /// The segments from the resource on.
    pub parts: Vec<String>,
    /// The field selector as sent, for verbs that select.
    pub field_selector: String,
    /// The label selector as sent, for verbs that select.
    pub label_selector: String,
    /// Whether the resource is addressed inside a namespace: `namespaces/NS/RESOURCE...`.
    pub(super) in_namespace: bool,
    /// Whether the path has the deprecated prefix `watch/`.
    pub(super) watch_prefix: bool,
}

/// What a request does. It is decided here, and nowhere again: what is authorized is what is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestVerb {
    /// A verb of the API, on a resource.
    Api(Verb),
    /// What the deprecated prefix `proxy/` stands before.
    Proxy,
    /// The method in lower case, of what is not for a resource; empty for a resource when no verb has the method.
    Method(Cow<'static, str>),
}

impl RequestVerb {
    /// The verb as authorizers and metrics read it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Api(verb) => verb.as_str(),
            Self::Proxy => "proxy",
            Self::Method(method) => method,
        }
    }

    /// Of a request that is not for a resource.
    fn of_method(method: &Method) -> Self {
        Self::Method(match *method {
            Method::GET => "get".into(),
            Method::HEAD => "head".into(),
            Method::POST => "post".into(),
            Method::PUT => "put".into(),
            Method::PATCH => "patch".into(),
            Method::DELETE => "delete".into(),
            _ => method.as_str().to_ascii_lowercase().into(),
        })
    }

    /// Of a request for a resource, as far as its method says.
    fn on_resource(method: &Method) -> Self {
        Self::Api(match *method {
            Method::POST => Verb::Create,
            Method::GET | Method::HEAD => Verb::Get,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return Self::default(),
        })
    }
}

impl Default for RequestVerb {
    fn default() -> Self {
        Self::Method(Cow::Borrowed(""))
    }
}

/// Why a URL says nothing about a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestInfoError {
    /// The path has a bad percent escape: a bad request.
    #[error("invalid URL escape in path {0:?}")]
    Escape(String),
    /// `watch` or `proxy` is the last segment: an internal error by the API's rules.
    #[error("failed to create RequestInfo: unable to determine kind and namespace from url, {0}")]
    NoKind(String),
}

impl From<&RequestInfoError> for apiloom_meta::ApiError {
    fn from(error: &RequestInfoError) -> Self {
        match error {
            RequestInfoError::Escape(_) => Self::bad_request(error.to_string()),
            RequestInfoError::NoKind(_) => Self::internal_text(error.to_string()),
        }
    }
}

impl RequestInfo {
    /// Reads method and URL.
    ///
    /// # Errors
    /// [`RequestInfoError`].
    pub fn parse(method: &Method, uri: &Uri) -> Result<Self, RequestInfoError> {
        let mut info = Self::of_path(method, uri)?;
        info.read_query(&Query::of(uri));
        Ok(info)
    }

    /// Reads method and path alone, which is all that is read before it is known who asks. [`RequestInfo::read_query`]
    /// completes it.
    ///
    /// # Errors
    /// [`RequestInfoError`].
    pub fn of_path(method: &Method, uri: &Uri) -> Result<Self, RequestInfoError> {
        let path = decode(uri.path())
            .ok_or_else(|| RequestInfoError::Escape(echoed(uri.path()).into_owned()))?;
        let mut info = Self {
            verb: RequestVerb::of_method(method),
            ..Self::default()
        };
        info.read_path(&path, method, uri)?;
        info.path = path;
        Ok(info)
    }

    /// Reads what the query says of a request for a resource: the verb of a GET, and what is selected.
    pub fn read_query(&mut self, query: &Query) {
        if self.is_resource_request {
            self.read_pairs(query);
        }
    }

    fn read_path(
        &mut self,
        path: &str,
        method: &Method,
        uri: &Uri,
    ) -> Result<(), RequestInfoError> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (prefix, group, version, mut rest) = match segments.as_slice() {
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                ("apis", *group, *version, rest)
            }
            ["api", version, rest @ ..] if !rest.is_empty() => ("api", "", *version, rest),
            _ => return Ok(()),
        };
        self.is_resource_request = true;
        self.api_prefix = prefix.to_owned();
        self.api_group = group.to_owned();
        self.api_version = version.to_owned();
        self.verb = RequestVerb::on_resource(method);

        let mut proxied = false;
        if let ["watch" | "proxy", after @ ..] = rest {
            if after.is_empty() {
                return Err(RequestInfoError::NoKind(
                    echoed(&uri.to_string()).into_owned(),
                ));
            }
            self.watch_prefix = rest[0] == "watch";
            proxied = rest[0] == "proxy";
            self.verb = if proxied {
                RequestVerb::Proxy
            } else {
                RequestVerb::Api(Verb::Watch)
            };
            rest = after;
        }
        if let [NAMESPACES, namespace, after @ ..] = rest {
            self.namespace = (*namespace).to_owned();
            // What follows the namespace is a subresource of it, or else a resource in it.
            if !after.is_empty() && NAMESPACE.subresource(after[0]).is_none() {
                self.in_namespace = true;
                rest = after;
            }
        }
        self.parts = rest.iter().map(|segment| (*segment).to_owned()).collect();
        let part = |index: usize| {
            rest.get(index)
                .map(|segment| (*segment).to_owned())
                .unwrap_or_default()
        };
        self.resource = part(0);
        self.name = part(1);
        if !proxied {
            self.subresource = part(2);
        }
        Ok(())
    }

    fn read_pairs(&mut self, query: &Query) {
        if self.name.is_empty() && self.verb == RequestVerb::Api(Verb::Get) {
            self.verb = RequestVerb::Api(if query.boolean("watch") == Some(true) {
                Verb::Watch
            } else {
                Verb::List
            });
            self.name = selected_name(query).unwrap_or_default();
        }
        if self.name.is_empty() && self.verb == RequestVerb::Api(Verb::Delete) {
            self.verb = RequestVerb::Api(Verb::DeleteCollection);
        }
        let selects = matches!(
            self.verb,
            RequestVerb::Api(Verb::List | Verb::Watch | Verb::DeleteCollection)
        );
        if selects && !self.watch_prefix {
            self.field_selector = query.text("fieldSelector").to_owned();
            self.label_selector = query.text("labelSelector").to_owned();
        }
    }

    /// What authorizers decide about.
    pub(crate) fn attributes<'a>(&'a self, user: &'a UserInfo) -> Attributes<'a> {
        Attributes {
            is_resource_request: self.is_resource_request,
            api_group: &self.api_group,
            api_version: &self.api_version,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            ..Attributes::of_path(user, self.verb.as_str(), &self.path)
        }
    }

    /// Whether the request may run without a deadline: watches, proxies and streaming subresources.
    pub fn is_long_running(&self) -> bool {
        if !self.is_resource_request {
            return self.path.starts_with("/debug/pprof/");
        }
        matches!(
            self.verb,
            RequestVerb::Api(Verb::Watch) | RequestVerb::Proxy
        ) || matches!(
            self.subresource.as_str(),
            "attach" | "exec" | "proxy" | "log" | "portforward"
        )
    }
}

/// What a field selector with a name contains, at least.
const NAME_FIELD: &str = "metadata.name";

/// The name that the field selector requires. Nothing when any list option cannot be decoded: then the request will
/// be refused, and is authorized for the whole collection first.
fn selected_name(query: &Query) -> Option<String> {
    for parameter in ["timeoutSeconds", "limit"] {
        query.integer(parameter).ok()?;
    }
    // Without a name there is no need to read either selector, which may be long.
    let fields = query
        .first("fieldSelector")
        .filter(|text| text.contains(NAME_FIELD))?;
    let selector = FieldSelector::parse(fields).ok()?;
    let name = selector
        .requires(NAME_FIELD)
        .filter(|name| is_path_segment(name))?;
    LabelQuery::parse(query.text("labelSelector")).ok()?;
    Some(name.to_owned())
}

/// Whether a name can stand in a path.
fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests;
