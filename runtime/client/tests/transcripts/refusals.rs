//! What the client makes of each refusal of kube-apiserver: what its error says, and when the request is sent again.

use std::time::Duration;

use apiloom_client::client::RetryRules;
use apiloom_client::{
    ApiObject, ApiResource, Client, Error, HasMetadata, Patch, WatchEvent, verbs,
};
use apiloom_kinds::core::v1::ConfigMap;
use apiloom_meta::ObjectMeta;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::server::{Answer, Server};
use crate::{answer, events, maps};

/// A request that a server refuses.
#[derive(Clone, Copy, Debug)]
enum Request {
    Get,
    List,
    Watch,
    Create,
    Update,
    Apply,
}

/// What a client makes of an answer.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    code: u16,
    reason: &'static str,
    /// The questions of an error that it answers with yes.
    is: Vec<&'static str>,
    causes: usize,
    /// The seconds that the server asks to wait.
    retry_after: u64,
    /// After how many seconds the request is sent again.
    retried_after: Option<u64>,
}

impl Outcome {
    fn new(code: u16, reason: &'static str, is: &[&'static str]) -> Self {
        Self {
            code,
            reason,
            is: is.to_vec(),
            ..Self::default()
        }
    }
    fn causes(mut self, causes: usize) -> Self {
        self.causes = causes;
        self
    }
    fn asks_to_wait(mut self, seconds: u64) -> Self {
        self.retry_after = seconds;
        self
    }
    fn with_retry(mut self) -> Self {
        self.retried_after = Some(self.retry_after);
        self
    }
}

fn map() -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn send(client: &Client, request: Request) -> Result<(), Error> {
    let maps = maps(client);
    match request {
        Request::Get => maps.get("a").await.map(drop),
        Request::List => maps.list().await.map(drop),
        Request::Watch => maps.watch().from("900").await.map(drop),
        Request::Create => maps.create(&map()).await.map(drop),
        Request::Update => maps.update(&map()).await.map(drop),
        Request::Apply => {
            let patch = Patch::apply(&json!({"metadata": {"name": "a"}}));
            maps.patch("a", patch).field_manager("me").await.map(drop)
        }
    }
}

/// What an error says; `reason` is that of the server.
fn outcome(error: &Error, reason: &'static str) -> Outcome {
    assert_eq!(error.status().unwrap().reason, reason, "{error}");
    let questions = [
        ("not found", error.is_not_found()),
        ("existing", error.is_already_exists()),
        ("conflict", error.is_conflict()),
        ("expired", error.is_expired()),
        ("invalid", error.is_invalid()),
        ("forbidden", error.is_forbidden()),
        ("unauthorized", error.is_unauthorized()),
        ("too many", error.is_too_many_requests()),
        ("too large version", error.is_too_large_resource_version()),
        ("temporary", error.is_temporary()),
    ];
    let yes = questions
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name);
    Outcome {
        code: error.code().unwrap(),
        reason,
        is: yes.collect(),
        causes: error.causes().len(),
        retry_after: error.retry_after().unwrap_or_default().as_secs(),
        retried_after: None,
    }
}

/// Sends a request that is refused, and then answered if it is sent again.
async fn check(request: Request, refusal: Answer, answered: Answer, expected: Outcome) {
    let server = Server::new(std::slice::from_ref(&refusal));
    let client = Client::builder(server)
        .retry(RetryRules::none())
        .build()
        .unwrap();
    let error = send(&client, request).await.unwrap_err();
    let mut found = outcome(&error, expected.reason);

    let server = Server::new(&[refusal, answered]);
    let began = Instant::now();
    let result = send(&Client::new(server.clone()), request).await;
    let took = began.elapsed();
    match server.requests().len() {
        1 => assert!(
            result.is_err() && took < Duration::from_millis(100),
            "{took:?}"
        ),
        _ => {
            result.unwrap();
            // The wait is longer by up to a tenth, so that clients do not come back together.
            found.retried_after = Some(took.as_secs());
        }
    }
    assert_eq!(found, expected, "{request:?}: {error}");
}

#[tokio::test(start_paused = true)]
async fn each_refusal_of_a_read_is_told() {
    let object = || answer!("object");
    let list = || answer!("list");
    let new = Outcome::new;
    let check_get =
        async |refusal, expected| check(Request::Get, refusal, object(), expected).await;
    let check_list =
        async |refusal, expected| check(Request::List, refusal, list(), expected).await;

    check_get(answer!("not-found"), new(404, "NotFound", &["not found"])).await;
    check_get(
        answer!("unauthorized"),
        new(401, "Unauthorized", &["unauthorized"]),
    )
    .await;
    check_get(
        answer!("forbidden-indented"),
        new(403, "Forbidden", &["forbidden"]),
    )
    .await;
    check_get(answer!("not-acceptable"), new(406, "NotAcceptable", &[])).await;
    check_get(
        answer!("method-not-allowed"),
        new(405, "MethodNotAllowed", &[]),
    )
    .await;
    let expected = new(500, "ServerTimeout", &["temporary"]).asks_to_wait(2);
    check_get(answer!("server-timeout"), expected.with_retry()).await;
    let expected = new(500, "InternalError", &["temporary"]).causes(1);
    check_get(answer!("internal-error"), expected).await;
    let expected = new(500, "StorageReadError", &["temporary"]).causes(1);
    check_get(answer!("storage-read-error"), expected).await;
    check_get(answer!("bad-version"), new(500, "", &["temporary"])).await;
    check_get(
        answer!("unavailable"),
        new(503, "ServiceUnavailable", &["temporary"]),
    )
    .await;
    check_get(
        answer!("request-timeout"),
        new(504, "Timeout", &["temporary"]),
    )
    .await;

    check_list(answer!("bad-continue"), new(400, "BadRequest", &[])).await;
    check_list(answer!("bad-selector"), new(400, "BadRequest", &[])).await;
    check_list(answer!("status-expired"), new(410, "Expired", &["expired"])).await;
    check_list(
        answer!("status-continue-expired"),
        new(410, "Expired", &["expired"]),
    )
    .await;
    let expected = new(504, "Timeout", &["too large version", "temporary"]);
    let expected = expected.causes(1).asks_to_wait(1);
    check_list(answer!("too-large"), expected.with_retry()).await;
    let expected = new(429, "TooManyRequests", &["too many", "temporary"]).asks_to_wait(1);
    check_list(answer!("initializing"), expected.with_retry()).await;
}

#[tokio::test(start_paused = true)]
async fn each_refusal_of_a_write_is_told() {
    use Request::{Apply, Create, Update};
    let new = Outcome::new;
    let check = async |request, refusal, expected| {
        check(request, refusal, answer!("object"), expected).await;
    };
    let existing = || new(409, "AlreadyExists", &["existing"]);
    check(Create, answer!("already-exists"), existing()).await;
    check(Create, answer!("already-exists-deleting"), existing()).await;
    // The server asks for another attempt, but with 409: whether another name is made up is for the caller to say.
    let expected = new(409, "AlreadyExists", &["existing", "temporary"]).asks_to_wait(1);
    check(Create, answer!("already-exists-generated"), expected).await;
    check(
        Create,
        answer!("invalid"),
        new(422, "Invalid", &["invalid"]).causes(2),
    )
    .await;
    let expected = new(413, "RequestEntityTooLarge", &[]);
    check(Create, answer!("entity-too-large"), expected).await;
    let expected = new(500, "ServerTimeout", &["temporary"]).asks_to_wait(2);
    check(Create, answer!("server-timeout"), expected.with_retry()).await;
    // The object may have been written, so nothing is sent again without being asked to.
    check(
        Create,
        answer!("request-timeout"),
        new(504, "Timeout", &["temporary"]),
    )
    .await;
    check(
        Update,
        answer!("conflict"),
        new(409, "Conflict", &["conflict"]),
    )
    .await;
    check(
        Update,
        answer!("verb-not-allowed"),
        new(405, "MethodNotAllowed", &[]),
    )
    .await;
    check(
        Apply,
        answer!("media-type"),
        new(415, "UnsupportedMediaType", &[]),
    )
    .await;
    check(
        Apply,
        answer!("undeclared-field"),
        new(500, "", &["temporary"]),
    )
    .await;
    let expected = new(409, "Conflict", &["conflict"]).causes(3);
    check(Apply, answer!("apply-conflict"), expected).await;
}

// A watch is never sent again by the client: its error decides where it goes on.
#[tokio::test(start_paused = true)]
async fn each_refusal_of_a_watch_is_told() {
    let new = Outcome::new;
    let check = async |refusal, expected| {
        check(Request::Watch, refusal, answer!("watch-empty"), expected).await;
    };
    let expected = new(429, "TooManyRequests", &["too many", "temporary"]).asks_to_wait(1);
    check(answer!("initializing"), expected).await;
    check(answer!("bad-version"), new(500, "", &["temporary"])).await;
    check(
        answer!("streaming-list-refused"),
        new(422, "Invalid", &["invalid"]).causes(1),
    )
    .await;
}

#[tokio::test]
async fn an_error_in_a_stream_is_that_of_a_refusal() {
    let check = async |answer: Answer, before: &[&str], expected: Outcome| {
        let (found, error) = events(&Client::new(Server::new(&[answer]))).await;
        assert_eq!(found, before);
        assert_eq!(outcome(&error.unwrap(), expected.reason), expected);
    };
    let expected = Outcome::new(504, "Timeout", &["too large version", "temporary"]);
    let expected = expected.causes(1).asks_to_wait(1);
    check(answer!("watch-too-large"), &[], expected).await;
    let expected = Outcome::new(500, "InternalError", &["temporary"]);
    check(answer!("watch-internal-error"), &["+a@101"], expected).await;
}

#[tokio::test]
async fn conflicts_of_several_managers_have_their_fields() {
    let client = Client::new(Server::new(&[answer!("apply-conflict")]));
    let error = send(&client, Request::Apply).await.unwrap_err();
    let conflicts = error
        .conflicts()
        .map(|conflict| (conflict.field, conflict.manager));
    let expected = [(".data.j", "m1"), (".data.z", "scaler"), (".data.k", "up")];
    assert_eq!(conflicts.collect::<Vec<_>>(), expected);
}

/// A Pod as clients declare it: its containers are not optional.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Pod {
    metadata: ObjectMeta,
    spec: PodSpec,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct PodSpec {
    containers: Vec<Value>,
}

impl HasMetadata for Pod {
    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
    fn resource_version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key).map(String::as_str)
    }
    fn owner_uids(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl ApiObject for Pod {}
impl verbs::Watch for Pod {}

// Of a typed kind, kube-apiserver writes the fields that are never omitted, of an object that is none.
#[tokio::test]
async fn a_bookmark_need_not_be_an_object_of_the_kind() {
    let client = Client::new(Server::new(&[answer!("watch-pods")]));
    let pods = client.resource::<Pod, _>(
        ApiResource::new("", "v1", "Pod", "pods"),
        apiloom_client::AllNamespaces,
    );
    let mut stream = pods.watch().from("100").bookmarks().await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(matches!(&first, WatchEvent::Added(pod) if pod.spec.containers.len() == 1));
    let second = stream.next().await.unwrap().unwrap();
    assert!(
        matches!(&second, WatchEvent::Bookmark(bookmark) if bookmark.resource_version == "110")
    );
    assert!(stream.next().await.is_none());
}
