//! Which names a definition gets: those that no other kind of its group has.

use std::collections::{HashMap, HashSet};

use apiloom_kinds::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionNames};
use apiloom_meta::{Condition, Conditions as _};
use apiloom_registry::Catalog;

use super::known::{Known, kinds, resources};

/// A set of names of kinds in a group.
#[derive(Default)]
struct NameSet {
    /// Plurals, singulars and short names.
    resources: HashSet<String>,
    /// Kinds, and those of lists.
    kinds: HashSet<String>,
}

impl NameSet {
    fn add(&mut self, names: &CustomResourceDefinitionNames) {
        self.resources.extend(resources(names).cloned());
        self.kinds.extend(kinds(names).cloned());
    }

    fn has_any(&self, names: &CustomResourceDefinitionNames) -> bool {
        resources(names).any(|name| self.resources.contains(name))
            || kinds(names).any(|name| self.kinds.contains(name))
    }

    /// The names of some definitions.
    fn by<'a>(definitions: impl Iterator<Item = &'a Known>) -> Self {
        let mut taken = Self::default();
        definitions.for_each(|other| taken.add(&other.accepted));
        taken
    }

    /// The names of all other definitions, and of the Rust types with another resource.
    fn by_others<'a>(
        object: &CustomResourceDefinition,
        others: impl Iterator<Item = &'a Known>,
        catalog: &Catalog,
    ) -> Self {
        let group = &object.spec.group;
        let mut taken = Self::by(others);
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

/// One of the two sets of names.
type NamesOf = fn(&NameSet) -> &HashSet<String>;

/// The names that a definition cannot have.
struct RefusedNames {
    /// Those that another kind has.
    taken: NameSet,
    /// Of those that it has, the ones that it must give up.
    contested: NameSet,
}

impl RefusedNames {
    fn new(
        object: &CustomResourceDefinition,
        known: &HashMap<String, Box<Known>>,
        catalog: &Catalog,
    ) -> Self {
        let own = Known::of_object(object);
        let others = known.values().map(|known| &**known);
        let others = others.filter(|other| other.group == own.group && other.name != own.name);
        let before = others
            .clone()
            .filter(|other| !own.is_established && other.comes_before(&own));
        Self {
            contested: NameSet::by(before),
            taken: NameSet::by_others(object, others, catalog),
        }
    }

    /// Whether a definition that has the name `present` can have the name `given`.
    fn allows(&self, given: &str, present: &str, names: NamesOf) -> bool {
        let refused = if given == present {
            &self.contested
        } else {
            &self.taken
        };
        !names(refused).contains(given)
    }
}

/// Sets the accepted names of a definition, and the condition NamesAccepted; that it is established is not decided here.
pub(super) fn accept(
    object: &mut CustomResourceDefinition,
    known: &HashMap<String, Box<Known>>,
    catalog: &Catalog,
) {
    let mut accepted = object.status.accepted_names.clone().unwrap_or_default();
    let names = &object.spec.names;
    let conditions = &object.status.conditions;
    let has_all = *names == accepted && conditions.is_condition_true("NamesAccepted");
    // An established definition keeps its names.
    if has_all && conditions.is_condition_true("Established") {
        return;
    }
    let refused = RefusedNames::new(object, known, catalog);
    if has_all && !refused.contested.has_any(names) {
        return;
    }
    // Of several conflicts the last is told, in the order plural, singular, short names, kind, kind of lists.
    let mut conflict: Option<(&'static str, String)> = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    // The name that the definition has from now on.
    let grant = |conflict: &mut Option<(&'static str, String)>,
                 reason: &'static str,
                 (given, present): (&str, &str),
                 of: NamesOf| {
        if refused.allows(given, present, of) {
            return given.to_owned();
        }
        *conflict = Some((reason, in_use(given)));
        let is_lost = of(&refused.contested).contains(present);
        if is_lost {
            String::new()
        } else {
            present.to_owned()
        }
    };
    let of_resources: NamesOf = |taken| &taken.resources;
    let of_kinds: NamesOf = |taken| &taken.kinds;
    let text = |name: &Option<String>| name.clone().unwrap_or_default();
    let some = |name: String| Some(name).filter(|name| !name.is_empty());
    accepted.plural = grant(
        &mut conflict,
        "PluralConflict",
        (&names.plural, &accepted.plural),
        of_resources,
    );
    accepted.singular = some(grant(
        &mut conflict,
        "SingularConflict",
        (&text(&names.singular), &text(&accepted.singular)),
        of_resources,
    ));
    let present = std::mem::take(&mut accepted.short_names);
    let is_refused = |name: &&String| {
        let present = if present.contains(name) { name } else { "" };
        !refused.allows(name, present, of_resources)
    };
    let refused_short: Vec<String> = names
        .short_names
        .iter()
        .filter(is_refused)
        .map(|name| in_use(name))
        .collect();
    accepted.short_names = present
        .iter()
        .filter(|name| !is_refused(name))
        .cloned()
        .collect();
    match &refused_short[..] {
        [] => accepted.short_names.clone_from(&names.short_names),
        [one] => conflict = Some(("ShortNamesConflict", one.clone())),
        several => {
            let message = format!("[{}]", several.join(", "));
            conflict = Some(("ShortNamesConflict", message));
        }
    }
    accepted.kind = grant(
        &mut conflict,
        "KindConflict",
        (&names.kind, &accepted.kind),
        of_kinds,
    );
    accepted.list_kind = some(grant(
        &mut conflict,
        "ListKindConflict",
        (&text(&names.list_kind), &text(&accepted.list_kind)),
        of_kinds,
    ));
    accepted.categories.clone_from(&names.categories);
    let status = &mut object.status;
    status.accepted_names = Some(accepted);
    let (is_accepted, reason, message) = match &conflict {
        Some((reason, message)) => (false, *reason, message.as_str()),
        None => (true, "NoConflicts", "no conflicts found"),
    };
    let condition = Condition::new("NamesAccepted", is_accepted, reason, message);
    status.conditions.set_condition(condition.into());
    if !status.conditions.is_condition_true("Established") {
        let (reason, message) = if is_accepted {
            ("Installing", "the initial names have been accepted")
        } else {
            ("NotAccepted", "not all names are accepted")
        };
        let condition = Condition::new("Established", false, reason, message);
        status.conditions.set_condition(condition.into());
    }
}

#[cfg(test)]
mod tests;
