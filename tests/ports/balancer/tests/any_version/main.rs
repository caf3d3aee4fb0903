//! Written through any version in any order, no rule of the hub is broken in the store, and nothing is lost that
//! a version cannot say. Random changes are made through random versions, in process over the registry, and each is also
//! made to a model: the specification as the hub has it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod edits;

use std::collections::HashSet;
use std::sync::Arc;

use apiloom::meta::patch::Patch;
use apiloom::meta::{ApiError, Object, StatusReason};
use apiloom::server::registry::{
    CreateOptions, Endpoint, GetOptions, PatchOptions, Registry, UpdateOptions, WriteRequest,
};
use apiloom::server::{RequestContext, kinds};
use apiloom::storage::Memory;
use balancer_kinds::{GROUP, v1, v1alpha1, v1beta1};
use edits::{Edit, VERSIONS, Version};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NS: Option<&str> = Some("default");

/// How a change is sent.
#[derive(Clone, Copy, Debug)]
enum Way {
    Put,
    Merge,
    Json,
}

/// Changes of one object that are sent together.
#[derive(Clone, Debug)]
struct Step {
    version: Version,
    way: Way,
    dry_run: bool,
    edits: Vec<Edit>,
}

/// What the object must be.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    spec: Value,
    status: Option<Value>,
    generation: i64,
    label: Option<i32>,
}

struct Server {
    _registry: Registry,
    endpoints: Vec<Arc<Endpoint>>,
    ctx: RequestContext,
}

impl Server {
    async fn start() -> Self {
        let mut builder = kinds::registry(Memory::new());
        builder.group(GROUP);
        builder.kind::<v1::Balancer>();
        builder.kind::<v1beta1::Balancer>();
        builder.kind::<v1alpha1::Balancer>();
        let registry = builder.build().unwrap();
        registry.start().await.unwrap();
        let endpoint = |version: &Version| {
            registry
                .endpoint(&GROUP.name, version.name(), "balancers")
                .unwrap()
        };
        Self {
            endpoints: VERSIONS.iter().map(endpoint).collect(),
            ctx: RequestContext::default(),
            _registry: registry,
        }
    }

    fn endpoint(&self, version: Version) -> &Endpoint {
        &self.endpoints[version as usize]
    }

    async fn create(&self, version: Version) -> Model {
        let (spec, hub) = version.first();
        let object = json!({"metadata": {"name": "b"}, "spec": spec, "status": {"ready": 9}});
        let object = Object::from_value(object).unwrap();
        let options = CreateOptions::default();
        let created = self
            .endpoint(version)
            .writes()
            .create(&self.ctx, NS, object, &options);
        created.await.unwrap();
        Model {
            spec: hub,
            status: None,
            generation: 1,
            label: None,
        }
    }

    async fn get(&self, version: Version) -> Value {
        let options = GetOptions::default();
        let got = self
            .endpoint(version)
            .reads()
            .get(&self.ctx, NS, "b", &options);
        let object = got.await.unwrap().object().unwrap();
        Object::clone(&object).into_value()
    }

    /// Sends the change from one state of the object to another, as a client that read the first.
    async fn send(
        &self,
        step: &Step,
        subresource: &str,
        before: &Value,
        after: &Value,
    ) -> Result<Value, ApiError> {
        let endpoint = self.endpoint(step.version);
        let patch = match step.way {
            Way::Put => {
                let object = Object::from_value(after.clone()).unwrap();
                let options = UpdateOptions {
                    dry_run: step.dry_run,
                    ..UpdateOptions::default()
                };
                let request = WriteRequest::new(&self.ctx, NS, "b").at(subresource);
                let updated = endpoint.writes().update(request.with(&options), object);
                return updated
                    .await
                    .map(|(written, _)| written.object.into_value());
            }
            Way::Merge => {
                let patch = merge_patch(before, after);
                Patch::parse_merge(patch.to_string().as_bytes()).unwrap()
            }
            Way::Json => {
                // As a client receives it.
                let after = Object::from_value(after.clone()).unwrap().into_tree();
                let parts = ["metadata", "spec", "status"].into_iter();
                let parts = parts.filter(|name| after.get(*name).is_some());
                let add =
                    |name| json!({"op": "add", "path": format!("/{name}"), "value": after[name]});
                let patch: Value = parts.map(add).collect();
                Patch::parse_json(patch.to_string().as_bytes()).unwrap()
            }
        };
        let options = PatchOptions {
            dry_run: step.dry_run,
            ..PatchOptions::default()
        };
        let request = WriteRequest::new(&self.ctx, NS, "b").at(subresource);
        let patched = endpoint.writes().patch(request.with(&options), &patch);
        patched.await.map(|written| written.object.into_value())
    }
}

/// The merge patch that leads from one document to another.
fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(old) if old == value => {}
            Some(old) => drop(patch.insert(name.clone(), merge_patch(old, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// Makes a step, and judges what came of it by the model.
async fn take(server: &Server, model: &mut Model, step: &Step) {
    let before = server.get(step.version).await;
    for subresource in ["", "status"] {
        let edits = step.edits.iter();
        let edits: Vec<&Edit> = edits
            .filter(|edit| edit.is_of_status() == (subresource == "status"))
            .filter(|edit| edit.can_be_said(step.version))
            .collect();
        if edits.is_empty() {
            continue;
        }
        let before = server.get(step.version).await;
        let (mut after, mut next) = (before.clone(), model.clone());
        for edit in &edits {
            let spec_or_status = |document: &mut Value, name: &str| document[name].take();
            if let Edit::Label(label) = edit {
                after["metadata"]["labels"] = json!({"label": label.to_string()});
                next.label = Some(*label);
            } else if edit.is_of_status() {
                let mut status = spec_or_status(&mut after, "status");
                edit.apply(step.version, &mut status);
                after["status"] = status;
                let mut status = next.status.take().unwrap_or_default();
                edit.apply_in_hub(step.version, &mut status);
                next.status = Some(status);
            } else {
                edit.apply(step.version, &mut after["spec"]);
                edit.apply_in_hub(step.version, &mut next.spec);
            }
        }
        next.generation += i64::from(next.spec != model.spec);
        let written = server.send(step, subresource, &before, &after).await;
        match written {
            Ok(written) => {
                assert!(
                    edits::holds(&model.spec, &next.spec)
                        && edits::holds_in_status(model.status.as_ref(), next.status.as_ref()),
                    "a rule of the hub is broken: {}",
                    next.spec
                );
                // What was said is what is read.
                for name in ["spec", "status"] {
                    let mut said = after[name].clone();
                    if let Some(spec) = said.as_object_mut() {
                        spec.remove("comment");
                    }
                    assert_eq!(written.get(name).unwrap_or(&Value::Null), &said, "{name}");
                }
                if !step.dry_run {
                    assert_eq!(server.get(step.version).await, written);
                    *model = next;
                }
            }
            Err(error) => {
                assert_eq!(
                    error.reason,
                    Some(StatusReason::Invalid),
                    "{}",
                    error.message
                );
                assert!(
                    !edits::holds(&model.spec, &next.spec)
                        || !edits::holds_in_status(model.status.as_ref(), next.status.as_ref()),
                    "{} for {}",
                    error.message,
                    next.spec
                );
            }
        }
    }
    if step.dry_run {
        assert_eq!(server.get(step.version).await, before);
    }
    let got = server.get(Version::V1).await;
    assert_eq!(got["spec"], model.spec);
    assert_eq!(got.get("status"), model.status.as_ref());
    assert_eq!(got["metadata"]["generation"], model.generation);
    let label = model.label.map(|label| label.to_string());
    let labels = &got["metadata"]["labels"];
    assert_eq!(labels["label"].as_str(), label.as_deref());
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let version = || prop::sample::select(VERSIONS.to_vec());
    let way = prop::sample::select(vec![Way::Put, Way::Merge, Way::Json]);
    let edits = prop::collection::vec(edits::edit(), 1..4);
    let step = (version(), way, prop::bool::weighted(0.1), edits);
    let step = step.prop_map(|(version, way, dry_run, mut edits)| {
        let mut targets = HashSet::new();
        edits.retain(|edit| targets.insert(edit.target()));
        Step {
            version,
            way,
            dry_run,
            edits,
        }
    });
    prop::collection::vec(step, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_and_no_rule_is_broken_in_any_version(
        first in prop::sample::select(VERSIONS.to_vec()),
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            let mut model = server.create(first).await;
            for step in &steps {
                take(&server, &mut model, step).await;
            }
        });
    }
}
