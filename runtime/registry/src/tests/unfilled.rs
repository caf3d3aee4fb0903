//! Watches while the watch cache is not filled or is disconnected from the store, and lists of compacted revisions:
//! they fail or end; they are never silent, and never return compacted states.

use std::time::Duration;

use apiloom_storage::{
    Layer, ListRequest, Page, Revision, StorageError, WatchItem, WatchStart, WatchStream,
};
use futures_util::StreamExt as _;
use tokio::sync::watch;

use super::*;

/// A store whose lists and watches of widgets fail while a reason is set.
#[derive(Debug)]
struct Ailing {
    store: Arc<Memory>,
    lists: watch::Sender<Option<StorageError>>,
    watches: watch::Sender<Option<StorageError>>,
}

impl Ailing {
    fn new(lists: Option<StorageError>) -> Arc<Self> {
        Arc::new(Self {
            store: Memory::new(),
            lists: watch::Sender::new(lists),
            watches: watch::Sender::new(None),
        })
    }
}

fn is_of_widgets(prefix: &str) -> bool {
    prefix.contains("/widgets/")
}

#[async_trait]
impl Layer for Ailing {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        let error = self.lists.borrow().clone();
        match error.filter(|_| is_of_widgets(&request.prefix)) {
            Some(error) => Err(error),
            None => self.store.list(request).await,
        }
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let changes = self.store.watch(prefix, start).await?;
        if !is_of_widgets(prefix) {
            return Ok(changes);
        }
        let mut watches = self.watches.subscribe();
        let ended = async move {
            let error = watches.wait_for(Option::is_some).await.ok()?.clone();
            error.map(Err::<WatchItem, _>)
        };
        let ended = futures_util::FutureExt::shared(Box::pin(ended));
        let until = Box::pin(ended.clone());
        let end = futures_util::stream::once(ended).filter_map(std::future::ready);
        Ok(changes.take_until(until).chain(end).boxed())
    }
}

/// The endpoint of widgets over a store, in the storage version. The registry keeps the cache running.
async fn widgets(store: &Arc<Ailing>, has_cache: bool) -> (Registry, Arc<Endpoint>) {
    let mut builder = with_namespaces(Arc::clone(store) as Arc<dyn Storage>);
    builder.group(GroupDef {
        name: GROUP.into(),
        versions: vec!["v1".into(), "v1alpha1".into()].into(),
        release: None,
        place: None,
    });
    builder.kind::<Widget>();
    builder.kind::<AlphaWidget>();
    if !has_cache {
        builder.watch_cache(None);
    }
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let endpoint = registry.endpoint(GROUP, "v1alpha1", "widgets").unwrap();
    (registry, endpoint)
}

fn corrupt() -> StorageError {
    StorageError::Corrupt("it is damaged".to_owned())
}

fn away() -> StorageError {
    StorageError::Unavailable("it is away".to_owned())
}

fn compacted() -> StorageError {
    StorageError::Compacted {
        requested: Revision(1),
        compacted: Revision(2),
    }
}

/// Starts of watches.
fn starts() -> Vec<ListOptions> {
    let start = |version: &str, initial| ListOptions {
        resource_version: version.to_owned(),
        send_initial_events: initial,
        ..ListOptions::default()
    };
    vec![
        start("1", None),
        start("1", Some(true)),
        start("1000", None),
        start("0", None),
        start("", None),
        start("", Some(false)),
        ListOptions {
            resource_version: "1".to_owned(),
            ..fields("spec.colour=red")
        },
        ListOptions {
            resource_version: "1".to_owned(),
            ..fields("metadata.name=a")
        },
    ]
}

const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for the error with which a watch ends; `None` if it ends without one.
async fn end(events: &mut WatchEvents) -> Option<ApiError> {
    let ended = async {
        loop {
            match events.next().await {
                None => return None,
                Some(Err(error)) => return Some(error),
                Some(Ok(_)) => {}
            }
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    ended.expect("the watch does not end")
}

/// Checks that every watch fails, immediately or with its first event.
async fn all_fail(endpoint: &Arc<Endpoint>, reason: &str, context: &str) {
    for options in starts() {
        let opened = endpoint
            .reads()
            .watch(&RequestContext::default(), NS, &options)
            .await;
        let error = match opened {
            Err(error) => error,
            Ok(mut events) => end(&mut events).await.expect("an error"),
        };
        let (found, message) = shown(&error);
        assert_eq!(found, Some(reason), "{context}, {options:?}: {message}");
    }
}

async fn wait_for_fill(
    endpoint: &Endpoint,
    mut is_so: impl FnMut(&apiloom_storage::cache::Fill) -> bool,
) {
    let mut progress = endpoint.resource().cache.as_ref().unwrap().progress();
    let filled = progress.wait_for(|progress| is_so(&progress.fill));
    let waited = tokio::time::timeout(PATIENCE, filled).await;
    assert!(waited.is_ok(), "{:?}", endpoint.resource().cache);
}

fn has_failed(fill: &apiloom_storage::cache::Fill) -> bool {
    use apiloom_storage::cache::Fill;
    matches!(fill, Fill::Pending { error: Some(_), .. } | Fill::Behind(_))
}

#[tokio::test(start_paused = true)]
async fn a_watch_fails_while_the_cache_was_never_filled() {
    for (error, reason) in [(corrupt(), "InternalError"), (away(), "TooManyRequests")] {
        let context = error.to_string();
        let store = Ailing::new(Some(error));
        let (_registry, endpoint) = widgets(&store, true).await;
        wait_for_fill(&endpoint, has_failed).await;
        all_fail(&endpoint, reason, &context).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_cache_falls_empty_and_others_fail_until_it_is_filled() {
    for (error, reason) in [(corrupt(), "InternalError"), (away(), "TooManyRequests")] {
        let context = error.to_string();
        let store = Ailing::new(None);
        let (_registry, endpoint) = widgets(&store, true).await;
        wait_for_fill(&endpoint, |fill| fill.is_filled()).await;
        let mut open = Vec::new();
        for options in starts() {
            let events = endpoint
                .reads()
                .watch(&RequestContext::default(), NS, &options)
                .await;
            open.push(events.unwrap());
        }
        store.lists.send_replace(Some(error));
        store.watches.send_replace(Some(compacted()));
        for events in &mut open {
            end(events).await;
        }
        wait_for_fill(&endpoint, has_failed).await;
        all_fail(&endpoint, reason, &context).await;
        store.watches.send_replace(None);
        store.lists.send_replace(None);
        wait_for_fill(&endpoint, |fill| fill.is_filled()).await;
        let again = endpoint
            .reads()
            .watch(&RequestContext::default(), NS, &starts()[3])
            .await;
        let created = widget("a", json!({}));
        let options = CreateOptions::default();
        let ctx = RequestContext::default();
        let created = endpoint
            .writes()
            .create(&ctx, NS, object(created), &options);
        created.await.unwrap();
        let event = again.unwrap().next().await.unwrap().unwrap();
        assert_eq!(event.kind, WatchEventKind::Added);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_an_error_when_changes_cannot_be_read() {
    let store = Ailing::new(None);
    let (_registry, endpoint) = widgets(&store, true).await;
    wait_for_fill(&endpoint, |fill| fill.is_filled()).await;
    let ctx = RequestContext::default();
    let mut events = endpoint
        .reads()
        .watch(&ctx, NS, &starts()[0])
        .await
        .unwrap();
    store.watches.send_replace(Some(corrupt()));
    let error = end(&mut events).await.expect("an error");
    assert_eq!(
        shown(&error),
        (
            Some("InternalError"),
            "Internal error occurred: corrupt store: it is damaged"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn open_watches_outlive_a_store_that_is_away_and_new_ones_fail() {
    let store = Ailing::new(None);
    let (_registry, endpoint) = widgets(&store, true).await;
    wait_for_fill(&endpoint, |fill| fill.is_filled()).await;
    let ctx = RequestContext::default();
    let mut events = endpoint
        .reads()
        .watch(&ctx, NS, &starts()[3])
        .await
        .unwrap();
    store.watches.send_replace(Some(away()));
    wait_for_fill(&endpoint, has_failed).await;
    // The failure is intermittent, so a watch may be opened between two attempts; then it must end like the open one.
    let opened = endpoint.reads().watch(&ctx, NS, &starts()[0]).await;
    if let Err(error) = opened {
        assert_eq!(shown(&error).0, Some("ServerTimeout"));
    }
    store.watches.send_replace(None);
    let created = widget("a", json!({}));
    let options = CreateOptions::default();
    let created = endpoint
        .writes()
        .create(&ctx, NS, object(created), &options);
    created.await.unwrap();
    let event = tokio::time::timeout(PATIENCE, events.next()).await;
    assert_eq!(event.unwrap().unwrap().unwrap().kind, WatchEventKind::Added);
}

#[tokio::test(start_paused = true)]
async fn without_a_cache_a_watch_fails_as_the_store_does() {
    let store = Ailing::new(None);
    let (_registry, endpoint) = widgets(&store, false).await;
    let ctx = RequestContext::default();
    let mut events = endpoint
        .reads()
        .watch(&ctx, NS, &starts()[0])
        .await
        .unwrap();
    store.watches.send_replace(Some(corrupt()));
    let error = end(&mut events).await.expect("an error");
    assert_eq!(shown(&error).0, Some("InternalError"));
    store.watches.send_replace(Some(compacted()));
    let mut events = endpoint
        .reads()
        .watch(&ctx, NS, &starts()[0])
        .await
        .unwrap();
    let error = end(&mut events).await.expect("an error");
    assert_eq!(
        shown(&error),
        (Some("Expired"), "too old resource version: 1 (2)")
    );
}

fn exactly(version: impl ToString) -> ListOptions {
    ListOptions {
        resource_version: version.to_string(),
        version_match: Some(VersionMatch::Exact),
        ..ListOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_exact_list_of_what_the_store_has_compacted_is_expired() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let second = f.create(widget("b", json!({}))).await.unwrap();
    f.create(widget("c", json!({}))).await.unwrap();
    let second: u64 = second.resource_version().parse().unwrap();
    let limited = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    let first_page = f.list(&limited).await.unwrap();
    assert_eq!(names(&f.list(&exactly(second)).await.unwrap()), ["a", "b"]);
    let last = f.create(widget("d", json!({}))).await.unwrap();
    f.cached().await;
    f.store.compact(Revision(f.revision().await)).await.unwrap();
    // The store was read a moment ago.
    tokio::time::advance(Duration::from_secs(1)).await;
    let error = f.list(&exactly(second)).await.unwrap_err();
    let expired = "The resourceVersion for the provided list is too old.";
    assert_eq!(shown(&error), (Some("Expired"), expired));
    let next_page = ListOptions {
        continue_token: first_page.continue_token,
        ..limited
    };
    let error = f.list(&next_page).await.unwrap_err();
    assert!(
        error
            .message
            .starts_with("The provided continue parameter is too old")
    );
    let present = f.list(&exactly(last.resource_version())).await.unwrap();
    assert_eq!(names(&present), ["a", "b", "c", "d"]);
}
