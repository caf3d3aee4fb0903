//! How webhooks answer, for `/metrics`. The names and labels are those of kube-apiserver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::metrics::{Bounds, Collect, DurationHistogram, Samples};
use apiloom_registry::Operation;
use parking_lot::Mutex;

use super::review::operation;

/// The bounds of calls: 5 ms to 25 s.
static OF_CALLS: Bounds = Bounds(&[
    (5_000_000, "0.005"),
    (25_000_000, "0.025"),
    (100_000_000, "0.1"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (10_000_000_000, "10"),
    (25_000_000_000, "25"),
]);

/// Most series of a metric; further ones are counted under the name `other`.
const MAX_SERIES: usize = 1_000;

/// The phase in which a webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Mutating,
    Validating,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }
}

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) webhook: &'a str,
    pub(crate) phase: Phase,
    pub(crate) operation: Operation,
}

/// The labels of a series: the webhook, the phase, the operation.
type Labels = (String, Phase, &'static str);

/// Counts of calls. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookMetrics(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// With whether the write was refused.
    durations: BTreeMap<(Labels, bool), DurationHistogram>,
    /// With whether the write was refused, and the status code.
    requests: BTreeMap<(Labels, bool, u16), u64>,
    /// With the type of the error, and the status code.
    rejections: BTreeMap<(Labels, &'static str, u16), u64>,
    failed_open: BTreeMap<(String, Phase), u64>,
}

/// The entry of a key, or that of all further keys, which `other` makes of it.
fn entry<K: Ord, V: Default>(
    map: &mut BTreeMap<K, V>,
    key: K,
    other: impl FnOnce(K) -> K,
) -> &mut V {
    let key = if map.len() < MAX_SERIES || map.contains_key(&key) {
        key
    } else {
        other(key)
    };
    map.entry(key).or_default()
}

fn other() -> String {
    "other".to_owned()
}

impl Question<'_> {
    fn labels(self) -> Labels {
        let name = self.webhook.to_owned();
        (name, self.phase, operation(self.operation))
    }
}

impl WebhookMetrics {
    /// Counts a call with its answer.
    pub(crate) fn asked(
        &self,
        asked: Question<'_>,
        code: u16,
        is_rejected: bool,
        elapsed: Duration,
    ) {
        // As in kube-apiserver, codes above 600 are counted together.
        let code = code.min(600);
        let mut counts = self.0.lock();
        let counts = &mut *counts;
        let key = (asked.labels(), is_rejected);
        let durations = &mut counts.durations;
        if durations.len() >= MAX_SERIES && !durations.contains_key(&key) {
            let ((_, phase, operation), is_rejected) = key;
            let of_others = durations.entry(((other(), phase, operation), is_rejected));
            let of_others = of_others.or_insert_with(|| DurationHistogram::with_bounds(&OF_CALLS));
            of_others.observe(elapsed);
        } else {
            let of_calls = durations.entry(key);
            let of_calls = of_calls.or_insert_with(|| DurationHistogram::with_bounds(&OF_CALLS));
            of_calls.observe(elapsed);
        }
        let key = (asked.labels(), is_rejected, code);
        *entry(
            &mut counts.requests,
            key,
            |((_, phase, operation), is_rejected, code)| {
                ((other(), phase, operation), is_rejected, code)
            },
        ) += 1;
    }

    /// Counts a write that was refused, by what.
    pub(crate) fn rejected(&self, asked: Question<'_>, error: &'static str, code: u16) {
        let mut counts = self.0.lock();
        let key = (asked.labels(), error, code.min(600));
        *entry(
            &mut counts.rejections,
            key,
            |((_, phase, operation), error, code)| ((other(), phase, operation), error, code),
        ) += 1;
    }

    /// Counts a write that went on without the webhook.
    pub(crate) fn failed_open(&self, asked: Question<'_>) {
        let mut counts = self.0.lock();
        let key = (asked.webhook.to_owned(), asked.phase);
        *entry(&mut counts.failed_open, key, |(_, phase)| (other(), phase)) += 1;
    }
}

impl Collect for WebhookMetrics {
    fn collect(&self, samples: &mut Samples) {
        let counts = self.0.lock();
        let flag = |flag: bool| if flag { "true" } else { "false" };
        for (((name, phase, operation), is_rejected), durations) in &counts.durations {
            samples.histogram(
                "apiserver_admission_webhook_admission_duration_seconds",
                "How long calls of admission webhooks took",
                &[
                    ("name", name),
                    ("type", phase.name()),
                    ("operation", operation),
                    ("rejected", flag(*is_rejected)),
                ],
                durations,
            );
        }
        for (((name, phase, operation), is_rejected, code), count) in &counts.requests {
            samples.counter(
                "apiserver_admission_webhook_request_total",
                "Calls of admission webhooks, by status code",
                &[
                    ("name", name),
                    ("type", phase.name()),
                    ("operation", operation),
                    ("code", &code.to_string()),
                    ("rejected", flag(*is_rejected)),
                ],
                *count,
            );
        }
        for (((name, phase, operation), error, code), count) in &counts.rejections {
            samples.counter(
                "apiserver_admission_webhook_rejection_count",
                "Writes that were refused by admission webhooks or for want of their answer",
                &[
                    ("name", name),
                    ("type", phase.name()),
                    ("operation", operation),
                    ("error_type", error),
                    ("rejection_code", &code.to_string()),
                ],
                *count,
            );
        }
        for ((name, phase), count) in &counts.failed_open {
            samples.counter(
                "apiserver_admission_webhook_fail_open_count",
                "Writes that went on without an admission webhook that could not be asked",
                &[("name", name), ("type", phase.name())],
                *count,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_webhooks_do_not_grow_without_end() {
        let metrics = WebhookMetrics::default();
        for index in 0..3 * MAX_SERIES {
            let webhook = format!("w{index}");
            let asked = Question {
                webhook: &webhook,
                phase: Phase::Mutating,
                operation: Operation::Create,
            };
            metrics.asked(asked, 200, false, Duration::from_millis(1));
            metrics.rejected(asked, "no_error", 400);
            metrics.failed_open(asked);
        }
        let counts = metrics.0.lock();
        assert_eq!(counts.durations.len(), MAX_SERIES + 1);
        assert_eq!(counts.requests.len(), MAX_SERIES + 1);
        assert_eq!(counts.rejections.len(), MAX_SERIES + 1);
        assert_eq!(counts.failed_open.len(), MAX_SERIES + 1);
        let others = counts.failed_open[&(other(), Phase::Mutating)];
        assert_eq!(others, 2 * MAX_SERIES as u64);
    }
}
