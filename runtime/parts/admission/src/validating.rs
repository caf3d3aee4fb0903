//! Validating webhooks: all are asked at once. The first error that comes is the answer, after all have answered.

use std::sync::Arc;
use std::time::Instant;

use apiloom_kinds::admissionregistration::v1::ValidatingWebhookConfiguration;
use apiloom_meta::ApiError;
use apiloom_registry::{Admission, AdmissionRequest};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::call::{Caller, Refusal, failure};
use super::hooks::{Hook, Hooks};
use super::matching::{is_exempt, meets_conditions, version_for};
use super::metrics::Phase;
use super::review::Shown;

/// The plugin.
#[derive(Debug)]
pub(crate) struct ValidatingAdmissionWebhook {
    pub(crate) hooks: Hooks<ValidatingWebhookConfiguration>,
    pub(crate) caller: Caller,
}

#[async_trait]
impl Admission for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn asks_others(&self) -> bool {
        true
    }

    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if is_exempt(request) {
            return Ok(());
        }
        let hooks = self.hooks.current().await;
        let hooks = hooks.map_err(|_| request.forbidden("not yet ready to handle request"))?;
        // In the versions that the webhooks are asked in.
        let mut shown: Vec<Arc<Shown>> = Vec::new();
        let mut asked: Vec<(Arc<Hook>, Arc<Shown>)> = Vec::new();
        for hook in hooks.iter() {
            let version = version_for(hook, request, &self.caller.namespaces).await?;
            let Some(version) = version else { continue };
            let known = shown.iter().find(|shown| shown.version == version);
            let known = match known {
                Some(known) => Arc::clone(known),
                None => {
                    let new = Arc::new(Shown::of(request, version).await?);
                    shown.push(Arc::clone(&new));
                    new
                }
            };
            if meets_conditions(hook, request, &known)? {
                asked.push((Arc::clone(hook), known));
            }
        }
        let answers = asked.iter().enumerate();
        let mut answers: FuturesUnordered<_> = answers
            .map(|(index, (hook, shown))| self.check(request, hook, shown, index))
            .collect();
        let mut first = Ok(());
        while let Some(answer) = answers.next().await {
            if first.is_ok() {
                first = answer;
            }
        }
        first
    }
}

impl ValidatingAdmissionWebhook {
    async fn check(
        &self,
        request: &AdmissionRequest<'_>,
        hook: &Hook,
        shown: &Shown,
        index: usize,
    ) -> Result<(), ApiError> {
        let began = Instant::now();
        let asked = self.caller.ask(hook, request, shown, Phase::Validating);
        let asked = asked.await;
        self.caller
            .count(hook, request, (Phase::Validating, began), &asked);
        match asked {
            Ok(_) => Ok(()),
            Err(Refusal::Failed(why, _)) if hook.is_ignored() => {
                tracing::warn!(
                    webhook = hook.webhook.name,
                    "failed calling webhook, failing open: {why}"
                );
                if let Some(audit) = request.ctx.audit() {
                    let key = format!(
                        "failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
                    );
                    audit.annotate(key, hook.webhook.name.clone());
                }
                Ok(())
            }
            Err(Refusal::Failed(why, _)) => Err(failure(hook, &why)),
            Err(Refusal::Denied(error) | Refusal::Refused(error)) => Err(error),
        }
    }
}
