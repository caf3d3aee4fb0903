//! The status and the rest of an object are written apart, in every kind of every server of this repository that has a
//! status.

use std::collections::BTreeSet;

use apiloom_tests::repository;
use serde_json::json;

use crate::*;

on_each_backend![c_081_status_and_the_rest_are_written_apart_in_every_kind,];

/// A kind with a status, and values for its fields.
struct Sample {
    /// The path of the objects.
    path: &'static str,
    /// A new object with a status, which has no effect.
    object: Value,
    /// What a write changes besides metadata and status; null for a kind without other fields that it may change.
    change: Value,
    /// Two values of the status.
    status: [Value; 2],
}

fn sample(
    path: &'static str,
    (api_version, kind): (&str, &str),
    spec: &Value,
    change: &Value,
    status: [Value; 2],
) -> Sample {
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec,
        "status": status[0]});
    let change = if change.is_null() {
        Value::Null
    } else {
        json!({"spec": change})
    };
    Sample {
        path,
        object,
        change,
        status,
    }
}

/// A kind of the core group.
fn core(
    path: &'static str,
    kind: &str,
    spec: &Value,
    change: &Value,
    status: [Value; 2],
) -> Sample {
    sample(path, ("v1", kind), spec, change, status)
}

/// The kinds with a status of each server.
fn samples() -> Vec<(&'static str, Vec<Sample>)> {
    let balancer = |path, version| {
        let status = [json!({"ready": 1}), json!({"ready": 2})];
        let spec = json!({"class": "edge", "drain": false});
        sample(
            path,
            (version, "Balancer"),
            &spec,
            &json!({"weight": 7}),
            status,
        )
    };
    let time = "2026-11-22T12:00:00Z";
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "a"});
    let condition = json!({"type": "Ready", "status": "True", "reason": "Tested", "message": "", "lastTransitionTime": time});
    let phases = || [json!({"phase": "One"}), json!({"phase": "Two"})];
    // The status of flunders is empty, so it is there or not.
    let flunder = |path, version, change| {
        let status = [json!({}), Value::Null];
        sample(path, (version, "Flunder"), &json!({}), &change, status)
    };
    let namespace = || {
        let content = json!({"type": "NamespaceContentRemaining", "status": "False", "reason": "Tested", "message": "none",
            "lastTransitionTime": time});
        let status = [
            json!({"phase": "Active", "conditions": [content]}),
            json!({"phase": "Active"}),
        ];
        core(
            "/api/v1/namespaces",
            "Namespace",
            &json!({}),
            &json!(null),
            status,
        )
    };
    let container = json!({"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}});
    let servers = vec![
        (
            "wardle-server",
            vec![
                flunder(
                    FLUNDERS,
                    "wardle.example.com/v1alpha1",
                    json!({"reference": "x", "referenceType": "Flunder"}),
                ),
                flunder(
                    FLUNDERS_BETA,
                    "wardle.example.com/v1beta1",
                    json!({"flunderReference": "x", "referenceType": "Flunder"}),
                ),
            ],
        ),
        (
            "balancer-kinds-server",
            vec![
                balancer(
                    "/apis/lb.example.com/v1/namespaces/default/balancers",
                    "lb.example.com/v1",
                ),
                balancer(
                    "/apis/lb.example.com/v1beta1/namespaces/default/balancers",
                    "lb.example.com/v1beta1",
                ),
                balancer(
                    "/apis/lb.example.com/v1alpha1/namespaces/default/balancers",
                    "lb.example.com/v1alpha1",
                ),
            ],
        ),
        (
            "certificate-kinds-server",
            vec![sample(
                "/apis/cert-manager.io/v1/namespaces/default/certificates",
                ("cert-manager.io/v1", "Certificate"),
                &json!({"secretName": "a", "issuerRef": {"name": "own"}}),
                &json!({"secretName": "b"}),
                [json!({"revision": 1}), json!({"revision": 2})],
            )],
        ),
        (
            "core-kinds-server",
            vec![
                core(
                    "/api/v1/nodes",
                    "Node",
                    &json!({}),
                    &json!({"unschedulable": true}),
                    phases(),
                ),
                core(
                    "/api/v1/namespaces/default/pods",
                    "Pod",
                    &json!({}),
                    &json!({"nodeName": "first"}),
                    phases(),
                ),
            ],
        ),
        (
            "cronjob-kinds-server",
            vec![sample(
                "/apis/batch.tutorial.kubebuilder.io/v1/namespaces/default/cronjobs",
                ("batch.tutorial.kubebuilder.io/v1", "CronJob"),
                &json!({"schedule": "* * * * *", "jobTemplate": {"spec": container}}),
                &json!({"suspend": true}),
                [
                    json!({"lastScheduleTime": time}),
                    json!({"lastScheduleTime": "2026-11-23T12:00:00Z"}),
                ],
            )],
        ),
        (
            "machine-kinds-server",
            vec![sample(
                "/apis/machine.example.com/v1/namespaces/default/machines",
                ("machine.example.com/v1", "Machine"),
                &json!({"image": "a"}),
                &json!({"image": "b"}),
                [json!({"restarts": 1}), json!({"restarts": 2})],
            )],
        ),
        (
            "route-kinds-server",
            vec![sample(
                "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes",
                ("gateway.networking.k8s.io/v1", "HTTPRoute"),
                &json!({}),
                &json!({"hostnames": ["a.example.com"]}),
                [
                    json!({"parents": [{"parentRef": parent, "controllerName": "example.com/a", "conditions": [condition]}]}),
                    json!({"parents": [{"parentRef": parent, "controllerName": "example.com/b", "conditions": [condition]}]}),
                ],
            )],
        ),
        (
            "shapes-kinds-server",
            vec![sample(
                "/apis/shapes.example.com/v1/blueprints",
                ("shapes.example.com/v1", "Blueprint"),
                &json!({}),
                &json!({"note": "changed"}),
                [json!({"built": time}), json!({"conditions": [condition]})],
            )],
        ),
        (
            "workload-kinds-server",
            vec![
                sample(
                    "/apis/work.example.com/v1/namespaces/default/workloads",
                    ("work.example.com/v1", "Workload"),
                    &json!({"image": "a"}),
                    &json!({"image": "b"}),
                    [
                        json!({"replicas": 1}),
                        json!({"replicas": 2, "selector": "a=b"}),
                    ],
                ),
                sample(
                    "/apis/work.example.com/v1beta1/namespaces/default/workloads",
                    ("work.example.com/v1beta1", "Workload"),
                    &json!({"image": "a"}),
                    &json!({"image": "b"}),
                    [json!({"size": 1}), json!({"size": 2})],
                ),
            ],
        ),
    ];
    let with_namespaces = servers.into_iter().map(|(server, mut kinds)| {
        kinds.push(namespace());
        (server, kinds)
    });
    with_namespaces.collect()
}

/// The paths of the resources with a status, without namespaces.
async fn served(client: &Client) -> BTreeSet<String> {
    let core = client.get("/api").await.json();
    let versions = core["versions"].as_array().unwrap().iter();
    let mut groups: Vec<String> = versions
        .map(|version| format!("/api/{}", version.as_str().unwrap()))
        .collect();
    let listed = client.get("/apis").await.json();
    for group in listed["groups"].as_array().unwrap() {
        let versions = group["versions"].as_array().unwrap();
        let paths = versions
            .iter()
            .map(|version| format!("/apis/{}", version["groupVersion"].as_str().unwrap()));
        groups.extend(paths);
    }
    let mut found = BTreeSet::new();
    for group in groups {
        let list = client.get(&group).await.json();
        let names = list["resources"].as_array().unwrap().iter();
        let names = names.filter_map(|resource| resource["name"].as_str()?.strip_suffix("/status"));
        found.extend(names.map(|name| format!("{group}/{name}")));
    }
    found
}

/// An object without what every write changes.
fn without_version(object: &Value) -> Value {
    let mut object = object.clone();
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.remove("resourceVersion");
    meta.remove("managedFields");
    object
}

/// Sets the fields of `change` in a copy of an object, one object deep.
fn changed(object: &Value, change: &Value) -> Value {
    let mut object = object.clone();
    for (name, fields) in change.as_object().into_iter().flatten() {
        for (field, value) in fields.as_object().into_iter().flatten() {
            object[name][field] = value.clone();
        }
    }
    object
}

/// Sets the status, or removes it if it is null.
fn with_status(object: &Value, status: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().unwrap();
    fields.remove("status");
    if !status.is_null() {
        fields.insert("status".to_owned(), status.clone());
    }
    object
}

async fn check_kind(client: &Client, sample: &Sample) {
    let Sample {
        path,
        object,
        change,
        status: [first, second],
    } = sample;
    let ok = |answer: Answer| {
        assert!(
            matches!(answer.code, 200 | 201),
            "{path}: {}",
            answer.text()
        );
        answer.json()
    };
    let created = ok(client.post(path, object).await);
    assert_ne!(
        created["status"], *first,
        "{path}: a create drops the status"
    );
    let (item, status) = (format!("{path}/a"), format!("{path}/a/status"));
    // The status endpoint writes the status. No other field of the request has an effect.
    let mut metadata = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/x"],
        "generation": 70,
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u"}]}});
    if *path == "/api/v1/namespaces" {
        // That of namespaces writes metadata too, see `namespaces.rs`.
        metadata = json!({});
    }
    let sent = changed(&changed(&created, change), &metadata);
    let put = ok(client.put(&status, &with_status(&sent, first)).await);
    let expected = with_status(&without_version(&created), first);
    assert_eq!(without_version(&put), expected, "{path}: PUT of the status");
    let mut patch = changed(&changed(&json!({}), change), &metadata);
    patch["status"] = second.clone();
    let patched = ok(client.merge(&status, &patch).await);
    let shown = with_status(&without_version(&patched), &Value::Null);
    assert_eq!(
        shown,
        with_status(&expected, &Value::Null),
        "{path}: PATCH of the status"
    );
    let put = ok(client.put(&status, &with_status(&patched, first)).await);
    assert_eq!(
        without_version(&put),
        expected,
        "{path}: PUT of the first status"
    );
    // The main endpoint writes the rest.
    let only_status = ok(client.merge(&item, &json!({"status": second})).await);
    assert_eq!(
        only_status, put,
        "{path}: PATCH of nothing but the status changes nothing"
    );
    let own = json!({"metadata": {"annotations": {"a": "b"}}});
    let sent = changed(&changed(&put, change), &own);
    let main = ok(client.put(&item, &with_status(&sent, second)).await);
    let mut expected = without_version(&with_status(&sent, first));
    if !change.is_null() && !expected["metadata"]["generation"].is_null() {
        expected["metadata"]["generation"] = json!(2);
    }
    assert_eq!(without_version(&main), expected, "{path}: PUT of the rest");
    let mut patch = json!({"metadata": {"annotations": {"a": "c"}}});
    patch["status"] = second.clone();
    let patched = ok(client.merge(&item, &patch).await);
    expected["metadata"]["annotations"]["a"] = json!("c");
    assert_eq!(
        without_version(&patched),
        expected,
        "{path}: PATCH of the rest"
    );
    assert_eq!(
        ok(client.get(&status).await),
        patched,
        "{path}: GET of the status is the object"
    );
    // The next version of the kind has no object of this name.
    ok(client
        .delete(&item, &json!({"gracePeriodSeconds": 0}))
        .await);
}

async fn c_081_status_and_the_rest_are_written_apart_in_every_kind(on: Backend) {
    let ports = std::fs::read_dir(repository().join("tests/ports")).unwrap();
    let ports = ports.map(|port| port.unwrap().file_name().into_string().unwrap());
    let servers = ports.map(|port| format!("{port}-kinds-server"));
    let servers: BTreeSet<String> = servers.chain(["wardle-server".to_owned()]).collect();
    let sampled = samples().into_iter().map(|(server, _)| server.to_owned());
    assert_eq!(sampled.collect::<BTreeSet<_>>(), servers);
    for (binary, kinds) in samples() {
        let cluster = Cluster::start_binary(on, binary);
        let client = cluster.client();
        let paths = kinds
            .iter()
            .map(|kind| kind.path.replace("/namespaces/default/", "/"));
        let mut served = served(&client).await;
        // Their controllers write the status meanwhile; `definitions.rs` and `aggregation` have tests of their own.
        served.remove(crate::custom::CRDS);
        served.remove(crate::aggregation::SERVICES);
        assert_eq!(served, paths.collect(), "{binary}");
        for kind in &kinds {
            check_kind(&client, kind).await;
        }
    }
}
