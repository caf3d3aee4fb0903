//! Issues tokens: the answer to `serviceaccounts/token`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use apiloom_kinds::authentication::TokenIssuer;
use apiloom_kinds::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestStatus};
use apiloom_kinds::core::v1::{Secret, ServiceAccount};
use apiloom_meta::{
    ApiError, FieldError, FieldPath, GroupKind, GroupResource, ObjectMeta, Resource as _, Time,
};
use apiloom_registry::auth::service_account_name;
use apiloom_registry::{Lister, SubresourceRequest};
use async_trait::async_trait;
use jsonwebtoken::Header;
use uuid::Uuid;

use super::claims::{Audiences, Claims, KubernetesClaims, ObjectClaim, Seconds};
use super::key_files::KeyFiles;

/// The shortest time of a token, in seconds.
const MIN_SECONDS: i64 = 600;
/// The longest time that can be asked for, in seconds.
const MAX_SECONDS: i64 = 1 << 32;

/// Issues tokens in the name of an issuer.
pub(super) struct Issuer {
    pub(super) name: String,
    pub(super) keys: Arc<KeyFiles>,
    /// The audiences of the server.
    pub(super) audiences: Vec<String>,
    pub(super) max_expiration: Option<Duration>,
    pub(super) secrets: Lister<Secret>,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.name).finish()
    }
}

#[async_trait]
impl TokenIssuer for Issuer {
    async fn issue(
        &self,
        request: &SubresourceRequest<'_, ServiceAccount>,
        mut body: TokenRequest,
    ) -> Result<TokenRequest, ApiError> {
        if body.spec.audiences.is_empty() {
            body.spec.audiences.clone_from(&self.audiences);
        }
        let now = Time::now();
        body.metadata.creation_timestamp = Some(now);
        let asked = body.spec.expiration_seconds.unwrap_or_default();
        check_seconds(asked)?;
        let secret = match &body.spec.bound_object_ref {
            Some(bound) => Some(self.bound_secret(bound, request.namespace).await?),
            None => None,
        };
        let most = self.max_expiration.map(|most| most.as_secs());
        let most = most.and_then(|most| i64::try_from(most).ok());
        let seconds = most.map_or(asked, |most| most.min(asked));
        if seconds < asked {
            request.ctx.warn(format!(
                "requested expiration of {asked} seconds shortened to {seconds} seconds"
            ));
            body.spec.expiration_seconds = Some(seconds);
        }
        let ends = now.unix_seconds().saturating_add(seconds);
        let claims = Claims {
            aud: Audiences(body.spec.audiences.clone()),
            exp: Some(Seconds(ends)),
            iat: Some(Seconds(now.unix_seconds())),
            iss: self.name.clone(),
            jti: Uuid::new_v4().to_string(),
            kubernetes: KubernetesClaims {
                namespace: request.namespace.to_owned(),
                secret,
                serviceaccount: claim(&request.object.metadata),
                ..KubernetesClaims::default()
            },
            nbf: Some(Seconds(now.unix_seconds())),
            sub: service_account_name(request.namespace, request.name),
        };
        body.status = TokenRequestStatus {
            token: self.sign(&claims)?,
            expiration_timestamp: Some(Time::from_unix_seconds(ends)),
        };
        Ok(body)
    }
}

impl Issuer {
    fn sign(&self, claims: &Claims) -> Result<String, ApiError> {
        let failed = |why: &str| ApiError::internal(format!("failed to generate token: {why}"));
        let keys = self.keys.keys();
        let keys = keys.ok_or_else(|| failed("the key is not read"))?;
        let signing = keys.signing();
        let header = Header {
            typ: None,
            kid: Some(signing.public.published.kid.clone()),
            ..Header::new(signing.public.algorithm)
        };
        let token = jsonwebtoken::encode(&header, claims, &signing.key);
        token.map_err(|error| failed(&error.to_string()))
    }

    /// The secret that a token is bound to.
    async fn bound_secret(
        &self,
        bound: &BoundObjectReference,
        namespace: &str,
    ) -> Result<ObjectClaim, ApiError> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (api_version, kind) = (text(&bound.api_version), text(&bound.kind));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if !group.is_empty() || kind != Secret::KIND {
            let slash = if group.is_empty() { "/" } else { "" };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {slash}{api_version}, Kind={kind}"
            )));
        }
        let name = text(&bound.name);
        let secret = self.secrets.get_live(namespace, &name).await?;
        let secret = secret.ok_or_else(|| {
            ApiError::not_found(&GroupResource::new(Secret::GROUP, Secret::PLURAL), &name)
        })?;
        let claim = claim(&secret.metadata);
        match &bound.uid {
            Some(uid) if !uid.is_empty() && *uid != claim.uid => Err(ApiError::conflict(
                &GroupResource::new(group, &kind),
                &name,
                &format!(
                    "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
                ),
            )),
            _ => Ok(claim),
        }
    }
}

/// The claim that names an object.
fn claim(metadata: &ObjectMeta) -> ObjectClaim {
    ObjectClaim {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
    }
}

/// Checks for how long a token is asked for.
///
/// # Errors
/// Invalid.
fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let detail = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let path = FieldPath::new("spec").child("expirationSeconds");
    let error = FieldError::invalid(&path, seconds, detail);
    Err(ApiError::invalid(&kind(), "", &[error]))
}

fn kind() -> GroupKind {
    GroupKind::new(TokenRequest::GROUP, TokenRequest::KIND)
}
