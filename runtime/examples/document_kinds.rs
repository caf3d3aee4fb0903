//! A kind from a document, added to a running server, changed and removed by the program.
//!
//! `cargo run -p apiloom --example document_kinds`
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;

use apiloom::meta::GroupResource;
use apiloom::server::registry::CatalogChange;
use apiloom::server::{self, Backend, Config, Loopback};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

const LAMPS: &str = "/apis/example.com/v1/namespaces/default/lamps";

/// A CustomResourceDefinition, whose lamps have at most this many watts.
fn lamps(most: u32) -> Value {
    json!({"spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"watts": {"type": "integer", "maximum": most}}},
            }}},
        }],
    }})
}

/// Creates a lamp, and prints what the server says.
async fn create(loopback: &Loopback, name: &str, watts: u32) -> Result<(), Failure> {
    let lamp = json!({
        "apiVersion": "example.com/v1",
        "kind": "Lamp",
        "metadata": {"name": name},
        "spec": {"watts": watts},
    });
    let request = Request::post(LAMPS).body(Full::new(Bytes::from(lamp.to_string())))?;
    let response = loopback.send(request).await;
    let code = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    println!(
        "{name}: {code} {}",
        String::from_utf8_lossy(&body).trim_end()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut config = Config::new("lamps", "");
    config.backend = Backend::Memory;
    let server = server::builder(config).build().await?.start().await?;
    let (registry, loopback) = (server.registry(), server.loopback().privileged());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));

    create(&loopback, "too-early", 5).await?;
    let change = |document: Value| CatalogChange::new().document(&document).map_err(lines);
    registry.change(change(lamps(60))?).await.map_err(lines)?;
    create(&loopback, "bulb", 60).await?;
    registry.change(change(lamps(10))?).await.map_err(lines)?;
    create(&loopback, "too-bright", 60).await?;
    let remove = CatalogChange::new().remove(GroupResource::new("example.com", "lamps"));
    registry.change(remove).await.map_err(lines)?;
    create(&loopback, "too-late", 5).await?;

    drop(stop);
    serving.await?;
    Ok(())
}

/// The problems of a document, as one error.
fn lines(problems: Vec<String>) -> Failure {
    problems.join("\n").into()
}
