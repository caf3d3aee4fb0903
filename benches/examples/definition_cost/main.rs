//! What CustomResourceDefinitions cost: an idle one, a new one, objects beside those of a compiled kind, readers of other
//! kinds during changes, and a start with many.
//!
//! `cargo run --release -p apiloom-benches --example definition_cost`
//!
//! Requests are made in process, so that no connection hides a difference. Medians of rounds, in which both kinds take turns.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

mod client;
#[path = "../cpu/mod.rs"]
mod cpu;

use std::alloc::System;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apiloom::prelude::*;
use apiloom::server::{self, Backend, Config, InProcess};
use cap::Cap;
use serde_json::{Value, json};

use self::client::{
    CRDS, Client, Failure, definition, is_established, median, parcels, path, process_cpu, schema,
    thread_cpu,
};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// A kind that is compiled; [`parcels`] is the definition of the same.
#[apiloom::resource(group = "compiled.example.com", version = "v1", namespaced)]
pub struct Parcel {
    /// Its name, labels and so on.
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: ParcelSpec,
}

/// What a parcel is.
#[apiloom::api]
pub struct ParcelSpec {
    /// A name for people.
    pub title: String,
    /// The number of its parts.
    #[api(default = 1)]
    pub size: i32,
    /// Words about it.
    pub tags: Vec<String>,
    /// Where it goes.
    pub stops: Vec<Stop>,
}

/// A part of a way.
#[apiloom::api]
pub struct Stop {
    /// Its name.
    pub city: String,
    /// How long it takes.
    pub hours: Option<i32>,
}

/// Rounds of each comparison.
const ROUNDS: usize = 9;

/// Objects that a round creates and lists.
const OBJECTS: usize = 1000;

/// Time between two changes of definitions: 500 in a minute.
const BETWEEN: Duration = Duration::from_millis(120);

async fn serve(dir: &Path, backend: Backend) -> Result<InProcess, Failure> {
    let mut config = Config::new("definitions", dir);
    // With little history, what is counted at rest is not what is only kept for watchers.
    let is_counted = backend == Backend::Embedded;
    config.watch_cache_history_bytes = is_counted.then_some(64 * 1024);
    config.backend = backend;
    let builder = server::builder(config).all_built_in().kind::<Parcel>();
    Ok(builder.build().await?.start().await?)
}

/// Runs a part of the program with a server of its own, whose controllers run.
async fn with_server(
    dir: &Path,
    backend: Backend,
    part: impl AsyncFnOnce(&Client) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let server = serve(dir, backend).await?;
    let client = Client(server.loopback().privileged());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let done = part(&client).await;
    drop(stop);
    serving.await?;
    done
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let dir = |name: &str| dir.path().join(name);
    with_server(&dir("idle"), Backend::Embedded, idle).await?;
    with_server(&dir("first"), Backend::Embedded, first_object).await?;
    with_server(&dir("beside"), Backend::Memory, beside_compiled).await?;
    with_server(&dir("readers"), Backend::Memory, readers).await?;
    start(&dir("start")).await
}

/// Heap of an idle definition with a schema of 50 KB.
async fn idle(client: &Client) -> Result<(), Failure> {
    let large = schema(315);
    client.create(0..2, &large).await?;
    client.delete(0..2).await?;
    let before = at_rest(client).await?;
    client.create(0..40, &large).await?;
    let each = at_rest(client).await?.saturating_sub(before) / 40;
    let json = large.to_string().len();
    println!("heap of an idle definition with a schema of {json} bytes: {each} bytes");
    Ok(())
}

/// The least memory that is used until it has not become less for a while.
async fn at_rest(client: &Client) -> Result<usize, Failure> {
    let mut least = usize::MAX;
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_secs(2) {
        client.send("GET", "/version", &Value::Null).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let used = ALLOCATOR.allocated();
        if used < least {
            (least, since) = (used, Instant::now());
        }
    }
    Ok(least)
}

/// The time from the request that creates a definition to the answer to the first object that is accepted.
async fn first_object(client: &Client) -> Result<(), Failure> {
    let small = schema(20);
    let (mut waited, mut spent) = (Vec::new(), Vec::new());
    for number in 0..30 {
        let (started, cpu) = (Instant::now(), process_cpu());
        client
            .write("POST", CRDS, &definition(number, &small))
            .await?;
        let url = format!("/apis/ex.io/v1/namespaces/default/kinds{number}");
        let kind = format!("Kind{number}");
        let object = json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a"}});
        while client.send("POST", &url, &object).await?.0 != 201 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waited.push(started.elapsed().as_secs_f64() * 1e3);
        spent.push((process_cpu() - cpu) * 1e3);
    }
    println!(
        "definition to first object: {:.1} ms, with {:.1} ms of CPU for all that it causes",
        median(waited),
        median(spent)
    );
    Ok(())
}

/// CREATE and LIST of a custom resource beside those of the same compiled kind.
async fn beside_compiled(client: &Client) -> Result<(), Failure> {
    client.write("POST", CRDS, &parcels()).await?;
    client
        .until(
            &format!("{CRDS}/parcels.custom.example.com"),
            |_, answer| is_established(answer),
        )
        .await?;
    let groups = ["compiled.example.com", "custom.example.com"];
    let mut ratios: [Vec<f64>; 2] = Default::default();
    let mut costs: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..ROUNDS {
        let mut measured = [[0.0; 2]; 2];
        for turn in 0..groups.len() {
            let of = (turn + round) % groups.len();
            measured[of] = create_and_list(client, groups[of]).await?;
        }
        for (step, ratios) in ratios.iter_mut().enumerate() {
            ratios.push(measured[1][step] / measured[0][step]);
            for (costs, measured) in costs.iter_mut().zip(&measured) {
                costs[step].push(measured[step]);
            }
        }
    }
    let [compiled, custom] = costs;
    let both = compiled.into_iter().zip(custom);
    for ((step, (compiled, custom)), ratio) in ["CREATE", "LIST"].into_iter().zip(both).zip(ratios)
    {
        println!(
            "{step}: {:.1} us of CPU an object, {:.1} of the compiled kind: {:.2}",
            median(custom),
            median(compiled),
            median(ratio)
        );
    }
    Ok(())
}

/// CPU time of a create, and of an object in a list, in microseconds.
async fn create_and_list(client: &Client, group: &str) -> Result<[f64; 2], Failure> {
    let url = format!("/apis/{group}/v1/namespaces/default/parcels");
    let started = process_cpu();
    for number in 0..OBJECTS {
        let object = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Parcel",
            "metadata": {"name": format!("p{number}"), "annotations": {"text": "p".repeat(600)}},
            "spec": {"title": format!("parcel {number}"), "size": 7, "tags": ["a", "b"],
                "stops": [{"city": "here", "hours": 1}, {"city": "there", "hours": 2}]},
        });
        client.write("POST", &url, &object).await?;
    }
    let created = process_cpu() - started;
    let started = process_cpu();
    for _ in 0..20 {
        client.read(&url).await?;
    }
    let listed = (process_cpu() - started) / 20.0;
    client.write("DELETE", &url, &Value::Null).await?;
    client
        .until(&url, |_, list| {
            list["items"].as_array().is_some_and(Vec::is_empty)
        })
        .await?;
    Ok([created, listed].map(|seconds| seconds * 1e6 / OBJECTS as f64))
}

/// CPU time of a GET of another kind, without and with 500 changes of definitions a minute.
async fn readers(client: &Client) -> Result<(), Failure> {
    let small = schema(20);
    client.create(0..30, &small).await?;
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    let mut count = 0;
    for _ in 0..ROUNDS {
        idle.push(cost_of_gets(client).await?);
        let is_done = AtomicBool::new(false);
        let changes = async {
            let mut ticks = tokio::time::interval(BETWEEN);
            while !is_done.load(Ordering::Relaxed) {
                ticks.tick().await;
                let url = path(count % 30);
                let (_, mut present) = client.send("GET", &url, &Value::Null).await?;
                present["spec"] = definition(count % 30, &schema(21 + count / 30))["spec"].clone();
                client.write("PUT", &url, &present).await?;
                count += 1;
            }
            Ok::<(), Failure>(())
        };
        let reads = async {
            let cost = cost_of_gets(client).await;
            is_done.store(true, Ordering::Relaxed);
            cost
        };
        let (changed, read) = tokio::join!(changes, reads);
        changed?;
        busy.push(read?);
    }
    let (idle, busy) = (median(idle), median(busy));
    println!(
        "a GET of another kind: {idle:.1} us of CPU, {busy:.1} during {count} changes of definitions: {:.2}",
        busy / idle
    );
    Ok(())
}

/// CPU time of a GET in microseconds, on a thread of its own: the median of parts between which time passes.
async fn cost_of_gets(client: &Client) -> Result<f64, Failure> {
    let client = client.clone();
    let reader = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut costs = Vec::new();
            for _ in 0..20 {
                let before = thread_cpu();
                for _ in 0..200 {
                    client.read("/api/v1/namespaces/default").await?;
                }
                costs.push((thread_cpu() - before) * 1e6 / 200.0);
                tokio::time::sleep(BETWEEN / 2).await;
            }
            Ok::<f64, Failure>(median(costs))
        })
    });
    reader.await?
}

/// A start with 500 definitions in the store.
async fn start(dir: &Path) -> Result<(), Failure> {
    let middle = schema(60);
    let json = middle.to_string().len();
    with_server(dir, Backend::Embedded, async |client: &Client| {
        client.create(0..500, &middle).await
    })
    .await?;
    let (mut waited, mut spent) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (started, cpu) = (Instant::now(), process_cpu());
        let server = serve(dir, Backend::Embedded).await?;
        waited.push(started.elapsed().as_secs_f64() * 1e3);
        spent.push((process_cpu() - cpu) * 1e3);
        let client = Client(server.loopback().privileged());
        client.read("/apis/ex.io/v1/kinds499").await?;
        let serving = tokio::spawn(server.serve(async {}));
        serving.await?;
    }
    println!(
        "start with 500 definitions whose schemas have {json} bytes: {:.0} ms, {:.0} ms of CPU",
        median(waited),
        median(spent)
    );
    Ok(())
}
