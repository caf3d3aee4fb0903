//! Batches, their tries and their end.

use std::collections::VecDeque;

use apiloom_client::transport::TransportError;
use apiloom_registry::auth::{Answer, BoxError};
use futures_util::future::BoxFuture;
use http::{Response, StatusCode};
use parking_lot::Mutex;

use super::super::metrics::AuditMetrics;
use super::super::queue::{AuditMode, Bounds, Queue, sent};
use super::*;

/// Answers with these codes, then with 200, or never, and keeps the numbers of the events of each list.
#[derive(Clone, Default)]
struct Receiver {
    hangs: bool,
    codes: Arc<Mutex<VecDeque<u16>>>,
    lists: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl Transport for Receiver {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let receiver = self.clone();
        Box::pin(async move {
            assert_eq!(request.uri(), "/audit?a=b");
            let body = request.into_body().collect(1 << 20).await;
            let list: serde_json::Value = serde_json::from_slice(&body.unwrap()).unwrap();
            assert_eq!(list["kind"], "EventList");
            let items = list["items"].as_array().unwrap();
            let numbers = items.iter().map(|item| item["n"].as_u64().unwrap());
            receiver.lists.lock().push(numbers.collect());
            if receiver.hangs {
                std::future::pending::<()>().await;
            }
            let code = receiver.codes.lock().pop_front().unwrap_or(200);
            let mut response = Response::new(Body::from(Bytes::from_static(b"no")));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            Ok(response)
        })
    }
}

/// A queue whose webhook is the receiver.
fn start(receiver: &Receiver, mode: AuditMode, batching: Batching) -> (Queue, AuditMetrics) {
    let metrics = AuditMetrics::default();
    let losses = Losses::new(metrics.clone());
    let bounds = Bounds {
        events: 100,
        bytes: 1 << 20,
    };
    let (queue, messages) = Queue::new(mode, bounds, losses.clone());
    let webhook = Webhook {
        transport: Arc::new(receiver.clone()),
        path: "/audit?a=b".to_owned(),
    };
    tokio::spawn(run(webhook, batching, None, messages, losses));
    (queue, metrics)
}

const BATCHING: Batching = Batching {
    max_events: 3,
    max_bytes: usize::MAX,
    max_wait: Duration::from_secs(30),
    initial_backoff: Duration::from_secs(10),
};

fn send(queue: &Queue, number: u64) -> Answer<'static, Result<(), BoxError>> {
    let event = format!(r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","n":{number}}}"#);
    queue.send(event.into(), true)
}

fn lost(metrics: &AuditMetrics) -> bool {
    let registry = apiloom_client::metrics::Registry::new();
    registry.register(metrics.clone());
    let text = registry.text();
    text.contains(r#"apiserver_audit_error_total{plugin="webhook"}"#)
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_in_batches() {
    let receiver = Receiver::default();
    let (queue, _) = start(&receiver, AuditMode::Batch, BATCHING);
    for number in 0..4 {
        send(&queue, number);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*receiver.lists.lock(), [vec![0, 1, 2]]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(*receiver.lists.lock(), [vec![0, 1, 2], vec![3]]);
    send(&queue, 4);
    queue.flush().await;
    assert_eq!(receiver.lists.lock()[2], [4], "the end waits for nothing");

    let receiver = Receiver::default();
    let bytes = Batching {
        max_bytes: 120,
        ..BATCHING
    };
    let (queue, _) = start(&receiver, AuditMode::Batch, bytes);
    for number in 0..3 {
        send(&queue, number);
    }
    queue.flush().await;
    let mut lists = receiver.lists.lock().clone();
    lists.sort();
    assert_eq!(lists, [vec![0, 1], vec![2]]);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_sent_again_until_it_is_accepted_or_lost() {
    let receiver = Receiver::default();
    receiver.codes.lock().extend([500, 400, 403, 503]);
    let (queue, metrics) = start(&receiver, AuditMode::BlockingStrict, BATCHING);
    assert!(sent(send(&queue, 1)).await.is_ok());
    assert_eq!(*receiver.lists.lock(), vec![vec![1]; 5]);
    assert!(!lost(&metrics));

    receiver.codes.lock().extend([500; 5]);
    assert!(sent(send(&queue, 2)).await.is_err());
    assert_eq!(receiver.lists.lock().len(), 10);
    assert!(lost(&metrics));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_has_few_lists() {
    let receiver = Receiver {
        hangs: true,
        ..Receiver::default()
    };
    let single = Batching {
        max_events: 1,
        ..BATCHING
    };
    let (queue, metrics) = start(&receiver, AuditMode::Batch, single);
    for number in 0..20 {
        send(&queue, number);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(receiver.lists.lock().len(), MAX_SENT as usize);
    // Each is tried five times, for 30 seconds each.
    tokio::time::timeout(Duration::from_secs(3600), queue.flush())
        .await
        .unwrap();
    assert_eq!(receiver.lists.lock().len(), 20 * TRIES as usize);
    assert!(lost(&metrics));
}

#[test]
fn the_kubeconfig_says_where_the_webhook_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("webhook.kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1/audit'}}]\n";
    std::fs::write(&file, text).unwrap();
    assert_eq!(
        Webhook::read(&file).map(|webhook| webhook.path).unwrap(),
        "/audit"
    );
    std::fs::write(&file, text.replace("current-context: a", "")).unwrap();
    let refused = Webhook::read(&file).map(drop).unwrap_err();
    assert!(refused.contains("--audit-webhook-config-file"), "{refused}");
    assert!(refused.contains("current-context"), "{refused}");
}
