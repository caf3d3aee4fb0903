//! apiloom's own clients against real servers: over TLS against wardle-server, and in process against one in memory.

#![allow(clippy::unwrap_used, reason = "tests")]

mod apply;
mod changing_limits;
mod controllers;
mod generated;
mod guarded_socket;
mod informers;
mod over_tls;
mod sockets;
mod stream_limit;
mod verbs;
mod watch_ends;

use apiloom::server::{Backend, Builder, Config, InProcess, Server};
use apiloom_client::Client;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wardle::v1alpha1::{Fischer, Flunder, FlunderSpec};

/// A server in process with the kinds of wardle.
struct InMemory {
    client: Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl InMemory {
    async fn start() -> Self {
        Self::serve(|builder| builder).await
    }

    /// With the built-in kinds too.
    async fn with_built_in() -> Self {
        Self::serve(Builder::all_built_in).await
    }

    async fn serve(add: impl FnOnce(Builder) -> Builder) -> Self {
        // A folder that cannot be made: nothing may be written.
        let mut config = Config::new("wardle", "/proc/none");
        config.backend = Backend::Memory;
        let builder = Server::builder(config)
            .kind::<wardle::v1beta1::Flunder>()
            .kind::<Flunder>()
            .kind::<Fischer>();
        let server: InProcess = add(builder).build().await.unwrap().start().await.unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            client: Client::new(server.loopback().privileged()),
            stop,
            serving: tokio::spawn(server.serve(async { drop(stopped.await) })),
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
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
