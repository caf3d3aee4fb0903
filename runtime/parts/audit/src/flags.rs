//! The flags of the backends, which are those of kube-apiserver. Both backends have the same ones for their queue, under their own names.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use apiloom_server::options::interval;
use clap::Args;

use super::log::AuditFormat;
use super::queue::AuditMode;
use super::throttle::Throttle;

/// Most events that are written at once while requests wait for them.
const MAX_BLOCKING: usize = 256;

/// Declares the flags of the queue of a backend.
macro_rules! queue_flags {
    (
        $(#[$doc:meta])*
        $flags:ident, $prefix:literal,
        mode = $mode:literal, max_batch = $max_batch:literal, throttles = $throttles:literal
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Args)]
        pub struct $flags {
            /// Whether requests wait for it: batch (no), blocking (their responses do), or blocking-strict (and a request that cannot be recorded
            /// is refused with 500).
            #[arg(id = concat!($prefix, "-mode"), long = concat!($prefix, "-mode"), value_name = "MODE", default_value = $mode)]
            pub mode: AuditMode,
            /// Most events that are queued, in the mode batch: further ones are lost, which is counted and logged.
            #[arg(id = concat!($prefix, "-batch-buffer-size"), long = concat!($prefix, "-batch-buffer-size"), value_name = "NUMBER", default_value = "10000")]
            pub buffer_size: NonZeroUsize,
            /// Most events that are written at once, in the mode batch.
            #[arg(id = concat!($prefix, "-batch-max-size"), long = concat!($prefix, "-batch-max-size"), value_name = "NUMBER", default_value = $max_batch)]
            pub max_batch_size: NonZeroUsize,
            /// How long an event waits for others, in the mode batch. It has no meaning for a file.
            #[arg(id = concat!($prefix, "-batch-max-wait"), long = concat!($prefix, "-batch-max-wait"), value_name = "DURATION", default_value = "30s", value_parser = interval)]
            pub max_batch_wait: Duration,
            /// Whether the rate of batches has a limit, in the mode batch.
            #[arg(
                id = concat!($prefix, "-batch-throttle-enable"), long = concat!($prefix, "-batch-throttle-enable"), value_name = "BOOL",
                default_value = $throttles, num_args = 0..=1, require_equals = true, default_missing_value = "true",
                action = clap::ArgAction::Set
            )]
            pub throttles: bool,
            /// Most batches per second, on average.
            #[arg(id = concat!($prefix, "-batch-throttle-qps"), long = concat!($prefix, "-batch-throttle-qps"), value_name = "NUMBER", default_value = "10")]
            pub throttle_qps: f32,
            /// Most batches at once, if there were fewer before.
            #[arg(id = concat!($prefix, "-batch-throttle-burst"), long = concat!($prefix, "-batch-throttle-burst"), value_name = "NUMBER", default_value = "15")]
            pub throttle_burst: u32,
            /// Whether events and batches have bounds in bytes.
            #[arg(id = concat!($prefix, "-truncate-enabled"), long = concat!($prefix, "-truncate-enabled"), value_name = "BOOL",
                default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
                action = clap::ArgAction::Set
            )]
            pub truncates: bool,
            /// Most bytes of a batch, if events and batches have bounds.
            #[arg(id = concat!($prefix, "-truncate-max-batch-size"), long = concat!($prefix, "-truncate-max-batch-size"), value_name = "BYTES", default_value = "10485760")]
            pub max_batch_bytes: NonZeroUsize,
            /// Most bytes of an event, if events and batches have bounds: without its documents if it is longer, and lost if it is longer still.
            #[arg(id = concat!($prefix, "-truncate-max-event-size"), long = concat!($prefix, "-truncate-max-event-size"), value_name = "BYTES", default_value = "102400")]
            pub max_event_bytes: NonZeroUsize,
            /// Version of the events.
            #[arg(id = concat!($prefix, "-version"), long = concat!($prefix, "-version"), value_name = "GROUP/VERSION", default_value = "audit.k8s.io/v1", value_parser = ["audit.k8s.io/v1"])]
            pub version: String,
        }

        impl $flags {
            pub(super) fn settings(&self) -> QueueSettings {
                let is_batch = self.mode == AuditMode::Batch;
                let rate = (self.throttles && is_batch).then_some((self.throttle_qps, self.throttle_burst));
                QueueSettings {
                    prefix: $prefix,
                    mode: self.mode,
                    buffer_size: self.buffer_size,
                    max_batch_size: self.max_batch_size,
                    max_batch_wait: self.max_batch_wait,
                    rate,
                    bytes: self.truncates.then_some((self.max_batch_bytes, self.max_event_bytes)),
                }
            }
        }

        impl Default for $flags {
            /// The values of the flags.
            fn default() -> Self {
                defaults()
            }
        }
    };
}

queue_flags! {
    /// How events get to the file.
    LogQueue, "audit-log", mode = "blocking", max_batch = "1", throttles = "false"
}

queue_flags! {
    /// How events get to the webhook.
    WebhookQueue, "audit-webhook", mode = "batch", max_batch = "400", throttles = "true"
}

/// Events in a file.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AuditLog {
    /// File to which events are appended; - for the standard output.
    #[arg(id = "audit-log-path", long = "audit-log-path", value_name = "FILE")]
    pub path: Option<PathBuf>,
    /// Days for which files that were ended are kept; 0 for ever.
    #[arg(
        id = "audit-log-maxage",
        long = "audit-log-maxage",
        value_name = "DAYS",
        default_value_t = 366
    )]
    pub max_age_days: u32,
    /// Most files that were ended; 0 for any number.
    #[arg(
        id = "audit-log-maxbackup",
        long = "audit-log-maxbackup",
        value_name = "NUMBER",
        default_value_t = 100
    )]
    pub max_backups: usize,
    /// Size in MiB at which a file is ended; 0 for never.
    #[arg(
        id = "audit-log-maxsize",
        long = "audit-log-maxsize",
        value_name = "MIB",
        default_value_t = 100
    )]
    pub max_size_mib: u64,
    /// Whether files that were ended are compressed.
    #[arg(id = "audit-log-compress", long = "audit-log-compress")]
    pub compresses: bool,
    /// What a line is: the event as json, or the most important of it (legacy).
    #[arg(
        id = "audit-log-format",
        long = "audit-log-format",
        value_name = "FORMAT",
        default_value = "json"
    )]
    pub format: AuditFormat,
    /// Its queue.
    #[command(flatten)]
    pub queue: LogQueue,
}

impl Default for AuditLog {
    /// The values of the flags.
    fn default() -> Self {
        defaults()
    }
}

/// Events at another server.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AuditWebhook {
    /// Kubeconfig of the server to which lists of events are sent.
    #[arg(
        id = "audit-webhook-config-file",
        long = "audit-webhook-config-file",
        value_name = "FILE"
    )]
    pub config_file: Option<PathBuf>,
    /// Time before a list is sent for the second time. It is sent five times before its events are lost.
    #[arg(
        id = "audit-webhook-initial-backoff",
        long = "audit-webhook-initial-backoff",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = interval
    )]
    pub initial_backoff: Duration,
    /// Its queue.
    #[command(flatten)]
    pub queue: WebhookQueue,
}

impl Default for AuditWebhook {
    /// The values of the flags.
    fn default() -> Self {
        defaults()
    }
}

/// A group of flags without arguments.
pub(super) fn defaults<T: Args>() -> T {
    let command = T::augment_args(clap::Command::new("defaults"));
    let matches = command.get_matches_from(["defaults"]);
    T::from_arg_matches(&matches).expect("every flag has a default")
}

/// The flags of a queue, whichever backend it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueSettings {
    /// What its flags begin with.
    prefix: &'static str,
    pub(super) mode: AuditMode,
    pub(super) buffer_size: NonZeroUsize,
    pub(super) max_batch_size: NonZeroUsize,
    pub(super) max_batch_wait: Duration,
    /// Batches per second, and at once; `None` without a limit.
    rate: Option<(f32, u32)>,
    /// Bytes of a batch and of an event; `None` without bounds.
    pub(super) bytes: Option<(NonZeroUsize, NonZeroUsize)>,
}

impl QueueSettings {
    /// What is wrong with the flags.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut require = |is_met: bool, what: &str| {
            if !is_met {
                problems.push(format!("--{}-{what}", self.prefix));
            }
        };
        if let Some((per_second, burst)) = self.rate {
            let is_rate = per_second.is_finite() && per_second > 0.0;
            require(is_rate, "batch-throttle-qps must be above zero");
            require(burst > 0, "batch-throttle-burst must be above zero");
        }
        if let Some((batch, event)) = self.bytes {
            let what = "truncate-max-batch-size must not be below the size of an event";
            require(batch >= event, what);
        }
        problems
    }

    pub(super) fn throttle(&self) -> Option<Throttle> {
        self.rate
            .map(|(per_second, burst)| Throttle::new(per_second, burst))
    }

    /// Most events of a batch, and how long the first one waits for others. Without the mode batch none waits.
    pub(super) fn batch(&self) -> (usize, Duration) {
        match self.mode {
            AuditMode::Batch => (self.max_batch_size.get(), self.max_batch_wait),
            AuditMode::Blocking | AuditMode::BlockingStrict => (MAX_BLOCKING, Duration::ZERO),
        }
    }
}
