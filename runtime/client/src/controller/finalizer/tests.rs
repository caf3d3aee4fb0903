//! Tests of finalizers on one object of a server in memory, which others change meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_kinds::core::v1::ConfigMap;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Method, Request, Response};
use tokio_util::sync::CancellationToken;

use super::super::guard::WriteRecorder;
use super::*;
use crate::client::{Client, Namespaced};
use crate::transport::{Body, Transport, TransportError};

const OURS: &str = "example.com/ours";

/// Changes the object on the server; `None` is none.
type Change = Box<dyn FnMut(&mut Option<Value>) + Send>;

/// One object, its version, and what another client does before each patch.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    object: Option<Value>,
    version: u64,
    patches: usize,
    before_patch: Change,
}

impl State {
    /// Writes as a server does: the version grows, an empty list is absent, and a deletion without finalizers is final.
    fn store(&mut self, object: Option<Value>) {
        self.version += 1;
        self.object = object;
        if let Some(object) = &mut self.object {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.insert("resourceVersion".into(), self.version.to_string().into());
            let has_finalizers = metadata
                .get("finalizers")
                .is_some_and(|list| *list != json!([]));
            if !has_finalizers {
                metadata.remove("finalizers");
                if metadata.contains_key("deletionTimestamp") {
                    self.object = None;
                }
            }
        }
    }

    fn answer(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        let status = |code: u16, reason: &str| {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason});
            (code, status)
        };
        if method == Method::PATCH {
            self.patches += 1;
            let mut object = self.object.clone();
            (self.before_patch)(&mut object);
            if object != self.object {
                self.store(object);
            }
        }
        let Some(mut object) = self.object.clone() else {
            return status(404, "NotFound");
        };
        if method == Method::PATCH {
            let patch: json_patch::Patch = serde_json::from_slice(body).expect("a patch");
            if json_patch::patch(&mut object, &patch).is_err() {
                return status(422, "Invalid");
            }
            self.store(Some(object.clone()));
        }
        (200, self.object.clone().unwrap_or(object))
    }
}

impl Transport for Server {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let server = self.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect(1 << 20).await.expect("a body");
            let (code, answer) = server.0.lock().unwrap().answer(&head.method, &body);
            let response = Response::builder().status(code);
            let response = response.header("content-type", "application/json");
            Ok(response
                .body(Body::from(Bytes::from(answer.to_string())))
                .unwrap())
        }
        .boxed()
    }
}

fn object(finalizers: &[&str], is_deleting: bool) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "a", "uid": "u", "finalizers": finalizers},
    });
    if is_deleting {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    object
}

fn server(object: Value) -> Server {
    let mut state = State {
        object: None,
        version: 0,
        patches: 0,
        before_patch: Box::new(|_| {}),
    };
    state.store(Some(object));
    Server(Arc::new(Mutex::new(state)))
}

impl Server {
    /// Another client makes this change before the first patch.
    fn before_first_patch(self, change: impl FnOnce(&mut Option<Value>) + Send + 'static) -> Self {
        let mut change = Some(change);
        self.0.lock().unwrap().before_patch = Box::new(move |object| {
            if let Some(change) = change.take() {
                change(object);
            }
        });
        self
    }

    fn finalizers(&self) -> Option<Vec<String>> {
        let state = self.0.lock().unwrap();
        let list = &state.object.as_ref()?["metadata"]["finalizers"];
        Some(serde_json::from_value(list.clone()).unwrap_or_default())
    }

    /// Calls the helper with the object as it was before others changed it. Counts the calls of `clean_up`.
    async fn finalize(&self) -> (Result<FinalizerOutcome<ConfigMap>, ReconcileError>, usize) {
        let cached = self.0.lock().unwrap().object.clone().expect("an object");
        let cached: ConfigMap = serde_json::from_value(cached).unwrap();
        let client: ResourceClient<ConfigMap, Namespaced> =
            Client::new(self.clone()).namespaced("default");
        let context = Context::new(
            CancellationToken::new(),
            WriteRecorder::new(Arc::new(|_, _| {})),
        );
        let calls = AtomicUsize::new(0);
        let clean_up = async |_: Arc<ConfigMap>| {
            calls.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let result = context
            .finalizer(&client, Arc::new(cached), OURS, clean_up)
            .await;
        (result, calls.into_inner())
    }
}

fn set_finalizers(list: &[&str]) -> impl FnOnce(&mut Option<Value>) + Send + 'static {
    let list = json!(list);
    move |object| {
        if let Some(object) = object {
            object["metadata"]["finalizers"] = list;
        }
    }
}

#[tokio::test]
async fn a_live_object_gets_the_finalizer_once() {
    let server = server(object(&[], false));
    let (live, calls) = server.finalize().await;
    let FinalizerOutcome::Live(object) = live.unwrap() else {
        panic!("it lives");
    };
    assert_eq!(object.metadata.finalizers, [OURS]);
    assert_eq!(object.metadata.resource_version.as_deref(), Some("2"));
    let (again, _) = server.finalize().await;
    assert_eq!(again.unwrap(), FinalizerOutcome::Live(object));
    assert_eq!((calls, server.0.lock().unwrap().patches), (0, 1));
}

#[tokio::test]
async fn a_deleted_object_is_cleaned_up_and_goes() {
    let server = server(object(&[OURS], true));
    let (deleted, calls) = server.finalize().await;
    assert_eq!((deleted.unwrap(), calls), (FinalizerOutcome::Deleted, 1));
    assert_eq!(server.finalizers(), None);
    let other = self::server(object(&["example.com/other"], true));
    let (deleted, calls) = other.finalize().await;
    assert_eq!((deleted.unwrap(), calls), (FinalizerOutcome::Deleted, 0));
    assert_eq!(other.0.lock().unwrap().patches, 0);
}

#[tokio::test]
async fn an_error_of_the_clean_up_keeps_the_finalizer() {
    let server = server(object(&[OURS], true));
    let cached = server.0.lock().unwrap().object.clone().unwrap();
    let cached: ConfigMap = serde_json::from_value(cached).unwrap();
    let client = Client::new(server.clone()).namespaced("default");
    let context = Context::new(
        CancellationToken::new(),
        WriteRecorder::new(Arc::new(|_, _| {})),
    );
    let fail = async |_| Err("the volume is in use".into());
    let failed = context
        .finalizer(&client, Arc::new(cached), OURS, fail)
        .await;
    assert_eq!(failed.unwrap_err().to_string(), "the volume is in use");
    assert_eq!(server.finalizers().unwrap(), [OURS]);
}

/// Each list that was cached, and each list that the server has by the time of the patch.
#[tokio::test]
async fn trap_45_entries_of_others_are_never_removed() {
    let lists: [&[&str]; 7] = [
        &[OURS],
        &["a", OURS],
        &[OURS, "b"],
        &["a", OURS, "b"],
        &["b", "a", OURS],
        &["a", "b"],
        &["b"],
    ];
    for cached in lists {
        for changed in lists {
            for is_deleting in [true, false] {
                let server =
                    server(object(cached, is_deleting)).before_first_patch(set_finalizers(changed));
                let is_patched = cached.contains(&OURS) == is_deleting;
                let (result, calls) = server.finalize().await;
                let case = format!("{cached:?} {changed:?} {is_deleting}");
                let has_cleaned_up = is_deleting && cached.contains(&OURS);
                assert_eq!(calls, usize::from(has_cleaned_up), "{case}");
                if !is_patched {
                    continue;
                }
                let mut expected: Vec<&str> = changed.to_vec();
                if is_deleting {
                    expected.retain(|name| *name != OURS);
                    assert_eq!(result.unwrap(), FinalizerOutcome::Deleted, "{case}");
                } else {
                    if !expected.contains(&OURS) {
                        expected.push(OURS);
                    }
                    let FinalizerOutcome::Live(live) = result.unwrap() else {
                        panic!("{case}");
                    };
                    assert_eq!(live.metadata.finalizers, expected, "{case}");
                }
                assert_eq!(server.finalizers().unwrap_or_default(), expected, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn trap_45_a_list_that_appears_is_not_replaced() {
    let server =
        server(object(&[], false)).before_first_patch(set_finalizers(&["example.com/other"]));
    let (live, _) = server.finalize().await;
    assert!(matches!(live, Ok(FinalizerOutcome::Live(_))));
    assert_eq!(server.finalizers().unwrap(), ["example.com/other", OURS]);
}

#[tokio::test]
async fn an_object_that_is_deleted_or_replaced_meanwhile_is_left_alone() {
    for is_deleting in [false, true] {
        let finalizers: &[&str] = if is_deleting { &[OURS] } else { &[] };
        let gone =
            server(object(finalizers, is_deleting)).before_first_patch(|object| *object = None);
        assert_eq!(gone.finalize().await.0.unwrap(), FinalizerOutcome::Deleted);
        let replaced = server(object(finalizers, is_deleting)).before_first_patch(|object| {
            let mut other = self::object(&[OURS], false);
            other["metadata"]["uid"] = "another".into();
            *object = Some(other);
        });
        assert_eq!(
            replaced.finalize().await.0.unwrap(),
            FinalizerOutcome::Deleted
        );
        assert_eq!(replaced.finalizers().unwrap(), [OURS]);
    }
    let deleted = server(object(&[], false)).before_first_patch(|object| {
        *object = Some(self::object(&["example.com/other"], true));
    });
    assert_eq!(
        deleted.finalize().await.0.unwrap(),
        FinalizerOutcome::Deleted
    );
    assert_eq!(deleted.finalizers().unwrap(), ["example.com/other"]);
}

#[tokio::test]
async fn attempts_are_limited() {
    let server = server(object(&[], false));
    let mut number = 0;
    server.0.lock().unwrap().before_patch = Box::new(move |object| {
        number += 1;
        if let Some(object) = object {
            object["metadata"]["labels"] = json!({"number": number.to_string()});
        }
    });
    let (failed, _) = server.finalize().await;
    failed.unwrap_err();
    assert_eq!(server.0.lock().unwrap().patches, 5);
}
