//! The subresource `power`: a field of the object as a kind of its own.

use apiloom::prelude::*;
use apiloom::server::{GetSubresource, Subresource, SubresourceRequest, UpdateSubresource};

use super::{Machine, PowerState};

/// Shows and switches the power of a machine.
#[derive(Default)]
pub struct Power;

impl Subresource<Machine> for Power {
    type Input = PowerState;
    type Output = PowerState;
}

/// The power of a machine.
fn state_of(machine: &Machine) -> PowerState {
    PowerState {
        metadata: ObjectMeta {
            name: machine.metadata.name.clone(),
            namespace: machine.metadata.namespace.clone(),
            uid: machine.metadata.uid.clone(),
            resource_version: machine.metadata.resource_version.clone(),
            ..ObjectMeta::default()
        },
        on: machine.spec.on,
    }
}

#[async_trait]
impl GetSubresource<Machine> for Power {
    async fn get(&self, request: &SubresourceRequest<'_, Machine>) -> Result<PowerState, ApiError> {
        Ok(state_of(&request.object))
    }
}

#[async_trait]
impl UpdateSubresource<Machine> for Power {
    async fn update(
        &self,
        request: &SubresourceRequest<'_, Machine>,
        body: PowerState,
    ) -> Result<PowerState, ApiError> {
        let switch = |machine: &mut Machine| machine.spec.on = body.on;
        Ok(state_of(&request.update("", switch).await?))
    }
}
