//! A server that is killed while it runs the controllers: the other one goes on with its work, also beside a kind that cannot be
//! read.

use super::*;

/// How long the work of a killed server may wait, as in Kubernetes.
const TAKEOVER: Duration = Duration::from_secs(15);

/// How long the work itself may take after that, on a busy machine.
const WORK: Duration = Duration::from_secs(15);

/// Longest time until a collector goes on without a kind.
const GIVING_UP: Duration = Duration::from_secs(90);

const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CHECK: &str = "/healthz/garbage-collector-controller";
const LEASES: &str = "/registry/apiloom/leases/";

/// Waits until a GET is answered so; returns the text, and how long it took since `since`.
async fn until(
    client: &Client,
    path: &str,
    (since, most): (Instant, Duration),
    is_met: impl Fn(u16, &str) -> bool,
) -> (String, Duration) {
    loop {
        let answer = client.get(path).await;
        let text = answer.text();
        if is_met(answer.code, &text) {
            return (text, since.elapsed());
        }
        assert!(since.elapsed() < most, "{path}: {} {text}", answer.code);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Who has the leases of the controllers, by their keys.
fn holders(etcd: &Etcd) -> BTreeMap<String, String> {
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
    let entries = etcd.entries(LEASES).into_iter();
    entries
        .filter_map(|(key, lease)| Some((key, holder(&lease)?)))
        .filter(|(_, holder)| !holder.is_empty())
        .collect()
}

/// Waits until both leases have holders of which this is true.
async fn until_held(
    etcd: &Etcd,
    (since, most): (Instant, Duration),
    is_met: impl Fn(&str, &str) -> bool,
) -> BTreeMap<String, String> {
    loop {
        let held = holders(etcd);
        if held.len() == 2 && held.iter().all(|(key, holder)| is_met(key, holder)) {
            return held;
        }
        assert!(since.elapsed() < most, "{held:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A definition of this plural, whose objects are stored in v1.
fn definition(plural: &str) -> Value {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let kind = format!("K{plural}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.ex.io")},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn object(plural: &str, version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("ex.io/{version}"), "kind": format!("K{plural}"), "metadata": {"name": name}})
}

fn objects(plural: &str, version: &str) -> String {
    format!("/apis/ex.io/{version}/namespaces/default/{plural}")
}

async fn make_namespace(client: &Client, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    created(client, NAMESPACES, &namespace).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "content"}});
    created(client, &format!("{NAMESPACES}/{name}/configmaps"), &map).await;
}

async fn delete(client: &Client, path: &str, policy: &str) {
    let options = json!({"propagationPolicy": policy});
    let answer = client.delete(path, &options).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

/// An owner with one dependent; returns their paths.
async fn family(client: &Client, name: &str) -> [String; 2] {
    let owner = created(client, CONFIG_MAPS, &config_map(name, json!([]))).await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name,
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    let dependent = format!("{name}-dependent");
    created(client, CONFIG_MAPS, &config_map(&dependent, reference)).await;
    [name, &dependent].map(|name| format!("{CONFIG_MAPS}/{name}"))
}

#[tokio::test]
async fn the_work_of_a_killed_leader_is_taken_over_in_time() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let leader = over(&etcd);
    let of_leader = leader.client();
    check_collects(&of_leader, "before").await;
    let begun = Instant::now();
    let held = until_held(&etcd, (begun, PATIENCE), |_, _| true).await;
    let other = over(&etcd);
    let client = other.client();
    created(&of_leader, DEFINITIONS, &definition("kept")).await;
    let kept = objects("kept", "v1");
    until(&client, &kept, (begun, PATIENCE), |code, _| code == 200).await;
    created(&of_leader, &kept, &object("kept", "v1", "a")).await;
    make_namespace(&of_leader, "full").await;
    let [owner, dependent] = family(&of_leader, "in-background").await;
    let [blocking, blocked] = family(&of_leader, "in-foreground").await;
    assert_eq!(holders(&etcd), held, "the first one leads");

    // What it has begun, and what it never sees.
    let kept = format!("{DEFINITIONS}/kept.ex.io");
    delete(&of_leader, &kept, "Background").await;
    created(&of_leader, DEFINITIONS, &definition("new")).await;
    leader.kill();
    let killed = Instant::now();
    delete(&client, &owner, "Background").await;
    delete(&client, &blocking, "Foreground").await;
    let namespace = format!("{NAMESPACES}/full");
    delete(&client, &namespace, "Background").await;
    created(&client, DEFINITIONS, &definition("later")).await;

    let is_other = |key: &str, holder: &str| held.get(key).is_some_and(|before| before != holder);
    let taken = async {
        until_held(&etcd, (killed, TAKEOVER), is_other).await;
        killed.elapsed()
    };
    let (new, later) = (objects("new", "v1"), objects("later", "v1"));
    let done = [
        (&dependent, 404),
        (&blocked, 404),
        (&blocking, 404),
        (&namespace, 404),
        (&kept, 404),
        (&new, 200),
        (&later, 200),
    ]
    .map(|(path, expected)| {
        let client = client.clone();
        async move {
            let until = until(&client, path, (killed, TAKEOVER + WORK), |code, _| {
                code == expected
            });
            format!("{path}: {:?}", until.await.1)
        }
    });
    let (taken, done) = tokio::join!(taken, futures_util::future::join_all(done));
    println!("leases: {taken:?}\n{}", done.join("\n"));
}

/// Takes the version in which an object is stored out of its definition, behind the back of the server.
async fn make_unreadable(client: &Client) {
    let path = format!("{DEFINITIONS}/jugs.ex.io");
    let (first, second) = ("/spec/versions/0", "/spec/versions/1/storage");
    for (path, patch) in [
        (
            path.clone(),
            json!([
                {"op": "replace", "path": format!("{first}/storage"), "value": false},
                {"op": "replace", "path": second, "value": true},
            ]),
        ),
        (
            format!("{path}/status"),
            json!([{"op": "replace", "path": "/status/storedVersions", "value": ["v2"]}]),
        ),
        (path, json!([{"op": "remove", "path": first}])),
    ] {
        let answer = client.json_patch(&path, &patch).await;
        assert_eq!(answer.code, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_read_holds_up_no_other_before_and_after_a_takeover() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let leader = over(&etcd);
    let client = leader.client();
    check_collects(&client, "before").await;
    let begun = Instant::now();
    let held = until_held(&etcd, (begun, PATIENCE), |_, _| true).await;
    let other = over(&etcd);
    let beside = other.client();
    created(&client, DEFINITIONS, &definition("jugs")).await;
    let (old, new) = (objects("jugs", "v1"), objects("jugs", "v2"));
    until(&beside, &old, (begun, PATIENCE), |code, _| code == 200).await;
    created(&client, &old, &object("jugs", "v1", "sick")).await;
    make_unreadable(&client).await;
    for client in [&client, &beside] {
        until(client, &new, (Instant::now(), PATIENCE), |code, _| {
            code == 500
        })
        .await;
    }

    // Another kind's foreground deletion.
    let [owner, dependent] = family(&client, "owner").await;
    let asked = Instant::now();
    delete(&client, &owner, "Foreground").await;
    until(&client, &owner, (asked, GIVING_UP), |code, _| code == 404).await;
    assert_eq!(client.get(&dependent).await.code, 404);
    let (text, _) = until(&client, CHECK, (asked, GIVING_UP), |code, _| code == 500).await;
    assert!(text.contains("jugs.ex.io"), "{text}");
    assert_eq!(client.get("/healthz").await.code, 200, "it is not counted");
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let (list, _) = until(&client, events, (asked, GIVING_UP), |_, text| {
        text.contains("UnreadableObjects")
    })
    .await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut list = list["items"].as_array().unwrap().iter();
    let event = list
        .find(|event| event["reason"] == "UnreadableObjects")
        .unwrap();
    assert_eq!(event["regarding"]["name"], "jugs.ex.io");
    make_namespace(&client, "other").await;
    let namespace = format!("{NAMESPACES}/other");
    delete(&client, &namespace, "Background").await;
    until(
        &client,
        &namespace,
        (Instant::now(), PATIENCE),
        |code, _| code == 404,
    )
    .await;

    // The next leader does not wait for it for ever either, and says so.
    let [owner, dependent] = family(&client, "later").await;
    assert_eq!(holders(&etcd), held, "the first one leads");
    leader.kill();
    let killed = Instant::now();
    delete(&beside, &owner, "Foreground").await;
    let most = TAKEOVER + GIVING_UP;
    until(&beside, &owner, (killed, most), |code, _| code == 404).await;
    assert_eq!(beside.get(&dependent).await.code, 404);
    let (text, _) = until(&beside, CHECK, (killed, most), |code, _| code == 500).await;
    assert!(text.contains("jugs.ex.io"), "{text}");

    // Its definition goes with such objects.
    let definition = format!("{DEFINITIONS}/jugs.ex.io");
    let asked = Instant::now();
    delete(&beside, &definition, "Background").await;
    until(&beside, &definition, (asked, PATIENCE), |code, _| {
        code == 404
    })
    .await;
    until(&beside, CHECK, (asked, PATIENCE), |code, _| code == 200).await;
    let left = etcd.entries("/registry/ex.io/");
    assert!(left.is_empty(), "{left:?}");
}
