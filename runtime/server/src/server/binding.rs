//! [`Server`] is complete but not listening, [`BoundServer`] is bound to its address.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiloom_http::ListedRoute;
use apiloom_registry::Registry;
use apiloom_registry::auth::{Access, Auth, StaticToken};
use futures_util::future::BoxFuture;
use rustls::ServerConfig;
use tokio::net::TcpListener;

use super::additions::Additions;
use super::capability::Capability;
use super::certificates::{self, Certificates};
use super::loopback::Loopback;
use super::running::{InProcess, RunningServer, ServerParts};
use super::services::ServiceResolver;
use super::stores::Stores;
use super::{Config, ServerError, kubeconfig, listener, private_file};

/// A server that is complete but not listening.
pub struct Server {
    pub(super) config: Config,
    pub(super) registry: Arc<Registry>,
    pub(super) stores: Stores,
    pub(super) auth: Auth,
    /// Asks it, for what was made before.
    pub(super) access: Access,
    pub(super) services: Arc<dyn ServiceResolver>,
    /// The capabilities of its parts.
    pub(super) parts: Vec<Arc<dyn Capability>>,
    pub(super) additions: Additions,
    /// The server that answers what this one does not serve.
    pub(super) next: Option<Box<Server>>,
}

impl Server {
    /// Finds the addresses of services.
    pub fn service_resolver(&self) -> Arc<dyn ServiceResolver> {
        Arc::clone(&self.services)
    }

    /// Starts the registry, for requests of the same process only: binds no socket, creates no certificates, tokens or
    /// kubeconfig.
    ///
    /// ```
    /// use apiloom_server::{Backend, Builder, Config};
    /// use http::Request;
    /// use http_body_util::{BodyExt as _, Empty};
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let mut config = Config::new("test", "");
    /// config.backend = Backend::Memory;
    /// let server = Builder::new(config).build().await?.start().await?;
    /// let loopback = server.loopback().privileged();
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    ///
    /// let request = Request::get("/api/v1/namespaces/default").body(Empty::<&[u8]>::new())?;
    /// let response = loopback.send(request).await;
    /// assert_eq!(response.status(), 200);
    /// let body = response.into_body().collect().await?.to_bytes();
    /// assert!(body.starts_with(br#"{"kind":"Namespace","apiVersion":"v1""#));
    ///
    /// drop(stop);
    /// serving.await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A store that cannot be read.
    pub async fn start(mut self) -> Result<InProcess, ServerError> {
        let started = start(&self.registry, &self.parts).await;
        self.stop_after_error(started).await?;
        let next = self.start_next().await?;
        Ok(InProcess(self.run(String::new(), next)?))
    }

    /// The routes of the server, which is started for it in this process and stopped.
    pub(super) async fn list_routes(self) -> Result<Vec<ListedRoute>, ServerError> {
        self.start().await?.0.list_routes().await
    }

    /// Binds the socket, starts the registry, generates a certificate and the administrator's token if they are
    /// missing, and writes `admin.kubeconfig`.
    ///
    /// # Errors
    /// An address that cannot be bound, a store that cannot be read, a directory or certificate that cannot be used.
    pub async fn bind(mut self) -> Result<BoundServer, ServerError> {
        let begun = self.begin().await;
        let begun = self.stop_after_error(begun).await?;
        let next = self.start_next().await?;
        let administrator = StaticToken::of_admin(&begun.token);
        self.auth.authenticators.push_first(administrator);
        let address = begun.url.trim_start_matches("https://").to_owned();
        Ok(BoundServer {
            listener: begun.listener,
            url: begun.url,
            kubeconfig: begun.kubeconfig,
            tls: begun.certificates.tls,
            running: self.run(address, next)?,
        })
    }

    /// The server in operation; `address` is that of its clients.
    fn run(
        self,
        address: String,
        next: Option<Box<RunningServer>>,
    ) -> Result<RunningServer, ServerError> {
        let parts = ServerParts {
            registry: self.registry,
            stores: self.stores,
            auth: self.auth,
            access: self.access,
            address,
            capabilities: self.parts,
            additions: self.additions,
            next,
        };
        RunningServer::new(&self.config, parts)
    }

    /// Starts the next server of the chain.
    async fn start_next(&mut self) -> Result<Option<Box<RunningServer>>, ServerError> {
        let Some(next) = self.next.take() else {
            return Ok(None);
        };
        let started = next.start_as_next().await;
        let running = self.stop_after_error(started).await?;
        Ok(Some(Box::new(running)))
    }

    /// Starts as the next server of another one, which has some parts for both.
    fn start_as_next(mut self) -> BoxFuture<'static, Result<RunningServer, ServerError>> {
        self.parts.retain(|part| !part.is_of_first());
        Box::pin(async move { Ok(self.start().await?.0) })
    }

    async fn begin(&self) -> Result<BoundParts, ServerError> {
        let config = &self.config;
        let address = SocketAddr::new(config.bind_address, config.secure_port);
        let listener = listener::bind(address).await?;
        let bound = listener.local_addr().map_err(|error| ServerError::Listen {
            address,
            reason: error.to_string(),
        })?;
        // In parallel: the certificates and the registry both wait for the disk.
        let ((certificates, token), ()) =
            tokio::try_join!(identity(config), start(&self.registry, &self.parts))?;
        let url = kubeconfig::server_url(bound);
        let kubeconfig = kubeconfig::write(config, &url, &certificates.authority_pem, &token)?;
        Ok(BoundParts {
            listener,
            url,
            kubeconfig,
            certificates,
            token,
        })
    }

    /// Stops the registry and closes the store if the server could not start. Background tasks that still read the
    /// store would log its end as a further error, beside the one that the user should see.
    async fn stop_after_error<T>(&self, outcome: Result<T, ServerError>) -> Result<T, ServerError> {
        if outcome.is_err() {
            self.registry.stop().await;
            self.stores.close().await;
        }
        outcome
    }
}

/// The results of binding a server.
struct BoundParts {
    listener: TcpListener,
    url: String,
    kubeconfig: PathBuf,
    certificates: Certificates,
    token: String,
}

/// Starts the registry, and then the parts of the server.
async fn start(registry: &Arc<Registry>, parts: &[Arc<dyn Capability>]) -> Result<(), ServerError> {
    let started = registry.start().await;
    started.map_err(|error| ServerError::Storage(error.to_string()))?;
    for part in parts {
        part.start(registry).await?;
    }
    Ok(())
}

/// A server bound to its address; connections wait in the kernel's queue until [`BoundServer::serve`].
pub struct BoundServer {
    listener: TcpListener,
    url: String,
    kubeconfig: PathBuf,
    tls: Arc<ServerConfig>,
    running: RunningServer,
}

impl BoundServer {
    /// URL for clients: `https://127.0.0.1:6443`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The registry, whose catalog can be changed; see [`Registry::change`].
    pub fn registry(&self) -> Arc<Registry> {
        self.running.registry()
    }

    /// A client of this server that needs no connection.
    pub fn loopback(&self) -> Loopback {
        self.running.loopback.clone()
    }

    /// Completes when the parts of the server have done what they do before it is ready, while [`BoundServer::serve`] runs: such as to install
    /// definitions and to serve their kinds, and to make the APIServices of the server's own versions.
    /// Until then `/readyz` fails.
    ///
    /// # Errors
    /// What the server refuses, for instance since a stored definition has the names, and what is not served in a minute.
    pub fn install(&self) -> impl Future<Output = Result<(), ServerError>> + Send + use<> {
        self.running.install()
    }

    /// Serves until `shutdown` completes, then ends watches, waits for other requests in flight and closes the store.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            tls,
            running,
            ..
        } = self;
        let filters = Arc::clone(&running.filters);
        let drain = running.drain();
        let listen = |stop| listener::serve(listener, tls, filters, stop, drain);
        running.serve(listen, shutdown).await;
    }
}

/// The serving certificate and the administrator's token; generates those that are missing.
async fn identity(config: &Config) -> Result<(Certificates, String), ServerError> {
    let config = config.clone();
    let cert_dir = config.cert_dir.clone();
    let made = tokio::task::spawn_blocking(move || {
        private_file::make_dir(&config.data_dir)?;
        let certificates = certificates::load_or_make(&config)?;
        Ok((certificates, kubeconfig::load_or_make_token(&config)?))
    });
    made.await.unwrap_or_else(|error| {
        Err(ServerError::Certificate {
            path: cert_dir,
            reason: error.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use apiloom_storage::{Memory, Storage, StorageError};

    use super::*;
    use crate::server::Builder;

    #[tokio::test]
    async fn a_server_that_cannot_start_closes_its_store() {
        let store: Arc<dyn Storage> = Memory::new();
        // A directory in which no certificate can be created.
        let config = Config::new("test", "/proc/none");
        let builder = Builder::new(config).storage(Arc::clone(&store));
        let bound = builder.build().await.unwrap().bind().await;
        assert!(bound.is_err());
        let closed = store.current_revision().await;
        assert!(
            matches!(closed, Err(StorageError::Unavailable(_))),
            "{closed:?}"
        );
    }
}
