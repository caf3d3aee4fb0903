//! The answer to the review that asks who is asking.

use apiloom_kinds::authentication::v1::{SelfSubjectReview, SelfSubjectReviewStatus, UserInfo};
use apiloom_meta::{ApiError, Clock};
use apiloom_registry::{CreateOptions, Handler, RequestContext};
use apiloom_server::Builder;
use async_trait::async_trait;

/// Adds the review to a server.
pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .built_in::<SelfSubjectReview>()
        .handler::<SelfSubjectReview>(Reviews)
}

struct Reviews;

#[async_trait]
impl Handler<SelfSubjectReview> for Reviews {
    async fn create(
        &self,
        ctx: &RequestContext,
        mut review: SelfSubjectReview,
        _: &CreateOptions,
    ) -> Result<SelfSubjectReview, ApiError> {
        let user = &ctx.user;
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        review.metadata.creation_timestamp = Some(Clock::default().now());
        review.status = SelfSubjectReviewStatus {
            user_info: UserInfo {
                username: text(&user.name),
                uid: text(&user.uid),
                groups: user.groups.clone(),
                extra: user.extra.clone(),
            },
        };
        Ok(review)
    }
}
