//! The rule of deletion: the keys `deletion(..)` and `graceful_delete`.

use super::{Deletion, Dependents, ObjectDeletion};
use crate::args::{Arg, Args};
use crate::diagnostics::DiagnosticId as Id;
use crate::keys::Target;
use crate::words::look_up;
use crate::{Diagnostics, SpannedValue};

/// Reads `deletion(..)`: of a container if it names one of its fields.
pub(super) fn read(arg: &Arg, d: &mut Diagnostics) -> Option<Deletion> {
    let args = arg.list(Target::Deletion, d)?;
    if args.has("finalizers") || args.has("phase") {
        return read_container(arg, &args, d);
    }
    let mut rule = ObjectDeletion::default();
    if let Some(word) = args.find("dependents").and_then(|arg| arg.word(d)) {
        let known = Dependents::ALL.map(|rule| (rule.word(), rule));
        rule.dependents = look_up(&word, "rule of dependents", &known, d).unwrap_or_default();
    }
    if let Some(word) = args.find("returns").and_then(|arg| arg.word(d)) {
        let known = [("status", false), ("object", true)];
        rule.returns_object = look_up(&word, "response to a delete", &known, d).unwrap_or_default();
    }
    if args.iter().next().is_none() {
        d.error(Id::KeyForm, arg.span(), "`deletion(..)` is empty")
            .help("write `deletion(dependents = orphan)`, `deletion(returns = object)` or, for a container, `deletion(finalizers = spec.finalizers, phase = status.phase)`");
    }
    Some(Deletion::Object(rule))
}

fn read_container(arg: &Arg, args: &Args, d: &mut Diagnostics) -> Option<Deletion> {
    for (key, example) in [("finalizers", "spec.finalizers"), ("phase", "status.phase")] {
        if !args.has(key) {
            d.error(Id::MissingKey, arg.span(), format!("`{key}` is missing"))
                .help(format!("add `{key} = {example}`"));
        }
    }
    let finalizers = args.find("finalizers").and_then(|arg| arg.field_ref(d));
    let phase = args.find("phase").and_then(|arg| arg.field_ref(d));
    Some(Deletion::Container {
        finalizers: finalizers?,
        phase: phase?,
    })
}

/// Reads `graceful_delete = 30`. The parser takes no negative numbers here.
pub(super) fn read_grace(arg: &Arg, d: &mut Diagnostics) -> Option<SpannedValue<u32>> {
    let seconds = u32::try_from(arg.integer(d)?).ok()?;
    Some(SpannedValue::new(seconds, arg.span()))
}

/// The rule with the grace period, which containers do not have.
pub(super) fn with_grace(
    rule: Option<Deletion>,
    grace: Option<SpannedValue<u32>>,
    d: &mut Diagnostics,
) -> Deletion {
    match (
        rule.unwrap_or(Deletion::Object(ObjectDeletion::default())),
        grace,
    ) {
        (Deletion::Object(rule), Some(grace)) => Deletion::Object(ObjectDeletion {
            grace_seconds: Some(grace.value),
            ..rule
        }),
        (container @ Deletion::Container { .. }, Some(grace)) => {
            d.error(
                Id::Contradiction,
                grace.span,
                "a container is not deleted gracefully",
            )
            .help("remove `graceful_delete`: its finalizers keep the object until its content is deleted");
            container
        }
        (rule, None) => rule,
    }
}
