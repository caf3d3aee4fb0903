//! The writers: clients of the API, and another tool that writes to etcd directly. The model is built from their
//! responses.

use std::sync::{Arc, Mutex};

use apiloom_tests::{Answer, Client, revision};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::interest::{Example, LABELS};
use crate::model::{Deletion, Put, Revision};
use crate::objects::{
    FISCHERS, Key, NAMES, NAMESPACES, Resource, Version, collection, is_released, spec, to_stored,
};
use crate::random::{Random, one_in, pick};
use crate::site::Address;

const MERGE: &str = "application/merge-patch+json";

/// All writes, by their responses.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The store was empty at this revision.
    first: Revision,
    puts: Mutex<Vec<Put>>,
    deletions: Mutex<Vec<Deletion>>,
    /// The newest acknowledged revision, and the number of writes.
    written: watch::Sender<(Revision, usize)>,
    /// Held during a deletion, so that deletions are ordered.
    turn: tokio::sync::Mutex<()>,
}

impl Ledger {
    pub(crate) fn new(first: Revision) -> Self {
        Self {
            first,
            puts: Mutex::default(),
            deletions: Mutex::default(),
            written: watch::Sender::new((first, 0)),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Waits for the turn to delete.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Records the object of a response.
    fn object(&self, object: Value) {
        let object = to_stored(object);
        let resource = match object["kind"].as_str() {
            Some("Fischer") => Resource::Fischers,
            _ => Resource::Flunders,
        };
        self.put(Put {
            revision: revision(&object),
            place: None,
            key: Key::of(resource, &object),
            object: Some(object),
        });
    }

    pub(crate) fn put(&self, put: Put) {
        let newest = put.revision;
        self.puts.lock().unwrap().push(put);
        self.written.send_modify(|(known, count)| {
            *known = newest.max(*known);
            *count += 1;
        });
    }

    fn deletion(&self, deletion: Deletion) {
        self.deletions.lock().unwrap().push(deletion);
        self.written.send_modify(|(_, count)| *count += 1);
    }

    /// The revision at which the store was empty.
    pub(crate) fn first(&self) -> Revision {
        self.first
    }

    /// The newest acknowledged revision.
    pub(crate) fn newest(&self) -> Revision {
        self.written.borrow().0
    }

    /// Number of acknowledged delete requests.
    pub(crate) fn deletions(&self) -> usize {
        self.deletions.lock().unwrap().len()
    }

    /// Waits until this many writes were acknowledged.
    pub(crate) async fn wait(&self, count: usize) {
        let mut written = self.written.subscribe();
        let _ = written.wait_for(|(_, known)| *known >= count).await;
    }

    /// All recorded writes.
    pub(crate) fn parts(&self) -> (Vec<Put>, Vec<Deletion>) {
        let (puts, deletions) = (self.puts.lock().unwrap(), self.deletions.lock().unwrap());
        (puts.clone(), deletions.clone())
    }
}

/// A client that writes.
pub(crate) struct Writer {
    pub(crate) servers: Arc<[Address]>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) random: Random,
}

impl Writer {
    /// Makes this many writes, some of which change nothing.
    pub(crate) async fn run(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.step().await;
        }
        self
    }

    async fn step(&mut self) {
        let key = self.key();
        match self.random.below(20) {
            0..=5 => self.create_or_patch(&key).await,
            6..=11 => self.patch(&key).await,
            12 | 13 => self.update(&key).await,
            14 | 15 => self.delete(&key).await,
            16 => self.delete_some().await,
            17 => self.update_status(&key).await,
            18 => self.delete_slowly(&key).await,
            _ => self.delete_and_create(&key).await,
        }
    }

    fn key(&mut self) -> Key {
        let random = &mut self.random;
        if one_in(random, 8) {
            Key::fischer(pick(random, &FISCHERS))
        } else {
            Key::flunder(pick(random, &NAMESPACES), pick(random, &NAMES))
        }
    }

    fn version(&mut self, resource: Resource) -> Version {
        if resource == Resource::Flunders && one_in(&mut self.random, 3) {
            Version::Hub
        } else {
            Version::Stored
        }
    }

    fn client(&mut self) -> Client {
        pick(&mut self.random, &self.servers).http2
    }

    async fn send(&mut self, method: &str, url: &str, media_type: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let headers = [("content-type", media_type)];
        self.client().call(method, url, &headers, body).await
    }

    /// Records the response to a write; returns whether it was executed. The object may be absent or changed by another
    /// client.
    fn note(&self, answer: &Answer) -> bool {
        assert!(
            matches!(answer.code, 200 | 201 | 404 | 409),
            "{}: {}",
            answer.code,
            answer.text()
        );
        let is_made = answer.code < 300;
        if is_made {
            self.ledger.object(answer.json());
        }
        is_made
    }

    /// Random content of an object: labels, reference, and sometimes a long text.
    fn content(&mut self, resource: Resource, version: Version) -> Value {
        let random = &mut self.random;
        let mut labels = serde_json::Map::new();
        for (key, values) in &LABELS {
            let label = (!one_in(random, 3)).then(|| pick(random, values));
            labels.insert((*key).to_owned(), json!(label));
        }
        // Events above 16 KiB are not shared, responses above 128 KiB are compressed.
        let length = pick(
            random,
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 200, 20_000, 40_000],
        );
        let text = (length > 0).then(|| "x".repeat(length));
        let mut content = json!({"metadata": {"labels": labels, "annotations": {"text": text}}});
        match resource {
            Resource::Fischers => content["disallowedFlunders"] = json!(["banned"]),
            Resource::Flunders => {
                let name = pick(random, &NAMES);
                let types = [Some(("Flunder", name)), Some(("Fischer", name)), None];
                content["spec"] = spec(version, pick(random, &types));
            }
        }
        content
    }

    async fn create(&mut self, key: &Key, mut object: Value, version: Version) -> bool {
        drop_nulls(&mut object);
        object["metadata"]["name"] = key.name().into();
        object["apiVersion"] = version.api_version().into();
        object["kind"] = key.resource.kind().into();
        let url = collection(key.resource, version, key.namespace());
        let answer = self.send("POST", &url, "application/json", &object).await;
        self.note(&answer)
    }

    async fn merge(&mut self, key: &Key, patch: &Value, version: Version) -> bool {
        let answer = self.send("PATCH", &key.url(version), MERGE, patch).await;
        self.note(&answer)
    }

    async fn create_or_patch(&mut self, key: &Key) {
        let version = self.version(key.resource);
        let content = self.content(key.resource, version);
        if !self.create(key, content.clone(), version).await {
            self.merge(key, &content, version).await;
        }
    }

    async fn patch(&mut self, key: &Key) {
        let version = self.version(key.resource);
        let mut patch = self.content(key.resource, version);
        // Some change only the metadata, some only the rest.
        let fields = patch.as_object_mut().unwrap();
        match self.random.below(3) {
            0 => fields.retain(|name, _| name == "metadata"),
            1 => fields.retain(|name, _| name != "metadata"),
            _ => {}
        }
        self.merge(key, &patch, version).await;
    }

    /// Gets an object, changes it and puts it back.
    async fn update(&mut self, key: &Key) {
        let version = self.version(key.resource);
        let url = key.url(version);
        let present = self.client().get(&url).await;
        if present.code != 200 {
            return;
        }
        let mut object = present.json();
        let content = self.content(key.resource, version);
        object["metadata"]["labels"] = content["metadata"]["labels"].clone();
        if let Some(spec) = content.get("spec") {
            object["spec"] = spec.clone();
        }
        drop_nulls(&mut object);
        let answer = self.send("PUT", &url, "application/json", &object).await;
        self.note(&answer);
    }

    async fn update_status(&mut self, key: &Key) {
        if key.resource == Resource::Fischers {
            return;
        }
        let version = self.version(key.resource);
        let url = key.url(version);
        let present = self.client().get(&url).await;
        if present.code == 200 {
            let mut object = present.json();
            object["status"] = json!({});
            let url = format!("{url}/status");
            let answer = self.send("PUT", &url, "application/json", &object).await;
            self.note(&answer);
        }
    }

    async fn delete(&mut self, key: &Key) {
        let ledger = Arc::clone(&self.ledger);
        let _turn = ledger.turn().await;
        let after = self.ledger.newest();
        let url = key.url(self.version(key.resource));
        let answer = self
            .send("DELETE", &url, "application/json", &Value::Null)
            .await;
        match answer.code {
            404 => {}
            200 => self.ledger.deletion(Deletion {
                after,
                keys: vec![key.clone()],
            }),
            _ => panic!("{}", answer.text()),
        }
    }

    async fn delete_and_create(&mut self, key: &Key) {
        self.delete(key).await;
        self.create_or_patch(key).await;
    }

    /// Deletes the objects of a selector in a namespace.
    async fn delete_some(&mut self) {
        let ledger = Arc::clone(&self.ledger);
        let _turn = ledger.turn().await;
        let after = self.ledger.newest();
        let version = self.version(Resource::Flunders);
        let namespace = pick(&mut self.random, &NAMESPACES);
        let collection = collection(Resource::Flunders, version, Some(namespace));
        let selectors = [
            "fieldSelector=spec.referenceType%3DFlunder",
            "labelSelector=tier%3Dside",
            "fieldSelector=metadata.name%3Da",
        ];
        let url = format!("{collection}?{}", pick(&mut self.random, &selectors));
        let answer = self
            .send("DELETE", &url, "application/json", &Value::Null)
            .await;
        assert_eq!(answer.code, 200, "{}", answer.text());
        let list = answer.json();
        let items = list["items"].as_array().unwrap().iter();
        let keys: Vec<Key> = items
            .map(|item| Key::of(Resource::Flunders, item))
            .collect();
        if !keys.is_empty() {
            self.ledger.deletion(Deletion { after, keys });
        }
    }

    /// Deletes an object with a finalizer, then removes the finalizer.
    async fn delete_slowly(&mut self, key: &Key) {
        let ledger = Arc::clone(&self.ledger);
        let _turn = ledger.turn().await;
        let version = self.version(key.resource);
        let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        if !self.merge(key, &hold, version).await {
            return;
        }
        let url = key.url(version);
        let answer = self
            .send("DELETE", &url, "application/json", &Value::Null)
            .await;
        self.note(&answer);
        let after = self.ledger.newest();
        let release = json!({"metadata": {"finalizers": null}});
        let answer = self.send("PATCH", &url, MERGE, &release).await;
        let object = answer.json();
        assert!(is_released(&object), "{object}");
        let keys = vec![key.clone()];
        self.ledger.deletion(Deletion { after, keys });
    }

    /// Changes an object so that an interest selects it; returns the revision.
    pub(crate) async fn close(&mut self, example: &Example, number: u64) -> Revision {
        let annotations = json!({"closing": number.to_string()});
        let mut content =
            json!({"metadata": {"labels": example.labels(), "annotations": annotations}});
        if example.key.resource == Resource::Flunders {
            let reference = example.reference.map(|kind| (kind, "a"));
            content["spec"] = spec(Version::Stored, reference);
        }
        let is_there = self.merge(&example.key, &content, Version::Stored).await;
        if !is_there {
            assert!(self.create(&example.key, content, Version::Stored).await);
        }
        self.ledger.newest()
    }
}

/// Removes the fields that a patch removes.
pub(crate) fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}
