//! Asks one webhook about a write.

use std::time::{Duration, Instant};

use apiloom_kinds::admissionregistration::v1::MutatingWebhook;
use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::ApiError;
use apiloom_registry::{AdmissionRequest, Lister};
use uuid::Uuid;

use super::hooks::Hook;
use super::metrics::{Phase, Question, WebhookMetrics};
use super::review::{ReviewVersion, Shown, Verdict, denial, verdict};

/// The status code of a failure without an answer, in metrics.
const UNAVAILABLE: u16 = 503;

/// How long a call takes at most if the webhook does not say it.
const TIMEOUT_SECONDS: u64 = 10;

/// What both kinds of webhooks need.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) namespaces: Lister<Namespace>,
    pub(crate) metrics: WebhookMetrics,
}

/// Why a write does not go on, or goes on without a webhook.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The webhook could not be asked: why, and the status code.
    Failed(String, u16),
    /// The webhook does not allow it.
    Denied(ApiError),
    /// The write is not one that the webhook may be asked about.
    Refused(ApiError),
}

impl Caller {
    /// Asks a webhook. A verdict allows the write; its patch is not applied yet.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn ask(
        &self,
        hook: &Hook,
        request: &AdmissionRequest<'_>,
        shown: &Shown,
        phase: Phase,
    ) -> Result<Verdict, Refusal> {
        let name = &hook.webhook.name;
        let failed = |why: String| Refusal::Failed(why, UNAVAILABLE);
        if request.dry_run {
            let effects = hook.webhook.side_effects.as_deref();
            let effects = effects
                .ok_or_else(|| Refusal::Failed("Webhook SideEffects is nil".to_owned(), 400))?;
            if !MutatingWebhook::NO_SIDE_EFFECTS.contains(&effects) {
                let why = format!("admission webhook {name:?} does not support dry run");
                return Err(Refusal::Refused(ApiError::bad_request(why)));
            }
        }
        let version = ReviewVersion::of(&hook.webhook.admission_review_versions);
        let version = version.map_err(|why| {
            Refusal::Failed(format!("could not create admission objects: {why}"), 400)
        })?;
        let client = hook.client.as_ref();
        let client = client.map_err(|why| failed(format!("could not get REST client: {why}")))?;
        let uid = Uuid::new_v4().to_string();
        let seconds = hook.webhook.timeout_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let timeout = Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS));
        let body = client.post(shown.review(request, version, &uid), timeout);
        let body = body.await.map_err(|error| {
            let why = format!("failed to call webhook: {}", error.text);
            Refusal::Failed(why, error.code.unwrap_or(UNAVAILABLE))
        })?;
        let verdict = verdict(&body, version, &uid, phase == Phase::Mutating);
        let verdict =
            verdict.map_err(|why| failed(format!("received invalid webhook response: {why}")))?;
        if let Some(audit) = request.ctx.audit() {
            for (key, value) in &verdict.annotations {
                audit.annotate(format!("{name}/{key}"), value.clone());
            }
        }
        for warning in &verdict.warnings {
            request.ctx.warn(warning.as_str());
        }
        if verdict.is_allowed {
            return Ok(verdict);
        }
        Err(Refusal::Denied(denial(name, verdict.status)))
    }

    /// Counts a call. `result` is that of the call and of what was made of its answer.
    pub(crate) fn count<T>(
        &self,
        hook: &Hook,
        request: &AdmissionRequest<'_>,
        (phase, began): (Phase, Instant),
        result: &Result<T, Refusal>,
    ) {
        let (code, is_rejected, error) = match result {
            Ok(_) => (200, false, None),
            Err(Refusal::Failed(_, code)) => {
                let is_rejected = !hook.is_ignored();
                (*code, is_rejected, Some("calling_webhook_error"))
            }
            Err(Refusal::Denied(error)) => {
                let code = error.foreign.as_ref().and_then(|status| status.code);
                (code.unwrap_or_default(), true, Some("no_error"))
            }
            Err(Refusal::Refused(_)) => (0, true, Some("apiserver_internal_error")),
        };
        let asked = Question {
            webhook: &hook.webhook.name,
            phase,
            operation: request.operation,
        };
        self.metrics
            .asked(asked, code, is_rejected, began.elapsed());
        if let Some(error) = error.filter(|_| is_rejected) {
            self.metrics.rejected(asked, error, code);
        }
        if matches!(result, Err(Refusal::Failed(..))) && !is_rejected {
            self.metrics.failed_open(asked);
        }
    }
}

/// The error of a write about which a webhook could not be asked.
pub(crate) fn failure(hook: &Hook, why: &str) -> ApiError {
    let name = &hook.webhook.name;
    ApiError::internal(format!("failed calling webhook {name:?}: {why}"))
}
