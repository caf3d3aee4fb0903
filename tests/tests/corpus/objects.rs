//! The schema engine over the definitions: documents with what a schema requires, and random ones.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;

use apiloom_meta::FieldError;
use apiloom_meta::schema::Schema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::minimal::document;
use crate::{DEFINITIONS, Definition};

/// Random documents for each version.
const SAMPLES: u64 = 20;

/// Calls a check with each version of all definitions, its schema as JSON and as the engine has it.
fn for_each_version(check: impl Fn(&Definition, &Value, &Schema)) {
    for definition in &*DEFINITIONS {
        for version in definition.versions() {
            let document = &version["schema"]["openAPIV3Schema"];
            let schema = Schema::of_custom_resource(document)
                .unwrap_or_else(|error| panic!("{} {version}: {error}", definition.file));
            check(definition, version, &schema);
        }
    }
}

/// The minimal object of a version, with a name and fields that its rules in CEL permit.
pub(crate) fn minimal(definition: &Definition, version: &Value) -> Value {
    let spec = &definition.document["spec"];
    let group = spec["group"].as_str().unwrap();
    let mut object = document(&version["schema"]["openAPIV3Schema"]);
    object["apiVersion"] = format!("{group}/{}", version["name"].as_str().unwrap()).into();
    object["kind"] = spec["names"]["kind"].clone();
    let is_only_one = spec["names"]["kind"] == "BaselineAdminNetworkPolicy";
    object["metadata"] = json!({"name": if is_only_one { "default" } else { "a" }});
    for (field, value) in asked_by_rules(spec["names"]["kind"].as_str().unwrap()) {
        let (parent, name) = field.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent) {
            parent[name] = value;
        }
    }
    object
}

/// The fields that the rules in CEL of a kind ask for, or its patterns, beyond those that its schema requires.
fn asked_by_rules(kind: &str) -> Vec<(&'static str, Value)> {
    match kind {
        "AlertRelabelConfig" => vec![
            ("/spec/configs/0/action", json!("LabelDrop")),
            ("/spec/configs/0/regex", json!("a")),
        ],
        "BackendTLSPolicy" => vec![("/spec/validation/wellKnownCACertificates", json!("System"))],
        "BackendTrafficPolicy"
        | "ClientTrafficPolicy"
        | "EnvoyExtensionPolicy"
        | "SecurityPolicy" => {
            let group = "gateway.networking.k8s.io";
            let gateway = json!({"group": group, "kind": "Gateway", "name": "a"});
            vec![("/spec/targetRefs", json!([gateway]))]
        }
        "ClusterImagePolicy" | "ImagePolicy" => {
            let key = "-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----\n";
            let key = json!({"keyData": STANDARD.encode(key)});
            let root = json!({"policyType": "PublicKey", "publicKey": key});
            vec![("/spec/policy/rootOfTrust", root)]
        }
        "ConsoleLink" => vec![("/spec/location", json!("HelpMenu"))],
        "ConsoleSample" => {
            let import = json!({"repository": {"url": "https://github.com/a/b"}});
            let source = json!({"type": "GitImport", "gitImport": import});
            vec![("/spec/source", source)]
        }
        "DNSNameResolver" => vec![("/spec/name", json!("a.b."))],
        "EC2NodeClass" => vec![
            ("/spec/role", json!("a")),
            ("/spec/amiSelectorTerms/0/alias", json!("al2@latest")),
            ("/spec/securityGroupSelectorTerms", json!([{"id": "a"}])),
            ("/spec/subnetSelectorTerms", json!([{"id": "a"}])),
        ],
        "IstioCSR" => {
            let issuer = json!({"group": "cert-manager.io", "kind": "Issuer", "name": "a"});
            vec![("/spec/istioCSRConfig/certManager/issuerRef", issuer)]
        }
        "MachineConfigNode" => vec![
            ("/spec/configVersion/desired", json!("a")),
            ("/spec/node/name", json!("a")),
            ("/spec/pool/name", json!("a")),
        ],
        "MachineOSBuild" => vec![
            ("/spec/machineConfig/name", json!("rendered-a")),
            ("/spec/renderedImagePushSpec", json!("a.b/c:d")),
        ],
        "MachineOSConfig" => vec![
            ("/spec/machineConfigPool/name", json!("a")),
            ("/spec/renderedImagePushSecret/name", json!("a")),
            ("/spec/renderedImagePushSpec", json!("a.b/c:d")),
        ],
        "NodeClaim" => vec![("/spec/nodeClassRef", node_class())],
        "NodePool" => vec![("/spec/template/spec/nodeClassRef", node_class())],
        "PinnedImageSet" => {
            let image = format!("a.b/c@sha256:{}", "0".repeat(64));
            vec![("/spec/pinnedImages/0/name", json!(image))]
        }
        "Publication" => vec![("/spec/target/allTables", json!(true))],
        "TCPRoute" | "TLSRoute" | "UDPRoute" => {
            vec![("/spec/rules/0/backendRefs/0/port", json!(1))]
        }
        "Usage" => vec![
            ("/spec/reason", json!("a")),
            ("/spec/of/resourceRef", json!({"name": "a"})),
        ],
        "VolumeSnapshot" => vec![("/spec/source/persistentVolumeClaimName", json!("a"))],
        "VolumeSnapshotContent" => vec![
            ("/spec/source/snapshotHandle", json!("a")),
            ("/spec/volumeSnapshotRef/name", json!("a")),
            ("/spec/volumeSnapshotRef/namespace", json!("a")),
        ],
        "XBackend" => vec![("/spec/externalHostname", json!({"hostname": "a.b"}))],
        _ => Vec::new(),
    }
}

/// A node class as Karpenter refers to it.
fn node_class() -> Value {
    json!({"group": "a", "kind": "A", "name": "a"})
}

fn no_errors(definition: &Definition, object: &Value, errors: &[FieldError]) {
    let Definition { file, .. } = definition;
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{file}: {errors:#?} in {object}");
}

#[test]
fn minimal_objects_are_valid() {
    let refused = RefCell::new(String::new());
    for_each_version(|definition, version, schema| {
        let minimal = minimal(definition, version);
        let mut pruned = minimal.clone();
        schema.prune(&mut pruned);
        assert_eq!(pruned, minimal, "{}", definition.file);
        let mut object = minimal;
        schema.default(&mut object);
        let errors = schema.validate(&object);
        for error in &errors {
            let Definition { file, .. } = definition;
            writeln!(refused.borrow_mut(), "{file}: {error} in {object}").unwrap();
        }
        if !errors.is_empty() {
            return;
        }
        no_errors(
            definition,
            &object,
            &schema.validate_update(&object, &object),
        );

        let defaulted = object.clone();
        assert!(!schema.default(&mut object), "{}", definition.file);
        schema.prune(&mut object);
        assert_eq!(object, defaulted, "{}", definition.file);
    });
    let refused = refused.into_inner();
    assert!(refused.is_empty(), "{refused}");
}

#[test]
fn a_field_that_is_required_is_missed() {
    let missed = Cell::new(0);
    for_each_version(|definition, version, schema| {
        let root = &version["schema"]["openAPIV3Schema"];
        let spec = &root["properties"]["spec"];
        let Some(name) = spec["required"][0].as_str() else {
            return;
        };
        if spec["properties"][name].get("default").is_some() {
            return;
        }
        let mut object = minimal(definition, version);
        object["spec"] = document(spec);
        object["spec"].as_object_mut().unwrap().remove(name);
        schema.default(&mut object);
        let expected = format!("spec.{name}: Required value");
        let errors = schema.validate(&object);
        let found = errors.iter().any(|error| error.to_string() == expected);
        assert!(found, "{}: {errors:?}", definition.file);
        missed.set(missed.get() + 1);
    });
    assert!(missed.get() >= 80, "{missed:?} versions");
}

#[test]
fn unknown_fields_are_pruned_unless_the_schema_keeps_them() {
    for_each_version(|definition, version, schema| {
        let document = &version["schema"]["openAPIV3Schema"];
        let mut object = minimal(definition, version);
        let known = object.clone();
        object["unknownToAll"] = json!({"a": [1]});
        schema.prune(&mut object);
        let kept = document["x-kubernetes-preserve-unknown-fields"] == true;
        assert_eq!(object == known, !kept, "{}: {object}", definition.file);
    });
}

#[test]
fn defaults_and_pruning_of_random_objects_change_nothing_twice() {
    for_each_version(|definition, _, schema| {
        for seed in 0..SAMPLES {
            let mut object = schema.sample(seed);
            schema.prune(&mut object);
            schema.default(&mut object);
            let once = object.clone();
            schema.prune(&mut object);
            assert!(!schema.default(&mut object), "{} {seed}", definition.file);
            assert_eq!(object, once, "{} {seed}", definition.file);
            let errors = schema.validate(&object);
            if errors.is_empty() {
                no_errors(definition, &object, &schema.validate_update(&object, &once));
            }
        }
    });
}
