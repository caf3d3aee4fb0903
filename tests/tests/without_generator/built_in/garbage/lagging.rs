//! Deletions with dependents whose events are late.

use std::fmt;
use std::sync::Arc;

use apiloom::apis::core::v1::ConfigMap;
use apiloom_storage::{Layer, Memory, Storage, StorageError, WatchStart, WatchStream};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::watch;

use super::super::BuiltIns;
use super::{create_kind, delete, settle, until_gone};

/// A store whose watches can be held up.
struct Lagging {
    store: Arc<Memory>,
    is_open: watch::Sender<bool>,
}

impl fmt::Debug for Lagging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lagging").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for Lagging {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let is_open = self.is_open.subscribe();
        let items = self.store.watch(prefix, start).await?;
        let items = items.then(move |item| {
            let mut is_open = is_open.clone();
            async move {
                is_open.wait_for(|is_open| *is_open).await.unwrap();
                item
            }
        });
        Ok(items.boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orphan_and_foreground_deletions_wait_for_late_events_of_dependents() {
    let store = Arc::new(Lagging {
        store: Memory::new(),
        is_open: watch::Sender::new(true),
    });
    let of_config_maps: Arc<dyn Storage> = Arc::clone(&store) as _;
    let server = BuiltIns::of(|builder| {
        builder
            .all_built_in()
            .storage_of::<ConfigMap>(of_config_maps)
    })
    .await;
    settle(&server).await;
    for policy in ["Orphan", "Foreground"] {
        let owner = create_kind(&server, "Secret", "secrets", "owner", &[]).await;
        store.is_open.send_replace(false);
        create_kind(&server, "ConfigMap", "configmaps", "dependent", &[owner]).await;
        delete(&server, "secrets/owner", policy).await;
        settle(&server).await;
        let (code, _) = server.send("GET", "secrets/owner", &Value::Null).await;
        assert_eq!(code, 200, "{policy}: its dependents are not known yet");
        store.is_open.send_replace(true);
        until_gone(&server, "secrets/owner").await;
        settle(&server).await;
        let (code, dependent) = server
            .send("GET", "configmaps/dependent", &Value::Null)
            .await;
        if policy == "Orphan" {
            assert_eq!(code, 200);
            assert_eq!(dependent["metadata"]["ownerReferences"], Value::Null);
            delete(&server, "configmaps/dependent", "Background").await;
        } else {
            assert_eq!(code, 404, "it goes before its owner");
        }
    }
    server.stop().await;
}
