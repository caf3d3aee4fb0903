//! The headers by which a client asks to be another user. They are taken from the request before anything else sees them.

use apiloom_http::decode_percent;
use apiloom_meta::ApiError;
use apiloom_meta::field::{echoed, go_quote};
use apiloom_registry::auth::UserInfo;
use http::header::{HeaderMap, HeaderName, HeaderValue};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// What all these headers begin with.
const ANY: &str = "impersonate-";

/// The headers of impersonation of a request.
#[derive(Debug)]
pub(super) struct ImpersonationHeaders(HeaderMap);

impl ImpersonationHeaders {
    /// Takes the headers from a request; `None` if there are none.
    pub(super) fn take(headers: &mut HeaderMap) -> Option<Box<Self>> {
        let is_ours = |name: &&HeaderName| name.as_str().starts_with(ANY);
        // Nearly no request has one.
        headers.keys().find(is_ours)?;
        let names: Vec<HeaderName> = headers.keys().filter(is_ours).cloned().collect();
        let mut taken = HeaderMap::new();
        for name in names {
            for value in headers.get_all(&name) {
                taken.append(&name, value.clone());
            }
            headers.remove(&name);
        }
        Some(Box::new(Self(taken)))
    }

    /// The user that is asked for; `None` if only an empty name is.
    ///
    /// # Errors
    /// BadRequest for a header that has no meaning, and for all others without that of the user.
    pub(super) fn user(&self) -> Result<Option<UserInfo>, ApiError> {
        let mut user = UserInfo {
            name: first(&self.0, USER)?,
            uid: first(&self.0, UID)?,
            ..UserInfo::default()
        };
        for value in self.0.get_all(GROUP) {
            user.groups.push(text(GROUP, value)?);
        }
        for (name, value) in &self.0 {
            let Some(key) = name.as_str().strip_prefix(EXTRA) else {
                continue;
            };
            let key = decode_percent(key).unwrap_or_else(|| key.to_owned());
            user.extra
                .entry(key)
                .or_default()
                .push(text(name.as_str(), value)?);
        }
        let is_nothing = user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty();
        match (user.name.is_empty(), is_nothing) {
            (true, true) => Ok(None),
            (true, false) => Err(ApiError::bad_request(format!(
                "requested {} without impersonating a user name",
                go_struct(&user)
            ))),
            (false, _) => Ok(Some(user)),
        }
    }
}

fn first(headers: &HeaderMap, name: &str) -> Result<String, ApiError> {
    headers
        .get(name)
        .map_or(Ok(String::new()), |value| text(name, value))
}

/// The text of a header. Other bytes would be another name for each reader.
fn text(name: &str, value: &HeaderValue) -> Result<String, ApiError> {
    let text = std::str::from_utf8(value.as_bytes());
    let wrong = |_| ApiError::bad_request(format!("the header {} is not UTF-8", echoed(name)));
    text.map(str::to_owned).map_err(wrong)
}

/// A user as Go prints its struct with `%#v`.
fn go_struct(user: &UserInfo) -> String {
    let list = |words: &[String]| {
        let words: Vec<String> = words.iter().map(|word| go_quote(word)).collect();
        words.join(", ")
    };
    let groups = if user.groups.is_empty() {
        "(nil)".to_owned()
    } else {
        format!("{{{}}}", list(&user.groups))
    };
    let entries = user.extra.iter();
    let entries: Vec<String> = entries
        .map(|(key, values)| format!("{}:[]string{{{}}}", go_quote(key), list(values)))
        .collect();
    let extra = if entries.is_empty() {
        "(nil)".to_owned()
    } else {
        format!("{{{}}}", entries.join(", "))
    };
    let text = format!(
        "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}",
        go_quote(&user.uid)
    );
    echoed(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_headers_are_taken_and_read() {
        let mut request = headers(&[
            ("accept", "a"),
            ("impersonate-user", "bob"),
            ("impersonate-group", "one"),
            ("impersonate-group", "two"),
            ("impersonate-extra-example.com%2fteam", "x"),
            ("impersonate-extra-%zz", "y"),
            ("impersonate-other", "z"),
        ]);
        let taken = ImpersonationHeaders::take(&mut request).unwrap();
        assert_eq!(request, headers(&[("accept", "a")]));
        let user = taken.user().unwrap().unwrap();
        assert_eq!(user.name, "bob");
        assert_eq!(user.groups, ["one", "two"]);
        assert_eq!(user.extra["example.com/team"], ["x"]);
        assert_eq!(user.extra["%zz"], ["y"]);
        assert!(ImpersonationHeaders::take(&mut request).is_none());
    }

    #[test]
    fn nothing_is_impersonated_without_a_user() {
        let user = |pairs: &[_]| {
            ImpersonationHeaders::take(&mut headers(pairs))
                .unwrap()
                .user()
        };
        assert_eq!(user(&[("impersonate-user", "")]).unwrap(), None);
        let error = user(&[("impersonate-group", "team")]).unwrap_err();
        let expected = r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"team"}, Extra:map[string][]string(nil)} without impersonating a user name"#;
        assert_eq!(error.message, expected);
    }
}
