//! Events (`Event` of `audit.k8s.io/v1`) as JSON, with the fields and their order of kube-apiserver.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use apiloom_meta::codec::Encoder;
use apiloom_meta::{MicroTime, StatusDetails};
use apiloom_registry::UserInfo;
use apiloom_registry::audit::{AuditNotes, AuditedDocument, TRUNCATED};
use apiloom_server::server::auditor::{AuditStage, AuditedRequest};
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;

use super::stages;

/// Longest user agent in an event.
const MAX_AGENT_BYTES: usize = 1024;

/// The beginning of an event of its own; one in a list begins with its level.
const OWN_HEAD: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// What is known of a request when it comes.
#[derive(Debug)]
pub(super) struct RequestHead {
    level: &'static str,
    id: String,
    uri: String,
    verb: String,
    user: Arc<UserInfo>,
    addresses: Vec<String>,
    agent: String,
    object: Option<Target>,
    received: MicroTime,
}

/// The resource in the path of a request.
#[derive(Debug)]
struct Target {
    resource: String,
    namespace: String,
    name: String,
    group: String,
    version: String,
    subresource: String,
}

impl RequestHead {
    pub(super) fn new(request: &AuditedRequest<'_>, level: &'static str) -> Self {
        let attributes = &request.attributes;
        let object = attributes.is_resource_request.then(|| Target {
            resource: attributes.resource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
            group: attributes.api_group.to_owned(),
            version: attributes.api_version.to_owned(),
            subresource: attributes.subresource.to_owned(),
        });
        let uri = request.uri.path_and_query();
        let peer = request.connection.peer.map(|peer| peer.ip());
        Self {
            level,
            id: String::from_utf8_lossy(request.id.as_bytes()).into_owned(),
            uri: uri.map_or("", PathAndQuery::as_str).to_owned(),
            verb: attributes.verb.to_owned(),
            user: Arc::clone(request.user),
            addresses: addresses(request.headers, peer),
            agent: agent(request.headers),
            object,
            received: micros(request.received),
        }
    }

    pub(super) fn received(&self) -> MicroTime {
        self.received
    }
}

/// A moment of the system's clock.
pub(super) fn micros(at: SystemTime) -> MicroTime {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    MicroTime::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The addresses from which a request came, as the proxies on its way say it; all but the last one can be made up.
fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = text("x-forwarded-for").unwrap_or_default().split(',');
    let mut addresses: Vec<IpAddr> = forwarded
        .filter_map(|one| one.trim().parse().ok())
        .collect();
    let real = text("x-real-ip").and_then(|one| one.parse().ok());
    addresses.extend(real.filter(|real| !addresses.contains(real)));
    let peer = peer.map(|peer| peer.to_canonical());
    addresses.extend(peer.filter(|peer| addresses.last() != Some(peer)));
    addresses.iter().map(IpAddr::to_string).collect()
}

fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map_or(&b""[..], |value| value.as_bytes());
    if agent.len() > MAX_AGENT_BYTES {
        let begin = String::from_utf8_lossy(&agent[..MAX_AGENT_BYTES]);
        return format!("{begin}...TRUNCATED");
    }
    String::from_utf8_lossy(agent).into_owned()
}

/// The moment of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) stage: AuditStage,
    pub(super) code: Option<StatusCode>,
    pub(super) at: MicroTime,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    level: &'a str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'a str,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<User<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<AuthenticationMetadata<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectReference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<ResponseStatus<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a RawValue>,
    request_received_timestamp: MicroTime,
    stage_timestamp: MicroTime,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

impl<'a> From<&'a UserInfo> for User<'a> {
    fn from(user: &'a UserInfo) -> Self {
        Self {
            username: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: &user.extra,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthenticationMetadata<'a> {
    impersonation_constraint: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

/// A Status as events have it: always with its metadata, which are empty.
#[derive(Default, Serialize)]
struct ResponseStatus<'a> {
    metadata: BTreeMap<(), ()>,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a StatusDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

/// The JSON of an event of its own. One that is short has no documents, and says that they were left out.
pub(super) fn event(
    head: &RequestHead,
    notes: &AuditNotes,
    moment: Moment,
    is_short: bool,
) -> Vec<u8> {
    let request = notes.request.as_ref().filter(|_| !is_short);
    let response = notes.response.as_ref().filter(|_| !is_short);
    let annotations = notes.annotations.iter();
    let mut annotations: BTreeMap<&str, &str> =
        annotations.map(|(key, value)| (&**key, &**value)).collect();
    if is_short {
        annotations.insert(TRUNCATED, "true");
    }
    let impersonated = notes.impersonated.as_ref();
    let constraint = impersonated.and_then(|(_, constraint)| constraint.as_deref());
    let event = Event {
        level: head.level,
        audit_id: &head.id,
        stage: stages::name(moment.stage),
        request_uri: &head.uri,
        verb: &head.verb,
        user: User::from(&*head.user),
        impersonated_user: impersonated.map(|(user, _)| User::from(&**user)),
        authentication_metadata: constraint.map(|constraint| AuthenticationMetadata {
            impersonation_constraint: constraint,
        }),
        source_ips: &head.addresses,
        user_agent: &head.agent,
        object_ref: head.object.as_ref().map(|target| reference(target, notes)),
        response_status: status(notes, moment),
        request_object: request.and_then(raw),
        response_object: response.and_then(raw),
        request_received_timestamp: head.received,
        stage_timestamp: moment.at,
        annotations,
    };
    let mut json = OWN_HEAD.as_bytes().to_vec();
    // The brace of the event itself becomes the comma.
    json.pop();
    let begin = json.len();
    Encoder::append_json(&event, &mut json);
    if let Some(brace) = json.get_mut(begin) {
        *brace = b',';
    }
    json
}

fn raw(document: &AuditedDocument) -> Option<&RawValue> {
    serde_json::from_slice(document.json()).ok()
}

/// An event as an item of a list, which has no kind and version, without its opening brace.
pub(super) fn as_item(event: &[u8]) -> &[u8] {
    event.get(OWN_HEAD.len()..).unwrap_or_default()
}

/// The object of a request: as its path says, and what that leaves open as its document does.
fn reference<'a>(target: &'a Target, notes: &'a AuditNotes) -> ObjectReference<'a> {
    let or = |path: &'a str, document: &'a str| if path.is_empty() { document } else { path };
    let object = &notes.object;
    ObjectReference {
        resource: &target.resource,
        namespace: or(&target.namespace, &object.namespace),
        name: or(&target.name, &object.name),
        uid: &object.uid,
        api_group: &target.group,
        api_version: &target.version,
        resource_version: &object.resource_version,
        subresource: &target.subresource,
    }
}

/// The status of a response that has begun.
fn status(notes: &AuditNotes, moment: Moment) -> Option<ResponseStatus<'_>> {
    let code = moment.code.map(|code| code.as_u16());
    if moment.stage == AuditStage::Panic {
        return Some(ResponseStatus {
            status: "Failure",
            message: "APIServer panic'd",
            reason: "InternalError",
            code,
            ..ResponseStatus::default()
        });
    }
    match &notes.status {
        Some(status) if code.is_some() => Some(ResponseStatus {
            status: &status.status,
            message: &status.message,
            reason: &status.reason,
            details: status.details.as_ref(),
            code,
            ..ResponseStatus::default()
        }),
        _ if code.is_some() => Some(ResponseStatus {
            code,
            ..ResponseStatus::default()
        }),
        // As kube-apiserver says of a response that was never begun.
        _ if moment.stage == AuditStage::ResponseComplete => Some(ResponseStatus {
            status: "Success",
            message: "Connection closed early",
            code: Some(StatusCode::OK.as_u16()),
            ..ResponseStatus::default()
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
