//! Scheme, host and port of a server.

use std::borrow::Cow;
use std::fmt;

use http::Uri;

/// A URL as it is shown in errors: without a user and a password, also if it is malformed.
pub(crate) fn without_userinfo(url: &str) -> Cow<'_, str> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password that was not escaped can have any of these characters.
    let at = rest[..end].rfind('@').or_else(|| rest.rfind('@'));
    match at {
        Some(at) => format!("{}…@{}", &url[..start], &rest[at + 1..]).into(),
        None => url.into(),
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) is_https: bool,
    /// Name or address; one of IPv6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    /// Parses a URL; a text without a scheme is `https`, as in kubeconfig files.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let text = if url.contains("://") {
            url.to_owned()
        } else {
            format!("https://{url}")
        };
        let url = without_userinfo(url);
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("the URL {url:?} of the server is malformed: {error}"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => {
                return Err(format!(
                    "the URL {url:?} of the server is neither http nor https"
                ));
            }
        };
        let authority = uri
            .authority()
            .filter(|authority| !authority.host().is_empty());
        let Some(authority) = authority else {
            return Err(format!("the URL {url:?} of the server has no host"));
        };
        if authority.as_str().contains('@') {
            // The URL is not shown: it has a password.
            return Err("the URL of the server has a user, which is not sent".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none() {
            return Err(format!(
                "the URL {url:?} of the server has a malformed port"
            ));
        }
        let port = authority
            .port_u16()
            .unwrap_or(if is_https { 443 } else { 80 });
        Ok(Self {
            is_https,
            host,
            port,
        })
    }

    /// Host and, unless it is the scheme's own, port.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let usual = if self.is_https { 443 } else { 80 };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_a_host_and_a_port() {
        let print = |url: &str| Origin::parse(url).map(|origin| origin.to_string());
        assert_eq!(print("https://a.example").unwrap(), "https://a.example");
        assert_eq!(print("https://a:443/x").unwrap(), "https://a");
        assert_eq!(print("http://[::1]:8001").unwrap(), "http://[::1]:8001");
        assert_eq!(print("10.0.0.1:6443").unwrap(), "https://10.0.0.1:6443");
        for bad in ["", "ftp://a", "https://", "https://a b", "https://a:99999"] {
            assert!(print(bad).is_err(), "{bad:?}");
        }
        let error = print("https://me:secret@a").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        for url in [
            "ftp://me:secret@a",
            "https://me:secret@",
            "https://me:sec ret@a",
            "me:secret@a:99999",
            "https://me:secret/@a",
        ] {
            let error = print(url).unwrap_err();
            assert!(!error.contains("sec"), "{error}");
        }
        assert_eq!(without_userinfo("https://a/b"), "https://a/b");
        assert_eq!(without_userinfo("https://me:pw@a/b"), "https://…@a/b");
    }
}
