//! The behaviour of the registry, over the memory store, with a small kind of two versions: v1 is the hub and has a
//! strategy, v1alpha1 is stored and names one field differently.

#![allow(
    clippy::needless_pass_by_value,
    reason = "documents read better at the call as what `json!` gives"
)]

mod apply;
mod apply_laws;
mod by_code;
mod converting;
mod counted_text;
mod create;
mod decode;
mod decoded_once;
mod definitions;
mod delete;
mod derived;
mod embedded;
mod emulation;
mod encryption;
mod graceful;
mod list;
mod listed;
mod managed_fields;
mod migration;
mod namespace;
mod other_versions;
mod patch;
mod places;
mod prepared;
mod races;
mod registration;
mod selected;
mod size;
mod slow_readers;
mod subresources;
mod turns;
mod unfilled;
mod update;
mod validations;
mod versions;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apiloom_meta::kind::{
    ApiType, Column, Conversion, ConversionMethod, DeletionRule, GenerationRule, GroupDef,
    InMemoryConversion, SchemaSource, Scope, SubresourceDef, Verb,
};
use apiloom_meta::schema::Schema;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_meta::{
    ApiError, FieldError, FieldPath, JsonPath, Object, ObjectMeta, Resource, ResourceDef,
    StatusReason,
};
use apiloom_storage::{Memory, Storage};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::namespace::{Namespace, NamespaceLifecycle, NamespaceRules};
use crate::*;

pub(super) const GROUP: &str = "test.example.com";

/// A revision that no store of these tests reaches, and the greatest exact integer of JavaScript.
pub(super) const FUTURE: u64 = (1 << 53) - 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    /// Size of the widget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-apiloom-default" = 1))]
    pub(super) size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 10))]
    pub(super) weight: Option<i64>,
    /// Counted by the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) serial: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlphaSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-apiloom-default" = 1))]
    pub(super) size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) colour: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) weight: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) serial: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ready: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Widget {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct AlphaWidget {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: AlphaSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
}

/// A cluster-scoped kind of one version that may be created by update and keeps no status apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Gadget {
    pub(super) metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) data: BTreeMap<String, String>,
}

impl ApiType for Widget {}
impl ApiType for AlphaWidget {}
impl ApiType for Gadget {}

fn definition<K: Resource>(schema: apiloom_meta::kind::SchemaFn) -> ResourceDef {
    ResourceDef {
        subresources: vec![SubresourceDef::status()],
        storage: false,
        strategic_merge_patch: true,
        ..ResourceDef::of_type::<K>(schema)
    }
}

macro_rules! resource {
    ($kind:ty, $version:literal, $name:literal, $plural:literal, $change:expr) => {
        impl Resource for $kind {
            const GROUP: &'static str = GROUP;
            const VERSION: &'static str = $version;
            const KIND: &'static str = $name;
            const PLURAL: &'static str = $plural;
            fn definition() -> ResourceDef {
                let change: fn(ResourceDef) -> ResourceDef = $change;
                change(definition::<Self>(|| Schema::for_resource::<Self>()))
            }
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
use resource;

resource!(Widget, "v1", "Widget", "widgets", |def| ResourceDef {
    selectable: vec![JsonPath::new(["spec", "color"]).into()],
    ..def
});
resource!(AlphaWidget, "v1alpha1", "Widget", "widgets", |def| {
    ResourceDef {
        storage: true,
        selectable: vec![JsonPath::new(["spec", "colour"]).into()],
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Widget".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub: |value| Ok(renamed(value, "colour", "color")),
                from_hub: |value| Ok(renamed(value, "color", "colour")),
            }),
        }),
        ..def
    }
});
resource!(Gadget, "v1", "Gadget", "gadgets", |def| ResourceDef {
    scope: Scope::Cluster,
    storage: true,
    subresources: Vec::new(),
    generation: GenerationRule::None,
    unconditional_update: false,
    create_on_update: true,
    ..def
});

fn renamed(mut value: Value, from: &str, to: &str) -> Value {
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(color) = spec.remove(from)
    {
        spec.insert(to.to_owned(), color);
    }
    value
}

/// Strategy of Widget in its hub version.
struct WidgetRules;

impl Strategy<Widget> for WidgetRules {
    fn default(&self, object: &mut Widget) {
        if object.spec.weight.is_some() && object.spec.color.is_none() {
            object.spec.color = Some("gray".to_owned());
        }
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Widget) {
        object.spec.serial = Some(1);
    }
    fn prepare_for_update(&self, _ctx: &RequestContext, new: &mut Widget, old: &Widget) {
        new.spec.serial = old
            .spec
            .serial
            .map(|n| n + i64::from(new.spec.color != old.spec.color));
    }
    fn validate(&self, _ctx: &RequestContext, object: &Widget) -> Vec<FieldError> {
        let path = FieldPath::new("spec").child("color");
        let color = object.spec.color.as_deref();
        color
            .filter(|c| *c == "bad")
            .map(|c| FieldError::invalid(&path, c, "must be good"))
            .into_iter()
            .collect()
    }
    fn warnings(&self, _ctx: &RequestContext, object: &Widget) -> Vec<String> {
        if object.spec.color.as_deref() == Some("pink") {
            vec!["pink fades".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// An admission plugin that labels objects and refuses some names, with two kinds of errors.
struct Judge {
    widgets: Lister<Widget>,
}

#[async_trait]
impl Admission for Judge {
    fn name(&self) -> &'static str {
        "Judge"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let object = request.object.as_deref();
        if object.is_some_and(|object| object.label("refuse-early").is_some()) {
            return Err(request.forbidden("it asks for it early"));
        }
        let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u1"});
        let double = |object: &mut Object| {
            let owners = json!([owner, owner]);
            object
                .meta_mut()
                .insert("ownerReferences".to_owned(), owners);
        };
        let owned = request.object.as_deref().and_then(|o| o.label("owned"));
        match owned {
            Some("twice") => request.object.as_deref_mut().into_iter().for_each(double),
            // A plugin may replace the object.
            Some("by-taking") => request
                .object
                .take()
                .as_deref_mut()
                .into_iter()
                .for_each(double),
            _ => {}
        }
        if request.is::<Widget>()
            && request
                .object
                .as_deref()
                .is_some_and(|o| o.label("count") == Some("me"))
        {
            let count = self.widgets.list()?.len();
            if let Some(object) = request.object.as_deref_mut() {
                object
                    .meta_mut()
                    .insert("labels".to_owned(), json!({"count": count.to_string()}));
            }
        }
        Ok(())
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let object = request.object.as_deref();
        if object.is_some_and(|object| object.label("refuse").is_some()) {
            return Err(request.forbidden("it asks for it"));
        }
        match request.name {
            "forbidden" => Err(request.forbidden("not this one")),
            "broken" => Err(ApiError::internal_text("the judge is ill")),
            "keep" if request.operation == Operation::Delete => {
                Err(request.forbidden("it is kept"))
            }
            _ => Ok(()),
        }
    }
}

/// A started registry and its store.
pub(super) struct Fixture {
    pub(super) registry: Registry,
    pub(super) store: Arc<Memory>,
    pub(super) ctx: RequestContext,
    pub(super) widgets: Arc<Endpoint>,
    pub(super) alpha: Arc<Endpoint>,
    pub(super) gadgets: Arc<Endpoint>,
    pub(super) namespaces: Arc<Endpoint>,
}

pub(super) fn builder(store: &Arc<Memory>) -> RegistryBuilder {
    builder_over(Arc::clone(store) as Arc<dyn Storage>)
}

pub(super) fn builder_over(store: Arc<dyn Storage>) -> RegistryBuilder {
    let mut builder = without_rules(store);
    builder.strategy::<Widget>(WidgetRules);
    builder.admission(|context| {
        Box::new(Judge {
            widgets: context.lister(),
        })
    });
    builder
}

/// A builder with the kind of namespaces and its plugin.
pub(super) fn with_namespaces(store: Arc<dyn Storage>) -> RegistryBuilder {
    let mut builder = Registry::builder(store);
    builder.namespace_kind::<Namespace>(NamespaceRules);
    builder.admission(|context| Box::new(NamespaceLifecycle(context.lister())));
    builder
}

/// The kinds of these tests without strategies and admission plugins of their own.
pub(super) fn without_rules(store: Arc<dyn Storage>) -> RegistryBuilder {
    let mut builder = with_namespaces(store);
    builder.group(GroupDef {
        name: GROUP.into(),
        versions: vec!["v1".into(), "v1alpha1".into()].into(),
        release: None,
        place: None,
    });
    builder.kind::<Widget>();
    builder.kind::<AlphaWidget>();
    builder.kind::<Gadget>();
    builder
}

pub(super) async fn fixture() -> Fixture {
    let store = Memory::new();
    started(builder(&store), store).await
}

/// A fixture whose watch caches keep only the newest change, so that older states are read from the store.
pub(super) async fn forgetful() -> Fixture {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.watch_cache(Some(1));
    started(builder, store).await
}

pub(super) async fn started(builder: RegistryBuilder, store: Arc<Memory>) -> Fixture {
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let endpoint = |version: &str, plural: &str| registry.endpoint(GROUP, version, plural).unwrap();
    Fixture {
        widgets: endpoint("v1", "widgets"),
        alpha: endpoint("v1alpha1", "widgets"),
        gadgets: endpoint("v1", "gadgets"),
        namespaces: registry.endpoint("", "v1", "namespaces").unwrap(),
        ctx: RequestContext::default(),
        registry,
        store,
    }
}

/// A fixture with a kind in two versions, and its endpoints.
pub(super) async fn two_versions<A: Resource, B: Resource>() -> (Fixture, [Arc<Endpoint>; 2]) {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<A>();
    builder.kind::<B>();
    let f = started(builder, store).await;
    let endpoints = [(A::VERSION, A::PLURAL), (B::VERSION, B::PLURAL)]
        .map(|(version, plural)| f.registry.endpoint(GROUP, version, plural).unwrap());
    (f, endpoints)
}

pub(super) const NS: Option<&str> = Some("default");

impl Fixture {
    pub(super) async fn create(&self, object: Value) -> Result<Object, ApiError> {
        self.widgets
            .writes()
            .create(
                &self.ctx,
                NS,
                self::object(object),
                &CreateOptions::default(),
            )
            .await
            .map(|written| written.object)
    }
    pub(super) async fn get(&self, name: &str) -> Result<Object, ApiError> {
        let got = self
            .widgets
            .reads()
            .get(&self.ctx, NS, name, &GetOptions::default())
            .await;
        got.map(|document| decoded(&document))
    }
    pub(super) async fn put(&self, name: &str, object: Value) -> Result<Object, ApiError> {
        let options = UpdateOptions::default();
        Ok(self
            .widgets
            .writes()
            .update(
                WriteRequest::new(&self.ctx, NS, name).with(&options),
                self::object(object),
            )
            .await?
            .0
            .object)
    }
    pub(super) async fn put_status(&self, name: &str, object: Value) -> Result<Object, ApiError> {
        let options = UpdateOptions::default();
        Ok(self
            .widgets
            .writes()
            .update(
                WriteRequest::new(&self.ctx, NS, name)
                    .at("status")
                    .with(&options),
                self::object(object),
            )
            .await?
            .0
            .object)
    }
    pub(super) async fn merge(&self, name: &str, patch: Value) -> Result<Object, ApiError> {
        self.patch(
            name,
            apiloom_meta::patch::Patch::parse_merge(patch.to_string().as_bytes()).unwrap(),
        )
        .await
    }
    pub(super) async fn json_patch(&self, name: &str, patch: Value) -> Result<Object, ApiError> {
        self.patch(
            name,
            apiloom_meta::patch::Patch::parse_json(patch.to_string().as_bytes()).unwrap(),
        )
        .await
    }
    pub(super) async fn patch(
        &self,
        name: &str,
        patch: apiloom_meta::patch::Patch,
    ) -> Result<Object, ApiError> {
        self.widgets
            .writes()
            .patch(
                WriteRequest::new(&self.ctx, NS, name).with(&PatchOptions::default()),
                &patch,
            )
            .await
            .map(|written| written.object)
    }
    pub(super) async fn delete(&self, name: &str) -> Result<DeleteResult, ApiError> {
        self.widgets
            .writes()
            .delete(&self.ctx, NS, name, &DeleteOptions::default())
            .await
    }
    pub(super) async fn list(&self, options: &ListOptions) -> Result<ListResult, ApiError> {
        self.widgets.reads().list(&self.ctx, NS, options).await
    }
    /// Waits until the watch cache has all acknowledged writes.
    pub(super) async fn cached(&self) {
        self.list(&ListOptions::default()).await.unwrap();
    }
    /// The stored object under a key, and its revision.
    pub(super) async fn stored(&self, key: &str) -> Option<(Value, u64)> {
        let (entry, _) = self.store.get(key).await.unwrap();
        entry.map(|entry| {
            (
                serde_json::from_slice(&entry.value).unwrap(),
                entry.revision.0,
            )
        })
    }
    pub(super) async fn revision(&self) -> u64 {
        self.store.current_revision().await.unwrap().0
    }
}

/// Waits until the cache of an endpoint has every write that was acknowledged.
pub(super) async fn caught_up(endpoint: &Endpoint) {
    let cache = endpoint.resource().cache.as_ref().unwrap();
    let came = cache.wait_for_present(std::time::Duration::from_secs(20));
    assert!(came.await.unwrap());
}

pub(super) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A widget with this name and spec.
pub(super) fn widget(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

pub(super) fn key(name: &str) -> String {
    format!("/registry/{GROUP}/widgets/default/{name}")
}

/// A value in an object, by JSON pointer.
pub(super) fn at(object: &Object, pointer: &str) -> Value {
    object
        .clone()
        .into_tree()
        .pointer(pointer)
        .cloned()
        .unwrap_or_default()
}

/// The reason, the message and the number of causes of an error.
pub(super) fn shown(error: &ApiError) -> (Option<&'static str>, &str) {
    (error.reason.map(StatusReason::as_str), &error.message)
}

/// An object in the form for clients.
pub(super) fn decoded(document: &Document) -> Object {
    Object::clone(&document.object().unwrap())
}

/// The objects of a list.
pub(super) fn items(listed: &ListResult) -> Vec<Object> {
    let items = listed.items.clone();
    items.map(|item| decoded(&item.unwrap())).collect()
}

pub(super) fn names(listed: &ListResult) -> Vec<String> {
    let items = items(listed);
    items.iter().map(|item| item.name().to_owned()).collect()
}

pub(super) fn labels(text: &str) -> ListOptions {
    ListOptions {
        label_selector: LabelQuery::parse(text).unwrap(),
        ..ListOptions::default()
    }
}

pub(super) fn fields(text: &str) -> ListOptions {
    ListOptions {
        field_selector: FieldSelector::parse(text).unwrap(),
        ..ListOptions::default()
    }
}
