//! The generator's model of a package: plain data, sorted, without tokens or locations. `apiloom model` prints it.

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
    /// Served verbs, as RBAC spells them.
    pub verbs: Vec<String>,
    /// The subresources with a verb, by name.
    pub subresources: Vec<Subresource>,
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
