//! The goldens of clients, compiled with the real runtime: each form of the Go generator's markers, by the requests that it sends.

#![allow(clippy::unwrap_used, reason = "tests")]

// The package `forms`: its library, with this file as the root. Its `kube.rs`, and that of the clients below, are compiled with
// kube-rs in `tests/kube-rs`.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unexpected_cfgs,
    reason = "files of a package with features of its own"
)]
#[path = "../fixtures/generator/forms/src/generated/mod.rs"]
#[rustfmt::skip]
mod generated;
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "files of a package"
)]
#[path = "../fixtures/generator/forms/src/v1.rs"]
mod v1;

apiloom::group! { name = "forms.example.com", versions = [v1] }

// The clients that are a package of their own name the types by the package of the kinds.
extern crate self as forms;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unexpected_cfgs,
    reason = "files of a package with features of its own"
)]
#[path = "../fixtures/generator/forms-client/src/generated/mod.rs"]
#[rustfmt::skip]
mod other_package;

// The module that the feature `fake` of that package adds.
#[allow(missing_docs, unreachable_pub, reason = "a file of a package")]
#[path = "../fixtures/generator/forms-client/src/generated/fake.rs"]
#[rustfmt::skip]
mod fake;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use apiloom::client::cache::{Index, InformerFactory};
use apiloom::client::{Body, Client, Transport, TransportError};
use apiloom::prelude::*;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use serde_json::{Value, json};

use generated::clientset::{Clientset, Informers};
use generated::index;
use generated::methods::forms_v1::{LedgerMethods as _, OrderMethods};
use other_package::clientset;
use v1::{Address, Draft, Job, Ledger, Order, OrderSpec, Rate, Review, Size, Zone};

/// A server that records requests and answers each of them with an object that is of every kind and a list too.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Transport for Recorder {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let (parts, body) = request.into_parts();
        let lines = Arc::clone(&self.0);
        Box::pin(async move {
            let body = body.collect(1 << 20).await.expect("a small body");
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let kind = body["kind"].as_str().unwrap_or("-").to_owned();
            let path = parts.uri.to_string();
            let path = path.replace("/apis/forms.example.com/v1/", "");
            let line = format!("{} {path} {kind}", parts.method);
            lines.lock().unwrap().push(line);
            let answer = json!({
                "metadata": {"name": "a"}, "items": [], "status": {"replicas": 1}, "text": "t",
                "spec": {"size": "Small", "replicas": 1, "lines": [], "tags": {}},
            });
            Ok(Response::new(Body::from(bytes::Bytes::from(
                answer.to_string(),
            ))))
        })
    }
}

impl Recorder {
    fn clients(&self) -> Clientset {
        Clientset::new(Client::new(self.clone()))
    }
    fn check(&self, expected: &[&str]) {
        assert_eq!(*self.0.lock().unwrap(), expected);
    }
}

fn metadata() -> ObjectMeta {
    ObjectMeta {
        name: Some("a".to_owned()),
        ..ObjectMeta::default()
    }
}

fn order() -> Order {
    Order {
        metadata: metadata(),
        spec: OrderSpec {
            customer: Some("c".to_owned()),
            size: Size::Large,
            replicas: 1,
            lines: vec![3, 4],
            tags: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
            address: Some(Box::new(Address {
                street: "s".to_owned(),
            })),
        },
        approval: None,
        status: None,
    }
}

#[tokio::test]
async fn kinds_have_the_clients_of_their_scope_and_verbs() {
    let server = Recorder::default();
    let forms = server.clients().forms_v1();
    let _: Zone = forms.zones().get("a").await.unwrap();
    let review = Review {
        metadata: metadata(),
    };
    let _: Review = forms.reviews().create(&review).await.unwrap();
    let _: Vec<Rate> = forms.all_rates().list().await.unwrap().items;
    let _ = forms.jobs("ns").delete("a").await.unwrap();
    let scale = forms.orders("ns").scale().get("a").await.unwrap();
    assert_eq!(scale.status.replicas, 1);
    server.check(&[
        "GET zones/a -",
        "POST reviews Review",
        "GET rates -",
        "DELETE namespaces/ns/jobs/a DeleteOptions",
        "GET namespaces/ns/orders/a/scale -",
    ]);
}

#[tokio::test]
async fn methods_send_the_request_of_their_verb_with_its_types() {
    let server = Recorder::default();
    let orders = server.clients().forms_v1().orders("ns");
    let draft = Draft {
        metadata: metadata(),
        text: None,
    };
    let _: Order = orders.approval_of("a").resource_version("0").await.unwrap();
    let _: Vec<Draft> = orders.list_drafts().labels("x=y").await.unwrap().items;
    let _: Order = orders.place(&draft).dry_run().await.unwrap();
    let _: Draft = orders.refund("a", &draft).await.unwrap();
    let _: Order = orders
        .replace("a", &draft)
        .field_manager("me")
        .await
        .unwrap();
    let patch = apiloom::client::Patch::merge(&json!({"kind": "Merge"}));
    let _: Draft = orders.amend("a", patch).await.unwrap();
    let applied = orders.apply_draft("a", &json!({"text": "t"}), "me");
    let _: Order = applied.force().await.unwrap();
    let _: Order = orders.update_approval("a", &order()).await.unwrap();
    let _: Draft = orders.get_refund("a").await.unwrap();
    let _: Draft = orders.create_refund("a", &draft).await.unwrap();
    server.check(&[
        "GET namespaces/ns/orders/a/approval?resourceVersion=0 -",
        "GET namespaces/ns/orders?labelSelector=x%3Dy -",
        "POST namespaces/ns/orders?dryRun=All Draft",
        "POST namespaces/ns/orders/a/refund Draft",
        "PUT namespaces/ns/orders/a?fieldManager=me Draft",
        "PATCH namespaces/ns/orders/a Merge",
        "PATCH namespaces/ns/orders/a?fieldManager=me&force=true Draft",
        "PUT namespaces/ns/orders/a/approval Order",
        "GET namespaces/ns/orders/a/refund -",
        "POST namespaces/ns/orders/a/refund Draft",
    ]);
}

/// The verbs themselves do not compile: see `rustc-missing-verb` among the UI tests.
#[tokio::test]
async fn a_client_without_verbs_has_the_methods_of_its_kind() {
    let server = Recorder::default();
    let ledgers = server.clients().forms_v1().ledgers("ns");
    let ledger: Ledger = ledgers.audit("a").await.unwrap();
    let _: Ledger = ledgers.book(&ledger).await.unwrap();
    server.check(&[
        "GET namespaces/ns/ledgers/a -",
        "POST namespaces/ns/ledgers Ledger",
    ]);
}

#[test]
fn indexes_have_the_keys_of_their_field() {
    fn keys<I: Index<Order>>(order: &Order) -> Vec<I::Key> {
        let mut keys = Vec::new();
        I::keys(order, &mut |key| keys.push(key));
        keys
    }
    let mut order = order();
    assert_eq!(keys::<index::Customer>(&order), ["c"]);
    assert!(keys::<index::Size>(&order) == [Size::Large]);
    assert_eq!(keys::<index::Line>(&order), [3, 4]);
    assert_eq!(keys::<index::Tag>(&order), ["k"]);
    assert_eq!(keys::<index::Street>(&order), ["s"]);
    order.spec.address = None;
    order.spec.customer = None;
    assert_eq!(keys::<index::Street>(&order), Vec::<String>::new());
    assert_eq!(keys::<index::Customer>(&order), Vec::<String>::new());
}

/// The clients of a package of their own are the same.
#[tokio::test]
async fn clients_of_another_package_have_the_same_types() {
    use other_package::methods::forms_v1::OrderMethods as OtherMethods;
    let server = Recorder::default();
    let clients = clientset::Clientset::new(Client::new(server.clone()));
    let orders = clients.forms_v1().orders("ns");
    let order: Order = OtherMethods::get_approval(&orders, "a").await.unwrap();
    let mut keys = Vec::new();
    <other_package::index::Size as Index<Order>>::keys(&order, &mut |key| keys.push(key));
    assert!(keys == [Size::Small]);
    use other_package::apply::v1;
    let spec = v1::OrderSpec::new().size(Size::Large).replicas(2);
    let mine = v1::Order::new("ns", "a").spec(spec);
    let _: Order = orders.apply(&mine, "me").await.unwrap();
    server.check(&[
        "GET namespaces/ns/orders/a/approval -",
        "PATCH namespaces/ns/orders/a?fieldManager=me Order",
    ]);
}

/// The fake clients of that package have a server with the kinds of this one.
#[tokio::test]
async fn fake_clients_of_another_package_have_a_server_with_the_kinds() {
    use other_package::methods::forms_v1::OrderMethods as OtherMethods;
    let (clients, control) = fake::Clientset::builder()
        .objects([order()])
        .build()
        .await
        .unwrap();
    let orders = clients.forms_v1().orders("default");
    let draft: Draft = OtherMethods::get_refund(&orders, "a").await.unwrap();
    assert_eq!(draft.text.as_deref(), Some("a"));
    let mut approved: Order = OtherMethods::get_approval(&orders, "a").await.unwrap();
    approved.approval = Some(true);
    let approved = OtherMethods::update_approval(&orders, "a", &approved);
    assert_eq!(approved.await.unwrap().approval, Some(true));
    let actions = control.take_actions().into_iter();
    let actions: Vec<String> = actions.map(|action| action.to_string()).collect();
    assert_eq!(
        actions,
        [
            "get orders/refund default/a",
            "get orders/approval default/a",
            "update orders/approval default/a",
        ]
    );
}

/// The kinds that can be listed and watched have informers, which take the generated indexes.
#[tokio::test]
async fn informers_take_indexes() {
    let client = Client::new(Recorder::default());
    let informers = Informers::new(InformerFactory::new(&client)).forms_v1();
    let orders = informers.orders().with_index::<index::Customer>();
    assert_eq!(orders.lister().index_len::<index::Customer>(), Some(0));
    assert_eq!(
        informers.orders().lister().index_len::<index::Customer>(),
        Some(0)
    );
    assert_eq!(orders.lister().index_len::<index::Tag>(), None);
    let _ = (informers.zones(), informers.rates());
    let _ = Job {
        metadata: metadata(),
        status: None,
    };
}
