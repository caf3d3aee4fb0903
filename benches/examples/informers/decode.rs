//! Watches of 2 KiB objects whose bytes are in memory: how fast they are decoded on one core.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use apiloom_client::cache::{ListWatch, ResourceSource, WatchRequest};
use apiloom_client::{
    ApiObject, ApiResource, Body, Client, DynamicObject, Transport, TransportError, verbs,
};
use apiloom_kinds::core::v1::ConfigMap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::core::WatchEvent;
use rustix::time::ClockId;
use serde_json::json;

use crate::cpu;
use crate::objects::{NAMESPACE, config_map};

/// Events of one watch.
const EVENTS: usize = 20_000;
/// What a connection hands over at a time.
const PIECE: usize = 16 * 1024;
const ROUNDS: usize = 7;

/// The events of a watch, as the server writes them.
fn body() -> Bytes {
    let mut out = String::new();
    for number in 0..EVENTS {
        let mut object = config_map(number);
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("2f4a1c0e-9b7d-4c1e-8a55-{number:012}"));
        metadata["resourceVersion"] = json!((1000 + number).to_string());
        metadata["creationTimestamp"] = json!("2026-11-23T10:00:00Z");
        metadata["managedFields"] = json!([{
            "manager": "load", "operation": "Update", "apiVersion": "v1", "time": "2026-11-23T10:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:key-0": {}, "f:key-1": {}, "f:key-2": {}, "f:key-3": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}},
        }]);
        // The type is first, as servers write it.
        out.push_str(&format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"));
    }
    out.into()
}

/// Sends the same bytes for every request.
#[derive(Clone)]
struct Ready(Bytes);

impl Transport for Ready {
    fn call(&self, _: Request<Body>) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let body = Body::new(StreamBody::new(
            pieces(self.0.clone()).map(Ok::<_, TransportError>),
        ));
        std::future::ready(Ok(Response::new(body))).boxed()
    }
}

fn pieces(bytes: Bytes) -> impl futures_util::Stream<Item = Frame<Bytes>> + Send {
    let starts = (0..bytes.len()).step_by(PIECE);
    stream::iter(starts.map(move |start| {
        let end = (start + PIECE).min(bytes.len());
        Frame::data(bytes.slice(start..end))
    }))
}

/// The best of some rounds, in MB of JSON a second of CPU time.
async fn best(bytes: usize, mut round: impl AsyncFnMut() -> Result<usize>) -> Result<f64> {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let start = cpu::time(ClockId::ThreadCPUTime);
        let events = round().await?;
        let seconds = (cpu::time(ClockId::ThreadCPUTime) - start).as_secs_f64();
        ensure!(events == EVENTS, "{events} events");
        best = best.max(bytes as f64 / seconds / 1e6);
    }
    Ok(best)
}

/// What an informer reads: its source, without managedFields.
async fn source<K: ApiObject + verbs::List + verbs::Watch>(client: &Client) -> Result<usize> {
    let resource = ApiResource::new("", "v1", "ConfigMap", "configmaps");
    let scope = apiloom_client::Namespaced::new(NAMESPACE);
    let source = ResourceSource::new(&client.resource::<K, _>(resource, scope));
    let request = WatchRequest {
        resource_version: "1".to_owned(),
        timeout: Duration::from_secs(300),
        initial_events: false,
    };
    let mut events = source.watch(request).await?;
    let mut count = 0;
    while let Some(event) = events.next().await {
        std::hint::black_box(event?);
        count += 1;
    }
    Ok(count)
}

/// What a client reads, with managedFields.
async fn whole(client: &Client) -> Result<usize> {
    let mut events = client.namespaced::<ConfigMap>(NAMESPACE).watch().await?;
    let mut count = 0;
    while let Some(event) = events.next().await {
        std::hint::black_box(event?);
        count += 1;
    }
    Ok(count)
}

async fn with_kube(bytes: &Bytes) -> Result<usize> {
    type KubeConfigMap = k8s_openapi::api::core::v1::ConfigMap;
    let bytes = bytes.clone();
    let service = tower::service_fn(move |_: Request<kube::client::Body>| {
        let body = StreamBody::new(pieces(bytes.clone()).map(Ok::<_, TransportError>));
        std::future::ready(Ok::<_, TransportError>(Response::new(body)))
    });
    let client = kube::Client::new(service, NAMESPACE);
    let request = kube::core::Request::new(format!("/api/v1/namespaces/{NAMESPACE}/configmaps"));
    let request = request.watch(&kube::api::WatchParams::default(), "1")?;
    let events = client.request_events::<KubeConfigMap>(request).await?;
    let mut events = std::pin::pin!(events);
    let mut count = 0;
    while let Some(event) = events.next().await {
        let event: WatchEvent<KubeConfigMap> = event?;
        std::hint::black_box(event);
        count += 1;
    }
    Ok(count)
}

/// Prints how fast each client decodes.
pub(crate) fn measure() -> Result<()> {
    let bytes = body();
    println!(
        "{EVENTS} events of {} bytes, best of {ROUNDS} rounds, CPU time of one thread",
        bytes.len() / EVENTS
    );
    let client = Client::new(Ready(bytes.clone()));
    // A thread that Tokio's workers share nothing with: kube's client has a task of its own, which runs here too.
    let worker = std::thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let length = bytes.len();
            let show = |name: &str, rate: f64| println!("{name}: {rate:.0} MB/s");
            show(
                "an informer of apiloom, typed",
                best(length, async || source::<ConfigMap>(&client).await).await?,
            );
            show(
                "an informer of apiloom, dynamic",
                best(length, async || source::<DynamicObject>(&client).await).await?,
            );
            show(
                "a watch of apiloom, typed, with managedFields",
                best(length, async || whole(&client).await).await?,
            );
            show(
                "a watch of kube-rs, typed",
                best(length, async || with_kube(&bytes).await).await?,
            );
            Ok(())
        })
    });
    worker.join().ok().context("the thread panicked")?
}
