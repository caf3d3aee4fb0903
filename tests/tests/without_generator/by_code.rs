//! A kind whose get, list and watch are code, over the wire: what comes with it, and code that misbehaves.

use std::time::{Duration, Instant};

use apiloom::meta::GroupResource;
use apiloom::meta::kind::Verb;
use apiloom::prelude::*;
use apiloom::server::{ListOptions, ObjectEvents, ObjectList, Reader};
use apiloom_tests::Client;
use futures_util::stream;
use serde_json::{Value, json};

use super::with_server_of;

/// Smell is what comes out of the kitchen. It is not stored.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, store = code, shortname = "sm",
    selectable(strength), printcolumn(name = "Strength", path = strength))]
pub struct Smell {
    pub metadata: ObjectMeta,
    /// How far one smells it.
    pub strength: i32,
}

/// Dish is only listed.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", cluster, store = code, verbs(only = [list]))]
pub struct Dish {
    pub metadata: ObjectMeta,
}

struct Nose;

#[async_trait]
impl Reader<Smell> for Nose {
    const VERBS: &'static [Verb] = &[Verb::Get, Verb::List, Verb::Watch];

    async fn get(
        &self,
        _: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Smell, ApiError> {
        match name {
            "panic" => panic!("what a stench"),
            "never" => std::future::pending().await,
            "onions" => Ok(smell(namespace, name, 3)),
            _ => Err(ApiError::not_found(
                &GroupResource::new("kitchen.example.com", "smells"),
                name,
            )),
        }
    }

    async fn list(
        &self,
        _: &RequestContext,
        namespace: Option<&str>,
        _: &ListOptions,
    ) -> Result<ObjectList<Smell>, ApiError> {
        let all = [("basil", 1), ("onions", 3), ("cheese", 5)];
        let namespace = namespace.or(Some("default"));
        let all = all.map(|(name, strength)| smell(namespace, name, strength));
        Ok(ObjectList::new(all.to_vec(), "17"))
    }

    async fn watch(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectEvents<Smell>, ApiError> {
        if options.resource_version == "13" {
            return Ok(ObjectEvents::new(stream::poll_fn(|_| {
                panic!("in a stream")
            })));
        }
        Ok(ObjectEvents::new(stream::pending()))
    }
}

#[async_trait]
impl Reader<Dish> for Nose {
    const VERBS: &'static [Verb] = &[Verb::List];

    async fn list(
        &self,
        _: &RequestContext,
        _: Option<&str>,
        _: &ListOptions,
    ) -> Result<ObjectList<Dish>, ApiError> {
        Ok(ObjectList::new(Vec::new(), ""))
    }
}

fn smell(namespace: Option<&str>, name: &str, strength: i32) -> Smell {
    Smell {
        metadata: ObjectMeta {
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        strength,
    }
}

const V1: &str = "/apis/kitchen.example.com/v1";

const SMELLS: &str = "/apis/kitchen.example.com/v1/namespaces/default/smells";

async fn with_nose(run: impl AsyncFnOnce(Client)) {
    with_server_of(
        |builder| {
            let builder = builder.kind::<Smell>().kind::<Dish>();
            builder.reader::<Smell>(Nose).reader::<Dish>(Nose)
        },
        |client, _| async move { run(client).await },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_list_exactly_the_verbs_of_the_code() {
    with_nose(async |client| {
        let list = client.get(V1).await.json();
        let entries = list["resources"].as_array().unwrap();
        let verbs = |name: &str| {
            let entry = entries.iter().find(|entry| entry["name"] == name).unwrap();
            assert_eq!(entry.get("storageVersionHash"), None, "{name}");
            entry["verbs"].clone()
        };
        assert_eq!(verbs("smells"), json!(["get", "list", "watch"]));
        assert_eq!(verbs("dishes"), json!(["list"]));

        let openapi = client.get(&format!("/openapi/v3{V1}")).await.json();
        let methods = |path: &str| -> Vec<String> {
            let operations = openapi["paths"][format!("{V1}/{path}")].as_object();
            let operations = operations.unwrap_or_else(|| panic!("{path}"));
            let methods = operations.keys().filter(|key| *key != "parameters");
            methods.cloned().collect()
        };
        assert_eq!(methods("namespaces/{namespace}/smells/{name}"), ["get"]);
        assert_eq!(methods("namespaces/{namespace}/smells"), ["get"]);
        assert_eq!(methods("dishes"), ["get"]);
        let schemas = openapi["components"]["schemas"].as_object().unwrap();
        assert!(schemas.keys().any(|name| name.ends_with("SmellList")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_without_code_are_refused() {
    with_nose(async |client| {
        let body = json!({"metadata": {"name": "a"}, "strength": 1});
        let posted = client.post(SMELLS, &body).await;
        assert_eq!(posted.code, 405, "{}", posted.text());
        let put = client.put(&format!("{SMELLS}/onions"), &body).await;
        assert_eq!(put.code, 405, "{}", put.text());
        let deleted = client.delete(SMELLS, &json!({})).await;
        assert_eq!(deleted.code, 405, "{}", deleted.text());
        assert_eq!(client.get(&format!("{V1}/dishes")).await.code, 200);
        let watched = client.get(&format!("{V1}/dishes?watch=true")).await;
        assert_eq!(watched.code, 405, "{}", watched.text());
        assert_eq!(client.get(&format!("{V1}/dishes/a")).await.code, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_selectors_and_pages_come_with_the_code() {
    with_nose(async |client| {
        let got = client.get(&format!("{SMELLS}/onions")).await.json();
        let expected = json!({"kind": "Smell", "apiVersion": "kitchen.example.com/v1",
            "metadata": {"name": "onions", "namespace": "default"}, "strength": 3});
        assert_eq!(got, expected);
        assert_eq!(client.get(&format!("{SMELLS}/roses")).await.code, 404);

        let listed = client.get(SMELLS).await.json();
        let names = |list: &Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            items
                .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(&listed), ["basil", "cheese", "onions"]);
        assert_eq!(
            (&listed["kind"], &listed["metadata"]["resourceVersion"]),
            (&json!("SmellList"), &json!("17"))
        );
        let strong = format!("{SMELLS}?fieldSelector=strength!=1");
        assert_eq!(names(&client.get(&strong).await.json()), ["cheese", "onions"]);
        let first = client.get(&format!("{SMELLS}?limit=2")).await.json();
        assert_eq!(names(&first), ["basil", "cheese"]);
        assert_eq!(first["metadata"]["remainingItemCount"], 1);
        let next = first["metadata"]["continue"].as_str().unwrap();
        let next = client.get(&format!("{SMELLS}?limit=2&continue={next}")).await;
        assert_eq!(names(&next.json()), ["onions"]);

        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let table = client
            .call("GET", SMELLS, &[("accept", accept)], String::new())
            .await
            .json();
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["columnDefinitions"][1]["name"], "Strength");
        let cells = table["rows"][1]["cells"].as_array().unwrap();
        assert_eq!(cells[..2], [json!("cheese"), json!(5)]);

        let watched = format!("{SMELLS}?watch=true&fieldSelector=metadata.name=basil");
        let mut watch = client.watch(&watched).await;
        let event = watch.event().await;
        assert_eq!(event["type"], "ADDED");
        assert_eq!(event["object"]["metadata"]["name"], "basil");
        let streamed = format!(
            "{SMELLS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let mut watch = client.watch(&streamed).await;
        let mut types = Vec::new();
        for _ in 0..4 {
            let event = watch.next().await.expect("an event");
            types.push(event["type"].clone());
        }
        assert_eq!(types, ["ADDED", "ADDED", "ADDED", "BOOKMARK"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_panics_or_never_answers_costs_its_request_alone() {
    with_nose(async |client| {
        let panicked = client.get(&format!("{SMELLS}/panic")).await;
        assert_eq!(panicked.code, 500, "{}", panicked.text());
        let began = Instant::now();
        let late = client.get(&format!("{SMELLS}/never?timeout=300ms")).await;
        assert_eq!(late.code, 504, "{}", late.text());
        assert!(began.elapsed() < Duration::from_secs(20), "its deadline");

        // Of a stream the client has the head already.
        let broken = format!("{SMELLS}?watch=true&resourceVersion=13");
        let mut watch = client.watch(&broken).await;
        let event = watch.event().await;
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&json!("ERROR"), &json!(500))
        );
        assert_eq!(client.get(&format!("{SMELLS}/onions")).await.code, 200);
    })
    .await;
}
