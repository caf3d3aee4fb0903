//! Controllers, elections and events against a server in process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom::client::cache::InformerFactory;
use apiloom::testing::TestServer;
use apiloom_client::Error;
use apiloom_client::controller::{
    Action, CancellationToken, ClientEvents, ClientLease, Controller, ElectionConfig, Event,
    FinalizerOutcome, GuardedTransport, LeaderElector, Leadership, Lease, Recorder,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wardle::generated::clientset::{Clientset, Informers};
use wardle::v1alpha1::Flunder;

use crate::{flunder, server, wardle};

const FINALIZER: &str = "wardle.example.com/clean-up";
const LIMIT: Duration = Duration::from_secs(60);

/// Without the guard of its writes, it would read old states of its objects, and its updates would be conflicts.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_reads_its_own_writes_and_cleans_up() {
    const OBJECTS: usize = 20;
    let server = server().await;
    let client = server.client();
    let informers = Informers::new(InformerFactory::new(
        Clientset::new(client.clone()).client(),
    ));
    let informer = informers.wardle_v1alpha1().flunders();
    let (lister, cleaned_up) = (informer.lister(), Arc::new(AtomicUsize::new(0)));
    let running = Controller::new("flunder")
        .workers(4)
        .watch_self(&informer)
        .start({
            let (client, lister) = (client.clone(), lister.clone());
            let cleaned_up = Arc::clone(&cleaned_up);
            move |request, context| {
                let flunders = client.namespaced::<Flunder>(&request.key.namespace);
                let (lister, cleaned_up) = (lister.clone(), Arc::clone(&cleaned_up));
                async move {
                    let Some(flunder) = lister.get_key(&request.key) else {
                        return Ok(Action::Done);
                    };
                    let clean_up = async |_| {
                        cleaned_up.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    };
                    let finalized = context.finalizer(&flunders, flunder, FINALIZER, clean_up);
                    let FinalizerOutcome::Live(flunder) = finalized.await? else {
                        return Ok(Action::Done);
                    };
                    let mut changed = (*flunder).clone();
                    let number = changed
                        .metadata
                        .labels
                        .entry("number".to_owned())
                        .or_default();
                    if number.len() < 5 {
                        number.push('x');
                        context.writes().record(&flunders.update(&changed).await?);
                    }
                    Ok(Action::Done)
                }
            }
        });
    informers.factory().start();
    let flunders = client.namespaced::<Flunder>("default");
    for number in 0..OBJECTS {
        flunders
            .create(&flunder(&format!("a-{number}")))
            .await
            .unwrap();
    }
    let is_ready = |flunder: &Flunder| {
        let number = flunder.metadata.labels.get("number");
        number.is_some_and(|number| number.len() == 5) && flunder.metadata.finalizers == [FINALIZER]
    };
    running.run_until_idle(LIMIT).await.unwrap();
    let all = lister.list();
    assert_eq!(all.len(), OBJECTS);
    assert!(all.iter().all(|flunder| is_ready(flunder)), "{all:?}");
    assert_eq!(running.metrics().errors, 0, "{:?}", running.metrics());
    for number in 0..OBJECTS {
        flunders.delete(&format!("a-{number}")).await.unwrap();
    }
    running.run_until_idle(LIMIT).await.unwrap();
    assert!(lister.is_empty());
    // The response to the patch that lets an object go has the version before the deletion, so a key that was queued
    // meanwhile may find the object in the cache once more.
    assert!(cleaned_up.load(Ordering::SeqCst) >= OBJECTS);
    assert_eq!(running.metrics().errors, 0, "{:?}", running.metrics());
    assert_eq!(flunders.list().await.unwrap().items.len(), 0);
    running.shutdown().await;
    informers.factory().shutdown().await;
    server.stop().await;
}

/// A candidate in a task, and the leadership once it has it.
fn candidate(
    server: &TestServer,
    identity: &str,
) -> (JoinHandle<()>, oneshot::Receiver<Leadership>) {
    let config = ElectionConfig {
        lease_duration: Duration::from_secs(2),
        renew_deadline: Duration::from_secs(1),
        retry_period: Duration::from_millis(100),
        release: true,
    };
    let lease = ClientLease::new(&server.client(), "default", "test");
    let elector = LeaderElector::new(lease, identity, config).unwrap();
    let (leads, leading) = oneshot::channel();
    let task = tokio::spawn(async move {
        let work = async |leadership: Leadership| {
            leads.send(leadership.clone()).unwrap();
            leadership.cancel().cancelled().await;
        };
        // Its task is ended by the test.
        let _ = elector.run(&CancellationToken::new(), work).await;
    });
    (task, leading)
}

#[tokio::test(flavor = "multi_thread")]
async fn trap_42_another_leads_after_a_leader_and_the_first_cannot_write() {
    let server = wardle().built_in().build().await.unwrap();
    let (first, leading) = candidate(&server, "a");
    let leadership = timeout(LIMIT, leading).await.unwrap().unwrap();
    let guard = leadership.guard().clone();
    let guarded = server
        .client()
        .wrap_transport(|transport| GuardedTransport::new(transport, guard))
        .namespaced::<Flunder>("default");
    guarded.create(&flunder("by-leader")).await.unwrap();
    let (second, mut leading) = candidate(&server, "b");
    // Longer than a lease.
    assert!(timeout(Duration::from_secs(3), &mut leading).await.is_err());
    guarded.create(&flunder("still")).await.unwrap();
    let leases = server.client().namespaced::<Lease>("default");
    let lease = leases.get("test").await.unwrap();
    assert_eq!(lease.spec.holder(), Some("a"));
    assert_eq!(lease.spec.lease_duration_seconds, Some(2));
    first.abort();
    let next = timeout(LIMIT, leading).await.unwrap().unwrap();
    assert_eq!((leadership.term(), next.term()), (0, 1));
    let error = guarded.create(&flunder("late")).await.unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
    guarded.get("still").await.unwrap();
    second.abort();
    server.stop().await;
}

#[tokio::test]
async fn events_are_written_and_counted() {
    let server = wardle().built_in().build().await.unwrap();
    let flunders = server.client().namespaced::<Flunder>("default");
    let object = flunders.create(&flunder("a")).await.unwrap();
    let sink = ClientEvents::new(&server.client());
    let recorder = Recorder::new(sink, "wardle.example.com/test", "pod-1");
    recorder.warning(&object, "Failed", "it does not work");
    recorder.warning(&object, "Failed", "it still does not work");
    recorder.normal(&object, "Synced", "it works");
    recorder.shutdown().await;
    let events = server.client().namespaced::<Event>("default");
    let mut events = events.list().await.unwrap().items;
    events.sort_by(|a, b| a.reason.cmp(&b.reason));
    let [failed, synced] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(failed.note, "it does not work");
    assert_eq!(failed.series.map(|series| series.count), Some(2));
    assert_eq!(failed.regarding.uid, object.metadata.uid.unwrap());
    assert_eq!(failed.regarding.api_version, "wardle.example.com/v1alpha1");
    assert_eq!((&*synced.note, synced.series), ("it works", None));
    server.stop().await;
}
