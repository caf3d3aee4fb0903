//! The attributes of a request from its method and URL, for authentication, authorization, audit and metrics.
//!
//! Parsed from the percent-decoded path. Resources are not looked up, so the result does not depend on whether they
//! exist.

use std::borrow::Cow;
use std::sync::LazyLock;

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::field::echoed;
use apiloom_meta::kind::Verb;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_meta::{Resource as _, ResourceDef};
use apiloom_registry::UserInfo;
use apiloom_registry::auth::Attributes;
use http::{Method, Uri};

use super::query::{Query, decode};
use super::verb_form::form;

/// The path segment before a namespace in paths of namespaced resources; also the resource of namespaces.
pub(crate) const NAMESPACES: &str = Namespace::PLURAL;

/// The path of migrations of stored objects.
pub(crate) const MIGRATION_PATH: &str = "/storage/migrate";

/// The definition of Namespace, to distinguish its subresources from resources in a namespace.
static NAMESPACE: LazyLock<ResourceDef> = LazyLock::new(Namespace::definition);

/// The attributes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the request is for a resource; otherwise only `path` and `verb` are set.
    pub is_resource_request: bool,
    /// The decoded path.
    pub path: String,
    /// The API's verb for resources, the method in lower case for other paths.
    pub verb: RequestVerb,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// Group; empty for core.
    pub api_group: String,
    /// Version.
    pub api_version: String,
    /// Namespace; empty if the path has none.
    pub namespace: String,
    /// Resource: the plural name.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Name in the path, or the one that the field selector of a list or watch requires.
    pub name: String,
    /// The path segments from the resource on.
    pub parts: Vec<String>,
    /// Whether the subresource opens streams (`connect`); known when the query is read.
    pub connects: bool,
    /// A second verb that must be permitted: create for a WebSocket that takes input as a POST does, though it is a GET.
    pub second_verb: Option<Verb>,
    /// The field selector as sent, for verbs with selectors.
    pub field_selector: String,
    /// The label selector as sent, for verbs with selectors.
    pub label_selector: String,
    /// Whether the path has a namespace: `namespaces/NS/RESOURCE...`.
    pub(crate) in_namespace: bool,
    /// Whether the path has the deprecated prefix `watch/`.
    pub(crate) watch_prefix: bool,
}

/// The verb of a request. It is determined here only, so that the authorized verb is the executed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestVerb {
    /// A verb of the API, for a resource.
    Api(Verb),
    /// The verb of the deprecated path prefix `proxy/`.
    Proxy,
    /// The method in lower case, for a request that is not for a resource; empty for a resource with an unknown
    /// method.
    Method(Cow<'static, str>),
}

impl RequestVerb {
    /// The verb as text, for authorizers and metrics.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Api(verb) => verb.as_str(),
            Self::Proxy => "proxy",
            Self::Method(method) => method,
        }
    }

    /// The verb of a request that is not for a resource.
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

    /// The verb of a request for a resource, by its method only.
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

/// Error of a URL that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestInfoError {
    /// The path has an invalid percent escape; a BadRequest.
    #[error("invalid URL escape in path {0:?}")]
    Escape(String),
    /// `watch` or `proxy` is the last path segment; an InternalError, as in kube-apiserver.
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
    /// Parses method and URL.
    ///
    /// # Errors
    /// [`RequestInfoError`].
    pub fn parse(method: &Method, uri: &Uri) -> Result<Self, RequestInfoError> {
        let mut info = Self::of_path(method, uri)?;
        info.read_query(&Query::of(uri));
        Ok(info)
    }

    /// Parses method and path only, which is all that is read before authentication. [`RequestInfo::read_query`]
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

    /// Parses the query of a request for a resource: the verb of a GET, and the selectors.
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
            // The segment after the namespace is one of its subresources, or else a resource in it.
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
            let is_told = |verb: &Verb| {
                let parameter = form(*verb).parameter;
                parameter.is_some_and(|(name, _)| query.boolean(name) == Some(true))
            };
            let told = Verb::ALL.into_iter().find(is_told);
            self.verb = RequestVerb::Api(told.unwrap_or(Verb::List));
            self.name = selected_name(query).unwrap_or_default();
        }
        if self.name.is_empty() && self.verb == RequestVerb::Api(Verb::Delete) {
            self.verb = RequestVerb::Api(Verb::DeleteCollection);
        }
        let selects = matches!(self.verb, RequestVerb::Api(verb) if form(verb).has_selectors());
        if selects && !self.watch_prefix {
            self.field_selector = query.text("fieldSelector").to_owned();
            self.label_selector = query.text("labelSelector").to_owned();
        }
    }

    /// The attributes for authorizers.
    pub fn attributes<'a>(&'a self, user: &'a UserInfo) -> Attributes<'a> {
        let mut of = Attributes::of_path(user, self.verb.as_str(), &self.path);
        of.is_resource_request = self.is_resource_request;
        of.api_group = &self.api_group;
        of.api_version = &self.api_version;
        of.resource = &self.resource;
        of.subresource = &self.subresource;
        of.namespace = &self.namespace;
        of.name = &self.name;
        of
    }

    /// Whether the request has no deadline: watches, proxies, streaming subresources, migrations.
    pub fn is_long_running(&self) -> bool {
        if !self.is_resource_request {
            return self.path.starts_with("/debug/pprof/") || self.path == MIGRATION_PATH;
        }
        self.connects
            || matches!(
                self.verb,
                RequestVerb::Api(Verb::Watch) | RequestVerb::Proxy
            )
            || matches!(
                self.subresource.as_str(),
                "attach" | "exec" | "proxy" | "log" | "portforward"
            )
    }
}

/// Text that every field selector with a name contains.
const NAME_FIELD: &str = "metadata.name";

/// The name that the field selector requires. `None` if the list options are malformed: then the request is authorized
/// for the whole collection, and refused later.
fn selected_name(query: &Query) -> Option<String> {
    for parameter in ["timeoutSeconds", "limit"] {
        query.integer(parameter).ok()?;
    }
    // Selectors may be long, so they are parsed only if they can contain a name.
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

/// Whether a name can be a path segment.
fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests;
