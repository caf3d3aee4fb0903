//! What is done with a request on its way.

use apiloom::prelude::*;

use super::references::{BackendObjectReference, LocalObjectReference};

/// Filter is one thing that is done with a request or its answer.
#[apiloom::api]
#[api(union(tag = r#type))]
pub struct Filter {
    /// Which of the filters it is.
    pub r#type: FilterType,
    /// Changes headers of the request.
    #[api(member = "RequestHeaderModifier")]
    pub request_header_modifier: Option<HeaderFilter>,
    /// Changes headers of the answer.
    #[api(member = "ResponseHeaderModifier")]
    pub response_header_modifier: Option<HeaderFilter>,
    /// Sends a copy of the request to another backend.
    #[api(member = "RequestMirror")]
    pub request_mirror: Option<MirrorFilter>,
    /// Sends the client elsewhere.
    #[api(member = "RequestRedirect")]
    pub request_redirect: Option<RedirectFilter>,
    /// Changes the URL of the request.
    #[api(member = "URLRewrite")]
    pub url_rewrite: Option<RewriteFilter>,
    /// Says which other sites may read the answer.
    #[api(member = "CORS")]
    pub cors: Option<CorsFilter>,
    /// A filter that the gateway knows.
    #[api(member = "ExtensionRef")]
    pub extension_ref: Option<LocalObjectReference>,
}

/// FilterType is a kind of filter.
#[apiloom::api]
#[derive(Copy)]
pub enum FilterType {
    RequestHeaderModifier,
    ResponseHeaderModifier,
    RequestMirror,
    RequestRedirect,
    #[api(json = "URLRewrite")]
    UrlRewrite,
    ExtensionRef,
    #[api(json = "CORS")]
    Cors,
}

/// Redirect and rewrite exclude each other, and filters that set one thing stand there once.
#[allow(clippy::ptr_arg, reason = "a check takes the type of its field")]
pub(super) fn fit_together(filters: &Vec<Filter>, path: &FieldPath) -> Vec<FieldError> {
    use FilterType::{
        Cors, RequestHeaderModifier, RequestRedirect, ResponseHeaderModifier, UrlRewrite,
    };
    let count = |kind: FilterType| {
        filters
            .iter()
            .filter(|filter| filter.r#type == kind)
            .count()
    };
    let mut errors = Vec::new();
    if count(RequestRedirect) > 0 && count(UrlRewrite) > 0 {
        let detail = "May specify either RequestRedirect or URLRewrite, but not both";
        errors.push(FieldError::forbidden(path, detail));
    }
    for kind in [
        Cors,
        RequestHeaderModifier,
        ResponseHeaderModifier,
        RequestRedirect,
        UrlRewrite,
    ] {
        if count(kind) > 1 {
            let twin = filters
                .iter()
                .rposition(|filter| filter.r#type == kind)
                .unwrap_or_default();
            errors.push(FieldError::duplicate(&path.index(twin).child("type"), kind));
        }
    }
    errors
}

/// HeaderFilter changes headers.
#[apiloom::api]
pub struct HeaderFilter {
    /// Headers that get this value in place of theirs.
    #[api(list = map(name), items = ..=16)]
    pub set: Vec<Header>,
    /// Values that are added.
    #[api(list = map(name), items = ..=16)]
    pub add: Vec<Header>,
    /// Headers that are taken out.
    #[api(list = set, items = ..=16)]
    pub remove: Vec<String>,
}

/// Header is a header and its value.
#[apiloom::api]
pub struct Header {
    /// The header.
    #[api(len = 1..=256, pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
    pub name: String,
    /// Its value.
    #[api(len = 1..=4096)]
    pub value: String,
}

/// MirrorFilter sends a copy of some requests to another backend, whose answers are dropped.
#[apiloom::api]
pub struct MirrorFilter {
    /// The other backend.
    pub backend_ref: BackendObjectReference,
    /// How many of a hundred requests; all when nothing is said.
    #[api(range = 0..=100, conflicts(fraction))]
    pub percent: Option<i32>,
    /// Which part of the requests.
    pub fraction: Option<Fraction>,
}

/// Fraction is a part of a whole.
#[apiloom::api]
#[api(custom = Fraction::check)]
pub struct Fraction {
    /// How many of the parts.
    #[api(min = 0)]
    pub numerator: i32,
    /// How many parts there are.
    #[api(default = 100, min = 1)]
    pub denominator: i32,
}

impl Fraction {
    fn check(&self, path: &FieldPath) -> Option<FieldError> {
        let detail = "numerator must be less than or equal to denominator";
        (self.numerator > self.denominator).then(|| FieldError::invalid(path, self, detail))
    }
}

/// RedirectFilter sends the client elsewhere.
#[apiloom::api]
pub struct RedirectFilter {
    /// The scheme; that of the request when left out.
    pub scheme: Option<Scheme>,
    /// The host; that of the request when left out.
    #[api(len = 1..=253, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    pub hostname: Option<String>,
    /// How the path is changed.
    pub path: Option<PathModifier>,
    /// The port; that of the scheme when left out.
    #[api(range = 1..=65535)]
    pub port: Option<i32>,
    /// The status of the answer.
    #[api(default = 302, custom = is_a_redirect)]
    pub status_code: Option<i64>,
}

fn is_a_redirect(code: &i64, path: &FieldPath) -> Option<FieldError> {
    const CODES: [&str; 5] = ["301", "302", "303", "307", "308"];
    (!CODES.contains(&code.to_string().as_str()))
        .then(|| FieldError::not_supported(path, code, &CODES))
}

/// Scheme is a scheme of URLs.
#[apiloom::api]
pub enum Scheme {
    #[api(json = "http")]
    Http,
    #[api(json = "https")]
    Https,
}

/// RewriteFilter changes the URL of a request.
#[apiloom::api]
pub struct RewriteFilter {
    /// The new host.
    #[api(len = 1..=253, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    pub hostname: Option<String>,
    /// How the path is changed.
    pub path: Option<PathModifier>,
}

/// PathModifier changes a path.
#[apiloom::api]
#[api(union(tag = r#type))]
pub struct PathModifier {
    /// What is replaced.
    pub r#type: PathModifierType,
    /// What stands in place of the whole path.
    #[api(member = "ReplaceFullPath", len(max = 1024))]
    pub replace_full_path: Option<String>,
    /// What stands in place of the part that matched.
    #[api(member = "ReplacePrefixMatch", len(max = 1024))]
    pub replace_prefix_match: Option<String>,
}

/// PathModifierType is what is replaced of a path.
#[apiloom::api]
pub enum PathModifierType {
    ReplaceFullPath,
    ReplacePrefixMatch,
}

/// CorsFilter says which other sites may read the answer.
#[apiloom::api]
pub struct CorsFilter {
    /// Those sites.
    #[api(list = set, items = ..=64, custom = stands_alone,
        each(len = 1..=253, pattern = r"(^\*$)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)"))]
    pub allow_origins: Vec<String>,
    /// Whether they may use what their user is known by.
    pub allow_credentials: Option<bool>,
    /// The methods that they may use.
    #[api(list = set, items = ..=9, custom = method_stands_alone)]
    pub allow_methods: Vec<WildcardMethod>,
    /// The headers that they may send.
    #[api(list = set, items = ..=64, custom = stands_alone, each(len = 1..=256, pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"))]
    pub allow_headers: Vec<String>,
    /// The headers that they may read.
    #[api(list = set, items = ..=64, each(len = 1..=256, pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"))]
    pub expose_headers: Vec<String>,
    /// For how many seconds clients may keep this.
    #[api(default = 5, min = 1)]
    pub max_age: i32,
}

#[allow(clippy::ptr_arg, reason = "a check takes the type of its field")]
fn stands_alone(values: &Vec<String>, path: &FieldPath) -> Option<FieldError> {
    let detail = "cannot contain '*' alongside other values";
    (values.len() > 1 && values.iter().any(|value| value == "*"))
        .then(|| FieldError::invalid(path, values, detail))
}

#[allow(clippy::ptr_arg, reason = "a check takes the type of its field")]
fn method_stands_alone(methods: &Vec<WildcardMethod>, path: &FieldPath) -> Option<FieldError> {
    let detail = "cannot contain '*' alongside other values";
    (methods.len() > 1 && methods.contains(&WildcardMethod::All))
        .then(|| FieldError::invalid(path, methods, detail))
}

/// WildcardMethod is a method of HTTP, or all of them.
#[apiloom::api]
pub enum WildcardMethod {
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
    #[api(json = "*")]
    All,
}
