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
#[cfg_attr(
    not(any(feature = "apis-apiextensions", feature = "apis-apiregistration")),
    allow(unused_variables, reason = "only these parts find services")
)]
pub(super) fn of_server(
    config: &Config,
    services: &Arc<dyn ServiceResolver>,
) -> Result<Vec<Arc<dyn Capability>>, ServerError> {
    let mut parts: Vec<Arc<dyn Capability>> = Vec::new();
    parts.extend(garbage::part(config));
    parts.extend(namespaces::part(config));
    #[cfg(feature = "apis-apiregistration")]
    parts.push(aggregator::part(config, services));
    #[cfg(feature = "apis-apiextensions")]
    parts.push(apiextensions::part(config, services));
    if !cfg!(feature = "apis-apiextensions") && !config.crds.is_empty() {
        let problem = "definitions cannot be installed: this server is built without the cargo feature apis-apiextensions";
        return Err(ServerError::Invalid(vec![problem.to_owned()]));
    }
    Ok(parts)
}
