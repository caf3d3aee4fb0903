//! What a token says: the claims of JSON Web Tokens (RFC 7519), and those of Kubernetes.

use serde::{Deserialize, Serialize};

/// The claims of a token of a service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(default, skip_serializing_if = "Audiences::is_empty")]
    pub(super) aud: Audiences,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) iat: Option<Seconds>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) iss: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) jti: String,
    #[serde(rename = "kubernetes.io", default)]
    pub(super) kubernetes: KubernetesClaims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<Seconds>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) sub: String,
}

/// The claim `kubernetes.io`: whose the token is, and what it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KubernetesClaims {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<ObjectClaim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<ObjectClaim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<ObjectClaim>,
    #[serde(default)]
    pub(super) serviceaccount: ObjectClaim,
}

/// An object that a token names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectClaim {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
}

/// Audiences: one text or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AudienceForm", into = "Vec<String>")]
pub(super) struct Audiences(pub(super) Vec<String>);

impl Audiences {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Audiences> for Vec<String> {
    fn from(audiences: Audiences) -> Self {
        audiences.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AudienceForm {
    One(String),
    Several(Vec<String>),
}

impl From<AudienceForm> for Audiences {
    fn from(form: AudienceForm) -> Self {
        Self(match form {
            AudienceForm::One(audience) => vec![audience],
            AudienceForm::Several(audiences) => audiences,
        })
    }
}

/// A time in seconds since 1970, of which a fraction is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "f64", into = "i64")]
pub(super) struct Seconds(pub(super) i64);

impl From<f64> for Seconds {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a number outside of the range is the end of it"
    )]
    fn from(seconds: f64) -> Self {
        Self(seconds as i64)
    }
}

impl From<Seconds> for i64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_read_in_the_forms_that_others_write() {
        let claims = |value| serde_json::from_value::<Claims>(value).unwrap();
        let one = claims(json!({"aud": "a", "exp": 1.9e9, "other": 1}));
        assert_eq!(one.aud.0, ["a"]);
        assert_eq!(one.exp, Some(Seconds(1_900_000_000)));
        let several = claims(json!({"aud": ["a", "b"], "kubernetes.io": {
            "namespace": "shop", "serviceaccount": {"name": "till", "uid": "u"}, "warnafter": 1,
        }}));
        assert_eq!(several.aud.0, ["a", "b"]);
        assert_eq!(several.kubernetes.serviceaccount.name, "till");
        let written = serde_json::to_value(&several).unwrap();
        assert_eq!(
            written,
            json!({"aud": ["a", "b"], "kubernetes.io": {
                "namespace": "shop", "serviceaccount": {"name": "till", "uid": "u"},
            }})
        );
    }
}
