//! The subresource `token` of service accounts: its registration, and the interface of what issues the tokens.

use std::fmt;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_meta::kind::{SubresourceDef, Verb, Writes};
use apiloom_registry::{
    CreateSubresource, RegistryBuilder, Subresource, SubresourceRequest, subresource_verbs,
};
use async_trait::async_trait;

use crate::authentication::v1::TokenRequest;
use crate::built_in::BuiltIn;
use crate::core::v1::ServiceAccount;

/// Issues the tokens of service accounts.
#[async_trait]
pub trait TokenIssuer: fmt::Debug + Send + Sync + 'static {
    /// Answers a request for a token of an account, which exists.
    ///
    /// # Errors
    /// The error for the client.
    async fn issue(
        &self,
        request: &SubresourceRequest<'_, ServiceAccount>,
        body: TokenRequest,
    ) -> Result<TokenRequest, ApiError>;
}

/// The handler of `serviceaccounts/token`. A part that serves TokenRequest gives one with an issuer to `Builder::subresource`.
#[derive(Debug, Default)]
pub struct ServiceAccountTokens(Option<Arc<dyn TokenIssuer>>);

impl ServiceAccountTokens {
    /// The handler with this issuer.
    pub fn new(issuer: Arc<dyn TokenIssuer>) -> Self {
        Self(Some(issuer))
    }
}

impl Subresource<ServiceAccount> for ServiceAccountTokens {
    type Input = TokenRequest;
    type Output = TokenRequest;
}

#[async_trait]
impl CreateSubresource<ServiceAccount> for ServiceAccountTokens {
    async fn create(
        &self,
        request: &SubresourceRequest<'_, ServiceAccount>,
        body: TokenRequest,
    ) -> Result<TokenRequest, ApiError> {
        let issuer = self.0.as_ref();
        let issuer = issuer.ok_or_else(|| ApiError::internal("no part issues tokens"))?;
        issuer.issue(request, body).await
    }
}

/// Serves the kind as the body of `serviceaccounts/token`, with the accounts.
impl BuiltIn for TokenRequest {
    fn register(registry: &mut RegistryBuilder) {
        ServiceAccount::register(registry);
        let token = SubresourceDef {
            name: "token".into(),
            verbs: vec![Verb::Create],
            writes: Writes::Nothing,
            input: None,
            output: None,
            handler: None,
            connects: false,
        };
        let verbs = subresource_verbs::<ServiceAccount, ServiceAccountTokens>();
        registry.own_subresource::<ServiceAccount>(verbs.create().of(token));
    }
}
