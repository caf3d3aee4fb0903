//! Which requests a rule is for.

use apiloom::prelude::*;

/// RouteMatch holds for a request when each of its parts does.
#[apiloom::api]
#[derive(Default)]
pub struct RouteMatch {
    /// What the path must be.
    #[api(default = PathMatch::everything())]
    pub path: Option<PathMatch>,
    /// What the headers must be.
    #[api(list = map(name), items = ..=16)]
    pub headers: Vec<HeaderMatch>,
    /// What the parameters of the query must be.
    #[api(list = map(name), items = ..=16)]
    pub query_params: Vec<QueryParamMatch>,
    /// What the method must be.
    pub method: Option<Method>,
}

/// PathMatch is what a path must be.
#[apiloom::api]
#[api(custom = PathMatch::check)]
pub struct PathMatch {
    /// How the paths are compared.
    #[api(default = PathMatchType::PathPrefix)]
    pub r#type: PathMatchType,
    /// The path, or what it must match.
    #[api(default = "/", len(max = 1024))]
    pub value: String,
}

impl PathMatch {
    /// What holds for every path.
    pub fn everything() -> Self {
        Self {
            r#type: PathMatchType::PathPrefix,
            value: "/".to_owned(),
        }
    }

    fn check(&self, path: &FieldPath) -> Vec<FieldError> {
        if self.r#type == PathMatchType::RegularExpression {
            return Vec::new();
        }
        let value = self.value.as_str();
        let inside = ["//", "/./", "/../", "%2f", "%2F", "#"]
            .into_iter()
            .filter(|part| value.contains(part));
        let mut details: Vec<String> = inside
            .map(|part| format!("must not contain '{part}'"))
            .collect();
        let at_end = ["/..", "/."]
            .into_iter()
            .filter(|part| value.ends_with(part));
        details.extend(at_end.map(|part| format!("must not end with '{part}'")));
        if !value.starts_with('/') {
            details.insert(0, "must be an absolute path and start with '/'".to_owned());
        }
        if details.is_empty() && !value.bytes().all(is_of_a_path) {
            details.push("must only contain characters of a path".to_owned());
        }
        let of_types =
            |detail: String| format!("{detail} when type one of ['Exact', 'PathPrefix']");
        let at = path.child("value");
        details
            .into_iter()
            .map(|detail| FieldError::invalid(&at, value, &of_types(detail)))
            .collect()
    }
}

fn is_of_a_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-/._~!$&'()*+,;=:@%".contains(&byte)
}

/// PathMatchType is how paths are compared.
#[apiloom::api]
pub enum PathMatchType {
    Exact,
    PathPrefix,
    RegularExpression,
}

/// HeaderMatch is what a header must be.
#[apiloom::api]
pub struct HeaderMatch {
    /// How the values are compared.
    #[api(default = HeaderMatchType::Exact)]
    pub r#type: HeaderMatchType,
    /// The header.
    #[api(len = 1..=256, pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
    pub name: String,
    /// Its value, or what it must match.
    #[api(len = 1..=4096)]
    pub value: String,
}

/// QueryParamMatch is what a parameter of the query must be.
#[apiloom::api]
pub struct QueryParamMatch {
    /// How the values are compared.
    #[api(default = HeaderMatchType::Exact)]
    pub r#type: HeaderMatchType,
    /// The parameter.
    #[api(len = 1..=256, pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
    pub name: String,
    /// Its value, or what it must match.
    #[api(len = 1..=1024)]
    pub value: String,
}

/// HeaderMatchType is how values of headers and parameters are compared.
#[apiloom::api]
pub enum HeaderMatchType {
    Exact,
    RegularExpression,
}

/// Method is a method of HTTP.
#[apiloom::api]
pub enum Method {
    #[api(json = "GET")]
    Get,
    #[api(json = "HEAD")]
    Head,
    #[api(json = "POST")]
    Post,
    #[api(json = "PUT")]
    Put,
    #[api(json = "DELETE")]
    Delete,
    #[api(json = "CONNECT")]
    Connect,
    #[api(json = "OPTIONS")]
    Options,
    #[api(json = "TRACE")]
    Trace,
    #[api(json = "PATCH")]
    Patch,
}
