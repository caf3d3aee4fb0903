//! The complete API in process, over a store in memory: requests, and their exact responses.

mod answers;
mod counting;
mod crud;
mod doubling;
mod initializing;
mod kinds;
mod large;
mod migrating;
mod protobuf;
mod read;
mod routing;
mod slow;
mod verbs;
mod watching;
mod yaml;

use std::sync::Arc;

use apiloom_registry::auth::BoxError;
use apiloom_registry::{Registry, RegistryBuilder};
use apiloom_storage::Memory;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::api::Api;
use super::documents::health::Health;
use super::response::Body;
use super::{ServerInfo, testing};
use kinds::{Fischer, Flunder, GROUP};

/// Flunders of the namespace `default`.
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
const FISCHERS: &str = "/apis/wardle.example.com/v1alpha1/fischers";

/// An API with an empty store.
async fn api() -> Api {
    api_of(|registry| {
        registry.kind::<Flunder>();
        registry.kind::<Fischer>();
    })
    .await
}

/// An API with these kinds and an empty store.
async fn api_of(kinds: impl FnOnce(&mut RegistryBuilder)) -> Api {
    api_and_registry(kinds).await.0
}

/// As [`api_of`], with its registry.
async fn api_and_registry(kinds: impl FnOnce(&mut RegistryBuilder)) -> (Api, Arc<Registry>) {
    let mut registry = apiloom_kinds::registry(Memory::new());
    registry.group(GROUP);
    kinds(&mut registry);
    let registry = Arc::new(registry.build().expect("the kinds are well-formed"));
    registry.start().await.expect("memory can be read");
    let api = Api::new(
        Arc::clone(&registry),
        &ServerInfo::default(),
        Health::new([]),
    );
    (api, registry)
}

/// A complete response.
#[derive(Debug)]
struct Answer {
    code: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
    fn warnings(&self) -> Vec<&str> {
        let values = self.headers.get_all("warning").iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
    fn at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or_default()
    }
    fn message(&self) -> String {
        self.at("/message").as_str().unwrap_or_default().to_owned()
    }
    #[track_caller]
    fn expect(self, code: u16) -> Self {
        assert_eq!(self.code.as_u16(), code, "{}", self.body);
        self
    }
}

/// Sends a request; returns the response with its headers.
async fn open(
    api: &Api,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from(body.to_owned()));
    open_with(api, request.body(body).unwrap()).await
}

/// As [`open`], with any body.
async fn open_with<B>(api: &Api, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (request, body) = request.into_parts();
    match testing::call(api, &request).await {
        Ok(call) => {
            let body = body.map_err(Into::into).boxed_unsync();
            api.answer(&call, body).await
        }
        Err(response) => response,
    }
}

/// Sends a request with headers.
async fn send(api: &Api, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let (parts, body) = open(api, method, url, headers, body).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(bytes.to_vec()).unwrap();
    Answer {
        code: parts.status,
        headers: parts.headers,
        body,
    }
}

async fn get(api: &Api, url: &str) -> Answer {
    send(api, "GET", url, &[], "").await
}

async fn get_as(api: &Api, accept: &str, url: &str) -> Answer {
    send(api, "GET", url, &[("accept", accept)], "").await
}

async fn post(api: &Api, url: &str, body: &str) -> Answer {
    send(api, "POST", url, &[], body).await
}

async fn put(api: &Api, url: &str, body: &str) -> Answer {
    send(api, "PUT", url, &[], body).await
}

async fn merge_patch(api: &Api, url: &str, body: &str) -> Answer {
    let content_type = [("content-type", "application/merge-patch+json")];
    send(api, "PATCH", url, &content_type, body).await
}

async fn json_patch(api: &Api, url: &str, body: &str) -> Answer {
    let content_type = [("content-type", "application/json-patch+json")];
    send(api, "PATCH", url, &content_type, body).await
}

async fn delete(api: &Api, url: &str, body: &str) -> Answer {
    send(api, "DELETE", url, &[], body).await
}

/// Creates a flunder with this name.
async fn create_flunder(api: &Api, name: &str) -> Answer {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"reference":"r-{name}"}}}}"#);
    post(api, FLUNDERS, &body).await.expect(201)
}

/// The exact body of an error.
fn failure(message: &str, reason: &str, details: Option<&str>, code: u16) -> String {
    let message = serde_json::to_string(message)
        .unwrap()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026");
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!("\"reason\":\"{reason}\",")
    };
    let details = details
        .map(|details| format!("\"details\":{details},"))
        .unwrap_or_default();
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":{message},{reason}{details}\"code\":{code}}}\n"
    )
}
