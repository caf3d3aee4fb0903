//! coordination.k8s.io/v1 Lease.

use serde_json::{Value, json};

use super::BuiltIns;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn lease(spec: Value) -> Value {
    json!({"metadata": {"name": "lock"}, "spec": spec})
}

#[tokio::test]
async fn a_lease_is_taken_and_renewed() {
    let server = BuiltIns::new().await;
    let url = format!("{LEASES}/lock");
    let spec = json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "2026-01-02T03:04:05.000006Z", "leaseTransitions": 0});
    // PUT creates it.
    let created = server.object("PUT", &url, lease(spec.clone())).await;
    assert_eq!(created["spec"], spec);
    let row = server.row(LEASES).await;
    assert_eq!(
        (&row[0], &row[1]),
        (&json!(["Name", "lock"]), &json!(["Holder", "a"]))
    );
    let refused = server.refusal("PUT", &url, lease(spec.clone())).await;
    assert_eq!(
        refused,
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    let (_, mut renewed) = server.send("GET", &url, &Value::Null).await;
    renewed["spec"]["renewTime"] = json!("2026-01-02T03:04:06.5Z");
    let renewed = server.object("PUT", &url, renewed).await;
    assert_eq!(renewed["spec"]["renewTime"], "2026-01-02T03:04:06.500000Z");
    let empty = json!({"metadata": {"name": "free"}});
    let empty = server.object("POST", LEASES, empty).await;
    assert_eq!(empty["spec"], json!({}));
    server.stop().await;
}

#[tokio::test]
async fn the_spec_of_a_lease_is_checked() {
    let server = BuiltIns::new().await;
    let check = async |spec: Value, expected: &str| {
        assert_eq!(server.refusal("POST", LEASES, lease(spec)).await, expected);
    };
    check(
        json!({"leaseDurationSeconds": 0}),
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    )
    .await;
    check(
        json!({"leaseTransitions": -1}),
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    )
    .await;
    check(
        json!({"preferredHolder": "b"}),
        "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
    )
    .await;
    check(json!({"strategy": "Youngest"}), "spec.strategy.strategy: Unsupported value: \"Youngest\": supported values: \"OldestEmulationVersion\"").await;
    let spec = json!({"strategy": "example.com/own", "preferredHolder": "b"});
    let (code, _) = server.send("POST", LEASES, &lease(spec)).await;
    assert_eq!(code, 201);
    server.stop().await;
}
