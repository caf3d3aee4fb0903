//! The documents that several servers have together: read again, ordered, and those of core.

use super::pair::{Authority, Back, Front};
use super::recorder::Recorder;
use super::*;

on_each_backend![
    changed_documents_of_a_service_are_read_again,
    openapi_v3_of_a_service_is_about_its_version_alone,
    groups_have_the_order_of_stored_apiservices,
    core_of_another_server_is_merged,
];

fn things() -> Value {
    json!([
        {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"]},
        {"name": "others/scale", "singularName": "", "namespaced": true, "kind": "Scale", "verbs": ["get"]},
    ])
}

/// Waits until aggregated discovery lists this many resources of the recorder, and OpenAPI v3 has a path for each.
async fn until_listed(client: &Client, count: usize) -> Value {
    let started = Instant::now();
    loop {
        let found = version_of(&aggregated(client).await.0, "rec.example.com");
        let listed = found["resources"].as_array().map_or(0, Vec::len);
        let index = client.get("/openapi/v3").await.json();
        let url = &index["paths"]["apis/rec.example.com/v1"]["serverRelativeURL"];
        if let Some(url) = url.as_str().filter(|_| listed == count) {
            let document = client.get(url).await.json();
            if document["paths"]
                .as_object()
                .is_some_and(|paths| paths.len() == count)
            {
                return found;
            }
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{found} {index}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn changed_documents_of_a_service_are_read_again(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let services = [("recorder", recorder.address)];
    let front = Front::start(on, &authority, &services).await;
    let client = &front.client;
    recorder.serve(json!([]));
    register(client, "rec.example.com", "recorder", &authority).await;
    until_listed(client, 0).await;
    // With the next look, which is soon when the APIService changes.
    recorder.serve(things());
    let patch = json!({"spec": {"versionPriority": 20}});
    let path = format!("{SERVICES}/v1.rec.example.com");
    assert_eq!(client.merge(&path, &patch).await.code, 200);
    let found = until_listed(client, 2).await;
    // A subresource whose resource is not listed has an entry without verbs around it.
    let others = &found["resources"][1];
    assert_eq!(
        (&others["resource"], &others["verbs"]),
        (&json!("others"), &json!([]))
    );
    assert_eq!(others["responseKind"]["kind"], "");
    assert_eq!(others["subresources"][0]["subresource"], "scale");
    front.stop().await;

    // And by time.
    let every = Duration::from_millis(50);
    let front = Front::start_with(on, &authority, &services, |parts| {
        parts.api_services.documents_interval = every;
    });
    let front = front.await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    until_listed(client, 2).await;
    recorder.serve(json!([]));
    until_listed(client, 0).await;
    front.stop().await;
}

async fn openapi_v3_of_a_service_is_about_its_version_alone(on: Backend) {
    const V3: &str = "/openapi/v3/apis/rec.example.com/v1";
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let services = [("recorder", recorder.address)];
    let every = Duration::from_millis(50);
    let front = Front::start_with(on, &authority, &services, |parts| {
        parts.api_services.documents_interval = every;
    });
    let front = front.await;
    let client = &front.client;
    recorder.serve(things());
    register(client, "rec.example.com", "recorder", &authority).await;
    until_listed(client, 2).await;
    // By this server's own hash, and in both formats.
    let index = client.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/rec.example.com/v1"]["serverRelativeURL"].clone();
    assert!(url.as_str().unwrap().starts_with(&format!("{V3}?hash=")));
    let answer = client.get(url.as_str().unwrap()).await;
    assert_eq!(answer.header("cache-control"), "public, immutable");
    let document = answer.json();
    let names = |value: &Value| -> Vec<String> {
        let fields = value.as_object().unwrap().keys();
        fields.cloned().collect()
    };
    let base = "/apis/rec.example.com/v1";
    let expected = ["things", "others/scale"].map(|name| format!("{base}/{name}"));
    let mut found = names(&document["paths"]);
    found.sort_by(|one, other| other.cmp(one));
    assert_eq!(found, expected);
    assert_eq!(names(&document), ["components", "info", "openapi", "paths"]);
    let own = json!({"$ref": "#/components/schemas/Used"});
    assert_eq!(
        document["components"]["schemas"],
        json!({"Used": {"properties": {"own": own, "lost": {}, "far": {}}}})
    );
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let answer = client.call("GET", V3, &[("accept", protobuf)], "").await;
    assert_eq!(answer.code, 200);
    assert!(answer.body.windows(7).any(|bytes| bytes == b"/things"));
    // Clients do not reach the other server for it: only this server does.
    let forwarded = recorder.forwarded();
    assert!(forwarded.iter().all(|seen| !seen.uri.contains("openapi")));
    // One that is too large is not listed, and leaves the one before.
    let large: Vec<Value> = (0..70)
        .map(|n| json!({"name": format!("r{n}"), "singularName": "", "namespaced": true, "kind": "R", "verbs": []}))
        .collect();
    recorder.serve(json!(large));
    let started = Instant::now();
    let listed = async |count: usize| {
        let found = version_of(&aggregated(client).await.0, "rec.example.com");
        found["resources"].as_array().map_or(0, Vec::len) == count
    };
    while !listed(70).await || recorder.requests("/openapi/v3/apis").len() < 4 {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.get(url.as_str().unwrap()).await.json(), document);
    // Without its APIService there is none.
    let path = format!("{SERVICES}/v1.rec.example.com");
    assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
    until(client, V3, |answer| answer.code == 404).await;
    front.stop().await;
}

/// The names of the groups in the list, in its order.
async fn groups(client: &Client) -> Vec<String> {
    let list = client.get("/apis").await.json();
    let groups = list["groups"].as_array().unwrap().iter();
    groups
        .map(|group| group["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn until_first(client: &Client, group: &str) {
    until(client, "/apis", |answer| {
        answer.json()["groups"][0]["name"] == group
    })
    .await;
}

async fn groups_have_the_order_of_stored_apiservices(on: Backend) {
    let authority = Authority::new();
    let front = Front::start(on, &authority, &[]).await;
    let client = &front.client;
    until_first(client, "apiregistration.k8s.io").await;
    // What a user changes of a compiled version stays, and orders the groups.
    let lease = format!("{SERVICES}/v1.coordination.k8s.io");
    let patch = json!({"spec": {"groupPriorityMinimum": 20_000, "versionPriority": 7}});
    assert_eq!(client.merge(&lease, &patch).await.code, 200);
    until(client, "/apis", |answer| {
        answer.json()["groups"][1]["name"] == "coordination.k8s.io"
    })
    .await;
    assert_eq!(groups(client).await[0], "apiregistration.k8s.io");
    // One that a user makes of a version that no server has is listed, and not found.
    let made = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v7.made.example.com"},
        "spec": {"group": "made.example.com", "version": "v7", "groupPriorityMinimum": 20_000, "versionPriority": 1},
    });
    created(client, SERVICES, &made).await;
    until_available(client, "v7.made.example.com", "True", "Local").await;
    let group = until(client, "/apis/made.example.com", |answer| {
        answer.code == 200
    })
    .await;
    assert_eq!(group.json()["preferredVersion"]["version"], "v7");
    let names = groups(client).await;
    assert_eq!(
        names[..3],
        [
            "apiregistration.k8s.io",
            "coordination.k8s.io",
            "made.example.com"
        ]
    );
    let (list, _) = aggregated(client).await;
    let listed: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["metadata"]["name"])
        .collect();
    assert_eq!(listed, names.iter().collect::<Vec<_>>());
    assert_eq!(
        version_of(&list, "made.example.com"),
        json!({"version": "v7", "freshness": "Current"})
    );
    assert_eq!(client.get("/apis/made.example.com/v7").await.code, 404);
    let path = format!("{SERVICES}/v7.made.example.com");
    assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
    until(client, "/apis/made.example.com", |answer| {
        answer.code == 404
    })
    .await;
    // That of a definition is kept as it should be, as long as it has the label.
    establish(client, &foos()).await;
    let of_foos = format!("{SERVICES}/v1.ex.io");
    until_available(client, "v1.ex.io", "True", "Local").await;
    let patch = json!({"spec": {"groupPriorityMinimum": 19_000}});
    let changed = client.merge(&of_foos, &patch).await.json();
    assert_eq!(changed["spec"]["groupPriorityMinimum"], 19_000);
    until(client, &of_foos, |answer| {
        answer.json()["spec"]["groupPriorityMinimum"] == 1000
    })
    .await;
    let unlabelled = json!({"metadata": {"labels": null}, "spec": {"groupPriorityMinimum": 20_000, "versionPriority": 3}});
    assert_eq!(client.merge(&of_foos, &unlabelled).await.code, 200);
    until(client, "/apis", |answer| {
        answer.json()["groups"][2]["name"] == "ex.io"
    })
    .await;
    // The changes of the first one are still there.
    assert_eq!(
        client.get(&lease).await.json()["spec"]["versionPriority"],
        7
    );
    front.stop().await;
}

async fn core_of_another_server_is_merged(on: Backend) {
    let authority = Authority::new();
    let mut back = Back::start(&authority).await;
    let front = Front::start(on, &authority, &[("kettles", back.address())]).await;
    let client = &front.client;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "of-the-first"}});
    created(client, leases, &lease).await;
    let patch = json!({
        "metadata": {"labels": null},
        "spec": {"caBundle": authority.bundle(), "service": {"namespace": "default", "name": "kettles"}},
    });
    let changed = client.merge(&format!("{SERVICES}/v1."), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    until_available(client, "v1.", "True", "Passed").await;
    let started = Instant::now();
    let names = loop {
        let answer = client.call("GET", "/api", &[("accept", AGGREGATED)], "");
        let list = answer.await.json();
        let version = &list["items"][0]["versions"][0];
        let resources = version["resources"].as_array().into_iter().flatten();
        let names: Vec<String> = resources
            .map(|one| one["resource"].as_str().unwrap().to_owned())
            .collect();
        // The first server has more kinds of core.
        if version["freshness"] == "Current" && !names.contains(&"events".to_owned()) {
            break names;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{list}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for name in ["configmaps", "namespaces", "secrets"] {
        assert!(names.iter().any(|one| one == name), "{names:?}");
    }
    let kubeconfig = front.kubeconfig.clone();
    let run = async move |args: &'static [&'static str]| {
        let kubeconfig = kubeconfig.clone();
        let run = move || Kubectl::new("1.36", &kubeconfig).run(args, "");
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        assert_eq!(output.stderr, "");
        output.stdout
    };
    run(&["create", "configmap", "settings", "--from-literal=a=b"]).await;
    run(&["create", "secret", "generic", "key", "--from-literal=c=d"]).await;
    let shown = run(&["get", "cm,secrets,leases", "-o", "name"]).await;
    assert_eq!(
        shown,
        "configmap/settings\nsecret/key\nlease.coordination.k8s.io/of-the-first\n"
    );
    let path = "/api/v1/namespaces/default/configmaps/settings";
    assert_eq!(client.get(path).await.json()["data"]["a"], "b");
    // They are in the other server, and only there.
    let patch = json!({"spec": {"caBundle": null, "service": null}});
    assert_eq!(
        client.merge(&format!("{SERVICES}/v1."), &patch).await.code,
        200
    );
    until(client, path, |answer| answer.code == 404).await;
    front.stop().await;
    back.stop().await;
}
