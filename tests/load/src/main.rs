//! `apiloom-load`: a load generator for any Kubernetes API server that prints the CPU time and memory per operation,
//! beside the cost of the same bytes with plain hyper and rustls.
//!
//! `cargo run --release -p apiloom-load -- run get list --kubeconfig FILE --pid PID --floor`

mod floor;
mod objects;
mod options;
mod process;
mod report;
mod scenario;
mod target;

use std::io::Write as _;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Parser as _;
use http_body_util::BodyExt as _;

use crate::floor::Floor;
use crate::objects::Objects;
use crate::options::{Command, Options, Run, Scenario};
use crate::scenario::Bench;
use crate::target::{Call, Target};

#[tokio::main]
async fn main() -> Result<()> {
    match Options::parse().command {
        Command::Floor => floor::serve().await,
        Command::Run(run) => measure(*run).await,
    }
}

async fn measure(run: Run) -> Result<()> {
    let text = std::fs::read_to_string(&run.kubeconfig)
        .with_context(|| run.kubeconfig.display().to_string())?;
    let target = Target::from_kubeconfig(&text, run.http)?;
    let objects = Objects::new(&run)?;
    objects.fill(&target, &run).await?;
    let server = Bench {
        target,
        pids: run.pids.clone(),
        objects,
        run: run.clone(),
        is_floor: false,
    };
    let floor = if run.floor {
        Some(Floor::start().await?)
    } else {
        None
    };
    let floor_bench = match &floor {
        Some(floor) => Some(bench_of(floor, &server).await?),
        None => None,
    };
    let mut rows = Vec::new();
    for scenario in &run.scenarios {
        let mut figures = server
            .measure(*scenario)
            .await
            .with_context(|| format!("scenario {}", scenario.name()))?;
        // Watchers that receive no events cost the baseline nothing.
        let floor = floor_bench
            .as_ref()
            .filter(|_| *scenario != Scenario::SelectiveWatch);
        if let Some(floor) = floor {
            figures.floor_cpu_us = floor.measure(*scenario).await?.cpu_us;
        }
        rows.push(figures);
    }
    std::io::stdout().write_all(report::table(&rows).as_bytes())?;
    if let Some(path) = &run.json {
        std::fs::write(path, serde_json::to_vec_pretty(&rows)?)
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The baseline, serving the server's latest responses.
async fn bench_of(floor: &Floor, server: &Bench) -> Result<Bench> {
    let target = floor.target(server.run.http)?;
    let objects = &server.objects;
    let mut connection = server.target.connect().await?;
    let mut get = async |path: String, accept: &'static str| {
        let call = Call {
            accept,
            ..Call::get(&path)
        };
        connection.call(call).await
    };
    let json = "application/json";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let bytes = [
        ("base", Bytes::from(objects.base().to_owned())),
        ("item", get(objects.path(&objects.name(0)), json).await?),
        ("list", get(objects.base().to_owned(), json).await?),
        (
            "page",
            get(format!("{}?limit=500", objects.base()), json).await?,
        ),
        ("table", get(objects.base().to_owned(), table).await?),
        ("event", event(server).await?),
    ];
    for (name, bytes) in bytes {
        floor.hand_out(&target, name, bytes).await?;
    }
    Ok(Bench {
        target,
        pids: vec![floor.pid()?],
        objects: server.objects.clone(),
        run: server.run.clone(),
        is_floor: true,
    })
}

/// One event in the server's encoding.
async fn event(server: &Bench) -> Result<Bytes> {
    let mut connection = server.target.connect().await?;
    let name = server.objects.name(0);
    let path = format!(
        "{}?watch=1&fieldSelector=metadata.name%3D{name}",
        server.objects.base()
    );
    let mut body = connection.send(Call::get(&path)).await?.into_body();
    let mut line = Vec::new();
    // The first event is the object's current state.
    while !line.contains(&b'\n') {
        let frame = body.frame().await.context("the watch ended")??;
        line.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
    }
    Ok(line.into())
}
