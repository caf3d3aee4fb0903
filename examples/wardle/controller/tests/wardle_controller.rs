//! The controller against a server in memory: requests that fail, and watches that break.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use apiloom::client::cache::InformerFactory;
use apiloom::client::controller::{CancellationToken, ElectionConfig, Event, Lease};
use apiloom::client::{HasMetadata as _, Namespaced, ResourceClient};
use apiloom::meta::ObjectMeta;
use apiloom::meta::kind::Verb;
use apiloom::testing::{Control, Fault};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wardle::generated::clientset::{Clientset, Informers};
use wardle::generated::fake;
use wardle::v1alpha1::{Fischer, Flunder, FlunderSpec};
use wardle::v1beta1::ReferenceType::{self, Fischer as ToFischer, Flunder as ToFlunder};
use wardle_controller::{FINALIZER, LABEL, NAME, Replica};

const LIMIT: Duration = Duration::from_secs(60);

/// A server in memory, and a replica of the controller that uses it.
struct Trial {
    clients: Clientset,
    control: Control,
    cancel: CancellationToken,
    controller: JoinHandle<anyhow::Result<()>>,
    informers: Informers,
}

impl Trial {
    async fn start() -> Self {
        let (clients, control) = fake::Clientset::builder().built_in().build().await.unwrap();
        let cancel = CancellationToken::new();
        let controller = tokio::spawn({
            let (client, cancel) = (clients.client().clone(), cancel.clone());
            async move { replica("a").run(&client, &cancel).await }
        });
        let informers = Informers::new(InformerFactory::new(clients.client()));
        informers.wardle_v1alpha1().flunders().start();
        Self {
            clients,
            control,
            cancel,
            controller,
            informers,
        }
    }

    fn flunders(&self) -> ResourceClient<Flunder, Namespaced> {
        self.clients.wardle_v1alpha1().flunders("default")
    }

    async fn create(&self, name: &str, to: Option<(&str, ReferenceType)>) {
        let flunder = flunder(name, to);
        let created = self.flunders().create(&flunder).await;
        created.unwrap();
    }

    async fn delete(&self, name: &str) {
        let deleted = self.flunders().delete(name).await;
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

    /// Stops the controller, which gives its lease up.
    async fn stop(self) {
        self.cancel.cancel();
        let ended = timeout(LIMIT, self.controller).await.unwrap();
        ended.unwrap().unwrap();
        let leases = self.clients.client().namespaced::<Lease>("default");
        let lease = leases.get(NAME).await.unwrap();
        assert_eq!(lease.spec.holder_identity.as_deref(), Some(""));
        self.informers.factory().shutdown().await;
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
    let fischers = trial.clients.wardle_v1alpha1().fischers();
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
    let flunders = trial.flunders();
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
    let flunders = trial.flunders();
    flunders
        .update_with("second", |second| second.spec = None)
        .await
        .unwrap();
    trial.until(&[("second", "None")]).await;
    let events = trial.clients.client().namespaced::<Event>("default");
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

/// Makes a chain of Flunders, each of which refers to the next one, and deletes it; `disturb` is called in between.
async fn chain(trial: &Trial, disturb: impl AsyncFnOnce(&Control)) {
    const OBJECTS: usize = 20;
    let names: Vec<String> = (0..OBJECTS)
        .map(|number| format!("f-{number:02}"))
        .collect();
    for pair in names.windows(2) {
        trial.create(&pair[0], Some((&pair[1], ToFlunder))).await;
    }
    trial.create(&names[OBJECTS - 1], None).await;
    let mut expected: Vec<_> = names.iter().map(|name| (&**name, "Found")).collect();
    expected.last_mut().unwrap().1 = "None";
    trial.until(&expected).await;
    disturb(&trial.control).await;
    for name in &names {
        trial.delete(name).await;
    }
    trial.until(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_fail_change_nothing_in_the_end() {
    let trial = Trial::start().await;
    let patches = || Fault::on(Verb::Patch).kind::<Flunder>();
    let faults = [
        patches().times(8).conflict(),
        patches().nth(10).times(5).lost_after(),
        patches().nth(20).times(5).lost_before(),
        patches().nth(30).times(3).internal_error(),
        patches().nth(35).times(3).timeout(),
        Fault::on_apply().kind::<Flunder>().times(5).conflict(),
    ]
    .map(|fault| trial.control.inject(fault));
    chain(&trial, async |_| {}).await;
    for fault in &faults {
        assert!(fault.is_over(), "{fault:?}");
    }
    trial.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_break_and_history_that_is_gone_change_nothing_in_the_end() {
    let trial = Trial::start().await;
    chain(&trial, async |control| {
        // Watches resume at a version that the server does not have any more.
        control.compact().await.unwrap();
        assert!(control.drop_watches() > 0);
        control.take_actions();
    })
    .await;
    let actions = trial.control.actions();
    let reads = actions.iter().filter(|action| {
        let query = action.uri.query().unwrap_or_default();
        let is_read = action.verb == Some(Verb::List) || query.contains("sendInitialEvents=true");
        action.resource == "flunders" && is_read
    });
    // The controller and this test have factories of one client, which share the cache.
    assert_eq!(reads.count(), 1);
    trial.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_without_need() {
    let trial = Trial::start().await;
    trial.create("a", None).await;
    trial.create("b", Some(("a", ToFlunder))).await;
    trial.until(&[("a", "None"), ("b", "Found")]).await;
    trial.control.drop_watches();
    // This change concerns both, and changes nothing for them.
    let fischers = trial.clients.wardle_v1alpha1().fischers();
    fischers.create(&fischer("x", &["y"])).await.unwrap();
    trial.create("c", None).await;
    trial
        .until(&[("a", "None"), ("b", "Found"), ("c", "None")])
        .await;
    let actions = trial.control.actions();
    let patches = |name: &str| {
        let of_name = |action: &&apiloom::testing::Action| {
            action.verb == Some(Verb::Patch)
                && action.resource == "flunders"
                && action.name() == name
        };
        actions.iter().filter(of_name).count()
    };
    // The finalizer, and the label.
    assert_eq!(["a", "b"].map(patches), [2, 2]);
    trial.stop().await;
}
