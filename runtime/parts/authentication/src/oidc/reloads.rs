//! How often the configuration was read again, for `/metrics`. The names are those of kube-apiserver.

use std::sync::Arc;

use apiloom_client::metrics::{Collect, Samples};
use parking_lot::Mutex;

use crate::now::now;

const RESULTS: [(&str, usize); 2] = [("success", 0), ("failure", 1)];

/// How often, and when last in seconds since 1970, with success and without. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reloads(Arc<Mutex<[(u64, f64); 2]>>);

impl Reloads {
    /// Counts a reload.
    pub(super) fn count(&self, is_success: bool) {
        let mut counts = self.0.lock();
        let (count, last) = &mut counts[usize::from(!is_success)];
        *count += 1;
        *last = now();
    }
}

impl Collect for Reloads {
    fn collect(&self, samples: &mut Samples) {
        let counts = *self.0.lock();
        for (status, index) in RESULTS {
            let (count, last) = counts[index];
            if count == 0 {
                continue;
            }
            let labels = [("status", status)];
            samples.counter(
                "apiserver_authentication_config_controller_automatic_reloads_total",
                "How often the authentication configuration was read again because its file had changed",
                &labels,
                count,
            );
            samples.gauge(
                "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
                "When the authentication configuration was read again last",
                &labels,
                last,
            );
        }
    }
}
