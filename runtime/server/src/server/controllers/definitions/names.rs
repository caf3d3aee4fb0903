//! Which names a definition gets: those that no other kind of its group has.

use std::collections::{HashMap, HashSet};

use apiloom_apis::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionNames};

use super::known::Known;
use crate::registry::Catalog;
use crate::registry::definition_rules::{has_condition, set_condition};

/// The names of other kinds in a group.
#[derive(Default)]
struct Taken {
    /// Plurals, singulars and short names.
    resources: HashSet<String>,
    /// Kinds, and those of lists.
    kinds: HashSet<String>,
}

impl Taken {
    fn add(&mut self, names: &CustomResourceDefinitionNames) {
        let resources = std::iter::once(&names.plural).chain(&names.singular);
        self.resources
            .extend(resources.chain(&names.short_names).cloned());
        let kinds = std::iter::once(&names.kind).chain(&names.list_kind);
        self.kinds.extend(kinds.cloned());
    }

    /// The names of all other definitions, and of the Rust types with another resource.
    fn by_others(
        object: &CustomResourceDefinition,
        known: &HashMap<String, Known>,
        catalog: &Catalog,
    ) -> Self {
        let own = object.metadata.name.as_deref().unwrap_or_default();
        let group = &object.spec.group;
        let mut taken = Self::default();
        let others = known.values();
        let others = others.filter(|other| other.group == *group && other.name != own);
        others.for_each(|other| taken.add(&other.accepted));
        let compiled = catalog.compiled();
        let compiled =
            compiled.filter(|def| def.group == **group && def.plural != *object.spec.names.plural);
        for def in compiled {
            let names = [&def.plural, &def.singular].into_iter();
            let names = names.chain(&def.short_names).map(ToString::to_string);
            taken.resources.extend(names);
            let kinds = [&def.kind, &def.list_kind].map(ToString::to_string);
            taken.kinds.extend(kinds);
        }
        taken
    }
}

/// Sets the accepted names of a definition, and the condition NamesAccepted; that it is established is not decided here.
pub(super) fn accept(
    object: &mut CustomResourceDefinition,
    known: &HashMap<String, Known>,
    catalog: &Catalog,
) {
    let mut accepted = object.status.accepted_names.clone().unwrap_or_default();
    let names = &object.spec.names;
    if *names == accepted && has_condition(&object.status.conditions, "NamesAccepted") {
        return;
    }
    let taken = Taken::by_others(object, known, catalog);
    let mut conflict: Option<(&str, String)> = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    let mut grant = |reason: &'static str, given: &str, present: &str, used: &HashSet<String>| {
        let is_free = given == present || !used.contains(given);
        if !is_free {
            conflict = Some((reason, in_use(given)));
        }
        is_free
    };
    if grant(
        "PluralConflict",
        &names.plural,
        &accepted.plural,
        &taken.resources,
    ) {
        accepted.plural.clone_from(&names.plural);
    }
    let text = |name: &Option<String>| name.clone().unwrap_or_default();
    if grant(
        "SingularConflict",
        &text(&names.singular),
        &text(&accepted.singular),
        &taken.resources,
    ) {
        accepted.singular.clone_from(&names.singular);
    }
    let short = names.short_names.iter();
    let refused: Vec<String> = short
        .filter(|name| !accepted.short_names.contains(name) && taken.resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    if grant("KindConflict", &names.kind, &accepted.kind, &taken.kinds) {
        accepted.kind.clone_from(&names.kind);
    }
    if grant(
        "ListKindConflict",
        &text(&names.list_kind),
        &text(&accepted.list_kind),
        &taken.kinds,
    ) {
        accepted.list_kind.clone_from(&names.list_kind);
    }
    match &refused[..] {
        [] => accepted.short_names.clone_from(&names.short_names),
        [one] => {
            conflict.get_or_insert(("ShortNamesConflict", one.clone()));
        }
        several => {
            let message = format!("[{}]", several.join(", "));
            conflict.get_or_insert(("ShortNamesConflict", message));
        }
    }
    accepted.categories.clone_from(&names.categories);
    let status = &mut object.status;
    status.accepted_names = Some(accepted);
    let is_established = has_condition(&status.conditions, "Established");
    match &conflict {
        Some((reason, message)) => {
            set_condition(
                &mut status.conditions,
                ("NamesAccepted", false),
                reason,
                message,
            );
            if !is_established {
                let why = "not all names are accepted";
                set_condition(
                    &mut status.conditions,
                    ("Established", false),
                    "NotAccepted",
                    why,
                );
            }
        }
        None => {
            let why = "no conflicts found";
            set_condition(
                &mut status.conditions,
                ("NamesAccepted", true),
                "NoConflicts",
                why,
            );
            if !is_established {
                let why = "the initial names have been accepted";
                set_condition(
                    &mut status.conditions,
                    ("Established", false),
                    "Installing",
                    why,
                );
            }
        }
    }
}
