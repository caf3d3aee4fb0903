//! Watches: framing, forms, ends.

use futures_util::FutureExt;

use super::*;

/// A watch whose events are read one frame at a time.
struct Watching {
    body: Body,
    lines: std::collections::VecDeque<String>,
}

impl Watching {
    async fn open(api: &Api, accept: &str, url: &str) -> Self {
        let response = open(
            api,
            "GET",
            url,
            &[("accept", accept), ("accept-encoding", "gzip")],
            "",
        )
        .await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert!(!response.headers().contains_key("content-encoding"));
        Self {
            body: response.into_body(),
            lines: Default::default(),
        }
    }
    /// The next event's text; `None` at the end.
    async fn line(&mut self) -> Option<String> {
        while self.lines.is_empty() {
            let frame = self.body.frame().await?.unwrap().into_data().unwrap();
            let text = String::from_utf8(frame.to_vec()).unwrap();
            assert!(text.ends_with('\n'), "{text}");
            self.lines.extend(text.lines().map(str::to_owned));
        }
        self.lines.pop_front()
    }
    async fn event(&mut self) -> (String, Value) {
        let event: Value = serde_json::from_str(&self.line().await.expect("goes on")).unwrap();
        (
            event["type"].as_str().unwrap().to_owned(),
            event["object"].clone(),
        )
    }
    fn is_quiet(&mut self) -> bool {
        self.lines.is_empty() && self.body.frame().now_or_never().is_none()
    }
}

#[tokio::test]
async fn events_are_lines_that_begin_with_their_type() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let mut watch = Watching::open(&api, "", &format!("{FLUNDERS}?watch=1")).await;
    let line = watch.line().await.unwrap();
    assert!(line.starts_with("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Flunder\",\"apiVersion\":\"wardle.example.com/v1alpha1\",\"metadata\":{\"name\":\"a\","), "{line}");
    assert!(watch.is_quiet());
    merge_patch(
        &api,
        &format!("{FLUNDERS}/a"),
        r#"{"spec":{"reference":"x"}}"#,
    )
    .await
    .expect(200);
    assert_eq!(watch.event().await.0, "MODIFIED");
    delete(&api, &format!("{FLUNDERS}/a"), "").await.expect(200);
    let (kind, object) = watch.event().await;
    assert_eq!(
        (kind.as_str(), &object["spec"]["reference"]),
        ("DELETED", &"x".into())
    );
}

#[tokio::test]
async fn the_answer_begins_before_there_is_an_event() {
    let api = api().await;
    let mut watch = Watching::open(&api, "", &format!("{FLUNDERS}?watch=1")).await;
    assert!(watch.is_quiet());
}

#[tokio::test]
async fn the_initial_events_end_with_a_bookmark() {
    let api = api().await;
    let mut watch = Watching::open(
        &api,
        "",
        &format!("{FLUNDERS}?watch=1&allowWatchBookmarks=1"),
    )
    .await;
    let (_, object) = watch.event().await;
    let version = &object["metadata"]["resourceVersion"];
    assert_eq!(
        object,
        serde_json::json!({"kind": "Flunder", "apiVersion": "wardle.example.com/v1alpha1", "metadata": {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}})
    );
}

#[tokio::test]
async fn events_that_are_ready_together_are_sent_together() {
    let resource = apiloom_meta::GroupResource::new("wardle.example.com", "flunders");
    for has_cache in [true, false] {
        let api = api_of(|registry| {
            registry.kind::<Flunder>();
            if !has_cache {
                registry.watch_cache_size(&resource, 0);
            }
        })
        .await;
        let version =
            create_flunder(&api, "first").await.json()["metadata"]["resourceVersion"].clone();
        for name in ["a", "b", "c"] {
            create_flunder(&api, name).await;
        }
        let version = version.as_str().unwrap();
        let url = format!("{FLUNDERS}?watch=1&resourceVersion={version}");
        let mut watch = Watching::open(&api, "", &url).await;
        watch.line().await.unwrap();
        assert_eq!(watch.lines.len(), 2, "with a cache: {has_cache}");
    }
}

#[tokio::test]
async fn each_initial_event_is_counted_once() {
    let api = api().await;
    for name in ["a", "b"] {
        create_flunder(&api, name).await;
    }
    let mut watch = Watching::open(&api, "", &format!("{FLUNDERS}?watch=1")).await;
    for name in ["a", "b"] {
        assert_eq!(watch.event().await.1["metadata"]["name"], name);
    }
    for name in ["c", "d"] {
        create_flunder(&api, name).await;
        assert_eq!(watch.event().await.1["metadata"]["name"], name);
    }
    let text = get(&api, "/metrics").await.expect(200).body;
    let line = r#"apiserver_init_events_total{group="wardle.example.com",resource="flunders"} 2"#;
    assert!(text.lines().any(|known| known == line), "{text}");
}

#[tokio::test]
async fn a_table_watch_sends_its_columns_once() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut watch = Watching::open(
        &api,
        table,
        &format!("{FLUNDERS}?watch=1&allowWatchBookmarks=1"),
    )
    .await;
    let (_, first) = watch.event().await;
    assert_eq!(first["columnDefinitions"][0]["name"], "Name");
    assert_eq!(
        first["metadata"]["resourceVersion"],
        first["rows"][0]["object"]["metadata"]["resourceVersion"]
    );
    let bookmark = watch.line().await.unwrap();
    let version =
        serde_json::from_str::<Value>(&bookmark).unwrap()["object"]["metadata"]["resourceVersion"]
            .clone();
    assert_eq!(
        bookmark,
        format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":{version}}},\"columnDefinitions\":null,\"rows\":[{{\"cells\":[\"\",null,\"\\u003cunknown\\u003e\"],\"object\":{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":{version},\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}]}}}}"
        )
    );
}

#[tokio::test]
async fn a_metadata_watch_sends_metadata() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watch = Watching::open(&api, partial, &format!("{FLUNDERS}?watch=1")).await;
    let (_, object) = watch.event().await;
    assert_eq!(
        (&object["kind"], &object["spec"]),
        (&"PartialObjectMetadata".into(), &Value::Null)
    );
}

#[tokio::test]
async fn the_old_prefix_watches_collections_and_items() {
    let api = api().await;
    for name in ["a", "b"] {
        create_flunder(&api, name).await;
    }
    let prefix = "/apis/wardle.example.com/v1alpha1/watch";
    let mut all = Watching::open(&api, "", &format!("{prefix}/flunders")).await;
    assert_eq!(all.event().await.1["metadata"]["name"], "a");
    assert_eq!(all.event().await.1["metadata"]["name"], "b");
    let mut one =
        Watching::open(&api, "", &format!("{prefix}/namespaces/default/flunders/b")).await;
    assert_eq!(one.event().await.1["metadata"]["name"], "b");
    assert!(one.is_quiet());
    let other = get(
        &api,
        &format!("{prefix}/namespaces/default/flunders/b?fieldSelector=metadata.name=a"),
    )
    .await;
    assert_eq!(
        other.expect(400).message(),
        "fieldSelector metadata.name doesn't match requested name"
    );
}

#[tokio::test]
async fn a_watch_has_no_yaml_form() {
    let answer = get_as(
        &api().await,
        "application/yaml",
        &format!("{FLUNDERS}?watch=1"),
    )
    .await
    .expect(406);
    assert!(
        answer
            .body
            .contains("only the following media types are accepted: application/json;stream=watch"),
        "{}",
        answer.body
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over() {
    let api = api().await;
    let mut watch = Watching::open(&api, "", &format!("{FLUNDERS}?watch=1&timeoutSeconds=5")).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(watch.line().await, None);
    assert!(
        (5..7).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_watch_ends_when_the_server_stops() {
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let api = api().await.stopping(stopping);
    let mut watch = Watching::open(&api, "", &format!("{FLUNDERS}?watch=1")).await;
    assert!(watch.is_quiet());
    stop.send(true).unwrap();
    assert_eq!(watch.line().await, None);
}

#[tokio::test]
async fn a_failure_on_the_way_is_an_event_and_the_end() {
    let api = api().await;
    let url = format!(
        "{FLUNDERS}?watch=1&resourceVersion=9007199254740991&sendInitialEvents=1&resourceVersionMatch=NotOlderThan"
    );
    let mut watch =
        Watching::open(&api, "application/json;as=Table;v=v1;g=meta.k8s.io", &url).await;
    let (kind, status) = watch.event().await;
    assert_eq!(
        (kind.as_str(), &status["kind"], &status["code"]),
        ("ERROR", &"Status".into(), &504.into())
    );
    assert_eq!(watch.line().await, None);
}

#[tokio::test]
async fn objects_that_were_written_at_one_revision_are_sent_each() {
    let store = apiloom_storage::PairedStore::new();
    let mut registry = apiloom_kinds::registry(Arc::clone(&store) as _);
    registry.group(GROUP);
    registry.kind::<Flunder>();
    let registry = Arc::new(registry.build().unwrap());
    registry.start().await.unwrap();
    let api = Api::new(registry, &ServerInfo::default(), Health::new([]));
    let url = format!("{FLUNDERS}?watch=1");
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watches = Vec::new();
    for accept in ["", table, partial] {
        watches.push(Watching::open(&api, accept, &url).await);
    }
    let keys =
        ["a", "b"].map(|name| format!("/registry/wardle.example.com/flunders/default/{name}"));
    for reference in [Some("one"), Some("two"), None] {
        let value = |name: &str| {
            let object = serde_json::json!({
                "kind": "Flunder", "apiVersion": "wardle.example.com/v1alpha1",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"reference": reference?},
            });
            Some(Bytes::from(object.to_string()))
        };
        let writes = [(&*keys[0], value("a")), (&*keys[1], value("b"))];
        store.transact(writes).await.unwrap();
        for watch in &mut watches {
            let mut names = Vec::new();
            for _ in 0..2 {
                let (_, object) = watch.event().await;
                let row = object.pointer("/rows/0/object").unwrap_or(&object);
                names.push(row["metadata"]["name"].clone());
            }
            assert_eq!(names, ["a", "b"], "{reference:?}");
        }
    }
}

/// The address of the next frame's bytes.
async fn frame(body: &mut Body) -> Bytes {
    body.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn watchers_of_the_same_form_are_sent_the_same_bytes() {
    const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let api = api().await;
    let created = create_flunder(&api, "a").await;
    let version = created.at("/metadata/resourceVersion");
    let url = format!(
        "{FLUNDERS}?watch=1&resourceVersion={}",
        version.as_str().unwrap()
    );
    let mut watches = Vec::new();
    for accept in ["", "application/json", PARTIAL, TABLE, PARTIAL, TABLE] {
        let response = open(&api, "GET", &url, &[("accept", accept)], "").await;
        watches.push(response.into_body());
    }
    // The columns of a table come only with its first event.
    for reference in ["x", "y"] {
        let patch = format!(r#"{{"spec":{{"reference":"{reference}"}}}}"#);
        merge_patch(&api, &format!("{FLUNDERS}/a"), &patch)
            .await
            .expect(200);
        let mut frames = Vec::new();
        for watch in &mut watches {
            frames.push(frame(watch).await);
        }
        for (one, other) in [(0, 1), (2, 4), (3, 5)] {
            assert_eq!(
                frames[one].as_ptr(),
                frames[other].as_ptr(),
                "{one} {reference}"
            );
        }
        let texts = [0, 2, 3].map(|number| String::from_utf8_lossy(&frames[number]));
        let contains = ["\"spec\"", "PartialObjectMetadata", "\"cells\""];
        for (text, expected) in texts.iter().zip(contains) {
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(
            texts[2].contains("\"columnDefinitions\":["),
            reference == "x"
        );
    }
}

#[tokio::test]
async fn watchers_that_begin_together_are_sent_the_same_bytes() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let url = format!("{FLUNDERS}?watch=1");
    for accept in [
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ] {
        let mut frames = Vec::new();
        for _ in 0..2 {
            let response = open(&api, "GET", &url, &[("accept", accept)], "").await;
            frames.push(frame(&mut response.into_body()).await);
        }
        assert_eq!(frames[0].as_ptr(), frames[1].as_ptr(), "{accept}");
        assert!(frames[0].starts_with(b"{\"type\":\"ADDED\""));
    }
}
