//! Additions to a finished tree: typed checks and computed defaults; and the validation of its defaults.

use super::build::Builder;
use super::node::Node;
use super::problems::join;
use crate::hooks::Hooks;

impl Builder<'_> {
    /// Adds typed checks and computed defaults to the nodes of their fields.
    pub(crate) fn attach(&mut self, node: &mut Node, hooks: &Hooks, path: &str) {
        node.checks.extend(&hooks.checks);
        if node.is_end {
            return;
        }
        for (name, compute) in &hooks.defaults {
            if node.property(name).is_none() {
                self.error(
                    path,
                    format_args!("a default is computed for `{name}`, which is not a field"),
                );
            }
            node.computed.push((name, *compute));
        }
        for (name, below) in hooks.fields.iter().filter(|(_, below)| !below.is_empty()) {
            match node.property_mut(name) {
                Some(property) => self.attach(property.node_mut(), below, &join(path, name)),
                None => self.error(
                    path,
                    format_args!("there are checks for `{name}`, which is not a field"),
                ),
            }
        }
        let Some(below) = hooks.items.as_deref().filter(|below| !below.is_empty()) else {
            return;
        };
        match (&mut node.items, &mut node.additional) {
            (Some(items), _) => self.attach(items, below, &format!("{path}[*]")),
            (None, Some(values)) => self.attach(values, below, &format!("{path}[*]")),
            (None, None) => self.error(
                path,
                "there are checks for the items of what is neither a list nor a map",
            ),
        }
    }
}

/// Reports defaults that the schema itself refuses, so that every object with them would be invalid.
pub(crate) fn check_defaults(node: &Node, path: &str, errors: &mut Vec<String>) {
    if !node.has_defaults {
        return;
    }
    if let Some(put) = &node.default {
        let mut put = put.clone();
        super::default::default(node, &mut put);
        for error in super::validate::validate(node, &put, None) {
            let at = error.path.as_str();
            let dot = if at.is_empty() || at.starts_with('[') {
                ""
            } else {
                "."
            };
            errors.push(format!(
                "{path}{dot}{at}: the default does not fit: {}",
                error.body
            ));
        }
    }
    for property in &node.properties {
        check_defaults(&property.node, &join(path, &property.name), errors);
    }
    for below in [&node.items, &node.additional].into_iter().flatten() {
        check_defaults(below, &format!("{path}[*]"), errors);
    }
}
