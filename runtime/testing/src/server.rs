//! [`TestServer`]: a server for one test.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_client::{Client, ClientBuilder};
use apiloom_server::Loopback;

use super::control::Control;
use super::error::TestError;
use super::port::{TestPort, Token};
use super::running::Running;
use super::shared::SharedState;
use super::transport::TestTransport;

/// A server of one test: in the same process, in memory, without files, certificates, sockets and threads. It stops when it is
/// dropped.
///
/// ```
/// use apiloom_kinds::core::v1::Namespace;
/// use apiloom_testing::TestServer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let server = TestServer::builder().build().await?;
/// let namespaces = server.client().cluster::<Namespace>();
/// assert_eq!(namespaces.list().await?.items.len(), 1);
/// let actions = server.control().actions();
/// assert_eq!(actions[0].to_string(), "list namespaces");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })
/// # }
/// ```
pub struct TestServer {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) loopback: Loopback,
    pub(crate) running: Arc<Running>,
    pub(crate) token: Arc<OnceLock<Token>>,
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").finish_non_exhaustive()
    }
}

impl TestServer {
    /// A client that may do everything. Its requests fail when the server is dropped.
    pub fn client(&self) -> Client {
        Client::new(self.transport())
    }

    /// As [`TestServer::client`], with settings such as the user agent.
    pub fn client_builder(&self) -> ClientBuilder {
        Client::builder(self.transport())
    }

    /// The transport of [`TestServer::client`], for clients of other kinds. Its requests may do everything.
    pub fn transport(&self) -> TestTransport {
        TestTransport::new(Arc::clone(&self.shared), self.loopback.privileged(), None)
    }

    /// A client of kube-rs that may do everything, with the namespace `default`.
    #[cfg(feature = "kube")]
    pub fn kube(&self) -> kube::Client {
        kube::Client::new(self.transport(), "default")
    }

    /// What the test sees of the server, and does to it.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared), None)
    }

    /// Serves plain HTTP on a free port of 127.0.0.1, for clients of other processes such as kubectl, until the server is
    /// dropped. Their requests need the token of the port.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn listen(&self) -> Result<TestPort, TestError> {
        let token = self.token.get_or_init(Token::generate).clone();
        let transport = TestTransport::new(Arc::clone(&self.shared), self.loopback.clone(), None);
        let (port, serve) = TestPort::open(token, transport).await?;
        self.running.add_port(serve);
        Ok(port)
    }

    /// Stops the server and waits until all of its tasks have ended. Watches end; requests in flight are answered.
    pub async fn stop(self) {
        self.running.stop_and_wait().await;
    }

    /// The clients and the control of a server that runs until the last of them is dropped.
    pub(crate) fn into_client(self) -> (Client, Control) {
        let transport = TestTransport::new(
            Arc::clone(&self.shared),
            self.loopback.privileged(),
            Some(Arc::clone(&self.running)),
        );
        let control = Control::new(self.shared, Some(self.running));
        (Client::new(transport), control)
    }
}
