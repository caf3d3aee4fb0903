//! Stores that several servers share beside stores that they do not share.

use std::fmt;
use std::sync::Arc;

use apiloom::apis::core::v1::{ConfigMap, Event};
use apiloom::server::{self, Backend, Builder, Config, ControllerNames};
use apiloom_storage::{Layer, Memory, Storage};
use async_trait::async_trait;

/// A store that other servers may have too.
struct Shared(Arc<Memory>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for Shared {
    fn behind(&self) -> &dyn Storage {
        &*self.0
    }
    fn is_shared(&self) -> bool {
        true
    }
    /// Another server may still use it.
    async fn close(&self) {}
}

pub(super) fn shared() -> Arc<dyn Storage> {
    Arc::new(Shared(Memory::new()))
}

async fn check(
    names: ControllerNames,
    configure: impl FnOnce(Builder) -> Builder,
) -> Result<(), String> {
    let mut config = Config::new("garbage", "/proc/none");
    config.backend = Backend::Memory;
    config.controllers = names;
    let server = configure(server::builder(config).all_built_in());
    let started = server.build().await.unwrap().start().await;
    started.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_server_with_shared_and_unshared_stores_does_not_run_controllers() {
    let all = ControllerNames::default;
    let refused = check(all(), |builder| builder.storage_of::<ConfigMap>(shared())).await;
    assert_eq!(
        refused.unwrap_err(),
        "cannot open the store: configmaps is in a store that other servers may use too, and namespaces is in one of \
         this server alone, so that the server's controllers could delete objects whose owners another server has; use \
         shared stores for all kinds or for none, or run no controllers (--controllers=)"
    );
    let refused = check(all(), |builder| {
        builder
            .storage(shared())
            .storage_of::<ConfigMap>(Memory::new())
    });
    assert!(refused.await.is_err());
    let fine = [
        check(ControllerNames::NONE, |builder| {
            builder.storage_of::<ConfigMap>(shared())
        })
        .await,
        check(all(), |builder| builder.storage(shared())).await,
        // Events have no owners and dependents.
        check(all(), |builder| builder.storage_of::<Event>(shared())).await,
    ];
    assert_eq!(fine, [Ok(()), Ok(()), Ok(())]);
}
