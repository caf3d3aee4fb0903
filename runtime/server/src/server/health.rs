//! The checks behind `/healthz`, `/livez` and `/readyz`.

use std::sync::Arc;

use apiloom_client::controller::CancellationToken;
use apiloom_http::documents::health::{Check, Health, Probe};
use apiloom_registry::Registry;
use apiloom_storage::{Storage, StorageError};
use futures_util::future::try_join_all;

use super::additions::Additions;
use super::capability::Capability;
use super::hooks::Hook;
use super::stores::Stores;

/// The checks of a server over these stores; `/readyz` fails once `stopping` is cancelled.
pub(super) fn checks(
    stores: &Stores,
    registry: Arc<Registry>,
    stopping: CancellationToken,
    additions: &Additions,
    parts: &[Arc<dyn Capability>],
) -> Health {
    let is_stopping = move || {
        if stopping.is_cancelled() {
            Err("process is shutting down".to_owned())
        } else {
            Ok(())
        }
    };
    let filled = move || match registry.not_filled() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(missing.join("; ")),
    };
    let own = [
        Check::new("watch-cache", filled).on(&[Probe::Readyz]),
        // The registry is started before the socket is read, so this cannot fail.
        Check::new("poststarthook/start-registry", || Ok(())),
    ];
    let last = Check::new("shutdown", is_stopping).on(&[Probe::Readyz]);
    let checks = of_stores(stores).into_iter().chain(own);
    let checks = checks.chain(additions.hooks.iter().map(Hook::check));
    let checks = checks.chain(additions.checks.iter().cloned());
    let of_parts = parts.iter().flat_map(|part| part.checks());
    Health::new(checks.chain(of_parts).chain([last]))
}

/// The checks of the stores; for etcd with the name that kube-apiserver uses.
fn of_stores(stores: &Stores) -> [Check; 2] {
    if stores.is_etcd() {
        let answers = |store: Arc<dyn Storage>| async move {
            store.current_revision().await.map(drop).map_err(|error| {
                // Logged only: the address of etcd is not for clients.
                tracing::warn!(%error, "etcd does not answer");
                StorageError::Unavailable("etcd does not answer".to_owned())
            })
        };
        // Liveness ignores alarms of etcd, such as a full database: a restart of this server would not help.
        let healthy = |store: Arc<dyn Storage>| async move { store.health().await };
        return [
            check("etcd", stores, answers),
            check("etcd-readiness", stores, healthy).on(&[Probe::Readyz]),
        ];
    }
    [
        // Liveness needs only an answer: a restart does not repair damaged data, and may prevent reads of the rest of
        // the store.
        check("storage", stores, |store| async move {
            store.current_revision().await.map(|_| ())
        })
        .on(&[Probe::Livez]),
        check(
            "storage",
            stores,
            |store| async move { store.health().await },
        )
        .on(&[Probe::Healthz, Probe::Readyz]),
    ]
}

/// A check that runs the same request on all stores.
fn check<F>(
    name: &str,
    stores: &Stores,
    ask: impl Fn(Arc<dyn Storage>) -> F + Send + Sync + 'static,
) -> Check
where
    F: Future<Output = Result<(), StorageError>> + Send + 'static,
{
    let stores = stores.all();
    Check::from_async(name, move || {
        let answers = try_join_all(stores.iter().cloned().map(&ask));
        async move { answers.await.map(|_| ()).map_err(|error| error.to_string()) }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use apiloom_storage::{Embedded, EmbeddedConfig, Memory};
    use http_body_util::BodyExt as _;

    use super::*;

    async fn ask(health: &Health, path: &str) -> (u16, String) {
        let (request, ()) = http::Request::get(path).body(()).unwrap().into_parts();
        let response = health.respond(&request).await.expect("a check");
        let code = response.status().as_u16();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(text.to_vec()).unwrap())
    }

    fn over(storage: Arc<dyn Storage>) -> Health {
        let stores = Stores::one(storage);
        let registry = Arc::new(stores.registry().build().unwrap());
        let stopping = CancellationToken::new();
        checks(&stores, registry, stopping, &Additions::default(), &[])
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_fails_every_probe() {
        let store = Memory::new();
        let health = over(store.clone());
        for probe in ["healthz", "livez", "readyz"] {
            assert_eq!(ask(&health, &format!("/{probe}/storage")).await.0, 200);
        }
        store.close().await;
        for probe in ["healthz", "livez", "readyz"] {
            let (code, text) = ask(&health, &format!("/{probe}/storage")).await;
            assert_eq!(code, 500);
            assert!(text.contains("the store is unavailable"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_damaged_store_is_alive_but_not_ready() {
        let dir = tempfile::tempdir().unwrap();
        let store = Embedded::open(dir.path(), EmbeddedConfig::default()).unwrap();
        let value = "what was written";
        store.create("/r/a", value.into(), None).await.unwrap();
        store.close().await;
        drop(store);
        overwrite(dir.path(), value, "what was nowhere");

        let config = EmbeddedConfig {
            verify_interval: Duration::from_millis(1),
            ..EmbeddedConfig::default()
        };
        let health = over(Embedded::open(dir.path(), config).unwrap());
        let damaged = loop {
            match ask(&health, "/readyz/storage").await {
                (200, _) => tokio::time::sleep(Duration::from_millis(1)).await,
                (_, text) => break text,
            }
        };
        assert_eq!(
            damaged,
            "internal server error: corrupt store: the verification in the background found damage, see the log\n"
        );
        assert_eq!(ask(&health, "/healthz/storage").await.0, 500);
        assert_eq!(ask(&health, "/livez").await, (200, "ok".into()));
    }

    /// Replaces a text by one of the same length in whichever file holds it.
    fn overwrite(dir: &std::path::Path, from: &str, to: &str) {
        let mut found = 0;
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let position = bytes
                .windows(from.len())
                .position(|window| window == from.as_bytes());
            if let Some(at) = position {
                bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
                std::fs::write(&path, bytes).unwrap();
                found += 1;
            }
        }
        assert_eq!(found, 1, "one file holds the value");
    }
}
