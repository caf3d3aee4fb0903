//! Two servers in the process of the test: one that aggregates, and one that is aggregated.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use apiloom::apis::core::v1::{ConfigMap, Secret};
use apiloom::prelude::ObjectMeta;
use apiloom::server::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
use apiloom::server::services::{ServiceAddress, ServiceError, ServicePort, ServiceResolver};
use apiloom::server::{self, Config, PartsConfig, Server, TlsFiles, async_trait};
use apiloom_tests::StoreOfTest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, oneshot};
use tokio::task::JoinHandle;

use crate::{Backend, Client};

/// Kettle boils water.
#[apiloom::resource(
    group = "kitchen.example.com",
    version = "v1",
    namespaced,
    shortname = "kt"
)]
pub(crate) struct Kettle {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: KettleSpec,
}

#[apiloom::api]
pub(crate) struct KettleSpec {
    /// How much it holds.
    pub(crate) litres: i32,
}

/// The token of the user `tester`.
pub(super) const TOKEN: &str = "token-of-the-tester";

/// A certificate authority, with certificates of both sides in files.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
    /// The client certificate of the server that aggregates.
    pub(super) proxy_der: Vec<u8>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut authority = Self {
            issuer,
            dir: tempfile::tempdir().unwrap(),
            proxy_der: Vec::new(),
        };
        authority.proxy_der = authority.issue("proxy");
        authority
    }

    /// The PEM of the authority, in base64.
    pub(super) fn bundle(&self) -> String {
        STANDARD.encode(self.issuer.pem())
    }

    /// Writes a certificate for a name, and its key; returns the certificate.
    fn issue(&self, name: &str) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = self.files(name);
        std::fs::write(files.certificate, certificate.pem()).unwrap();
        std::fs::write(files.private_key, key.serialize_pem()).unwrap();
        certificate.der().to_vec()
    }

    /// The files of a certificate that was issued for this name.
    pub(super) fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            certificate: self.dir.path().join(format!("{name}.crt")),
            private_key: self.dir.path().join(format!("{name}.key")),
        }
    }

    /// The files of a server certificate for a service in the namespace default.
    pub(super) fn of_service(&self, service: &str) -> TlsFiles {
        let name = format!("{service}.default.svc");
        self.issue(&name);
        self.files(&name)
    }
}

/// An address that is free now.
pub(super) fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A server that serves until it is told to stop.
pub(super) struct Running {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    pub(super) kubeconfig: PathBuf,
}

impl Running {
    pub(super) async fn start(server: Server) -> Self {
        let bound = server.bind().await.unwrap();
        let kubeconfig = bound.kubeconfig().to_owned();
        let installed = bound.install();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = tokio::spawn(bound.serve(stopped));
        installed.await.unwrap();
        Self {
            stop,
            serving,
            kubeconfig,
        }
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

/// Believes the users that a server with this certificate names, as servers behind an aggregator do.
struct FrontProxy(Vec<u8>);

impl Authenticator for FrontProxy {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let certificate = credentials.connection().certificates.first();
        if certificate.is_none_or(|certificate| certificate.as_ref() != self.0) {
            return Answer::Now(Ok(None));
        }
        let all = |name: &str| -> Vec<String> {
            let values = credentials.headers().get_all(name).iter();
            values
                .map(|value| value.to_str().unwrap().to_owned())
                .collect()
        };
        let user = UserInfo {
            name: all("x-remote-user").remove(0),
            groups: all("x-remote-group"),
            ..UserInfo::default()
        };
        Answer::Now(Ok(Some(Arc::new(user))))
    }
}

/// The server that is aggregated. It serves kettles, machines with their streams, and kinds of core.
pub(super) struct Back {
    running: Option<Running>,
    config: Config,
    certificate: Vec<u8>,
    _dir: tempfile::TempDir,
}

impl Back {
    pub(super) async fn start(authority: &Authority) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new("kitchen", dir.path());
        config.secure_port = free_address().port();
        config.tls_files = Some(authority.of_service("kettles"));
        let mut back = Self {
            running: None,
            config,
            certificate: authority.proxy_der.clone(),
            _dir: dir,
        };
        back.start_again().await;
        back
    }

    pub(super) fn address(&self) -> SocketAddr {
        (self.config.bind_address, self.config.secure_port).into()
    }

    pub(super) async fn stop(&mut self) {
        self.running.take().unwrap().stop().await;
    }

    pub(super) async fn start_again(&mut self) {
        let builder = server::builder(self.config.clone()).kind::<Kettle>();
        let builder = builder.built_in::<ConfigMap>().built_in::<Secret>();
        let builder = machine_kinds::configure(builder.kind::<machine_kinds::v1::Machine>());
        let builder = builder.authenticator(FrontProxy(self.certificate.clone()));
        let server = builder.build().await.unwrap();
        self.running = Some(Running::start(server).await);
    }
}

/// Where the services of the namespace default are, all at the port 443. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    places: Arc<Mutex<BTreeMap<String, Result<SocketAddr, ServiceError>>>>,
    /// Locked while no service is found.
    gate: Arc<RwLock<()>>,
    waiting: Arc<AtomicUsize>,
}

impl Places {
    pub(super) fn set(&self, name: &str, place: Result<SocketAddr, ServiceError>) {
        self.places.lock().unwrap().insert(name.to_owned(), place);
    }

    /// Lets all that look for services wait, until the guard is dropped.
    pub(super) async fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ServiceResolver for Places {
    async fn resolve(&self, service: &ServicePort) -> Result<ServiceAddress, ServiceError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.read().await);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let places = self.places.lock().unwrap();
        match places.get(&service.name) {
            Some(place) if service.port == 443 => place.clone().map(ServiceAddress::from),
            Some(_) => Err(ServiceError::PortNotFound(service.clone())),
            None => Err(ServiceError::NotFound(service.clone())),
        }
    }
}

/// Knows the user `tester`, and counts the requests that it was asked about.
struct Tester(Arc<AtomicUsize>);

impl Authenticator for Tester {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        if credentials.token() != Some(TOKEN.as_bytes()) {
            return Answer::Now(Ok(None));
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut user = UserInfo {
            name: "tester".to_owned(),
            uid: "tester-uid".to_owned(),
            groups: vec!["system:masters".to_owned()],
            ..UserInfo::default()
        };
        let values = vec!["a".to_owned(), "b".to_owned()];
        user.extra.insert("example.com/team".to_owned(), values);
        Answer::Now(Ok(Some(Arc::new(user))))
    }
}

/// The server that aggregates. It has the built-in kinds.
pub(super) struct Front {
    running: Running,
    /// A client of the administrator.
    pub(super) client: Client,
    pub(super) kubeconfig: PathBuf,
    pub(super) address: SocketAddr,
    pub(super) services: Places,
    /// How many requests of the tester were authenticated.
    pub(super) calls: Arc<AtomicUsize>,
    _store: StoreOfTest,
    _dir: tempfile::TempDir,
}

impl Front {
    /// Starts a server that reaches these services in the namespace default, and itself as the service `itself`.
    pub(super) async fn start(
        on: Backend,
        authority: &Authority,
        services: &[(&str, SocketAddr)],
    ) -> Self {
        Self::start_with(on, authority, services, |_| {}).await
    }

    /// The same with another configuration.
    pub(super) async fn start_with(
        on: Backend,
        authority: &Authority,
        services: &[(&str, SocketAddr)],
        configure: impl FnOnce(&mut PartsConfig),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new("front", dir.path());
        let store = StoreOfTest::new(on);
        if let Some((url, prefix)) = store.etcd() {
            config.backend = apiloom::server::Backend::Etcd;
            config.etcd.servers = vec![url.to_owned()];
            config.storage_prefix = format!("{prefix}/registry");
        }
        config.secure_port = free_address().port();
        let mut parts = PartsConfig::default();
        parts.api_services.proxy_client = Some(authority.files("proxy"));
        configure(&mut parts);
        let address = (config.bind_address, config.secure_port).into();
        let itself = ("itself", address);
        let places = Places::default();
        for (name, address) in services.iter().chain([&itself]) {
            places.set(name, Ok(*address));
        }
        let calls = Arc::new(AtomicUsize::new(0));
        let builder = server::builder_with(config, parts).all_built_in();
        let builder = builder.authenticator(Tester(Arc::clone(&calls)));
        // For requests that it forwards to itself.
        let builder = builder.authenticator(FrontProxy(authority.proxy_der.clone()));
        let server = builder
            .service_resolver(places.clone())
            .build()
            .await
            .unwrap();
        let running = Running::start(server).await;
        Self {
            client: Client::new(&running.kubeconfig),
            kubeconfig: running.kubeconfig.clone(),
            running,
            address,
            services: places,
            calls,
            _store: store,
            _dir: dir,
        }
    }

    pub(super) async fn stop(self) {
        drop(self.client);
        self.running.stop().await;
    }
}
