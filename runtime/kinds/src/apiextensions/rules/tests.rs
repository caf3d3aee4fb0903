//! Rules of definitions, with the texts of kube-apiserver.

use apiloom_meta::schema::Schema;
use apiloom_meta::{Object, Resource as _};
use apiloom_registry::ErasedStrategy as _;
use serde_json::{Value, json};

use super::strategy::DefinitionStrategy;
use super::*;

fn definition() -> Value {
    json!({
        "metadata": {"name": "lamps.example.com"},
        "status": {},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}},
                }},
            }],
        },
    })
}

fn typed(document: Value) -> CustomResourceDefinition {
    serde_json::from_value(document).unwrap()
}

/// A definition as it is stored after a create.
fn created(change: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
    let mut document = definition();
    change(&mut document);
    let mut object = typed(document);
    let rules = DefinitionRules;
    rules.default(&mut object);
    rules.prepare_for_create(&RequestContext::default(), &mut object);
    object
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let errors = DefinitionRules.validate(&RequestContext::default(), &created(change));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

fn version(document: &mut Value) -> &mut Value {
    &mut document["spec"]["versions"][0]
}

#[test]
fn names_conversion_and_stored_versions_have_defaults() {
    let object = created(|_| {});
    let names = &object.spec.names;
    assert_eq!(names.singular.as_deref(), Some("lamp"));
    assert_eq!(names.list_kind.as_deref(), Some("LampList"));
    assert_eq!(object.spec.conversion.as_ref().unwrap().strategy, "None");
    assert_eq!(object.status.stored_versions, ["v1"]);
    assert_eq!(
        CustomResourceDefinition::PLURAL,
        "customresourcedefinitions"
    );
    check(|_| {}, &[]);
}

#[test]
fn names_and_groups_have_rules() {
    check(
        |document| document["metadata"]["name"] = json!("x"),
        &["metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        |document| {
            document["metadata"]["name"] = json!("lamps.example");
            document["spec"]["group"] = json!("example");
        },
        &["spec.group: Invalid value: \"example\": should be a domain with at least one dot"],
    );
    check(
        |document| document["spec"]["scope"] = json!("Galaxy"),
        &[
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\"",
        ],
    );
    check(
        |document| document["spec"]["names"]["listKind"] = json!("Lamp"),
        &["spec.names.listKind: Invalid value: \"Lamp\": kind and listKind may not be the same"],
    );
    check(
        |document| document["spec"]["preserveUnknownFields"] = json!(true),
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
    let url = "see https://github.com/kubernetes/enhancements/pull/1111";
    let protected = |annotation: Option<&str>, expected: &[&str]| {
        check(
            |document| {
                document["metadata"]["name"] = json!("lamps.lighting.k8s.io");
                document["spec"]["group"] = json!("lighting.k8s.io");
                if let Some(text) = annotation {
                    document["metadata"]["annotations"] = json!({ APPROVAL: text });
                }
            },
            expected,
        );
    };
    protected(
        None,
        &[&format!(
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", {url}"
        )],
    );
    protected(
        Some("please"),
        &[&format!(
            "metadata.annotations[api-approved.kubernetes.io]: Invalid value: \"please\": protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", {url}"
        )],
    );
    protected(Some("unapproved, a test"), &[]);
    protected(Some("https://github.com/kubernetes/kubernetes/pull/1"), &[]);
}

#[test]
fn versions_have_rules() {
    check(
        |document| version(document)["storage"] = json!(false),
        &[
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check(
        |document| version(document)["schema"] = json!(null),
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    check(
        |document| version(document)["deprecationWarning"] = json!("old"),
        &[
            "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set for deprecated versions",
        ],
    );
    check(
        |document| {
            version(document)["subresources"] = json!({"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": "", "labelSelectorPath": "s"}});
        },
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.n\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \"s\": must be a simple json path starting with .",
        ],
    );
    check(
        |document| {
            version(document)["additionalPrinterColumns"] =
                json!([{"name": "", "type": "text", "format": "wide", "jsonPath": "x"}]);
        },
        &[
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].format: Invalid value: \"wide\": must be one of byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"x\": must be a simple json path starting with .",
        ],
    );
    check(
        |document| {
            version(document)["selectableFields"] = json!([
                {"jsonPath": ".spec.color"}, {"jsonPath": ".spec.color"}, {"jsonPath": ".spec.none"}, {"jsonPath": ".spec"},
            ]);
        },
        &[
            "spec.selectableFields[1].jsonPath: Duplicate value: \".spec.color\"",
            "spec.selectableFields[2].jsonPath: Invalid value: \".spec.none\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[3].jsonPath: Invalid value: \".spec\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ],
    );
    let second = |document: &mut Value| {
        version(document)["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
        let mut second = version(document).clone();
        (second["name"], second["storage"]) = (json!("v2"), json!(false));
        document["spec"]["versions"]
            .as_array_mut()
            .unwrap()
            .push(second);
    };
    check(second, &[]);
    check(
        |document| {
            second(document);
            version(document)["schema"]["openAPIV3Schema"]["description"] = json!("The first.");
        },
        &[
            "spec.selectableFields: Invalid value: \"\": may only be set when validations.schema is included",
        ],
    );
    check(
        |document| {
            second(document);
            version(document)["selectableFields"] = json!([]);
        },
        &[
            "spec.versions[1].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included",
        ],
    );
    check(
        |document| version(document)["schema"]["openAPIV3Schema"]["type"] = json!(null),
        &["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"],
    );
}

/// A few hundred KB of patterns, each of which may be, once took all memory of the machine.
#[test]
fn schemas_that_take_too_much_in_sum_are_refused_before_they_are_compiled() {
    let property = |at: usize| {
        let pattern = format!("^(a|b{at}){{1,200}}[\\pL]{{0,100}}$");
        (
            format!("p{at:04}"),
            json!({"type": "string", "pattern": pattern}),
        )
    };
    let properties = Value::Object((0..5_000).map(property).collect());
    let object =
        created(|new| version(new)["schema"]["openAPIV3Schema"]["properties"] = properties);
    let errors = DefinitionRules.validate(&RequestContext::default(), &object);
    let [error] = &errors[..] else {
        panic!("{errors:?}");
    };
    let path = "spec.versions[0].schema.openAPIV3Schema.properties[p0";
    assert!(error.path.as_str().starts_with(path), "{error}");
    assert!(error.path.as_str().ends_with(".pattern"), "{error}");
}

#[test]
fn conversion_has_rules() {
    check(
        |document| document["spec"]["conversion"] = json!({"strategy": "Magic"}),
        &[
            "spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \"Webhook\"",
        ],
    );
    check(
        |document| document["spec"]["conversion"] = json!({"strategy": "Webhook"}),
        &[
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ],
    );
    check(
        |document| {
            document["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
                "clientConfig": {}, "conversionReviewVersions": ["v2", "v2"]}});
        },
        &[
            "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
            "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1",
        ],
    );
}

/// A definition with this configuration of its webhook.
fn with_webhook(config: &Value) -> impl FnOnce(&mut Value) {
    let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1"]});
    move |document| {
        document["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
    }
}

#[test]
fn authorities_that_cannot_be_read_are_refused_once_a_kind_is_established() {
    let definition = |bundle: &str| {
        created(with_webhook(
            &json!({"url": "https://a", "caBundle": bundle}),
        ))
    };
    // "nonsense", white space, a block that is no certificate.
    let (nonsense, white) = ("bm9uc2Vuc2U=", "IAo=");
    let block = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFHaz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
    let errors = |new: &CustomResourceDefinition, old: &CustomResourceDefinition| {
        let errors = DefinitionRules.validate_update(&RequestContext::default(), new, old);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut old = definition("");
    assert!(!has_invalid_authorities(&old));
    for bundle in [nonsense, block, white] {
        let new = definition(bundle);
        let ctx = RequestContext::default();
        assert!(DefinitionRules.validate(&ctx, &new).is_empty(), "{bundle}");
        assert!(errors(&new, &old).is_empty(), "{bundle}");
        assert!(has_invalid_authorities(&new), "{bundle}");
    }
    old.status.conditions =
        serde_json::from_value(json!([{"type": "Established", "status": "True"}])).unwrap();
    let text = |bundle: &str, why: &str| {
        format!(
            "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"{bundle}\": unable to load root certificates: {why}"
        )
    };
    let why = "unable to parse bytes as PEM block";
    for bundle in [nonsense, white] {
        assert_eq!(errors(&definition(bundle), &old), [text(bundle, why)]);
    }
    let why = "failed to parse certificate";
    assert_eq!(errors(&definition(block), &old), [text(block, why)]);
    assert!(errors(&definition(""), &old).is_empty());
    // What was stored before the rule can be changed elsewhere.
    let mut malformed = definition(nonsense);
    malformed.status = old.status;
    assert!(errors(&definition(block), &malformed).is_empty());
}

#[test]
fn what_is_stored_and_established_stays() {
    let mut old = created(|_| {});
    old.status.conditions =
        serde_json::from_value(json!([{"type": "Established", "status": "True"}])).unwrap();
    let check = |change: &dyn Fn(&mut CustomResourceDefinition), expected: &[&str]| {
        let mut new = old.clone();
        change(&mut new);
        let (rules, ctx) = (DefinitionRules, RequestContext::default());
        rules.prepare_for_update(&ctx, &mut new, &old);
        let errors = rules.validate_update(&ctx, &new, &old);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected);
        new
    };
    check(
        &|new| {
            new.spec.scope = "Cluster".to_owned();
            new.spec.names.kind = "Torch".to_owned();
        },
        &[
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Torch\": field is immutable",
        ],
    );
    check(
        &|new| new.spec.versions[0].name = "v2".to_owned(),
        &[
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ],
    );
    let new = check(
        &|new| {
            let mut second = new.spec.versions[0].clone();
            second.name = "v2".to_owned();
            new.spec.versions[0].storage = false;
            new.spec.versions.push(second);
        },
        &[],
    );
    assert_eq!(new.status.stored_versions, ["v1", "v2"]);
}

#[test]
fn unknown_formats_are_warned_about() {
    let object = created(|document| {
        version(document)["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"]
            ["format"] = json!("hue");
    });
    let object = Object::from_value(json!(object)).unwrap();
    let warnings = DefinitionStrategy::new().warnings(&RequestContext::default(), &object);
    assert_eq!(warnings, ["unrecognized format \"hue\""]);
    // An update warns of those that it brings.
    let mut new = object.clone();
    let context = RequestContext::default();
    let again = DefinitionStrategy::new().update_warnings(&context, &new, &object);
    assert_eq!(again, [""; 0]);
    let schema = json!({"type": "string", "format": "tint"});
    let version = &mut new.fields_mut()["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["tint"] = schema;
    let further = DefinitionStrategy::new().update_warnings(&context, &new, &object);
    assert_eq!(further, ["unrecognized format \"tint\""]);
}

#[test]
fn rules_are_compiled_beside_parts_with_errors() {
    let rules = |rule: &str| json!([{ "rule": rule }]);
    check(
        |document| {
            let spec = &mut version(document)["schema"]["openAPIV3Schema"]["properties"]["spec"];
            spec["x-kubernetes-validations"] = rules("self.nothing");
            spec["properties"] = json!({
            "bad": {"type": "array", "items": {"type": "string"}, "uniqueItems": true, "x-kubernetes-validations": rules("1")},
                "good": {"type": "string", "x-kubernetes-validations": rules("1")},
                "blank": {"type": "string", "x-kubernetes-validations": rules(" ")},
            });
        },
        &[
            "spec.validation.openAPIV3Schema.properties[spec].properties[bad].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            "spec.validation.openAPIV3Schema.properties[spec].properties[blank].x-kubernetes-validations[0].rule: Required value: rule is not specified",
            "spec.validation.openAPIV3Schema.properties[spec].properties[good].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must evaluate to a bool",
        ],
    );
}

#[test]
fn a_webhook_has_a_url_of_https_or_a_service() {
    let webhook = |config: Value| {
        let mut webhook = json!({"conversionReviewVersions": ["v1"]});
        webhook["clientConfig"] = config;
        move |document: &mut Value| {
            document["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
        }
    };
    let url = |url: &str, problems: &[&str]| {
        let at = "spec.conversion.webhookClientConfig.url: ";
        let expected: Vec<String> = problems
            .iter()
            .map(|problem| format!("{at}{problem}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(webhook(json!({ "url": url })), &expected);
    };
    for good in ["https://h", "HTTPS://h/a b", "https://h:99999/?#"] {
        url(good, &[]);
    }
    const SCHEME: &str =
        "'https' is the only allowed URL scheme; desired format: https://host[/path]";
    const HOST: &str =
        "Invalid value: \"\": host must be specified; desired format: https://host[/path]";
    url(
        "http://x/y?z#f",
        &[
            &format!("Invalid value: \"http\": {SCHEME}"),
            "Invalid value: \"f\": fragments are not permitted in the URL",
            "Invalid value: \"z\": query parameters are not permitted in the URL",
        ],
    );
    url("x", &[&format!("Invalid value: \"\": {SCHEME}"), HOST]);
    url("https://", &[HOST]);
    url(
        "https://u:p@h/a",
        &["Invalid value: \"u:p\": user information is not permitted in the URL"],
    );
    url(
        "https://h/%zz",
        &[
            "Required value: url must be a valid URL: parse \"https://h/%zz\": invalid URL escape \"%zz\"; desired format: https://host[/path]",
        ],
    );
    let service = |path: &str, port: i64, problems: &[&str]| {
        let at = "spec.conversion.webhookClientConfig.service.";
        let expected: Vec<String> = problems
            .iter()
            .map(|problem| format!("{at}{problem}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let service = json!({"name": "a", "namespace": "b", "path": path, "port": port});
        check(webhook(json!({ "service": service })), &expected);
    };
    for good in ["", "/", "/a/", "/a.b/c"] {
        service(good, 443, &[]);
    }
    service(
        "/",
        0,
        &["port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
    );
    service(
        "//",
        1,
        &["path: Invalid value: \"//\": segment[0] may not be empty"],
    );
    service(
        "/a//b",
        1,
        &["path: Invalid value: \"/a//b\": segment[1] may not be empty"],
    );
    service(
        "x//y",
        1,
        &[
            "path: Invalid value: \"x//y\": must start with a '/'",
            "path: Invalid value: \"x//y\": segment[0] may not be empty",
            "path: Invalid value: \"x//y\": segment[1] may not be empty",
        ],
    );
}

fn object(document: &Value) -> Object {
    Object::from_value(document.clone()).unwrap()
}

#[test]
fn hooks_leave_the_schemas_of_a_definition_alone() {
    let (strategy, ctx) = (DefinitionStrategy::new(), RequestContext::default());
    let sent = definition();
    let is_defaulted = |object: &Object| {
        let json = object.as_value().to_string();
        strategy.is_defaulted(json.as_bytes(), &Schema::unusable())
    };
    let mut changed = object(&sent);
    assert!(!is_defaulted(&changed));
    assert!(strategy.default(&mut changed));
    assert!(is_defaulted(&changed) && !strategy.default(&mut changed));
    assert!(strategy.prepare_for_create(&ctx, &mut changed));
    strategy.prepare_for_delete(&ctx, &mut changed);
    let changed = changed.as_value();
    assert_eq!(changed["spec"]["names"]["singular"], "lamp");
    assert_eq!(changed["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(changed["metadata"]["finalizers"], json!([CLEANUP]));
    assert_eq!(changed["spec"]["versions"], sent["spec"]["versions"]);
    // What is no definition is left as it is, for the validation.
    let malformed = json!({"spec": {"versions": [1, {"schema": 2}]}});
    let mut kept = object(&malformed);
    assert!(!strategy.default(&mut kept));
    assert_eq!(*kept.as_value(), malformed);
}

#[test]
fn an_update_validates_a_spec_that_changes() {
    let (strategy, ctx) = (DefinitionStrategy::new(), RequestContext::default());
    let mut stored = json!(created(|_| {}));
    // As an earlier release may have accepted it.
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    stored.pointer_mut(schema).unwrap()["type"] = json!("unknown");
    let errors = |change: fn(&mut Value)| {
        let mut new = stored.clone();
        change(&mut new);
        let errors = strategy.validate_update(&ctx, &object(&new), &object(&stored));
        let errors = errors.unwrap().into_iter();
        errors
            .map(|error| error.path.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let at = "spec.validation.openAPIV3Schema.properties[spec].type";
    assert_eq!(
        errors(|new| new["metadata"]["labels"] = json!({"a": "b"})),
        [""; 0]
    );
    assert_eq!(
        errors(|new| new["status"]["storedVersions"] = json!([])),
        ["status.storedVersions"]
    );
    assert_eq!(
        errors(|new| new["spec"]["names"]["shortNames"] = json!(["l"])),
        [at]
    );
    let described = |new: &mut Value| {
        version(new)["schema"]["openAPIV3Schema"]["description"] = json!("A lamp.");
    };
    assert_eq!(errors(described), [at]);
}

#[test]
fn an_update_notes_another_storage_version() {
    let (strategy, ctx) = (DefinitionStrategy::new(), RequestContext::default());
    let old = json!(created(|_| {}));
    let mut new = old.clone();
    let mut second = version(&mut new).clone();
    second["name"] = json!("v2");
    version(&mut new)["storage"] = json!(false);
    new["spec"]["versions"].as_array_mut().unwrap().push(second);
    let versions = new["spec"]["versions"].clone();
    let mut new = object(&new);
    assert!(strategy.prepare_for_update(&ctx, &mut new, &object(&old)));
    let new = new.as_value();
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(new["spec"]["versions"], versions);
}
