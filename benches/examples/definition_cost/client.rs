//! Requests in process, definitions to send, and the time that they take.

use std::error::Error;
use std::ops::Range;
use std::time::{Duration, Instant};

use apiloom::server::Loopback;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rustix::time::ClockId;
use serde_json::{Map, Value, json};

use crate::cpu;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long something may take that the server does by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client in process: its requests run in the task of the caller.
#[derive(Clone)]
pub(crate) struct Client(pub(crate) Loopback);

impl Client {
    async fn answer(&self, method: &str, url: &str, body: &Value) -> Result<(u16, Bytes), Failure> {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder().method(method).uri(url);
        let request = request.header("content-type", "application/json");
        let response = self
            .0
            .send(request.body(Full::new(Bytes::from(text)))?)
            .await;
        let code = response.status().as_u16();
        Ok((code, response.into_body().collect().await?.to_bytes()))
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        url: &str,
        body: &Value,
    ) -> Result<(u16, Value), Failure> {
        let (code, answer) = self.answer(method, url, body).await?;
        Ok((code, serde_json::from_slice(&answer).unwrap_or_default()))
    }

    /// A write that must succeed.
    pub(crate) async fn write(&self, method: &str, url: &str, body: &Value) -> Result<(), Failure> {
        let (code, answer) = self.answer(method, url, body).await?;
        if code < 300 {
            return Ok(());
        }
        Err(format!(
            "{method} {url}: {code} {}",
            String::from_utf8_lossy(&answer)
        )
        .into())
    }

    /// A read that must succeed, whose answer is not decoded.
    pub(crate) async fn read(&self, url: &str) -> Result<(), Failure> {
        self.write("GET", url, &Value::Null).await
    }

    /// Waits until a GET has an answer that is expected.
    pub(crate) async fn until(
        &self,
        url: &str,
        is_expected: impl Fn(u16, &Value) -> bool,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            let (code, answer) = self.send("GET", url, &Value::Null).await?;
            if is_expected(code, &answer) {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("{url}: {code} {answer}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Creates definitions, and waits until their kinds are served.
    pub(crate) async fn create(
        &self,
        numbers: Range<usize>,
        schema: &Value,
    ) -> Result<(), Failure> {
        for number in numbers.clone() {
            self.write("POST", CRDS, &definition(number, schema))
                .await?;
        }
        for number in numbers {
            self.until(&path(number), |_, answer| is_established(answer))
                .await?;
        }
        Ok(())
    }

    /// Deletes definitions, and waits until they are gone.
    pub(crate) async fn delete(&self, numbers: Range<usize>) -> Result<(), Failure> {
        for number in numbers.clone() {
            self.write("DELETE", &path(number), &Value::Null).await?;
        }
        for number in numbers {
            self.until(&path(number), |code, _| code == 404).await?;
        }
        Ok(())
    }
}

pub(crate) fn path(number: usize) -> String {
    format!("{CRDS}/kinds{number}.ex.io")
}

pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
}

fn of(group: &str, plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

pub(crate) fn definition(number: usize, schema: &Value) -> Value {
    let (plural, kind) = (format!("kinds{number}"), format!("Kind{number}"));
    of("ex.io", &plural, &kind, schema)
}

/// The definition of the compiled kind, in another group.
pub(crate) fn parcels() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer", "format": "int32"});
    let stop = json!({"type": "object", "required": ["city"], "properties": {"city": text, "hours": number}});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object", "required": ["title"],
        "properties": {
            "title": text,
            "size": {"type": "integer", "format": "int32", "default": 1},
            "tags": {"type": "array", "items": text},
            "stops": {"type": "array", "items": stop},
        },
    }}});
    of("custom.example.com", "parcels", "Parcel", &schema)
}

/// A schema with this many fields, each with a description, about 160 bytes each.
pub(crate) fn schema(fields: usize) -> Value {
    let description = "What this field is for, in a sentence or two, as authors of definitions write it for their users.";
    let fields: Map<String, Value> = (0..fields)
        .map(|number| {
            let field =
                json!({"type": "string", "description": description, "maxLength": number + 1});
            (format!("field{number}"), field)
        })
        .collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
}

/// CPU time of this process so far, in seconds.
pub(crate) fn process_cpu() -> f64 {
    cpu::time(ClockId::ProcessCPUTime).as_secs_f64()
}

/// CPU time of this thread so far, in seconds.
pub(crate) fn thread_cpu() -> f64 {
    cpu::time(ClockId::ThreadCPUTime).as_secs_f64()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
