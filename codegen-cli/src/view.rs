//! The views: the data of each template, as final text with every name and condition decided.

mod apply;
mod clientset;
mod fake;
mod kube;
mod methods;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use apiloom_meta::kind::{ProtoFile, Verb};
use apiloom_model::names::identifier;

pub(crate) use self::apply::ApplyView;
pub(crate) use self::clientset::{ClientsetView, method_of_only_group, method_of_resource};
pub(crate) use self::fake::FakeView;
pub(crate) use self::kube::KubeView;
pub(crate) use self::methods::{IndexesView, MethodsView};
use crate::model::{Group, Model, Subresource};
use crate::settings::Settings;

/// The usual priority of aggregated groups; the same as for CustomResourceDefinitions.
const GROUP_PRIORITY: u32 = 1000;
/// The step between the priorities of two versions, which leaves room for versions added by hand.
const VERSION_PRIORITY_STEP: usize = 10;

/// `registry.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct RegistryView {
    pub(crate) package: String,
    pub(crate) stores: Vec<StoreView>,
}

/// One kind of one version.
#[derive(Debug, Serialize)]
pub(crate) struct StoreView {
    pub(crate) function: String,
    pub(crate) rust_type: String,
    pub(crate) doc: String,
}

/// `generated/install.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct InstallView {
    pub(crate) package: String,
    pub(crate) groups: Vec<GroupView>,
}

/// A group and its stores.
#[derive(Debug, Serialize)]
pub(crate) struct GroupView {
    /// The path of the constant that `group!` defines.
    pub(crate) constant: String,
    pub(crate) stores: Vec<String>,
}

/// `mod.rs` of a package without a server.
#[derive(Debug, Serialize)]
pub(crate) struct ListView {
    pub(crate) package: String,
    /// The path of the crate below.
    pub(crate) path: String,
    pub(crate) types: Vec<TypeView>,
}

/// One type of the list.
#[derive(Debug, Serialize)]
pub(crate) struct TypeView {
    /// The `cfg` attributes of the type.
    pub(crate) conditions: Vec<String>,
    pub(crate) rust_type: String,
}

/// `mod.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct ModView {
    pub(crate) package: String,
    /// Whether there are clients.
    pub(crate) clients: bool,
    /// Whether there are types for kube-rs.
    pub(crate) kube: bool,
    /// Whether there are clients with a server of their own.
    pub(crate) fake: bool,
    /// Whether clients have more methods than the verbs.
    pub(crate) methods: bool,
    /// Whether there are indexes.
    pub(crate) indexes: bool,
}

/// `mod.rs` of a package with the clients of another one.
#[derive(Debug, Serialize)]
pub(crate) struct ClientModView {
    pub(crate) package: String,
    /// Whether there are clients with a server of their own.
    pub(crate) fake: bool,
    /// Whether there are types for kube-rs.
    pub(crate) kube: bool,
    /// Whether clients have more methods than the verbs.
    pub(crate) methods: bool,
    /// Whether there are indexes.
    pub(crate) indexes: bool,
}

/// `main.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct MainView {
    pub(crate) package: String,
    /// A Rust string literal.
    pub(crate) server: String,
    pub(crate) contract: u32,
    /// Paths of the functions that are applied to the builder: `install` and, if there is one, `configure`.
    pub(crate) steps: String,
}

/// A `.proto` file.
#[derive(Debug, Serialize)]
pub(crate) struct ProtoView {
    pub(crate) package: String,
    /// Lines after an empty one; nothing if there are none.
    pub(crate) imports: Vec<String>,
    pub(crate) messages: Vec<MessageView>,
}

/// A message of it.
#[derive(Debug, Serialize)]
pub(crate) struct MessageView {
    pub(crate) name: String,
    /// Lines, with their comment marks.
    pub(crate) comment: Vec<String>,
    pub(crate) fields: Vec<MessageFieldView>,
    /// What follows the word `reserved`: numbers, and names.
    pub(crate) reserved: Vec<String>,
}

/// A field of a message.
#[derive(Debug, Serialize)]
pub(crate) struct MessageFieldView {
    pub(crate) comment: Vec<String>,
    /// `optional string name = 1`.
    pub(crate) declaration: String,
}

/// `rbac.yaml`.
#[derive(Debug, Serialize)]
pub(crate) struct RbacView {
    pub(crate) roles: Vec<RoleView>,
}

/// A ClusterRole that is aggregated into one of the default roles.
#[derive(Debug, Serialize)]
pub(crate) struct RoleView {
    pub(crate) name: String,
    pub(crate) aggregate_to: &'static str,
    pub(crate) rules: Vec<RuleView>,
}

/// A rule of a role; lists are the contents of YAML flow sequences.
#[derive(Debug, Serialize)]
pub(crate) struct RuleView {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) verbs: String,
}

/// `apiservice.yaml`.
#[derive(Debug, Serialize)]
pub(crate) struct ApiServiceView {
    pub(crate) services: Vec<VersionView>,
}

/// One version of a group, as in an APIService.
#[derive(Debug, Serialize)]
pub(crate) struct VersionView {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: u32,
    pub(crate) version_priority: usize,
    pub(crate) service: String,
    pub(crate) namespace: String,
}

impl RegistryView {
    pub(crate) fn new(model: &Model) -> RegistryView {
        let mut functions = store_functions(model).into_iter();
        let kinds = model
            .groups
            .iter()
            .flat_map(|group| group.kinds.iter().map(move |kind| (group, kind)));
        let stores = kinds
            .zip(functions.by_ref().flatten())
            .map(|((group, kind), function)| StoreView {
                function,
                rust_type: kind.rust_type.clone(),
                doc: format!(
                    "Serves `{}` of `{}`.",
                    kind.plural,
                    api_version(group, &kind.version)
                ),
            });
        RegistryView {
            package: model.package.clone(),
            stores: stores.collect(),
        }
    }
}

impl InstallView {
    pub(crate) fn new(model: &Model) -> InstallView {
        let groups = model.groups.iter().zip(store_functions(model));
        let groups = groups.map(|(group, stores)| GroupView {
            constant: group.rust_const.clone(),
            stores,
        });
        InstallView {
            package: model.package.clone(),
            groups: groups.collect(),
        }
    }
}

impl ListView {
    pub(crate) fn new(model: &Model, path: &str) -> ListView {
        let kinds = model.groups.iter().flat_map(|group| &group.kinds);
        ListView {
            package: model.package.clone(),
            path: path.to_owned(),
            types: kinds
                .map(|kind| TypeView {
                    conditions: kind.conditions.clone(),
                    rust_type: kind.rust_type.clone(),
                })
                .collect(),
        }
    }
}

impl ModView {
    /// With a module for each of the files, which are in the same folder.
    pub(crate) fn new<T>(model: &Model, files: &BTreeMap<String, T>) -> ModView {
        let has = |name: &str| files.contains_key(&format!("src/generated/{name}.rs"));
        ModView {
            package: model.package.clone(),
            clients: has("clientset"),
            fake: has("fake"),
            kube: has("kube"),
            methods: has("methods"),
            indexes: has("index"),
        }
    }
}

impl ClientModView {
    /// With a module for each of the files, which are in the same folder.
    pub(crate) fn new<T>(model: &Model, files: &BTreeMap<String, T>) -> ClientModView {
        let ModView {
            package,
            fake,
            kube,
            methods,
            indexes,
            ..
        } = ModView::new(model, files);
        ClientModView {
            package,
            fake,
            kube,
            methods,
            indexes,
        }
    }
}

impl MainView {
    pub(crate) fn new(model: &Model, settings: &Settings) -> MainView {
        let krate = identifier(&model.crate_name);
        let install = format!("::{krate}::generated::install");
        MainView {
            package: model.package.clone(),
            server: literal(&settings.server),
            contract: settings.contract,
            steps: if model.configure {
                format!("{install}, ::{krate}::configure")
            } else {
                install
            },
        }
    }
}

impl ProtoView {
    pub(crate) fn new(file: &ProtoFile) -> ProtoView {
        let comment = |lines: &[String]| {
            // A comment ends with its line.
            let lines = lines.iter().flat_map(|text| text.split(['\n', '\r']));
            let mark = |line: &str| format!("// {line}").trim_end().to_owned();
            lines.map(mark).collect()
        };
        let messages = file.messages.iter().map(|(name, message)| {
            let fields = message
                .fields
                .iter()
                .map(|(number, field)| MessageFieldView {
                    comment: comment(&field.description),
                    declaration: format!("{} {} = {number}", field.field_type, field.name),
                });
            let numbers: Vec<String> = message.reserved.iter().map(u32::to_string).collect();
            let names = message.reserved_names.iter();
            let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
            let reserved = [numbers.join(", "), names.join(", ")];
            MessageView {
                name: name.clone(),
                comment: comment(&message.description),
                fields: fields.collect(),
                reserved: reserved
                    .into_iter()
                    .filter(|list| !list.is_empty())
                    .collect(),
            }
        });
        let mut imports: Vec<String> = file
            .imports
            .iter()
            .map(|path| format!("import \"{path}\";"))
            .collect();
        if !imports.is_empty() {
            imports.insert(0, String::new());
        }
        ProtoView {
            package: file.package.clone(),
            imports,
            messages: messages.collect(),
        }
    }
}

impl RbacView {
    pub(crate) fn new(model: &Model) -> RbacView {
        let mut roles = Vec::new();
        for group in &model.groups {
            // A named group belongs to one package; several packages of a cluster may have kinds of the core group.
            let prefix = if group.name.is_empty() {
                format!("{}-core", model.package)
            } else {
                group.name.clone()
            };
            for (aggregate_to, verbs) in [
                ("view", view_verbs as Verbs),
                ("edit", edit_verbs),
                ("admin", admin_verbs),
            ] {
                let rules = rules(group, verbs);
                if !rules.is_empty() {
                    let name = scalar(&format!("{prefix}-{aggregate_to}"));
                    roles.push(RoleView {
                        name,
                        aggregate_to,
                        rules,
                    });
                }
            }
        }
        RbacView { roles }
    }
}

impl ApiServiceView {
    pub(crate) fn new(model: &Model, settings: &Settings) -> ApiServiceView {
        // The core group is never aggregated.
        let groups = model.groups.iter().filter(|group| !group.name.is_empty());
        let services = groups.flat_map(|group| {
            let served = |version: &&String| {
                group
                    .kinds
                    .iter()
                    .any(|kind| kind.served && kind.version == **version)
            };
            let versions: Vec<&String> = group.versions.iter().filter(served).collect();
            let count = versions.len();
            versions
                .into_iter()
                .enumerate()
                .map(move |(index, version)| VersionView {
                    name: scalar(&format!("{version}.{}", group.name)),
                    group: scalar(&group.name),
                    version: scalar(version),
                    group_priority: GROUP_PRIORITY,
                    version_priority: (count - index) * VERSION_PRIORITY_STEP,
                    service: scalar(&settings.server),
                    namespace: scalar(&model.package),
                })
        });
        ApiServiceView {
            services: services.collect(),
        }
    }
}

/// The verbs of a role: of all verbs of a kind, or of one of its subresources.
type Verbs = for<'a> fn(verbs: &'a [String], sub: Option<&Subresource>) -> Vec<&'a str>;

fn view_verbs<'a>(verbs: &'a [String], sub: Option<&Subresource>) -> Vec<&'a str> {
    let may_read = sub.is_none_or(|sub| !sub.is_interactive);
    filtered(verbs, |verb| may_read && is_read(verb))
}

fn edit_verbs<'a>(verbs: &'a [String], sub: Option<&Subresource>) -> Vec<&'a str> {
    let may_write = sub.is_none_or(|sub| sub.for_editors);
    let is_interactive = sub.is_some_and(|sub| sub.is_interactive);
    filtered(verbs, |verb| {
        may_write && (is_interactive || !is_read(verb))
    })
}

/// Controllers write most subresources, the status first of all, so only admins get their verbs.
fn admin_verbs<'a>(verbs: &'a [String], sub: Option<&Subresource>) -> Vec<&'a str> {
    let may_write = sub.is_some_and(|sub| !sub.for_editors);
    filtered(verbs, |verb| may_write && !is_read(verb))
}

/// Whether a verb, as RBAC spells it, changes nothing.
fn is_read(verb: &str) -> bool {
    let known = Verb::ALL.into_iter().find(|known| known.as_str() == verb);
    known.is_some_and(Verb::is_read)
}

fn filtered(verbs: &[String], is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let verbs = verbs.iter().map(String::as_str);
    verbs.filter(|verb| is_wanted(verb)).collect()
}

/// One rule per resource, not per version: RBAC has no versions.
fn rules(group: &Group, of_role: Verbs) -> Vec<RuleView> {
    let mut resources: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for kind in group.kinds.iter().filter(|kind| kind.served) {
        let own = (kind.plural.clone(), of_role(&kind.verbs, None));
        let below = kind.subresources.iter().map(|sub| {
            let path = format!("{}/{}", kind.plural, sub.name);
            (path, of_role(&sub.verbs, Some(sub)))
        });
        for (resource, verbs) in std::iter::once(own).chain(below) {
            resources.entry(resource).or_default().extend(verbs);
        }
    }
    resources
        .into_iter()
        .filter(|(_, verbs)| !verbs.is_empty())
        .map(|(resource, verbs)| RuleView {
            group: group.name.clone(),
            resource,
            verbs: verbs.into_iter().collect::<Vec<_>>().join(", "),
        })
        .collect()
}

fn api_version(group: &Group, version: &str) -> String {
    if group.name.is_empty() {
        version.to_owned()
    } else {
        format!("{}/{version}", group.name)
    }
}

/// The functions of each group's kinds: `flunder_v1alpha1`; with several groups `wardle_flunder_v1alpha1`.
fn store_functions(model: &Model) -> Vec<Vec<String>> {
    let mut taken = BTreeSet::new();
    let mut unique = |name: String| {
        // `HTTPRoute` and `HttpRoute` are two kinds with the same name in snake case.
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| taken.insert(name.clone()));
        free.unwrap_or(name)
    };
    let several = model.groups.len() > 1;
    let of_group = |group: &Group| {
        let prefix = if several {
            format!("{}_", snake_case(first_label(group_word(group))))
        } else {
            String::new()
        };
        let names = group
            .kinds
            .iter()
            .map(|kind| (snake_case(&kind.kind), snake_case(&kind.version)));
        names
            .map(|(kind, version)| unique(format!("{prefix}{kind}_{version}")))
            .collect()
    };
    model.groups.iter().map(of_group).collect()
}

/// The first label of a group: `wardle` of `wardle.example.com`.
fn first_label(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The group's name, or `core`.
fn group_word(group: &Group) -> &str {
    if group.name.is_empty() {
        "core"
    } else {
        &group.name
    }
}

/// Lower case with `_` before each word; other characters become `_`.
pub(crate) fn snake_case(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (index, character) in characters.iter().enumerate() {
        if character.is_ascii_uppercase() {
            let after_lower = index > 0 && !characters[index - 1].is_ascii_uppercase();
            let before_lower = characters
                .get(index + 1)
                .is_some_and(char::is_ascii_lowercase);
            if index > 0 && characters[index - 1] != '_' && (after_lower || before_lower) {
                text.push('_');
            }
            text.push(character.to_ascii_lowercase());
        } else {
            text.push(if character.is_ascii_alphanumeric() {
                *character
            } else {
                '_'
            });
        }
    }
    text
}

/// Words that YAML does not read as strings.
const YAML_WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// A YAML scalar that is read as this text.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte))
        && !YAML_WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// A Rust string literal.
fn literal(text: &str) -> String {
    proc_macro2::Literal::string(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Subresource};

    #[test]
    fn kinds_become_snake_case() {
        let check = |kind: &str, expected: &str| assert_eq!(snake_case(kind), expected);
        check("Flunder", "flunder");
        check("HTTPRoute", "http_route");
        check("ObjectMetaV2", "object_meta_v2");
        check("Ipv4Address", "ipv4_address");
        check("my-group", "my_group");
    }

    #[test]
    fn scalars_are_quoted_where_yaml_would_read_something_else() {
        let check = |text: &str, expected: &str| assert_eq!(scalar(text), expected);
        check("wardle.example.com", "wardle.example.com");
        check("v1", "v1");
        check("on", "\"on\"");
        check("1.5", "\"1.5\"");
        check("", "\"\"");
        check("a: b", "\"a: b\"");
    }

    fn kind(name: &str) -> Kind {
        Kind {
            kind: name.to_owned(),
            version: "v1".to_owned(),
            plural: String::new(),
            rust_type: String::new(),
            conditions: Vec::new(),
            namespaced: true,
            has_client: true,
            no_client_verbs: false,
            verbs: Vec::new(),
            subresources: Vec::new(),
            client: crate::model::ClientParts::default(),
            served: true,
            storage: true,
            hub: String::new(),
            fields: Vec::new(),
        }
    }

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn roles_hold_the_verbs_of_every_subresource() {
        let subresource = |name: &str, verbs: &[&str]| Subresource {
            name: name.to_owned(),
            verbs: texts(verbs),
            for_editors: ["console", "scale"].contains(&name),
            is_interactive: name == "console",
        };
        let kind = Kind {
            plural: "things".to_owned(),
            verbs: texts(&["get", "list", "update"]),
            subresources: vec![
                subresource("console", &["create", "get"]),
                subresource("finalize", &["update"]),
                subresource("scale", &["get", "update"]),
                subresource("status", &["get", "update"]),
            ],
            ..kind("Thing")
        };
        let group = Group {
            name: "example.com".to_owned(),
            rust_const: String::new(),
            versions: Vec::new(),
            release: None,
            kinds: vec![kind],
        };
        let check = |of_role: Verbs, expected: &[(&str, &str)]| {
            let rules = rules(&group, of_role).into_iter();
            let rules: Vec<_> = rules.map(|rule| (rule.resource, rule.verbs)).collect();
            let rules: Vec<(&str, &str)> = rules.iter().map(|(a, b)| (&**a, &**b)).collect();
            assert_eq!(rules, expected);
        };
        check(
            view_verbs,
            &[
                ("things", "get, list"),
                ("things/scale", "get"),
                ("things/status", "get"),
            ],
        );
        check(
            edit_verbs,
            &[
                ("things", "update"),
                ("things/console", "create, get"),
                ("things/scale", "update"),
            ],
        );
        check(
            admin_verbs,
            &[("things/finalize", "update"), ("things/status", "update")],
        );
    }

    // Packages with kinds of the core group are installed side by side.
    #[test]
    fn roles_of_the_core_group_are_named_by_the_package() {
        let group = |name: &str| Group {
            name: name.to_owned(),
            rust_const: String::new(),
            versions: Vec::new(),
            release: None,
            kinds: vec![Kind {
                verbs: vec!["get".to_owned()],
                ..kind("Thing")
            }],
        };
        let model = Model {
            configurations: Vec::new(),
            package: "shop".to_owned(),
            crate_name: String::new(),
            configure: false,
            groups: vec![group(""), group("example.com")],
        };
        let names: Vec<String> = RbacView::new(&model)
            .roles
            .into_iter()
            .map(|role| role.name)
            .collect();
        assert_eq!(names, ["shop-core-view", "example.com-view"]);
    }

    fn check_functions(groups: &[(&str, &[&str])], expected: &[&[&str]]) {
        let group = |(name, kinds): &(&str, &[&str])| Group {
            name: (*name).to_owned(),
            rust_const: String::new(),
            versions: Vec::new(),
            release: None,
            kinds: kinds.iter().map(|name| kind(name)).collect(),
        };
        let model = Model {
            configurations: Vec::new(),
            package: String::new(),
            crate_name: String::new(),
            configure: false,
            groups: groups.iter().map(group).collect(),
        };
        assert_eq!(store_functions(&model), expected);
    }

    #[test]
    fn functions_of_one_group_name_no_group() {
        check_functions(&[("a.example.com", &["Thing"])], &[&["thing_v1"]]);
    }

    #[test]
    fn functions_of_several_groups_do_not_collide() {
        check_functions(
            &[
                ("a.x.com", &["Thing", "THing"]),
                ("a.y.com", &["Thing"]),
                ("", &["Thing"]),
            ],
            &[
                &["a_thing_v1", "a_t_hing_v1"],
                &["a_thing_v1_2"],
                &["core_thing_v1"],
            ],
        );
    }
}
