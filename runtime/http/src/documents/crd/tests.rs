//! The CRDs of compiled kinds.

use crate::documents::openapi::SchemaInCrd;
use crate::testing::wardle_sources;
use apiloom_meta::JsonPath;
use apiloom_meta::kind::{Conversion, ConversionMethod, InMemoryConversion, Place};
use apiloom_meta::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
use apiloom_meta::schema::CrdSchema;

use super::*;

#[test]
fn the_dump_has_a_file_for_everything_of_the_users_groups() {
    let files = documents(&wardle_sources(), &[]);
    let names: Vec<&String> = files.as_object().unwrap().keys().collect();
    let expected = [
        "crds/fischers.wardle.example.com",
        "crds/flunders.wardle.example.com",
        "notes",
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
    let crd = &documents(&wardle_sources(), &[])["crds/flunders.wardle.example.com"];
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
        json!([
            { "name": "Type", "type": "string", "jsonPath": ".spec.referenceType", "description": "What it refers to." },
            { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
        ])
    );
}

#[test]
fn metadata_is_an_object_and_nothing_more() {
    let crd = &documents(&wardle_sources(), &[])["crds/flunders.wardle.example.com"];
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
    let crd = &documents(&wardle_sources(), &[])["crds/fischers.wardle.example.com"];
    let keys: Vec<&String> = crd["spec"]["versions"][0]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys, ["name", "schema", "served", "storage"]);
    assert_eq!(crd["spec"]["scope"], "Cluster");
}

/// The wardle kinds with a change to their definitions.
fn changed(change: impl Fn(&mut ResourceDef)) -> Vec<VersionSource> {
    let mut sources = wardle_sources();
    let kinds = sources.iter_mut().flat_map(|source| &mut source.kinds);
    kinds.for_each(|kind| change(Arc::make_mut(&mut kind.def)));
    sources
}

const FLUNDERS: &str = "crds/flunders.wardle.example.com";

#[test]
fn versions_that_convert_are_not_served_by_a_definition() {
    let sources = changed(|def| {
        if def.version == "v1alpha1" && def.kind == "Flunder" {
            def.conversion = Some(Conversion {
                hub_version: "v1beta1".into(),
                hub_kind: "Flunder".into(),
                hub_resource: None,
                method: ConversionMethod::InMemory(InMemoryConversion {
                    json: None,
                    to_hub: Ok,
                    from_hub: Ok,
                }),
            });
        }
    });
    let files = documents(&sources, &[]);
    let served: Vec<_> = files[FLUNDERS]["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| (&version["name"], &version["served"]))
        .collect();
    assert_eq!(
        served,
        [
            (&json!("v1beta1"), &json!(false)),
            (&json!("v1alpha1"), &json!(true))
        ]
    );
    // kube-apiserver refuses equal fields of versions whose schemas differ.
    let is_selected = |at: usize| {
        let version = &files[FLUNDERS]["spec"]["versions"][at];
        version.get("selectableFields").is_some()
    };
    assert_eq!([is_selected(0), is_selected(1)], [false, true]);
    let notes = files["notes"][FLUNDERS].as_array().unwrap();
    assert!(
        notes[0]
            .as_str()
            .unwrap()
            .starts_with("This definition serves the stored version alone")
    );
    assert_eq!(files["notes"].as_object().unwrap().len(), 1);
}

#[test]
fn a_version_that_is_stored_and_not_served_is_listed() {
    let mut sources = wardle_sources();
    let mut stored = sources[2].kinds.remove(0);
    Arc::make_mut(&mut stored.def).served = false;
    let versions = &documents(&sources, &[stored])[FLUNDERS]["spec"]["versions"];
    assert_eq!(
        (
            &versions[1]["name"],
            &versions[1]["storage"],
            &versions[1]["served"]
        ),
        (&json!("v1alpha1"), &json!(true), &json!(false))
    );
}

#[test]
fn what_a_definition_cannot_say_of_columns_is_left_out() {
    let sources = changed(|def| {
        for column in &mut def.columns {
            column.format = "name".into();
        }
        if def.version == "v1alpha1" && def.kind == "Flunder" {
            let computed = Column {
                name: "Load".into(),
                source: CellSource::With(|_| Ok(Value::Null)),
                ..def.columns[0].clone()
            };
            def.columns.push(computed);
        }
    });
    let files = documents(&sources, &[]);
    let columns = files[FLUNDERS]["spec"]["versions"][1]["additionalPrinterColumns"]
        .as_array()
        .unwrap();
    let names: Vec<_> = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Type", "Age"]);
    assert_eq!(columns[0].get("format"), None);
    assert_eq!(
        files["notes"][FLUNDERS],
        json!([
            "Columns of v1alpha1 that a function computes have no path, so they are left out: Load."
        ])
    );
}

#[test]
fn extensions_that_a_definition_has_no_field_for_are_left_out() {
    let mut schema = json!({
        "properties": {"x-mine": {"items": {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-map-type": "atomic"}}},
        "example": {"x-kept": 1},
        "x-other": 1,
    });
    forget_unknown_extensions(&mut schema);
    assert_eq!(
        schema,
        json!({"properties": {"x-mine": {"items": {"x-kubernetes-map-type": "atomic"}}}, "example": {"x-kept": 1}})
    );
}

#[test]
fn core_kinds_have_openapi_and_no_definition() {
    let mut sources = wardle_sources();
    let mut fischer = sources[2].kinds.remove(1);
    let def = Arc::make_mut(&mut fischer.def);
    def.group = "".into();
    def.version = "v1".into();
    sources[0].kinds.push(fischer);
    let files = documents(&sources, &[]);
    let files = files.as_object().unwrap();
    let names: Vec<&String> = files.keys().collect();
    let expected = [
        FLUNDERS,
        "notes",
        "openapi/v2.json",
        "openapi/v3/api/v1.json",
        "openapi/v3/apis/wardle.example.com/v1alpha1.json",
        "openapi/v3/apis/wardle.example.com/v1beta1.json",
    ];
    assert_eq!(names, expected);
    // The documents contain all served kinds of these paths, including namespaces.
    let check = |schemas: &Value| {
        for kind in ["Namespace", "Fischer"] {
            let name = format!("io.k8s.api.core.v1.{kind}");
            assert!(schemas.get(&name).is_some(), "{name}");
        }
    };
    check(&files["openapi/v2.json"]["definitions"]);
    check(&files["openapi/v3/api/v1.json"]["components"]["schemas"]);
}

#[test]
fn a_single_version_is_the_stored_one() {
    let sources = changed(|def| def.storage = false);
    let crd = &documents(&sources, &[])["crds/fischers.wardle.example.com"];
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        (&version["storage"], &version["served"]),
        (&json!(true), &json!(true))
    );
}

fn in_crd(schema: Value) -> Box<SchemaInCrd> {
    Box::new(move || CrdSchema {
        schema: schema.clone(),
        unsaid: Vec::new(),
    })
}

#[test]
fn rules_that_a_definition_cannot_say_are_noted() {
    let mut sources = wardle_sources();
    sources[2].kinds[1].in_crd = Box::new(|| CrdSchema {
        schema: json!({"type": "object"}),
        unsaid: vec!["spec: `custom`".to_owned()],
    });
    let notes = &documents(&sources, &[])["notes"]["crds/fischers.wardle.example.com"];
    let notes: Vec<&str> = notes
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let expected = [
        "Rules of v1alpha1 that the server checks and this definition cannot say:",
        "- spec: `custom`",
    ];
    assert!(notes.ends_with(&expected), "{notes:?}");
}

#[test]
fn a_definition_names_formats_that_kubernetes_knows() {
    let mut sources = wardle_sources();
    sources[2].kinds[1].in_crd = in_crd(
        json!({"type": "object", "properties": {"port": {"type": "integer", "format": "uint16"}, "host": {"type": "string", "format": "ip"}}}),
    );
    let crd = &documents(&sources, &[])["crds/fischers.wardle.example.com"];
    let fields = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(
        fields["port"],
        json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535})
    );
    assert_eq!(
        fields["host"],
        json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
    );
}

#[test]
fn definitions_that_kubernetes_refuses_are_told() {
    let problems = |sources: &[VersionSource]| problems(&documents(sources, &[]), sources, &[]);
    assert_eq!(problems(&wardle_sources()), [""; 0]);
    let mut sources = wardle_sources();
    Arc::make_mut(&mut sources[2].kinds[0].def).place = Some(Place {
        file: "src/v1alpha1.rs",
        line: 7,
    });
    sources[2].kinds[0].in_crd =
        in_crd(json!({"type": "object", "properties": {"list": {"type": "array"}, "free": {}}}));
    let path = "spec.versions[1].schema.openAPIV3Schema.properties";
    assert_eq!(
        problems(&sources),
        [
            format!(
                "src/v1alpha1.rs:7: CustomResourceDefinition flunders.wardle.example.com: {path}[free].type: Required value: must not be empty for specified object fields"
            ),
            format!(
                "src/v1alpha1.rs:7: CustomResourceDefinition flunders.wardle.example.com: {path}[list].items: Required value: must be specified"
            ),
        ]
    );
}

#[test]
fn a_definition_in_a_group_of_kubernetes_says_that_it_is_not_approved() {
    let said = |group: &'static str| {
        let files = documents(&changed(|def| def.group = group.into()), &[]);
        let crd = &files[format!("crds/flunders.{group}")];
        assert_eq!(crd["spec"]["group"], group);
        crd["metadata"]["annotations"]["api-approved.kubernetes.io"]
            .as_str()
            .map(str::to_owned)
    };
    for group in ["k8s.io", "gateway.networking.k8s.io", "a.kubernetes.io"] {
        let value = said(group);
        assert!(
            value
                .as_ref()
                .is_some_and(|value| value.starts_with("unapproved")),
            "{group}: {value:?}"
        );
    }
    for group in ["example.com", "ak8s.io", "k8s.io.example.com"] {
        assert_eq!(said(group), None, "{group}");
    }
}

#[test]
fn a_definition_has_columns_with_filters() {
    let sources = changed(|def| {
        for column in &mut def.columns {
            let is_it = QueryFilter::compares(JsonPath::new(["type"]), Comparison::Equal, "Ready");
            let query = JsonQuery::new(JsonPath::new(["status", "conditions"]))
                .then(QueryStep::Where(is_it))
                .then(QueryStep::Field("status".to_owned()));
            column.source = CellSource::Query(query);
        }
    });
    let crd = &documents(&sources, &[])[FLUNDERS];
    assert_eq!(
        crd["spec"]["versions"][1]["additionalPrinterColumns"][0],
        json!({
            "name": "Type",
            "type": "string",
            "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
            "description": "What it refers to.",
        })
    );
}
