//! Checks the names of kinds: unique in their group, the same in every version of a kind.

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::Resource as _;
use apiloom_meta::kind::names::KindNames;
use apiloom_model::{Kind, SpannedValue};

use super::{Checker, group_text};
use crate::collect::Declaration;
use crate::problem::Problem;

fn names(kind: &Kind) -> KindNames<'_> {
    fn texts(names: &[SpannedValue<String>]) -> Vec<&str> {
        names.iter().map(|name| name.value.as_str()).collect()
    }
    KindNames {
        kind: &kind.kind.value,
        list_kind: &kind.list_kind.value,
        plural: &kind.plural.value,
        singular: &kind.singular.value,
        short_names: texts(&kind.short_names),
        categories: texts(&kind.categories),
    }
}

/// The token that declares a name or from which it is derived.
fn said<'a>(kind: &'a Kind, name: &str) -> &'a SpannedValue<String> {
    let mut all = [&kind.kind, &kind.list_kind, &kind.plural, &kind.singular]
        .into_iter()
        .chain(&kind.short_names);
    all.find(|said| said.value == name).unwrap_or(&kind.kind)
}

/// The subresources that each version of a kind must have; status and scale may differ, as those of definitions do.
fn subresources(kind: &Kind) -> Vec<&str> {
    let names = kind.subresources.iter().map(|sub| sub.name.value.as_str());
    names
        .filter(|name| !["status", "scale"].contains(name))
        .collect()
}

fn list_of(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl Checker<'_> {
    /// Checks that names are unique in a group, and that a kind has the same names and scope in every version.
    pub(super) fn names(&mut self) {
        for (index, kind) in self.found.kinds.iter().enumerate() {
            self.own_kinds(kind);
            let group = &kind.value.group.value;
            let earlier = self.found.kinds[..index]
                .iter()
                .filter(|first| first.value.group.value == *group);
            let (versions, others): (Vec<_>, Vec<_>) =
                earlier.partition(|first| first.value.kind.value == kind.value.kind.value);
            for first in &versions {
                self.twice(first, kind);
            }
            if let Some(first) = versions.first() {
                self.versions_of_a_kind(first, kind);
            }
            self.shared(&others, kind);
        }
    }

    /// Refuses what the kind that every server has leaves no room for. A package without a server may be of the server.
    fn own_kinds(&mut self, kind: &Declaration<Kind>) {
        if !self.has_server {
            return;
        }
        let def = Namespace::definition();
        if def.group == kind.value.group.value {
            self.own_kind(kind, &def.names());
        }
    }

    fn own_kind(&mut self, kind: &Declaration<Kind>, own: &KindNames<'_>) {
        let shared = names(&kind.value).shared(own);
        if shared.contains(&own.kind) || shared.contains(&own.plural) {
            let group = group_text(&kind.value.group.value);
            self.problems.push(
                Problem::error(format!(
                    "every server serves `{}` of {group} itself",
                    own.plural
                ))
                .at(self.kind_at(kind))
                .help("leave this kind out"),
            );
            return;
        }
        for name in shared {
            self.problems.push(
                Problem::error(format!(
                    "`{name}` is a name of `{}`, which every server serves",
                    own.plural
                ))
                .at(self.at(kind.module, said(&kind.value, name).span))
                .help("choose another name"),
            );
        }
    }

    fn twice(&mut self, first: &Declaration<Kind>, kind: &Declaration<Kind>) {
        if first.value.version.value == kind.value.version.value {
            let (name, version) = (&kind.value.kind.value, kind.value.api_version());
            self.push_pair(
                format!("kind `{name}` is declared twice in {version}"),
                first,
                kind,
            );
        }
    }

    fn versions_of_a_kind(&mut self, first: &Declaration<Kind>, kind: &Declaration<Kind>) {
        let (a, b) = (&first.value, &kind.value);
        if a.version.value == b.version.value {
            return;
        }
        let name = &b.kind.value;
        for difference in names(a).differences(&names(b)) {
            let other = match difference.what {
                "short names" | "categories" => "other",
                _ => "another",
            };
            let message = format!(
                "kind `{name}` has {other} {} here: {}, not {}",
                difference.what, difference.second, difference.first
            );
            self.push_pair(message, first, kind);
        }
        if a.scope != b.scope {
            self.push_pair(format!("kind `{name}` has another scope here"), first, kind);
        }
        let (first_has, has) = (subresources(a), subresources(b));
        if first_has != has {
            let message = format!(
                "kind `{name}` has other subresources here: {}, not {}",
                list_of(&has),
                list_of(&first_has)
            );
            self.problems.push(self.pair(message, first, kind).help(
                "declare the same ones in every version of a kind; status and scale may differ",
            ));
        }
    }

    fn push_pair(&mut self, message: String, first: &Declaration<Kind>, kind: &Declaration<Kind>) {
        self.problems.push(self.pair(message, first, kind));
    }

    fn pair(
        &self,
        message: String,
        first: &Declaration<Kind>,
        kind: &Declaration<Kind>,
    ) -> Problem {
        Problem::error(message)
            .at(self.kind_at(kind))
            .related(self.kind_at(first), "the other declaration")
    }

    /// Reports names that an earlier kind of the group has.
    fn shared(&mut self, earlier: &[&Declaration<Kind>], kind: &Declaration<Kind>) {
        let mut told = Vec::new();
        for first in earlier {
            for name in names(&kind.value).shared(&names(&first.value)) {
                if told.contains(&name) {
                    continue;
                }
                told.push(name);
                let (own, other) = (said(&kind.value, name), said(&first.value, name));
                self.problems.push(
                    Problem::error(format!(
                        "`{name}` is a name of two kinds, `{}` and `{}`",
                        first.value.kind.value, kind.value.kind.value
                    ))
                    .at(self.at(kind.module, own.span))
                    .related(self.at(first.module, other.span), "the other one")
                    .help("a group has each kind, list kind, plural, singular and short name once"),
                );
            }
        }
    }
}
