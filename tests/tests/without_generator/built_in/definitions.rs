//! CustomResourceDefinitions: those that are generated for wardle, on a server without its kinds.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apiloom::ApiError;
use apiloom::apis::apiextensions::v1::CustomResourceDefinition;
use apiloom::prelude::{Admission, AdmissionRequest, Builder, async_trait};
use apiloom_storage::{Layer, ListRequest, Memory, Page, Storage, StorageError};
use apiloom_tests::repository;
use serde_json::{Value, json};

use super::BuiltIns;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/wardle.example.com/v1alpha1";
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

/// The definition in a file.
fn generated(name: &str) -> Value {
    let path = repository().join(format!("examples/wardle/generated/crds/{name}.yaml"));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Waits until a condition holds.
async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_established(server: &BuiltIns, name: &str) {
    let started = Instant::now();
    loop {
        let (_, definition) = server
            .send("GET", &format!("{CRDS}/{name}"), &json!(null))
            .await;
        let conditions = definition["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if conditions.any(|one| one["type"] == "Established" && one["status"] == "True") {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{definition}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_definitions_of_wardle_are_served() {
    let server = BuiltIns::new().await;
    for name in ["flunders.wardle.example.com", "fischers.wardle.example.com"] {
        let (code, made) = server.send("POST", CRDS, &generated(name)).await;
        assert_eq!(code, 201, "{made}");
        until_established(&server, name).await;
    }
    let flunder = |name: &str, spec: Value| json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec});
    let made = server
        .object(
            "POST",
            FLUNDERS,
            flunder("a", json!({"reference": "b", "referenceType": "Flunder"})),
        )
        .await;
    assert_eq!(made["spec"]["reference"], "b");
    assert_eq!(made["kind"], "Flunder");
    let mistyped = flunder("c", json!({"reference": 1, "referenceType": "Flunder"}));
    let refusal = server.refusal("POST", FLUNDERS, mistyped).await;
    // The definition has rules, which are for objects of the right form.
    assert_eq!(
        refusal,
        "[spec.reference: Invalid value: \"integer\": spec.reference in body must be of type string: \"integer\", \
         <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
         existing errors to complete validation]"
    );
    assert_eq!(
        server.row(&format!("{FLUNDERS}/a")).await[0],
        json!(["Name", "a"])
    );
    let (code, _) = server
        .send(
            "DELETE",
            &format!("{CRDS}/flunders.wardle.example.com"),
            &json!(null),
        )
        .await;
    assert_eq!(code, 200);
    until(async || server.send("GET", FLUNDERS, &json!(null)).await.0 == 404).await;
    server.stop().await;
}

/// Refuses statuses of definitions as long as it is closed.
#[derive(Clone, Default)]
struct Gate {
    is_closed: Arc<AtomicBool>,
    has_refused: Arc<AtomicBool>,
}

#[async_trait]
impl Admission for Gate {
    fn name(&self) -> &'static str {
        "Gate"
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let is_status = request.is::<CustomResourceDefinition>() && request.subresource == "status";
        if is_status && self.is_closed.load(Ordering::SeqCst) {
            self.has_refused.store(true, Ordering::SeqCst);
            return Err(request.forbidden("the gate is closed"));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_whose_names_cannot_be_stored_is_not_served_until_they_are() {
    let gate = Gate::default();
    gate.is_closed.store(true, Ordering::SeqCst);
    let plugin = gate.clone();
    let server =
        BuiltIns::of(move |builder: Builder| builder.all_built_in().admission(|_| plugin)).await;
    let definition = generated("flunders.wardle.example.com");
    let (code, made) = server.send("POST", CRDS, &definition).await;
    assert_eq!(code, 201, "{made}");
    // The controller, which is alone, serves the kind before it writes the status, and takes the kind back until it tries again.
    let is_served = async || server.send("GET", FLUNDERS, &json!(null)).await.0 != 404;
    let mut absent = 0;
    until(async || {
        let was_refused = gate.has_refused.load(Ordering::SeqCst);
        absent = if was_refused && !is_served().await {
            absent + 1
        } else {
            0
        };
        absent == 5
    })
    .await;
    let path = format!("{CRDS}/flunders.wardle.example.com");
    let (_, refused) = server.send("GET", &path, &json!(null)).await;
    assert_eq!(refused["status"]["conditions"], json!(null), "{refused}");
    // It goes on trying.
    gate.is_closed.store(false, Ordering::SeqCst);
    until_established(&server, "flunders.wardle.example.com").await;
    assert!(is_served().await);
    // A change that cannot be stored either leaves the names as they are, and the kind served.
    gate.is_closed.store(true, Ordering::SeqCst);
    gate.has_refused.store(false, Ordering::SeqCst);
    let mut changed = definition.clone();
    changed["spec"]["names"]["shortNames"] = json!(["flun"]);
    let (_, present) = server.send("GET", &path, &json!(null)).await;
    changed["metadata"] = present["metadata"].clone();
    let (code, put) = server.send("PUT", &path, &changed).await;
    assert_eq!(code, 200, "{put}");
    until(async || {
        assert!(is_served().await);
        gate.has_refused.load(Ordering::SeqCst)
    })
    .await;
    let short_names = async || {
        let (_, list) = server.send("GET", GROUP, &json!(null)).await;
        list["resources"][0]["shortNames"].clone()
    };
    assert_eq!(
        short_names().await,
        definition["spec"]["names"]["shortNames"]
    );
    gate.is_closed.store(false, Ordering::SeqCst);
    until(async || {
        assert!(is_served().await);
        short_names().await == json!(["flun"])
    })
    .await;
    server.stop().await;
}

/// A store in which a list takes longer than a server waits for its watch caches, as one of very many definitions.
struct Slow(Arc<Memory>);

impl fmt::Debug for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slow").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for Slow {
    fn behind(&self) -> &dyn Storage {
        &*self.0
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.0.list(request).await
    }

    /// The next server uses it.
    async fn close(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_definitions_take_long_to_read_starts_with_them() {
    let store: Arc<dyn Storage> = Arc::new(Slow(Memory::new()));
    let start = || {
        let store = Arc::clone(&store);
        BuiltIns::of(|builder| {
            builder
                .all_built_in()
                .storage_of::<CustomResourceDefinition>(store)
        })
    };
    let server = start().await;
    let definition = generated("flunders.wardle.example.com");
    let (code, made) = server.send("POST", CRDS, &definition).await;
    assert_eq!(code, 201, "{made}");
    until_established(&server, "flunders.wardle.example.com").await;
    server.stop().await;
    let server = start().await;
    let (code, list) = server.send("GET", FLUNDERS, &json!(null)).await;
    assert_eq!((code, &list["items"]), (200, &json!([])));
    server.stop().await;
}
