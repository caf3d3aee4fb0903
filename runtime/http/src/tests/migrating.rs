//! `POST /storage/migrate`.

use super::*;

/// An API, with objects planted in its store.
async fn api_with(objects: &[(&str, &str)]) -> Api {
    let (api, registry) = api_and_registry(|registry| registry.kind::<Flunder>()).await;
    let catalog = registry.catalog();
    let endpoint = catalog.endpoint("wardle.example.com", "v1alpha1", "flunders");
    let store = &endpoint.expect("the kind").resource().kind.store;
    for (name, value) in objects {
        let key = format!("/registry/wardle.example.com/flunders/default/{name}");
        let created = store.create(&key, Bytes::from((*value).to_owned()), None);
        created.await.unwrap();
    }
    api
}

/// An object as another program may store it: with its fields in another order.
const STALE: &str = r#"{"apiVersion":"wardle.example.com/v1alpha1","kind":"Flunder","metadata":{"name":"a","namespace":"default","uid":"u"}}"#;

const NAMESPACES: &str = r#"{"resource":"namespaces","storageVersion":"v1","objects":1,"rewritten":0,"failed":0,"storedVersions":{"v1":1},"complete":true}"#;
const SUCCESS: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;

#[tokio::test]
async fn reports_are_lines_and_end_with_a_status() {
    let api = api_with(&[("a", STALE)]).await;
    let check = async |query: &str, rewritten: u64, resources: &[&str]| {
        let answer = post(&api, &format!("/storage/migrate{query}"), "")
            .await
            .expect(200);
        assert_eq!(answer.header("content-type"), "application/json");
        let flunders = format!(
            r#"{{"resource":"flunders.wardle.example.com","storageVersion":"wardle.example.com/v1alpha1","objects":1,"rewritten":{rewritten},"failed":0,"storedVersions":{{"wardle.example.com/v1alpha1":1}},"complete":true}}"#
        );
        let lines: Vec<&str> = answer.body.lines().collect();
        let expected = [resources, &[&*flunders, SUCCESS]].concat();
        assert_eq!(lines, expected, "{query}");
    };
    let only = "?resource=flunders.wardle.example.com";
    check(&format!("{only}&dryRun=All"), 1, &[]).await;
    check("?maxWritesPerSecond=1000", 1, &[NAMESPACES]).await;
    check(only, 0, &[]).await;
}

#[tokio::test]
async fn failures_are_told_at_the_end() {
    let api = api_with(&[("a", STALE), ("b", "{")]).await;
    let answer = post(&api, "/storage/migrate", "").await.expect(200);
    let last = answer.body.lines().last().unwrap();
    let status: Value = serde_json::from_str(last).unwrap();
    assert_eq!(status["status"], "Failure");
    assert_eq!(status["code"], 500);
    let message = status["message"].as_str().unwrap();
    let expected = "1 objects could not be rewritten; the first: /registry/wardle.example.com/flunders/default/b: ";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn wrong_requests_are_refused() {
    let api = api().await;
    get(&api, "/storage/migrate").await.expect(405);
    for (query, expected) in [
        (
            "resource=pods",
            "no objects of the resource \"pods\" are stored; there are: namespaces, fischers",
        ),
        (
            "dryRun=true",
            "dryRun is \"true\"; the only value is \"All\"",
        ),
        (
            "maxWritesPerSecond=0",
            "maxWritesPerSecond is \"0\", which is not a number from 1 to 4294967295",
        ),
        ("maxWritesPerSecond=", "maxWritesPerSecond is \"\", which"),
    ] {
        let message = post(&api, &format!("/storage/migrate?{query}"), "")
            .await
            .expect(400)
            .message();
        assert!(message.starts_with(expected), "{message}");
    }
}
