//! Events (`Event` of `audit.k8s.io/v1`) as JSON, with the fields and their order of kube-apiserver.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use apiloom_meta::codec::Encoder;
use apiloom_meta::{MicroTime, StatusDetails};
use apiloom_registry::UserInfo;
use apiloom_registry::audit::{AnnotationText, AuditNotes, AuditedDocument, TRUNCATED};
use apiloom_server::server::auditor::{AuditStage, AuditedRequest};
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::stages;

/// Longest user agent in an event.
const MAX_AGENT_BYTES: usize = 1024;

/// What the head of most requests takes, as JSON.
const HEAD_BYTES: usize = 512;

/// What comes after the head in most events.
const REST_BYTES: usize = 512;

/// What an event of its own begins with; one in a list begins with its level.
const OWN_HEAD: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// What is known of a request when it comes: its events have most of it, as JSON that is made once.
#[derive(Debug)]
pub(super) struct RequestHead {
    /// From the beginning of an event to the object in the path.
    json: Vec<u8>,
    /// Where the stage has its place.
    stage_at: usize,
    /// Where the impersonated user has its place.
    impersonated_at: usize,
    object: Option<Target>,
    received: MicroTime,
}

/// The resource in the path of a request.
#[derive(Debug)]
struct Target {
    resource: SmolStr,
    namespace: SmolStr,
    name: SmolStr,
    group: SmolStr,
    version: SmolStr,
    subresource: SmolStr,
}

impl RequestHead {
    pub(super) fn new(request: &AuditedRequest<'_>, level: &str) -> Self {
        let attributes = &request.attributes;
        let object = attributes.is_resource_request.then(|| Target {
            resource: attributes.resource.into(),
            namespace: attributes.namespace.into(),
            name: attributes.name.into(),
            group: attributes.api_group.into(),
            version: attributes.api_version.into(),
            subresource: attributes.subresource.into(),
        });
        let uri = request.uri.path_and_query();
        let peer = request.connection.peer.map(|peer| peer.ip());
        let begin = Begin {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: &String::from_utf8_lossy(request.id.as_bytes()),
        };
        let what = What {
            request_uri: uri.map_or("", PathAndQuery::as_str),
            verb: attributes.verb,
            user: User::from(&**request.user),
        };
        let source = Source {
            source_ips: &addresses(request.headers, peer),
            user_agent: &agent(request.headers),
        };
        Self::of(&begin, &what, &source, object, micros(request.received))
    }

    fn of(
        begin: &Begin<'_>,
        what: &What<'_>,
        source: &Source<'_>,
        object: Option<Target>,
        received: MicroTime,
    ) -> Self {
        let mut json = Vec::with_capacity(HEAD_BYTES);
        append_members(begin, &mut json);
        let stage_at = json.len();
        append_members(what, &mut json);
        let impersonated_at = json.len();
        append_members(source, &mut json);
        Self {
            json,
            stage_at,
            impersonated_at,
            object,
            received,
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
fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = text("x-forwarded-for").unwrap_or_default().split(',');
    let mut addresses: Vec<IpAddr> = forwarded
        .filter_map(|one| one.trim().parse().ok())
        .collect();
    let real = text("x-real-ip").and_then(|one| one.parse().ok());
    addresses.extend(real.filter(|real| !addresses.contains(real)));
    let peer = peer.map(|peer| peer.to_canonical());
    addresses.extend(peer.filter(|peer| addresses.last() != Some(peer)));
    addresses
}

fn agent(headers: &HeaderMap) -> Cow<'_, str> {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map_or(&b""[..], |value| value.as_bytes());
    if agent.len() > MAX_AGENT_BYTES {
        let begin = String::from_utf8_lossy(&agent[..MAX_AGENT_BYTES]);
        return format!("{begin}...TRUNCATED").into();
    }
    String::from_utf8_lossy(agent)
}

/// The moment of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) stage: AuditStage,
    pub(super) code: Option<StatusCode>,
    pub(super) at: MicroTime,
}

/// The members of an event before its stage.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Begin<'a> {
    kind: &'a str,
    api_version: &'a str,
    level: &'a str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
}

/// Those between the stage and the impersonated user.
#[derive(Serialize)]
struct What<'a> {
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Impersonation<'a> {
    impersonated_user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<AuthenticationMetadata<'a>>,
}

/// Those between the impersonated user and the object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
}

/// Those from the object on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rest<'a> {
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
    annotations: Cow<'a, BTreeMap<AnnotationText, AnnotationText>>,
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
    let mut annotations = Cow::Borrowed(&notes.annotations);
    if is_short {
        let said = (Cow::Borrowed(TRUNCATED), Cow::Borrowed("true"));
        annotations.to_mut().extend([said]);
    }
    let documents = [request, response].into_iter().flatten();
    let documents: usize = documents.map(|document| document.json().len()).sum();
    let (begin, rest) = head.json.split_at(head.stage_at);
    let (what, source) = rest.split_at(head.impersonated_at - head.stage_at);
    let mut json = Vec::with_capacity(head.json.len() + documents + REST_BYTES);
    json.push(b'{');
    // Without the comma that each member begins with.
    json.extend_from_slice(begin.get(1..).unwrap_or_default());
    json.extend_from_slice(b",\"stage\":\"");
    json.extend_from_slice(stages::name(moment.stage).as_bytes());
    json.push(b'"');
    json.extend_from_slice(what);
    if let Some((user, constraint)) = &notes.impersonated {
        let constraint = constraint.as_deref();
        let impersonation = Impersonation {
            impersonated_user: User::from(&**user),
            authentication_metadata: constraint.map(|constraint| AuthenticationMetadata {
                impersonation_constraint: constraint,
            }),
        };
        append_members(&impersonation, &mut json);
    }
    json.extend_from_slice(source);
    let rest = Rest {
        object_ref: head.object.as_ref().map(|target| reference(target, notes)),
        response_status: status(notes, moment),
        request_object: request.and_then(raw),
        response_object: response.and_then(raw),
        request_received_timestamp: head.received,
        stage_timestamp: moment.at,
        annotations,
    };
    append_members(&rest, &mut json);
    json.push(b'}');
    json
}

/// Appends the members of an object, each with a comma before it.
fn append_members(object: &impl Serialize, json: &mut Vec<u8>) {
    let begin = json.len();
    Encoder::append_json(object, json);
    json.pop();
    if json.len() == begin + 1 {
        // An object without members.
        json.truncate(begin);
    } else if let Some(brace) = json.get_mut(begin) {
        *brace = b',';
    }
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
