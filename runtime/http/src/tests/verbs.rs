//! A verb that a kind skips is refused and not listed: router, discovery and OpenAPI agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::Verb;
use apiloom_meta::schema::CrdSchema;
use http::Method;
use serde_json::json;

use super::kinds::{Feed, Receipt};
use super::*;
use crate::documents::discovery::Discovery;
use crate::documents::openapi::{KindSource, VersionSource};
use crate::documents::served::{Group, Kind, Version};
use crate::request::request_info::RequestInfo;
use crate::testing;
use crate::verbs::route::route;

const BASE: &str = "/apis/wardle.example.com/v1alpha1";

/// The paths and verbs of a kind: on the kind, or on its status.
type Served = BTreeSet<(&'static str, Verb)>;

/// A kind with these verbs and a status.
fn kind_of(verbs: &[Verb]) -> ResourceDef {
    ResourceDef {
        verbs: verbs.to_vec(),
        ..testing::flunder()
    }
}

/// The expected paths for these verbs.
fn expected(verbs: &[Verb]) -> Served {
    let own = verbs.iter().map(|verb| ("flunders", *verb));
    let status = [Verb::Get, Verb::Patch, Verb::Update];
    let status = status.into_iter().filter(|verb| verbs.contains(verb));
    own.chain(status.map(|verb| ("flunders/status", verb)))
        .collect()
}

fn verb_of(name: &str) -> Verb {
    let named = Verb::ALL.into_iter().find(|verb| verb.as_str() == name);
    named.unwrap_or_else(|| panic!("{name} is a verb"))
}

fn resource_of(name: &str) -> &'static str {
    match name {
        "flunders" => "flunders",
        "flunders/status" => "flunders/status",
        other => panic!("{other} is not served"),
    }
}

fn verbs_of(entry: &Value) -> Vec<Verb> {
    let names = entry["verbs"].as_array().unwrap();
    names.iter().map(|v| verb_of(v.as_str().unwrap())).collect()
}

fn document(discovery: &Discovery, path: &str, accept: &str) -> Value {
    let request = testing::get(path, &[("accept", accept)]);
    let response = testing::discover(discovery, &request).unwrap().unwrap();
    serde_json::from_str(&testing::body(response)).unwrap()
}

fn discovery_of(def: &ResourceDef) -> Discovery {
    let kind = Kind {
        def,
        storage_version: "v1alpha1",
        is_terminating: false,
    };
    let version = Version {
        name: "v1alpha1",
        kinds: vec![kind],
        remote: None,
    };
    let group = Group {
        name: "wardle.example.com",
        versions: vec![version],
    };
    Discovery::of(&[group], "")
}

fn in_legacy_discovery(def: &ResourceDef) -> Served {
    let list = document(&discovery_of(def), BASE, "application/json");
    let mut served = Served::new();
    for entry in list["resources"].as_array().unwrap() {
        let name = resource_of(entry["name"].as_str().unwrap());
        served.extend(verbs_of(entry).into_iter().map(|verb| (name, verb)));
    }
    served
}

fn in_aggregated_discovery(def: &ResourceDef) -> Served {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let list = document(&discovery_of(def), "/apis", accept);
    let entry = &list["items"][0]["versions"][0]["resources"][0];
    let own = verbs_of(entry).into_iter().map(|verb| ("flunders", verb));
    let mut served: Served = own.collect();
    for below in entry["subresources"].as_array().into_iter().flatten() {
        let name = format!("flunders/{}", below["subresource"].as_str().unwrap());
        let verbs = verbs_of(below).into_iter();
        served.extend(verbs.map(|verb| (resource_of(&name), verb)));
    }
    served
}

/// OpenAPI has no operation for watch: the parameters of a list show that it can be watched.
fn in_openapi(def: &ResourceDef) -> Served {
    let source = VersionSource {
        group: def.group.to_string(),
        version: def.version.to_string(),
        kinds: vec![KindSource {
            is_own: false,
            def: Arc::new(def.clone()),
            schema: Box::new(|_| json!({ "type": "object" })),
            in_v2: Box::new(|_| json!({ "type": "object" })),
            in_crd: Box::new(CrdSchema::default),
            deprecation_warning: None,
        }],
        bodies: Vec::new(),
    };
    let mut served = Served::new();
    for (path, item) in json!(source.v3())["paths"].as_object().unwrap() {
        let name = if path.ends_with("/status") {
            "flunders/status"
        } else {
            "flunders"
        };
        let actions = item.as_object().unwrap().values();
        let actions = actions.filter_map(|operation| operation["x-kubernetes-action"].as_str());
        served.extend(actions.map(|action| match action {
            "post" => (name, Verb::Create),
            "put" => (name, Verb::Update),
            other => (name, verb_of(other)),
        }));
    }
    served
}

/// The routed verbs. List and watch share a route, where their handlers refuse the one that is not served.
fn in_router(def: &ResourceDef) -> Served {
    let collection = format!("{BASE}/namespaces/n/flunders");
    let item = format!("{collection}/a");
    let status = format!("{item}/status");
    let routes = [
        ("flunders", &collection, Method::GET, Verb::List),
        ("flunders", &collection, Method::POST, Verb::Create),
        (
            "flunders",
            &collection,
            Method::DELETE,
            Verb::DeleteCollection,
        ),
        ("flunders", &item, Method::GET, Verb::Get),
        ("flunders", &item, Method::PUT, Verb::Update),
        ("flunders", &item, Method::PATCH, Verb::Patch),
        ("flunders", &item, Method::DELETE, Verb::Delete),
        ("flunders/status", &status, Method::GET, Verb::Get),
        ("flunders/status", &status, Method::PUT, Verb::Update),
        ("flunders/status", &status, Method::PATCH, Verb::Patch),
        ("flunders/status", &status, Method::DELETE, Verb::Delete),
        ("flunders/status", &status, Method::POST, Verb::Create),
    ];
    let is_routed = |method: &Method, url: &str| {
        let info = RequestInfo::parse(method, &url.parse().unwrap()).unwrap();
        route(def, method, &info).is_ok()
    };
    routes
        .into_iter()
        .filter(|(_, url, method, _)| is_routed(method, url))
        .map(|(name, _, _, verb)| (name, verb))
        .collect()
}

#[test]
fn router_discovery_and_openapi_agree_on_every_choice_of_verbs() {
    for choice in 0..1_usize << Verb::ALL.len() {
        let all = Verb::ALL.into_iter().enumerate();
        let chosen = all.filter(|(bit, _)| choice & (1 << bit) != 0);
        let verbs: Vec<Verb> = chosen.map(|(_, verb)| verb).collect();
        let (def, expected) = (kind_of(&verbs), expected(&verbs));
        assert_eq!(in_legacy_discovery(&def), expected, "{verbs:?}");
        assert_eq!(in_aggregated_discovery(&def), expected, "{verbs:?}");

        let mut operations = expected.clone();
        operations.remove(&("flunders", Verb::Watch));
        assert_eq!(in_openapi(&def), operations, "{verbs:?}");

        let mut routed = expected;
        if routed.remove(&("flunders", Verb::Watch)) {
            routed.insert(("flunders", Verb::List));
        }
        assert_eq!(in_router(&def), routed, "{verbs:?}");
    }
}

#[tokio::test]
async fn skipped_verbs_are_405() {
    let api = api_of(|registry| registry.kind::<Receipt>()).await;
    let receipts = format!("{BASE}/namespaces/default/receipts");
    let receipt = format!("{receipts}/a");
    let status = format!("{receipt}/status");
    post(&api, &receipts, r#"{"metadata":{"name":"a"}}"#)
        .await
        .expect(201);
    for url in [&receipts, &receipt, &status] {
        get(&api, url).await.expect(200);
    }
    let refused = failure(
        "the server does not allow this method on the requested resource",
        "MethodNotAllowed",
        Some("{}"),
        405,
    );
    for url in [&receipt, &status] {
        for method in ["PUT", "PATCH", "DELETE", "POST"] {
            let answer = send(&api, method, url, &[], "{}").await;
            assert_eq!(answer.expect(405).body, refused, "{method} {url}");
        }
    }
    assert_eq!(delete(&api, &receipts, "").await.expect(405).body, refused);
}

#[tokio::test]
async fn a_list_that_is_skipped_is_refused_by_name_where_a_watch_is_served() {
    let api = api_of(|registry| registry.kind::<Feed>()).await;
    let feeds = format!("{BASE}/feeds");
    let answer = get(&api, &feeds).await.expect(405);
    assert_eq!(
        answer.message(),
        "list is not supported on resources of kind \"feeds.wardle.example.com\""
    );
    let watch = open(&api, "GET", &format!("{feeds}?watch=1"), &[], "").await;
    assert_eq!(watch.status(), 200);
}
