//! The mode Webhook (the Kubernetes API concept Webhook Mode): a SubjectAccessReview is posted to the server of a kubeconfig, and its answer
//! is kept for a time. A webhook that does not answer has no opinion.

mod metrics;
mod review;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apiloom_registry::UserInfo;
use apiloom_registry::auth::{Answer, Attributes, Authorization, Authorizer, Permissions};
use apiloom_server::options::interval;
use apiloom_server::webhook::{Answers, WebhookClient, WebhookError, tries};
use bytes::Bytes;
use clap::Args;
use tokio::time::Instant;

use self::metrics::Outcome;
pub(crate) use self::metrics::WebhookMetrics;
use self::review::{JudgementResult, ReviewVersion, judged};

/// How long a question may take, with all tries.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes of the answers that are kept.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of what a client chooses of its question, for an answer that is kept: as in kube-apiserver.
const MAX_CHOSEN_BYTES: usize = 10_000;

/// The webhook of the mode Webhook.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AuthorizationWebhook {
    /// Kubeconfig of the server that is asked in the mode Webhook.
    #[arg(
        id = "authorization-webhook-config-file",
        long = "authorization-webhook-config-file",
        value_name = "FILE"
    )]
    pub config_file: Option<PathBuf>,
    /// Version of the SubjectAccessReview that is sent and expected: v1 or v1beta1.
    #[arg(
        id = "authorization-webhook-version",
        long = "authorization-webhook-version",
        value_name = "VERSION",
        default_value = "v1beta1"
    )]
    pub version: String,
    /// How long it is known that a request is allowed; 0 for not at all.
    #[arg(
        id = "authorization-webhook-cache-authorized-ttl",
        long = "authorization-webhook-cache-authorized-ttl",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = interval
    )]
    pub authorized_ttl: Duration,
    /// How long it is known that a request is not allowed; 0 for not at all.
    #[arg(
        id = "authorization-webhook-cache-unauthorized-ttl",
        long = "authorization-webhook-cache-unauthorized-ttl",
        value_name = "DURATION",
        default_value = "30s",
        value_parser = interval
    )]
    pub unauthorized_ttl: Duration,
}

impl Default for AuthorizationWebhook {
    fn default() -> Self {
        Self {
            config_file: None,
            version: "v1beta1".to_owned(),
            authorized_ttl: Duration::from_secs(300),
            unauthorized_ttl: Duration::from_secs(30),
        }
    }
}

impl AuthorizationWebhook {
    /// The authorizer of the mode.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn authorizer(&self) -> Result<AskingAuthorizer, String> {
        let Some(file) = &self.config_file else {
            return Err(
                "authorization-mode Webhook's authorization config file not passed: name it with --authorization-webhook-config-file".to_owned(),
            );
        };
        let version = ReviewVersion::named(&self.version)
            .map_err(|error| format!("--authorization-webhook-version: {error}"))?;
        let client = WebhookClient::from_kubeconfig(file).map_err(|error| {
            let shown = file.display();
            format!("--authorization-webhook-config-file {shown}: {error}")
        })?;
        Ok(AskingAuthorizer {
            asked: Arc::new(ReviewCalls {
                client,
                metrics: WebhookMetrics::default(),
                authorized_ttl: self.authorized_ttl,
                unauthorized_ttl: self.unauthorized_ttl,
            }),
            version,
            answers: Answers::new(MAX_KEPT_BYTES, review::bytes)?,
        })
    }
}

/// Authorizes by the answers of a webhook.
#[derive(Debug)]
pub(crate) struct AskingAuthorizer {
    asked: Arc<ReviewCalls>,
    version: ReviewVersion,
    answers: Answers<JudgementResult>,
}

/// The webhook and how its answers are kept.
#[derive(Debug)]
struct ReviewCalls {
    client: WebhookClient,
    metrics: WebhookMetrics,
    authorized_ttl: Duration,
    unauthorized_ttl: Duration,
}

impl AskingAuthorizer {
    /// Counts of calls.
    pub(crate) fn metrics(&self) -> WebhookMetrics {
        self.asked.metrics.clone()
    }
}

impl ReviewCalls {
    /// Asks the webhook. The answer is kept unless the client chose a large question.
    async fn judge(self: Arc<Self>, body: Bytes, is_kept: bool) -> (JudgementResult, Duration) {
        let answer = tokio::time::timeout(
            TIMEOUT,
            tries(|| {
                let (asked, body) = (Arc::clone(&self), body.clone());
                async move { asked.post(body).await }
            }),
        );
        let judged = match answer.await {
            Ok(Ok(judged)) => judged,
            Ok(Err(error)) => return (self.failed(&error), Duration::ZERO),
            Err(_) => {
                let error = WebhookError {
                    text: "the webhook did not answer in time".to_owned(),
                    code: None,
                    is_transient: false,
                };
                return (self.failed(&error), Duration::ZERO);
            }
        };
        let ttl = match &judged {
            _ if !is_kept => Duration::ZERO,
            Ok(judgement) if judgement.is_allowed => self.authorized_ttl,
            Ok(_) => self.unauthorized_ttl,
            Err(_) => Duration::ZERO,
        };
        (judged, ttl)
    }

    /// One call. An answer that is no review is an error that does not pass.
    async fn post(&self, body: Bytes) -> Result<JudgementResult, WebhookError> {
        let began = Instant::now();
        let answer = self.client.post(body, TIMEOUT).await;
        let answer = answer.and_then(|body| {
            judged(&body).map_err(|text| WebhookError {
                text,
                code: None,
                is_transient: false,
            })
        });
        let outcome = answer
            .as_ref()
            .map_or_else(Outcome::of, |_| Outcome::Success);
        self.metrics.asked(outcome, began.elapsed());
        answer.map(|judgement| Ok(Arc::new(judgement)))
    }

    fn failed(&self, error: &WebhookError) -> JudgementResult {
        tracing::error!(
            error = error.text,
            "Failed to make webhook authorizer request"
        );
        self.metrics.failed_open(Outcome::of(error));
        Err(error.text.as_str().into())
    }
}

/// Bytes of a question that its client chooses.
fn chosen_bytes(attributes: &Attributes<'_>) -> usize {
    let texts = [
        attributes.namespace,
        attributes.verb,
        attributes.api_group,
        attributes.api_version,
        attributes.resource,
        attributes.subresource,
        attributes.name,
        attributes.path,
    ];
    texts.iter().map(|text| text.len()).sum()
}

impl Authorizer for AskingAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        let body = Bytes::from(self.version.review(attributes));
        let question = self.answers.question([&*body]);
        if let Some(judged) = self.answers.kept(&question) {
            return Answer::Now(review::decision(&judged));
        }
        let is_kept = chosen_bytes(attributes) < MAX_CHOSEN_BYTES;
        let asked = Arc::clone(&self.asked);
        let judged = self.answers.get(question, || asked.judge(body, is_kept));
        Answer::later(async move { review::decision(&judged.await) })
    }

    fn is_policy(&self) -> bool {
        true
    }

    fn permissions(&self, _: &UserInfo, _: &str, permissions: &mut Permissions) {
        let why = "webhook authorizer does not support user rule resolution";
        permissions.errors.push(why.to_owned());
        permissions.is_incomplete = true;
    }
}

#[cfg(test)]
mod tests;
