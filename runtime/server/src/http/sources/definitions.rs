//! The empty list of CustomResourceDefinitions, for a server that does not serve this kind.
//!
//! kubectl requests it before it reports an unknown kind; without the list it would report that the request failed.
//! The group is not part of discovery then, since it has nothing else.

use apiloom_meta::Object;
use apiloom_meta::kind::Verb;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use serde_json::json;

use crate::http::request::request_info::{RequestInfo, RequestVerb};
use crate::http::response::{Body, ok};

/// The empty list, if the request is for it.
pub(in crate::http) fn none(info: &RequestInfo, request: &Parts) -> Option<Response<Body>> {
    let asked = request.method == Method::GET
        && info.verb == RequestVerb::Api(Verb::List)
        && info.api_group == "apiextensions.k8s.io"
        && info.api_version == "v1"
        && info.resource == "customresourcedefinitions";
    if !asked {
        return None;
    }
    let list = json!({
        "kind": "CustomResourceDefinitionList",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"resourceVersion": "1"},
        "items": [],
    });
    let list = Object::from_value(list)?;
    let json = apiloom_meta::codec::encode_json(&list);
    Some(ok(
        "application/json",
        Bytes::from([json.as_ref(), b"\n"].concat()),
    ))
}
