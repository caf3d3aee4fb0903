//! Requests with large documents do not delay others, and end when their client disconnects.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use apiloom_meta::kind::{SchemaSource, custom_definitions};
use apiloom_meta::schema::StoredSchema;
use apiloom_meta::{FieldError, ResourceDef};
use apiloom_registry::{CatalogChange, RequestContext, Strategy};
use futures_util::FutureExt as _;
use serde_json::json;

use super::*;
use crate::testing;

/// A strategy that counts its calls, and blocks while the gate is closed.
#[derive(Default)]
struct Gate {
    judged: AtomicUsize,
    gave_up: AtomicUsize,
    is_closed: Mutex<bool>,
    opened: Condvar,
}

/// Long enough for every machine: only a server that delays other requests reaches it.
const PATIENCE: Duration = Duration::from_secs(10);

struct Rules(Arc<Gate>);

impl Strategy<Fischer> for Rules {
    fn validate(&self, _: &RequestContext, _: &Fischer) -> Vec<FieldError> {
        let gate = &self.0;
        gate.judged.fetch_add(1, Ordering::SeqCst);
        let is_closed = gate.is_closed.lock().unwrap();
        let waited = gate
            .opened
            .wait_timeout_while(is_closed, PATIENCE, |is_closed| *is_closed);
        if waited.unwrap().1.timed_out() {
            gate.gave_up.fetch_add(1, Ordering::SeqCst);
        }
        Vec::new()
    }
}

async fn api_with(gate: &Arc<Gate>) -> Api {
    let rules = Rules(Arc::clone(gate));
    api_of(|registry| {
        registry.kind::<Fischer>();
        registry.strategy::<Fischer>(rules);
    })
    .await
}

fn fischer(name: &str, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(r#"{{"metadata":{{"name":"{name}"}},"disallowedFlunders":["{text}"]}}"#)
}

const LARGE: usize = 100 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_answered_while_large_documents_are_worked_on() {
    let gate = Arc::new(Gate::default());
    *gate.is_closed.lock().unwrap() = true;
    let api = api_with(&gate).await;
    let requests = ["a", "b", "c", "d"].map(|name| {
        let api = api.clone();
        tokio::spawn(async move { post(&api, FISCHERS, &fischer(name, LARGE)).await })
    });
    // More requests than the runtime has threads. No sleeps, since the runtime's threads may all be blocked.
    let held = || gate.judged.load(Ordering::SeqCst) + gate.gave_up.load(Ordering::SeqCst);
    while held() < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let other = api.clone();
    let livez = tokio::spawn(async move { get(&other, "/livez").await.expect(200) });
    livez.await.unwrap();
    assert_eq!(gate.gave_up.load(Ordering::SeqCst), 0);
    *gate.is_closed.lock().unwrap() = false;
    gate.opened.notify_all();
    for request in requests {
        request.await.unwrap().expect(201);
    }
}

/// Polls a request at most this number of times; returns its response, or `None` if it was dropped before.
async fn polled(request: impl Future<Output = Answer>, times: usize) -> Option<Answer> {
    let mut request = Box::pin(request);
    for _ in 0..times {
        if let Some(answer) = (&mut request).now_or_never() {
            return Some(answer);
        }
        // It may wait for another task.
        tokio::task::yield_now().await;
    }
    None
}

#[tokio::test]
async fn a_client_that_has_gone_ends_its_work() {
    let gate = Arc::new(Gate::default());
    let api = api_with(&gate).await;
    let mut steps = 1;
    while polled(post(&api, FISCHERS, &fischer("a", LARGE)), steps)
        .await
        .is_none()
    {
        get(&api, &format!("{FISCHERS}/a")).await.expect(404);
        steps += 1;
    }
    // Decoding, admission, preparation, validation and the following are separate steps.
    assert!(steps > 5, "{steps}");
    // Of all these requests only the last two reached the strategy.
    assert!(gate.judged.load(Ordering::SeqCst) <= 2);
    let small = polled(post(&api, FISCHERS, &fischer("b", 1024)), 1).await;
    small.expect("a small one has no steps").expect(201);
    // A small patch of a large object is expensive too.
    let patch = |name: &str, text: &str| {
        let (api, url) = (api.clone(), format!("{FISCHERS}/{name}"));
        let patch = format!(r#"{{"metadata":{{"labels":{{"a":"{text}"}}}}}}"#);
        async move { merge_patch(&api, &url, &patch).await }
    };
    assert!(polled(patch("a", "x"), 3).await.is_none());
    polled(patch("b", "x"), 1)
        .await
        .expect("no steps")
        .expect(200);
    let url = format!("{FISCHERS}/a");
    assert_eq!(get(&api, &url).await.at("/metadata/labels"), Value::Null);
    polled(patch("a", "y"), 100)
        .await
        .expect("an answer")
        .expect(200);
    assert!(polled(delete(&api, &url, ""), 1).await.is_none());
    get(&api, &url).await.expect(200);
}

/// How often a request waits for capacity while the test holds all of it, and its response.
async fn waits(registry: &Registry, request: impl Future<Output = Answer>) -> (usize, Answer) {
    let mut request = Box::pin(request);
    let mut room = registry.take_room().await;
    let mut answer = polled(&mut request, 100).await;
    for waits in 0..10 {
        if let Some(answer) = answer {
            return (waits, answer);
        }
        let mut next = Box::pin(registry.take_room());
        assert!((&mut next).now_or_never().is_none());
        drop(room);
        answer = polled(&mut request, 100).await;
        room = next.await;
    }
    panic!("it is not answered");
}

#[tokio::test]
async fn whatever_reads_a_long_query_waits_for_room() {
    let (api, registry) = api_and_registry(|registry| {
        registry.kind::<Flunder>();
    })
    .await;
    let terms = |count: usize, term: &str| vec![term; count].join(",");
    let labels = format!("labelSelector={}", terms(2000, "!a"));
    let values: Vec<_> = (0..1500).map(|number| format!("b{number}")).collect();
    let values = format!("labelSelector=a+in+({})", values.join(","));
    let fields = format!("fieldSelector={}", terms(300, "metadata.name!=a"));
    let pairs = "a&".repeat(3000);
    let short = format!("labelSelector={}", terms(1000, "!a"));
    // Decoding the query, parsing its selectors, compiling them.
    let check = async |query: &str, expected: usize| {
        let url = format!("{FLUNDERS}?{query}");
        let list = waits(&registry, get(&api, &url)).await;
        assert_eq!(
            (list.0, list.1.code.as_u16()),
            (expected, 200),
            "{query:.30}"
        );
        let delete = waits(&registry, delete(&api, &url, "")).await;
        assert_eq!(
            (delete.0, delete.1.code.as_u16()),
            (expected, 200),
            "{query:.30}"
        );
        // Refused after the selectors; otherwise the watch would not end.
        let url = format!("{url}&watch=1&resourceVersion=x");
        let watch = waits(&registry, get(&api, &url)).await;
        assert_eq!(watch.0, expected, "{query:.30}: {:?}", watch.1.code);
        // The steps before authorization.
        let room = registry.take_room().await;
        let request = testing::get(&url, &[]);
        let has_read = testing::call(&api, &request).now_or_never();
        assert_eq!(has_read.is_none(), expected > 0, "{query:.30}");
        drop(room);
    };
    check(&labels, 3).await;
    check(&values, 3).await;
    check(&fields, 3).await;
    check(&pairs, 2).await;
    check(&short, 0).await;
}

/// The stored definition of a kind `Vat`, whose schema has this description and a rule.
fn vats(description: &str) -> ResourceDef {
    let spec = json!({
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size < 3", "message": "it is too large"}],
    });
    let schema =
        json!({"type": "object", "properties": {"spec": spec}, "description": description});
    let document = json!({"spec": {
        "group": "ex.io", "scope": "Cluster", "names": {"plural": "vats", "kind": "Vat"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    let def = custom_definitions(&document, None).unwrap().remove(0);
    let stored = StoredSchema::new(schema.to_string().into());
    ResourceDef {
        schema: SchemaSource::Stored(Arc::new(stored)),
        ..def
    }
}

#[tokio::test]
async fn the_schema_of_a_large_definition_is_made_with_room_for_it() {
    const VATS: &str = "/apis/ex.io/v1/vats";
    let check = async |description: usize, expected: usize| {
        let (api, registry) = api_and_registry(|registry| {
            registry.kind::<Flunder>();
        })
        .await;
        let change = CatalogChange::new().definition(vats(&"x".repeat(description)));
        registry.change(change).await.unwrap();
        let vat = |name: &str, size: u64| {
            let vat = json!({"apiVersion": "ex.io/v1", "kind": "Vat", "metadata": {"name": name}, "spec": {"size": size}});
            let (api, vat) = (api.clone(), vat.to_string());
            async move { post(&api, VATS, &vat).await }
        };
        let list = || async { waits(&registry, get(&api, VATS)).await };
        let code = |(waits, answer): (usize, Answer)| (waits, answer.code.as_u16());
        // A path that is unknown needs no schema.
        let unknown = get(&api, "/apis/ex.io/v1/vat");
        assert_eq!(code(waits(&registry, unknown).await), (0, 404));
        let refused = get_as(&api, "image/png", VATS);
        assert_eq!(code(waits(&registry, refused).await), (expected, 406));
        assert_eq!(code(list().await), (0, 200));
        // Its rules are made for the first write of an object, not for a delete.
        let deleted = delete(&api, "/apis/ex.io/v1/vats/a", "");
        assert_eq!(code(waits(&registry, deleted).await), (0, 404));
        let (waited, answer) = waits(&registry, vat("a", 3)).await;
        assert_eq!((waited, answer.code.as_u16()), (expected, 422));
        assert!(
            answer.message().ends_with("it is too large"),
            "{}",
            answer.message()
        );
        assert_eq!(code(waits(&registry, vat("a", 2)).await), (0, 201));
    };
    check(LARGE, 1).await;
    check(1024, 0).await;
}
