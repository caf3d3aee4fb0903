//! Several servers over one etcd: each sees the writes of the others, and clients can replace one by another.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod takeover;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use apiloom_tests::etcd::Etcd;
use apiloom_tests::network::Proxy;
use apiloom_tests::wardle::{FISCHERS, FLUNDERS, flunder};
use apiloom_tests::{Client, Server, Watch, build, created, is_cached};
use serde_json::{Value, json};

/// Timeout for an expected event.
const PATIENCE: Duration = Duration::from_secs(30);

/// In the keys of what is not an object: the lease and the records of the servers.
const OF_SERVERS: &str = "/apiloom/";

/// In the keys of the objects that a server makes itself, while tests run.
const APISERVICES: &str = "/apiregistration.k8s.io/apiservices/";

/// Whether a client of a test has made the object of a key, or the server before it was ready.
fn is_of_client(key: &str) -> bool {
    !key.contains(OF_SERVERS) && !key.contains(APISERVICES)
}

fn fischer(name: &str) -> Value {
    json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": name}})
}

fn over(etcd: &Etcd) -> Server {
    Server::start(&["--etcd-servers", &etcd.url()])
}

/// Opens a watch of everything after a list.
async fn watch(client: &Client) -> Watch {
    let list = client.get(FLUNDERS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    client
        .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={version}"))
        .await
}

/// The next event as `TYPE NAME`.
async fn next(watch: &mut Watch) -> String {
    let event = tokio::time::timeout(PATIENCE, watch.event()).await.unwrap();
    let name = event["object"]["metadata"]["name"].as_str().unwrap();
    format!("{} {name}", event["type"].as_str().unwrap())
}

#[tokio::test]
async fn what_one_replica_writes_the_other_reads_and_watches() {
    for release in Etcd::RELEASES {
        let etcd = Etcd::start(release);
        let (one, other) = (over(&etcd), over(&etcd));
        let (one, other) = (one.client(), other.client());
        let mut events = watch(&other).await;
        for round in 0..20 {
            let (writer, reader) = match round % 2 {
                0 => (&one, &other),
                _ => (&other, &one),
            };
            let name = format!("f{round}");
            let path = format!("{FLUNDERS}/{name}");
            let written = created(writer, FLUNDERS, &flunder(&name)).await;
            assert_eq!(reader.get(&path).await.json(), written);

            let patch = json!({"metadata": {"labels": {"round": name}}});
            let patched = reader.merge(&path, &patch).await.json();
            assert_eq!(writer.get(&path).await.json(), patched);

            assert_eq!(reader.delete(&path, &Value::Null).await.code, 200);
            assert_eq!(writer.get(&path).await.code, 404);
            for event in ["ADDED", "MODIFIED", "DELETED"] {
                assert_eq!(next(&mut events).await, format!("{event} {name}"));
            }
        }
    }
}

#[tokio::test]
async fn an_update_of_what_another_replica_changed_conflicts() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let (one, other) = (over(&etcd), over(&etcd));
    let (one, other) = (one.client(), other.client());
    let old = created(&one, FLUNDERS, &flunder("f")).await;
    let path = format!("{FLUNDERS}/f");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(other.merge(&path, &patch).await.code, 200);
    assert_eq!(one.put(&path, &old).await.code, 409);
    assert_eq!(one.post(FLUNDERS, &flunder("f")).await.code, 409);
}

/// Namespaces and the objects that admission reads are shared too.
#[tokio::test]
async fn a_namespace_that_one_replica_made_is_one_to_the_other() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let (one, other) = (over(&etcd), over(&etcd));
    let (one, other) = (one.client(), other.client());
    for round in 0..10 {
        let name = format!("n{round}");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        created(&one, "/api/v1/namespaces", &namespace).await;
        let path = format!("/apis/wardle.example.com/v1alpha1/namespaces/{name}/flunders");
        created(&other, &path, &flunder("f")).await;
    }
}

#[tokio::test]
async fn killing_a_replica_loses_nothing() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let (doomed, stays) = (over(&etcd), over(&etcd));
    let client = stays.client();
    let mut events = watch(&client).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let client = if writer % 2 == 0 { &doomed } else { &stays }.client();
            tokio::spawn(write_until_it_ends(client, writer))
        })
        .collect();
    // In the middle of the writes, with requests in flight.
    let mut seen = BTreeMap::new();
    while seen.len() < 100 {
        see(&mut events, &mut seen).await;
    }
    doomed.kill();
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    while !acknowledged.keys().all(|name| seen.contains_key(name)) {
        see(&mut events, &mut seen).await;
    }
    let list = client.get(FLUNDERS).await.json();
    let stored: BTreeMap<String, String> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(name_and_version)
        .collect();
    for (name, version) in &acknowledged {
        assert_eq!(stored.get(name), Some(version), "{name}");
        assert_eq!(seen.get(name), Some(version), "{name}");
    }
}

/// Creates objects until there are 100 or the server is gone; returns the acknowledged ones.
async fn write_until_it_ends(client: Client, writer: usize) -> Vec<(String, String)> {
    let mut acknowledged = Vec::new();
    for index in 0..100 {
        let client = client.clone();
        let object = flunder(&format!("w{writer}-{index}"));
        // A request to a server that is gone panics in the client, which must end this writer only.
        let answer = tokio::spawn(async move { client.post(FLUNDERS, &object).await }).await;
        match answer {
            Ok(answer) if answer.code == 201 => acknowledged.push(name_and_version(&answer.json())),
            Ok(answer) => panic!("{}", answer.text()),
            Err(_) => break,
        }
    }
    acknowledged
}

fn name_and_version(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    (text("name"), text("resourceVersion"))
}

/// Reads one event; each object is created once and at a later version than the one before.
async fn see(events: &mut Watch, seen: &mut BTreeMap<String, String>) {
    let event = tokio::time::timeout(PATIENCE, events.event())
        .await
        .unwrap();
    assert_eq!(event["type"], "ADDED");
    let (name, version) = name_and_version(&event["object"]);
    let number: u64 = version.parse().unwrap();
    let newest = seen.values().map(|version| version.parse().unwrap()).max();
    assert!(newest.is_none_or(|newest: u64| newest < number));
    assert_eq!(seen.insert(name, version), None);
}

#[tokio::test]
async fn objects_lie_where_kube_apiserver_keeps_them() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let server = over(&etcd);
    let client = server.client();
    created(&client, FLUNDERS, &flunder("f")).await;
    created(&client, FISCHERS, &fischer("g")).await;
    let service = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com";
    let started = Instant::now();
    while client.get(service).await.code != 200 {
        assert!(started.elapsed() < PATIENCE, "{service} was not made");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let entries = etcd.entries("/registry/");
    let keys = entries.iter().map(|(key, _)| key.as_str());
    let service = "/registry/apiregistration.k8s.io/apiservices/v1alpha1.wardle.example.com";
    assert!(keys.clone().any(|key| key == service));
    let keys: Vec<&str> = keys.filter(|key| is_of_client(key)).collect();
    assert_eq!(
        keys,
        [
            "/registry/namespaces/default",
            "/registry/namespaces/kube-node-lease",
            "/registry/namespaces/kube-public",
            "/registry/namespaces/kube-system",
            "/registry/wardle.example.com/fischers/g",
            "/registry/wardle.example.com/flunders/default/f",
        ]
    );
    for (key, value) in entries.iter().filter(|(key, _)| !key.contains(OF_SERVERS)) {
        assert_eq!(value["metadata"].get("resourceVersion"), None, "{key}");
        assert!(value["kind"].is_string() && value["apiVersion"].is_string());
    }
}

#[tokio::test]
async fn what_another_tool_writes_in_the_same_form_is_served() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let server = over(&etcd);
    let client = server.client();
    let mut events = watch(&client).await;
    created(&client, FLUNDERS, &flunder("ours")).await;
    let prefix = "/registry/wardle.example.com/flunders/default/";
    let (_, mut document) = etcd.entries(prefix).pop().unwrap();
    document["metadata"]["name"] = "theirs".into();
    document["metadata"]["uid"] = "7f4ae3a8-8a06-4f1c-9d8e-0b5f7c1d2e3f".into();
    etcd.put(&format!("{prefix}theirs"), &document);
    assert_eq!(next(&mut events).await, "ADDED ours");
    assert_eq!(next(&mut events).await, "ADDED theirs");
    let path = format!("{FLUNDERS}/theirs");
    let served = client.get(&path).await;
    assert_eq!(served.code, 200, "{}", served.text());
    let mut served = served.json();
    let version = served["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    assert!(version.is_some());
    assert_eq!(served, document);
    assert_eq!(client.delete(&path, &Value::Null).await.code, 200);
    assert_eq!(etcd.entries(prefix).len(), 1);
}

#[tokio::test]
async fn prefix_and_overrides_say_where_keys_lie() {
    let (etcd, other) = (Etcd::start(Etcd::NEWEST), Etcd::start(Etcd::NEWEST));
    let own = format!("wardle.example.com/fischers#{}", other.url());
    let server = Server::start(&[
        "--etcd-servers",
        &etcd.url(),
        "--etcd-servers-overrides",
        &own,
        "--etcd-prefix=/x/",
    ]);
    let client = server.client();
    created(&client, FLUNDERS, &flunder("f")).await;
    created(&client, FISCHERS, &fischer("g")).await;
    let keys = |etcd: &Etcd| {
        let entries = etcd.entries("/").into_iter();
        let keys = entries.map(|(key, _)| key);
        keys.filter(|key| is_of_client(key)).collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&etcd),
        [
            "/x/namespaces/default",
            "/x/namespaces/kube-node-lease",
            "/x/namespaces/kube-public",
            "/x/namespaces/kube-system",
            "/x/wardle.example.com/flunders/default/f"
        ]
    );
    assert_eq!(keys(&other), ["/x/wardle.example.com/fischers/g"]);
    let list = client.get(FISCHERS).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn readiness_follows_etcd() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let server = over(&etcd);
    let client = server.client();
    let check = async |probe: &str| {
        let names = client.get(&format!("/{probe}?verbose")).await.text();
        let names = names.lines().filter_map(|line| line.strip_prefix("[+]"));
        let names = names.filter(|line| line.starts_with("etcd"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(check("healthz").await, ["etcd ok"]);
    assert_eq!(check("livez").await, ["etcd ok"]);
    assert_eq!(check("readyz").await, ["etcd ok", "etcd-readiness ok"]);
    etcd.pause();
    assert_eq!(client.get("/readyz").await.code, 500);
    etcd.resume();
    let started = std::time::Instant::now();
    while client.get("/readyz").await.code != 200 {
        assert!(started.elapsed() < PATIENCE, "it does not get ready again");
    }
}

/// A server that starts on a slow network refuses requests for objects that it has not read yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_124_scans_wait_for_the_watch_cache_and_the_rest_does_not() {
    if !is_cached() {
        return;
    }
    let etcd = Etcd::start(Etcd::NEWEST);
    let mut document = flunder("f00");
    document["metadata"]["namespace"] = json!("default");
    document["metadata"]["annotations"] = json!({"large": "x".repeat(2 << 20)});
    for index in 0..30 {
        let name = format!("f{index:02}");
        document["metadata"]["name"] = json!(name);
        let key = format!("/registry/wardle.example.com/flunders/default/{name}");
        etcd.put(&key, &document);
    }
    let proxy = Proxy::start(etcd.address()).await;
    proxy.limit(Some(4 << 20));
    let server = Server::start(&["--etcd-servers", proxy.address()]);
    let client = server.client();
    let ready = client.get("/readyz?verbose").await;
    assert_eq!(ready.code, 500);
    assert!(ready.text().contains("[-]watch-cache"), "{}", ready.text());
    for query in [
        "",
        "?resourceVersion=0",
        "?limit=1&labelSelector=a%3Db",
        "?limit=1&fieldSelector=metadata.namespace%3Ddefault",
        "?watch=1",
        "?watch=1&resourceVersion=1",
    ] {
        let answer = client.get(&format!("{FLUNDERS}{query}")).await;
        assert_eq!(answer.code, 429, "{query}: {}", answer.text());
        let status = answer.json();
        assert_eq!(status["reason"], "TooManyRequests");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("storage is (re)initializing"),
            "{message}"
        );
        let seconds: u32 = answer.header("retry-after").parse().unwrap();
        assert!((1..=30).contains(&seconds), "{seconds}");
        assert_eq!(status["details"]["retryAfterSeconds"], seconds);
    }
    let (item, page, new) = (
        format!("{FLUNDERS}/f07"),
        format!("{FLUNDERS}?limit=1"),
        flunder("new"),
    );
    let (item, page, new, idle) = tokio::join!(
        client.get(&item),
        client.get(&page),
        client.post(FLUNDERS, &new),
        client.get(FISCHERS),
    );
    let codes = [&item, &page, &new, &idle].map(|answer| answer.code);
    assert_eq!(codes, [200, 200, 201, 200]);
    assert_eq!(
        client.get("/readyz").await.code,
        500,
        "all of this was meanwhile"
    );
    proxy.limit(None);
    let started = std::time::Instant::now();
    while client.get("/readyz").await.code != 200 {
        assert!(started.elapsed() < PATIENCE, "it does not get ready");
    }
    let list = client.get(FLUNDERS).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 31);
}

/// The error of a server that cannot start.
fn refusal(args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(build("wardle-server"))
        .args(args)
        .arg("--data-dir")
        .arg(dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let errors = text.lines().filter(|line| line.starts_with("error: "));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors.len(), 1, "{text}");
    errors[0].to_owned()
}

#[test]
fn an_etcd_that_cannot_be_reached_is_named() {
    // Nothing listens on the discard port of this address.
    let error = refusal(&["--etcd-servers=http://127.9.9.9:9"]);
    assert_eq!(
        error,
        "error: cannot open the store: no etcd could be reached within 10 s at http://127.9.9.9:9: \
         etcd at http://127.9.9.9:9: Connection refused (os error 111)"
    );
}

#[test]
fn https_without_an_authority_says_which_flag_is_missing() {
    let error = refusal(&["--etcd-servers=https://127.9.9.9:9"]);
    assert!(error.ends_with("(--etcd-cafile)"), "{error}");
}

#[test]
fn an_override_of_an_unknown_resource_is_refused() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let own = format!("wardle.example.com/whales#{}", etcd.url());
    let error = refusal(&[
        "--etcd-servers",
        &etcd.url(),
        "--etcd-servers-overrides",
        &own,
    ]);
    assert_eq!(
        error,
        "error: a store for whales.wardle.example.com, which is not registered"
    );
}

/// Clients get an error, and servers show the new etcd without a restart.
#[tokio::test]
async fn an_etcd_that_was_restored_is_served_as_it_is() {
    let mut etcd = Etcd::start(Etcd::NEWEST);
    let start = |flags: &[&str]| Server::start(&[&["--etcd-servers", &etcd.url()], flags].concat());
    let servers = [start(&[]), start(&["--watch-cache=false"])];
    let clients = servers.each_ref().map(Server::client);
    created(&clients[0], FLUNDERS, &flunder("kept")).await;
    etcd.kill();
    let backup = etcd.backup();
    etcd.restart();
    created_in_time(&clients[0], "lost").await;
    for number in 0..30 {
        created(&clients[1], FLUNDERS, &flunder(&format!("lost-{number}"))).await;
    }
    let mut watches = Vec::new();
    for client in &clients {
        watches.push(watch(client).await);
    }
    let known = clients[0].get(FLUNDERS).await.json();
    let known = known["metadata"]["resourceVersion"].as_str().unwrap();

    etcd.kill();
    etcd.restore(&backup);
    etcd.restart();
    for events in &mut watches {
        let event = tokio::time::timeout(PATIENCE, events.event())
            .await
            .unwrap();
        assert_eq!(
            (
                &event["type"],
                &event["object"]["code"],
                &event["object"]["reason"]
            ),
            (&json!("ERROR"), &json!(410), &json!("Expired")),
            "{event}"
        );
    }
    created_in_time(&clients[1], "new").await;
    for client in &clients {
        let begin = Instant::now();
        while client.get("/readyz").await.code != 200 {
            assert!(begin.elapsed() < PATIENCE);
        }
        let names = |list: &Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
            items.map(name).collect()
        };
        let list = client.get(FLUNDERS).await.json();
        assert_eq!(names(&list), ["kept", "new"]);
        let any = client
            .get(&format!("{FLUNDERS}?resourceVersion=0"))
            .await
            .json();
        assert_eq!(names(&any), ["kept", "new"]);
        assert_eq!(client.get(&format!("{FLUNDERS}/lost")).await.code, 404);
        // A client that returns later with an old revision gets an error as well.
        let mut late = client
            .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={known}"))
            .await;
        let status = &late.next().await.unwrap()["object"];
        assert_eq!(status["code"], json!(410), "{status}");
    }
    let mut events = watch(&clients[0]).await;
    created(&clients[1], FLUNDERS, &flunder("newer")).await;
    assert_eq!(next(&mut events).await, "ADDED newer");
}

/// An owner that was found absent may be back.
#[tokio::test]
async fn dependents_stay_whose_owner_a_restore_of_etcd_brings_back() {
    let mut etcd = Etcd::start(Etcd::NEWEST);
    let server = over(&etcd);
    let client = server.client();
    let [owner, dependent] = ["owner", "dependent"].map(|name| format!("{CONFIG_MAPS}/{name}"));
    let object = created(&client, CONFIG_MAPS, &config_map("owner", json!([]))).await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": object["metadata"]["uid"]}]);
    created(&client, CONFIG_MAPS, &config_map("dependent", reference)).await;
    etcd.kill();
    let backup = etcd.backup();
    etcd.restart();
    let begin = Instant::now();
    while client.delete(&owner, &Value::Null).await.code != 200 {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until_gone(&client, &dependent).await;
    etcd.kill();
    etcd.restore(&backup);
    etcd.restart();
    // It has read the restored objects.
    created_in_time(&client, "new").await;
    check_collects(&client, "later").await;
    for path in [owner, dependent] {
        assert_eq!(client.get(&path).await.code, 200, "{path}");
    }
}

/// Creates an object after etcd accepts writes again.
async fn created_in_time(client: &Client, name: &str) {
    let begin = Instant::now();
    while client.post(FLUNDERS, &flunder(name)).await.code != 201 {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, owners: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

async fn until_gone(client: &Client, path: &str) {
    let started = Instant::now();
    while client.get(path).await.code != 404 {
        assert!(started.elapsed() < PATIENCE, "{path} was not collected");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Deletes an owner, and waits until its dependent is gone.
async fn check_collects(client: &Client, name: &str) {
    let owner = created(client, CONFIG_MAPS, &config_map(name, json!([]))).await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}]);
    let dependent = format!("{name}-dependent");
    created(client, CONFIG_MAPS, &config_map(&dependent, reference)).await;
    let deleted = client
        .delete(&format!("{CONFIG_MAPS}/{name}"), &Value::Null)
        .await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    until_gone(client, &format!("{CONFIG_MAPS}/{dependent}")).await;
}

#[tokio::test]
async fn one_replica_collects_garbage_after_the_other() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let first = over(&etcd);
    check_collects(&first.client(), "alone").await;
    let second = over(&etcd);
    check_collects(&second.client(), "beside").await;
    // One that stops gives its lease up.
    first.stop();
    check_collects(&second.client(), "after-the-end").await;
    // That of one which was killed ends.
    let third = over(&etcd);
    second.kill();
    check_collects(&third.client(), "after-a-kill").await;
}

/// A server without some kinds, as one of an older release, would orphan none of their objects.
#[tokio::test]
async fn a_server_that_serves_fewer_kinds_leaves_the_controllers_to_another() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let versions = "wardle.example.com/v1alpha1=false,wardle.example.com/v1beta1=false";
    let older = Server::start(&[
        "--etcd-servers",
        &etcd.url(),
        &format!("--runtime-config={versions}"),
    ]);
    assert_eq!(older.client().get(FLUNDERS).await.code, 404);
    check_collects(&older.client(), "alone").await;
    let newer = over(&etcd);
    let client = newer.client();
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let owner = created(&client, config_maps, &owner).await;
    let mut dependent = flunder("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]}]);
    created(&client, FLUNDERS, &dependent).await;
    let owner = format!("{config_maps}/owner");
    let orphan = json!({"propagationPolicy": "Orphan"});
    assert_eq!(older.client().delete(&owner, &orphan).await.code, 200);
    let started = Instant::now();
    while client.get(&owner).await.code != 404 {
        assert!(started.elapsed() < PATIENCE, "the owner is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    check_collects(&client, "beside").await;
    let dependent = client.get(&format!("{FLUNDERS}/dependent")).await;
    assert_eq!(dependent.code, 200);
    assert_eq!(dependent.json()["metadata"]["ownerReferences"], Value::Null);
    // Alone again it runs them.
    newer.stop();
    check_collects(&older.client(), "after-the-end").await;
}
