//! apiloom's own clients against real servers: over TLS against wardle-server, and in process against one in memory.

#![allow(clippy::unwrap_used, reason = "tests")]

mod apply;
mod certificates;
mod certificates_of_go;
mod changing_limits;
mod controllers;
mod definitions;
mod generated;
mod guarded_socket;
mod informers;
mod over_tls;
mod sockets;
mod stream_limit;
mod verbs;
mod watch_ends;

use apiloom::testing::{TestServer, TestServerBuilder};
use wardle::v1alpha1::{Fischer, Flunder, FlunderSpec};

/// A server in memory with the kinds of wardle, without its rules.
async fn server() -> TestServer {
    wardle().build().await.unwrap()
}

fn wardle() -> TestServerBuilder<TestServer> {
    TestServer::builder().install(|builder| {
        builder
            .kind::<wardle::v1beta1::Flunder>()
            .kind::<Flunder>()
            .kind::<Fischer>()
    })
}

fn flunder(name: &str) -> Flunder {
    Flunder {
        metadata: apiloom_meta::ObjectMeta {
            name: Some(name.to_owned()),
            labels: [("app".to_owned(), name.to_owned())].into(),
            ..Default::default()
        },
        spec: Some(FlunderSpec {
            reference: Some("other".to_owned()),
            reference_type: None,
        }),
        status: None,
    }
}
