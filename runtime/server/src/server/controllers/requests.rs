//! Requests of the server's own controllers to the server, through its whole filter chain.

use std::fmt::Write as _;
use std::sync::Arc;

use apiloom_client::controller::{NotLeader, WriteGuard};
use apiloom_meta::kind::{Scope, SmolStr};
use apiloom_meta::{ObjectMeta, Resource, ResourceDef, Status};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::registry::{Endpoint, Registry};
use crate::server::loopback::Loopback;

/// Metadata only, of the objects of a list.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Metadata only.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const JSON: &str = "application/json";

/// A client of the server itself, for one controller.
#[derive(Clone)]
pub(super) struct Requests {
    registry: Arc<Registry>,
    loopback: Loopback,
    /// The name of the controller, which is the manager of the fields that it writes.
    user_agent: &'static str,
    /// Refuses writes once another server may run the controller.
    guard: Option<WriteGuard>,
}

/// Why a request had no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("no resource is served for the kind {kind} of the group {group:?}")]
    NotServed { group: SmolStr, kind: SmolStr },
    #[error("the objects of some kinds are not listed yet")]
    NotListed,
    #[error("the owner {0:?} exists, but was not seen yet")]
    NotObserved(String),
    #[error("{0} changes all the time")]
    Busy(String),
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    #[error("{method} {path}: {code} {message}")]
    Refused {
        method: Method,
        path: String,
        code: StatusCode,
        message: String,
        /// Whether an object is missing, and not its kind.
        is_missing_object: bool,
    },
    #[error("{method} {path}: {problem}")]
    Broken {
        method: Method,
        path: String,
        problem: String,
    },
}

impl RequestError {
    /// Whether the server answered with this code.
    pub(super) fn is(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == wanted)
    }
}

/// An object, of which only the metadata is read.
#[derive(Deserialize)]
struct Partial {
    metadata: ObjectMeta,
}

/// How a kind is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    path: String,
    plural: SmolStr,
    pub(super) is_namespaced: bool,
}

impl Served {
    pub(super) fn new(def: &ResourceDef) -> Self {
        let path = match def.group.as_str() {
            "" => format!("/api/{}", def.version),
            group => format!("/apis/{group}/{}", def.version),
        };
        Self {
            path,
            plural: def.plural.clone(),
            is_namespaced: def.scope == Scope::Namespaced,
        }
    }

    /// The path of the objects of a namespace, which is empty for cluster-scoped kinds.
    pub(super) fn collection(&self, namespace: &str) -> String {
        let Self { path, plural, .. } = self;
        match namespace {
            "" => format!("{path}/{plural}"),
            namespace => format!("{path}/namespaces/{}/{plural}", escape(namespace)),
        }
    }

    /// The path of an object.
    pub(super) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(namespace), escape(name))
    }
}

/// A segment of a path.
pub(super) fn escape(segment: &str) -> String {
    let mut escaped = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            escaped.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

impl Requests {
    pub(super) fn new(
        registry: Arc<Registry>,
        loopback: &Loopback,
        user_agent: &'static str,
        guard: Option<WriteGuard>,
    ) -> Self {
        Self {
            registry,
            loopback: loopback.privileged(),
            user_agent,
            guard,
        }
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How a kind is served, in any of its versions.
    ///
    /// # Errors
    /// [`RequestError::NotServed`].
    pub(super) fn served(&self, group: &str, kind: &str) -> Result<Served, RequestError> {
        let catalog = self.registry.catalog();
        let is_of_kind = |endpoint: &&Arc<Endpoint>| {
            let def = endpoint.def();
            def.kind == kind && def.group == group
        };
        let endpoint = catalog.endpoints().iter().find(is_of_kind);
        let not_served = || RequestError::NotServed {
            group: group.into(),
            kind: kind.into(),
        };
        Ok(Served::new(endpoint.ok_or_else(not_served)?.def()))
    }

    /// The metadata of an object, as the store has it; `None` if it does not exist.
    pub(super) async fn metadata(&self, path: &str) -> Result<Option<ObjectMeta>, RequestError> {
        let found = self
            .send::<Partial>(Method::GET, path, METADATA, None)
            .await;
        found_or_none(found.map(|object| object.metadata))
    }

    /// An object; `None` if it does not exist.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, RequestError> {
        found_or_none(self.send(Method::GET, path, JSON, None).await)
    }

    /// Changes an object by a merge patch; `None` if it does not exist.
    pub(super) async fn merge(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let body = Some(("application/merge-patch+json", patch));
        let patched = self
            .send::<Partial>(Method::PATCH, path, METADATA, body)
            .await;
        found_or_none(patched.map(|object| object.metadata))
    }

    /// A page of a list, metadata only; `None` if the resource is not served.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, RequestError> {
        found_or_none(self.send(Method::GET, path, METADATA_LIST, None).await)
    }

    /// Replaces an object; `None` if it does not exist.
    pub(super) async fn put<K>(&self, path: &str, object: &K) -> Result<Option<K>, RequestError>
    where
        K: Resource + Serialize + DeserializeOwned,
    {
        let mut document = json!({"kind": K::KIND, "apiVersion": api_version::<K>()});
        let fields = serde_json::to_value(object);
        let fields = fields.map_err(|error| RequestError::Broken {
            method: Method::PUT,
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        if let (Some(document), Value::Object(fields)) = (document.as_object_mut(), fields) {
            document.extend(fields);
        }
        let object = &document;
        found_or_none(
            self.send(Method::PUT, path, JSON, Some((JSON, object)))
                .await,
        )
    }

    /// Deletes an object, or all of a collection; nothing if it does not exist. What the server responds is not kept.
    pub(super) async fn delete(&self, path: &str, options: Value) -> Result<(), RequestError> {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let (Some(body), Value::Object(options)) = (body.as_object_mut(), options) {
            body.extend(options);
        }
        let accept = &format!("{METADATA_LIST},{METADATA},{JSON}");
        let body = Some((JSON, &body));
        let sent = self.send::<IgnoredAny>(Method::DELETE, path, accept, body);
        found_or_none(sent.await).map(drop)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<T, RequestError> {
        let broken = |problem: String| RequestError::Broken {
            method: method.clone(),
            path: path.to_owned(),
            problem,
        };
        if let Some(guard) = self.guard.as_ref().filter(|_| method != Method::GET) {
            guard.check()?;
        }
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(ACCEPT, accept)
            .header(USER_AGENT, self.user_agent);
        let mut bytes = Bytes::new();
        if let Some((content_type, value)) = body {
            request = request.header(CONTENT_TYPE, content_type);
            bytes = value.to_string().into();
        }
        let request = request.body(Full::new(bytes));
        let request = request.map_err(|error| broken(error.to_string()))?;
        let response = self.loopback.send(request).await;
        let code = response.status();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| broken(error.to_string()))?.to_bytes();
        if !code.is_success() {
            let status: Option<Status> = serde_json::from_slice(&body).ok();
            let details = status.as_ref().and_then(|status| status.details.as_ref());
            return Err(RequestError::Refused {
                method,
                path: path.to_owned(),
                code,
                is_missing_object: code == StatusCode::NOT_FOUND
                    && details.is_some_and(|details| !details.name.is_empty()),
                message: status.map(|status| status.message).unwrap_or_default(),
            });
        }
        serde_json::from_slice(&body).map_err(|error| broken(error.to_string()))
    }
}

fn api_version<K: Resource>() -> String {
    match K::GROUP {
        "" => K::VERSION.to_owned(),
        group => format!("{group}/{}", K::VERSION),
    }
}

/// `None` in place of the error that there is no such object. That its kind is not served any more stays an error: the
/// object may exist.
fn found_or_none<T>(found: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(RequestError::Refused {
            is_missing_object: true,
            ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}
