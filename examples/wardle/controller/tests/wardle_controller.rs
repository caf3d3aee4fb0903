//! The controller against a server in process, whose requests may fail.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom::client::cache::InformerFactory;
use apiloom::client::controller::{Cancel, ElectionConfig, Event, Lease};
use apiloom::client::{Body, Client, HasMetadata as _, Transport, TransportError};
use apiloom::meta::ObjectMeta;
use apiloom::server::{Backend, Config, Server};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Method, Request, Response};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wardle::generated::clientset::{Clientset, Informers, WardleV1alpha1};
use wardle::v1alpha1::{Fischer, Flunder, FlunderSpec};
use wardle::v1beta1::ReferenceType::{self, Fischer as ToFischer, Flunder as ToFlunder};

use wardle_controller::{FINALIZER, LABEL, NAME, Replica};

const LIMIT: Duration = Duration::from_secs(60);

/// A server in process, and a replica of the controller that uses it by way of `wrap`.
struct Trial {
    client: Client,
    kinds: WardleV1alpha1,
    stop_server: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    cancel: Cancel,
    controller: JoinHandle<anyhow::Result<()>>,
    informers: Informers,
}

impl Trial {
    async fn start() -> Self {
        Self::with_client(|client| client).await
    }

    async fn with_client(wrap: impl FnOnce(Client) -> Client) -> Self {
        // A folder that cannot be made: nothing may be written.
        let mut config = Config::new("wardle", "/proc/none");
        config.backend = Backend::Memory;
        let builder = wardle::generated::install(Server::builder(config)).all_built_in();
        let server = builder.build().await.unwrap().start().await.unwrap();
        let client = Client::new(server.loopback().privileged());
        let (stop_server, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        let cancel = Cancel::new();
        let controller = tokio::spawn({
            let (client, cancel) = (wrap(client.clone()), cancel.clone());
            async move { replica("a").run(&client, &cancel).await }
        });
        let informers = Informers::new(InformerFactory::new(&client));
        informers.wardle_v1alpha1().flunders().start();
        Self {
            kinds: Clientset::new(client.clone()).wardle_v1alpha1(),
            client,
            stop_server,
            serving,
            cancel,
            controller,
            informers,
        }
    }

    async fn create(&self, name: &str, to: Option<(&str, ReferenceType)>) {
        let flunder = flunder(name, to);
        let created = self.kinds.flunders("default").create(&flunder).await;
        created.unwrap();
    }

    async fn delete(&self, name: &str) {
        let deleted = self.kinds.flunders("default").delete(name).await;
        deleted.unwrap();
    }

    /// Waits until the flunders are these, with these labels.
    async fn until(&self, expected: &[(&str, &str)]) {
        let flunders = self.informers.wardle_v1alpha1().flunders();
        let mut changes = flunders.subscribe();
        let shown = || {
            let mut shown: Vec<_> = flunders
                .lister()
                .list()
                .iter()
                .map(|flunder| {
                    let label = flunder.label(LABEL).unwrap_or("?");
                    (flunder.name().to_owned(), label.to_owned())
                })
                .collect();
            shown.sort();
            shown
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, label)| ((*name).to_owned(), (*label).to_owned()))
            .collect();
        let reached = async {
            while shown() != expected {
                changes.next().await.unwrap();
            }
        };
        let reached = timeout(LIMIT, reached).await;
        assert!(reached.is_ok(), "{:?} in place of {expected:?}", shown());
    }

    /// Stops the controller, which gives its lease up, and the server.
    async fn stop(self) {
        self.cancel.cancel();
        let ended = timeout(LIMIT, self.controller).await.unwrap();
        ended.unwrap().unwrap();
        let leases = self.client.namespaced::<Lease>("default");
        let lease = leases.get(NAME).await.unwrap();
        assert_eq!(lease.spec.holder_identity.as_deref(), Some(""));
        self.informers.factory().shutdown().await;
        self.stop_server.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

fn replica(identity: &str) -> Replica {
    Replica {
        identity: identity.to_owned(),
        lease_namespace: "default".to_owned(),
        election: ElectionConfig::default(),
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn flunder(name: &str, to: Option<(&str, ReferenceType)>) -> Flunder {
    Flunder {
        metadata: named(name),
        spec: to.map(|(reference, reference_type)| FlunderSpec {
            reference: Some(reference.to_owned()),
            reference_type: Some(reference_type),
        }),
        status: None,
    }
}

fn fischer(name: &str, disallowed: &[&str]) -> Fischer {
    Fischer {
        metadata: named(name),
        disallowed_flunders: disallowed.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_follow_the_objects_that_flunders_refer_to() {
    let trial = Trial::start().await;
    trial.create("plain", None).await;
    trial
        .create("to-flunder", Some(("target", ToFlunder)))
        .await;
    trial
        .create("to-fischer", Some(("target", ToFischer)))
        .await;
    let missing = [
        ("plain", "None"),
        ("to-fischer", "Missing"),
        ("to-flunder", "Missing"),
    ];
    trial.until(&missing).await;
    trial.create("target", None).await;
    let fischers = trial.kinds.fischers();
    fischers.create(&fischer("target", &[])).await.unwrap();
    let with_target = |to_fischer, to_flunder| {
        [
            ("plain", "None"),
            ("target", "None"),
            ("to-fischer", to_fischer),
            ("to-flunder", to_flunder),
        ]
    };
    trial.until(&with_target("Found", "Found")).await;
    let disallows = fischer("other", &["target"]);
    fischers.create(&disallows).await.unwrap();
    trial.until(&with_target("Found", "Disallowed")).await;
    fischers
        .update_with("other", |fischer| fischer.disallowed_flunders.clear())
        .await
        .unwrap();
    trial.until(&with_target("Found", "Found")).await;
    fischers.delete("target").await.unwrap();
    trial.until(&with_target("Missing", "Found")).await;
    let flunders = trial.kinds.flunders("default");
    let plain = flunders.get("plain").await.unwrap();
    assert_eq!(plain.metadata.finalizers, [FINALIZER]);
    trial.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flunder_is_kept_while_others_refer_to_it() {
    let trial = Trial::start().await;
    trial.create("target", None).await;
    trial.create("first", Some(("target", ToFlunder))).await;
    trial.create("second", Some(("target", ToFlunder))).await;
    trial.create("itself", Some(("itself", ToFlunder))).await;
    let all = [
        ("first", "Found"),
        ("itself", "Found"),
        ("second", "Found"),
        ("target", "None"),
    ];
    trial.until(&all).await;
    for name in ["target", "itself", "first"] {
        trial.delete(name).await;
    }
    trial
        .until(&[("second", "Found"), ("target", "None")])
        .await;
    let flunders = trial.kinds.flunders("default");
    flunders
        .update_with("second", |second| second.spec = None)
        .await
        .unwrap();
    trial.until(&[("second", "None")]).await;
    let client = trial.client.clone();
    let events = client.namespaced::<Event>("default");
    let reasons = async {
        loop {
            let events = events.list().await.unwrap().items;
            let about = |reason: &str, name: &str| {
                let mut events = events.iter();
                events.any(|event| event.reason == reason && event.regarding.name == name)
            };
            if about("InUse", "target") && about("GoodReference", "first") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, reasons).await.expect("events are written");
    trial.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flunders_that_refer_to_each_other_are_deleted_together() {
    let trial = Trial::start().await;
    trial.create("a", Some(("b", ToFlunder))).await;
    trial.create("b", Some(("a", ToFlunder))).await;
    trial.until(&[("a", "Found"), ("b", "Found")]).await;
    trial.delete("a").await;
    trial.delete("b").await;
    trial.until(&[]).await;
    trial.stop().await;
}

/// Fails two of three writes: one before it is sent, and one after it was executed.
struct Unreliable {
    inner: Arc<dyn Transport>,
    writes: AtomicUsize,
}

impl Transport for Unreliable {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let is_read = request.method() == Method::GET;
        // Elections and events have retries of their own.
        if is_read || !request.uri().path().contains("flunders") {
            return self.inner.call(request);
        }
        let lost = || Err(TransportError::new("the connection was lost"));
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(3) {
            return std::future::ready(lost()).boxed();
        }
        let call = self.inner.call(request);
        async move {
            let response = call.await?;
            if number % 3 == 1 {
                lost()
            } else {
                Ok(response)
            }
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_change_nothing_in_the_end() {
    let trial = Trial::with_client(|client| {
        client.wrap_transport(|inner| Unreliable {
            inner,
            writes: AtomicUsize::new(0),
        })
    })
    .await;
    let names: Vec<String> = (0..20).map(|number| format!("f-{number:02}")).collect();
    for pair in names.windows(2) {
        trial.create(&pair[0], Some((&pair[1], ToFlunder))).await;
    }
    let mut expected: Vec<_> = names.iter().map(|name| (&**name, "Found")).collect();
    expected.pop();
    expected.last_mut().unwrap().1 = "Missing";
    trial.until(&expected).await;
    for name in &names[..19] {
        trial.delete(name).await;
    }
    trial.until(&[]).await;
    trial.stop().await;
}
