//! Documents of kinds, good and bad.

use serde_json::json;

use super::*;

fn document() -> Value {
    json!({
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp", "shortNames": ["lp"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                },
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "description": "A lamp.",
                        "properties": {"spec": {"type": "object", "properties": {"watts": {"type": "integer"}}}},
                    }},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"},
                    },
                    "additionalPrinterColumns": [{"name": "Watts", "type": "integer", "jsonPath": ".spec.watts", "priority": 1}],
                    "selectableFields": [{"jsonPath": ".spec.watts"}],
                },
            ],
        },
    })
}

#[test]
fn a_document_describes_all_versions() {
    let versions = custom_definitions(&document(), None).unwrap();
    let [old, new] = &versions[..] else {
        panic!("{versions:?}");
    };
    assert_eq!(old.api_version(), "example.com/v1beta1");
    assert_eq!((&*new.singular, &*new.list_kind), ("lamp", "LampList"));
    assert_eq!(new.description, "A lamp.");
    assert_eq!((new.storage, old.storage), (true, false));
    assert!(new.conversion.is_none());
    let conversion = old.conversion.as_ref().unwrap();
    assert!(matches!(conversion.method, ConversionMethod::Rename));
    assert_eq!(conversion.hub_version, "v1");
    let names: Vec<&str> = new.subresource_names().collect();
    assert_eq!(names, ["status", "scale"]);
    assert_eq!(new.scale_paths().unwrap().spec.to_string(), ".spec.n");
    assert_eq!(old.subresources, []);
    assert_eq!(new.columns[0].priority, 1);
    assert_eq!(
        new.columns[0].description,
        "Custom resource definition column (in JSONPath format): .spec.watts"
    );
    assert_eq!(old.columns[0].name, "Age");
    assert_eq!(new.selectable[0].name, "spec.watts");
}

#[test]
fn a_deprecated_version_names_the_newest_one() {
    let check = |change: &dyn Fn(&mut Value), expected: Option<&str>| {
        let mut document = document();
        change(&mut document["spec"]["versions"]);
        let versions = custom_definitions(&document, None).unwrap();
        let custom = versions[0].custom.clone().unwrap();
        assert_eq!(custom.deprecation_warning.as_deref(), expected);
    };
    check(
        &|_| {},
        Some("example.com/v1beta1 Lamp is deprecated; use example.com/v1 Lamp"),
    );
    check(
        &|versions| versions[1]["served"] = json!(false),
        Some("example.com/v1beta1 Lamp is deprecated"),
    );
    check(
        &|versions| versions[0]["deprecationWarning"] = json!("Buy LEDs."),
        Some("Buy LEDs."),
    );
    check(&|versions| versions[0]["deprecated"] = json!(false), None);
}

#[test]
fn accepted_names_come_before_those_of_the_spec() {
    let mut document = document();
    document["status"] = json!({"acceptedNames": {"plural": "", "kind": ""}});
    let before = custom_definitions(&document, None).unwrap();
    assert_eq!(before[0].kind, "Lamp");
    document["status"] =
        json!({"acceptedNames": {"plural": "lamps", "kind": "OldLamp", "listKind": "Lamps"}});
    let versions = custom_definitions(&document, None).unwrap();
    assert_eq!(
        (&*versions[0].kind, &*versions[0].list_kind),
        ("OldLamp", "Lamps")
    );
    assert_eq!(versions[0].short_names, Vec::<SmolStr>::new());
}

#[test]
fn all_problems_are_reported() {
    let lines = custom_definitions(&json!({}), None).unwrap_err();
    assert_eq!(
        lines,
        [
            "spec.versions: must have exactly one version marked as storage version",
            "spec.group: must be a text that is not empty",
            "spec.names.kind: must be a text that is not empty",
            "spec.names.plural: must be a text that is not empty",
            "spec.scope: must be Namespaced or Cluster",
        ]
    );
    let mut document = document();
    document["spec"]["versions"][0]["schema"] = json!({});
    let lines = custom_definitions(&document, None).unwrap_err();
    assert_eq!(
        lines,
        ["spec.versions[0].schema.openAPIV3Schema: schemas are required",]
    );
}

#[test]
fn a_scale_path_is_split_at_its_dots() {
    let mut document = document();
    let scale = &mut document["spec"]["versions"][1]["subresources"]["scale"];
    scale["specReplicasPath"] = json!(".spec.replicas[0]");
    scale["labelSelectorPath"] = json!(".status..a");
    let versions = custom_definitions(&document, None).unwrap();
    let paths = versions.iter().find_map(ResourceDef::scale_paths).unwrap();
    assert_eq!(paths.spec.names(), ["spec", "replicas[0]"]);
    assert_eq!(
        paths.selector.as_ref().unwrap().names(),
        ["status", "", "a"]
    );
}
