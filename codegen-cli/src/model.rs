//! The generator's model of a package: plain data, sorted, without tokens or locations. `apiloom model` prints it.

use apiloom_model::names::identifier;
use serde::Serialize;

/// A package with its groups and kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The package's name.
    pub package: String,
    /// The library's name as a path segment.
    pub crate_name: String,
    /// Whether `lib.rs` has `pub fn configure`.
    pub configure: bool,
    /// Declared groups, by name.
    pub groups: Vec<Group>,
    /// Builders of apply configurations, by group and version; none without clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<Configurations>,
}

/// The builders of the kinds of one group and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Configurations {
    /// The name of the group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// Kinds first, each by name.
    pub builders: Vec<Builder>,
}

/// A builder of apply configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Builder {
    /// Its Rust name.
    pub name: String,
    /// Object, struct or union.
    pub role: BuilderRole,
    /// Its fields, in declared order.
    pub fields: Vec<BuilderField>,
}

/// The role of a builder: object, struct or union.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum BuilderRole {
    /// An object.
    Kind {
        /// Its Rust type.
        rust_type: String,
        /// Whether it is in a namespace.
        namespaced: bool,
        /// Whether it has the subresource `status`.
        has_status: bool,
    },
    /// A struct inside of objects.
    Part,
    /// A struct of which one field is set.
    Union,
}

/// A field of a builder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuilderField {
    /// The `cfg` attributes of the field, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// The Rust name of the setter.
    pub name: String,
    /// The name in JSON.
    pub json_name: String,
    /// The form of its value, as `configurations!` of the runtime reads it: `part(FlunderSpec, edit_spec)`.
    pub form: String,
}

impl Model {
    /// The same model with the paths of types as another crate names them.
    pub(crate) fn named_by_another_crate(&self) -> Model {
        let mut model = self.clone();
        let krate = identifier(&self.crate_name);
        let kinds = model.groups.iter_mut().flat_map(|group| &mut group.kinds);
        for kind in kinds {
            let methods = kind.client.methods.iter_mut();
            let of_methods = methods.flat_map(|method| {
                let input = method.input.iter_mut();
                input.chain([&mut method.output])
            });
            let keys = kind.client.indexes.iter_mut().map(|index| &mut index.key);
            for path in of_methods.chain(keys).chain([&mut kind.rust_type]) {
                *path = from_another_crate(path, &krate);
            }
        }
        let modules = model.configurations.iter_mut();
        for builder in modules.flat_map(|module| &mut module.builders) {
            if let BuilderRole::Kind { rust_type, .. } = &mut builder.role {
                *rust_type = from_another_crate(rust_type, &krate);
            }
            for field in &mut builder.fields {
                field.form = from_another_crate(&field.form, &krate);
            }
        }
        model
    }
}

/// Replaces `crate::` at the begin of paths.
fn from_another_crate(types: &str, krate: &str) -> String {
    const OWN: &str = "crate::";
    let mut out = String::new();
    let mut rest = types;
    while let Some(at) = rest.find(OWN) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let is_inside = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '#');
        if is_inside {
            out.push_str(OWN);
        } else {
            out.push_str(&format!("::{krate}::"));
        }
        rest = &after[OWN.len()..];
    }
    out + rest
}

/// A declared group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The name of the group; empty for core.
    pub name: String,
    /// The path of the constant that `group!` defines: `crate::GROUP`.
    pub rust_const: String,
    /// The versions, preferred first.
    pub versions: Vec<String>,
    /// The release to which lifecycles are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The kinds in every version, by kind, then by preference of the version.
    pub kinds: Vec<Kind>,
}

/// A release: `1.10` comes after `1.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Release {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// A kind of one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// The kind.
    pub kind: String,
    /// The version.
    pub version: String,
    /// The resource.
    pub plural: String,
    /// The Rust type: `crate::v1alpha1::Flunder`.
    pub rust_type: String,
    /// The `cfg` attributes on which the type depends, as they are written.
    pub conditions: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether clients and informers are generated for it.
    pub has_client: bool,
    /// Whether its client has only methods of its own, and not the verbs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_client_verbs: bool,
    /// Served verbs, as RBAC spells them.
    pub verbs: Vec<String>,
    /// The subresources with a verb, by name.
    pub subresources: Vec<Subresource>,
    /// What its client has besides the verbs.
    #[serde(flatten)]
    pub client: ClientParts,
    /// Whether the version is served, without other settings of the server.
    pub served: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// The version that is this kind's hub; for the hub its own version.
    pub hub: String,
    /// The root's fields, by JSON name.
    pub fields: Vec<String>,
}

/// A subresource of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// Served verbs, as RBAC spells them.
    pub verbs: Vec<String>,
    /// Whether editors may write it, and not only admins: it is made for users, not for controllers.
    #[serde(rename = "forEditors", skip_serializing_if = "std::ops::Not::not")]
    pub for_editors: bool,
    /// Whether a get can do more than read, so that viewers may not send it.
    #[serde(rename = "isInteractive", skip_serializing_if = "std::ops::Not::not")]
    pub is_interactive: bool,
}

/// What the client of a kind has besides the verbs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientParts {
    /// Methods, in declared order; those of subresources follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Method>,
    /// Subresources that open streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Indexes of local copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Index>,
}

/// A method of a client. Types are paths that are valid anywhere in the crate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Method {
    /// The function.
    pub name: String,
    /// The request: `get`, `list`, `create`, `update`, `patch` or `apply`.
    pub verb: String,
    /// The subresource that it is sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// The type of the body, of a request that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The type of the response, or of the items of a list.
    pub output: String,
}

/// A subresource that opens streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// The function.
    pub name: String,
    /// The subresource.
    pub subresource: String,
    /// Its verbs, as RBAC spells them.
    pub verbs: Vec<String>,
}

/// An index of local copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Index {
    /// The name: `node`.
    pub name: String,
    /// The field: `spec.node`.
    pub field: String,
    /// The type of the keys.
    pub key: String,
    /// The expression of the field's value, of an `object`.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::from_another_crate;

    #[test]
    fn only_the_begin_of_a_path_is_replaced() {
        let check = |types: &str, expected: &str| {
            assert_eq!(from_another_crate(types, "shop"), expected);
        };
        check("crate::v1::Order", "::shop::v1::Order");
        check("::my_crate::A", "::my_crate::A");
        check("X<crate::A, crate::b::C>", "X<::shop::A, ::shop::b::C>");
    }
}
