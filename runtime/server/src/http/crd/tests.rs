use super::super::testing::wardle_sources;
use super::*;

#[test]
fn the_dump_has_a_file_for_everything_of_the_users_groups() {
    let files = documents(&wardle_sources());
    let names: Vec<&String> = files.as_object().unwrap().keys().collect();
    let expected = [
        "crds/fischers.wardle.example.com",
        "crds/flunders.wardle.example.com",
        "openapi/v2.json",
        "openapi/v3/apis/wardle.example.com/v1alpha1.json",
        "openapi/v3/apis/wardle.example.com/v1beta1.json",
    ];
    assert_eq!(names, expected);
    assert!(
        files["openapi/v2.json"]["definitions"]
            .get("io.k8s.api.core.v1.Namespace")
            .is_none()
    );
}

#[test]
fn a_definition_holds_all_versions() {
    let crd = &documents(&wardle_sources())["crds/flunders.wardle.example.com"];
    assert_eq!(crd["spec"]["names"]["listKind"], "FlunderList");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["fl"]));
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let stored: Vec<_> = versions
        .iter()
        .map(|v| (v["name"].as_str().unwrap(), v["storage"] == true))
        .collect();
    assert_eq!(stored, [("v1beta1", false), ("v1alpha1", true)]);
    let version = &versions[1];
    assert_eq!(version["subresources"], json!({ "status": {} }));
    assert_eq!(
        version["selectableFields"],
        json!([{ "jsonPath": ".spec.referenceType" }])
    );
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{ "name": "Type", "type": "string", "jsonPath": ".spec.referenceType", "description": "What it refers to." }])
    );
}

#[test]
fn metadata_is_an_object_and_nothing_more() {
    let crd = &documents(&wardle_sources())["crds/flunders.wardle.example.com"];
    let schema = &crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"];
    assert_eq!(
        schema["properties"]["metadata"],
        json!({ "type": "object" })
    );
    assert_eq!(schema.get("required"), None);
    assert_eq!(
        schema["description"],
        "Flunder is an example type with a spec and a status."
    );
    assert_eq!(
        schema["properties"]["spec"]["properties"]["referenceType"]["default"],
        "Flunder"
    );
}

#[test]
fn a_kind_without_extras_has_no_keys_for_them() {
    let crd = &documents(&wardle_sources())["crds/fischers.wardle.example.com"];
    let keys: Vec<&String> = crd["spec"]["versions"][0]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys, ["name", "schema", "served", "storage"]);
    assert_eq!(crd["spec"]["scope"], "Cluster");
}
