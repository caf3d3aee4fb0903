//! An issuer of a configuration: its tokens become users.

use std::sync::{Arc, OnceLock};

use apiloom_registry::auth::UserInfo;
use tokio::sync::Mutex;

use super::claims::Mapper;
use super::config::IssuerConfig;
use super::distributed::DistributedClaim;
use super::expressions::Expressions;
use super::fetch::Fetcher;
use super::provider::{Acceptance, Provider};
use super::token::UnverifiedToken;

/// An issuer, ready to be asked.
pub(super) struct Issuer {
    pub(super) config: IssuerConfig,
    expressions: Expressions,
    acceptance: Acceptance,
    fetcher: Fetcher,
    distributed: Option<DistributedClaim>,
    provider: OnceLock<Provider>,
    /// Held while the issuer is asked who it is.
    discovering: Mutex<()>,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Issuer").field(&self.url()).finish()
    }
}

impl Issuer {
    /// One of a configuration that was checked. `algorithms` are those that its tokens may have.
    pub(super) fn new(
        config: IssuerConfig,
        expressions: Expressions,
        algorithms: Vec<&'static str>,
    ) -> Self {
        let pem = &config.issuer.certificate_authority;
        let fetcher = Fetcher {
            authorities: (!pem.is_empty()).then(|| pem.clone().into_bytes()),
        };
        let claim = &config.claim_mappings.groups.claim;
        let distributed =
            (!claim.is_empty()).then(|| DistributedClaim::new(claim.clone(), fetcher.clone()));
        Self {
            acceptance: Acceptance {
                audiences: config.issuer.audiences.clone(),
                algorithms,
            },
            expressions,
            fetcher,
            distributed,
            provider: OnceLock::new(),
            discovering: Mutex::new(()),
            config,
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.config.issuer.url
    }

    /// Reads where the keys of the issuer are, unless that is known.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) async fn discover(&self) -> Result<(), String> {
        if self.provider.get().is_some() {
            return Ok(());
        }
        let _one = self.discovering.lock().await;
        if self.provider.get().is_some() {
            return Ok(());
        }
        let address = &self.config.issuer;
        let discovery_url = address.discovery_url.as_deref();
        let discovery_url = discovery_url.filter(|url| !url.is_empty());
        let found = Provider::discover(&address.url, discovery_url, &self.fetcher).await?;
        // Only this function sets it, and others wait.
        let _ = self.provider.set(found);
        Ok(())
    }

    /// The user of a token of this issuer.
    ///
    /// # Errors
    /// Why it is not accepted, in the words of kube-apiserver.
    pub(super) async fn user(
        &self,
        mut token: UnverifiedToken<'_>,
    ) -> Result<Arc<UserInfo>, String> {
        let provider = self.provider.get();
        let provider = provider.ok_or("oidc: authenticator not initialized")?;
        provider
            .verify(&token, &self.acceptance)
            .await
            .map_err(|why| format!("oidc: verify token: {why}"))?;
        if let Some(distributed) = &self.distributed {
            distributed
                .expand(&mut token.claims, &self.acceptance)
                .await
                .map_err(|why| format!("oidc: could not expand distributed claims: {why}"))?;
        }
        let mapper = Mapper {
            config: &self.config,
            expressions: &self.expressions,
        };
        Ok(Arc::new(mapper.user(&token.claims)?))
    }
}
