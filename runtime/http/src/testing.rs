//! Shared by the tests of documents: requests, bodies, and hand-written kinds.

use std::sync::{Arc, LazyLock};

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::kind::{
    CellSource, Column, ColumnType, SchemaSource, Scope, SubresourceDef, Verb, Writes,
};
use apiloom_meta::schema::{CrdSchema, Metadata};
use apiloom_meta::{ApiError, GroupVersionKind, JsonPath, Resource as _, ResourceDef};
use apiloom_registry::auth::{
    Answer, Authenticated, Authentication, Authenticator, Authenticators, Connection, Credentials,
};
use apiloom_registry::{Registry, UserInfo};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::Api;
use super::documents::discovery::Discovery;
use super::documents::openapi::{KindSource, OpenApi, VersionSource};
use super::documents::served::{Group, Kind, Version};
use super::observation::metrics::Metrics;
use super::request::accept::Accepts;
use super::request::query::Query;
use super::request::request_info::RequestInfo;
use super::response::Body;
use super::shape::error::respond;
use super::verbs::call::{Arrival, Call};

/// A registry with only the kinds of every server.
pub(crate) fn bare_registry() -> Registry {
    apiloom_kinds::registry(apiloom_storage::Memory::new())
        .build()
        .unwrap()
}

/// A request without a body.
pub(crate) fn request(method: Method, uri: &str, headers: &[(&'static str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

/// A GET request.
pub(crate) fn get(uri: &str, headers: &[(&'static str, &str)]) -> Parts {
    request(Method::GET, uri, headers)
}

/// A request after the filters, of an authenticated user.
///
/// # Errors
/// The response if the URL is malformed or the deadline is invalid.
pub(crate) async fn call<'r>(api: &Api, request: &'r Parts) -> Result<Call<'r>, Response<Body>> {
    static CONNECTION: LazyLock<Connection> = LazyLock::new(Connection::in_process);
    static AUDIT_ID: HeaderValue = HeaderValue::from_static("test");
    let info = RequestInfo::of_path(&request.method, &request.uri);
    let info = info.map_err(|error| respond(&(&error).into(), request))?;
    let arrival = Arrival {
        connection: &CONNECTION,
        audit_id: &AUDIT_ID,
        at: Instant::now(),
    };
    let mut call = api
        .read(arrival, request, Box::new(info), user().await)
        .await;
    match call.set_deadline(super::request::timeout::REQUEST_TIMEOUT) {
        Ok(()) => Ok(call),
        Err(error) => Err(call.respond(&error)),
    }
}

/// Authenticates all requests as the same user.
struct OneUser;

impl Authenticator for OneUser {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let user = UserInfo {
            name: "tester".to_owned(),
            ..UserInfo::default()
        };
        Answer::Now(Ok(Some(Arc::new(user))))
    }
}

async fn user() -> Authenticated {
    let mut authenticators = Authenticators::default();
    authenticators.push(OneUser);
    let (connection, mut headers) = (Connection::in_process(), HeaderMap::new());
    let user = authenticators.authenticate(&connection, "/", &mut headers, Instant::now());
    user.await.unwrap()
}

/// The response of discovery.
pub(crate) fn discover(
    discovery: &Discovery,
    request: &Parts,
) -> Option<Result<Response<Body>, ApiError>> {
    let (accepts, query) = (Accepts::new(&request.headers), Query::of(&request.uri));
    discovery.respond(request, (&accepts, &query))
}

impl OpenApi {
    /// The response to a request that is not parsed yet.
    pub(crate) fn respond_to(&self, request: &Parts) -> Option<Response<Body>> {
        let accepts = Accepts::new(&request.headers);
        self.respond(
            request,
            accepts.choose(Self::media_types(request.uri.path())),
        )
    }
}

impl Metrics {
    /// The response to a request that is not parsed yet.
    pub(crate) fn respond_to(&self, request: &Parts) -> Option<Response<Body>> {
        self.respond(request, &Accepts::new(&request.headers))
    }
}

/// The whole body as text.
pub(crate) fn body(response: Response<Body>) -> String {
    String::from_utf8(bytes(response).to_vec()).unwrap()
}

/// The whole body of a response.
pub(crate) fn bytes(response: Response<Body>) -> Bytes {
    let collected = futures_util::FutureExt::now_or_never(response.into_body().collect());
    collected.unwrap().unwrap().to_bytes()
}

/// The value of a header.
pub(crate) fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// Flunder of v1alpha1: namespaced, every verb, status, columns, a selectable field.
pub(crate) fn flunder() -> ResourceDef {
    let schema = SchemaSource::Type(|| Err(apiloom_meta::schema::SchemaErrors(Vec::new())));
    let gvk = GroupVersionKind::new("wardle.example.com", "v1alpha1", "Flunder");
    ResourceDef {
        short_names: vec!["fl".into()],
        categories: vec!["all".into()],
        subresources: vec![SubresourceDef::status()],
        columns: vec![Column {
            name: "Type".into(),
            column_type: ColumnType::String,
            format: "".into(),
            priority: 0,
            description: "What it refers to.".into(),
            source: CellSource::Path(JsonPath::parse(".spec.referenceType").unwrap()),
        }],
        selectable: vec![JsonPath::parse(".spec.referenceType").unwrap().into()],
        description: "Flunder is an example type with a spec and a status.".into(),
        ..ResourceDef::new(&gvk, "flunders", schema)
    }
}

/// Fischer: cluster-scoped, without deletecollection and patch, no status.
pub(crate) fn fischer() -> ResourceDef {
    ResourceDef {
        kind: "Fischer".into(),
        list_kind: "FischerList".into(),
        plural: "fischers".into(),
        singular: "fischer".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Cluster,
        verbs: vec![
            Verb::Watch,
            Verb::Update,
            Verb::Create,
            Verb::Delete,
            Verb::Get,
            Verb::List,
        ],
        subresources: Vec::new(),
        columns: Vec::new(),
        selectable: Vec::new(),
        description: "Fischer lists names that Flunders may not have.".into(),
        ..flunder()
    }
}

/// Flunder of v1beta1, stored as v1alpha1.
pub(crate) fn flunder_beta() -> ResourceDef {
    ResourceDef {
        version: "v1beta1".into(),
        storage: false,
        ..flunder()
    }
}

/// core/v1 Namespace, without columns and selectable fields.
pub(crate) fn namespace() -> ResourceDef {
    ResourceDef {
        columns: Vec::new(),
        selectable: Vec::new(),
        description: "Namespace provides a scope for names.".into(),
        ..Namespace::definition()
    }
}

/// A subresource with objects of another kind.
pub(crate) fn scale() -> SubresourceDef {
    let kind = Some(GroupVersionKind::new("autoscaling", "v1", "Scale"));
    SubresourceDef {
        input: kind.clone(),
        output: kind,
        ..SubresourceDef::new("scale", &[Verb::Get, Verb::Update], Writes::Nothing)
    }
}

/// The four kinds as served groups: core first, v1beta1 preferred.
pub(crate) fn wardle(defs: &[ResourceDef; 4]) -> Vec<Group<'_>> {
    let kind = |def| Kind {
        def,
        storage_version: storage_version(def),
        is_terminating: false,
    };
    let [flunder, fischer, beta, namespace] = defs;
    vec![
        Group {
            name: "",
            versions: vec![Version {
                name: "v1",
                kinds: vec![kind(namespace)],
                remote: None,
            }],
        },
        Group {
            name: "wardle.example.com",
            versions: vec![
                Version {
                    name: "v1beta1",
                    kinds: vec![kind(beta)],
                    remote: None,
                },
                Version {
                    name: "v1alpha1",
                    kinds: vec![kind(flunder), kind(fischer)],
                    remote: None,
                },
            ],
        },
    ]
}

fn storage_version(def: &ResourceDef) -> &'static str {
    if def.group.is_empty() {
        "v1"
    } else {
        "v1alpha1"
    }
}

/// The definitions behind [`wardle`].
pub(crate) fn wardle_defs() -> [ResourceDef; 4] {
    [flunder(), fischer(), flunder_beta(), namespace()]
}

/// The sources of OpenAPI documents for [`wardle_defs`], with hand-written schemas.
pub(crate) fn wardle_sources() -> Vec<VersionSource> {
    let [flunder, fischer, beta, namespace] = wardle_defs();
    let source = |kinds: Vec<(ResourceDef, fn() -> Value)>| VersionSource {
        group: kinds[0].0.group.to_string(),
        version: kinds[0].0.version.to_string(),
        kinds: kinds
            .into_iter()
            .map(|(def, schema)| KindSource {
                is_own: def.group.is_empty(),
                def: Arc::new(def),
                schema: Box::new(move |metadata| with_metadata(schema(), metadata)),
                in_v2: Box::new(move |metadata| with_metadata(schema(), metadata)),
                in_crd: Box::new(move || CrdSchema {
                    schema: with_metadata(schema(), &Metadata::Open),
                    unsaid: Vec::new(),
                }),
                deprecation_warning: None,
            })
            .collect(),
        bodies: Vec::new(),
    };
    vec![
        source(vec![(namespace, namespace_schema)]),
        source(vec![(beta, flunder_schema)]),
        source(vec![(flunder, flunder_schema), (fischer, fischer_schema)]),
    ]
}

fn with_metadata(mut schema: Value, metadata: &Metadata<'_>) -> Value {
    schema["properties"]["metadata"] = match metadata {
        Metadata::Ref(target) => json!({ "allOf": [{ "$ref": target }], "default": {} }),
        Metadata::Open | Metadata::Inline => json!({ "type": "object" }),
    };
    schema
}

fn flunder_schema() -> Value {
    json!({
        "type": "object",
        "required": ["metadata"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
                        "spec": {
                "type": "object",
                "description": "What is wanted.",
                "properties": {
                    "reference": { "type": "string", "maxLength": 253, "description": "Name of another." },
                    "referenceType": { "type": "string", "enum": ["Flunder", "Fischer"], "default": "Flunder" },
                    "port": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                    "extra": { "type": "string", "nullable": true },
                },
            },
            "status": { "type": "object", "description": "What is." },
        },
    })
}

fn fischer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "disallowedFlunders": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "atomic" },
        },
    })
}

fn namespace_schema() -> Value {
    json!({ "type": "object", "properties": { "spec": { "type": "object" }, "status": { "type": "object" } } })
}
