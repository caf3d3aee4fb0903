//! The addresses of the services of APIServices, as the resolver of the server finds them.

use std::sync::Arc;

use apiloom_http::sources::aggregation::{Addresses, RemoteTarget, Unreachable};
use apiloom_server::services::{ServiceError, ServicePort, ServiceResolver};
use async_trait::async_trait;

/// The addresses that a resolver finds.
#[derive(Debug)]
pub(super) struct ResolvedAddresses(pub(super) Arc<dyn ServiceResolver>);

#[async_trait]
impl Addresses for ResolvedAddresses {
    async fn address(&self, target: &RemoteTarget) -> Result<(String, u16), Unreachable> {
        let service = ServicePort {
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            port: target.port,
        };
        let found = self.0.resolve(&service).await;
        let address = found.map_err(|error| unreachable(target, &error))?;
        Ok((address.host, address.port))
    }
}

/// The reason and the message of the condition, as kube-aggregator has them.
fn unreachable(target: &RemoteTarget, error: &ServiceError) -> Unreachable {
    let RemoteTarget {
        namespace,
        name,
        port,
        ..
    } = target;
    let place = format!("service/{name} in {namespace:?}");
    let (reason, message) = match error {
        ServiceError::NotFound(_) => ("ServiceNotFound", format!("{place} is not present")),
        ServiceError::PortNotFound(_) => (
            "ServicePortError",
            format!("{place} is not listening on port {port}"),
        ),
        ServiceError::EndpointsNotFound(_) => (
            "EndpointsNotFound",
            format!("cannot find endpoints for {place}"),
        ),
        ServiceError::NoEndpoints(_) => (
            "MissingEndpoints",
            format!("endpoints for {place} have no addresses"),
        ),
        problem => (
            "ServiceAccessError",
            format!("{place} cannot be checked due to: {problem}"),
        ),
    };
    Unreachable::Address { reason, message }
}
