//! What is encrypted and decrypted, and how often the configuration is read again, for `/metrics`. The names and labels are those of
//! kube-apiserver, without the id of the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use apiloom_server::server::Samples;
use parking_lot::Mutex;

/// What is done to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// It is encrypted.
    ToStorage,
    /// It is decrypted.
    FromStorage,
}

/// Maximum number of counts by resource: clients can create definitions of resources and delete them again. Beyond it, operations are
/// counted for [`OTHERS`] together.
const MAX_COUNTS: usize = 2000;

/// The resource of the operations beyond the maximum.
const OTHERS: &str = "other";

/// The labels of a count: resource, operation, prefix of the provider, and whether it succeeded.
type Labels = (String, Operation, &'static str, bool);

/// Counts of operations and of reloads.
#[derive(Debug, Default)]
pub(crate) struct EncryptionMetrics {
    operations: Mutex<BTreeMap<Labels, u64>>,
    reloads: [Reloads; 2],
}

/// Reloads with one result.
#[derive(Debug, Default)]
struct Reloads {
    count: AtomicU64,
    /// Unix time of the last one, in seconds; 0 before the first.
    last: AtomicU64,
}

impl EncryptionMetrics {
    /// Counts an operation on a value of a resource.
    pub(crate) fn operation(
        &self,
        resource: &str,
        operation: Operation,
        prefix: &'static str,
        is_ok: bool,
    ) {
        let mut operations = self.operations.lock();
        let mut labels = (resource.to_owned(), operation, prefix, is_ok);
        if operations.len() >= MAX_COUNTS && !operations.contains_key(&labels) {
            labels.0 = OTHERS.to_owned();
        }
        *operations.entry(labels).or_default() += 1;
    }

    /// Counts an attempt to use a changed configuration.
    pub(crate) fn reload(&self, is_ok: bool) {
        let reloads = &self.reloads[usize::from(is_ok)];
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        reloads.count.fetch_add(1, Ordering::Relaxed);
        reloads.last.store(now, Ordering::Relaxed);
    }

    /// How often a reload failed, and how often it succeeded.
    #[cfg(test)]
    pub(crate) fn reloads_by_result(&self) -> [u64; 2] {
        let counts = self.reloads.each_ref();
        counts.map(|reloads| reloads.count.load(Ordering::Relaxed))
    }

    /// Reports the counts, and the digest of the configuration.
    pub(crate) fn collect(&self, digest: Option<&str>, samples: &mut Samples) {
        for ((resource, operation, prefix, is_ok), count) in &*self.operations.lock() {
            let operation = match operation {
                Operation::ToStorage => "to_storage",
                Operation::FromStorage => "from_storage",
            };
            let status = if *is_ok { "OK" } else { "unknown-non-grpc" };
            let labels = [
                ("resource", resource.as_str()),
                ("transformation_type", operation),
                ("transformer_prefix", prefix),
                ("status", status),
            ];
            samples.counter(
                "apiserver_storage_transformation_operations_total",
                "Values that were encrypted or decrypted, by resource, provider and result",
                &labels,
                *count,
            );
        }
        for (reloads, status) in self.reloads.iter().zip(["failure", "success"]) {
            let (count, last) = (&reloads.count, &reloads.last);
            samples.counter(
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "How often a changed encryption configuration was read again, by the result",
                &[("status", status)],
                count.load(Ordering::Relaxed),
            );
            let last = last.load(Ordering::Relaxed);
            if last > 0 {
                samples.gauge(
                    "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                    "Unix time of the last reload of the encryption configuration with this result",
                    &[("status", status)],
                    last as f64,
                );
            }
        }
        if let Some(digest) = digest {
            samples.gauge(
                "apiserver_encryption_config_controller_last_config_info",
                "The digest of the encryption configuration in use",
                &[("hash", digest)],
                1.0,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_counts_is_bounded() {
        let metrics = EncryptionMetrics::default();
        for number in 0..MAX_COUNTS + 100 {
            let resource = format!("r{number}.example.com");
            metrics.operation(&resource, Operation::ToStorage, "k8s:enc:", true);
        }
        let operations = metrics.operations.lock();
        assert_eq!(operations.len(), MAX_COUNTS + 1);
        let others = (OTHERS.to_owned(), Operation::ToStorage, "k8s:enc:", true);
        assert_eq!(operations[&others], 100);
    }
}
