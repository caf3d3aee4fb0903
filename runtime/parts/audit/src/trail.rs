//! The auditor of a server: decides by its policy, makes the events, and sends them to its backends.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use apiloom_registry::audit::{AuditLevel, AuditRecord, AuditRoom};
use apiloom_registry::auth::{Answer, BoxError};
use apiloom_server::server::auditor::{AuditStage, AuditTrail, AuditedRequest, Auditor};
use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;

use super::event::{self, Moment, RequestHead};
use super::metrics::{AuditMetrics, Loss};
use super::policy::Policy;
use super::queue::{Losses, Queue};
use super::stages::Stages;

/// Where events go.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) queue: Queue,
    /// Longest event; a longer one loses its documents. `None` for no bound.
    pub(super) max_event_bytes: Option<usize>,
}

/// What the part does while the server runs.
#[derive(Debug)]
pub(super) struct PolicyAuditor {
    /// Set by the check of the configuration.
    pub(super) policy: OnceLock<Policy>,
    /// Set at the start of the server.
    pub(super) backends: OnceLock<Vec<Backend>>,
    pub(super) room: AuditRoom,
    pub(super) metrics: AuditMetrics,
    pub(super) losses: Losses,
}

impl PolicyAuditor {
    /// Completes when all events so far are written, or lost.
    pub(super) async fn flush(&self) {
        let backends = self.backends.get().map_or(&[][..], Vec::as_slice);
        join_all(backends.iter().map(|backend| backend.queue.flush())).await;
    }

    /// Sends an event to all backends.
    fn send(
        &self,
        json: Vec<u8>,
        short: impl Fn() -> Vec<u8>,
        is_last: bool,
    ) -> Answer<'static, Result<(), BoxError>> {
        let json = Bytes::from(json);
        let mut waiting = Vec::new();
        let mut first = Ok(());
        for backend in self.backends.get().into_iter().flatten() {
            let fits = |json: &[u8]| {
                backend
                    .max_event_bytes
                    .is_none_or(|most| json.len() <= most)
            };
            let mut json = json.clone();
            if !fits(&json) {
                json = short().into();
            }
            if !fits(&json) {
                let why = "the event is too large without its documents";
                self.losses.lost(Loss::Size, why, [&*json]);
                continue;
            }
            match backend.queue.send(json, is_last) {
                Answer::Now(sent) => first = first.and(sent),
                Answer::Later(sent) => waiting.push(sent),
            }
        }
        if waiting.is_empty() {
            return Answer::Now(first);
        }
        Answer::later(async move {
            let sent = join_all(waiting).await;
            sent.into_iter().fold(first, Result::and)
        })
    }
}

/// The auditor of a server with a policy.
#[derive(Clone, Debug)]
pub(super) struct SharedAuditor(pub(super) Arc<PolicyAuditor>);

impl Auditor for SharedAuditor {
    fn begin(&self, request: &AuditedRequest<'_>) -> Option<Box<dyn AuditTrail>> {
        let policy = self.0.policy.get()?;
        self.0.backends.get()?;
        let selection = policy.selection(&request.attributes);
        self.0.metrics.request(selection.level);
        if selection.level == AuditLevel::None {
            return None;
        }
        let room = self.0.room.clone();
        let record = AuditRecord::new(selection.level, selection.omits_managed_fields, room);
        Some(Box::new(Trail {
            auditor: Arc::clone(&self.0),
            head: RequestHead::new(request, selection.level.as_str()),
            record: Arc::new(record),
            omitted: selection.omitted,
        }))
    }
}

/// The audit of one request.
struct Trail {
    auditor: Arc<PolicyAuditor>,
    head: RequestHead,
    record: Arc<AuditRecord>,
    omitted: Stages,
}

impl AuditTrail for Trail {
    fn is_required(&self) -> bool {
        let mut backends = self.auditor.backends.get().into_iter().flatten();
        backends.any(|backend| backend.queue.is_strict())
    }

    fn record(&self) -> &Arc<AuditRecord> {
        &self.record
    }

    fn enter(
        &mut self,
        stage: AuditStage,
        code: Option<StatusCode>,
    ) -> Answer<'static, Result<(), BoxError>> {
        if self.omitted.has(stage) {
            return Answer::Now(Ok(()));
        }
        let at = match stage {
            AuditStage::RequestReceived => self.head.received(),
            _ => event::micros(SystemTime::now()),
        };
        let moment = Moment { stage, code, at };
        self.auditor.metrics.event();
        let sent = {
            let notes = self.record.notes();
            let make = |is_short| event::event(&self.head, &notes, moment, is_short);
            let is_last = stage != AuditStage::RequestReceived;
            self.auditor.send(make(false), || make(true), is_last)
        };
        if stage != AuditStage::RequestReceived {
            return sent;
        }
        let metrics = self.auditor.metrics.clone();
        let count = move |sent: Result<(), BoxError>| sent.inspect_err(|_| metrics.rejected());
        match sent {
            Answer::Now(sent) => Answer::Now(count(sent)),
            Answer::Later(sent) => Answer::later(async move { count(sent.await) }),
        }
    }
}
