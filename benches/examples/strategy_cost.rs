//! What a strategy costs: a kind without one, with one that only validates, and with one that has every hook, side by side.
//!
//! `cargo run --release -p apiloom-benches --example strategy_cost [OBJECTS]`
//!
//! CPU time of the process per object: starting over a filled store, listing, applying changes that another server made, and
//! writing. Medians of five rounds in which the kinds take turns.
#![allow(unreachable_pub, reason = "kinds in modules")]
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

mod cpu;

use std::error::Error;
use std::sync::Arc;

use apiloom::prelude::*;
use apiloom::server::{self, Config, InProcess, Loopback};
use apiloom::storage::{ListRequest, Memory, Revision, Storage};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rustix::time::ClockId;

type Failure = Box<dyn Error + Send + Sync>;

const ROUNDS: usize = 5;

/// Declares a kind in a module of its own.
macro_rules! kind {
    ($module:ident) => {
        mod $module {
            use apiloom::prelude::*;

            #[apiloom::resource(
                group = "cost.example.com",
                version = "v1",
                cluster,
                plural = "parcels"
            )]
            pub struct Parcel {
                pub metadata: ObjectMeta,
                pub spec: Spec,
            }

            #[apiloom::api]
            pub struct Spec {
                pub title: String,
                #[api(default = 1)]
                pub size: i32,
                pub tags: Vec<String>,
                pub stops: Vec<Stop>,
            }

            #[apiloom::api]
            pub struct Stop {
                pub city: String,
                pub hours: Option<i32>,
            }
        }
    };
}

kind!(plain);
kind!(judged);
kind!(defaulted);

/// Only validates.
struct Judging;

impl Strategy<judged::Parcel> for Judging {
    const HAS_DEFAULTS: bool = false;

    fn validate(&self, _ctx: &RequestContext, parcel: &judged::Parcel) -> Vec<FieldError> {
        let path = FieldPath::new("spec").child("title");
        let is_empty = parcel.spec.title.is_empty();
        let error = is_empty.then(|| FieldError::required(&path, "a parcel has a title"));
        error.into_iter().collect()
    }
}

/// Has every hook.
struct Defaulting;

impl Strategy<defaulted::Parcel> for Defaulting {
    fn default(&self, parcel: &mut defaulted::Parcel) {
        if parcel.spec.tags.is_empty() {
            parcel.spec.tags.push("plain".to_owned());
        }
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, parcel: &mut defaulted::Parcel) {
        parcel.spec.size = parcel.spec.size.max(1);
    }
    fn prepare_for_update(
        &self,
        _ctx: &RequestContext,
        new: &mut defaulted::Parcel,
        old: &defaulted::Parcel,
    ) {
        new.spec.size = new.spec.size.max(old.spec.size);
    }
    fn validate(&self, _ctx: &RequestContext, parcel: &defaulted::Parcel) -> Vec<FieldError> {
        let path = FieldPath::new("spec").child("title");
        let is_empty = parcel.spec.title.is_empty();
        let error = is_empty.then(|| FieldError::required(&path, "a parcel has a title"));
        error.into_iter().collect()
    }
    fn warnings(&self, _ctx: &RequestContext, parcel: &defaulted::Parcel) -> Vec<String> {
        let is_large = parcel.spec.size > 1_000_000;
        is_large
            .then(|| "a large parcel".to_owned())
            .into_iter()
            .collect()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Judged,
    Defaulted,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Judged, Kind::Defaulted];
const STEPS: [&str; 5] = ["start", "list", "foreign change", "create", "update"];
const URL: &str = "/apis/cost.example.com/v1/parcels";

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    cpu::time(ClockId::ProcessCPUTime).as_secs_f64()
}

/// A started server for one kind over a store.
async fn serve(kind: Kind, store: &Arc<Memory>) -> Result<InProcess, Failure> {
    let builder = server::builder(Config::new("cost", "/proc/none"));
    let builder = builder.storage(Arc::clone(store) as Arc<dyn Storage>);
    let builder = match kind {
        Kind::Plain => builder.kind::<plain::Parcel>(),
        Kind::Judged => builder
            .kind::<judged::Parcel>()
            .strategy::<judged::Parcel>(Judging),
        Kind::Defaulted => {
            let builder = builder.kind::<defaulted::Parcel>();
            builder.strategy::<defaulted::Parcel>(Defaulting)
        }
    };
    Ok(builder.build().await?.start().await?)
}

/// Sends a request and returns the length of the answer.
async fn send(
    loopback: &Loopback,
    method: &str,
    url: &str,
    body: String,
) -> Result<usize, Failure> {
    let request = Request::builder().method(method).uri(url);
    let response = loopback
        .send(request.body(Full::new(Bytes::from(body)))?)
        .await;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status.is_success() {
        Ok(body.len())
    } else {
        Err(format!(
            "{method} {url}: {status} {}",
            String::from_utf8_lossy(&body)
        )
        .into())
    }
}

/// What fills an object of about 1.5 KiB.
#[derive(Clone, Copy)]
enum Shape {
    /// One long annotation, as in the other benchmarks.
    Text,
    /// A list of 40 small objects, which costs code that decodes it the most.
    Items,
}

/// An object with one field that changes.
fn parcel(shape: Shape, number: usize, size: usize) -> String {
    let (text, items) = match shape {
        Shape::Text => ("p".repeat(1_100), 0),
        Shape::Items => (String::new(), 40),
    };
    let stops: Vec<String> = (0..items)
        .map(|stop| format!(r#"{{"city":"city {stop}","hours":{stop}}}"#))
        .collect();
    format!(
        r#"{{"metadata":{{"name":"p{number}","annotations":{{"text":"{text}"}}}},"spec":{{"title":"parcel {number}","size":{size},"tags":["a","b"],"stops":[{}]}}}}"#,
        stops.join(",")
    )
}

/// Changes every object in the store itself, as another server does.
async fn change_all(store: &Memory) -> Result<Revision, Failure> {
    let request = ListRequest {
        prefix: "/registry/cost.example.com/parcels/".to_owned(),
        ..ListRequest::default()
    };
    let mut newest = Revision(0);
    for entry in store.list(request).await?.entries {
        let text = String::from_utf8(entry.value.to_vec())?;
        let changed = text.replace(r#""size":7"#, r#""size":8"#);
        let written = store.update_if(&entry.key, entry.revision, changed.into(), None);
        newest = written.await?;
    }
    Ok(newest)
}

/// The CPU time of each step for one kind, in microseconds per object.
async fn measure(kind: Kind, shape: Shape, objects: usize) -> Result<[f64; STEPS.len()], Failure> {
    let store = Memory::new();
    let mut marks = Vec::new();
    let server = serve(kind, &store).await?;
    let loopback = server.loopback().privileged();
    let begin = cpu();
    for number in 0..objects {
        send(&loopback, "POST", URL, parcel(shape, number, 6)).await?;
    }
    let created = cpu() - begin;
    let begin = cpu();
    for number in 0..objects {
        let url = format!("{URL}/p{number}");
        send(&loopback, "PUT", &url, parcel(shape, number, 7)).await?;
    }
    let updated = cpu() - begin;
    drop((server, loopback));

    let begin = cpu();
    let server = serve(kind, &store).await?;
    let loopback = server.loopback().privileged();
    // Waits for the cache.
    send(&loopback, "GET", &format!("{URL}?limit=1"), String::new()).await?;
    marks.push(cpu() - begin);

    let begin = cpu();
    for _ in 0..5 {
        send(&loopback, "GET", URL, String::new()).await?;
    }
    marks.push((cpu() - begin) / 5.0);

    let begin = cpu();
    let newest = change_all(&store).await?;
    let url = format!("{URL}?limit=1&resourceVersion={newest}");
    send(&loopback, "GET", &url, String::new()).await?;
    marks.push(cpu() - begin);

    marks.extend([created, updated]);
    let mut each = [0.0; STEPS.len()];
    for (each, seconds) in each.iter_mut().zip(marks) {
        *each = seconds * 1e6 / objects as f64;
    }
    Ok(each)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let objects = std::env::args()
        .nth(1)
        .map_or(Ok(20_000), |text| text.parse())?;
    for (name, shape) in [("a long text", Shape::Text), ("40 items", Shape::Items)] {
        compare(name, shape, objects).await?;
    }
    Ok(())
}

/// Measures the kinds with objects of one shape, and prints the medians.
async fn compare(name: &str, shape: Shape, objects: usize) -> Result<(), Failure> {
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (kind, rounds) in KINDS.into_iter().zip(&mut rounds) {
            rounds.push(measure(kind, shape, objects).await?);
        }
    }
    println!(
        "{objects} objects of about 1.5 KiB with {name}: CPU us each, and the ratio to a kind without a strategy"
    );
    println!(
        "{:<16}{:>10}{:>18}{:>18}",
        "", "none", "only validates", "every hook"
    );
    for (step, name) in STEPS.into_iter().enumerate() {
        let [none, judged, defaulted] = rounds
            .each_ref()
            .map(|rounds| median(rounds.iter().map(|each| each[step]).collect()));
        let ratio = |cost: f64| format!("{cost:.1} ({:.2})", cost / none);
        println!(
            "{name:<16}{none:>10.1}{:>18}{:>18}",
            ratio(judged),
            ratio(defaulted)
        );
    }
    Ok(())
}
