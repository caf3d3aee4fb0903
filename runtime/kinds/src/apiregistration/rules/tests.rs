//! Rules of APIServices, with the texts of kube-apiserver.

use serde_json::{Value, json};

use super::*;

/// An APIService as it is stored after a create.
fn created(change: impl FnOnce(&mut Value)) -> APIService {
    let mut document = json!({
        "metadata": {"name": "v1.example.com"},
        "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "service": {"namespace": "default", "name": "lamps", "port": 443},
        },
        "status": {"conditions": [{"type": "Available", "status": "Sent by a client"}]},
    });
    change(&mut document);
    let mut object = serde_json::from_value(document).unwrap();
    APIServiceRules.prepare_for_create(&RequestContext::default(), &mut object);
    object
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let errors = APIServiceRules.validate(&RequestContext::default(), &created(change));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

fn local(document: &mut Value) {
    document["spec"]["service"].take();
}

#[test]
fn one_that_this_server_serves_is_available_when_it_is_created() {
    assert_eq!(created(|_| {}).status, APIServiceStatus::default());
    let object = created(local);
    let condition = object.available().unwrap();
    let reason = condition.reason.as_deref();
    assert_eq!((condition.status.as_str(), reason), ("True", Some("Local")));
    assert!(condition.last_transition_time.is_some());
    check(|_| {}, &[]);
    check(local, &[]);
}

#[test]
fn the_name_is_that_of_the_version_and_the_group() {
    check(
        |one| one["metadata"]["name"] = json!("v1.other.com"),
        &[
            "metadata.name: Invalid value: \"v1.other.com\": must be `spec.version+\".\"+spec.group`: \"v1.example.com\"",
        ],
    );
    let core = |one: &mut Value| {
        one["metadata"]["name"] = json!("v1.");
        one["spec"]["group"] = json!("");
    };
    check(core, &[]);
    check(
        |one| {
            one["metadata"]["name"] = json!("v2.");
            one["spec"]["group"] = json!("");
            one["spec"]["version"] = json!("v2");
        },
        &[
            "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
        ],
    );
}

#[test]
fn priorities_have_bounds() {
    for (group, version, expected) in [
        (1, 1, &[][..]),
        (20_000, 1_000, &[]),
        (
            0,
            -1,
            &[
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: -1: must be positive and less than 1000",
            ],
        ),
        (
            20_001,
            1_001,
            &[
                "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        ),
    ] {
        let change = |one: &mut Value| {
            one["spec"]["groupPriorityMinimum"] = json!(group);
            one["spec"]["versionPriority"] = json!(version);
        };
        check(change, expected);
    }
}

#[test]
fn only_a_service_has_settings_of_tls() {
    let with_both = |one: &mut Value| {
        one["spec"]["caBundle"] = json!("YWJj");
        one["spec"]["insecureSkipTLSVerify"] = json!(true);
    };
    check(
        with_both,
        &[
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
        ],
    );
    check(
        |one| {
            local(one);
            with_both(one);
        },
        &[
            "spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle",
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
        ],
    );
    check(
        |one| one["spec"]["service"] = json!({"port": 0}),
        &[
            "spec.service.namespace: Required value",
            "spec.service.name: Required value",
            "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
        ],
    );
}

#[test]
fn the_time_of_a_condition_is_that_of_its_status() {
    let mut object = created(local);
    let before = object.available().unwrap().clone();
    let conditions = &mut object.status.conditions;
    let available =
        |reason, message| Condition::new(APIService::AVAILABLE, true, reason, message).into();
    assert!(!conditions.set_condition(available(LOCAL.0, LOCAL.1)));
    assert!(conditions.set_condition(available("Passed", "all checks passed")));
    let after = object.available().unwrap();
    assert_eq!(after.last_transition_time, before.last_transition_time);
    assert_eq!(after.reason.as_deref(), Some("Passed"));
    object.status.conditions[0].status = "Maybe".to_owned();
    let errors = APIServiceRules.validate(&RequestContext::default(), &object);
    let expected = "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"True\", \"False\", \"Unknown\"";
    assert_eq!(errors[0].to_string(), expected);
}
