//! Subresources with a handler of the program: bodies and responses of kinds of their own.

use serde_json::json;

use crate::*;

on_each_backend![
    a_handler_is_listed_and_takes_its_verbs_only,
    a_handler_responds_with_a_status_or_with_an_object,
    a_body_of_a_handler_is_checked_like_an_object,
    a_put_on_a_handler_has_preconditions,
    a_handler_of_an_object_that_does_not_exist_is_not_called,
    a_handler_changes_nothing_in_a_dry_run,
    a_body_of_a_handler_has_its_own_protobuf,
    a_handler_counts_concurrent_requests,
];

const GROUP: &str = "/apis/machine.example.com/v1";
const MACHINES: &str = "/apis/machine.example.com/v1/namespaces/default/machines";
const ITEM: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a";
const RESTART: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/restart";
const POWER: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/power";
const TOKEN: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/token";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const VERSION: &str = "machine.example.com/v1";

/// A server with the machine `a`, a client, and the machine.
async fn start(on: Backend) -> (Cluster, Client, Value) {
    let cluster = Cluster::start_binary(on, "machine-kinds-server");
    let client = cluster.client();
    let machine = json!({"apiVersion": VERSION, "kind": "Machine", "metadata": {"name": "a"},
        "spec": {"image": "x", "on": true}});
    let machine = created(&client, MACHINES, &machine).await;
    (cluster, client, machine)
}

fn restart() -> Value {
    json!({"apiVersion": VERSION, "kind": "Restart", "reason": "slow"})
}

fn power(on: bool) -> Value {
    json!({"apiVersion": VERSION, "kind": "PowerState", "metadata": {"name": "a"}, "on": on})
}

fn succeeded() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

async fn a_handler_is_listed_and_takes_its_verbs_only(on: Backend) {
    let (server, client, _) = start(on).await;
    let list = client.get(GROUP).await.json();
    let entry = |name: &str| {
        let mut entries = list["resources"].as_array().unwrap().iter();
        entries.find(|entry| entry["name"] == name).unwrap().clone()
    };
    let expected = |name: &str, kind: &str, verbs: &[&str]| {
        json!({"name": name, "singularName": "", "namespaced": true, "group": "machine.example.com",
            "version": "v1", "kind": kind, "verbs": verbs})
    };
    for (name, kind, verbs) in [
        ("machines/restart", "Restart", &["create"][..]),
        ("machines/power", "PowerState", &["get", "update"]),
        ("machines/token", "TokenRequest", &["create"]),
    ] {
        assert_eq!(entry(name), expected(name, kind, verbs));
    }
    let message = "the server does not allow this method on the requested resource";
    for answer in [
        client.get(RESTART).await,
        client.put(RESTART, &restart()).await,
        client.merge(POWER, &json!({"on": true})).await,
        client.post(POWER, &power(true)).await,
        client.delete(TOKEN, &Value::Null).await,
    ] {
        check_failure(&answer, 405, "MethodNotAllowed", message, json!({}));
    }
    let message = "the server could not find the requested resource";
    let answer = client.post(&format!("{RESTART}/more"), &restart()).await;
    check_failure(&answer, 404, "NotFound", message, json!({}));
    // Its requests are counted by its name, in the server that took them.
    client.post(RESTART, &restart()).await;
    let metrics = server.server().client().get("/metrics").await.text();
    let line = r#"apiserver_request_total{verb="POST",dry_run="",group="machine.example.com",version="v1",resource="machines",subresource="restart",scope="resource",component="apiserver",code="201"} 1"#;
    assert!(
        metrics.contains(line),
        "{:#?}",
        metrics
            .lines()
            .filter(|line| line.contains("restart"))
            .collect::<Vec<_>>()
    );
}

async fn a_handler_responds_with_a_status_or_with_an_object(on: Backend) {
    let (_server, client, machine) = start(on).await;
    let answer = client.post(RESTART, &restart()).await;
    check(&answer, 201, &succeeded());
    assert_eq!(answer.header("warning"), r#"299 - "a is restarted: slow""#);
    assert_eq!(client.get(ITEM).await.json()["status"]["restarts"], 1);
    let state = |on: bool| {
        json!({"kind": "PowerState", "apiVersion": VERSION, "metadata": {"name": "a", "namespace": "default",
            "uid": machine["metadata"]["uid"], "resourceVersion": "$RV"}, "on": on})
    };
    check(&client.get(POWER).await, 200, &state(true));
    check(&client.put(POWER, &power(false)).await, 200, &state(false));
    let now = client.get(ITEM).await.json();
    assert_eq!(
        (&now["spec"]["on"], &now["metadata"]["generation"]),
        (&json!(false), &json!(2))
    );
    let message = r#"machine "a" is switched off"#;
    let answer = client.post(RESTART, &restart()).await;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    // The program has given this handler its key.
    let asked = json!({"apiVersion": VERSION, "kind": "TokenRequest", "audiences": ["shop"]});
    let answer = client.post(TOKEN, &asked).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(
        answer.json()["token"],
        "a for shop by kubernetes-admin, with the key of this program"
    );
    assert_eq!(
        answer.json()["metadata"],
        json!({"name": "a", "namespace": "default"})
    );
}

async fn a_body_of_a_handler_is_checked_like_an_object(on: Backend) {
    let (_server, client, machine) = start(on).await;
    let with = |key: &str, value: Value| {
        let mut body = restart();
        body[key] = value;
        body
    };
    let why = "Required value";
    let message = format!(r#"Restart.machine.example.com "a" is invalid: reason: {why}"#);
    let causes = json!([{"reason": "FieldValueRequired", "message": why, "field": "reason"}]);
    let details =
        json!({"name": "a", "group": "machine.example.com", "kind": "Restart", "causes": causes});
    let answer = client
        .post(RESTART, &json!({"apiVersion": VERSION, "kind": "Restart"}))
        .await;
    check_failure(&answer, 422, "Invalid", &message, details);
    let message = "the name of the object (b) does not match the name on the URL (a)";
    let answer = client
        .post(RESTART, &with("metadata", json!({"name": "b"})))
        .await;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    let answer = client
        .post(RESTART, &with("metadata", json!({"namespace": "b"})))
        .await;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    let message = r#"strict decoding error: unknown field "speed""#;
    let strict = format!("{RESTART}?fieldValidation=Strict");
    let answer = client.post(&strict, &with("speed", json!(1))).await;
    assert_eq!(answer.code, 400);
    assert!(
        answer.text().contains(&message.replace('"', "\\\"")),
        "{}",
        answer.text()
    );
    // Other kinds, also that of the object.
    for body in [machine, power(true), json!([])] {
        let answer = client.post(RESTART, &body).await;
        assert_eq!(
            (answer.code, answer.json()["reason"].as_str()),
            (400, Some("BadRequest")),
            "{body}"
        );
    }
    let answer = client
        .call("POST", RESTART, &[("content-type", "text/html")], "x")
        .await;
    assert_eq!(answer.code, 415);
    // A PUT names its object.
    let mut unnamed = power(true);
    unnamed["metadata"] = json!({});
    assert_eq!(client.put(POWER, &unnamed).await.code, 400);
    assert_eq!(client.get(ITEM).await.json()["status"], Value::Null);
}

async fn a_put_on_a_handler_has_preconditions(on: Backend) {
    let (_server, client, machine) = start(on).await;
    let with = |metadata: Value, on: bool| {
        let mut body = power(on);
        for (key, value) in metadata.as_object().unwrap() {
            body["metadata"][key] = value.clone();
        }
        body
    };
    let uid = &machine["metadata"]["uid"];
    let version = &machine["metadata"]["resourceVersion"];
    let details = json!({"name": "a", "group": "machine.example.com", "kind": "machines"});
    let modified = r#"Operation cannot be fulfilled on machines.machine.example.com "a": the object has been modified; please apply your changes to the latest version and try again"#;

    let answer = client
        .put(POWER, &with(json!({"uid": "another"}), false))
        .await;
    assert_eq!(
        (answer.code, &answer.json()["reason"]),
        (409, &json!("Conflict"))
    );
    assert!(answer.text().contains("UID in precondition: another"));
    let dry_run = format!("{POWER}?dryRun=All");
    let stale = with(json!({"resourceVersion": "1"}), false);
    for path in [POWER, &dry_run] {
        let answer = client.put(path, &stale).await;
        check_failure(&answer, 409, "Conflict", modified, details.clone());
    }
    assert_eq!(client.get(ITEM).await.json(), machine);

    // Of many that start from the same object, one succeeds.
    let body = with(json!({"uid": uid, "resourceVersion": version}), false);
    let puts = (0..8).map(|_| client.put(POWER, &body));
    let answers = futures_util::future::join_all(puts).await;
    let count = |code: u16| answers.iter().filter(|answer| answer.code == code).count();
    assert_eq!((count(200), count(409)), (1, 7));
    // What a PUT responds with has the preconditions of the next one.
    let winner = answers.iter().find(|answer| answer.code == 200).unwrap();
    let mut next = winner.json();
    next["on"] = true.into();
    assert_eq!(client.put(POWER, &next).await.code, 200);
    let without = with(json!({"resourceVersion": "0"}), false);
    assert_eq!(client.put(POWER, &without).await.code, 200);
}

async fn a_handler_of_an_object_that_does_not_exist_is_not_called(on: Backend) {
    let (_server, client, _) = start(on).await;
    let message = r#"machines.machine.example.com "b" not found"#;
    let details = json!({"name": "b", "group": "machine.example.com", "kind": "machines"});
    let path = |sub: &str| format!("{MACHINES}/b/{sub}");
    let mut other = power(true);
    other["metadata"]["name"] = "b".into();
    for answer in [
        client.post(&path("restart"), &restart()).await,
        client.get(&path("power")).await,
        client.put(&path("power"), &other).await,
    ] {
        check_failure(&answer, 404, "NotFound", message, details.clone());
    }
}

async fn a_handler_changes_nothing_in_a_dry_run(on: Backend) {
    let (_server, client, machine) = start(on).await;
    let answer = client
        .post(&format!("{RESTART}?dryRun=All"), &restart())
        .await;
    check(&answer, 201, &succeeded());
    let answer = client
        .put(&format!("{POWER}?dryRun=All"), &power(false))
        .await;
    assert_eq!((answer.code, &answer.json()["on"]), (200, &json!(false)));
    check(&client.get(ITEM).await, 200, &machine);
    let answer = client
        .post(&format!("{RESTART}?dryRun=Some"), &restart())
        .await;
    assert_eq!(answer.code, 422, "{}", answer.text());
}

async fn a_body_of_a_handler_has_its_own_protobuf(on: Backend) {
    let (_server, client, _) = start(on).await;
    let accept = [("accept", PROTOBUF)];
    let shown = client.call("GET", POWER, &accept, "").await;
    assert_eq!((shown.code, shown.header("content-type")), (200, PROTOBUF));
    // The last field of the message, and its envelope: `on` is true, and becomes false.
    let mut sent = shown.body.to_vec();
    let field = sent
        .windows(2)
        .rposition(|pair| pair == [0x10, 1])
        .expect("the field `on`");
    sent[field + 1] = 0;
    let headers = [("accept", PROTOBUF), ("content-type", PROTOBUF)];
    let answer = client.call("PUT", POWER, &headers, sent).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, PROTOBUF),
        "{}",
        answer.text()
    );
    assert_eq!(client.get(ITEM).await.json()["spec"]["on"], false);
    // Neither the object nor the body of another subresource has a form in it. A Status always has one.
    assert_eq!(client.call("GET", ITEM, &accept, "").await.code, 406);
    let headers = [("content-type", PROTOBUF)];
    let answer = client
        .call("POST", RESTART, &headers, shown.body.clone())
        .await;
    assert!([400, 415].contains(&answer.code), "{}", answer.text());
}

async fn a_handler_counts_concurrent_requests(on: Backend) {
    let (_server, client, _) = start(on).await;
    let body = restart();
    let requests = (0..20).map(|_| client.post(RESTART, &body));
    for answer in futures_util::future::join_all(requests).await {
        check(&answer, 201, &succeeded());
    }
    // Each change is made again after a conflict.
    assert_eq!(client.get(ITEM).await.json()["status"]["restarts"], 20);
}
