//! Watches by a selectable field in a version that is not stored: a change wakes those that it concerns and is converted
//! once for all of them.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::*;

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
    selectable: vec![JsonPath::new(["spec", "color"])],
    ..def
});
resource!(StoredPart, "v1alpha1", "Part", "parts", |def| {
    ResourceDef {
        storage: true,
        conversion: Some(Conversion {
            hub_version: "v1",
            hub_kind: "Part",
            json: None,
            to_hub,
            from_hub: Ok,
        }),
        ..def
    }
});

/// How many objects were converted to the hub; one test alone converts.
static CONVERTED: AtomicUsize = AtomicUsize::new(0);

fn to_hub(value: Value) -> Result<Value, String> {
    CONVERTED.fetch_add(1, Ordering::SeqCst);
    match value.pointer("/spec/color").and_then(Value::as_str) {
        Some("stuck") => Err("it is stuck".to_owned()),
        _ => Ok(value),
    }
}

/// Counts how often it is woken.
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

    /// What comes next, if it is there. The wait begins again.
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
    // Else the turns of tasks would wake watchers too.
    let event = tokio::task::coop::unconstrained(events.next()).await;
    (event, events)
}

const WATCHERS: usize = 40;

/// The watchers that were woken, each with what it gets.
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

// Issue 9, point 20.
#[tokio::test]
async fn a_change_wakes_the_watchers_of_its_values_alone_and_is_converted_once() {
    let (f, [hub, stored]) = two_versions::<Part, StoredPart>().await;
    let cache = Arc::clone(hub.cache.as_ref().unwrap());
    let mut watchers = Vec::new();
    for number in 0..WATCHERS {
        let options = ListOptions {
            send_initial_events: Some(false),
            ..fields(&format!("spec.color=c{number}"))
        };
        let namespace = NS.filter(|_| number % 2 == 0);
        let events = hub.watch(&f.ctx, namespace, &options).await.unwrap();
        let mut watcher = Watching::new(events);
        assert!(watcher.poll().is_none());
        watchers.push(watcher);
    }
    let options = CreateOptions::default();
    let kinds = |woken: &[(usize, Event)]| -> Vec<(usize, WatchEventKind)> {
        let kind = |event: &Event| event.as_ref().unwrap().as_ref().unwrap().kind;
        woken.iter().map(|(at, event)| (*at, kind(event))).collect()
    };
    let caught_up = async || {
        let came = cache.wait_for_present(std::time::Duration::from_secs(20));
        assert!(came.await.unwrap());
    };

    let before = CONVERTED.load(Ordering::SeqCst);
    let created = stored.create(&f.ctx, NS, part("a", "c7"), &options).await;
    caught_up().await;
    let told = woken(&mut watchers);
    assert_eq!(kinds(&told), [(7, WatchEventKind::Added)]);
    assert_eq!(
        CONVERTED.load(Ordering::SeqCst),
        before + 1,
        "converted once"
    );

    let mut changed = created.unwrap().object;
    changed
        .fields_mut()
        .insert("spec".to_owned(), json!({"color": "c8"}));
    let update = stored.update(&f.ctx, NS, "a", "", changed, &options).await;
    update.unwrap();
    caught_up().await;
    let told = woken(&mut watchers);
    assert_eq!(
        kinds(&told),
        [(7, WatchEventKind::Deleted), (8, WatchEventKind::Added)]
    );
    assert_eq!(
        CONVERTED.load(Ordering::SeqCst),
        before + 2,
        "the old state is known"
    );

    // What cannot be converted may be anything: every watch ends with the reason.
    stored
        .create(&f.ctx, NS, part("b", "stuck"), &options)
        .await
        .unwrap();
    caught_up().await;
    let told = woken(&mut watchers);
    assert_eq!(told.len(), WATCHERS);
    assert!(told.iter().all(|(_, event)| matches!(event, Some(Err(_)))));
}
