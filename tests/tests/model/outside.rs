//! Another tool that writes to etcd directly: several objects in one transaction, and objects with a lease.

use std::sync::Arc;

use apiloom_tests::Cluster;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::model::{Put, Revision};
use crate::objects::{Key, NAMES, NAMESPACES, OUTSIDE, Resource, Version, in_version, to_stored};
use crate::random::{Random, one_in, pick};
use crate::site::Address;
use crate::writer::Ledger;

/// Objects that only this tool writes; clients of the API may delete them.
const OWN: [&str; 3] = ["o1", "o2", "o-3"];

/// The same for objects with a lease.
const LEASED: [&str; 2] = ["leased", "leased-2"];

/// The other tool.
pub(crate) struct Outside<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) servers: Arc<[Address]>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) random: Random,
}

/// A document as it is stored, sometimes in the version that the servers do not store.
fn stored(document: &Value, random: &mut Random) -> Value {
    let version = pick(random, &[Version::Stored, Version::Stored, Version::Hub]);
    let stored = in_version(document, version).to_string();
    STANDARD.encode(stored).into()
}

/// One write of a transaction: a key, and the document or its removal.
type Write = (Key, Option<Value>);

impl Outside<'_> {
    /// Makes this many transactions.
    pub(crate) async fn run(mut self, count: usize) {
        for _ in 0..count {
            match self.random.below(4) {
                0 => self.lease().await,
                1 => self.change_others().await,
                _ => self.change_own().await,
            }
        }
    }

    fn gateway(&self, path: &str, request: &Value) -> Value {
        let mut answer = Value::Null;
        tokio::task::block_in_place(|| {
            self.cluster
                .with_etcd(|etcd| answer = etcd.gateway(path, request));
        });
        answer
    }

    fn note(&self, answer: &Value, writes: Vec<Write>) {
        let revision: Revision = answer["header"]["revision"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        for (place, (key, document)) in writes.into_iter().enumerate() {
            let object = document.map(|mut object| {
                object["metadata"]["resourceVersion"] = revision.to_string().into();
                object
            });
            self.ledger.put(Put {
                revision,
                place: Some(place),
                key,
                object,
            });
        }
    }

    /// Makes several writes at one revision.
    fn transact(&mut self, writes: Vec<Write>) {
        let random = &mut self.random;
        let operation = |(key, document): &Write| {
            let key = STANDARD.encode(key.in_etcd());
            match document {
                Some(document) => {
                    json!({"requestPut": {"key": key, "value": stored(document, random)}})
                }
                None => json!({"requestDeleteRange": {"key": key}}),
            }
        };
        let operations: Vec<Value> = writes.iter().map(operation).collect();
        let answer = self.gateway("/v3/kv/txn", &json!({"success": operations}));
        let mut done = answer["responses"].as_array().unwrap().iter();
        let writes = writes.into_iter().filter(|(_, document)| {
            let done = done.next().unwrap();
            // The removal of an absent key changes nothing.
            document.is_some() || done["response_delete_range"]["deleted"] == "1"
        });
        self.note(&answer, writes.collect());
    }

    /// A document of an object of its own.
    fn document(&mut self, key: &Key) -> Value {
        let random = &mut self.random;
        let kind = pick(random, &["Flunder", "Fischer"]);
        let tier = pick(random, &["front", "back", "side"]);
        json!({
            "apiVersion": Version::Stored.api_version(),
            "kind": "Flunder",
            "metadata": {
                "name": key.name(),
                "namespace": key.namespace(),
                "uid": format!("00000000-0000-4000-8000-{:012x}", random.next() >> 20),
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "generation": 1,
                "labels": {"tier": tier},
                "annotations": {OUTSIDE: "yes"},
            },
            "spec": {"reference": "a", "referenceType": kind},
        })
    }

    /// Puts and removes its own objects, in several namespaces.
    async fn change_own(&mut self) {
        let ledger = self.ledger;
        let _turn = ledger.turn().await;
        let mut writes: Vec<Write> = Vec::new();
        for namespace in NAMESPACES {
            for name in OWN {
                if !one_in(&mut self.random, 3) {
                    continue;
                }
                let key = Key::flunder(namespace, name);
                if one_in(&mut self.random, 4) {
                    writes.push((key, None));
                    continue;
                }
                let document = self.document(&key);
                writes.push((key, Some(document)));
            }
        }
        if !writes.is_empty() {
            self.transact(writes);
        }
    }

    /// Changes recently read objects of other clients.
    async fn change_others(&mut self) {
        let ledger = self.ledger;
        // Holds the turn to delete, so that no deleted object comes back with its old uid.
        let _turn = ledger.turn().await;
        let mut writes: Vec<Write> = Vec::new();
        for namespace in NAMESPACES {
            let key = Key::flunder(namespace, pick(&mut self.random, &NAMES));
            let client = &pick(&mut self.random, &self.servers).http2;
            let present = client.get(&key.url(Version::Stored)).await;
            if present.code != 200 {
                continue;
            }
            let mut object = to_stored(present.json());
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("resourceVersion");
            let kind = pick(&mut self.random, &["Flunder", "Fischer"]);
            object["metadata"]["annotations"][OUTSIDE] = "yes".into();
            object["metadata"]["labels"]["env"] = (pick(&mut self.random, &["a", "b"])).into();
            object["spec"] = json!({"reference": "a", "referenceType": kind});
            writes.push((key, Some(object)));
        }
        if !writes.is_empty() {
            self.transact(writes);
        }
    }

    /// Puts two objects with a lease, then revokes it: both are removed at one revision.
    async fn lease(&mut self) {
        let ledger = self.ledger;
        let _turn = ledger.turn().await;
        let lease = self.gateway("/v3/lease/grant", &json!({"TTL": 600}))["ID"].clone();
        let namespace = pick(&mut self.random, &NAMESPACES);
        let keys = LEASED.map(|name| Key::flunder(namespace, name));
        for key in &keys {
            debug_assert_eq!(key.resource, Resource::Flunders);
            let document = self.document(key);
            let value = stored(&document, &mut self.random);
            let put =
                json!({"key": STANDARD.encode(key.in_etcd()), "value": value, "lease": lease});
            let answer = self.gateway("/v3/kv/put", &put);
            self.note(&answer, vec![(key.clone(), Some(document))]);
        }
        let answer = self.gateway("/v3/lease/revoke", &json!({"ID": lease}));
        // In etcd's key order.
        self.note(&answer, keys.map(|key| (key, None)).into());
    }
}
