//! The subresource `token`: responds with the object of the request, completed by a key that the program gives.

use apiloom::prelude::*;
use apiloom::server::{CreateSubresource, Subresource, SubresourceRequest};

use super::{Machine, TokenRequest};

/// Makes tokens of machines. Without a key it makes none.
#[derive(Default)]
pub struct Issuer {
    key: Option<String>,
}

impl Issuer {
    /// An issuer with a key.
    pub fn new(key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
        }
    }
}

impl Subresource<Machine> for Issuer {
    type Input = TokenRequest;
    type Output = TokenRequest;
}

#[async_trait]
impl CreateSubresource<Machine> for Issuer {
    async fn create(
        &self,
        request: &SubresourceRequest<'_, Machine>,
        body: TokenRequest,
    ) -> Result<TokenRequest, ApiError> {
        let key = self.key.as_ref();
        let key = key.ok_or_else(|| ApiError::internal("the server has no key"))?;
        let audiences = body.audiences.join(",");
        let (user, name) = (&request.ctx.user.name, request.name);
        Ok(TokenRequest {
            token: Some(format!("{name} for {audiences} by {user}, with {key}")),
            ..body
        })
    }
}
