//! The way of a create from the listener to the store: few functions, each of which a reader has to open.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use apiloom::storage::{Memory, Storage};
use apiloom_storage::Layer;
use serde_json::json;

use super::{KETTLES, kettle, with_server_of};

/// Maximum functions of the server between the listener and the store. It may not grow.
const MOST: usize = 10;

/// A store that keeps the backtrace of each create.
#[derive(Debug)]
struct Traced {
    inner: Arc<Memory>,
    creates: Mutex<Vec<String>>,
}

impl Layer for Traced {
    fn behind(&self) -> &dyn Storage {
        // Namespaces, which the server makes itself, do not come by way of http.
        let trace = Backtrace::force_capture().to_string();
        if trace.contains("http/src/verbs/create.rs") {
            self.creates.lock().unwrap().push(trace);
        }
        &*self.inner
    }
}

/// The crates of which a server consists.
const CRATES: [&str; 3] = ["registry/", "http/", "server/"];

/// Where the functions of the server in a backtrace are, innermost first: `registry/writes/create.rs:160`.
fn places(trace: &str) -> Vec<&str> {
    trace
        .lines()
        .filter_map(|line| line.trim().strip_prefix("at "))
        .filter_map(|place| Some(place.split_once("/runtime/")?.1))
        .filter(|place| CRATES.iter().any(|krate| place.starts_with(krate)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_passes_few_functions_between_the_listener_and_the_store() {
    let store = Arc::new(Traced {
        inner: Memory::new(),
        creates: Mutex::default(),
    });
    let given = Arc::clone(&store);
    with_server_of(
        |builder| builder.storage(given),
        async |client, _| {
            let created = client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
            assert_eq!(created.code, 201, "{}", created.text());
        },
    )
    .await;
    let creates = store.creates.lock().unwrap();
    let mut of_requests = creates.iter().filter_map(|trace| {
        let places = places(trace);
        let listener = places
            .iter()
            .position(|place| place.starts_with("server/src/server/listener.rs"))?;
        Some(places[..listener].to_vec())
    });
    let Some(between) = of_requests.next() else {
        panic!("no create from the listener: {creates:#?}");
    };
    assert!(
        between.len() <= MOST,
        "{} functions: {between:#?}",
        between.len()
    );
}
