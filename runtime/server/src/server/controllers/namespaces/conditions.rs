//! The conditions of a namespace whose content is deleted.

use std::collections::BTreeMap;

use apiloom_apis::core::v1::{NamespaceCondition, NamespaceStatus};
use apiloom_meta::{GroupResource, Time};

use crate::server::controllers::requests::RequestError;

/// What became of the content of a namespace.
#[derive(Default)]
pub(super) struct Content {
    /// Number of objects that are left of each resource.
    pub(super) remaining: BTreeMap<GroupResource, usize>,
    /// Number of those with each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    pub(super) failures: Vec<(GroupResource, RequestError)>,
}

/// One condition: its type, whether there is a problem, its reason without and with one, and its message without one.
struct Kind {
    name: &'static str,
    reasons: [&'static str; 2],
    message: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "NamespaceDeletionDiscoveryFailure",
        reasons: ["ResourcesDiscovered", "DiscoveryFailed"],
        message: "All resources successfully discovered",
    },
    Kind {
        name: "NamespaceDeletionGroupVersionParsingFailure",
        reasons: ["ParsedGroupVersions", "GroupVersionParsingFailed"],
        message: "All legacy kube types successfully parsed",
    },
    Kind {
        name: "NamespaceDeletionContentFailure",
        reasons: ["ContentDeleted", "ContentDeletionFailed"],
        message: "All content successfully deleted, may be waiting on finalization",
    },
    Kind {
        name: "NamespaceContentRemaining",
        reasons: ["ContentRemoved", "SomeResourcesRemain"],
        message: "All content successfully removed",
    },
    Kind {
        name: "NamespaceFinalizersRemaining",
        reasons: ["ContentHasNoFinalizers", "SomeFinalizersRemain"],
        message: "All content-preserving finalizers finished",
    },
];

/// Sets the conditions; false if nothing changes.
pub(super) fn set(status: &mut NamespaceStatus, content: &Content) -> bool {
    let mut is_changed = false;
    for (kind, problem) in KINDS.iter().zip(problems(content)) {
        let has_problem = problem.is_some();
        let condition = NamespaceCondition {
            condition_type: kind.name.to_owned(),
            status: if has_problem { "True" } else { "False" }.to_owned(),
            last_transition_time: Some(Time::now()),
            reason: Some(kind.reasons[usize::from(has_problem)].to_owned()),
            message: Some(problem.unwrap_or_else(|| kind.message.to_owned())),
        };
        let known = status
            .conditions
            .iter_mut()
            .find(|known| known.condition_type == kind.name);
        match known {
            None => {
                status.conditions.push(condition);
                is_changed = true;
            }
            Some(known) if says_the_same(known, &condition) => {}
            Some(known) => {
                let time = known.last_transition_time.take();
                let is_same = known.status == condition.status;
                *known = condition;
                if is_same {
                    known.last_transition_time = time;
                }
                is_changed = true;
            }
        }
    }
    is_changed
}

fn says_the_same(one: &NamespaceCondition, other: &NamespaceCondition) -> bool {
    (&one.status, &one.reason, &one.message) == (&other.status, &other.reason, &other.message)
}

/// The message of each condition that has a problem.
fn problems(content: &Content) -> [Option<String>; 5] {
    let list = |all: Vec<String>, text: &str| {
        (!all.is_empty()).then(|| format!("{text}: {}", all.join(", ")))
    };
    let failures: Vec<String> = content
        .failures
        .iter()
        .map(|(_, error)| error.to_string())
        .collect();
    let failed = format!(
        "Failed to delete all resource types, {} remaining",
        failures.len()
    );
    let remaining = content.remaining.iter();
    let remaining = remaining.map(|(of, count)| {
        format!(
            "{}.{} has {count} resource instances",
            of.resource, of.group
        )
    });
    let finalizers = content.finalizers.iter();
    let finalizers =
        finalizers.map(|(name, count)| format!("{name} in {count} resource instances"));
    [
        None,
        None,
        list(failures, &failed),
        list(remaining.collect(), "Some resources are remaining"),
        list(
            finalizers.collect(),
            "Some content in the namespace has finalizers remaining",
        ),
    ]
}
