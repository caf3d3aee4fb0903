//! Responses and metrics while a watch cache is being filled or is behind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_storage::{Layer, ListRequest, Page, Storage, StorageError, WatchStart, WatchStream};
use async_trait::async_trait;
use tokio::sync::watch;

use super::*;

/// A store whose first list of flunders, the watch cache's, waits until it is released.
#[derive(Debug)]
struct Gate {
    store: Arc<Memory>,
    seen: AtomicBool,
    open: watch::Receiver<bool>,
    /// Watches of flunders that deliver nothing.
    is_silent: bool,
    progress_requests: AtomicUsize,
}

impl Gate {
    fn new(open: watch::Receiver<bool>) -> Self {
        Self {
            store: Memory::new(),
            seen: AtomicBool::new(false),
            open,
            is_silent: false,
            progress_requests: AtomicUsize::new(0),
        }
    }

    /// Releases the lists, but not the watches of flunders.
    fn silent() -> Self {
        Self {
            is_silent: true,
            ..Self::new(watch::channel(true).1)
        }
    }
}

#[async_trait]
impl Layer for Gate {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        let is_flunders = request.prefix.ends_with("/flunders/");
        if is_flunders && !self.seen.swap(true, Ordering::Relaxed) {
            let opened = self.open.clone().wait_for(|open| *open).await.map(|_| ());
            opened.map_err(|_| StorageError::Unavailable("the test is over".to_owned()))?;
        }
        self.store.list(request).await
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        if self.is_silent && prefix.ends_with("/flunders/") {
            return Ok(Box::pin(futures_util::stream::pending()));
        }
        self.store.watch(prefix, start).await
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        self.progress_requests.fetch_add(1, Ordering::Relaxed);
        self.store.request_progress().await
    }
}

#[tokio::test(start_paused = true)]
async fn c_124_scans_wait_for_the_watch_cache_and_the_rest_does_not() {
    let (gate, open) = watch::channel(false);
    let mut registry = apiloom_kinds::registry(Arc::new(Gate::new(open)));
    registry.group(GROUP);
    registry.kind::<Flunder>();
    let registry = Arc::new(registry.build().unwrap());
    registry.start().await.unwrap();
    let api = Api::new(
        Arc::clone(&registry),
        &ServerInfo::default(),
        Health::new([]),
    );
    let not_filled = ["flunders.wardle.example.com is being read"];
    assert_eq!(registry.not_filled(), not_filled);

    create_flunder(&api, "a").await;
    create_flunder(&api, "b").await;
    get(&api, &format!("{FLUNDERS}/a")).await.expect(200);
    get(&api, &format!("{FLUNDERS}/c")).await.expect(404);
    let page = get(&api, &format!("{FLUNDERS}?limit=1")).await.expect(200);
    assert_eq!(page.at("/items/0/metadata/name"), "a");
    for query in [
        "",
        "?resourceVersion=0",
        "?limit=1&labelSelector=a%3Db",
        "?limit=1&fieldSelector=metadata.name%3Da",
        "?watch=1",
        "?watch=1&resourceVersion=1",
    ] {
        let answer = get(&api, &format!("{FLUNDERS}{query}")).await.expect(429);
        assert_eq!(answer.message(), "storage is (re)initializing", "{query}");
        assert_eq!(answer.at("/reason"), "TooManyRequests", "{query}");
        assert_eq!(answer.header("retry-after"), "1", "{query}");
    }

    gate.send_replace(true);
    while !registry.not_filled().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let all = get(&api, FLUNDERS).await.expect(200);
    assert_eq!(all.at("/items/1/metadata/name"), "b");
}

/// Reads that need a newer state of the cache wait for 3 s, and the store is asked for progress every 100 ms; then the
/// store is read, except for a revision that the request names.
#[tokio::test(start_paused = true)]
async fn a_cache_that_stays_behind_is_passed_over() {
    let store = Arc::new(Gate::silent());
    let mut registry = apiloom_kinds::registry(Arc::clone(&store) as _);
    registry.group(GROUP);
    registry.kind::<Flunder>();
    let registry = Arc::new(registry.build().unwrap());
    registry.start().await.unwrap();
    let api = Api::new(registry, &ServerInfo::default(), Health::new([]));
    let created = create_flunder(&api, "a").await;
    let revision = created.at("/metadata/resourceVersion");
    let revision = revision.as_str().unwrap();
    let timed = async |query: &str, code: u16| {
        let begin = tokio::time::Instant::now();
        let asked = store.progress_requests.load(Ordering::Relaxed);
        let answer = get(&api, &format!("{FLUNDERS}{query}")).await.expect(code);
        let asked = store.progress_requests.load(Ordering::Relaxed) - asked;
        (answer, begin.elapsed().as_millis(), asked)
    };
    for query in ["", "/a"] {
        let (answer, took, asked) = timed(query, 200).await;
        assert!(answer.body.contains(r#""name":"a""#), "{query}");
        assert!((3_000..3_100).contains(&took), "{query}: {took} ms");
        assert!((29..=31).contains(&asked), "{query}: asked {asked} times");
    }
    let (answer, took, _) = timed(&format!("?resourceVersion={revision}"), 504).await;
    assert!((3_000..3_100).contains(&took), "{took} ms");
    assert_eq!(answer.header("retry-after"), "1");
    let (answer, took, asked) = timed("?resourceVersion=0", 200).await;
    assert_eq!((answer.at("/items/0"), took, asked), (Value::Null, 0, 0));
    let text = get(&api, "/metrics").await.expect(200).body;
    let of = r#"group="wardle.example.com",resource="flunders""#;
    for line in [
        format!(
            "apiserver_watch_cache_consistent_read_total{{{of},success=\"true\",fallback=\"true\"}} 2"
        ),
        format!("apiserver_storage_list_total{{{of}}} 1"),
        format!("apiserver_watch_cache_read_wait_seconds_sum{{{of}}} 9."),
    ] {
        assert!(
            text.lines().any(|known| known.starts_with(&line)),
            "{line}\n{text}"
        );
    }
}

#[tokio::test]
async fn metrics_tell_what_the_watch_cache_does() {
    let api = api().await;
    create_flunder(&api, "a").await;
    get(&api, FLUNDERS).await.expect(200);
    get(&api, &format!("{FLUNDERS}?fieldSelector=metadata.name%3Da"))
        .await
        .expect(200);
    let text = get(&api, "/metrics").await.expect(200).body;
    let of = r#"group="wardle.example.com",resource="flunders""#;
    for line in [
        format!("watch_cache_capacity{{{of}}} 100"),
        format!("watch_cache_capacity_increase_total{{{of}}} 0"),
        format!("apiserver_watch_cache_events_received_total{{{of}}} 1"),
        format!("apiserver_watch_cache_events_dispatched_total{{{of}}} 1"),
        format!("apiserver_watch_cache_initializations_total{{{of}}} 1"),
        format!("apiserver_terminated_watchers_total{{{of}}} 0"),
        format!(
            "apiserver_watch_cache_consistent_read_total{{{of},success=\"true\",fallback=\"false\"}} 2"
        ),
        format!("apiserver_cache_list_total{{{of},index=\"\"}} 2"),
        format!("apiserver_cache_list_returned_objects_total{{{of},index=\"\"}} 2"),
        format!("apiserver_storage_list_total{{{of}}} 0"),
        format!("apiserver_watch_cache_read_wait_seconds_bucket{{le=\"3.0\",{of}}} 2"),
        format!("apiserver_watch_cache_read_wait_seconds_count{{{of}}} 2"),
        format!("apiserver_init_events_total{{{of}}} 0"),
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn a_resource_without_a_watch_cache_is_read_from_storage() {
    let resource = apiloom_meta::GroupResource::new("wardle.example.com", "flunders");
    let api = api_of(|registry| {
        registry.kind::<Flunder>();
        registry.watch_cache_size(&resource, 0);
    })
    .await;
    create_flunder(&api, "a").await;
    get(&api, FLUNDERS).await.expect(200);
    let text = get(&api, "/metrics").await.expect(200).body;
    let of = r#"{group="wardle.example.com",resource="flunders"}"#;
    assert!(text.contains(&format!("apiserver_storage_list_total{of} 1\n")));
    assert!(!text.contains(&format!("watch_cache_capacity{of}")));
    assert!(text.contains("watch_cache_capacity{group=\"\",resource=\"namespaces\"}"));
}

#[test]
fn a_size_for_an_unknown_resource_names_the_known_ones() {
    let mut registry = apiloom_kinds::registry(Memory::new());
    registry.group(GROUP);
    registry.kind::<Flunder>();
    let resource = apiloom_meta::GroupResource::new("", "flunders");
    registry.watch_cache_size(&resource, 7);
    assert_eq!(
        registry.build().unwrap_err(),
        [
            "a watch cache size for flunders (7), which is not registered; there are: namespaces, \
            flunders.wardle.example.com"
        ]
    );
}
