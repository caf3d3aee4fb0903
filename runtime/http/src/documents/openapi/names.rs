//! Names in OpenAPI documents: components, operations and tags.

use apiloom_meta::ResourceDef;
use serde_json::{Value, json};

use crate::documents::references::SCHEMAS;

/// Prefix of the components of `meta/v1`, which clients know.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Component of an object's metadata.
pub(super) const OBJECT_META: &str =
    "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The same in OpenAPI v2.
pub(super) const OBJECT_META_V2: &str =
    "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The component of a kind: `com.example.wardle.v1alpha1.Flunder`, with the group's labels reversed. Groups of one label
/// are Kubernetes' own.
pub(super) fn component(group: &str, version: &str, kind: &str) -> String {
    if group.is_empty() {
        return format!("io.k8s.api.core.{version}.{kind}");
    }
    if !group.contains('.') {
        return format!("io.k8s.api.{group}.{version}.{kind}");
    }
    let backwards: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", backwards.join("."))
}

/// The component of a type of `meta/v1`.
pub(super) fn meta(kind: &str) -> String {
    format!("{META}{kind}")
}

/// The type of `meta/v1` for a component name; `None` for other components.
pub(super) fn meta_type(component: &str) -> Option<&str> {
    component.strip_prefix(META)
}

/// A reference to a component.
pub(super) fn reference(component: &str) -> Value {
    json!({ "$ref": format!("{SCHEMAS}{component}") })
}

/// A reference with its own description, which OpenAPI 3.0 does not allow beside `$ref`.
pub(super) fn described(component: &str, description: &str) -> Value {
    json!({ "allOf": [reference(component)], "description": description })
}

/// `x-kubernetes-group-version-kind` of one kind.
pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

/// The part of an operation id between the verb and the kind: `WardleExampleComV1alpha1`, `CoreV1`.
pub(super) fn operation_infix(group: &str, version: &str) -> String {
    words(group)
        .into_iter()
        .chain([version])
        .map(capital)
        .collect()
}

/// The tag of a version's operations: `wardleExampleCom_v1alpha1`, `core_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    let mut words = words(group).into_iter();
    let first = words.next().unwrap_or_default().to_owned();
    format!(
        "{first}{}_{version}",
        words.map(capital).collect::<String>()
    )
}

/// Base path of the resources of a version.
pub(super) fn base_path(def: &ResourceDef) -> String {
    match def.group.as_str() {
        "" => format!("/api/{}", def.version),
        group => format!("/apis/{group}/{}", def.version),
    }
}

/// The words of a group's name, without Kubernetes' own domain.
fn words(group: &str) -> Vec<&str> {
    let group = if group.is_empty() {
        "core"
    } else {
        group.strip_suffix(".k8s.io").unwrap_or(group)
    };
    group.split(['.', '-']).collect()
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_group_and_the_version() {
        let check = |group, version, expected: [&str; 3]| {
            assert_eq!(
                [
                    component(group, version, "X"),
                    operation_infix(group, version),
                    tag(group, version)
                ],
                expected
            );
        };
        check("", "v1", ["io.k8s.api.core.v1.X", "CoreV1", "core_v1"]);
        check("apps", "v1", ["io.k8s.api.apps.v1.X", "AppsV1", "apps_v1"]);
        check(
            "wardle.example.com",
            "v1alpha1",
            [
                "com.example.wardle.v1alpha1.X",
                "WardleExampleComV1alpha1",
                "wardleExampleCom_v1alpha1",
            ],
        );
        check(
            "rbac.authorization.k8s.io",
            "v1",
            [
                "io.k8s.authorization.rbac.v1.X",
                "RbacAuthorizationV1",
                "rbacAuthorization_v1",
            ],
        );
    }
}
