//! The subresource `restart`: counts restarts in the status, and responds with a Status.

use apiloom::meta::Status;
use apiloom::prelude::*;
use apiloom::server::{CreateSubresource, Subresource, SubresourceRequest};

use super::{Machine, Restart};

/// Restarts a machine that is switched on.
#[derive(Default)]
pub struct Restarter;

impl Subresource<Machine> for Restarter {
    type Input = Restart;
    type Output = Status;
}

#[async_trait]
impl CreateSubresource<Machine> for Restarter {
    async fn create(
        &self,
        request: &SubresourceRequest<'_, Machine>,
        body: Restart,
    ) -> Result<Status, ApiError> {
        if !request.object.spec.on {
            return Err(ApiError::bad_request(format!(
                "machine {:?} is switched off",
                request.name
            )));
        }
        request
            .ctx
            .warn(format!("{} is restarted: {}", request.name, body.reason));
        let count = |machine: &mut Machine| {
            machine.status.get_or_insert_default().restarts += 1;
        };
        request.update("status", count).await?;
        Ok(Status::success())
    }
}
