//! Watches and lists by a selectable field in a version that is not stored: a change wakes the watches that select it
//! and is converted once for all of them, and lists do not convert objects that they exclude.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::versions::stored_long_ago;
use super::*;
use crate::objects::cached_object::CachedObject;
use crate::reads::field_values::{FieldValues, UNUSED_LOOKS};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Part {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct StoredPart {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

impl ApiType for Part {}
impl ApiType for StoredPart {}
resource!(Part, "v1", "Part", "parts", |def| ResourceDef {
    selectable: vec![JsonPath::new(["spec", "color"]).into()],
    ..def
});
resource!(StoredPart, "v1alpha1", "Part", "parts", |def| {
    ResourceDef {
        storage: true,
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Part".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub,
                from_hub: Ok,
            }),
        }),
        ..def
    }
});

thread_local! {
    /// Number of objects converted to the hub; a test and its server run on one thread.
    static CONVERTED: Cell<usize> = const { Cell::new(0) };
}

fn to_hub(value: Value) -> Result<Value, String> {
    CONVERTED.set(CONVERTED.get() + 1);
    match value.pointer("/spec/color").and_then(Value::as_str) {
        Some("stuck") => Err("it is stuck".to_owned()),
        _ => Ok(value),
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Event = Option<Result<WatchEvent, ApiError>>;

struct Watching {
    next: Pin<Box<dyn Future<Output = (Event, WatchEvents)> + Send>>,
    woken: Arc<Woken>,
}

impl Watching {
    fn new(events: WatchEvents) -> Self {
        Self {
            next: Box::pin(next_of(events)),
            woken: Arc::default(),
        }
    }

    /// The next event, if it is available without waiting; then waits again.
    fn poll(&mut self) -> Option<Event> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let polled = self.next.as_mut().poll(&mut Context::from_waker(&waker));
        self.woken.0.store(0, Ordering::SeqCst);
        let Poll::Ready((event, events)) = polled else {
            return None;
        };
        self.next = Box::pin(next_of(events));
        Some(event)
    }
}

async fn next_of(mut events: WatchEvents) -> (Event, WatchEvents) {
    // Otherwise yields would wake watchers too.
    let event = tokio::task::coop::unconstrained(events.next()).await;
    (event, events)
}

const WATCHERS: usize = 40;

/// The watchers that were woken, each with its events.
fn woken(watchers: &mut [Watching]) -> Vec<(usize, Event)> {
    let mut woken = Vec::new();
    for (number, watcher) in watchers.iter_mut().enumerate() {
        if watcher.woken.0.load(Ordering::SeqCst) > 0 {
            let event = watcher.poll();
            woken.push((number, event.expect("woken for nothing")));
            while matches!(watcher.poll(), Some(Some(_))) {}
        }
    }
    woken
}

fn part(name: &str, color: &str) -> Object {
    object(json!({"metadata": {"name": name}, "spec": {"color": color}}))
}

#[tokio::test]
async fn a_change_wakes_the_watchers_of_its_values_alone_and_is_converted_once() {
    let (f, [hub, stored]) = two_versions::<Part, StoredPart>().await;
    let mut watchers = Vec::new();
    for number in 0..WATCHERS {
        let options = ListOptions {
            send_initial_events: Some(false),
            ..fields(&format!("spec.color=c{number}"))
        };
        let namespace = NS.filter(|_| number % 2 == 0);
        let events = hub
            .reads()
            .watch(&f.ctx, namespace, &options)
            .await
            .unwrap();
        let mut watcher = Watching::new(events);
        assert!(watcher.poll().is_none());
        watchers.push(watcher);
    }
    let options = CreateOptions::default();
    let kinds = |woken: &[(usize, Event)]| -> Vec<(usize, WatchEventKind)> {
        let kind = |event: &Event| event.as_ref().unwrap().as_ref().unwrap().kind;
        woken.iter().map(|(at, event)| (*at, kind(event))).collect()
    };

    let before = CONVERTED.get();
    let created = stored
        .writes()
        .create(&f.ctx, NS, part("a", "c7"), &options)
        .await;
    caught_up(&hub).await;
    let told = woken(&mut watchers);
    assert_eq!(kinds(&told), [(7, WatchEventKind::Added)]);
    let converted = CONVERTED.get() - before;
    assert_eq!(
        converted, 2,
        "judged by the hub's rules, then converted once"
    );

    let mut changed = created.unwrap().object;
    changed
        .fields_mut()
        .insert("spec".to_owned(), json!({"color": "c8"}));
    let update = stored
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "a").with(&options), changed)
        .await;
    update.unwrap();
    caught_up(&hub).await;
    let told = woken(&mut watchers);
    assert_eq!(
        kinds(&told),
        [(7, WatchEventKind::Deleted), (8, WatchEventKind::Added)]
    );
    let converted = CONVERTED.get() - before;
    assert_eq!(
        converted,
        2 + 2,
        "the new state is judged by the hub's rules, then converted once; the old one is known"
    );

    // An object that cannot be converted may have any value, so every watch ends with the error.
    let spec = json!({"color": "stuck"});
    f.plant("parts", &stored_long_ago("Part", "b", &spec)).await;
    caught_up(&hub).await;
    let told = woken(&mut watchers);
    assert_eq!(told.len(), WATCHERS);
    assert!(told.iter().all(|(_, event)| matches!(event, Some(Err(_)))));
}

/// Lists the hub's version by a color; returns the names, and the number of objects converted before the first was
/// sent.
async fn listed(
    f: &Fixture,
    hub: &Endpoint,
    color: &str,
) -> Result<(Vec<String>, usize), ApiError> {
    let before = CONVERTED.get();
    let options = fields(&format!("spec.color={color}"));
    let list = hub.reads().list(&f.ctx, NS, &options).await?;
    let converted = CONVERTED.get() - before;
    Ok((names(&list), converted))
}

#[tokio::test]
async fn lists_by_a_field_convert_each_object_once() {
    const OBJECTS: usize = 50;
    let (f, [hub, stored]) = two_versions::<Part, StoredPart>().await;
    let options = CreateOptions::default();
    let mut objects = Vec::new();
    for number in 0..OBJECTS {
        let color = format!("c{}", number % 5);
        let created = part(&format!("p{number:02}"), &color);
        let created = stored.writes().create(&f.ctx, NS, created, &options).await;
        objects.push(created.unwrap().object);
    }
    caught_up(&hub).await;
    let of = |color: usize| -> Vec<String> {
        let numbers = (0..OBJECTS).filter(|number| number % 5 == color);
        numbers.map(|number| format!("p{number:02}")).collect()
    };
    assert_eq!(values(&hub).len(), 0, "nothing is kept before it is used");
    assert_eq!(listed(&f, &hub, "c1").await.unwrap(), (of(1), OBJECTS));
    assert_eq!(listed(&f, &hub, "c2").await.unwrap(), (of(2), 0));
    assert_eq!(listed(&f, &hub, "none").await.unwrap(), (vec![], 0));

    // Initial events convert the objects they send.
    let before = CONVERTED.get();
    let watch = ListOptions {
        resource_version: "0".to_owned(),
        ..fields("spec.color=c3")
    };
    let mut events = hub.reads().watch(&f.ctx, NS, &watch).await.unwrap();
    for name in of(3) {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(event.object.object().unwrap().name(), name);
    }
    assert_eq!(CONVERTED.get() - before, OBJECTS / 5);

    // A changed object has another state.
    let mut changed = objects[1].clone();
    changed
        .fields_mut()
        .insert("spec".to_owned(), json!({"color": "c4"}));
    let update = UpdateOptions::default();
    stored
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "p01").with(&update), changed)
        .await
        .unwrap();
    caught_up(&hub).await;
    let without: Vec<String> = of(1).into_iter().filter(|name| name != "p01").collect();
    assert_eq!(listed(&f, &hub, "c1").await.unwrap(), (without, 1));
    let (names, converted) = listed(&f, &hub, "c4").await.unwrap();
    assert!(
        names.contains(&"p01".to_owned()) && converted == 0,
        "{names:?}"
    );

    // An object that cannot be converted may have any value, so every list fails.
    let stuck = stored
        .writes()
        .create(&f.ctx, NS, part("stuck", "stuck"), &options);
    assert_eq!(
        shown(&stuck.await.unwrap_err()),
        (
            Some("BadRequest"),
            "Part in version \"v1alpha1\" cannot be handled as a Part: converting Part \"stuck\" from \
             test.example.com/v1alpha1 to test.example.com/v1: it is stuck"
        )
    );
    let spec = json!({"color": "stuck"});
    f.plant("parts", &stored_long_ago("Part", "stuck", &spec))
        .await;
    caught_up(&hub).await;
    for _ in 0..2 {
        let error = listed(&f, &hub, "c0").await.unwrap_err();
        assert!(error.message.contains("it is stuck"), "{}", error.message);
    }
    stored
        .writes()
        .delete(&f.ctx, NS, "stuck", &DeleteOptions::default())
        .await
        .unwrap();
    caught_up(&hub).await;
    assert_eq!(listed(&f, &hub, "c0").await.unwrap(), (of(0), 0));

    // Values that lists no longer use are dropped.
    for _ in 0..=UNUSED_LOOKS {
        assert!(values(&hub).len() >= OBJECTS);
        values(&hub).forget_unused();
    }
    assert_eq!(values(&hub).len(), 0);
    assert_eq!(listed(&f, &hub, "c0").await.unwrap(), (of(0), OBJECTS));
}

/// The values of selectable fields that lists of an endpoint keep.
fn values(endpoint: &Endpoint) -> &FieldValues {
    &endpoint.reads().stored().unwrap().field_values
}

/// Values of released states are dropped: their number grows with the objects, not with the changes.
#[tokio::test]
async fn values_of_states_that_are_gone_are_dropped() {
    let (f, [hub, stored]) = two_versions::<Part, StoredPart>().await;
    let options = CreateOptions::default();
    let created = stored
        .writes()
        .create(&f.ctx, NS, part("a", "c0"), &options)
        .await;
    created.unwrap();
    listed(&f, &hub, "c0").await.unwrap();
    let cache = hub.resource().cache.as_ref().unwrap();
    let item = Arc::clone(cache.snapshot().range("", "").next().unwrap());
    let version = stored.resource().version();
    let mut most = 0;
    for _ in 0..5_000 {
        let json = item.object.as_ref().unwrap().json();
        let state = Arc::new(apiloom_storage::cache::Item {
            key: Arc::clone(&item.key),
            revision: item.revision,
            object: CachedObject::new(&json, version),
        });
        values(&hub).keep(&state, state.object.as_ref().unwrap());
        most = most.max(values(&hub).len());
    }
    assert!(values(&hub).get(&item).is_some(), "it is still there");
    assert!(most <= 2_100, "{most}");
}
