//! Estimated maximum costs of rules. kube-apiserver refuses rules and definitions over its limits, so estimates here
//! must not be lower than its own.

use crate::engine::node::Node;

/// A number of kube-apiserver's cost units, or of elements. Saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost(u64);

/// The limit for one rule, and for all rules of a version.
const MAX_RULE: Cost = Cost(10_000_000);
const MAX_DEFINITION: Cost = Cost(100_000_000);

/// Size of a request in bytes, all of which may be one unbounded value.
const MAX_REQUEST: usize = 3 * 1024 * 1024;

impl Cost {
    /// One unit.
    pub(super) const ONE: Cost = Cost(1);
    /// Cost of an operator or a function, with the fields in its arguments.
    pub(super) const CALL: Cost = Cost(4);
    /// Above every limit.
    pub(super) const UNBOUNDED: Cost = Cost(u64::MAX);

    pub(super) fn of(number: usize) -> Self {
        Self(u64::try_from(number).unwrap_or(u64::MAX))
    }

    /// Cost of a traversal of bytes or elements, for a comparison for example.
    pub(super) fn traversal(elements: Cost) -> Self {
        Self(elements.0.div_ceil(10))
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self(self.0.saturating_mul(other.0))
    }

    pub(super) fn is_within_rule(self) -> bool {
        self <= MAX_RULE
    }

    pub(super) fn is_within_definition(self) -> bool {
        self <= MAX_DEFINITION
    }
}

/// Maximum number of items of a list, or entries of a map.
pub(super) fn most_elements_of(node: &Node) -> Cost {
    let bound = if node.is_map() {
        node.rules.max_properties
    } else {
        node.rules.max_items
    };
    Cost::of(bound.unwrap_or(MAX_REQUEST))
}

/// Maximum number of elements in a comparison: bytes of a string, items of a list, entries of a map.
pub(super) fn most_elements(node: &Node) -> Cost {
    match node.types.single() {
        Some("integer" | "number" | "boolean") => Cost::ONE,
        // A character has up to four bytes.
        Some("string") => {
            let most = node.rules.max_length.or(node.rules.max_bytes);
            let most = most.or_else(|| {
                node.rules
                    .values
                    .iter()
                    .map(|value| value.to_string().len())
                    .max()
            });
            Cost::of(most.map_or(MAX_REQUEST, |most| most.saturating_mul(4).min(MAX_REQUEST)))
        }
        Some("array") => most_elements_of(node),
        Some("object") if node.is_map() => most_elements_of(node),
        _ => Cost::of(MAX_REQUEST),
    }
}
