//! Audit, a part of a server: records requests as a policy says, in a file and at another server (the Kubernetes API concept Auditing).
//!
//! The server tells the auditor (`trail.rs`) what happens to a request; those who serve it note its documents in an
//! [`AuditRecord`](apiloom_registry::audit::AuditRecord). An event is made once, and sent to the queue (`queue.rs`) of each backend.

mod event;
mod flags;
mod legacy;
mod log;
mod log_file;
mod metrics;
mod policy;
mod queue;
mod stages;
mod throttle;
mod trail;
mod webhook;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apiloom_registry::Registry;
use apiloom_registry::audit::AuditRoom;
use apiloom_registry::memory;
use apiloom_server::server::auditor::Auditor;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};

use self::flags::QueueSettings;
pub use self::flags::{AuditLog, AuditWebhook, LogQueue, WebhookQueue};
pub use self::log::AuditFormat;
use self::log::LogSettings;
use self::log_file::Rotation;
use self::metrics::AuditMetrics;
use self::policy::Policy;
pub use self::queue::AuditMode;
use self::queue::{Bounds, Losses, Message, Queue};
use self::trail::{Backend, PolicyAuditor, SharedAuditor};
use self::webhook::{Batching, Webhook};

/// Of the memory of the process, the part for documents of requests that are recorded, and for the queue of each backend.
const PARTS_OF_MEMORY: u64 = 64;

/// Most bytes for each of these, if the memory of the process is large.
const MAX_ROOM: usize = 256 * 1024 * 1024;

/// How long the end of the server waits for events that are not written yet.
const END: Duration = Duration::from_millis(4500);

/// The part: a server with it records its requests, if it has a policy and a backend.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Auditing flags")]
pub struct Audit {
    /// File with the policy: which requests are recorded, and how much of them (kind Policy of audit.k8s.io/v1). Without it none is.
    #[arg(
        id = "audit-policy-file",
        long = "audit-policy-file",
        value_name = "FILE"
    )]
    pub policy_file: Option<PathBuf>,
    /// Events in a file.
    #[command(flatten)]
    pub log: AuditLog,
    /// Events at another server.
    #[command(flatten)]
    pub webhook: AuditWebhook,
}

impl Part for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn add_flags(&self, command: Command) -> Command {
        Self::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        let has_backend = self.log.path.is_some() || self.webhook.config_file.is_some();
        if self.policy_file.is_none() {
            if has_backend {
                tracing::warn!("without --audit-policy-file no request is recorded");
            }
            return builder;
        }
        if !has_backend {
            tracing::warn!(
                "without --audit-log-path and --audit-webhook-config-file no request is recorded"
            );
        }
        let metrics = AuditMetrics::default();
        let auditor = PolicyAuditor {
            policy: OnceLock::new(),
            backends: OnceLock::new(),
            room: AuditRoom::new(memory::share(PARTS_OF_MEMORY, MAX_ROOM)),
            losses: Losses::new(metrics.clone()),
            metrics: metrics.clone(),
        };
        let auditor = Arc::new(auditor);
        let stopped = Arc::clone(&auditor);
        builder
            .metrics(metrics)
            .stop_hook("audit", async move |_| {
                if tokio::time::timeout(END, stopped.flush()).await.is_err() {
                    tracing::error!("audit events are lost: they were not written before the end");
                }
            })
            .capability(move |_| Recording {
                config: *self,
                auditor,
                webhook: OnceLock::new(),
            })
    }
}

/// What the part does while the server runs.
struct Recording {
    config: Audit,
    auditor: Arc<PolicyAuditor>,
    /// Set by the check of the configuration.
    webhook: OnceLock<Webhook>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Capability for Recording {
    fn is_of_first(&self) -> bool {
        true
    }

    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        let mut problems = Vec::new();
        if self.config.log.path.is_some() {
            problems.extend(self.config.log.queue.settings().problems());
        }
        if let Some(file) = &self.config.webhook.config_file {
            problems.extend(self.config.webhook.queue.settings().problems());
            match Webhook::read(file) {
                // A server is checked once.
                Ok(webhook) => drop(self.webhook.set(webhook)),
                Err(problem) => problems.push(problem),
            }
        }
        match self.config.policy_file.as_deref().map(Policy::read) {
            Some(Ok(policy)) => drop(self.auditor.policy.set(policy)),
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(ServerError::Invalid(problems))
    }

    async fn start(&self, _: &Arc<Registry>) -> Result<(), ServerError> {
        let mut backends = Vec::new();
        if self.config.log.path.is_some() {
            backends.push(self.start_log()?);
        }
        if let Some(webhook) = self.webhook.get() {
            backends.push(self.start_webhook(webhook.clone()));
        }
        // A server starts once.
        let _ = self.auditor.backends.set(backends);
        Ok(())
    }

    fn auditor(&self) -> Option<Arc<dyn Auditor>> {
        Some(Arc::new(SharedAuditor(Arc::clone(&self.auditor))))
    }
}

/// The messages of a queue.
type Messages = tokio::sync::mpsc::UnboundedReceiver<Message>;

impl Recording {
    fn queue(&self, settings: QueueSettings) -> (Backend, Messages) {
        let bounds = Bounds {
            events: settings.buffer_size.get(),
            bytes: memory::share(PARTS_OF_MEMORY, MAX_ROOM),
        };
        let (queue, messages) = Queue::new(settings.mode, bounds, self.auditor.losses.clone());
        let max_event_bytes = settings.bytes.map(|(_, event)| event.get());
        let backend = Backend {
            queue,
            max_event_bytes,
        };
        (backend, messages)
    }

    fn start_log(&self) -> Result<Backend, ServerError> {
        const MIB: u64 = 1024 * 1024;
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let config = &self.config.log;
        let queue = config.queue.settings();
        let (backend, messages) = self.queue(queue);
        let settings = LogSettings {
            format: config.format,
            rotation: Rotation {
                max_bytes: (config.max_size_mib > 0)
                    .then(|| config.max_size_mib.saturating_mul(MIB)),
                max_age: (config.max_age_days > 0).then(|| DAY * config.max_age_days),
                max_backups: (config.max_backups > 0).then_some(config.max_backups),
                compresses: config.compresses,
            },
            max_batch: queue.batch().0,
            throttle: queue.throttle(),
        };
        let path = config.path.clone().unwrap_or_default();
        log::start(&path, settings, messages, self.auditor.losses.clone())?;
        Ok(backend)
    }

    fn start_webhook(&self, webhook: Webhook) -> Backend {
        let config = &self.config.webhook;
        let queue = config.queue.settings();
        let (backend, messages) = self.queue(queue);
        let (max_events, max_wait) = queue.batch();
        let batching = Batching {
            max_events,
            max_bytes: queue.bytes.map_or(usize::MAX, |(batch, _)| batch.get()),
            max_wait,
            initial_backoff: config.initial_backoff,
        };
        let losses = self.auditor.losses.clone();
        tokio::spawn(webhook::run(
            webhook,
            batching,
            queue.throttle(),
            messages,
            losses,
        ));
        backend
    }
}
