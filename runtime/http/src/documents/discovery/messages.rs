//! The Protobuf messages of the discovery documents, with the numbers of Kubernetes.

use std::borrow::Cow;

use apiloom_meta::kind::protobuf::{LIST_META, OBJECT_META};
use apiloom_meta::kind::{ProtobufField, ProtobufMessage, ProtobufType};
use serde_json::{Value, json};

use ProtobufType::{Boolean, List, Message, Text};

const TEXTS: ProtobufType = List(&Text);

/// A field of a message.
const fn field(number: u32, name: &'static str, value: ProtobufType) -> ProtobufField {
    ProtobufField::new(number, name, value)
}

/// `APIVersions`, at `/api`.
pub(super) static API_VERSIONS: ProtobufMessage = ProtobufMessage::new("APIVersions").fields(&[
    field(1, "versions", TEXTS),
    field(
        2,
        "serverAddressByClientCIDRs",
        List(&Message(|| &SERVER_ADDRESS)),
    ),
]);

static SERVER_ADDRESS: ProtobufMessage =
    ProtobufMessage::new("ServerAddressByClientCIDR").fields(&[
        field(1, "clientCIDR", Text),
        field(2, "serverAddress", Text),
    ]);

/// `APIGroupList`, at `/apis`.
pub(super) static GROUP_LIST: ProtobufMessage =
    ProtobufMessage::new("APIGroupList").fields(&[field(1, "groups", List(&Message(|| &GROUP)))]);

/// `APIGroup`, of one group.
pub(super) static GROUP: ProtobufMessage = ProtobufMessage::new("APIGroup").fields(&[
    field(1, "name", Text),
    field(2, "versions", List(&Message(|| &GROUP_VERSION))),
    field(3, "preferredVersion", Message(|| &GROUP_VERSION)),
]);

static GROUP_VERSION: ProtobufMessage = ProtobufMessage::new("GroupVersionForDiscovery")
    .fields(&[field(1, "groupVersion", Text), field(2, "version", Text)]);

/// `APIResourceList`, of one group and version.
pub(super) static RESOURCE_LIST: ProtobufMessage =
    ProtobufMessage::new("APIResourceList").fields(&[
        field(1, "groupVersion", Text),
        field(2, "resources", List(&Message(|| &RESOURCE))),
    ]);

static RESOURCE: ProtobufMessage = ProtobufMessage::new("APIResource").fields(&[
    field(1, "name", Text),
    field(2, "namespaced", Boolean),
    field(3, "kind", Text),
    field(4, "verbs", Message(|| &VERBS)),
    field(5, "shortNames", TEXTS),
    field(6, "singularName", Text),
    field(7, "categories", TEXTS),
    field(8, "group", Text),
    field(9, "version", Text),
    field(10, "storageVersionHash", Text),
]);

/// A list in JSON; see [`json_of_message`].
static VERBS: ProtobufMessage = ProtobufMessage::new("Verbs").fields(&[field(1, "items", TEXTS)]);

/// `APIGroupDiscoveryList`, the aggregated document.
pub(super) static GROUP_DISCOVERY_LIST: ProtobufMessage =
    ProtobufMessage::new("APIGroupDiscoveryList").fields(&[
        field(1, "metadata", Message(|| &LIST_META)),
        field(2, "items", List(&Message(|| &GROUP_DISCOVERY))),
    ]);

static GROUP_DISCOVERY: ProtobufMessage = ProtobufMessage::new("APIGroupDiscovery").fields(&[
    field(1, "metadata", Message(|| &OBJECT_META)),
    field(2, "versions", List(&Message(|| &VERSION_DISCOVERY))),
]);

static VERSION_DISCOVERY: ProtobufMessage = ProtobufMessage::new("APIVersionDiscovery").fields(&[
    field(1, "version", Text),
    field(2, "resources", List(&Message(|| &RESOURCE_DISCOVERY))),
    field(3, "freshness", Text),
]);

static RESOURCE_DISCOVERY: ProtobufMessage =
    ProtobufMessage::new("APIResourceDiscovery").fields(&[
        field(1, "resource", Text),
        field(2, "responseKind", Message(|| &RESPONSE_KIND)),
        field(3, "scope", Text),
        field(4, "singularResource", Text),
        field(5, "verbs", TEXTS),
        field(6, "shortNames", TEXTS),
        field(7, "categories", TEXTS),
        field(8, "subresources", List(&Message(|| &SUBRESOURCE_DISCOVERY))),
    ]);

static SUBRESOURCE_DISCOVERY: ProtobufMessage = ProtobufMessage::new("APISubresourceDiscovery")
    .fields(&[
        field(1, "subresource", Text),
        field(2, "responseKind", Message(|| &RESPONSE_KIND)),
        field(4, "verbs", TEXTS),
    ]);

static RESPONSE_KIND: ProtobufMessage = ProtobufMessage::new("GroupVersionKind").fields(&[
    field(1, "group", Text),
    field(2, "version", Text),
    field(3, "kind", Text),
]);

/// The JSON from which a message is written. It is that of the document, but the verbs of an APIResourceList, a list in
/// JSON, are a message with a list.
pub(super) fn json_of_message<'a>(json: &'a [u8], message: &ProtobufMessage) -> Cow<'a, [u8]> {
    if message.name != RESOURCE_LIST.name {
        return Cow::Borrowed(json);
    }
    let Ok(mut document) = serde_json::from_slice::<Value>(json) else {
        return Cow::Borrowed(json);
    };
    let resources = document["resources"].as_array_mut();
    for resource in resources.into_iter().flatten() {
        let verbs = resource["verbs"].take();
        resource["verbs"] = json!({ "items": verbs });
    }
    Cow::Owned(document.to_string().into_bytes())
}
