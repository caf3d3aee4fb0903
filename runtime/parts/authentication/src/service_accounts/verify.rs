//! Authenticates by the tokens of service accounts, in the order and with the errors of kube-apiserver: the signature, the audiences, the
//! times, and whether the account and what the token is bound to are still there.

use std::sync::Arc;

use apiloom_kinds::core::v1::{Secret, ServiceAccount};
use apiloom_meta::field::go_quote;
use apiloom_meta::{ObjectMeta, Time};
use apiloom_registry::Lister;
use apiloom_registry::auth::{
    Answer, Authentication, Authenticator, BoxError, Credentials, UserInfo, aggregate,
    service_account_groups, service_account_name,
};
use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::{Validation, decode, decode_header};

use super::claims::{Claims, ObjectClaim};
use super::key_files::{KeyFiles, Keys, KnownToken};
use crate::audiences::{common, quoted};
use crate::users::CREDENTIAL_ID;

/// By so many seconds the clocks of servers may differ.
const LEEWAY: i64 = 60;

/// What is said of a token from the future.
const UNEXPECTED: &str =
    "service account token claims could not be validated due to unexpected validation error";

/// What is said of a token whose object is gone.
const INVALIDATED: &str = "service account token has been invalidated";

/// Authenticates by tokens of these issuers.
pub(super) struct Verifier {
    pub(super) issuers: Vec<String>,
    pub(super) keys: Arc<KeyFiles>,
    /// The audiences of the server.
    pub(super) audiences: Vec<String>,
    pub(super) accounts: Lister<ServiceAccount>,
    pub(super) secrets: Lister<Secret>,
}

impl Authenticator for Verifier {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let confirmed = credentials.token().map(|token| self.confirmed(token));
        let known = match confirmed {
            None | Some(Ok(None)) => return Answer::Now(Ok(None)),
            Some(Err(error)) => return Answer::Now(Err(error)),
            Some(Ok(Some(known))) => known,
        };
        let now = Time::now().unix_seconds();
        if let Err(error) = self.check(&known.claims, credentials, now) {
            return Answer::Now(Err(error));
        }
        if let Some(objects) = self.cached_objects(&known.claims) {
            let judged = objects.judge(&known.claims, now);
            return Answer::Now(judged.map(|()| Some(Arc::clone(&known.user))));
        }
        Answer::later(async move {
            let objects = self.stored_objects(&known.claims).await?;
            objects.judge(&known.claims, now)?;
            Ok(Some(Arc::clone(&known.user)))
        })
    }

    fn audiences(&self, credentials: &Credentials<'_>) -> Option<Vec<String>> {
        let known = self.confirmed(credentials.token()?).ok()??;
        Some(self.common_audiences(&known.claims, credentials))
    }
}

impl Verifier {
    /// What is known of a token whose signature is right; `None` for one that no issuer of these has made.
    fn confirmed(&self, token: &[u8]) -> Result<Option<Arc<KnownToken>>, BoxError> {
        let Some(keys) = self.keys.keys() else {
            return Ok(None);
        };
        keys.known(token, || self.confirm(token, &keys))
    }

    fn confirm(&self, token: &[u8], keys: &Keys) -> Result<Option<KnownToken>, BoxError> {
        // It is not known yet whether that is true.
        let Ok(said) = insecure_decode::<Claims>(token) else {
            return Ok(None);
        };
        if !self.issuers.contains(&said.claims.iss) {
            return Ok(None);
        }
        let claims = verified(token, keys)?;
        let user = Arc::new(user(&claims));
        Ok(Some(KnownToken { claims, user }))
    }

    /// The audiences that a token is for, among those that are asked for or, if there are none, those of the server.
    fn common_audiences(&self, claims: &Claims, credentials: &Credentials<'_>) -> Vec<String> {
        // A token without audiences is for the server.
        let named = if claims.aud.0.is_empty() {
            &self.audiences
        } else {
            &claims.aud.0
        };
        common(named, credentials.audiences().unwrap_or(&self.audiences))
    }

    /// Checks the audiences and the times of a token.
    fn check(
        &self,
        claims: &Claims,
        credentials: &Credentials<'_>,
        now: i64,
    ) -> Result<(), BoxError> {
        if self.common_audiences(claims, credentials).is_empty() {
            let asked = credentials.audiences().unwrap_or(&self.audiences);
            let (named, asked) = (quoted(&claims.aud.0), quoted(asked));
            return Err(format!(
                "token audiences {named} is invalid for the target audiences {asked}"
            )
            .into());
        }
        check_times(claims, now)
    }

    /// The objects of a token, if the caches have them all.
    fn cached_objects(&self, claims: &Claims) -> Option<TokenObjects> {
        let of = &claims.kubernetes;
        let account = self.accounts.get(&of.namespace, &of.serviceaccount.name);
        let secret = match &of.secret {
            Some(secret) => Some(self.secrets.get(&of.namespace, &secret.name).ok()??),
            None => None,
        };
        Some(TokenObjects {
            account: Some(account.ok()??),
            secret,
        })
    }

    /// The objects of a token, of which those that the caches lack are read from the store.
    async fn stored_objects(&self, claims: &Claims) -> Result<TokenObjects, BoxError> {
        let of = &claims.kubernetes;
        let account = &of.serviceaccount.name;
        let account = self.accounts.get_live(&of.namespace, account).await;
        let secret = match &of.secret {
            Some(secret) => self.secrets.get_live(&of.namespace, &secret.name).await,
            None => Ok(None),
        };
        Ok(TokenObjects {
            account: account.map_err(|error| error.message)?,
            secret: secret.map_err(|_| INVALIDATED)?,
        })
    }
}

/// The objects that a token needs, as far as they are there.
struct TokenObjects {
    account: Option<Arc<ServiceAccount>>,
    secret: Option<Arc<Secret>>,
}

impl TokenObjects {
    /// Checks that they are those of the token, and are not being deleted.
    fn judge(&self, claims: &Claims, now: i64) -> Result<(), BoxError> {
        let of = &claims.kubernetes;
        let ObjectClaim { name, uid } = &of.serviceaccount;
        let Some(account) = &self.account else {
            return Err(format!("serviceaccounts {} not found", go_quote(name)).into());
        };
        let present = account.metadata.uid.as_deref().unwrap_or_default();
        if present != uid {
            return Err(
                format!("service account UID ({present}) does not match claim ({uid})").into(),
            );
        }
        if is_deleted(&account.metadata, now) {
            let namespace = &of.namespace;
            return Err(format!("service account {namespace}/{name} has been deleted").into());
        }
        if let Some(ObjectClaim { uid, .. }) = &of.secret {
            let secret = self.secret.as_ref().ok_or(INVALIDATED)?;
            let present = secret.metadata.uid.as_deref().unwrap_or_default();
            if present != uid {
                return Err(format!(
                    "secret UID ({present}) does not match service account secret ref claim ({uid})"
                )
                .into());
            }
            if is_deleted(&secret.metadata, now) {
                return Err(INVALIDATED.into());
            }
        }
        // There are no such objects here.
        if of.pod.is_some() || of.node.is_some() {
            return Err(INVALIDATED.into());
        }
        Ok(())
    }
}

/// The claims of a token whose signature one of the keys has made.
fn verified(token: &[u8], keys: &Keys) -> Result<Claims, BoxError> {
    let named = decode_header(token)?.kid.unwrap_or_default();
    let mut errors = Vec::new();
    for key in keys.all() {
        if !named.is_empty() && key.published.kid != named {
            continue;
        }
        // All but the signature is checked by the caller.
        let mut signature = Validation::new(key.algorithm);
        signature.required_spec_claims.clear();
        signature.validate_exp = false;
        signature.validate_aud = false;
        match decode::<Claims>(token, &key.key, &signature) {
            Ok(data) => return Ok(data.claims),
            Err(error) => errors.push(error.to_string()),
        }
    }
    if errors.is_empty() {
        return Err("invalid signature, no keys found".into());
    }
    Err(aggregate(&errors).into())
}

/// Checks the times of a token.
fn check_times(claims: &Claims, now: i64) -> Result<(), BoxError> {
    let (late, early) = (now.saturating_add(LEEWAY), now.saturating_sub(LEEWAY));
    if claims.nbf.is_some_and(|nbf| nbf.0 > late) {
        return Err("service account token is not valid yet".into());
    }
    if claims.exp.is_some_and(|exp| exp.0 < early) {
        return Err("service account token has expired".into());
    }
    if claims.iat.is_some_and(|iat| iat.0 > late) {
        return Err(UNEXPECTED.into());
    }
    Ok(())
}

/// Whether an object is being deleted for longer than clocks may differ.
fn is_deleted(metadata: &ObjectMeta, now: i64) -> bool {
    let deleted = metadata.deletion_timestamp;
    deleted.is_some_and(|deleted| deleted.unix_seconds() < now.saturating_sub(LEEWAY))
}

/// The user of a token.
fn user(claims: &Claims) -> UserInfo {
    let of = &claims.kubernetes;
    let id = (!claims.jti.is_empty()).then(|| {
        let id = format!("JTI={}", claims.jti);
        (CREDENTIAL_ID.to_owned(), vec![id])
    });
    UserInfo {
        name: service_account_name(&of.namespace, &of.serviceaccount.name),
        uid: of.serviceaccount.uid.clone(),
        groups: service_account_groups(&of.namespace),
        extra: id.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::Seconds;
    use super::*;

    #[test]
    fn times_have_the_leeway_of_a_minute() {
        let check = |claims: &Claims, expected: Option<&str>| {
            let error = check_times(claims, 1000).err();
            assert_eq!(error.map(|error| error.to_string()).as_deref(), expected);
        };
        let until = |exp| Claims {
            exp: Some(Seconds(exp)),
            ..Claims::default()
        };
        let from = |nbf| Claims {
            nbf: Some(Seconds(nbf)),
            ..Claims::default()
        };
        let made = |iat| Claims {
            iat: Some(Seconds(iat)),
            ..Claims::default()
        };
        check(&Claims::default(), None);
        check(&until(940), None);
        check(&until(939), Some("service account token has expired"));
        check(&until(i64::MIN), Some("service account token has expired"));
        check(&from(1060), None);
        check(&from(1061), Some("service account token is not valid yet"));
        check(&made(1060), None);
        check(&made(i64::MAX), Some(UNEXPECTED));
    }

    #[test]
    fn the_user_is_the_account() {
        let claims: Claims = serde_json::from_value(serde_json::json!({
            "jti": "j",
            "kubernetes.io": {"namespace": "shop", "serviceaccount": {"name": "till", "uid": "u"}},
        }))
        .unwrap();
        let user = user(&claims);
        assert_eq!(user.name, "system:serviceaccount:shop:till");
        assert_eq!(user.uid, "u");
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:shop"]
        );
        assert_eq!(user.extra[CREDENTIAL_ID], ["JTI=j"]);
    }
}
