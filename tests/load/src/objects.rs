//! The objects under load: their paths and bodies.

use anyhow::{Result, anyhow};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::options::{Managed, Run};
use crate::target::{Call, Connection, Target, each_worker};

/// The annotation that pads an object to its size.
const PADDING: &str = "load/padding";

/// The annotation that says when an update was sent, in nanoseconds of the load generator's clock.
pub(crate) const SENT: &str = "load/sent";

/// The annotation that applies change.
const APPLIED: &str = "load/applied";

/// Objects of one kind in one namespace.
#[derive(Clone)]
pub(crate) struct Objects {
    api_version: String,
    kind: String,
    namespace: String,
    base: String,
    /// Number of objects that exist before a scenario begins.
    pub(crate) count: usize,
    padding: String,
}

impl Objects {
    /// The objects that the options describe.
    pub(crate) fn new(run: &Run) -> Result<Self> {
        let mut words = run.resource.splitn(3, '/');
        let (Some(group), Some(version), Some(plural)) = (words.next(), words.next(), words.next())
        else {
            return Err(anyhow!(
                "--resource is GROUP/VERSION/PLURAL, not {:?}",
                run.resource
            ));
        };
        let (api_version, root) = match group {
            "core" => (version.to_owned(), format!("/api/{version}")),
            _ => (
                format!("{group}/{version}"),
                format!("/apis/{group}/{version}"),
            ),
        };
        let mut objects = Self {
            api_version,
            kind: run.kind.clone(),
            namespace: run.namespace.clone(),
            base: format!("{root}/namespaces/{}/{plural}", run.namespace),
            count: run.objects,
            padding: String::new(),
        };
        // The fields that the server adds (uid, timestamps, resourceVersion) are part of the size: about 200 bytes. Its
        // managedFields are not.
        let bare = objects.body("object-00000").len() + 200;
        objects.padding = "p".repeat(run.size.saturating_sub(bare));
        Ok(objects)
    }

    /// The path of the list.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The path of one object.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// The name of the object with this number, among those that exist before a scenario begins.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("object-{:05}", number % self.count.max(1))
    }

    /// A new object.
    pub(crate) fn body(&self, name: &str) -> Bytes {
        let object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "annotations": {PADDING: self.padding, APPLIED: "0"},
                "labels": labels(),
            },
        });
        object.to_string().into()
    }

    /// The path of applies to an object, which take fields that other managers have changed.
    pub(crate) fn apply_path(&self, name: &str) -> String {
        format!("{}?fieldManager=load-apply&force=true", self.path(name))
    }

    /// The document of an apply: labels, and an annotation with this value.
    pub(crate) fn applied(&self, name: &str, value: impl std::fmt::Display) -> Bytes {
        let object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "annotations": {APPLIED: value.to_string()},
                "labels": labels(),
            },
        });
        object.to_string().into()
    }

    /// A merge patch that changes one annotation.
    pub(crate) fn patch(value: impl std::fmt::Display) -> Bytes {
        json!({"metadata": {"annotations": {SENT: value.to_string()}}})
            .to_string()
            .into()
    }

    /// An object from the server with a change.
    pub(crate) fn changed(object: &Bytes, value: impl std::fmt::Display) -> Result<Bytes> {
        let mut object: Value = serde_json::from_slice(object)?;
        object["metadata"]["annotations"][SENT] = json!(value.to_string());
        Ok(object.to_string().into())
    }

    /// Creates the namespace and every missing object, with its managedFields.
    pub(crate) async fn fill(&self, target: &Target, run: &Run) -> Result<()> {
        let mut connection = target.connect().await?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let call = Call::new(Method::POST, "/api/v1/namespaces", namespace.to_string());
        accept_existing(&mut connection, call).await?;
        let workers = target
            .connect_workers(run.concurrency, run.connections)
            .await?;
        let (step, managed) = (workers.len(), run.managed);
        each_worker(workers, |worker, mut connection| {
            let objects = self.clone();
            async move {
                for number in (worker..objects.count).step_by(step) {
                    let name = objects.name(number);
                    let call = Call::new(Method::POST, objects.base(), objects.body(&name));
                    accept_existing(&mut connection, call).await?;
                    match managed {
                        Managed::None => objects.clear(&mut connection, &name).await?,
                        Managed::One => {}
                        Managed::Two => objects.apply(&mut connection, &name).await?,
                    }
                }
                Ok(())
            }
        })
        .await?;
        Ok(())
    }
}

impl Objects {
    /// Removes the managedFields of an object.
    async fn clear(&self, connection: &mut Connection, name: &str) -> Result<()> {
        let path = self.path(name);
        let patch = json!({"metadata": {"managedFields": [{}]}}).to_string();
        connection.call(Call::merge_patch(&path, patch)).await?;
        Ok(())
    }

    /// Applies the fields that a scenario of applies begins with.
    pub(crate) async fn apply(&self, connection: &mut Connection, name: &str) -> Result<()> {
        let path = self.apply_path(name);
        connection
            .call(Call::apply(&path, self.applied(name, 0)))
            .await?;
        Ok(())
    }
}

fn labels() -> Value {
    json!({"load/tier": "backend", "load/zone": "a"})
}

async fn accept_existing(connection: &mut Connection, call: Call<'_>) -> Result<()> {
    let path = call.path.to_owned();
    let (code, body) = connection.try_call(call).await?;
    if code.is_success() || code == StatusCode::CONFLICT {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&body);
    Err(anyhow!("POST {path} was answered with {code}: {text}"))
}
