//! Requests in process: the same filters, without a socket, certificates or files; with a program's own authenticators and
//! authorizers.

use std::sync::{Arc, Mutex};

use apiloom::prelude::*;
use apiloom::server::auth::{
    Answer, Attributes, Authentication, Authenticator, Authorization, Authorizer, Credentials,
    Decision, UserInfo,
};
use apiloom::server::http::Body;
use apiloom::server::registry::Registry;
use apiloom::server::{self, Backend, Builder, Config, InProcess, Loopback};
use bytes::{Buf, Bytes};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::{Service as _, ServiceExt};

use super::{KETTLES, Kettle, Stove, kettle};

/// A server in process that is being served.
pub(super) struct Served {
    pub(super) registry: Arc<Registry>,
    pub(super) loopback: Loopback,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

async fn start(configure: impl FnOnce(Builder) -> Builder) -> InProcess {
    // A folder that cannot be made: nothing may be written.
    let mut config = Config::new("kitchen", "/proc/none");
    config.backend = Backend::Memory;
    let builder = server::builder(config).kind::<Kettle>().kind::<Stove>();
    let server = configure(builder).build().await.unwrap();
    server.start().await.unwrap()
}

pub(super) async fn serve(configure: impl FnOnce(Builder) -> Builder) -> Served {
    served(start(configure).await)
}

pub(super) async fn serve_with(builder: Builder) -> Served {
    served(builder.build().await.unwrap().start().await.unwrap())
}

fn served(server: InProcess) -> Served {
    let (stop, stopped) = oneshot::channel();
    Served {
        registry: server.registry(),
        loopback: server.loopback(),
        stop,
        serving: tokio::spawn(server.serve(async { drop(stopped.await) })),
    }
}

impl Served {
    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

pub(super) async fn open(
    loopback: &Loopback,
    method: &str,
    url: &str,
    body: &str,
) -> Response<Body> {
    open_as(loopback, "", method, url, body).await
}

/// Sends a request with a token.
pub(super) async fn open_as(
    loopback: &Loopback,
    token: &str,
    method: &str,
    url: &str,
    body: &str,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(url);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Full::new(Bytes::from(body.to_owned()));
    loopback.send(request.body(body).unwrap()).await
}

pub(super) async fn read(response: Response<Body>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// The code and the message of a failure, or the whole of another answer.
async fn answer(loopback: &Loopback, token: &str, method: &str, url: &str) -> (u16, String) {
    let (code, text) = read(open_as(loopback, token, method, url, "").await).await;
    let message = serde_json::from_str::<Value>(&text).ok();
    let message = message.and_then(|status| Some(status["message"].as_str()?.to_owned()));
    (code, message.unwrap_or(text))
}

/// The next piece of a watch; `None` when it has ended.
pub(super) async fn event(watch: &mut Body) -> Option<Value> {
    let frame = watch.frame().await?.unwrap();
    let data = frame.into_data().unwrap();
    Some(serde_json::from_slice(&data).unwrap())
}

#[tokio::test]
async fn every_verb_works_without_a_socket() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();
    let small = format!("{KETTLES}/small");
    let watch = open(&loopback, "GET", &format!("{KETTLES}?watch=1"), "").await;
    assert_eq!(watch.status(), 200);
    let mut watch = watch.into_body();

    let body = kettle(json!({"litres": 2})).to_string();
    let created = open(&loopback, "POST", KETTLES, &body).await;
    assert!(created.headers().contains_key("audit-id"));
    assert_eq!(read(created).await.0, 201);
    let added = event(&mut watch).await.unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["spec"]["litres"]),
        (&json!("ADDED"), &json!(2))
    );

    let (code, got) = read(open(&loopback, "GET", &small, "").await).await;
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!((code, &got["metadata"]["name"]), (200, &json!("small")));
    let (code, list) = read(open(&loopback, "GET", KETTLES, "").await).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(
        (code, &list["items"][0]),
        (200, &{
            let mut item = got.clone();
            let fields = item.as_object_mut().unwrap();
            fields.remove("kind");
            fields.remove("apiVersion");
            item
        })
    );
    assert_eq!(
        read(open(&loopback, "DELETE", &small, "").await).await.0,
        200
    );
    assert_eq!(event(&mut watch).await.unwrap()["type"], "DELETED");

    // The watch ends, cleanly, when the server stops, which does not wait for more of it.
    let ended = tokio::spawn(async move { event(&mut watch).await });
    server.stop().await;
    assert_eq!(ended.await.unwrap(), None);
}

#[tokio::test]
async fn requests_in_process_need_credentials_as_any_other() {
    let server = serve(|builder| builder).await;
    let loopback = &server.loopback;
    let forbidden = "kettles.kitchen.example.com is forbidden: User \"system:anonymous\" cannot list resource \"kettles\" in API group \
        \"kitchen.example.com\" in the namespace \"default\"";
    assert_eq!(
        answer(loopback, "", "GET", KETTLES).await,
        (403, forbidden.to_owned())
    );
    let unauthorized = (401, "Unauthorized".to_owned());
    assert_eq!(
        answer(loopback, "wrong", "GET", KETTLES).await,
        unauthorized
    );
    assert_eq!(
        answer(loopback, "", "GET", "/livez").await,
        (200, "ok".to_owned())
    );
    // Credentials that are given are not replaced.
    let privileged = loopback.privileged();
    assert_eq!(answer(&privileged, "", "GET", "/livez").await.0, 200);
    assert_eq!(answer(&privileged, "", "GET", KETTLES).await.0, 200);
    assert_eq!(
        answer(&privileged, "wrong", "GET", KETTLES).await,
        unauthorized
    );
    server.stop().await;
}

/// Any body and any buffer are taken, by a service of tower.
#[tokio::test]
async fn a_loopback_is_a_service_that_takes_any_body() {
    let server = start(|builder| builder).await;
    let mut service = server.loopback().privileged();
    let mut first = Bytes::from(kettle(json!({"litres": 2})).to_string());
    let second = first.split_off(10);
    let buffer = first.chain(second);
    let body = Full::new(Box::new(buffer) as Box<dyn Buf + Send>);
    let request = Request::post(KETTLES).body(body).unwrap();
    let Ok(ready) = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await;
    let Ok(found) = ready
        .call(Request::get("/api").body(Full::<Bytes>::default()).unwrap())
        .await;
    assert_eq!(found.status(), 200);
    let Ok(created) = service.call(request).await;
    assert_eq!(created.status(), 201);
}

/// Users by tokens that are their names; the token `expired` is an error.
struct Names;

impl Authenticator for Names {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        assert!(credentials.connection().peer.is_none());
        let token = credentials.token().map(String::from_utf8_lossy);
        let Some(name) = token.map(|name| name.into_owned()) else {
            return Answer::Now(Ok(None));
        };
        Answer::later(async move {
            match &*name {
                "unknown" => Ok(None),
                "expired" => Err("the token has expired".into()),
                "panic" => panic!("a panic of the test"),
                _ => Ok(Some(Arc::new(UserInfo {
                    name,
                    uid: "u-1".to_owned(),
                    extra: BTreeMap::from([("team".to_owned(), vec!["tea".to_owned()])]),
                    ..UserInfo::default()
                }))),
            }
        })
    }
}

/// What each user may do is in their names. What was asked is kept.
#[derive(Default)]
struct Rules {
    asked: Mutex<Vec<String>>,
}

struct Shared(Arc<Rules>);

impl Authorizer for Shared {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        let user = attributes.user;
        self.0.asked.lock().unwrap().push(format!(
            "{} {} {} {}/{}:{}/{}/{}",
            user.name,
            attributes.verb,
            attributes.path,
            attributes.api_group,
            attributes.api_version,
            attributes.namespace,
            attributes.resource,
            attributes.name,
        ));
        Answer::Now(match &*user.name {
            "reader" if matches!(attributes.verb, "get" | "list") => Ok(Decision::allow()),
            "watcher" if attributes.verb == "watch" => Ok(Decision::allow()),
            "banned" => Ok(Decision::deny("on holiday")),
            "confused" => Err("the oracle <is> silent".into()),
            _ => Ok(Decision::no_opinion()),
        })
    }
}

async fn with_rules() -> (Served, Arc<Rules>) {
    let rules = Arc::<Rules>::default();
    let authorizer = Shared(Arc::clone(&rules));
    let server = serve(|builder| builder.authenticator(Names).authorizer(authorizer)).await;
    (server, rules)
}

#[tokio::test]
async fn a_programs_own_authenticator_and_authorizer_decide() {
    let (server, _) = with_rules().await;
    let loopback = &server.loopback;
    let check = async |token: &str, method: &str, url: &str, code: u16, message: &str| {
        let got = answer(loopback, token, method, url).await;
        assert_eq!(got.0, code, "{token} {method} {url}: {}", got.1);
        assert!(
            got.1.ends_with(message),
            "{token} {method} {url}: {}",
            got.1
        );
    };
    check("reader", "GET", KETTLES, 200, "").await;
    check("reader", "GET", "/version", 200, "").await;
    let resource =
        "resource \"kettles\" in API group \"kitchen.example.com\" in the namespace \"default\"";
    let message = format!("forbidden: User \"reader\" cannot create {resource}");
    check("reader", "POST", KETTLES, 403, &message).await;
    let message = format!("forbidden: User \"banned\" cannot list {resource}: on holiday");
    check("banned", "GET", KETTLES, 403, &message).await;
    // A denial comes before the rule that all may read the version.
    let message = "forbidden: User \"banned\" cannot get path \"/version\": on holiday";
    check("banned", "GET", "/version", 403, message).await;
    check("unknown", "GET", "/version", 401, "Unauthorized").await;
    check("expired", "GET", "/version", 401, "Unauthorized").await;
    // One that fails is passed over if another decides.
    check("confused", "GET", "/version", 200, "").await;
    let message = format!("Internal Server Error: \"{KETTLES}\": the oracle <is> silent\n");
    check("confused", "GET", KETTLES, 500, &message).await;
    server.stop().await;
}

/// Allows the users after whom a kettle is named.
struct Owners(Lister<Kettle>);

impl Authorizer for Owners {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        let own = self.0.get("default", &attributes.user.name);
        Answer::Now(match own {
            Ok(Some(kettle)) if kettle.spec.litres > 1 => Ok(Decision::allow()),
            Ok(_) => Ok(Decision::no_opinion()),
            Err(error) => Err(error.message.into()),
        })
    }
}

#[tokio::test]
async fn an_authorizer_reads_objects_from_memory() {
    let server = serve(|builder| {
        let kettles = builder.lister();
        builder.authenticator(Names).authorizer(Owners(kettles))
    })
    .await;
    let code = async || answer(&server.loopback, "small", "GET", KETTLES).await.0;
    assert_eq!(code().await, 403);
    let privileged = server.loopback.privileged();
    let write = async |method: &str, url: &str, body: Value| {
        let written = read(open(&privileged, method, url, &body.to_string()).await).await;
        assert!(matches!(written.0, 200 | 201), "{}", written.1);
    };
    write("POST", KETTLES, kettle(json!({"litres": 2}))).await;
    assert_eq!(code().await, 200);
    let small = format!("{KETTLES}/small");
    write("PUT", &small, kettle(json!({"litres": 1}))).await;
    assert_eq!(code().await, 403);
    write("PUT", &small, kettle(json!({"litres": 3}))).await;
    assert_eq!(code().await, 200);
    write("DELETE", &small, json!({})).await;
    assert_eq!(code().await, 403);
    server.stop().await;
}

#[tokio::test]
async fn what_is_authorized_is_what_is_run() {
    let (server, rules) = with_rules().await;
    let loopback = &server.loopback;
    let check = async |token: &str, query: &str, code: u16, verb: &str, name: &str| {
        rules.asked.lock().unwrap().clear();
        let url = format!("{KETTLES}{query}");
        let response = open_as(loopback, token, "GET", &url, "").await;
        assert_eq!(response.status(), code, "{token} {query}");
        let (path, asked) = (
            url.split('?').next().unwrap(),
            rules.asked.lock().unwrap().clone(),
        );
        let place = "kitchen.example.com/v1:default/kettles";
        assert_eq!(asked, [format!("{token} {verb} {path} {place}/{name}")]);
        response
    };
    let name = "metadata.name%3Dsmall";
    check("reader", "", 200, "list", "").await;
    check("reader", "?watch=false", 200, "list", "").await;
    check(
        "reader",
        &format!("?fieldSelector={name}"),
        200,
        "list",
        "small",
    )
    .await;
    check("reader", "/small?watch=true", 404, "get", "small").await;
    for query in ["?watch=true", "?watch", "?watch=true&watch=false"] {
        check("reader", query, 403, "watch", "").await;
        let watch = check("watcher", query, 200, "watch", "").await;
        drop(watch);
    }
    check("watcher", "?watch=0&watch=1", 403, "list", "").await;
    check(
        "watcher",
        &format!("?watch=1&fieldSelector={name}"),
        200,
        "watch",
        "small",
    )
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_panic_is_answered_with_500() {
    let (server, _) = with_rules().await;
    let answer = answer(&server.loopback, "panic", "GET", KETTLES).await;
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    assert_eq!(answer, (500, text.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_listens_has_a_loopback_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("kitchen", dir.path());
    config.backend = Backend::Memory;
    config.secure_port = 0;
    let builder = server::builder(config).kind::<Kettle>();
    let ready = builder.build().await.unwrap().bind().await.unwrap();
    let loopback = ready.loopback();
    let client = apiloom_tests::Client::new(ready.kubeconfig());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(ready.serve(async { drop(stopped.await) }));
    let created = client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
    assert_eq!(created.code, 201);
    let small = format!("{KETTLES}/small");
    let got = read(open(&loopback.privileged(), "GET", &small, "").await).await;
    assert_eq!(got.0, 200);
    assert_eq!(answer(&loopback, "", "GET", &small).await.0, 403);
    drop(stop);
    serving.await.unwrap();
}
