//! The types for kube-rs of the fixtures of the generator: of a package, and of the package of its clients.

#[allow(missing_docs, unreachable_pub, dead_code, reason = "a file of a package")]
#[path = "../../../fixtures/generator/forms/src/generated/kube.rs"]
#[rustfmt::skip]
mod of_kinds;
#[allow(missing_docs, unreachable_pub, dead_code, reason = "a file of a package")]
#[path = "../../../fixtures/generator/forms-client/src/generated/kube.rs"]
#[rustfmt::skip]
mod of_clients;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use of_clients::forms_v1 as other;
use of_kinds::forms_v1 as own;

use crate::typed;

/// Checks the path of a kind and, if objects have one, its namespace, and that it has the metadata of kube-rs.
fn check<K>(plural: &str, namespace: Option<&str>)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let place = namespace.map_or_else(String::new, |name| format!("/namespaces/{name}"));
    let path = format!("/apis/forms.example.com/v1{place}/{plural}");
    assert_eq!(K::url_path(&(), namespace), path);
    let document = json!({"apiVersion": "forms.example.com/v1", "kind": K::kind(&()), "metadata": {"name": "a"}});
    let object: K = typed(document.clone());
    assert_eq!(object.meta().name.as_deref(), Some("a"));
    assert_eq!(serde_json::to_value(&object).unwrap(), document);
}

#[test]
fn each_kind_has_its_path_and_scope() {
    check::<own::Job>("jobs", Some("x"));
    check::<own::Rate>("rates", Some("x"));
    check::<own::Review>("reviews", None);
    check::<own::Zone>("zones", None);
    check::<other::Job>("jobs", Some("x"));
    check::<other::Rate>("rates", Some("x"));
    check::<other::Review>("reviews", None);
    check::<other::Zone>("zones", None);
    let plurals = [own::Order::plural(&()), other::Order::plural(&())];
    assert_eq!(plurals, ["orders", "orders"]);
}
