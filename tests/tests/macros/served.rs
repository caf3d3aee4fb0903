//! Kinds served by the server's own HTTP code, with a memory store.

use apiloom::server::{self, Backend, Builder, Config, InProcess};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

/// A server for some kinds.
pub struct Server {
    server: InProcess,
}

impl Server {
    /// Serves the kinds that the function registers.
    pub async fn start(register: impl FnOnce(Builder) -> Builder) -> Self {
        let mut config = Config::new("macros", "");
        config.backend = Backend::Memory;
        let built = register(server::builder(config)).build().await;
        let built = built.unwrap_or_else(|problems| panic!("{problems}"));
        let server = built.start().await.expect("memory can be read");
        Self { server }
    }

    /// Sends a request; returns the code and the response.
    pub async fn call(&self, request: http::request::Builder, body: String) -> (u16, Value) {
        let request = request
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let loopback = self.server.loopback().privileged();
        let response = loopback.send(request).await;
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
