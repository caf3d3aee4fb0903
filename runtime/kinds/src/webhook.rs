//! Rules for where webhooks are. Those of conversions and of admission are told in types of their groups, which have the same fields.

use apiloom_meta::{FieldError, FieldPath};

/// What a URL should look like, at the end of a problem.
const FORM: &str = "; desired format: https://host[/path]";

/// How to reach a webhook: by a URL or by a service.
pub(crate) struct ClientConfig<'a> {
    pub(crate) url: Option<&'a str>,
    pub(crate) service: Option<ServiceReference<'a>>,
}

/// The service of a webhook.
pub(crate) struct ServiceReference<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) path: Option<&'a str>,
    pub(crate) port: Option<i32>,
}

/// The view of a group's type.
macro_rules! client_config {
    ($config:expr) => {
        $crate::webhook::ClientConfig {
            url: $config.url.as_deref(),
            service: $config
                .service
                .as_ref()
                .map(|service| $crate::webhook::ServiceReference {
                    namespace: &service.namespace,
                    name: &service.name,
                    path: service.path.as_deref(),
                    port: service.port,
                }),
        }
    };
}
pub(crate) use client_config;

/// The errors of a webhook, which has either a URL or a service.
pub(crate) fn client_errors(client: &ClientConfig<'_>, path: &FieldPath) -> Vec<FieldError> {
    match (client.url, &client.service) {
        (Some(url), None) => url_errors(url, &path.child("url")),
        (None, Some(service)) => service_errors(service, &path.child("service")),
        _ => {
            let why = "exactly one of url or service is required";
            vec![FieldError::required(path, why)]
        }
    }
}

fn url_errors(url: &str, path: &FieldPath) -> Vec<FieldError> {
    if let Some(problem) = url_problem(url) {
        let why = format!("url must be a valid URL: parse {url:?}: {problem}{FORM}");
        return vec![FieldError::required(path, &why)];
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest
        .split_once(':')
        .filter(|(scheme, _)| !scheme.contains('/'))
        .unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut errors = Vec::new();
    let mut refuse = |is_wrong: bool, value: &str, why: &str| {
        if is_wrong {
            errors.push(FieldError::invalid(path, value, why));
        }
    };
    let scheme = scheme.to_ascii_lowercase();
    let why = format!("'https' is the only allowed URL scheme{FORM}");
    refuse(scheme != "https", &scheme, &why);
    let why = format!("host must be specified{FORM}");
    refuse(host.is_empty(), host, &why);
    let why = "user information is not permitted in the URL";
    refuse(authority.contains('@'), user, why);
    let why = "fragments are not permitted in the URL";
    refuse(!fragment.is_empty(), fragment, why);
    let why = "query parameters are not permitted in the URL";
    refuse(!query.is_empty(), query, why);
    errors
}

/// Why a text is no URL, in the words of Go.
fn url_problem(url: &str) -> Option<String> {
    if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    if url.starts_with(':') {
        return Some("missing protocol scheme".to_owned());
    }
    let is_escape = |digits: &str| {
        let digits = digits.as_bytes();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    };
    let wrong = url
        .match_indices('%')
        .find(|(at, _)| !url.get(at + 1..at + 3).is_some_and(is_escape));
    wrong.map(|(at, _)| {
        let part: String = url
            .get(at..)
            .into_iter()
            .flat_map(str::chars)
            .take(3)
            .collect();
        format!("invalid URL escape {part:?}")
    })
}

fn service_errors(service: &ServiceReference<'_>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // As in kube-apiserver, the error of one is at the other.
    if service.namespace.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    if service.name.is_empty() {
        errors.push(FieldError::required(&path.child("namespace"), ""));
    }
    if let Some(port) = service.port.filter(|port| !(1..=65535).contains(port)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, why));
    }
    let text = service.path.unwrap_or_default();
    if text.is_empty() || text == "/" {
        return errors;
    }
    let path = path.child("path");
    if text == "//" {
        errors.push(FieldError::invalid(
            &path,
            text,
            "segment[0] may not be empty",
        ));
        return errors;
    }
    if !text.starts_with('/') {
        errors.push(FieldError::invalid(&path, text, "must start with a '/'"));
    }
    // The first character should be a slash; one at the end begins no segment.
    let mut characters = text.chars();
    characters.next();
    let inner = characters.as_str();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (at, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            let why = format!("segment[{at}] may not be empty");
            errors.push(FieldError::invalid(&path, text, &why));
            continue;
        }
        for complaint in apiloom_meta::names::dns_subdomain(segment) {
            let why = format!("segment[{at}]: {complaint}");
            errors.push(FieldError::invalid(&path, text, &why));
        }
    }
    errors
}
