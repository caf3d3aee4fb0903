//! A kind whose types have names: what its modules are written of, before the kinds of a version share types.

use super::definition::Definition;
use super::fit;
use super::naming::{self, NamedTypes};
use super::shapes::Shapes;

/// A kind whose types have names.
#[derive(Debug)]
pub(crate) struct PreparedKind {
    pub(super) definition: Definition,
    /// The types of each version.
    pub(super) named: Vec<NamedTypes>,
    /// The place of the stored version.
    pub(super) hub: usize,
    /// What was left out so far: a line each.
    pub(super) lost: Vec<String>,
}

impl PreparedKind {
    /// Finds the types of a kind, and leaves out what they cannot say.
    pub(crate) fn new(definition: &Definition) -> Self {
        let mut definition = definition.clone();
        let mut lost = definition.left_out.clone();
        definition.versions.iter_mut().for_each(fit::add_status);
        let named: Vec<NamedTypes> = definition
            .versions
            .iter()
            .map(|version| naming::name(Shapes::read(&definition.kind, &version.schema)))
            .collect();
        for (version, named) in definition.versions.iter_mut().zip(&named) {
            let lines = fit::leave_out_unfit(version, named);
            lost.extend(of_version(&version.name, lines));
        }
        let mut versions = definition.versions.iter();
        let hub = versions.position(|version| version.is_stored);
        Self {
            hub: hub.unwrap_or_default(),
            definition,
            named,
            lost,
        }
    }
    /// The name of the stored version.
    pub(super) fn hub_name(&self) -> &str {
        &self.definition.versions[self.hub].name
    }
}

/// Lines that begin with their version.
pub(super) fn of_version(version: &str, lines: Vec<String>) -> impl Iterator<Item = String> {
    lines
        .into_iter()
        .map(move |line| format!("{version}: {line}"))
}
