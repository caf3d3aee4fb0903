//! Mutating webhooks: one after the other, each sees what those before have changed. One that is told so is asked once more if the object
//! changed after it.

use std::collections::BTreeSet;
use std::time::Instant;

use apiloom_kinds::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use apiloom_meta::patch::Patch;
use apiloom_meta::{ApiError, Object};
use apiloom_registry::audit::AuditLevel;
use apiloom_registry::{Admission, AdmissionRequest};
use async_trait::async_trait;
use serde_json::{Value, json};

use super::call::{Caller, Refusal, failure};
use super::hooks::{Hook, Hooks};
use super::matching::{is_exempt, meets_conditions, version_for};
use super::metrics::Phase;
use super::review::Shown;

/// The plugin.
#[derive(Debug)]
pub(crate) struct MutatingAdmissionWebhook {
    pub(crate) hooks: Hooks<MutatingWebhookConfiguration>,
    pub(crate) caller: Caller,
}

/// What is kept between the two rounds of a write.
#[derive(Debug, Default)]
struct Notes {
    /// The ids of webhooks that were asked and may be asked again.
    asked: BTreeSet<String>,
    /// The ids of those that are asked again.
    again: BTreeSet<String>,
    /// The object as the webhooks left it.
    output: Option<Object>,
}

impl Notes {
    /// Notes that the object has changed.
    fn change(&mut self) {
        self.again.append(&mut self.asked);
    }
}

#[async_trait]
impl Admission for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn asks_others(&self) -> bool {
        true
    }

    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        if is_exempt(request) {
            return Ok(());
        }
        let hooks = self.hooks.current().await;
        let hooks = hooks.map_err(|_| request.forbidden("not yet ready to handle request"))?;
        if hooks.is_empty() {
            return Ok(());
        }
        let mut notes: Notes = request.take_notes();
        let object = request.object.as_deref();
        if request.is_reinvocation() && notes.output.as_ref() != object {
            // The plugins of the server have changed it.
            notes.change();
        }
        for (index, hook) in hooks.iter().enumerate() {
            self.pass(request, hook, index, &mut notes).await?;
        }
        if !notes.asked.is_empty() {
            notes.output = request.object.as_deref().cloned();
        }
        request.keep_notes(notes);
        Ok(())
    }
}

impl MutatingAdmissionWebhook {
    /// Passes the write by a webhook, if it is asked about it.
    async fn pass(
        &self,
        request: &mut AdmissionRequest<'_>,
        hook: &Hook,
        index: usize,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        let version = version_for(hook, request, &self.caller.namespaces).await?;
        let Some(version) = version.map(str::to_owned) else {
            return Ok(());
        };
        let shown = Shown::of(request, &version).await?;
        if !meets_conditions(hook, request, &shown)? {
            return Ok(());
        }
        let round = usize::from(request.is_reinvocation());
        if round > 0 && !notes.again.contains(&hook.id) {
            return Ok(());
        }
        let began = Instant::now();
        let place = format!("round_{round}_index_{index}");
        let changed = self.change(request, hook, shown, &place).await;
        let is_changed = matches!(changed, Ok(true));
        annotate_change(request, hook, &place, is_changed);
        self.caller
            .count(hook, request, (Phase::Mutating, began), &changed);
        if is_changed {
            notes.change();
            request.reinvoke();
        }
        if hook.webhook.reinvocation_policy.as_deref() == Some(MutatingWebhook::IF_NEEDED) {
            notes.asked.insert(hook.id.clone());
        }
        match changed {
            Ok(_) => Ok(()),
            Err(Refusal::Failed(why, _)) if hook.is_ignored() => {
                tracing::warn!(
                    webhook = hook.webhook.name,
                    "failed calling webhook, failing open: {why}"
                );
                if let Some(audit) = request.ctx.audit() {
                    let key = format!("failed-open.mutation.webhook.admission.k8s.io/{place}");
                    audit.annotate(key, hook.webhook.name.clone());
                }
                Ok(())
            }
            Err(Refusal::Failed(why, _)) => Err(failure(hook, &why)),
            Err(Refusal::Denied(error) | Refusal::Refused(error)) => Err(error),
        }
    }

    /// Asks a webhook and applies its patch. Returns whether the object has changed.
    async fn change(
        &self,
        request: &mut AdmissionRequest<'_>,
        hook: &Hook,
        shown: Shown,
        place: &str,
    ) -> Result<bool, Refusal> {
        let verdict = self
            .caller
            .ask(hook, request, &shown, Phase::Mutating)
            .await?;
        let Some(steps) = verdict.patch else {
            return Ok(false);
        };
        let patch = Patch::parse_json_freely(&steps).map_err(|error| {
            let why = format!("received undecodable patch in webhook response: {error}");
            Refusal::Failed(why, 503)
        })?;
        let written: Value = serde_json::from_slice(&steps).unwrap_or_default();
        if written.as_array().is_some_and(Vec::is_empty) {
            return Ok(false);
        }
        let internal = |why: String| Refusal::Refused(ApiError::internal(why));
        if request.object.is_none() {
            let name = &hook.webhook.name;
            return Err(internal(format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            )));
        }
        let mut patched = shown.object.clone();
        patch
            .apply_without_schema(&mut patched)
            .map_err(|error| internal(error.to_string()))?;
        let written = request.concealed_steps(written, &shown.version);
        annotate_patch(request, hook, place, written);
        if patched == shown.object {
            return Ok(false);
        }
        let replaced = request.replace_object(patched, &shown.version).await;
        replaced.map_err(Refusal::Refused)?;
        Ok(true)
    }
}

/// Annotates the audit with whether a webhook changed the object.
fn annotate_change(request: &AdmissionRequest<'_>, hook: &Hook, place: &str, is_changed: bool) {
    if let Some(audit) = request.ctx.audit() {
        let (configuration, webhook) = (&hook.configuration, &hook.webhook.name);
        let value =
            json!({"configuration": configuration, "webhook": webhook, "mutated": is_changed});
        let key = format!("mutation.webhook.admission.k8s.io/{place}");
        audit.annotate(key, value.to_string());
    }
}

/// Annotates the audit with the patch of a webhook, where requests are recorded with their bodies.
fn annotate_patch(request: &AdmissionRequest<'_>, hook: &Hook, place: &str, patch: Value) {
    let audit = request.ctx.audit();
    if let Some(audit) = audit.filter(|audit| audit.level() >= AuditLevel::Request) {
        let (configuration, webhook) = (&hook.configuration, &hook.webhook.name);
        let value = json!({
            "configuration": configuration,
            "webhook": webhook,
            "patch": patch,
            "patchType": "JSONPatch",
        });
        let key = format!("patch.webhook.admission.k8s.io/{place}");
        audit.annotate(key, value.to_string());
    }
}
