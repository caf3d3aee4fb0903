//! The parts of the server itself: one folder each, and one line of [`of_server`].

#[cfg(feature = "apis-apiregistration")]
mod aggregator;
#[cfg(feature = "apis-apiextensions")]
mod apiextensions;
mod garbage;
mod namespaces;

use std::sync::Arc;

use super::capability::Capability;
use super::services::ServiceResolver;
use super::{Config, ServerError};

/// The parts of a server with this configuration, in the order in which they start. Services are found by `services`.
///
/// # Errors
/// If the configuration is for a part that the program is built without.
pub(super) fn of_server(
    config: &Config,
    services: &Arc<dyn ServiceResolver>,
) -> Result<Vec<Arc<dyn Capability>>, ServerError> {
    let parts: [Option<Arc<dyn Capability>>; 4] = [
        garbage::part(config),
        namespaces::part(config),
        aggregator(config, services),
        apiextensions(config, services)?,
    ];
    Ok(parts.into_iter().flatten().collect())
}

#[cfg(feature = "apis-apiregistration")]
use self::aggregator::part as aggregator;

#[cfg(not(feature = "apis-apiregistration"))]
fn aggregator(_: &Config, _: &Arc<dyn ServiceResolver>) -> Option<Arc<dyn Capability>> {
    None
}

#[cfg(feature = "apis-apiextensions")]
fn apiextensions(
    config: &Config,
    services: &Arc<dyn ServiceResolver>,
) -> Result<Option<Arc<dyn Capability>>, ServerError> {
    Ok(Some(apiextensions::part(config, services)))
}

#[cfg(not(feature = "apis-apiextensions"))]
fn apiextensions(
    config: &Config,
    _: &Arc<dyn ServiceResolver>,
) -> Result<Option<Arc<dyn Capability>>, ServerError> {
    if config.crds.is_empty() {
        return Ok(None);
    }
    let problem = "definitions cannot be installed: this server is built without the cargo feature apis-apiextensions";
    Err(ServerError::Invalid(vec![problem.to_owned()]))
}
