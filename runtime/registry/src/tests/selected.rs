//! Lists and watches compared with a plain filter: random writes, some of them two per revision; all kinds of
//! selectors, in both versions, in all namespaces and in one, fresh and resumed, with a watch cache, with one that
//! keeps no history, and without.

use std::time::Duration;

use apiloom_storage::{PairedStore, Revision};
use bytes::Bytes;
use futures_util::FutureExt as _;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};

use super::*;

const NAMESPACES: [&str; 2] = ["one", "other"];
const NAMES: [&str; 3] = ["a", "ab", "b"];
const COLORS: [&str; 2] = ["red", "blue"];
const APPS: [&str; 2] = ["web", "db"];

/// An object, by indexes of the constants above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thing {
    color: Option<usize>,
    app: Option<usize>,
}

/// Namespace and name, in key order.
type Key = (usize, usize);

/// A key to put, or to delete with `None`.
type Write = (Key, Option<Thing>);

/// Writes of one transaction: one key, or two different ones.
type Step = (Write, Option<Write>);

#[derive(Clone, Copy, Debug)]
enum Cache {
    Full,
    /// The cache has no history from before the watches begin.
    Forgetful,
    None,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// Initial events, then changes.
    Fresh,
    /// Initial events of any available state, then changes.
    Any,
    /// Changes after a transaction.
    After(usize),
}

#[derive(Clone, Debug)]
struct Ask {
    is_stored_version: bool,
    namespace: Option<usize>,
    name: Option<usize>,
    of_namespace: Option<usize>,
    /// A color, or none, and whether it must be equal or different.
    color: Option<(Option<usize>, bool)>,
    app: Option<usize>,
    start: Start,
}

impl Ask {
    fn selects(&self, (namespace, name): Key, thing: Thing) -> bool {
        let is = |wanted: Option<usize>, found| wanted.is_none_or(|wanted| wanted == found);
        is(self.namespace, namespace)
            && is(self.of_namespace, namespace)
            && is(self.name, name)
            && self.app.is_none_or(|app| thing.app == Some(app))
            && self
                .color
                .is_none_or(|(color, equal)| (thing.color == color) == equal)
    }

    fn options(&self) -> ListOptions {
        let mut terms = Vec::new();
        terms.extend(self.name.map(|n| format!("metadata.name={}", NAMES[n])));
        let namespace = self.of_namespace;
        terms.extend(namespace.map(|n| format!("metadata.namespace={}", NAMESPACES[n])));
        if let Some((color, equal)) = self.color {
            let operator = if equal { "=" } else { "!=" };
            let field = ["spec.color", "spec.colour"][usize::from(self.is_stored_version)];
            let color = color.map_or("", |color| COLORS[color]);
            terms.push(format!("{field}{operator}{color}"));
        }
        let label = self.app.map(|app| format!("app={}", APPS[app]));
        ListOptions {
            label_selector: LabelQuery::parse(&label.unwrap_or_default()).unwrap(),
            ..fields(&terms.join(","))
        }
    }

    fn namespace(&self) -> Option<&'static str> {
        self.namespace.map(|namespace| NAMESPACES[namespace])
    }
}

/// A client's view of an object: event type, namespace, name, revision, color and label.
type Seen = (&'static str, String, String, u64, String, String);

fn seen(kind: &'static str, key: Key, revision: u64, thing: Thing) -> Seen {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    (
        kind,
        NAMESPACES[key.0].to_owned(),
        NAMES[key.1].to_owned(),
        revision,
        text(thing.color.map(|color| COLORS[color])),
        text(thing.app.map(|app| APPS[app])),
    )
}

fn shown_object(kind: &'static str, document: &Document) -> Seen {
    let object = decoded(document);
    let color = [at(&object, "/spec/color"), at(&object, "/spec/colour")];
    let color = color.iter().find_map(Value::as_str);
    (
        kind,
        object.namespace().to_owned(),
        object.name().to_owned(),
        object.resource_version().parse().unwrap(),
        color.unwrap_or_default().to_owned(),
        object.label("app").unwrap_or_default().to_owned(),
    )
}

fn shown_event(event: &WatchEvent) -> Seen {
    let kind = match event.kind {
        WatchEventKind::Added => "ADDED",
        WatchEventKind::Modified => "MODIFIED",
        WatchEventKind::Deleted => "DELETED",
        WatchEventKind::Bookmark => "BOOKMARK",
    };
    shown_object(kind, &event.object)
}

type State = BTreeMap<Key, (Thing, u64)>;

/// The store, and a record of the writes.
struct World {
    store: Arc<PairedStore>,
    /// Keeps the caches up to date until it is dropped.
    _registry: Registry,
    endpoints: [Arc<Endpoint>; 2],
    ctx: RequestContext,
    /// The state after each transaction with its revision; the first one is empty.
    states: Vec<(u64, State)>,
    /// Revision, key, old and new object.
    changes: Vec<(u64, Key, Option<Thing>, Option<Thing>)>,
}

impl World {
    async fn new(cache: Cache) -> Self {
        let store = PairedStore::new();
        let mut builder = with_namespaces(Arc::clone(&store) as Arc<dyn Storage>);
        builder.group(GroupDef {
            name: GROUP.into(),
            versions: vec!["v1".into(), "v1alpha1".into()].into(),
            release: None,
            place: None,
        });
        builder.kind::<Widget>();
        builder.kind::<AlphaWidget>();
        match cache {
            Cache::Full | Cache::Forgetful => {}
            Cache::None => builder.watch_cache(None),
        }
        let registry = builder.build().unwrap();
        registry.start().await.unwrap();
        let endpoints = ["v1", "v1alpha1"].map(|version| {
            let endpoint = registry.endpoint(GROUP, version, "widgets");
            endpoint.unwrap()
        });
        let revision = store.current_revision().await.unwrap().0;
        Self {
            store,
            _registry: registry,
            endpoints,
            ctx: RequestContext::default(),
            states: vec![(revision, State::new())],
            changes: Vec::new(),
        }
    }

    async fn write(&mut self, (first, second): Step) {
        let second = second.filter(|(key, _)| *key != first.0);
        let spare = ((usize::MAX, 0), None);
        let [one, two] = [first, second.unwrap_or(spare)].map(|(key, thing)| {
            let (name, value) = match NAMESPACES.get(key.0) {
                Some(namespace) => {
                    let name = NAMES[key.1];
                    let key = format!("/registry/{GROUP}/widgets/{namespace}/{name}");
                    (key, thing.map(|thing| stored(namespace, name, thing)))
                }
                None => ("/nothing".to_owned(), None),
            };
            (name, value)
        });
        let writes = [(one.0.as_str(), one.1), (two.0.as_str(), two.1)];
        let revision = self.store.transact(writes).await.unwrap().0;
        let mut state = self.states.last().unwrap().1.clone();
        for (key, thing) in [Some(first), second].into_iter().flatten() {
            let old = match thing {
                Some(thing) => state.insert(key, (thing, revision)),
                None => state.remove(&key),
            };
            let old = old.map(|(old, _)| old);
            if old.is_some() || thing.is_some() {
                self.changes.push((revision, key, old, thing));
            }
        }
        self.states.push((revision, state));
    }

    fn endpoint(&self, ask: &Ask) -> &Arc<Endpoint> {
        &self.endpoints[usize::from(ask.is_stored_version)]
    }

    async fn list(&self, ask: &Ask, options: &ListOptions) -> ListResult {
        let endpoint = self.endpoint(ask);
        let listed = endpoint
            .reads()
            .list(&self.ctx, ask.namespace(), options)
            .await;
        listed.unwrap()
    }

    /// Lists the present and old states, complete and in pages.
    async fn check_lists(&self, ask: &Ask, past: usize) {
        let present = self.states.last().unwrap();
        for (revision, state) in [present, &self.states[past]] {
            let selected = state
                .iter()
                .filter(|(key, (thing, _))| ask.selects(**key, *thing));
            let expected: Vec<Seen> = selected
                .map(|(key, (thing, at))| seen("", *key, *at, *thing))
                .collect();
            for limit in [0, 2] {
                let mut options = ListOptions {
                    resource_version: revision.to_string(),
                    version_match: Some(VersionMatch::Exact),
                    limit,
                    ..ask.options()
                };
                let mut found = Vec::new();
                loop {
                    let listed = self.list(ask, &options).await;
                    let items = listed.items.clone();
                    found.extend(items.map(|item| shown_object("", &item.unwrap())));
                    if listed.continue_token.is_empty() {
                        break;
                    }
                    options = ListOptions {
                        resource_version: String::new(),
                        version_match: None,
                        continue_token: listed.continue_token,
                        ..options
                    };
                }
                assert_eq!(found, expected, "list at {revision}, limit {limit}");
            }
        }
    }

    /// Opens a watch; returns the transaction after which its changes begin.
    async fn watch(&self, ask: &Ask) -> (WatchEvents, usize) {
        let now = self.states.len() - 1;
        let (resource_version, begin) = match ask.start {
            Start::Fresh => (String::new(), now),
            Start::Any => ("0".to_owned(), now),
            Start::After(step) => {
                let step = step % self.states.len();
                (self.states[step].0.to_string(), step)
            }
        };
        let options = ListOptions {
            send_initial_events: Some(!matches!(ask.start, Start::After(_))),
            resource_version,
            ..ask.options()
        };
        let endpoint = self.endpoint(ask);
        let events = endpoint
            .reads()
            .watch(&self.ctx, ask.namespace(), &options)
            .await;
        (events.unwrap(), begin)
    }

    fn expected(&self, ask: &Ask, begin: usize) -> Vec<Seen> {
        let (revision, state) = &self.states[begin];
        let is_initial = !matches!(ask.start, Start::After(_));
        let initial = state
            .iter()
            .filter(|(key, (thing, _))| is_initial && ask.selects(**key, *thing))
            .map(|(key, (thing, at))| seen("ADDED", *key, *at, *thing));
        let after = self.changes.iter().filter(|change| change.0 > *revision);
        let changed = after.filter_map(|(at, key, old, new)| {
            let old = old.filter(|old| ask.selects(*key, *old));
            let new = new.filter(|new| ask.selects(*key, *new));
            match (old, new) {
                (None, None) => None,
                (None, Some(new)) => Some(seen("ADDED", *key, *at, new)),
                (Some(_), Some(new)) => Some(seen("MODIFIED", *key, *at, new)),
                (Some(old), None) => Some(seen("DELETED", *key, *at, old)),
            }
        });
        initial.chain(changed).collect()
    }

    /// Reads all expected events of a watch, and checks that there are no others.
    async fn check_watch(&self, ask: &Ask, begin: usize, mut events: WatchEvents) {
        let expected = self.expected(ask, begin);
        let mut found = Vec::new();
        while found.len() < expected.len() {
            let next = tokio::time::timeout(Duration::from_secs(5), events.next()).await;
            let Ok(Some(Ok(event))) = next else {
                panic!("{found:?} of {expected:?}, then {next:?}");
            };
            found.push(shown_event(&event));
        }
        for _ in 0..5 {
            let more = events.next().now_or_never().flatten();
            found.extend(more.map(|event| shown_event(&event.unwrap())));
            tokio::task::yield_now().await;
        }
        assert_eq!(found, expected);
    }
}

/// A widget as stored.
fn stored(namespace: &str, name: &str, thing: Thing) -> Bytes {
    let mut metadata = json!({"name": name, "namespace": namespace});
    if let Some(app) = thing.app {
        metadata["labels"] = json!({"app": APPS[app]});
    }
    let color = thing.color.map(|color| COLORS[color]);
    let spec = color.map_or(json!({}), |color| json!({"colour": color}));
    let object = json!({
        "kind": "Widget", "apiVersion": format!("{GROUP}/v1alpha1"), "metadata": metadata, "spec": spec,
    });
    object.to_string().into()
}

fn key_of_thing() -> impl Strategy<Value = Key> {
    (0..NAMESPACES.len(), 0..NAMES.len())
}

fn write() -> impl Strategy<Value = Write> {
    let color = prop::option::weighted(0.8, 0..COLORS.len());
    let app = prop::option::of(0..APPS.len());
    let thing = (color, app).prop_map(|(color, app)| Thing { color, app });
    (key_of_thing(), prop::option::weighted(0.8, thing))
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((write(), prop::option::of(write())), 0..most)
}

fn ask() -> impl Strategy<Value = Ask> {
    let start = prop_oneof![
        Just(Start::Fresh),
        Just(Start::Any),
        (0..100_usize).prop_map(Start::After),
    ];
    let color = (
        prop::option::weighted(0.9, 0..COLORS.len()),
        prop::bool::weighted(0.8),
    );
    (
        any::<bool>(),
        prop::option::weighted(0.6, 0..NAMESPACES.len()),
        prop::option::weighted(0.2, 0..NAMES.len()),
        prop::option::weighted(0.2, 0..NAMESPACES.len()),
        prop::option::weighted(0.6, color),
        prop::option::weighted(0.2, 0..APPS.len()),
        start,
    )
        .prop_map(
            |(is_stored_version, namespace, name, of_namespace, color, app, start)| Ask {
                is_stored_version,
                namespace,
                name,
                of_namespace,
                color,
                app,
                start,
            },
        )
}

async fn check(cache: Cache, before: Vec<Step>, after: Vec<Step>, asks: Vec<Ask>) {
    let mut world = World::new(cache).await;
    for step in before {
        world.write(step).await;
    }
    // Reads wait for a revision; a watch of any state does not.
    let ask = Ask {
        is_stored_version: true,
        namespace: None,
        name: None,
        of_namespace: None,
        color: None,
        app: None,
        start: Start::Fresh,
    };
    world.list(&ask, &ListOptions::default()).await;
    if let (Cache::Forgetful, Some(cache)) = (cache, &world.endpoint(&ask).resource().cache) {
        cache.forget(Revision(u64::MAX));
    }
    let mut watches = Vec::new();
    for ask in &asks {
        watches.push(world.watch(ask).await);
    }
    let past = world.states.len() / 2;
    for step in after {
        world.write(step).await;
    }
    for (ask, (events, begin)) in asks.iter().zip(watches) {
        world.check_watch(ask, begin, events).await;
        world.check_lists(ask, past).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, max_shrink_iters: 50, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn lists_and_watches_give_what_a_plain_filter_gives(
        cache in prop_oneof![4 => Just(Cache::Full), 1 => Just(Cache::Forgetful), 1 => Just(Cache::None)],
        before in steps(12),
        after in steps(12),
        asks in prop::collection::vec(ask(), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(cache, before, after, asks));
    }
}
