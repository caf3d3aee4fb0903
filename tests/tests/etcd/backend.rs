//! The etcd backend beyond the conformance suite: TLS, several endpoints, leases, compaction, keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{
    ConnectError, Etcd, EtcdConfig, EtcdTls, ListRequest, Revision, Storage, StorageError,
    WatchItem, WatchStart,
};
use apiloom_tests::etcd;
use futures_util::StreamExt as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use super::load::PATIENCE;

/// A key outside the prefix of our objects.
const KEY: &str = "/registry/things/a";

async fn connect(config: EtcdConfig) -> Arc<Etcd> {
    Etcd::connect(config).await.unwrap()
}

/// A certificate authority, and a certificate that it signed, as files.
struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    /// Creates a certificate for servers at this address.
    fn new(address: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![address.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
        write("ca.pem", authority.pem());
        write("cert.pem", certificate.pem());
        write("key.pem", key.serialize_pem());
        Self { dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The TLS configuration of a client.
    fn tls(&self) -> EtcdTls {
        EtcdTls {
            ca_file: Some(self.file("ca.pem")),
            cert_file: Some(self.file("cert.pem")),
            key_file: Some(self.file("key.pem")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_needs_the_right_authority_and_a_certificate() {
    let place = etcd::Place::local();
    let authority = Authority::new(&place.client);
    let files = ["ca.pem", "cert.pem", "key.pem"].map(|name| authority.file(name));
    let files = files.each_ref().map(PathBuf::as_path);
    let etcd = etcd::Etcd::start_with_tls(etcd::Etcd::NEWEST, place, files);
    let config = |tls| EtcdConfig {
        tls,
        connect_timeout: Duration::from_secs(2),
        ..EtcdConfig::new([etcd.url()])
    };
    let store = connect(config(authority.tls())).await;
    store.create(KEY, "1".into(), None).await.unwrap();

    let other = Authority::new("127.0.0.1");
    let wrong_authority = EtcdTls {
        ca_file: Some(other.file("ca.pem")),
        ..authority.tls()
    };
    let no_certificate = EtcdTls {
        cert_file: None,
        key_file: None,
        ..authority.tls()
    };
    for (tls, reason) in [
        (wrong_authority, "invalid peer certificate"),
        (no_certificate, ""),
    ] {
        let refused = Etcd::connect(config(tls)).await.unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(refused, ConnectError::Unreachable { .. }),
            "{text}"
        );
        assert!(
            text.contains(&etcd.url()) && text.contains(reason),
            "{text}"
        );
    }
    let missing = EtcdTls {
        ca_file: Some(Path::new("/nowhere/ca.pem").to_owned()),
        ..authority.tls()
    };
    let refused = Etcd::connect(config(missing))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("cannot use /nowhere/ca.pem: "),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_away_is_passed_over() {
    let etcd = etcd::Etcd::start(etcd::Etcd::NEWEST);
    // Nothing listens on the discard port of this address.
    let config = EtcdConfig::new(["127.9.9.9:9".to_owned(), etcd.url()]);
    let store = connect(config).await;
    store.create(KEY, "1".into(), None).await.unwrap();
    let mut changes = store
        .watch("/registry/", WatchStart::After(Revision(1)))
        .await
        .unwrap();
    assert!(matches!(
        changes.next().await,
        Some(Ok(WatchItem::Event(_)))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn c_146_keys_that_expire_together_share_a_lease() {
    let etcd = etcd::Etcd::start(etcd::Etcd::NEWEST);
    let store = connect(EtcdConfig::new([etcd.url()])).await;
    let leases = || {
        let answer = etcd.gateway("/v3/lease/leases", &json!({}));
        answer["leases"].as_array().map_or(0, Vec::len)
    };
    let hour = Some(Duration::from_secs(3_600));
    for index in 0..50 {
        let key = format!("/registry/events/{index}");
        store.create(&key, "1".into(), hour).await.unwrap();
    }
    assert_eq!(leases(), 1);
    let minute = Some(Duration::from_secs(60));
    store.create(KEY, "1".into(), minute).await.unwrap();
    assert_eq!(leases(), 2);
}

/// A lease that another tool revoked is not reused.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_gone_is_replaced() {
    let etcd = etcd::Etcd::start(etcd::Etcd::NEWEST);
    let store = connect(EtcdConfig::new([etcd.url()])).await;
    let hour = Some(Duration::from_secs(3_600));
    store.create(KEY, "1".into(), hour).await.unwrap();
    let leases = etcd.gateway("/v3/lease/leases", &json!({}));
    let id = &leases["leases"][0]["ID"];
    etcd.gateway("/v3/lease/revoke", &json!({"ID": id}));
    assert_eq!(store.get(KEY).await.unwrap().0, None);
    store.create(KEY, "2".into(), hour).await.unwrap();
    assert!(store.get(KEY).await.unwrap().0.is_some());
}

/// With any number of servers, history is compacted once per interval, to the revision of an interval ago.
#[tokio::test(flavor = "multi_thread")]
async fn servers_agree_on_compaction() {
    let etcd = etcd::Etcd::start(etcd::Etcd::NEWEST);
    let interval = Duration::from_millis(500);
    let config = EtcdConfig {
        compaction_interval: Some(interval),
        ..EtcdConfig::new([etcd.url()])
    };
    let started = Instant::now();
    let stores = [
        connect(config.clone()).await,
        connect(config.clone()).await,
        connect(config).await,
    ];
    let first = stores[0].create(KEY, "1".into(), None).await.unwrap();
    let compacted = loop {
        stores[1]
            .update_if(KEY, present(&stores[1]).await, "2".into(), None)
            .await
            .unwrap();
        let request = ListRequest {
            prefix: "/registry/".to_owned(),
            at: Some(first),
            ..ListRequest::default()
        };
        match stores[2].list(request).await {
            Ok(_) => {}
            Err(StorageError::Compacted { compacted, .. }) => break compacted,
            Err(error) => panic!("{error}"),
        }
        assert!(started.elapsed() < PATIENCE, "nothing is compacted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(compacted < stores[0].current_revision().await.unwrap());
    // Each round wrote the key once, by any of the servers. Rounds go on while it is read.
    let written = etcd.gateway("/v3/kv/range", &json!({"key": "Y29tcGFjdF9yZXZfa2V5"}));
    let written: u128 = written["kvs"][0]["version"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let rounds = started.elapsed().as_millis() / interval.as_millis();
    assert!((2..=rounds + 1).contains(&written), "{written} of {rounds}");
}

async fn present(store: &Etcd) -> Revision {
    store.get(KEY).await.unwrap().0.unwrap().revision
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_outside_the_prefix_are_not_watched_and_move_its_progress() {
    for release in etcd::Etcd::RELEASES {
        let etcd = etcd::Etcd::start(release);
        let store = connect(EtcdConfig::new([etcd.url()])).await;
        let mut changes = store.watch("/registry/", WatchStart::Now).await.unwrap();
        etcd.put("/other/a", &json!({}));
        let other = store.current_revision().await.unwrap();
        let last = store.create(KEY, "1".into(), None).await.unwrap();
        etcd.put("/other/b", &json!({}));
        let end = store.current_revision().await.unwrap();
        assert!(other < last && last < end);
        store.request_progress().await.unwrap();
        let mut keys = Vec::new();
        loop {
            match changes.next().await.unwrap().unwrap() {
                WatchItem::Event(event) => keys.push(event.key),
                WatchItem::Progress(revision) if revision >= end => break,
                WatchItem::Progress(_) => {}
            }
        }
        assert_eq!(keys, [KEY], "{release}");
    }
}

/// A permanent refusal of etcd is returned at once, with etcd's text.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_too_large_is_refused_and_nothing_breaks() {
    let etcd = etcd::Etcd::start(etcd::Etcd::NEWEST);
    let store = connect(EtcdConfig::new([etcd.url()])).await;
    // A request that is tried again takes three seconds each time; on a busy machine another one may take them once.
    let mut soonest = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        let refused = store.create(KEY, vec![0; 9 << 20].into(), None).await;
        let Err(StorageError::Refused(text)) = refused else {
            panic!("{refused:?}")
        };
        assert!(
            text.contains("larger than max") || text.contains("too large"),
            "{text}"
        );
        soonest = soonest.min(started.elapsed());
        if soonest < Duration::from_secs(3) {
            break;
        }
    }
    assert!(soonest < Duration::from_secs(3), "{soonest:?}");
    store.create(KEY, "1".into(), None).await.unwrap();
}

/// A request that etcd refuses permanently fails with etcd's own text.
#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_is_full_is_told_as_such_and_not_ready() {
    for release in etcd::Etcd::RELEASES {
        let etcd = etcd::Etcd::start_with(release, &["--quota-backend-bytes=4194304"]);
        let store = connect(EtcdConfig::new([etcd.url()])).await;
        assert_eq!(store.health().await, Ok(()));
        let value = bytes::Bytes::from(vec![b'x'; 500_000]);
        let mut written = Vec::new();
        let error = loop {
            let key = format!("/registry/things/{}", written.len());
            match store.create(&key, value.clone(), None).await {
                Ok(revision) => written.push((key, revision)),
                Err(error) => break error,
            }
        };
        let full = "etcdserver: mvcc: database space exceeded";
        assert_eq!(error, StorageError::Refused(full.to_owned()), "{release}");
        let health = store.health().await.unwrap_err().to_string();
        assert!(health.contains("NOSPACE"), "{health}");
        // The store is available, and reads still work.
        store.current_revision().await.unwrap();
        assert!(store.get(&written[0].0).await.unwrap().0.is_some());

        let mut last = Revision(0);
        for (key, revision) in written {
            last = store.delete_if(&key, revision).await.unwrap();
        }
        etcd.gateway(
            "/v3/kv/compaction",
            &json!({"revision": last.0.to_string(), "physical": true}),
        );
        etcd.gateway("/v3/maintenance/defragment", &json!({}));
        let alarms = etcd.gateway("/v3/maintenance/alarm", &json!({"action": "GET"}));
        for alarm in alarms["alarms"].as_array().unwrap() {
            let id = &alarm["memberID"];
            etcd.gateway(
                "/v3/maintenance/alarm",
                &json!({"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": id}),
            );
        }
        assert_eq!(store.health().await, Ok(()));
        store.create(KEY, "1".into(), None).await.unwrap();

        let etcd = etcd::Etcd::start(release);
        let store = connect(EtcdConfig::new([etcd.url()])).await;
        // More than the limit of 8 MiB that this etcd has.
        let large = bytes::Bytes::from(vec![b'x'; (8 << 20) + 1_000]);
        let refused = store.create("/registry/things/large", large, None).await;
        let too_large = StorageError::Refused("etcdserver: request is too large".to_owned());
        assert_eq!(refused, Err(too_large), "{release}");
        assert_eq!(store.health().await, Ok(()));
    }
}
