//! Webhooks that convert objects.

mod conversion;

use std::sync::{Arc, OnceLock};

use apiloom_http::observation::metrics::ConversionMetrics;
use apiloom_server::services::ServiceResolver;

pub(super) use self::conversion::ConversionWebhook;

/// What all webhooks of a server share.
#[derive(Clone, Debug)]
pub(super) struct Webhooks {
    services: Arc<dyn ServiceResolver>,
    /// Set once the server has metrics, before it serves requests.
    metrics: Arc<OnceLock<ConversionMetrics>>,
}

impl Webhooks {
    pub(super) fn new(services: Arc<dyn ServiceResolver>) -> Self {
        Self {
            services,
            metrics: Arc::default(),
        }
    }

    /// Counts calls in these metrics from now on.
    pub(super) fn count_in(&self, metrics: ConversionMetrics) {
        let _ = self.metrics.set(metrics);
    }
}
