//! What the garbage collector costs: chains and fans of owner references whose roots are deleted.
//!
//! `cargo run --release -p apiloom-benches --example garbage_cost [OBJECTS]`
//!
//! CPU time of the process, the server included, from the deletion of the roots until the last dependent is gone; the
//! number of DELETE requests; and the memory for the graph, which is what the process has more than without collector. Linux
//! only: it reads `/proc`.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

mod cpu;

use std::error::Error;
use std::time::Duration;

use apiloom::server::{self, Backend, Config, ControllerNames, InProcess, Loopback};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rustix::time::ClockId;
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

const NAMESPACES: &str = "/api/v1/namespaces";

/// Objects in a chain, each of which owns the next.
const CHAIN: usize = 100;

/// Requests at the same time.
const AT_ONCE: usize = 32;

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    cpu::time(ClockId::ProcessCPUTime).as_secs_f64()
}

/// Resident memory of this process, in MiB.
fn resident() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split(' ').nth(1).ok_or("odd statm")?.parse()?;
    Ok(pages * 4096.0 / 1_048_576.0)
}

async fn send(
    to: &Loopback,
    method: &str,
    url: &str,
    body: &Value,
) -> Result<(u16, Bytes), Failure> {
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    let request = Request::builder()
        .method(method)
        .uri(url)
        .body(Full::new(body))?;
    let response = to.send(request).await;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect().await?.to_bytes()))
}

/// Creates an object with an owner; `None` for a root. Returns the reference to it.
async fn create(to: &Loopback, name: &str, owner: Option<&Value>) -> Result<Value, Failure> {
    let owners: Vec<&Value> = owner.into_iter().collect();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}});
    let url = format!("{NAMESPACES}/default/configmaps");
    let (code, body) = send(to, "POST", &url, &object).await?;
    if code != 201 {
        return Err(format!("{code}: {}", String::from_utf8_lossy(&body)).into());
    }
    let created: Value = serde_json::from_slice(&body)?;
    let uid = &created["metadata"]["uid"];
    Ok(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true}),
    )
}

/// Half of the objects in a fan under `fan`, half in chains that begin under `chains`.
async fn fill(to: &Loopback, objects: usize) -> Result<(), Failure> {
    let fan = create(to, "fan", None).await?;
    let fan = &fan;
    futures_util::stream::iter(0..objects / 2)
        .map(|i| async move { create(to, &format!("fan-{i}"), Some(fan)).await })
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |_| Ok(()))
        .await?;
    let chains = create(to, "chains", None).await?;
    let chains = &chains;
    futures_util::stream::iter(0..objects / 2 / CHAIN)
        .map(|i| async move {
            let mut owner = chains.clone();
            for k in 0..CHAIN {
                owner = create(to, &format!("chain-{i}-{k}"), Some(&owner)).await?;
            }
            Ok::<_, Failure>(())
        })
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |()| Ok(()))
        .await
}

async fn serve(names: ControllerNames) -> Result<InProcess, Failure> {
    let mut config = Config::new("garbage", "/proc/none");
    config.backend = Backend::Memory;
    config.controllers = names;
    Ok(server::builder(config)
        .all_built_in()
        .build()
        .await?
        .start()
        .await?)
}

async fn deletes(to: &Loopback) -> Result<u64, Failure> {
    let (_, text) = send(to, "GET", "/metrics", &Value::Null).await?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let of_deletes = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total{") && line.contains("verb=\"DELETE\"")
    });
    let counts = of_deletes.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum::<f64>() as u64)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let objects = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |text| text.parse())?;
    for (what, names) in [
        ("without", ControllerNames::NONE),
        ("with collector", ControllerNames::default()),
    ] {
        for policy in ["Background", "Foreground"] {
            let before = resident()?;
            let server = serve(names.clone()).await?;
            let loopback = server.loopback().privileged();
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
            fill(&loopback, objects).await?;
            println!(
                "{what}: {objects} objects, {:.1} MiB more",
                resident()? - before
            );
            if names != ControllerNames::NONE {
                let begin = cpu();
                let options = json!({"propagationPolicy": policy});
                let url = format!("{NAMESPACES}/default/configmaps");
                for root in ["fan", "chains"] {
                    send(&loopback, "DELETE", &format!("{url}/{root}"), &options).await?;
                }
                while !send(&loopback, "GET", &format!("{url}?limit=1"), &Value::Null)
                    .await?
                    .1
                    .trim_ascii_end()
                    .ends_with(b"\"items\":[]}")
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let spent = cpu() - begin;
                println!(
                    "{policy}: {spent:.2} s of CPU, {:.0} us an object, {} deletes",
                    spent / objects as f64 * 1e6,
                    deletes(&loopback).await?
                );
            }
            drop(stop);
            serving.await?;
        }
    }
    Ok(())
}
