//! The conformance suite on the oldest supported etcd and on a newer one.

use std::sync::Arc;

use apiloom_storage::conformance::{Backend, MOST_READ_AT_ONCE};
use apiloom_storage::{Etcd, EtcdConfig, Storage};
use apiloom_tests::etcd;

async fn open(server: &etcd::Etcd) -> Arc<dyn Storage> {
    let mut config = EtcdConfig::new([server.url()]);
    config.prefix = String::new();
    config.list_chunk = MOST_READ_AT_ONCE;
    Etcd::connect(config).await.unwrap()
}

macro_rules! release {
    ($module:ident, $release:literal) => {
        mod $module {
            use super::*;

            struct Place(etcd::Etcd);

            impl Backend for Place {
                async fn new() -> Self {
                    Self(etcd::Etcd::start($release))
                }

                async fn open(&self) -> Arc<dyn Storage> {
                    open(&self.0).await
                }
            }

            apiloom_storage::conformance_tests!(Place);

            mod through_the_cache {
                apiloom_storage::conformance_tests!(
                    apiloom_storage::conformance::ThroughCache<super::Place>
                );
            }
        }
    };
}

release!(etcd_3_4, "3.4");
release!(etcd_3_5, "3.5");
