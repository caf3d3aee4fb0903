//! Headers that are credentials, and that no code after authentication may take for ones that were checked.

use http::{HeaderMap, HeaderName};

/// What all headers of a proxy in front of the server begin with, unless the configuration names others.
const OF_PROXIES: &str = "x-remote-";

/// Headers that an authenticator reads as credentials, beside `Authorization` and those that begin with `X-Remote-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialHeaders {
    /// Their names.
    pub names: Vec<HeaderName>,
    /// What their names begin with, in lower case.
    pub prefixes: Vec<String>,
}

impl CredentialHeaders {
    /// Adds others, but those that are removed anyway.
    pub(super) fn extend(&mut self, others: Self) {
        let is_new = |name: &str| !name.starts_with(OF_PROXIES);
        let names = others.names.into_iter();
        self.names
            .extend(names.filter(|name| is_new(name.as_str())));
        let prefixes = others.prefixes.into_iter();
        self.prefixes
            .extend(prefixes.filter(|prefix| is_new(prefix)));
    }

    /// Removes these headers from a request.
    pub(super) fn remove_from(&self, headers: &mut HeaderMap) {
        let is_credential = |name: &&HeaderName| {
            let text = name.as_str();
            text.starts_with(OF_PROXIES)
                || self.names.contains(name)
                || self.prefixes.iter().any(|prefix| text.starts_with(prefix))
        };
        // Nearly no request has one.
        let names: Vec<HeaderName> = headers.keys().filter(is_credential).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_proxies_are_removed_and_others_stay() {
        let mut own = CredentialHeaders::default();
        own.extend(CredentialHeaders {
            names: ["x-user", "x-remote-user"]
                .map(HeaderName::from_static)
                .to_vec(),
            prefixes: ["x-more-", "x-remote-extra-"].map(str::to_owned).to_vec(),
        });
        assert_eq!(own.names.len() + own.prefixes.len(), 2);
        let mut headers = HeaderMap::new();
        for name in [
            "accept",
            "x-remote-user",
            "x-remote-extra-a",
            "x-user",
            "x-users",
            "x-more-b",
            "x-more",
            "x-remote-user",
        ] {
            headers.append(name, HeaderValue::from_static("a"));
        }
        own.remove_from(&mut headers);
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "x-more", "x-users"]);
    }
}
