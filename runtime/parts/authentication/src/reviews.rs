//! The answers to the reviews that ask who is asking, and whose a token is.

use std::fmt;

use apiloom_kinds::authentication::v1::{
    SelfSubjectReview, SelfSubjectReviewStatus, TokenReview, TokenReviewStatus,
};
use apiloom_meta::{ApiError, Clock};
use apiloom_registry::auth::Access;
use apiloom_registry::{CreateOptions, Handler, RequestContext};
use apiloom_server::Builder;
use async_trait::async_trait;

use crate::audiences::common;
use crate::users::shown;

/// What is said of a token of no user.
const INVALID_TOKEN: &str = "invalid bearer token";

/// Adds the reviews to a server with these audiences.
pub(crate) fn add(builder: Builder, audiences: &[String]) -> Builder {
    let reviews = TokenReviews {
        access: builder.access(),
        audiences: audiences.to_vec(),
    };
    builder
        .built_in::<SelfSubjectReview>()
        .handler::<SelfSubjectReview>(SelfReviews)
        .built_in::<TokenReview>()
        .handler::<TokenReview>(reviews)
}

struct SelfReviews;

#[async_trait]
impl Handler<SelfSubjectReview> for SelfReviews {
    async fn create(
        &self,
        ctx: &RequestContext,
        mut review: SelfSubjectReview,
        _: &CreateOptions,
    ) -> Result<SelfSubjectReview, ApiError> {
        review.metadata.creation_timestamp = Some(Clock::default().now());
        review.status = SelfSubjectReviewStatus {
            user_info: shown(&ctx.user),
        };
        Ok(review)
    }
}

/// Answers reviews of tokens by the authenticators of the server.
struct TokenReviews {
    access: Access,
    /// Those of the server: tokens without an audience are for them.
    audiences: Vec<String>,
}

impl fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviews").finish_non_exhaustive()
    }
}

#[async_trait]
impl Handler<TokenReview> for TokenReviews {
    async fn create(
        &self,
        _: &RequestContext,
        mut review: TokenReview,
        _: &CreateOptions,
    ) -> Result<TokenReview, ApiError> {
        let token = review.spec.token.as_deref().unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        let given = &review.spec.audiences;
        let asked = (!given.is_empty()).then_some(given.as_slice());
        let verdict = self.access.review_token(token, asked).await?;
        let all = asked.unwrap_or(&self.audiences);
        let identity = verdict.identity.and_then(|(user, audiences)| {
            let audiences = audiences.unwrap_or_else(|| common(all, &self.audiences));
            // A token without audiences is for those of the server alone.
            let is_meant = all.is_empty() || !audiences.is_empty();
            is_meant.then_some((user, audiences))
        });
        review.status = match identity {
            Some((user, audiences)) => TokenReviewStatus {
                authenticated: Some(true),
                user: shown(&user),
                audiences,
                error: verdict.error,
            },
            None => TokenReviewStatus {
                error: verdict.error.or_else(|| Some(INVALID_TOKEN.to_owned())),
                ..TokenReviewStatus::default()
            },
        };
        Ok(review)
    }
}
