//! Admission webhooks, a part of a server: other programs that change, allow or refuse writes, as configurations of
//! admissionregistration.k8s.io/v1 say.
//!
//! - `hooks.rs` has the webhooks of all configurations, ready to be asked. It follows their listers when a write comes: a configuration that
//!   this server acknowledged applies to the next write.
//! - `matching.rs` says about which writes a webhook is asked, and in which version of the object.
//! - `review.rs` is what a webhook is sent, and how its answer is read.
//! - `call.rs` asks one webhook; `mutating.rs` asks one after the other, `validating.rs` all at once.

mod call;
mod hooks;
mod matching;
mod metrics;
mod mutating;
mod review;
mod validating;

use apiloom_server::{Builder, Capability, Part};

use self::call::Caller;
use self::hooks::{Hooks, Services};
use self::metrics::WebhookMetrics;
use self::mutating::MutatingAdmissionWebhook;
use self::validating::ValidatingAdmissionWebhook;

/// The part: a server that serves configurations of webhooks asks the webhooks about every write but those of these configurations.
/// `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook` are its names in `--disable-admission-plugins`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AdmissionWebhooks {}

impl Part for AdmissionWebhooks {
    fn name(&self) -> &'static str {
        "admission"
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        let metrics = WebhookMetrics::default();
        let services = Services::default();
        let caller = Caller {
            namespaces: builder.lister(),
            metrics: metrics.clone(),
        };
        let (services_of_mutating, mutating_caller) = (services.clone(), caller.clone());
        let services_of_validating = services.clone();
        builder
            .metrics(metrics)
            .admission(move |context| MutatingAdmissionWebhook {
                hooks: Hooks::new(context.lister_if_registered(), services_of_mutating),
                caller: mutating_caller,
            })
            .admission(move |context| ValidatingAdmissionWebhook {
                hooks: Hooks::new(context.lister_if_registered(), services_of_validating),
                caller,
            })
            .capability(move |context| {
                services.find_by(&context.services);
                Following
            })
    }
}

/// The part while the server runs: all that it does is asked for by writes.
#[derive(Debug)]
struct Following;

impl Capability for Following {}
