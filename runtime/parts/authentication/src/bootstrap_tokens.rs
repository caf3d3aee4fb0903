//! Bootstrap tokens: short tokens for the first requests of a machine or a program, each a secret of the namespace kube-system, as those of
//! kube-apiserver and kubeadm. What is wrong with a secret is said in the log, and its token is unknown.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiloom_kinds::core::v1::Secret;
use apiloom_meta::Time;
use apiloom_registry::Lister;
use apiloom_registry::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
use aws_lc_rs::constant_time::verify_slices_are_equal;

/// The namespace of the secrets.
const NAMESPACE: &str = "kube-system";
/// What their names begin with; the rest is the id of the token.
const PREFIX: &str = "bootstrap-token-";
/// Their type.
const TYPE: &str = "bootstrap.kubernetes.io/token";
/// The group of all users by such tokens. The names of further groups begin with it and a colon.
const GROUP: &str = "system:bootstrappers";
/// The longest name of a further group behind that.
const MAX_GROUP_BYTES: usize = 256;
/// Characters of an id.
const ID: usize = 6;
/// Characters of the part of a token that is secret.
const REST: usize = 16;

/// Authenticates by bootstrap tokens.
pub(crate) struct BootstrapTokens {
    pub(crate) secrets: Lister<Secret>,
}

impl Authenticator for BootstrapTokens {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let Some((id, rest)) = credentials.token().and_then(parts) else {
            return Answer::Now(Ok(None));
        };
        let name = format!("{PREFIX}{id}");
        let secret = self.secrets.get(NAMESPACE, &name);
        Answer::Now(match secret {
            Ok(Some(secret)) => Ok(user(&secret, (id, rest), Time::now())
                .inspect_err(|why| tracing::debug!(name, why, "a bootstrap token is not accepted"))
                .ok()
                .map(Arc::new)),
            Ok(None) => Ok(None),
            Err(error) => Err(error.message.into()),
        })
    }
}

/// The id and the rest of a token; `None` for one of another form.
fn parts(token: &[u8]) -> Option<(&str, &[u8])> {
    let (id, rest) = token.split_at_checked(ID)?;
    let rest = rest.strip_prefix(b".")?;
    let is_plain = |part: &[u8]| {
        let mut bytes = part.iter();
        bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_token = rest.len() == REST && is_plain(id) && is_plain(rest);
    is_token.then(|| Some((std::str::from_utf8(id).ok()?, rest)))?
}

/// The user of a token by its secret.
///
/// # Errors
/// Why the secret does not confirm it.
fn user(secret: &Secret, (id, rest): (&str, &[u8]), now: Time) -> Result<UserInfo, &'static str> {
    let data = |key: &str| secret.data.get(key).map_or(&b""[..], Vec::as_slice);
    if secret.metadata.deletion_timestamp.is_some() {
        return Err("the secret is being deleted");
    }
    if secret.secret_type != TYPE {
        return Err("the secret has another type");
    }
    if verify_slices_are_equal(data("token-secret"), rest).is_err() {
        return Err("the token has another token-secret");
    }
    if data("token-id") != id.as_bytes() {
        return Err("the secret has another token-id than its name");
    }
    if has_expired(data("expiration"), now) {
        return Err("the token has expired");
    }
    if data("usage-bootstrap-authentication") != b"true" {
        return Err("the token is not for authentication");
    }
    Ok(UserInfo {
        name: format!("system:bootstrap:{id}"),
        groups: groups(data("auth-extra-groups"))?,
        ..UserInfo::default()
    })
}

/// Whether a time is over; one that is none is.
fn has_expired(expiration: &[u8], now: Time) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let text = std::str::from_utf8(expiration).ok();
    let ends: Option<Time> = text.and_then(|text| text.parse().ok());
    ends.is_none_or(|ends| ends < now)
}

/// The groups of a token, sorted.
fn groups(extra: &[u8]) -> Result<Vec<String>, &'static str> {
    let extra = std::str::from_utf8(extra).map_err(|_| "auth-extra-groups is no text")?;
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        let rest = group.strip_prefix(GROUP);
        let rest = rest.and_then(|rest| rest.strip_prefix(':'));
        let is_group = rest.is_some_and(|rest| {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let bytes = rest.as_bytes();
            let is_ended = bytes.last().is_some_and(|last| is_plain(*last));
            let mut bytes = bytes.iter();
            let is_allowed = |byte: &u8| is_plain(*byte) || matches!(byte, b':' | b'-');
            is_ended && rest.len() <= MAX_GROUP_BYTES && bytes.all(is_allowed)
        });
        if !is_group {
            return Err("auth-extra-groups has a group that is not of system:bootstrappers");
        }
        groups.insert(group.to_owned());
    }
    Ok(groups.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST_OF: &[u8] = b"0123456789abcdef";

    fn secret(change: impl FnOnce(&mut Secret)) -> Secret {
        let mut secret = Secret {
            secret_type: TYPE.to_owned(),
            ..Secret::default()
        };
        for (key, value) in [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            (
                "auth-extra-groups",
                "system:bootstrappers:kubeadm:b,system:bootstrappers:a",
            ),
            ("expiration", "2026-01-01T00:00:10Z"),
        ] {
            secret
                .data
                .insert(key.to_owned(), value.as_bytes().to_vec());
        }
        change(&mut secret);
        secret
    }

    fn judge(change: impl FnOnce(&mut Secret)) -> Result<UserInfo, &'static str> {
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        user(&secret(change), ("abcdef", REST_OF), now)
    }

    #[test]
    fn a_token_has_two_parts_of_its_own_form() {
        let good = parts(b"abcdef.0123456789abcdef");
        assert_eq!(good, Some(("abcdef", REST_OF)));
        for other in [
            &b""[..],
            b"abcdef",
            b"abcdef.",
            b"abcdef.0123456789abcde",
            b"abcdef.0123456789abcdefg",
            b"abcdeF.0123456789abcdef",
            b"abcde/.0123456789abcdef",
            b"abcdef-0123456789abcdef",
            b"abcd\xc3\xa4.0123456789abcdef",
        ] {
            assert_eq!(parts(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn a_secret_confirms_its_token() {
        let user = judge(|_| {}).unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [
                "system:bootstrappers",
                "system:bootstrappers:a",
                "system:bootstrappers:kubeadm:b"
            ]
        );
        let least = judge(|secret| {
            secret.data.remove("expiration");
            secret.data.remove("auth-extra-groups");
        });
        assert_eq!(least.unwrap().groups, [GROUP]);
    }

    #[test]
    fn a_secret_that_is_not_right_confirms_nothing() {
        let with = |key: &str, value: &str| {
            let (key, value) = (key.to_owned(), value.as_bytes().to_vec());
            judge(|secret| drop(secret.data.insert(key, value)))
        };
        let deleted = judge(|secret| secret.metadata.deletion_timestamp = Some(Time::now()));
        assert_eq!(deleted, Err("the secret is being deleted"));
        let other = judge(|secret| secret.secret_type = Secret::OPAQUE.to_owned());
        assert_eq!(other, Err("the secret has another type"));
        for value in ["", "0123456789abcdee", "0123456789abcdef0"] {
            let why = "the token has another token-secret";
            assert_eq!(with("token-secret", value), Err(why));
        }
        let why = "the secret has another token-id than its name";
        assert_eq!(with("token-id", "abcdee"), Err(why));
        for value in ["2026-01-01T00:00:09Z", "soon"] {
            assert_eq!(with("expiration", value), Err("the token has expired"));
        }
        for value in ["", "True"] {
            let why = "the token is not for authentication";
            assert_eq!(with("usage-bootstrap-authentication", value), Err(why));
        }
        let long = format!("system:bootstrappers:{}", "a".repeat(MAX_GROUP_BYTES + 1));
        for value in [
            "system:masters",
            "system:bootstrappers",
            "system:bootstrappers:",
            "system:bootstrappers:a-",
            "system:bootstrappers:A",
            "system:bootstrappers:a,",
            &long,
        ] {
            let why = "auth-extra-groups has a group that is not of system:bootstrappers";
            assert_eq!(with("auth-extra-groups", value), Err(why), "{value}");
        }
    }
}
