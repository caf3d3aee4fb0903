//! Turns and times of calls, over services that are found by the test.

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use futures_util::FutureExt as _;

use super::*;
use crate::services::{ClusterDns, ServiceError};

/// How long the calls of the tests may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Never finds a service.
#[derive(Debug, Default)]
struct Lost(AtomicUsize);

#[async_trait]
impl ServiceResolver for Lost {
    async fn resolve(&self, _: &ServicePort) -> Result<ServiceAddress, ServiceError> {
        self.0.fetch_add(1, Ordering::AcqRel);
        std::future::pending().await
    }
}

fn of_service(services: Arc<dyn ServiceResolver>) -> WebhookClient {
    let address = WebhookAddress {
        service: Some(ServicePort {
            namespace: "default".to_owned(),
            name: "hook".to_owned(),
            port: 443,
        }),
        path: Some("/convert/".to_owned()),
        ..WebhookAddress::default()
    };
    WebhookClient::new(&address, services).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_half_a_minute() {
    let client = of_service(Arc::<Lost>::default());
    let began = tokio::time::Instant::now();
    let error = client.post(Bytes::new(), TIMEOUT).await.unwrap_err();
    assert_eq!(
        error.text,
        "Post \"https://hook.default.svc:443/convert?timeout=30s\": context deadline exceeded"
    );
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn some_calls_are_made_at_a_time_some_wait_and_more_fail() {
    let services = Arc::<Lost>::default();
    let client = of_service(Arc::clone(&services) as _);
    let mut calls: Vec<_> = (0..MAX_CALLS + MAX_WAITING)
        // Without the budget of a task, which one poll of so many calls exceeds.
        .map(|_| {
            Box::pin(tokio::task::unconstrained(
                client.post(Bytes::from_static(b"{}"), TIMEOUT),
            ))
        })
        .collect();
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    assert_eq!(services.0.load(Ordering::Acquire), MAX_CALLS);
    let error = client.post(Bytes::new(), TIMEOUT).await.unwrap_err();
    assert!(error.text.contains("too many calls wait"), "{error:?}");
    // The end of a call gives its turn to the next one.
    drop(calls.remove(0));
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    assert_eq!(services.0.load(Ordering::Acquire), MAX_CALLS + 1);
    drop(calls);
    assert_eq!(client.waiting.load(Ordering::Acquire), 0);
    assert_eq!(client.calls.available_permits(), MAX_CALLS);
    assert_eq!(client.room.available_permits(), ROOM_KIB);
}

#[tokio::test(start_paused = true)]
async fn a_large_request_is_alone() {
    let services = Arc::<Lost>::default();
    let client = of_service(Arc::clone(&services) as _);
    let large = Bytes::from(vec![b' '; (ROOM_KIB + 1) * 1024]);
    let mut first = Box::pin(client.post(large, TIMEOUT));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(client.post(Bytes::new(), TIMEOUT));
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(services.0.load(Ordering::Acquire), 1);
    drop(first);
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(services.0.load(Ordering::Acquire), 2);
}

#[test]
fn urls_have_an_origin_and_a_path() {
    let check = |url: &str, expected: (&str, bool, &str)| {
        let (target, path) = of_url(url).unwrap();
        let Target::Url { origin, is_local } = target else {
            panic!("{target:?}");
        };
        assert_eq!((origin.as_str(), is_local, path.as_str()), expected);
    };
    check(
        "https://a.example/b/c",
        ("https://a.example", false, "/b/c"),
    );
    check("https://LOCALHOST:1", ("https://LOCALHOST:1", true, "/"));
    check("https://127.0.0.9:1/", ("https://127.0.0.9:1", true, "/"));
    check("https://[::1]:1/x", ("https://[::1]:1", true, "/x"));
    let address = WebhookAddress {
        url: Some("https://a".to_owned()),
        ..WebhookAddress::default()
    };
    let client = WebhookClient::new(&address, Arc::new(ClusterDns)).unwrap();
    assert_eq!(
        (client.origin().as_str(), client.path.as_str()),
        ("https://a", "/")
    );
}
