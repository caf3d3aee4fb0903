//! The strategy of coordination.k8s.io/v1 Lease.

use apiloom_meta::{FieldError, FieldPath, names};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use crate::built_in::BuiltIn;
use crate::coordination::v1::Lease;

/// The strategies of coordinated leader election that Kubernetes defines.
const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

impl BuiltIn for Lease {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(LeaseRules);
    }
}

/// The strategy of leases.
struct LeaseRules;

impl Strategy<Lease> for LeaseRules {
    const HAS_DEFAULTS: bool = false;

    fn validate(&self, _ctx: &RequestContext, object: &Lease) -> Vec<FieldError> {
        let (spec, path) = (&object.spec, FieldPath::new("spec"));
        let mut errors = Vec::new();
        if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
            let path = path.child("leaseDurationSeconds");
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "must be greater than 0",
            ));
        }
        if let Some(count) = spec.lease_transitions.filter(|count| *count < 0) {
            let path = path.child("leaseTransitions");
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path, count, why));
        }
        if let Some(strategy) = &spec.strategy {
            errors.extend(strategy_errors(strategy, &path.child("strategy")));
        }
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if is_set(&spec.preferred_holder) && !is_set(&spec.strategy) {
            errors.push(FieldError::forbidden(
                &path.child("preferredHolder"),
                "may only be specified if `strategy` is defined",
            ));
        }
        errors
    }
}

/// The errors of the name of a strategy. kube-apiserver repeats the last part of the path.
fn strategy_errors(strategy: &str, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("strategy");
    if !strategy.contains('/') {
        if STRATEGIES.contains(&strategy) {
            return Vec::new();
        }
        return vec![FieldError::not_supported(&path, strategy, &STRATEGIES)];
    }
    let complaints = names::qualified_name(strategy).into_iter();
    complaints
        .map(|complaint| FieldError::invalid(&path, strategy, &complaint))
        .collect()
}
