//! Paths and queries of requests.

use std::fmt::Write as _;

use super::object::ApiResource;
use crate::error::Error;

impl ApiResource {
    /// The path of its objects in a namespace; `None` for those of the cluster, or of all namespaces.
    ///
    /// # Errors
    /// If a part cannot be a part of a path, such as an empty namespace.
    pub fn collection_path(&self, namespace: Option<&str>) -> Result<String, Error> {
        collection(self, namespace)
    }

    /// The path of one of its objects.
    ///
    /// # Errors
    /// As [`ApiResource::collection_path`]; no object is called `..` or `a/b`.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> Result<String, Error> {
        object(self, namespace, name)
    }
}

/// The path of a resource's objects, in a namespace or not.
pub(super) fn collection(resource: &ApiResource, namespace: Option<&str>) -> Result<String, Error> {
    let mut path = String::with_capacity(96);
    if resource.group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push_segment(&mut path, "group", &resource.group)?;
    }
    push_segment(&mut path, "version", &resource.version)?;
    if let Some(namespace) = namespace {
        path.push_str("/namespaces");
        push_segment(&mut path, "namespace", namespace)?;
    }
    push_segment(&mut path, "resource", &resource.plural)?;
    Ok(path)
}

/// The path of one object.
pub(super) fn object(
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> Result<String, Error> {
    let mut path = collection(resource, namespace)?;
    push_segment(&mut path, "name", name)?;
    Ok(path)
}

/// The path of one object, or of a subresource of it.
pub(super) fn below(
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
    subresource: Option<&str>,
) -> Result<String, Error> {
    let mut path = object(resource, namespace, name)?;
    if let Some(subresource) = subresource {
        push_segment(&mut path, "subresource", subresource)?;
    }
    Ok(path)
}

/// Appends a slash and a segment. Names of objects never have a slash or a percent sign, and a name that is empty or dots
/// would make the path of something else.
fn push_segment(path: &mut String, what: &str, segment: &str) -> Result<(), Error> {
    let problem = match segment {
        "" => "is empty",
        "." | ".." => "cannot be part of a path",
        _ if segment.contains(['/', '%']) => "has a slash or a percent sign",
        _ => {
            path.push('/');
            push_encoded(path, segment, b"-._~:@!$'()*,;=+&");
            return Ok(());
        }
    };
    Err(Error::Request(format!("the {what} {segment:?} {problem}")))
}

/// Checks a path and a query that a caller wrote.
pub(super) fn check_path(path: &str, query: &str) -> Result<(), Error> {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    };
    let problem = if !path.starts_with('/') {
        "does not begin with a slash"
    } else if !is_plain(path) || !is_plain(query) {
        "has a character that must be encoded"
    } else if with_plain_separators(path).contains("//") {
        "has an empty segment"
    } else if with_plain_separators(path)
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        "has a segment of dots"
    } else {
        return Ok(());
    };
    Err(Error::Request(format!("the path {path:?} {problem}")))
}

/// The path as servers and proxies may read it that decode dots and slashes, and take a backslash for a slash.
fn with_plain_separators(path: &str) -> String {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    path.replace("%2f", "/")
        .replace("%5c", "/")
        .replace('\\', "/")
}

/// Appends a parameter to a query.
pub(super) fn push_parameter(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    push_encoded(query, name, b"-._~");
    query.push('=');
    push_encoded(query, value, b"-._~:@!$'()*,;/");
}

/// Appends a text with all bytes encoded except for letters, digits and some others.
fn push_encoded(text: &mut String, raw: &str, kept: &[u8]) {
    for byte in raw.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_group_version_and_namespace() {
        let pods = ApiResource::new("", "v1", "Pod", "pods");
        assert_eq!(
            object(&pods, Some("ns"), "a").unwrap(),
            "/api/v1/namespaces/ns/pods/a"
        );
        let roles = ApiResource::new("rbac.example.com", "v1", "ClusterRole", "clusterroles");
        assert_eq!(
            object(&roles, None, "system:node ä").unwrap(),
            "/apis/rbac.example.com/v1/clusterroles/system:node%20%C3%A4"
        );
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        let pods = ApiResource::new("", "v1", "Pod", "pods");
        for name in ["", ".", "..", "a/b", "a%2Fb"] {
            assert!(object(&pods, Some("ns"), name).is_err(), "{name:?}");
            assert!(object(&pods, Some(name), "a").is_err(), "{name:?}");
        }
        let error = object(&pods, Some(""), "a").unwrap_err();
        assert_eq!(error.to_string(), "the namespace \"\" is empty");
    }

    #[test]
    fn a_path_of_a_caller_cannot_mean_another_one() {
        for good in [
            "/",
            "/version",
            "/apis/",
            "/api/v1/nodes/a/proxy/x%2Fy",
            "/a..b/...",
            "/a:b@c",
        ] {
            assert!(check_path(good, "").is_ok(), "{good}");
        }
        for bad in [
            "",
            "version",
            "http://other/x",
            "//other/x",
            "/a//b",
            "/a/../b",
            "/a/%2e%2E/b",
            "/.",
            "/a/.%2e",
            "/a/..%2Fb",
            "/a/x%2f..%2fy",
            "/a/x%5C%2E%2e%5cy",
            "/a/..\\b",
            "/a/%2Fb",
            "/%5cother/x",
            "/a b",
            "/a\r\nx: y",
            "/a#b",
            "/ä",
            "/a\u{0}",
        ] {
            assert!(check_path(bad, "").is_err(), "{bad:?}");
        }
        assert!(check_path("/a", "x=../..//").is_ok());
        assert!(check_path("/a", "x= HTTP/1.1\r\n").is_err());
    }

    #[test]
    fn parameters_are_encoded() {
        let mut query = String::new();
        push_parameter(&mut query, "labelSelector", "a in (b,c),d!=e&f+g #");
        push_parameter(&mut query, "watch", "1");
        assert_eq!(
            query,
            "labelSelector=a%20in%20(b,c),d!%3De%26f%2Bg%20%23&watch=1"
        );
    }
}
