//! What a server lists of itself, its filters and its routes, and that requests go the way that is listed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiloom::ApiError;
use apiloom::apis::apiregistration::v1::APIService;
use apiloom::prelude::{Admission, AdmissionRequest, async_trait};
use apiloom::server::auth::Answer;
use apiloom::server::health::Check;
use apiloom::server::http::{PathRequest, PathResponse};
use apiloom::server::{
    self, Backend, Builder, ChainFilter, Config, Endpoints, Filter, FilterPlace, FilterRequest,
    ListedRoute,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Empty, Full};

use super::in_process::{open, open_as, read, serve_with};
use super::{Kettle, Stove};

/// A filter that notes what it sees, and refuses one path.
struct Recorder {
    name: &'static str,
    place: FilterPlace,
    refused: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Filter for Recorder {
    fn name(&self) -> &str {
        self.name
    }

    fn meaning(&self) -> &str {
        "notes requests"
    }

    fn place(&self) -> FilterPlace {
        self.place
    }

    fn request<'a>(
        &'a self,
        request: &'a FilterRequest<'a>,
    ) -> Answer<'a, Result<(), PathResponse>> {
        let user = request.user.map_or("nobody yet", |user| &user.name);
        let has_token = request.headers.contains_key("authorization");
        let token = if has_token { ", token" } else { "" };
        let note = format!("{} < {user}{token}", self.name);
        self.seen.lock().unwrap().push(note);
        if request.uri.path() == self.refused {
            let refusal = Response::builder().status(StatusCode::IM_A_TEAPOT);
            let refusal = refusal.body(Full::new(Bytes::from_static(b"no\n")));
            return Answer::Now(Err(refusal.unwrap().into()));
        }
        Answer::later(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    fn response(&self, request: &FilterRequest<'_>, code: StatusCode, headers: &mut HeaderMap) {
        let note = format!("{} > {} {}", self.name, request.uri.path(), code.as_u16());
        self.seen.lock().unwrap().push(note);
        headers.insert("x-last-filter", HeaderValue::from_static(self.name));
    }
}

/// A builder whose data folder cannot be made: nothing may be written.
fn builder(backend: Backend) -> Builder {
    let mut config = Config::new("kitchen", "/proc/none");
    config.backend = backend;
    server::builder(config)
}

/// A builder with a filter at each place, added in another order than they are passed.
fn with_filters(seen: &Arc<Mutex<Vec<String>>>) -> Builder {
    let filters = [
        ("last", FilterPlace::AfterAuthorization, ""),
        ("middle", FilterPlace::AfterAuthentication, ""),
        ("first", FilterPlace::BeforeAuthentication, ""),
        (
            "middle-again",
            FilterPlace::AfterAuthentication,
            "/version/",
        ),
    ];
    filters.into_iter().fold(
        builder(Backend::Memory),
        |builder, (name, place, refused)| {
            builder.filter(Recorder {
                name,
                place,
                refused,
                seen: Arc::clone(seen),
            })
        },
    )
}

fn names(chain: &[ChainFilter]) -> Vec<&str> {
    chain.iter().map(|filter| &*filter.name).collect()
}

#[tokio::test]
async fn filters_are_passed_as_they_are_listed() {
    let seen = Arc::default();
    let chain = with_filters(&seen).chain().unwrap();
    let places = [
        "first",
        "authentication",
        "middle",
        "middle-again",
        "max-in-flight",
        "authorization",
        "last",
    ];
    let mut listed = names(&chain);
    listed.retain(|name| places.contains(name));
    assert_eq!(listed, places);
    let own = chain.iter().filter(|filter| filter.part == "program");
    let own: Vec<&str> = own.map(|filter| &*filter.name).collect();

    let server = serve_with(with_filters(&seen)).await;
    let take = || std::mem::take(&mut *seen.lock().unwrap());
    let version = open(&server.loopback.privileged(), "GET", "/version", "").await;
    assert_eq!(version.status(), 200);
    assert_eq!(version.headers()["x-last-filter"], "first");
    let requests = ["first < nobody yet, token".to_owned()].into_iter();
    let requests = requests.chain(
        own[1..]
            .iter()
            .map(|name| format!("{name} < system:apiserver")),
    );
    let responses = own
        .iter()
        .rev()
        .map(|name| format!("{name} > /version 200"));
    assert_eq!(take(), requests.chain(responses).collect::<Vec<_>>());

    // Each refusal goes back through the filters before it alone.
    let response = open_as(&server.loopback, "wrong", "GET", "/version", "").await;
    assert_eq!(response.status(), 401);
    assert_eq!(
        take(),
        ["first < nobody yet, token", "first > /version 401"]
    );
    let response = open(&server.loopback, "GET", "/metrics", "").await;
    assert_eq!(response.status(), 403);
    let expected = [
        "first < nobody yet",
        "middle < system:anonymous",
        "middle-again < system:anonymous",
        "middle-again > /metrics 403",
        "middle > /metrics 403",
        "first > /metrics 403",
    ];
    assert_eq!(take(), expected);
    let response = open(&server.loopback, "GET", "/version/", "").await;
    assert_eq!(response.headers()["cache-control"], "no-cache, private");
    assert_eq!(read(response).await, (418, "no\n".to_owned()));
    let expected = [
        "first < nobody yet",
        "middle < system:anonymous",
        "middle-again < system:anonymous",
        "middle > /version/ 418",
        "first > /version/ 418",
    ];
    assert_eq!(take(), expected);
    server.stop().await;
}

/// A filter with another one's name, which never answers.
struct Endless;

impl Filter for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn meaning(&self) -> &str {
        "never answers"
    }

    fn request<'a>(&'a self, _: &'a FilterRequest<'a>) -> Answer<'a, Result<(), PathResponse>> {
        Answer::later(std::future::pending())
    }
}

#[tokio::test]
async fn a_filter_that_does_not_answer_ends_with_the_request() {
    let mut config = Config::new("kitchen", "/proc/none");
    config.backend = Backend::Memory;
    config.request_timeout = Duration::from_millis(20);
    let server = serve_with(server::builder(config).filter(Endless)).await;
    let response = open(&server.loopback, "GET", "/version", "").await;
    assert_eq!(response.status(), 504);
    server.stop().await;
}

#[tokio::test]
async fn filters_of_the_same_name_are_refused() {
    let twice = |builder: Builder| builder.filter(Endless).filter(Endless);
    let problem = "there are two filters \"endless\"";
    let refused = twice(builder(Backend::Memory)).build().await.err().unwrap();
    assert_eq!(refused.to_string(), problem);
    let refused = twice(builder(Backend::Memory)).chain().unwrap_err();
    assert_eq!(refused.to_string(), problem);
}

/// A builder with paths, kinds and a check of the program.
fn with_paths(backend: Backend) -> Builder {
    let answer = async |request: PathRequest| request.path;
    builder(backend)
        .prefix("/files/", answer)
        .prefix("/files/large/", answer)
        .path("/hello", answer)
        .kind::<Kettle>()
        .lazy_kind::<Stove>()
        .health_check(Check::new("stoves", || Ok(())))
}

fn lines(routes: &[ListedRoute], part: &str) -> Vec<String> {
    let own = routes.iter().filter(|route| route.part == part);
    own.map(|route| format!("{} {} {}", route.source, route.path, route.verbs.join(",")))
        .collect()
}

/// Nothing is opened: the folder of the embedded store cannot be made.
#[tokio::test]
async fn routes_name_their_parts_in_the_order_of_matching() {
    let routes = with_paths(Backend::Embedded).routes().await.unwrap();
    let kitchen = "resources /apis/kitchen.example.com/v1";
    let expected = [
        "paths /hello *".to_owned(),
        format!("{kitchen}/kettles list,watch"),
        format!("{kitchen}/namespaces/{{namespace}}/kettles create,list,watch"),
        format!("{kitchen}/namespaces/{{namespace}}/kettles/{{name}} delete,get,update"),
        format!("{kitchen}/watch/kettles watch"),
        format!("{kitchen}/watch/namespaces/{{namespace}}/kettles watch"),
        format!("{kitchen}/watch/namespaces/{{namespace}}/kettles/{{name}} watch"),
        format!("{kitchen}/stoves list,watch"),
        format!("{kitchen}/namespaces/{{namespace}}/stoves create,deletecollection,list,watch"),
        format!("{kitchen}/namespaces/{{namespace}}/stoves/{{name}} delete,get,patch,update"),
        format!("{kitchen}/namespaces/{{namespace}}/stoves/{{name}}/status get,patch,update"),
        format!("{kitchen}/watch/stoves watch"),
        format!("{kitchen}/watch/namespaces/{{namespace}}/stoves watch"),
        format!("{kitchen}/watch/namespaces/{{namespace}}/stoves/{{name}} watch"),
        "documents /healthz/stoves get".to_owned(),
        "documents /livez/stoves get".to_owned(),
        "documents /readyz/stoves get".to_owned(),
        "other-paths /files/large/* *".to_owned(),
        "other-paths /files/* *".to_owned(),
    ];
    assert_eq!(lines(&routes, "program"), expected);
    let of_host = lines(&routes, "host");
    for line in [
        "resources /api/v1/namespaces/{name}/finalize update",
        "documents / get",
        "documents /apis/kitchen.example.com/v1 get",
        "documents /version get",
        "documents /storage/migrate post",
        "documents /metrics get",
        "documents /openapi/v3/apis/kitchen.example.com/v1 get",
        "documents /healthz get",
        "documents /healthz/storage get",
    ] {
        assert!(
            of_host.iter().any(|of_host| of_host == line),
            "{line}: {of_host:#?}"
        );
    }
    let mut config = Config::new("kitchen", "/proc/none");
    config.endpoints = Endpoints {
        discovery: false,
        index: false,
        metrics: false,
        openapi: false,
    };
    let few = server::builder(config).routes().await.unwrap();
    let documents = few.iter().filter(|route| route.source == "documents");
    let first: Vec<&str> = documents.map(|route| &*route.path).take(3).collect();
    assert_eq!(first, ["/version", "/storage/migrate", "/healthz"]);
}

/// The method of a verb.
fn method(verb: &str) -> Method {
    match verb {
        "get" | "list" | "watch" => Method::GET,
        "create" | "post" => Method::POST,
        "update" => Method::PUT,
        "patch" => Method::PATCH,
        "delete" | "deletecollection" => Method::DELETE,
        other => panic!("{other}"),
    }
}

/// A method that is listed is none that a path refuses, and one that is not listed is refused.
#[tokio::test]
async fn paths_take_the_verbs_that_are_listed() {
    let routes = with_paths(Backend::Memory).routes().await.unwrap();
    let server = serve_with(with_paths(Backend::Memory)).await;
    let loopback = server.loopback.privileged();
    let mut resources = 0;
    for route in routes {
        let path = route.path.replace("{namespace}", "default");
        let path = path.replace("{name}", "nothing");
        if route.verbs == ["*"] {
            let path = path.replace('*', "x");
            let (code, text) = read(open(&loopback, "GET", &path, "").await).await;
            assert_eq!((code, text), (200, path));
            continue;
        }
        let listed: Vec<Method> = route.verbs.iter().map(|verb| method(verb)).collect();
        if route.resource.is_none() {
            let response = open(&loopback, listed[0].as_str(), &path, "").await;
            assert_ne!(response.status(), 404, "{path}");
            continue;
        }
        resources += 1;
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            let request = Request::builder().method(&method).uri(&path);
            let response = loopback.send(request.body(Empty::<Bytes>::new()).unwrap());
            let is_refused = response.await.status() == StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(is_refused, !listed.contains(&method), "{method} {path}");
        }
    }
    assert!(resources > 15, "{resources}");
    server.stop().await;
}

#[tokio::test]
async fn routes_of_the_next_server_are_listed_behind_those_of_the_first() {
    let next = builder(Backend::Memory).kind::<Kettle>().build().await;
    let first = builder(Backend::Memory).delegate(next.unwrap());
    let routes = first.routes().await.unwrap();
    let of_next = routes.iter().filter(|route| route.source == "next-server");
    let paths: Vec<&str> = of_next.map(|route| &*route.path).collect();
    let version = "/apis/kitchen.example.com/v1";
    for own in [
        version.to_owned(),
        format!("/openapi/v3{version}"),
        format!("{version}/kettles"),
    ] {
        assert!(paths.contains(&&*own), "{own}: {paths:?}");
    }
    assert!(paths.iter().all(|path| path.contains(version)), "{paths:?}");
    assert!(
        lines(&routes, "host")
            .iter()
            .any(|line| line.starts_with("resources /api/v1/"))
    );
}

/// Fails for APIServices, as admission does that waits for a hook of its program.
struct NotReady;

#[async_trait]
impl Admission for NotReady {
    fn name(&self) -> &'static str {
        "NotReady"
    }

    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.is::<APIService>() {
            return Err(ApiError::internal("the hook has not run"));
        }
        Ok(())
    }
}

/// Hooks do not run for a list, so nothing that may wait for them is waited for.
#[tokio::test]
async fn routes_are_listed_while_the_own_api_services_cannot_be_written() {
    let builder = builder(Backend::Memory).all_built_in();
    let routes = builder.admission(|_| NotReady).routes();
    let routes = tokio::time::timeout(Duration::from_secs(30), routes).await;
    let routes = routes.expect("a list that waits for no hook").unwrap();
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    assert!(routes.iter().any(|route| route.path == path));
}
