//! Claims that a token only points to: they are in another token, at an endpoint that the first one names (OpenID Connect Core 1.0, section
//! 5.6.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_meta::field::go_quote;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::claims::Claims;
use super::fetch::Fetcher;
use super::provider::{Acceptance, Provider};
use super::token::UnverifiedToken;

/// The claim with the sources of claims by their names, and that with the endpoints of sources.
const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";

/// Most issuers of such tokens that are known.
const MAX_PROVIDERS: usize = 64;

/// Finds a claim in another token.
#[derive(Debug)]
pub(super) struct DistributedClaim {
    claim: String,
    fetcher: Fetcher,
    providers: Mutex<BTreeMap<String, Arc<Provider>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    endpoint: String,
    access_token: String,
}

impl DistributedClaim {
    pub(super) fn new(claim: String, fetcher: Fetcher) -> Self {
        Self {
            claim,
            fetcher,
            providers: Mutex::default(),
        }
    }

    /// Adds the claim to those of a token, if it points to it.
    ///
    /// # Errors
    /// If the other token cannot be had or is not accepted.
    pub(super) async fn expand(
        &self,
        claims: &mut Claims,
        acceptance: &Acceptance,
    ) -> Result<(), String> {
        let Some(endpoint) = self.endpoint(claims)? else {
            return Ok(());
        };
        let value = self.resolve(&endpoint, acceptance).await?;
        claims.insert(self.claim.clone(), value);
        Ok(())
    }

    /// Where the claim is; `None` if it is there already or nowhere.
    fn endpoint(&self, claims: &Claims) -> Result<Option<Endpoint>, String> {
        if claims.contains_key(&self.claim) {
            return Ok(None);
        }
        let Some(names) = claims.get(NAMES) else {
            return Ok(None);
        };
        let names: BTreeMap<String, String> = Deserialize::deserialize(names)
            .map_err(|error| format!("oidc: error parsing distributed claim names: {error}"))?;
        let sources = claims.get(SOURCES).ok_or("oidc: no claim sources")?;
        let mut sources: BTreeMap<String, Endpoint> = Deserialize::deserialize(sources)
            .map_err(|error| format!("oidc: could not parse claim sources: {error}"))?;
        let Some(source) = names.get(&self.claim) else {
            return Ok(None);
        };
        let endpoint = sources.remove(source).ok_or_else(|| {
            format!("id token _claim_names contained a source {source} missing in _claims_sources")
        })?;
        // One without an endpoint has the claim in itself, which no server of Kubernetes reads.
        Ok(Some(endpoint).filter(|endpoint| !endpoint.endpoint.is_empty()))
    }

    async fn resolve(&self, endpoint: &Endpoint, acceptance: &Acceptance) -> Result<Value, String> {
        let (claim, url) = (go_quote(&self.claim), &endpoint.endpoint);
        let token = Some(&*endpoint.access_token).filter(|token| !token.is_empty());
        let document = self.fetcher.get(url, token).await;
        let document =
            document.map_err(|why| format!("while getting distributed claim {claim}: {why}"))?;
        let mut other = UnverifiedToken::read(document.body.trim_ascii()).ok_or_else(|| {
            format!(
                "getting untrusted issuer from endpoint {url} failed for claim {claim}: malformed token"
            )
        })?;
        let issuer = other.issuer().to_owned();
        let provider = self.provider(&issuer).await;
        let provider =
            provider.map_err(|why| format!("verifying untrusted issuer {issuer} failed: {why}"))?;
        provider
            .verify(&other, acceptance)
            .await
            .map_err(|why| format!("verify distributed claim token: {why}"))?;
        other.claims.remove(&self.claim).ok_or_else(|| {
            format!(
                "jwt returned by distributed claim endpoint {} did not contain claim: {}",
                go_quote(url),
                self.claim
            )
        })
    }

    async fn provider(&self, issuer: &str) -> Result<Arc<Provider>, String> {
        if let Some(known) = self.providers.lock().get(issuer) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(Provider::discover(issuer, None, &self.fetcher).await?);
        let mut providers = self.providers.lock();
        if providers.len() >= MAX_PROVIDERS && !providers.contains_key(issuer) {
            return Err(format!("{MAX_PROVIDERS} issuers are known already"));
        }
        Ok(Arc::clone(
            providers.entry(issuer.to_owned()).or_insert(found),
        ))
    }
}
