//! The view of `clientset.rs`: clients and informers of all kinds, by group and version.

use apiloom_model::names;
use serde::Serialize;

use super::{api_version, first_label, group_word, snake_case};
use crate::model::{Group, Kind, Model};

/// `clientset.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct ClientsetView {
    pub(crate) package: String,
    pub(crate) versions: Vec<VersionClients>,
}

/// The clients of one group and version.
#[derive(Debug, Serialize)]
pub(crate) struct VersionClients {
    /// `wardle.example.com/v1alpha1`.
    pub(crate) api_version: String,
    /// The method: `wardle_v1alpha1`.
    pub(crate) method: String,
    /// `WardleV1alpha1`.
    pub(crate) clients: String,
    /// `WardleV1alpha1Informers`.
    pub(crate) informers: String,
    pub(crate) kinds: Vec<KindClients>,
}

/// The clients and the informer of a kind.
#[derive(Debug, Serialize)]
pub(crate) struct KindClients {
    /// The method of the client in a namespace or in the cluster, and of the informer.
    pub(crate) method: String,
    pub(crate) plural: String,
    /// What there is, in the words of `clientset!`: `namespaced, all(all_flunders), informer`.
    pub(crate) forms: String,
    pub(crate) rust_type: String,
}

impl ClientsetView {
    pub(crate) fn new(model: &Model) -> ClientsetView {
        let versions = versions_with_kinds(model)
            .map(|(group, version, kinds)| VersionClients::new(model, group, version, &kinds));
        ClientsetView {
            package: model.package.clone(),
            versions: versions.collect(),
        }
    }
}

/// The versions of all groups with the kinds that have clients; those without any are left out.
pub(super) fn versions_with_kinds(
    model: &Model,
) -> impl Iterator<Item = (&Group, &str, Vec<&Kind>)> {
    let versions = model.groups.iter().flat_map(|group| {
        let versions = group.versions.iter();
        versions.map(move |version| (group, version))
    });
    let with_kinds = versions.map(|(group, version)| {
        let has_client = |kind: &&Kind| kind.has_client && kind.served && !kind.verbs.is_empty();
        let kinds = group.kinds.iter();
        let kinds = kinds.filter(|kind| kind.version == *version);
        (
            group,
            &**version,
            kinds.filter(has_client).collect::<Vec<_>>(),
        )
    });
    with_kinds.filter(|(_, _, kinds)| !kinds.is_empty())
}

/// The method for a version of a group in a package without other groups.
pub(crate) fn method_of_only_group(group: &str, version: &str) -> String {
    format!("{}_{}", identifier(first_label(group)), snake_case(version))
}

/// The name of a group and version in methods: `wardle_v1alpha1`.
pub(super) fn version_method(model: &Model, group: &Group, version: &str) -> String {
    format!("{}_{}", group_name(model, group), snake_case(version))
}

impl VersionClients {
    fn new(model: &Model, group: &Group, version: &str, kinds: &[&Kind]) -> VersionClients {
        let method = version_method(model, group, version);
        let clients = camel_case(&method);
        VersionClients {
            api_version: api_version(group, version),
            informers: format!("{clients}Informers"),
            clients,
            method,
            kinds: kinds.iter().map(|kind| KindClients::new(kind)).collect(),
        }
    }
}

/// The group's name in methods: its first label, or, if another group has that too, all of it.
fn group_name(model: &Model, group: &Group) -> String {
    let label = |group: &Group| first_label(group_word(group)).to_owned();
    let own = label(group);
    let mut others = model.groups.iter().filter(|other| other.name != group.name);
    let is_shared = others.any(|other| label(other) == own);
    let name = if is_shared {
        group_word(group).to_owned()
    } else {
        own
    };
    identifier(&name)
}

/// An identifier of a DNS name.
fn identifier(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("group_{name}")
    } else {
        name
    }
}

/// `WardleV1alpha1` of `wardle_v1alpha1`.
pub(super) fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect()
}

/// The name of a method for a resource.
pub(crate) fn method_of_resource(plural: &str) -> String {
    names::identifier(&plural.replace('-', "_"))
}

impl KindClients {
    fn new(kind: &Kind) -> KindClients {
        let has = |verb: &str| !kind.no_client_verbs && kind.verbs.iter().any(|own| own == verb);
        let scope = if kind.namespaced {
            "namespaced"
        } else {
            "cluster"
        };
        let mut forms = vec![scope.to_owned()];
        if kind.namespaced && (has("list") || has("watch")) {
            forms.push(format!("all(all_{})", kind.plural.replace('-', "_")));
        }
        if has("list") && has("watch") {
            forms.push("informer".to_owned());
        }
        KindClients {
            method: method_of_resource(&kind.plural),
            plural: kind.plural.clone(),
            forms: forms.join(", "),
            rust_type: kind.rust_type.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(plural: &str, namespaced: bool, verbs: &[&str]) -> Kind {
        Kind {
            kind: "Thing".to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            rust_type: "crate::Thing".to_owned(),
            conditions: Vec::new(),
            namespaced,
            has_client: true,
            no_client_verbs: false,
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            subresources: Vec::new(),
            client: crate::model::ClientParts::default(),
            served: true,
            storage: true,
            hub: "v1".to_owned(),
            fields: Vec::new(),
        }
    }

    fn model(groups: &[(&str, Vec<Kind>)]) -> Model {
        let groups = groups.iter().map(|(name, kinds)| Group {
            name: (*name).to_owned(),
            rust_const: "crate::GROUP".to_owned(),
            versions: vec!["v1".to_owned()],
            release: None,
            kinds: kinds.clone(),
        });
        Model {
            package: "p".to_owned(),
            crate_name: "p".to_owned(),
            configure: false,
            groups: groups.collect(),
            configurations: Vec::new(),
        }
    }

    #[test]
    fn groups_are_called_by_their_first_label_unless_two_have_it() {
        let things = || vec![kind("things", true, &["get"])];
        let check = |groups: &[&str], expected: &[(&str, &str)]| {
            let groups: Vec<_> = groups.iter().map(|group| (*group, things())).collect();
            let view = ClientsetView::new(&model(&groups));
            let names = view
                .versions
                .iter()
                .map(|version| (&*version.method, &*version.clients));
            assert_eq!(names.collect::<Vec<_>>(), expected);
        };
        check(
            &["", "apps.x.com"],
            &[("core_v1", "CoreV1"), ("apps_v1", "AppsV1")],
        );
        check(
            &["a.x.com", "a.y.com", "3d-print.x.com"],
            &[
                ("a_x_com_v1", "AXComV1"),
                ("a_y_com_v1", "AYComV1"),
                ("group_3d_print_v1", "Group3dPrintV1"),
            ],
        );
    }

    #[test]
    fn a_kind_has_the_methods_that_its_verbs_and_scope_allow() {
        let silent = Kind {
            has_client: false,
            ..kind("silents", true, &["get", "list", "watch"])
        };
        let view = ClientsetView::new(&model(&[(
            "x.com",
            vec![
                kind("things", true, &["get", "list", "watch"]),
                kind("reviews", true, &["create"]),
                kind("use", false, &["list"]),
                kind("odd-ones", false, &["list", "watch"]),
                Kind {
                    no_client_verbs: true,
                    ..kind("ledgers", true, &["get", "list", "watch"])
                },
                silent,
            ],
        )]));
        let [version] = &view.versions[..] else {
            panic!("{view:?}");
        };
        let kinds = version.kinds.iter();
        let kinds: Vec<(&str, &str)> = kinds.map(|kind| (&*kind.method, &*kind.forms)).collect();
        assert_eq!(
            kinds,
            [
                ("things", "namespaced, all(all_things), informer"),
                ("reviews", "namespaced"),
                ("r#use", "cluster"),
                ("odd_ones", "cluster, informer"),
                ("ledgers", "namespaced"),
            ]
        );
        let empty = ClientsetView::new(&model(&[("x.com", vec![kind("things", true, &[])])]));
        assert!(empty.versions.is_empty());
    }
}
