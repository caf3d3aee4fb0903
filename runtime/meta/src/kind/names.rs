//! Names of a kind in its group. Kinds of a group must not share names, and all versions of a kind must have the same
//! ones: kubectl puts them in one table, and a CustomResourceDefinition has only one set.

use super::{ResourceDef, SmolStr};

/// The names of one version of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of a CustomResourceDefinition"
)]
pub struct KindNames<'a> {
    pub kind: &'a str,
    pub list_kind: &'a str,
    pub plural: &'a str,
    pub singular: &'a str,
    pub short_names: Vec<&'a str>,
    pub categories: Vec<&'a str>,
}

/// A difference between the names of two versions of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The names that differ: `short names`.
    pub what: &'static str,
    /// The value in the first version.
    pub first: String,
    /// The value in the second version.
    pub second: String,
}

impl<'a> KindNames<'a> {
    /// Names by which clients can request the resource.
    fn resources(&self) -> impl Iterator<Item = &'a str> {
        [self.plural, self.singular]
            .into_iter()
            .chain(self.short_names.clone())
    }

    fn kinds(&self) -> [&'a str; 2] {
        [self.kind, self.list_kind]
    }

    /// Names that another kind of the group has too, without duplicates.
    pub fn shared(&self, other: &KindNames<'_>) -> Vec<&'a str> {
        let kinds = self.kinds().into_iter();
        let kinds = kinds.filter(|name| other.kinds().contains(name));
        let resources = self
            .resources()
            .filter(|name| other.resources().any(|other| other == *name));
        let mut shared: Vec<&str> = Vec::new();
        for name in kinds.chain(resources) {
            if !shared.contains(&name) {
                shared.push(name);
            }
        }
        shared
    }

    /// Differences to another version of the same kind. The order of a list is ignored.
    pub fn differences(&self, other: &KindNames<'_>) -> Vec<Difference> {
        let one = |name: &str| format!("`{name}`");
        let several = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().copied().map(one).collect();
            names.sort_unstable();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let all = [
            ("plural", one(self.plural), one(other.plural)),
            ("singular", one(self.singular), one(other.singular)),
            ("list kind", one(self.list_kind), one(other.list_kind)),
            (
                "short names",
                several(&self.short_names),
                several(&other.short_names),
            ),
            (
                "categories",
                several(&self.categories),
                several(&other.categories),
            ),
        ];
        let differing = all.into_iter().filter(|(_, first, second)| first != second);
        differing
            .map(|(what, first, second)| Difference {
                what,
                first,
                second,
            })
            .collect()
    }
}

impl ResourceDef {
    /// The names of the kind.
    pub fn names(&self) -> KindNames<'_> {
        KindNames {
            kind: &self.kind,
            list_kind: &self.list_kind,
            plural: &self.plural,
            singular: &self.singular,
            short_names: self.short_names.iter().map(SmolStr::as_str).collect(),
            categories: self.categories.iter().map(SmolStr::as_str).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing() -> KindNames<'static> {
        KindNames {
            kind: "Thing",
            list_kind: "ThingList",
            plural: "things",
            singular: "thing",
            short_names: vec!["th", "t"],
            categories: vec![],
        }
    }

    #[test]
    fn a_group_has_each_name_once() {
        let other = |short_names: &[&'static str]| KindNames {
            kind: "Other",
            list_kind: "OtherList",
            plural: "others",
            singular: "other",
            short_names: short_names.to_vec(),
            categories: vec!["all"],
        };
        assert_eq!(other(&["o"]).shared(&thing()), [""; 0]);
        assert_eq!(other(&["t", "o", "thing"]).shared(&thing()), ["t", "thing"]);
        let list = KindNames {
            kind: "ThingList",
            ..other(&[])
        };
        assert_eq!(list.shared(&thing()), ["ThingList"]);
        let singular = KindNames {
            singular: "th",
            ..other(&[])
        };
        assert_eq!(thing().shared(&singular), ["th"]);
    }

    #[test]
    fn versions_have_the_same_names() {
        let other = KindNames {
            short_names: vec!["t", "th"],
            ..thing()
        };
        assert_eq!(thing().differences(&other), []);
        let other = KindNames {
            singular: "thingy",
            short_names: vec![],
            ..thing()
        };
        let difference = |what, first: &str, second: &str| Difference {
            what,
            first: first.to_owned(),
            second: second.to_owned(),
        };
        assert_eq!(
            thing().differences(&other),
            [
                difference("singular", "`thing`", "`thingy`"),
                difference("short names", "`t`, `th`", "none")
            ]
        );
    }
}
