//! The conditions of a namespace whose content is deleted.

use std::collections::BTreeMap;

use apiloom_kinds::core::v1::NamespaceStatus;
use apiloom_meta::{Condition, Conditions as _, GroupResource, Time};
use apiloom_server::host::RequestError;

/// Most bytes of the entries of a message: that of conditions in general. kube-controller-manager's have no limit, so that a
/// namespace whose objects have many finalizers could get too large to be written.
const MESSAGE_BYTES: usize = 32 * 1024;

/// Most finalizers that are counted by their name.
const FINALIZERS: usize = 1000;

/// What became of the content of a namespace.
#[derive(Default)]
pub(super) struct Content {
    /// Number of objects that are left of each resource.
    pub(super) remaining: BTreeMap<GroupResource, usize>,
    /// Number of those with each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Number of finalizers of objects beyond those names.
    pub(super) more_finalizers: usize,
    pub(super) failures: Vec<(GroupResource, RequestError)>,
}

impl Content {
    /// Counts objects with a finalizer.
    pub(super) fn count_finalizer(&mut self, name: &str, count: usize) {
        if let Some(known) = self.finalizers.get_mut(name) {
            *known += count;
        } else if self.finalizers.len() < FINALIZERS {
            self.finalizers.insert(name.to_owned(), count);
        } else {
            self.more_finalizers += count;
        }
    }
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

/// Sets the conditions at a time of the server's clock; false if nothing changes.
pub(super) fn set(status: &mut NamespaceStatus, content: &Content, now: Time) -> bool {
    let mut is_changed = false;
    for (kind, problem) in KINDS.iter().zip(problems(content)) {
        let has_problem = problem.is_some();
        let reason = kind.reasons[usize::from(has_problem)];
        let message = problem.unwrap_or_else(|| kind.message.to_owned());
        let mut condition = Condition::new(kind.name, has_problem, reason, message);
        condition.last_transition_time = now;
        is_changed |= status.conditions.set_condition(condition.into());
    }
    is_changed
}

/// The message of each condition that has a problem.
fn problems(content: &Content) -> [Option<String>; 5] {
    let failures = content.failures.iter().map(|(_, error)| error.to_string());
    let failed = format!(
        "Failed to delete all resource types, {} remaining",
        content.failures.len()
    );
    let remaining = content.remaining.iter().map(|(of, count)| {
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
        list(&failed, failures, 0),
        list("Some resources are remaining", remaining, 0),
        list(
            "Some content in the namespace has finalizers remaining",
            finalizers,
            content.more_finalizers,
        ),
    ]
}

/// A message with entries, and the number of those for which it has no room; `None` without entries.
fn list(text: &str, entries: impl ExactSizeIterator<Item = String>, more: usize) -> Option<String> {
    if entries.len() == 0 {
        return None;
    }
    let mut message = format!("{text}: ");
    let mut left = entries.len() + more;
    for (index, entry) in entries.enumerate() {
        if message.len() + entry.len() > MESSAGE_BYTES {
            break;
        }
        if index > 0 {
            message.push_str(", ");
        }
        message.push_str(&entry);
        left -= 1;
    }
    if left > 0 {
        message.push_str(&format!(", and {left} more"));
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_and_count_what_they_leave_out() {
        let entries = |count: usize| (0..count).map(|i| format!("example.com/{i:088}"));
        let short = list("Left", entries(2), 0).unwrap();
        assert_eq!(short.len(), "Left: ".len() + 2 * 100 + ", ".len());
        let long = list("Left", entries(1000), 7).unwrap();
        assert!(long.len() < MESSAGE_BYTES + 200, "{}", long.len());
        let shown = long.matches("example.com").count();
        assert!(
            long.ends_with(&format!(", and {} more", 1007 - shown)),
            "{long}"
        );
        assert!(shown > 300);
        assert_eq!(list("Left", entries(0), 0), None);
    }

    #[test]
    fn finalizers_that_are_not_counted_are_told() {
        let mut content = Content::default();
        let names = || (0..2 * FINALIZERS).map(|i| format!("example.com/{i}"));
        for name in names().chain(names()) {
            content.count_finalizer(&name, 1);
        }
        assert_eq!(content.finalizers.len(), FINALIZERS);
        assert_eq!(content.more_finalizers, 2 * FINALIZERS);
        assert!(content.finalizers.values().all(|count| *count == 2));
    }
}
