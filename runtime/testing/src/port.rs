//! A port of a test server, for clients in other processes.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apiloom_server::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::error::TestError;
use super::transport::TestTransport;

/// Delay before accepting again after an error of the operating system, such as too many open files.
const RETRY: Duration = Duration::from_millis(50);

/// The bearer token of a port. Without it, any process of the machine could write to the server.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn generate() -> Self {
        let [first, second] = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        Self(format!("{}{}", first.simple(), second.simple()))
    }
}

/// Accepts the token of a server's ports, once it has one.
pub(crate) struct TokenAuthenticator(pub(crate) Arc<OnceLock<Token>>);

impl Authenticator for TokenAuthenticator {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let given = credentials.token();
        let expected = self.0.get();
        let is_known = given.zip(expected).is_some_and(|(given, expected)| {
            let expected = expected.0.as_bytes();
            // All bytes are compared, so that the time says nothing about the first wrong one.
            let difference = given
                .iter()
                .zip(expected)
                .fold(0, |sum, (a, b)| sum | (a ^ b));
            given.len() == expected.len() && difference == 0
        });
        Answer::Now(Ok(is_known.then(|| {
            Arc::new(UserInfo {
                name: "kubernetes-admin".to_owned(),
                groups: vec!["system:masters".to_owned()],
                ..UserInfo::default()
            })
        })))
    }
}

/// A port of a test server on 127.0.0.1. It is closed with the server.
#[derive(Clone)]
pub struct TestPort {
    address: SocketAddr,
    token: Token,
}

/// Without the token.
impl fmt::Debug for TestPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestPort")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl TestPort {
    /// Opens a free port; the future serves it until it is dropped.
    pub(crate) async fn open(
        token: Token,
        transport: TestTransport,
    ) -> Result<(Self, impl Future<Output = ()> + use<>), TestError> {
        let failed = |error| TestError::Io("cannot listen on 127.0.0.1".to_owned(), error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok((Self { address, token }, serve(listener, transport)))
    }

    /// The URL of the server: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token of its administrator.
    pub fn token(&self) -> &str {
        &self.token.0
    }

    /// A kubeconfig with the URL and the token, as JSON, which is YAML too.
    pub fn kubeconfig(&self) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": { "server": self.url() } }],
            "users": [{ "name": "test", "user": { "token": self.token() } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
            "current-context": "test",
        });
        format!("{config:#}\n")
    }

    /// Writes [`TestPort::kubeconfig`] to a new file, which only its owner can read.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> Result<(), TestError> {
        use std::io::Write as _;
        let path = path.as_ref();
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(path)
            .and_then(|mut file| file.write_all(self.kubeconfig().as_bytes()));
        written.map_err(|error| TestError::Io(path.display().to_string(), error))
    }
}

async fn serve(listener: TcpListener, transport: TestTransport) {
    // Connections end when this is dropped.
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        // Tasks that have ended.
        while connections.try_join_next().is_some() {}
        let service = TowerToHyperService::new(transport.clone());
        connections.spawn(async move {
            let builder = auto::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
            // Of the client, or a fault of the test.
            let _ = connection.await;
        });
    }
}
