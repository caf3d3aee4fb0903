//! What the requests of generated methods send: paths, and bodies of other kinds.

use serde_json::{Value, json};

use super::super::tests::{Pot, pot_json, pots};
use super::*;
use crate::controller::Lease;
use crate::scripted::Script;

fn lease() -> Lease {
    serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": {}})).unwrap()
}

#[tokio::test]
async fn requests_go_to_the_subresource_with_the_kind_of_the_body() {
    let mut script = Script::new();
    for _ in 0..8 {
        script = script.answer(200, &pot_json("a", "2"));
    }
    let script = script.answer(
        200,
        r#"{"items":[{"metadata":{"name":"b"},"spec":{"litres":1}}]}"#,
    );
    let pots = pots(script.clone());
    let body = lease();
    let got: Value = pots.get_as(Some("lid"), "a").await.unwrap();
    assert_eq!(got["spec"]["litres"], 2);
    let _: Pot = pots
        .create_as(Some(("lid", "a")), &body)
        .dry_run()
        .await
        .unwrap();
    let _: Pot = pots.create_as(None, &body).await.unwrap();
    let _: Pot = pots.update_as(Some("lid"), "a", &body).await.unwrap();
    let _: Pot = pots.update_as(None, "a", &body).await.unwrap();
    let patch = Patch::merge(&json!({}));
    let _: Pot = pots.patch_as(Some("lid"), "a", patch).await.unwrap();
    let apply = pots.apply_as::<Lease, Pot>(Some("lid"), "a", &json!({}), "me");
    apply.force().await.unwrap();
    pots.connect(Method::POST, "lid", "a")
        .bytes()
        .await
        .unwrap();
    let list = pots
        .list_as::<Pot>(Some(("lids", "a")))
        .limit(3)
        .await
        .unwrap();
    assert_eq!(list.items[0].name, "b");

    let lines: Vec<String> = script
        .sent()
        .iter()
        .map(|sent| {
            let path = sent
                .uri
                .strip_prefix("/apis/kitchen.example.com/v1/namespaces/ns/pots")
                .unwrap();
            let body: Value = serde_json::from_str(&sent.body).unwrap_or_default();
            format!(
                "{} {path} {}",
                sent.method,
                body["kind"].as_str().unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "GET /a/lid ",
            "POST /a/lid?dryRun=All Lease",
            "POST  Lease",
            "PUT /a/lid Lease",
            "PUT /a Lease",
            "PATCH /a/lid ",
            "PATCH /a/lid?fieldManager=me&force=true Lease",
            "POST /a/lid ",
            "GET /a/lids?limit=3 ",
        ]
    );
}

#[tokio::test]
async fn names_cannot_change_the_path() {
    let script = Script::new();
    let pots = pots(script.clone());
    assert!(pots.get_as::<Value>(Some("lid"), "a/b").await.is_err());
    assert!(pots.list_as::<Pot>(Some(("lid", ".."))).await.is_err());
    let _ = pots
        .create_as::<Lease, Pot>(Some(("lid", "")), &lease())
        .await
        .unwrap_err();
    assert!(script.sent().is_empty());
}
