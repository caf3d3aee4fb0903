//! The server behind a service: its address, its transports, and who this server is there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::config::read_file;
use apiloom_client::transport::{Body, HttpTransport, TlsOptions, Transport as _, TransportError};
use async_trait::async_trait;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Request, Response};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::sync::Semaphore;

use apiloom_registry::UserInfo;

const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
/// What the names of all headers about the user's further attributes begin with.
const REMOTE_EXTRA: &str = "x-remote-extra-";

/// How long a connection may take until it is ready.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the files of a client certificate are read until they are of one pair.
const PAIR_ATTEMPTS: usize = 5;

/// Time between two of these attempts.
const BETWEEN_PAIR_ATTEMPTS: Duration = Duration::from_millis(50);

/// How many requests with a deadline one server may have in flight: fewer than this server takes, so that one that hangs leaves
/// room for others.
const MAX_REQUESTS: usize = 100;

/// How many watches and other streams one server may have: what its connections can carry.
const MAX_STREAMS: usize = 10_000;

/// The service of another server, and how its certificate is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteTarget {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The port of the service.
    pub port: u16,
    /// Certificates of authorities in PEM; empty for those of the system.
    pub authorities: Vec<u8>,
    /// Whether no certificate is verified (`insecureSkipTLSVerify`).
    pub accepts_any_certificate: bool,
}

/// The client certificate of this server, by which others know that it has authenticated the users that it names.
#[derive(Debug, Default)]
pub struct ProxyIdentity {
    /// The files of the certificate and the key.
    files: Option<(PathBuf, PathBuf)>,
    /// Their content, as it was last read.
    content: Mutex<Option<Arc<Pem>>>,
}

/// A certificate and its key.
#[derive(Debug, PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pem {
    /// Checks that the certificate is for the key.
    ///
    /// # Errors
    /// Why the pair cannot be used.
    fn check(&self) -> Result<(), String> {
        let unusable = |why: &dyn fmt::Display| {
            format!("cannot use the client certificate for other servers: {why}")
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| unusable(&error))?;
        if chain.is_empty() {
            return Err(unusable(&"there is no certificate in PEM form in it"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| unusable(&format!("its private key cannot be read: {error}")))?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => unusable(&"it is not for the private key"),
            error => unusable(&error),
        })?;
        Ok(())
    }
}

/// Why a server cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The service has no address: the reason and the message of the condition.
    #[error("{message}")]
    Address {
        /// The reason, a word.
        reason: &'static str,
        /// The message, a sentence.
        message: String,
    },
    /// No connection can be made with these settings.
    #[error("{0}")]
    Settings(String),
}

/// Finds the addresses of services.
#[async_trait]
pub trait Addresses: fmt::Debug + Send + Sync + 'static {
    /// The host, without brackets, and the port of a service.
    ///
    /// # Errors
    /// [`Unreachable::Address`].
    async fn address(&self, target: &RemoteTarget) -> Result<(String, u16), Unreachable>;
}

/// Another server. Its connections are shared by all APIServices with the same settings.
pub struct RemoteServer {
    target: RemoteTarget,
    addresses: Arc<dyn Addresses>,
    identity: Arc<ProxyIdentity>,
    present: Mutex<Option<Arc<Connections>>>,
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
}

/// The transports to one address.
#[derive(Debug)]
pub struct Connections {
    /// The URL of the service in a cluster, which names it in messages.
    pub url: String,
    address: (String, u16),
    identity: Option<Arc<Pem>>,
    transport: HttpTransport,
    /// For requests that switch protocols.
    http1: HttpTransport,
}

impl PartialEq for RemoteServer {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer")
            .field("namespace", &self.target.namespace)
            .field("name", &self.target.name)
            .field("port", &self.target.port)
            .finish_non_exhaustive()
    }
}

impl ProxyIdentity {
    /// The certificate and the key in these files, which are read when they are needed and when they change.
    pub fn new(files: Option<(PathBuf, PathBuf)>) -> Self {
        Self {
            files,
            content: Mutex::new(None),
        }
    }

    /// Reads the files, in a thread of the runtime's pool. Without files no thread is started. What was read last stays until
    /// both files are of one pair.
    ///
    /// # Errors
    /// A file that cannot be used, and why.
    pub async fn read(self: &Arc<Self>) -> Result<(), (PathBuf, String)> {
        let Some((certificate, key)) = self.files.clone() else {
            return Ok(());
        };
        let identity = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || identity.read_now(&certificate, &key));
        // No error of a file: the runtime stops, or the thread panicked, which the runtime reports.
        read.await.unwrap_or(Ok(()))
    }

    fn read_now(&self, certificate: &Path, key: &Path) -> Result<(), (PathBuf, String)> {
        let read = |path: &Path| {
            read_file(path).map_err(|error| {
                let reason =
                    format!("cannot read the client certificate for other servers: {error}");
                (path.to_owned(), reason)
            })
        };
        let mut attempts = 1;
        let pem = loop {
            let pem = Pem {
                certificate: read(certificate)?,
                key: read(key)?,
            };
            if self.content.lock().as_deref() == Some(&pem) {
                return Ok(());
            }
            match pem.check() {
                Ok(()) => break pem,
                // They are renewed one after the other.
                Err(_) if attempts < PAIR_ATTEMPTS => {
                    attempts += 1;
                    std::thread::sleep(BETWEEN_PAIR_ATTEMPTS);
                }
                Err(reason) => return Err((certificate.to_owned(), reason)),
            }
        };
        *self.content.lock() = Some(Arc::new(pem));
        Ok(())
    }

    fn content(&self) -> Option<Arc<Pem>> {
        self.content.lock().clone()
    }
}

impl RemoteServer {
    /// The server of a service. No connection is made yet.
    pub(crate) fn new(
        target: RemoteTarget,
        addresses: Arc<dyn Addresses>,
        identity: Arc<ProxyIdentity>,
    ) -> Self {
        Self {
            target,
            addresses,
            identity,
            present: Mutex::new(None),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    /// The service.
    pub fn target(&self) -> &RemoteTarget {
        &self.target
    }

    /// The transports to the present address of the service, with the present certificate of this server.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub async fn connections(&self) -> Result<Arc<Connections>, Unreachable> {
        let address = self.addresses.address(&self.target).await?;
        let identity = self.identity.content();
        let mut present = self.present.lock();
        if let Some(present) = &*present
            && present.address == address
            && present.identity == identity
        {
            return Ok(Arc::clone(present));
        }
        let connections = Connections::new(address, identity, &self.target)?;
        Ok(Arc::clone(present.insert(Arc::new(connections))))
    }
}

impl Connections {
    fn new(
        address: (String, u16),
        identity: Option<Arc<Pem>>,
        target: &RemoteTarget,
    ) -> Result<Self, Unreachable> {
        let host = format!("{}.{}.svc", target.name, target.namespace);
        let url = format!("https://{host}:{}", target.port);
        let tls = TlsOptions {
            authorities: Some(target.authorities.clone())
                .filter(|pem| !pem.is_empty() && !target.accepts_any_certificate),
            certificate: identity.as_ref().map(|pem| pem.certificate.clone()),
            key: identity.as_ref().map(|pem| pem.key.clone()),
            server_name: Some(host),
            accepts_any_certificate: target.accepts_any_certificate,
        };
        let builder = || {
            let builder = HttpTransport::builder(&url).tls(tls.clone());
            let builder = builder.connect_to(&address.0, address.1);
            builder.connect_timeout(CONNECT_TIMEOUT)
        };
        let settings = |error: &dyn fmt::Display| Unreachable::Settings(error.to_string());
        let transport = builder().build().map_err(|error| settings(&error))?;
        let http1 = builder().http1_only().build();
        Ok(Self {
            http1: http1.map_err(|error| settings(&error))?,
            url,
            address,
            identity,
            transport,
        })
    }

    /// Sends a request, whose URI is a path.
    ///
    /// # Errors
    /// If there is no response.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Body>, TransportError> {
        self.transport.call(request).await
    }

    /// Sends a request that asks for another protocol.
    ///
    /// # Errors
    /// If there is no response.
    pub(super) async fn send_upgrade(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Body>, TransportError> {
        self.http1.call(request).await
    }
}

/// Adds the headers of requests of this server itself.
pub fn add_aggregator(headers: &mut HeaderMap) {
    headers.insert(
        REMOTE_USER,
        HeaderValue::from_static("system:kube-aggregator"),
    );
    headers.insert(REMOTE_GROUP, HeaderValue::from_static("system:masters"));
}

/// Adds the headers that name the user of a request.
///
/// # Errors
/// If a part of the user cannot be a header.
pub(crate) fn add_user(headers: &mut HeaderMap, user: &UserInfo) -> Result<(), String> {
    let value = |text: &str| {
        let value = HeaderValue::from_bytes(text.as_bytes());
        value.map_err(|_| format!("{text:?} of the user cannot be sent in a header"))
    };
    headers.insert(REMOTE_USER, value(&user.name)?);
    if !user.uid.is_empty() {
        headers.insert(REMOTE_UID, value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(REMOTE_GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{REMOTE_EXTRA}{}", escaped_key(key));
        let name = HeaderName::try_from(name);
        let name =
            name.map_err(|_| format!("{key:?} of the user cannot be the name of a header"))?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(())
}

/// A key of a user's attributes in the name of a header: what a name cannot have is escaped, and the percent sign.
fn escaped_key(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// A certificate and its key, in PEM.
    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["proxy".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[tokio::test]
    async fn a_certificate_is_never_used_with_the_key_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
        let identity = Arc::new(ProxyIdentity::new(Some((certificate.clone(), key.clone()))));
        let ((old, old_key), (new, new_key)) = (pair(), pair());
        std::fs::write(&certificate, &new).unwrap();
        std::fs::write(&key, &old_key).unwrap();
        let (path, reason) = identity.read().await.unwrap_err();
        assert_eq!(path, certificate);
        assert!(
            reason.ends_with("it is not for the private key"),
            "{reason}"
        );
        assert!(identity.content().is_none());
        std::fs::write(&certificate, &old).unwrap();
        identity.read().await.unwrap();
        let before = identity.content().unwrap();
        // One of the files is new: the pair stays.
        std::fs::write(&certificate, &new).unwrap();
        identity.read().await.unwrap_err();
        assert_eq!(identity.content().unwrap(), before);
        std::fs::write(&certificate, "").unwrap();
        identity.read().await.unwrap_err();
        assert_eq!(identity.content().unwrap(), before);
        // The other file follows while the first is read again.
        std::fs::write(&certificate, &new).unwrap();
        let read = identity.read();
        let write = async { std::fs::write(&key, &new_key).unwrap() };
        let (read, ()) = tokio::join!(read, write);
        read.unwrap();
        assert_eq!(identity.content().unwrap().key, new_key.as_bytes());
    }

    #[test]
    fn a_user_is_named_in_headers() {
        let mut user = UserInfo {
            name: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            ..UserInfo::default()
        };
        let key = "example.com/team%".to_owned();
        user.extra.insert(key, vec!["x".to_owned(), "y".to_owned()]);
        let mut headers = HeaderMap::new();
        add_user(&mut headers, &user).unwrap();
        let all = |name: &str| -> Vec<&[u8]> {
            headers
                .get_all(name)
                .iter()
                .map(HeaderValue::as_bytes)
                .collect()
        };
        assert_eq!(all("x-remote-user"), [b"jane"]);
        assert_eq!(all("x-remote-uid"), [b"7"]);
        assert_eq!(all("x-remote-group"), [b"a", b"b"]);
        assert_eq!(all("x-remote-extra-example.com%2fteam%25"), [b"x", b"y"]);
    }

    #[test]
    fn a_user_that_no_header_can_name_is_refused() {
        for text in ["a\nb", "a\0"] {
            let user = UserInfo {
                name: "jane".to_owned(),
                groups: vec![text.to_owned()],
                ..UserInfo::default()
            };
            assert!(add_user(&mut HeaderMap::new(), &user).is_err(), "{text:?}");
        }
    }
}
