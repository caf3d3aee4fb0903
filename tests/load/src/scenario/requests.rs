//! Scenarios of requests: workers that send one request after the other, for a time or until all are sent.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Bench, each_us};
use crate::objects::Objects;
use crate::options::Scenario;
use crate::report::Figures;
use crate::target::{Call, Connection, each_worker};

/// Objects per page.
const PAGE: usize = 500;

/// The `Accept` header of `kubectl get`.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// One worker, and when it ends.
struct Worker {
    scenario: Scenario,
    objects: Objects,
    connection: Connection,
    number: usize,
    workers: usize,
    until: Instant,
    /// Requests of all workers together, in place of `until`.
    requests: Option<usize>,
    /// Media type of lists.
    accept: String,
}

pub(super) async fn measure(bench: &Bench, scenario: Scenario) -> Result<Figures> {
    let run = &bench.run;
    let workers = match scenario {
        Scenario::List | Scenario::ConsistentList | Scenario::Pages | Scenario::Table => {
            run.list_concurrency
        }
        _ => run.concurrency,
    };
    let connections = bench
        .target
        .connect_workers(workers, run.connections)
        .await?;
    match scenario {
        Scenario::Delete => make_temporary(bench).await?,
        // The first apply of a manager adds its entry.
        Scenario::Apply | Scenario::ApplyChange => apply_all(bench).await?,
        _ => {}
    }
    let before = bench.cpu()?;
    let started = Instant::now();
    let until = started + Duration::from_secs(run.seconds);
    let each = each_worker(connections, |number, connection| {
        let worker = Worker {
            scenario,
            objects: bench.objects.clone(),
            connection,
            number,
            workers,
            until,
            requests: run.requests,
            accept: run.accept.clone(),
        };
        worker.work()
    });
    let each = each.await?.concat();
    let took = started.elapsed();
    let after = bench.cpu()?;
    let mut figures = Figures::new(scenario.name(), "req", took, each);
    figures.cpu_us = each_us(before, after, figures.count);
    figures.resident_mib = bench.resident_mib()?;
    if scenario == Scenario::Create {
        remove_created(bench, workers).await?;
    }
    Ok(figures)
}

impl Worker {
    async fn work(mut self) -> Result<Vec<Duration>> {
        let mut each = Vec::new();
        for round in 0.. {
            let mine = self.number + round * self.workers;
            let over = match (self.scenario, self.requests) {
                (Scenario::Delete, _) => mine >= self.objects.count,
                (_, Some(requests)) => mine >= requests,
                // At least one round, also if the time is very short.
                _ => round > 0 && Instant::now() >= self.until,
            };
            if over {
                break;
            }
            let began = Instant::now();
            self.once(mine, round).await?;
            each.push(began.elapsed());
        }
        Ok(each)
    }

    async fn once(&mut self, mine: usize, round: usize) -> Result<()> {
        let path = self.objects.path(&self.objects.name(mine));
        match self.scenario {
            Scenario::Create => {
                let body = self.objects.body(&created(self.number, round));
                let call = Call::new(Method::POST, self.objects.base(), body);
                self.connection.call(call).await?;
            }
            Scenario::Get => {
                self.connection.drain(Call::get(&path)).await?;
            }
            Scenario::Update => {
                let name = self.objects.name(mine);
                let changed = Objects::changed(&self.objects.body(&name), round)?;
                self.connection
                    .call(Call::new(Method::PUT, &path, changed))
                    .await?;
            }
            Scenario::ReadUpdate => {
                let present = self.connection.call(Call::get(&path)).await?;
                let changed = Objects::changed(&present, round)?;
                self.connection
                    .call(Call::new(Method::PUT, &path, changed))
                    .await?;
            }
            Scenario::Patch => {
                let patch = Objects::patch(round);
                self.connection
                    .call(Call::merge_patch(&path, patch))
                    .await?;
            }
            Scenario::Apply => self.apply(mine, 0).await?,
            // Not the value that the annotation has before.
            Scenario::ApplyChange => self.apply(mine, round + 1).await?,
            Scenario::List => {
                let accept = self.accept.clone();
                self.list("?resourceVersion=0", &accept).await?;
            }
            Scenario::ConsistentList => {
                let accept = self.accept.clone();
                self.list("", &accept).await?;
            }
            Scenario::Table => self.list("?resourceVersion=0", TABLE).await?,
            Scenario::Pages => self.pages().await?,
            Scenario::Delete => {
                let path = self.objects.path(&temporary(mine));
                self.connection
                    .call(Call::new(Method::DELETE, &path, ""))
                    .await?;
            }
            Scenario::Watch | Scenario::SelectiveWatch => {}
        }
        Ok(())
    }

    async fn apply(&mut self, mine: usize, value: usize) -> Result<()> {
        let name = self.objects.name(mine);
        let path = self.objects.apply_path(&name);
        let call = Call::apply(&path, self.objects.applied(&name, value));
        self.connection.call(call).await?;
        Ok(())
    }

    async fn list(&mut self, query: &str, accept: &str) -> Result<()> {
        let path = format!("{}{query}", self.objects.base());
        let call = Call {
            accept,
            ..Call::get(&path)
        };
        self.connection.drain(call).await?;
        Ok(())
    }

    async fn pages(&mut self) -> Result<()> {
        let mut path = format!("{}?limit={PAGE}", self.objects.base());
        // The baseline serves the same page without end.
        for _ in 0..self.objects.count.div_ceil(PAGE) {
            let page = self.connection.call(Call::get(&path)).await?;
            let page: Page<'_> = serde_json::from_slice(&page).context("not a list")?;
            if page.metadata.next.is_empty() {
                break;
            }
            path = format!(
                "{}?limit={PAGE}&continue={}",
                self.objects.base(),
                page.metadata.next
            );
        }
        Ok(())
    }
}

/// A list whose items are not decoded.
#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMeta,
    #[serde(borrow, rename = "items")]
    _items: &'a RawValue,
}

#[derive(Deserialize)]
struct PageMeta {
    #[serde(rename = "continue", default)]
    next: String,
}

/// The name of an object in the scenario create.
fn created(worker: usize, round: usize) -> String {
    format!("created-{worker}-{round}")
}

/// The name of an object in the scenario delete.
fn temporary(number: usize) -> String {
    format!("temporary-{number}")
}

async fn make_temporary(bench: &Bench) -> Result<()> {
    let run = &bench.run;
    let target = &bench.target;
    let connections = target
        .connect_workers(run.concurrency, run.connections)
        .await?;
    let step = connections.len();
    each_worker(connections, |worker, mut connection| {
        let objects = bench.objects.clone();
        async move {
            for number in (worker..objects.count).step_by(step) {
                let body = objects.body(&temporary(number));
                let call = Call::new(Method::POST, objects.base(), body);
                connection.call(call).await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(())
}

async fn apply_all(bench: &Bench) -> Result<()> {
    let run = &bench.run;
    let connections = bench
        .target
        .connect_workers(run.concurrency, run.connections)
        .await?;
    let step = connections.len();
    each_worker(connections, |worker, mut connection| {
        let objects = bench.objects.clone();
        async move {
            for number in (worker..objects.count).step_by(step) {
                let name = objects.name(number);
                objects.apply(&mut connection, &name).await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(())
}

/// Removes the created objects, so that every scenario begins with the same objects.
async fn remove_created(bench: &Bench, workers: usize) -> Result<()> {
    if bench.is_floor {
        return Ok(());
    }
    let target = &bench.target;
    let connections = target
        .connect_workers(workers, bench.run.connections)
        .await?;
    each_worker(connections, |worker, mut connection| {
        let objects = bench.objects.clone();
        async move {
            for round in 0.. {
                let path = objects.path(&created(worker, round));
                let call = Call::new(Method::DELETE, &path, "");
                let (code, _) = connection.try_call(call).await?;
                if !code.is_success() {
                    break;
                }
            }
            Ok(())
        }
    })
    .await?;
    Ok(())
}
