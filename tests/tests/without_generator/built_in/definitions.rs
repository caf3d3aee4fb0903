//! CustomResourceDefinitions: those that are generated for wardle, on a server without its kinds.

use std::time::{Duration, Instant};

use apiloom_tests::repository;
use serde_json::{Value, json};

use super::BuiltIns;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

/// The definition in a file.
fn generated(name: &str) -> Value {
    let path = repository().join(format!("examples/wardle/generated/crds/{name}.yaml"));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

async fn until_established(server: &BuiltIns, name: &str) {
    let started = Instant::now();
    loop {
        let (_, definition) = server
            .send("GET", &format!("{CRDS}/{name}"), &json!(null))
            .await;
        let conditions = definition["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if conditions.any(|one| one["type"] == "Established" && one["status"] == "True") {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{definition}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_definitions_of_wardle_are_served() {
    let server = BuiltIns::new().await;
    for name in ["flunders.wardle.example.com", "fischers.wardle.example.com"] {
        let (code, made) = server.send("POST", CRDS, &generated(name)).await;
        assert_eq!(code, 201, "{made}");
        until_established(&server, name).await;
    }
    let flunder = |name: &str, spec: Value| json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec});
    let made = server
        .object(
            "POST",
            FLUNDERS,
            flunder("a", json!({"reference": "b", "referenceType": "Flunder"})),
        )
        .await;
    assert_eq!(made["spec"]["reference"], "b");
    assert_eq!(made["kind"], "Flunder");
    let mistyped = flunder("c", json!({"reference": 1, "referenceType": "Flunder"}));
    let refusal = server.refusal("POST", FLUNDERS, mistyped).await;
    // The definition has rules, which are for objects of the right form.
    assert_eq!(
        refusal,
        "[spec.reference: Invalid value: \"integer\": spec.reference in body must be of type string: \"integer\", \
         <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
         existing errors to complete validation]"
    );
    assert_eq!(
        server.row(&format!("{FLUNDERS}/a")).await[0],
        json!(["Name", "a"])
    );
    let (code, _) = server
        .send(
            "DELETE",
            &format!("{CRDS}/flunders.wardle.example.com"),
            &json!(null),
        )
        .await;
    assert_eq!(code, 200);
    let started = Instant::now();
    while server.send("GET", FLUNDERS, &json!(null)).await.0 != 404 {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop().await;
}
