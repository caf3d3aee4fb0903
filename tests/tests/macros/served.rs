//! Kinds served by the server's own HTTP code, with a memory store.

use std::sync::Arc;

use apiloom::server::http::health::Health;
use apiloom::server::http::{Api, ServerInfo};
use apiloom::server::registry::{Registry, RegistryBuilder};
use apiloom::storage::Memory;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::Service as _;

/// A server for some kinds.
pub struct Server {
    api: Api,
}

impl Server {
    /// Serves the kinds that the function registers.
    pub async fn start(register: impl FnOnce(&mut RegistryBuilder)) -> Self {
        let mut builder = Registry::builder(Memory::new());
        register(&mut builder);
        let registry = builder
            .build()
            .unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
        let registry = Arc::new(registry);
        registry.start().await.expect("memory can be read");
        let api = Api::new(registry, &ServerInfo::default(), Health::new([]));
        Self { api }
    }

    /// Sends a request; returns the code and the response.
    pub async fn call(&self, request: http::request::Builder, body: String) -> (u16, Value) {
        let request = request
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let Ok(response) = self.api.clone().call(request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap())
    }

    /// Creates an object.
    pub async fn post(&self, url: &str, object: &Value) -> (u16, Value) {
        self.call(Request::post(url), object.to_string()).await
    }

    /// Gets a URL.
    pub async fn get(&self, url: &str) -> (u16, Value) {
        self.call(Request::get(url), String::new()).await
    }
}
