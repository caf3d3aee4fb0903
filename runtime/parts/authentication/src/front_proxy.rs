//! Users that a proxy in front of the server names in headers, as kube-apiserver has them: the proxy shows a client certificate of authorities
//! of its own, and is believed.

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_registry::auth::{
    Answer, Authentication, Authenticator, BoxError, CredentialHeaders, Credentials, UserInfo,
};
use apiloom_server::http::decode_percent;
use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::certificates::ClientCertificates;

/// Headers with users, of proxies in front of the server. They are off without authorities.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[non_exhaustive]
pub struct FrontProxy {
    /// PEM file of the authorities of proxies, which name users in headers. It is read again when it changes. No other client may have a
    /// certificate of theirs.
    #[arg(
        id = "requestheader-client-ca-file",
        long = "requestheader-client-ca-file",
        value_name = "FILE"
    )]
    pub client_ca_file: Option<PathBuf>,
    /// The common names that the certificates of proxies may have. Default: any.
    #[arg(
        id = "requestheader-allowed-names",
        long = "requestheader-allowed-names",
        value_name = "NAME,..",
        value_delimiter = ','
    )]
    pub allowed_names: Vec<String>,
    /// Headers with the name of the user; the first that is there counts.
    #[arg(
        id = "requestheader-username-headers",
        long = "requestheader-username-headers",
        value_name = "HEADER,..",
        value_delimiter = ',',
        default_value = "x-remote-user"
    )]
    pub username_headers: Vec<HeaderName>,
    /// Headers with the uid of the user; the first that is there counts.
    #[arg(
        id = "requestheader-uid-headers",
        long = "requestheader-uid-headers",
        value_name = "HEADER,..",
        value_delimiter = ',',
        default_value = "x-remote-uid"
    )]
    pub uid_headers: Vec<HeaderName>,
    /// Headers with the groups of the user, one in each.
    #[arg(
        id = "requestheader-group-headers",
        long = "requestheader-group-headers",
        value_name = "HEADER,..",
        value_delimiter = ',',
        default_value = "x-remote-group"
    )]
    pub group_headers: Vec<HeaderName>,
    /// What the headers with further attributes of the user begin with; the rest is the name, escaped as in a path.
    #[arg(
        id = "requestheader-extra-headers-prefix",
        long = "requestheader-extra-headers-prefix",
        value_name = "PREFIX,..",
        value_delimiter = ',',
        default_value = "x-remote-extra-"
    )]
    pub extra_header_prefixes: Vec<String>,
}

impl Default for FrontProxy {
    fn default() -> Self {
        let one = |name| vec![HeaderName::from_static(name)];
        Self {
            client_ca_file: None,
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: one("x-remote-uid"),
            group_headers: one("x-remote-group"),
            extra_header_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }
}

impl FrontProxy {
    /// What is wrong with the configuration.
    pub(crate) fn problems(&self) -> Vec<String> {
        let is_empty = |prefix: &String| prefix.trim().is_empty();
        let mut problems = Vec::new();
        if self.extra_header_prefixes.iter().any(is_empty) {
            problems.push("--requestheader-extra-headers-prefix has an empty prefix".to_owned());
        }
        problems
    }

    /// The authenticator, with its authorities; `None` without any.
    pub(crate) fn authenticator(mut self) -> Option<ProxiedUsers> {
        let authorities = ClientCertificates::new(self.client_ca_file.take()?);
        for prefix in &mut self.extra_header_prefixes {
            prefix.make_ascii_lowercase();
        }
        Some(ProxiedUsers {
            proxies: Arc::new(authorities),
            config: self,
        })
    }
}

/// Authenticates by headers of proxies.
#[derive(Debug)]
pub(crate) struct ProxiedUsers {
    pub(crate) proxies: Arc<ClientCertificates>,
    config: FrontProxy,
}

impl Authenticator for ProxiedUsers {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let chain = &credentials.connection().certificates;
        Answer::Now(if chain.is_empty() {
            Ok(None)
        } else {
            let proxy = self.proxies.common_name(chain);
            proxy.and_then(|proxy| self.user(&proxy, credentials.headers()))
        })
    }

    fn headers(&self) -> CredentialHeaders {
        let config = &self.config;
        let names = [
            &config.username_headers,
            &config.uid_headers,
            &config.group_headers,
        ];
        CredentialHeaders {
            names: names.into_iter().flatten().cloned().collect(),
            prefixes: config.extra_header_prefixes.clone(),
        }
    }
}

impl ProxiedUsers {
    /// The user that a proxy with this common name speaks of.
    fn user(&self, proxy: &str, headers: &HeaderMap) -> Authentication {
        let config = &self.config;
        let allowed = &config.allowed_names;
        if !allowed.is_empty() && !allowed.iter().any(|name| name == proxy) {
            return Err(format!("x509: subject with cn={proxy} is not allowed").into());
        }
        let name = first(headers, &config.username_headers)?;
        if name.is_empty() {
            return Ok(None);
        }
        let mut user = UserInfo {
            name,
            uid: first(headers, &config.uid_headers)?,
            ..UserInfo::default()
        };
        for header in &config.group_headers {
            for value in headers.get_all(header) {
                let group = text(header, value)?;
                user.groups.extend((!group.is_empty()).then_some(group));
            }
        }
        for (header, value) in headers {
            let prefixes = config.extra_header_prefixes.iter();
            let mut keys = prefixes.filter_map(|prefix| header.as_str().strip_prefix(prefix));
            let Some(key) = keys.next() else {
                continue;
            };
            let key = decode_percent(key).unwrap_or_else(|| key.to_owned());
            let values = user.extra.entry(key).or_default();
            values.push(text(header, value)?);
        }
        Ok(Some(Arc::new(user)))
    }
}

/// The first text of these headers that is not empty.
fn first(headers: &HeaderMap, names: &[HeaderName]) -> Result<String, BoxError> {
    for name in names {
        if let Some(value) = headers.get(name)
            && !value.is_empty()
        {
            return text(name, value);
        }
    }
    Ok(String::new())
}

/// The text of a header. Other bytes would be another name for each reader.
fn text(name: &HeaderName, value: &HeaderValue) -> Result<String, BoxError> {
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| format!("the header {name} of a proxy is not UTF-8"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(config: FrontProxy) -> ProxiedUsers {
        let client_ca_file = Some(PathBuf::from("none"));
        let config = FrontProxy {
            client_ca_file,
            ..config
        };
        config.authenticator().unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static [u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_user_is_read_from_the_headers_of_the_configuration() {
        let sent = headers(&[
            ("x-remote-user", b""),
            ("x-user", b"jane"),
            ("x-remote-uid", b"7"),
            ("x-remote-group", b"a"),
            ("x-remote-group", b""),
            ("x-remote-group", b"b"),
            ("x-remote-extra-example.com%2fteam", b"x"),
            ("x-remote-extra-example.com%2fteam", b"y"),
            ("x-more-%zz", b"z"),
            ("x-other", b"o"),
        ]);
        let config = FrontProxy {
            username_headers: ["x-remote-user", "x-user"]
                .map(HeaderName::from_static)
                .to_vec(),
            extra_header_prefixes: ["X-Remote-Extra-", "x-more-"].map(str::to_owned).to_vec(),
            ..FrontProxy::default()
        };
        let user = proxied(config).user("proxy", &sent).unwrap().unwrap();
        assert_eq!((&*user.name, &*user.uid), ("jane", "7"));
        assert_eq!(user.groups, ["a", "b"]);
        let extra: Vec<_> = user.extra.iter().collect();
        assert_eq!(extra.len(), 2);
        assert_eq!(user.extra["example.com/team"], ["x", "y"]);
        assert_eq!(user.extra["%zz"], ["z"]);
        // The headers that were not named.
        let user = proxied(FrontProxy::default()).user("proxy", &sent).unwrap();
        assert!(user.is_none());
    }

    #[test]
    fn names_of_proxies_and_bytes_of_headers_are_checked() {
        let config = FrontProxy {
            allowed_names: ["front", "aggregator"].map(str::to_owned).to_vec(),
            ..FrontProxy::default()
        };
        let proxied = proxied(config);
        let jane = headers(&[("x-remote-user", b"jane")]);
        assert!(proxied.user("front", &jane).unwrap().is_some());
        for other in ["", "fronts", "jane"] {
            let error = proxied.user(other, &jane).unwrap_err().to_string();
            let expected = format!("x509: subject with cn={other} is not allowed");
            assert_eq!(error, expected);
        }
        let odd = headers(&[("x-remote-user", b"jane"), ("x-remote-group", b"\xff")]);
        let error = proxied.user("front", &odd).unwrap_err().to_string();
        assert_eq!(error, "the header x-remote-group of a proxy is not UTF-8");
    }

    #[test]
    fn an_empty_prefix_would_take_all_headers() {
        let config = FrontProxy {
            extra_header_prefixes: vec![" ".to_owned()],
            ..FrontProxy::default()
        };
        assert_eq!(config.problems().len(), 1);
        assert!(FrontProxy::default().problems().is_empty());
    }
}
