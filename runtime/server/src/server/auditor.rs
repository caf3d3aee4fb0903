//! The audit of requests: an [`Auditor`] decides what is recorded of each and writes it, the server tells it what happens to the request.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use apiloom_http::Body;
use apiloom_registry::audit::AuditRecord;
use apiloom_registry::auth::{Answer, Attributes, BoxError, Connection, UserInfo};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::guarded_body::GuardedBody;

/// The head of a request, for its audit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AuditedRequest<'a> {
    /// What is asked for, and by whom.
    pub attributes: Attributes<'a>,
    /// The user, without a name if it is not known; it may be kept without a copy.
    pub user: &'a Arc<UserInfo>,
    /// The id of the request, which its response has too.
    pub id: &'a HeaderValue,
    /// The URI as it was sent.
    pub uri: &'a Uri,
    /// The headers, without credentials once the user is known.
    pub headers: &'a HeaderMap,
    /// The connection of the client.
    pub connection: &'a Connection,
    /// When it came.
    pub received: SystemTime,
}

/// A moment in the life of a request, at which its audit has an event (`stage` of `audit.k8s.io/v1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStage {
    /// The user is known; nothing is done yet.
    RequestReceived,
    /// The response of a long-running request begins.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
    /// The request caused a panic.
    Panic,
}

/// Decides which requests are recorded, and records them. A server has it from a [`Capability`](super::Capability).
pub trait Auditor: fmt::Debug + Send + Sync + 'static {
    /// Begins the audit of a request; `None` for one that is not recorded. Must not block.
    fn begin(&self, request: &AuditedRequest<'_>) -> Option<Box<dyn AuditTrail>>;
}

/// The audit of one request.
pub trait AuditTrail: Send + 'static {
    /// What those who serve the request note of it.
    fn record(&self) -> &Arc<AuditRecord>;

    /// Whether the request is refused if it is not recorded in time when it comes. Default no.
    fn is_required(&self) -> bool {
        false
    }

    /// Writes the event of a stage, with the code of the response if there is one. The response waits for the result; where nothing can wait,
    /// as at the end of a stream, the result is dropped at once.
    ///
    /// # Errors
    /// Of [`AuditStage::RequestReceived`], that the request must be refused because it cannot be recorded. Others are ignored.
    fn enter(
        &mut self,
        stage: AuditStage,
        code: Option<StatusCode>,
    ) -> Answer<'static, Result<(), BoxError>>;
}

/// The audit of a request in progress. Its last event is written when this is dropped, if not before.
pub(super) struct Audit {
    /// `None` when the last event is written.
    trail: Option<Box<dyn AuditTrail>>,
    is_long_running: bool,
    code: Option<StatusCode>,
    /// When the request is over, also if its events are not written yet.
    deadline: Instant,
}

impl Audit {
    pub(super) fn new(
        trail: Box<dyn AuditTrail>,
        is_long_running: bool,
        deadline: Instant,
    ) -> Self {
        Self {
            trail: Some(trail),
            is_long_running,
            code: None,
            deadline,
        }
    }

    /// Writes that the request has come.
    ///
    /// # Errors
    /// If the request must be refused, because it cannot be recorded. Then it has no other event.
    pub(super) async fn receive(mut self) -> Result<Self, BoxError> {
        let Some(trail) = &mut self.trail else {
            return Ok(self);
        };
        let is_required = trail.is_required();
        let received = trail.enter(AuditStage::RequestReceived, None);
        let error = match received.by(self.deadline).await {
            Ok(Ok(())) => return Ok(self),
            Ok(Err(error)) => error,
            Err(late) if is_required => late.into(),
            Err(_) => return Ok(self),
        };
        self.trail = None;
        Err(error)
    }

    /// Follows a response to its end.
    pub(super) async fn follow(mut self, response: Response<Body>) -> Response<Body> {
        self.code = Some(response.status());
        if self.is_long_running
            && let Some(trail) = &mut self.trail
        {
            let started = trail.enter(AuditStage::ResponseStarted, self.code);
            // Only the first event of a request can refuse it.
            let _ = started.by(self.deadline).await;
        }
        let record = self.trail.as_ref().map(|trail| Arc::clone(trail.record()));
        if let Some(record) = record.filter(|record| record.is_held()) {
            // Its streams go on behind the response.
            tokio::spawn(async move {
                record.released().await;
                drop(self);
            });
            return response;
        }
        if response.body().size_hint().exact().is_none() {
            return response.map(|body| GuardedBody::new(body, self).boxed_unsync());
        }
        if let Some(mut trail) = self.trail.take() {
            let complete = trail.enter(AuditStage::ResponseComplete, self.code);
            // After its deadline the response is sent: an event that is queued is written later.
            let _ = complete.by(self.deadline).await;
        }
        response
    }
}

/// Of a request that panicked, whose client has left, or whose response was sent piece by piece.
impl Drop for Audit {
    fn drop(&mut self) {
        let Some(mut trail) = self.trail.take() else {
            return;
        };
        let (stage, code) = if std::thread::panicking() {
            let code = StatusCode::INTERNAL_SERVER_ERROR;
            (AuditStage::Panic, Some(code))
        } else {
            (AuditStage::ResponseComplete, self.code)
        };
        // Nothing waits here, so that what waits has a bound: it is queued, or lost and counted.
        drop(trail.enter(stage, code));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use apiloom_registry::audit::{AuditLevel, AuditRoom};
    use parking_lot::Mutex;

    use super::*;

    /// A trail that cannot write that the request has come, and keeps its stages.
    struct Stuck {
        record: Arc<AuditRecord>,
        stages: Arc<Mutex<Vec<AuditStage>>>,
        is_required: bool,
    }

    impl AuditTrail for Stuck {
        fn record(&self) -> &Arc<AuditRecord> {
            &self.record
        }

        fn is_required(&self) -> bool {
            self.is_required
        }

        fn enter(
            &mut self,
            stage: AuditStage,
            _: Option<StatusCode>,
        ) -> Answer<'static, Result<(), BoxError>> {
            self.stages.lock().push(stage);
            Answer::later(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_goes_on_after_its_deadline_unless_it_must_be_recorded() {
        use AuditStage::{RequestReceived, ResponseComplete};
        for is_required in [false, true] {
            let stages = Arc::default();
            let trail = Stuck {
                record: Arc::new(AuditRecord::new(
                    AuditLevel::Metadata,
                    false,
                    AuditRoom::new(0),
                )),
                stages: Arc::clone(&stages),
                is_required,
            };
            let deadline = Instant::now() + Duration::from_secs(60);
            let audit = Audit::new(Box::new(trail), false, deadline);
            let received = audit.receive().await;
            assert_eq!(received.is_err(), is_required);
            // One that goes on has its last event, also if its client leaves.
            drop(received);
            let expected: &[_] = if is_required {
                &[RequestReceived]
            } else {
                &[RequestReceived, ResponseComplete]
            };
            assert_eq!(*stages.lock(), expected);
        }
    }
}
