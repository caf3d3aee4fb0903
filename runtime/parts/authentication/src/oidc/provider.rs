//! An issuer as its discovery document describes it (OpenID Connect Discovery 1.0), and the verification of its tokens.

use apiloom_meta::field::go_quote;
use serde::Deserialize;

use super::fetch::Fetcher;
use super::key_set::KeySet;
use super::token::UnverifiedToken;
use crate::now::now;

/// The path of discovery documents, behind the URL of the issuer.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// An issuer whose keys are known.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: String,
    keys: KeySet,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Which tokens of a provider are accepted.
#[derive(Debug)]
pub(super) struct Acceptance {
    pub(super) audiences: Vec<String>,
    pub(super) algorithms: Vec<&'static str>,
}

impl Provider {
    /// Reads the discovery document of an issuer, at another URL if one is given.
    ///
    /// # Errors
    /// If it cannot be read or is that of another issuer.
    pub(super) async fn discover(
        issuer: &str,
        discovery_url: Option<&str>,
        fetcher: &Fetcher,
    ) -> Result<Self, String> {
        let well_known = format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/'));
        let url = discovery_url.unwrap_or(&well_known);
        let document = fetcher.get(url, None).await?;
        let found: Discovery = serde_json::from_slice(&document.body).map_err(|error| {
            format!("oidc: failed to decode provider discovery object: {error}")
        })?;
        if found.issuer != issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
                go_quote(issuer),
                go_quote(&found.issuer)
            ));
        }
        if found.jwks_uri.is_empty() {
            return Err("provider did not return JWKS URL".to_owned());
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            keys: KeySet::new(found.jwks_uri, fetcher.clone()),
        })
    }

    /// Checks a token of the issuer.
    ///
    /// # Errors
    /// The first that is wrong with it.
    pub(super) async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        acceptance: &Acceptance,
    ) -> Result<(), String> {
        let Acceptance {
            audiences,
            algorithms,
        } = acceptance;
        token.check(&self.issuer, audiences, now())?;
        let signature = token.signature(algorithms)?;
        let key = signature.key.as_deref();
        self.keys
            .verify(token.text, signature.algorithm, key)
            .await?;
        token.check_audiences(audiences)
    }
}
