//! The verbs with scripted answers: requests, retries, and results.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiloom_meta::kind::verbs;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    ApiObject, ApiResource, Client, Deletion, FieldValidation, Kind, Namespaced, Patch,
    Propagation, ResourceClient, RetryRules, Scale,
};
use crate::error::Error;
use crate::object::HasMetadata;
use crate::scripted::{End, Script};
use crate::transport::TransportError;

/// A kind without macros: what a wrapper of another crate's type has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pot {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) litres: u32,
}

#[derive(Serialize, Deserialize)]
struct PotJson {
    metadata: apiloom_meta::ObjectMeta,
    spec: PotSpec,
}

#[derive(Serialize, Deserialize)]
struct PotSpec {
    litres: u32,
}

impl Serialize for Pot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let json = PotJson {
            metadata: apiloom_meta::ObjectMeta {
                name: text(&self.name),
                resource_version: text(&self.version),
                ..Default::default()
            },
            spec: PotSpec {
                litres: self.litres,
            },
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pot {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = PotJson::deserialize(deserializer)?;
        Ok(Self {
            name: json.metadata.name.unwrap_or_default(),
            version: json.metadata.resource_version.unwrap_or_default(),
            litres: json.spec.litres,
        })
    }
}

impl HasMetadata for Pot {
    fn namespace(&self) -> &str {
        "ns"
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn uid(&self) -> &str {
        ""
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
    fn label(&self, _: &str) -> Option<&str> {
        None
    }
    fn owner_uids(&self) -> Vec<&str> {
        Vec::new()
    }
}

all_verbs!(Pot);
impl apiloom_meta::kind::NamespacedKind for Pot {}
impl verbs::HasStatus for Pot {}
impl verbs::HasScale for Pot {}

impl ApiObject for Pot {}

impl Kind for Pot {
    fn api_resource() -> ApiResource {
        ApiResource::new("kitchen.example.com", "v1", "Pot", "pots")
    }
}

pub(super) fn pots(script: Script) -> ResourceClient<Pot, Namespaced> {
    Client::new(script).namespaced("ns")
}

pub(super) fn pot_json(name: &str, version: &str) -> String {
    format!(
        r#"{{"apiVersion":"kitchen.example.com/v1","kind":"Pot","metadata":{{"name":"{name}","resourceVersion":"{version}"}},"spec":{{"litres":2}}}}"#
    )
}

fn status(code: u16, reason: &str) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code})
        .to_string()
}

fn pot(name: &str) -> Pot {
    Pot {
        name: name.to_owned(),
        version: String::new(),
        litres: 2,
    }
}

const POTS: &str = "/apis/kitchen.example.com/v1/namespaces/ns/pots";

#[tokio::test]
async fn every_verb_has_its_path_and_body() {
    let object = pot_json("a", "2");
    let mut script = Script::new();
    for _ in 0..10 {
        script = script.answer(200, &object);
    }
    let script = script.answer(200, r#"{"spec":{"replicas":3}}"#);
    let pots = pots(script.clone());
    let a = pot("a");
    pots.get("a").resource_version("0").await.unwrap();
    let create = pots.create(&a).dry_run().field_manager("me");
    create
        .field_validation(FieldValidation::Strict)
        .await
        .unwrap();
    pots.update(&a).await.unwrap();
    pots.update_status(&a).await.unwrap();
    pots.patch("a", Patch::merge(&json!({"spec": 1})))
        .await
        .unwrap();
    let test = json!([{"op": "test", "path": "/a", "value": 1}]);
    pots.patch_status("a", Patch::json(&test)).await.unwrap();
    pots.patch("a", Patch::strategic(&json!({}))).await.unwrap();
    pots.apply(
        &json!({"metadata": {"name": "a"}, "spec": {"litres": 2}}),
        "me",
    )
    .force()
    .await
    .unwrap();
    pots.apply_status(&json!({"metadata": {"name": "a"}, "status": 1}), "me")
        .await
        .unwrap();
    let delete = pots
        .delete("a")
        .uid("U")
        .propagation(Propagation::Foreground);
    let deleted = delete.grace_period_seconds(5).dry_run().await.unwrap();
    assert_eq!(
        deleted,
        Deletion::Object(Box::new(serde_json::from_str(&object).unwrap()))
    );
    let scaled = pots.scale().update("a", &Scale::new("a", 3)).await.unwrap();
    assert_eq!(scaled.spec.replicas, 3);

    let found: Vec<(String, Value)> = script
        .sent()
        .iter()
        .map(|sent| {
            let path = sent.uri.strip_prefix(POTS).unwrap();
            let media = sent.headers.get("content-type");
            let media = media.map_or("", |media| media.to_str().unwrap());
            let media = media.strip_prefix("application/").unwrap_or(media);
            let body = serde_json::from_str(&sent.body).unwrap_or(Value::Null);
            (format!("{} {path} {media}", sent.method), body)
        })
        .collect();
    let whole = json!({
        "apiVersion": "kitchen.example.com/v1", "kind": "Pot", "metadata": {"name": "a"}, "spec": {"litres": 2},
    });
    let mut of_status = whole.clone();
    of_status.as_object_mut().unwrap().remove("spec");
    of_status["status"] = json!(1);
    let expected: Vec<(String, Value)> = [
        ("GET /a?resourceVersion=0 ", Value::Null),
        ("POST ?dryRun=All&fieldManager=me&fieldValidation=Strict json", whole.clone()),
        ("PUT /a json", whole.clone()),
        ("PUT /a/status json", whole.clone()),
        ("PATCH /a merge-patch+json", json!({"spec": 1})),
        ("PATCH /a/status json-patch+json", test),
        ("PATCH /a strategic-merge-patch+json", json!({})),
        ("PATCH /a?fieldManager=me&force=true apply-patch+yaml", whole),
        ("PATCH /a/status?fieldManager=me apply-patch+yaml", of_status),
        ("DELETE /a json", json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5, "propagationPolicy": "Foreground",
            "preconditions": {"uid": "U"}, "dryRun": ["All"],
        })),
        ("PUT /a/scale json", json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3},
            "status": {"replicas": 0},
        })),
    ]
    .map(|(line, body)| (line.to_owned(), body))
    .into();
    assert_eq!(found, expected);
    let headers = &script.sent()[0].headers;
    assert_eq!(headers["accept"], "application/json");
    assert!(
        headers["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("apiloom-client/")
    );
}

#[tokio::test]
async fn writes_are_reported_with_their_resource_and_version() {
    let scale =
        r#"{"metadata":{"name":"a","resourceVersion":"5"},"spec":{},"status":{"replicas":0}}"#;
    let done = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
    let script = Script::new()
        .answer(200, &pot_json("a", "1"))
        .answer(201, &pot_json("a", "2"))
        .answer(409, &status(409, "Conflict"))
        .answer(200, &pot_json("a", "3"))
        .answer(200, &pot_json("a", "4"))
        .answer(200, scale)
        .answer(200, done)
        .answer(200, &pot_json("a", "6"));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let report = |list: &Arc<Mutex<Vec<String>>>| {
        let list = Arc::clone(list);
        move |resource: &apiloom_meta::GroupResource, version: &str| {
            list.lock().unwrap().push(format!("{resource} {version}"));
        }
    };
    let client = Client::new(script).on_write(report(&reported));
    let pots = client
        .on_write(report(&reported))
        .namespaced::<Pot>("kitchen");
    let pot = pots.get("a").await.unwrap();
    pots.create(&pot).await.unwrap();
    pots.update(&pot).await.unwrap_err();
    pots.update_status(&pot).await.unwrap();
    pots.patch("a", Patch::merge(&json!({}))).await.unwrap();
    pots.scale()
        .patch("a", Patch::merge(&json!({})))
        .await
        .unwrap();
    pots.delete("a").await.unwrap();
    pots.delete("a").await.unwrap();
    // Once for each of the two hooks.
    let expected = ["2", "3", "4", "5", "6"].map(|version| {
        let line = format!("pots.kitchen.example.com {version}");
        [line.clone(), line]
    });
    assert_eq!(*reported.lock().unwrap(), expected.concat());
}

#[tokio::test]
async fn names_that_make_other_paths_are_not_sent() {
    let script = Script::new();
    let pots = pots(script.clone());
    for name in ["", "..", "a/status"] {
        let error = pots.delete(name).await.unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error}");
    }
    let everywhere = Client::new(script.clone()).namespaced::<Pot>("");
    assert!(everywhere.list().await.is_err());
    assert_eq!(script.lines(), [""; 0]);
}

#[tokio::test]
async fn deletions_say_what_the_server_said() {
    let done = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a"}}"#;
    let deletion = pots(Script::new().answer(200, done)).delete("a").await;
    assert!(matches!(deletion.unwrap(), Deletion::Done(_)));
    let list = format!(r#"{{"items":[{}]}}"#, pot_json("a", "2"));
    let script = Script::new().answer(200, &list).answer(200, done);
    let pots = pots(script.clone());
    let deleted = pots
        .delete_collection()
        .labels("a=b")
        .dry_run()
        .await
        .unwrap();
    assert_eq!(deleted.items.len(), 1);
    assert_eq!(pots.delete_collection().await.unwrap().items.len(), 0);
    assert!(script.lines()[0].ends_with("pots?labelSelector=a%3Db"));
}

#[tokio::test]
async fn a_missing_object_is_an_error_or_none() {
    let missing = status(404, "NotFound");
    let script = Script::new().answer(404, &missing).answer(404, &missing);
    let pots = pots(script);
    assert!(pots.get("a").await.unwrap_err().is_not_found());
    assert_eq!(pots.get("a").optional().await.unwrap(), None);
}

#[tokio::test]
async fn a_failure_with_a_code_of_success_is_a_failure() {
    let script = Script::new().answer(200, &status(409, "Conflict"));
    assert!(pots(script).get("a").await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn an_answer_of_another_form_is_shown_in_part() {
    let body = r#"{"metadata":{"name":"a"},"spec":{"litres":"two"}}"#;
    let error = pots(Script::new().answer(200, body))
        .get("a")
        .await
        .unwrap_err();
    let Error::Decode(error) = error else {
        panic!("{error}")
    };
    assert_eq!((&*error.path, &*error.kind), (&*format!("{POTS}/a"), "Pot"));
    // Without the texts of values: it could be a Secret.
    let form = r#"{"metadata":{"name":"…"},"spec":{"litres":"…"}}"#;
    assert_eq!(error.excerpt, form);
}

#[tokio::test]
async fn a_path_that_could_mean_another_is_not_sent() {
    let script = Script::new().answer(200, "{}").answer(200, "{}");
    let client = Client::new(script.clone());
    for path in ["/api/v1/../../x", "//other/x", "/a b", "x"] {
        let error = client.request(http::Method::GET, path).await.unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error}");
    }
    let request = client.request(http::Method::GET, "/logs?a=b");
    request.query("c", "d e").await.unwrap();
    client
        .request(http::Method::GET, "/logs")
        .query("c", "d")
        .await
        .unwrap();
    assert_eq!(script.lines(), ["GET /logs?a=b&c=d%20e", "GET /logs?c=d"]);
    assert!(
        Client::builder(script)
            .base_path("/a/../b")
            .build()
            .is_err()
    );
}

#[tokio::test]
async fn answers_over_the_limit_are_errors_and_not_retried() {
    let script = Script::new().pieces(&["{\"metadata\":", "{}}"], End::Open);
    let client = Client::builder(script.clone()).max_response_bytes(12);
    let pots = client.build().unwrap().namespaced::<Pot>("ns");
    let error = pots.get("a").await.unwrap_err();
    assert!(
        error.to_string().contains("longer than 12 bytes"),
        "{error}"
    );
    assert_eq!(script.lines().len(), 1);
}

#[tokio::test]
async fn an_object_has_the_limit_of_objects_and_a_list_that_of_lists() {
    let long = "x".repeat(16 << 20);
    let object = format!(r#"{{"metadata":{{"annotations":{{"a":"{long}"}}}}}}"#);
    let error = pots(Script::new().answer(200, &object)).get("a").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("longer than 16777216 bytes"), "{error}");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[],"note":"{long}"}}"#);
    let script = Script::new().answer(200, &list).answer(200, &list);
    assert!(pots(script.clone()).list().await.is_ok());
    let client = Client::builder(script).max_list_bytes(1 << 20);
    let pots = client.build().unwrap().namespaced::<Pot>("ns");
    let error = pots.list().await.unwrap_err().to_string();
    assert!(error.contains("max_list_bytes"), "{error}");
}

#[tokio::test]
async fn endless_pages_are_an_error() {
    let empty = |token: usize| page(&[], &format!("T{token}"));
    let script = (0..17).fold(Script::new(), |script, token| {
        script.answer(200, &empty(token))
    });
    let error = pots(script).list().all().await.unwrap_err().to_string();
    assert!(error.contains("17 pages in a row"), "{error}");
    let script = (0..17).fold(Script::new(), |script, token| {
        script.answer(200, &empty(token))
    });
    let pages: Vec<_> = pots(script).list().pages().collect().await;
    assert!(pages.len() == 17 && pages[16].is_err());
    // Pages with objects: all together have the limit of a list.
    let full = |token: usize| page(&["a"], &format!("T{token}"));
    let script = (0..5).fold(Script::new(), |script, token| {
        script.answer(200, &full(token))
    });
    let client = Client::builder(script).max_list_bytes(4 * full(0).len());
    let pots = client.build().unwrap().namespaced::<Pot>("ns");
    let error = pots.list().all().await.unwrap_err().to_string();
    assert!(error.contains("max_list_bytes"), "{error}");
}

#[tokio::test]
async fn trap_17_lists_keep_the_objects_that_can_be_decoded() {
    let bad =
        r#"{"metadata":{"namespace":"ns","name":"b","resourceVersion":"3"},"spec":{"litres":-1}}"#;
    let list = format!(
        r#"{{"kind":"PotList","metadata":{{"resourceVersion":"9"}},"items":[{},{bad},{}]}}"#,
        pot_json("a", "2"),
        pot_json("c", "4")
    );
    let script = Script::new().answer(200, &list).answer(200, &list);
    let pots = pots(script);
    let error = pots.list().await.unwrap_err();
    assert!(error.to_string().contains("(ns/b)"), "{error}");
    let list = pots.list().keep_undecodable().await.unwrap();
    let names: Vec<&str> = list.items.iter().map(|pot| &*pot.name).collect();
    assert_eq!((names, list.resource_version()), (vec!["a", "c"], "9"));
    let bad = &list.undecodable[0];
    assert_eq!((&*bad.name, &*bad.resource_version), ("b", "3"));
}

#[tokio::test]
async fn a_list_of_null_is_empty() {
    let script = Script::new().answer(200, r#"{"metadata":{"continue":""},"items":null}"#);
    let list = pots(script).list().await.unwrap();
    assert!(list.items.is_empty() && list.continue_token().is_none());
}

fn page(names: &[&str], next: &str) -> String {
    let items: Vec<String> = names.iter().map(|name| pot_json(name, "1")).collect();
    let items = items.join(",");
    format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{items}]}}"#)
}

#[tokio::test]
async fn pages_follow_their_tokens() {
    let script = Script::new()
        .answer(200, &page(&["a", "b"], "T 1"))
        .answer(200, &page(&["c"], ""));
    let stream = pots(script.clone())
        .list()
        .labels("x")
        .resource_version("5")
        .stream();
    let names: Vec<String> = stream.map_ok(|pot| pot.name).try_collect().await.unwrap();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(
        script.lines(),
        [
            format!("GET {POTS}?labelSelector=x&limit=500&resourceVersion=5"),
            format!("GET {POTS}?labelSelector=x&limit=500&continue=T%201"),
        ]
    );
}

#[tokio::test]
async fn a_token_that_expires_begins_the_list_again_without_pages() {
    let script = Script::new()
        .answer(200, &page(&["a", "b"], "T1"))
        .answer(410, &status(410, "Expired"))
        .answer(200, &page(&["a", "b", "c"], ""));
    let list = pots(script.clone()).list().limit(2).resource_version("5");
    assert_eq!(list.all().await.unwrap().items.len(), 3);
    assert_eq!(script.lines()[2], format!("GET {POTS}?resourceVersion=5"));
    // A stream has given objects out already.
    let script = Script::new()
        .answer(200, &page(&["a"], "T1"))
        .answer(410, &status(410, "Expired"));
    let found: Vec<_> = pots(script).list().stream().collect().await;
    assert_eq!(found.len(), 2);
    assert!(found[1].as_ref().unwrap_err().is_expired());
}

#[tokio::test]
async fn an_expired_first_page_is_an_error() {
    let script = Script::new().answer(410, &status(410, "Expired"));
    let list = pots(script.clone()).list().continue_from("T").all().await;
    assert!(list.unwrap_err().is_expired());
    assert_eq!(script.lines().len(), 1);
}

#[tokio::test]
async fn a_list_without_an_end_is_an_error() {
    let script = Script::new()
        .answer(200, &page(&["a"], "T"))
        .answer(200, &page(&["a"], "T"));
    let error = pots(script).list().all().await.unwrap_err();
    assert!(error.to_string().contains("same continue token"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn trap_37_a_post_is_sent_again_only_if_the_server_asks() {
    let retry = &[("retry-after", "1")];
    let refusal = status(429, "TooManyRequests");
    let script = Script::new()
        .answer_with(429, retry, &refusal)
        .answer_with(503, retry, "down")
        .answer(201, &pot_json("a", "2"));
    pots(script.clone()).create(&pot("a")).await.unwrap();
    assert_eq!(script.lines().len(), 3);
    let refusals = [
        (429, refusal),
        (500, String::new()),
        (503, String::new()),
        (504, String::new()),
    ];
    for (code, body) in refusals {
        let script = Script::new().answer(code, &body);
        let error = pots(script.clone()).create(&pot("a")).await.unwrap_err();
        assert_eq!((error.code(), script.lines().len()), (Some(code), 1));
    }
    for failure in [
        TransportError::new("reset"),
        TransportError::unsent("refused"),
    ] {
        let script = Script::new().fail(failure);
        let error = pots(script.clone()).create(&pot("a")).await.unwrap_err();
        assert!(matches!(error, Error::Transport(_)));
        assert_eq!(script.lines().len(), 1);
    }
    // An asked-for wait after another code is no permission.
    let script = Script::new().answer_with(409, retry, &status(409, "Conflict"));
    assert!(pots(script.clone()).create(&pot("a")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_get_is_sent_again_after_a_broken_connection() {
    let script = Script::new()
        .fail(TransportError::new("reset"))
        .pieces(&["{"], End::Broken)
        .answer(200, &pot_json("a", "2"));
    pots(script.clone()).get("a").await.unwrap();
    assert_eq!(script.lines().len(), 3);
    let mut script = Script::new();
    for _ in 0..4 {
        script = script.fail(TransportError::new("reset"));
    }
    let rules = RetryRules {
        max_retries: 3,
        ..RetryRules::default()
    };
    let client = Client::builder(script.clone())
        .retry(rules)
        .build()
        .unwrap();
    assert!(client.namespaced::<Pot>("ns").get("a").await.is_err());
    assert_eq!(script.lines().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_the_callers_decision() {
    let script = Script::new().answer_with(429, &[("retry-after", "3600")], "later");
    let error = pots(script).get("a").await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let script = Script::new().pieces(&["{"], End::Open);
    let began = tokio::time::Instant::now();
    let error = pots(script).get("a").await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)));
    assert_eq!(began.elapsed().as_secs(), 90);
}

#[tokio::test]
async fn trap_38_update_with_reads_again_after_a_conflict() {
    let conflict = status(409, "Conflict");
    let script = Script::new()
        .answer(200, &pot_json("a", "2"))
        .answer(409, &conflict)
        .answer(200, &pot_json("a", "3"))
        .answer(200, &pot_json("a", "4"));
    let pots = pots(script.clone());
    let updated = pots.update_with("a", |pot| pot.litres = 7).await.unwrap();
    assert_eq!(updated.version, "4");
    let body: Value = serde_json::from_str(&script.sent()[3].body).unwrap();
    assert_eq!(body["metadata"]["resourceVersion"], "3");
    assert_eq!(body["spec"]["litres"], 7);
}

#[tokio::test]
async fn trap_38_update_with_ends() {
    let mut script = Script::new();
    for _ in 0..5 {
        script = script
            .answer(200, &pot_json("a", "2"))
            .answer(409, &status(409, "Conflict"));
    }
    let error = pots(script.clone())
        .update_with("a", |_| ())
        .await
        .unwrap_err();
    assert!(error.is_conflict());
    assert!(error.to_string().contains("after 5 attempts"), "{error}");
    assert_eq!(script.lines().len(), 10);
}

#[tokio::test]
async fn warnings_and_settings_reach_their_places() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let warning = &[("warning", r#"299 - "v1 is deprecated""#)];
    let script = Script::new().answer_with(200, warning, &pot_json("a", "2"));
    let client = Client::builder(script.clone())
        .base_path("/k8s/clusters/c-1/")
        .user_agent("me/1")
        .default_namespace("mine")
        .header("impersonate-user", "jane")
        .on_warning(move |text| listener.lock().unwrap().push(text.to_owned()));
    let client = client.build().unwrap();
    client.default_namespaced::<Pot>().get("a").await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["v1 is deprecated"]);
    let sent = &script.sent()[0];
    assert!(
        sent.uri.starts_with("/k8s/clusters/c-1/apis/"),
        "{}",
        sent.uri
    );
    assert!(sent.uri.contains("/namespaces/mine/"), "{}", sent.uri);
    assert_eq!(sent.headers["user-agent"], "me/1");
    assert_eq!(sent.headers["impersonate-user"], "jane");
    assert!(
        Client::builder(Script::new())
            .header("a b", "")
            .build()
            .is_err()
    );
    assert!(
        Client::builder(Script::new())
            .base_path("k8s")
            .build()
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn every_attempt_of_a_request_is_counted() {
    let script = Script::new()
        .then(|| {
            let response = http::Response::builder().status(429);
            let response = response.header("retry-after", "1");
            Ok(response.body(crate::transport::Body::empty()).unwrap())
        })
        .answer(200, r#"{"metadata":{"name":"a"},"spec":{"litres":1}}"#)
        .fail(TransportError::new("connection reset"))
        .pieces(&[], End::Open);
    let requests = crate::metrics::RequestMetrics::new("api.example.com");
    let registry = crate::metrics::Registry::new();
    registry.register(requests.clone());
    let client = Client::builder(script).metrics(&requests).build().unwrap();
    let pots = client.namespaced::<Pot>("kitchen");
    pots.get("a").await.unwrap();
    pots.create(&Pot::default()).await.unwrap_err();
    let _watch = pots.watch().await.unwrap();
    let text = registry.text();
    let labels = r#"host="api.example.com",method"#;
    for line in [
        format!("rest_client_requests_total{{code=\"429\",{labels}=\"GET\"}} 1"),
        format!("rest_client_requests_total{{code=\"200\",{labels}=\"GET\"}} 2"),
        format!("rest_client_requests_total{{code=\"<error>\",{labels}=\"POST\"}} 1"),
        r#"rest_client_request_duration_seconds_bucket{host="api.example.com",verb="GET",le="0.005"} 3"#
            .to_owned(),
        r#"rest_client_request_duration_seconds_count{host="api.example.com",verb="POST"} 1"#
            .to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
