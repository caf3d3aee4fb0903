//! The empty list of CustomResourceDefinitions, for a server that does not serve this kind.
//!
//! kubectl requests it before it reports an unknown kind; without the list it would report that the request failed.
//! The group is not part of discovery then, since it has nothing else.

use std::sync::Arc;

use apiloom_meta::Object;
use apiloom_meta::kind::Verb;
use apiloom_registry::Catalog;
use bytes::Bytes;
use http::{Method, Response};
use serde_json::json;

use super::resources::has_group;
use super::route_list::ListedRoute;
use super::source::{Route, Source};
use crate::request::request_info::RequestVerb;
use crate::response::{Body, ok};
use crate::verbs::call::Call;

/// The empty list, unless the catalog has the group.
#[derive(Debug)]
pub(crate) struct EmptyDefinitions(pub(crate) Arc<Catalog>);

impl Source for EmptyDefinitions {
    fn name(&self) -> &'static str {
        "empty-definitions"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let (info, request) = (&call.info, call.request);
        let asked = request.method == Method::GET
            && info.verb == RequestVerb::Api(Verb::List)
            && info.api_group == "apiextensions.k8s.io"
            && info.api_version == "v1"
            && info.resource == "customresourcedefinitions";
        if !asked || has_group(&self.0, &info.api_group) {
            return None;
        }
        list().map(Route::to)
    }

    fn routes(&self) -> Vec<ListedRoute> {
        if has_group(&self.0, "apiextensions.k8s.io") {
            return Vec::new();
        }
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        vec![ListedRoute::new(self.name(), path, ["list"])]
    }
}

fn list() -> Option<Response<Body>> {
    let list = json!({
        "kind": "CustomResourceDefinitionList",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"resourceVersion": "1"},
        "items": [],
    });
    let list = Object::from_value(list)?;
    let json = apiloom_meta::codec::Encoder::json(&list);
    Some(ok(
        "application/json",
        Bytes::from([json.as_ref(), b"\n"].concat()),
    ))
}
