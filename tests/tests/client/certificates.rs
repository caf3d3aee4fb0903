//! Certificates of clients, from kubeconfig files and plugins, before a server of TLS that requires one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiloom_client::config::{Config, Kubeconfig};
use apiloom_client::{Client, Error};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A certificate with its key.
struct Identity {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: KeyPair,
}

/// An authority for the server and its clients.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate_pem: certificate.pem(),
            certificate: certificate.into(),
            key,
        }
    }
}

/// What a server saw, and whom it lets in.
#[derive(Default)]
struct Seen {
    /// The certificate of each request.
    certificates: Vec<CertificateDer<'static>>,
    connections: usize,
    /// Other certificates are answered with 401.
    accepted: Option<CertificateDer<'static>>,
}

/// Answers the requests of a connection.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, seen: Arc<Mutex<Seen>>) {
    // Without a certificate there is no connection.
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    seen.lock().unwrap().connections += 1;
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    let certificate = certificates[0].clone().into_owned();
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        head.clear();
        let (code, body) = {
            let mut seen = seen.lock().unwrap();
            seen.certificates.push(certificate.clone());
            if seen.accepted.as_ref() == Some(&certificate) {
                (200, json!({}))
            } else {
                (
                    401,
                    json!({"kind": "Status", "apiVersion": "v1", "reason": "Unauthorized", "code": 401}),
                )
            }
        };
        let body = body.to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// A server that requires certificates of the authority, and its URL.
async fn start(authority: &Authority) -> (String, Arc<Mutex<Seen>>) {
    let Identity {
        certificate, key, ..
    } = authority.issue("localhost");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![certificate],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let counts = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&counts)));
        }
    });
    (format!("https://localhost:{port}"), seen)
}

/// A client by the file of a user.
fn client(folder: &Path, url: &str, authority: &Authority, user: &Value) -> Client {
    let authority = STANDARD.encode(authority.0.pem());
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    let file = folder.join("config");
    std::fs::write(&file, config.to_string()).unwrap();
    let config = Kubeconfig::read(&[file]).unwrap();
    let config = Config::from_kubeconfig(&config, None).unwrap();
    config.client().unwrap().build().unwrap()
}

async fn get(client: &Client) -> Result<Value, Error> {
    client.request(http::Method::GET, "/version").json().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_with_a_certificate_opens_a_server_that_requires_one() {
    let authority = Authority::new();
    let (url, seen) = start(&authority).await;
    let known = authority.issue("known");
    seen.lock().unwrap().accepted = Some(known.certificate.clone());
    let folder = tempfile::tempdir().unwrap();
    let without = client(folder.path(), &url, &authority, &json!({}));
    get(&without).await.unwrap_err();
    assert_eq!(seen.lock().unwrap().connections, 0);
    let user = json!({
        "client-certificate-data": STANDARD.encode(&known.certificate_pem),
        "client-key-data": STANDARD.encode(known.key.serialize_pem()),
    });
    get(&client(folder.path(), &url, &authority, &user))
        .await
        .unwrap();
    assert_eq!(seen.lock().unwrap().certificates, [known.certificate]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_renewed_certificate_of_a_plugin_is_used_by_new_connections() {
    let authority = Authority::new();
    let (url, seen) = start(&authority).await;
    let folder = tempfile::tempdir().unwrap();
    let identities = [authority.issue("first"), authority.issue("second")];
    for (number, identity) in identities.iter().enumerate() {
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {
                "clientCertificateData": identity.certificate_pem,
                "clientKeyData": identity.key.serialize_pem(),
            },
        });
        let file = folder.path().join((number + 1).to_string());
        std::fs::write(file, credential.to_string()).unwrap();
    }
    let plugin = folder.path().join("plugin");
    let shown = folder.path().display();
    let script = format!("#!/bin/sh\ncd {shown}\necho x >>runs\ncat $(($(wc -l <runs)))\n");
    std::fs::write(&plugin, script).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o700)).unwrap();
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": plugin,
        "interactiveMode": "Never",
    }});
    let client = client(folder.path(), &url, &authority, &user);
    let [first, second] = identities.map(|identity| identity.certificate);
    seen.lock().unwrap().accepted = Some(first.clone());
    get(&client).await.unwrap();
    get(&client).await.unwrap();
    let certificates = [first.clone(), first];
    assert_eq!(seen.lock().unwrap().certificates, certificates);
    // The first one is revoked. A refusal has the plugin run again, if that was not just now.
    seen.lock().unwrap().accepted = Some(second.clone());
    let renewed = async {
        while let Err(error) = get(&client).await {
            assert!(error.is_unauthorized(), "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let renewed = tokio::time::timeout(Duration::from_secs(20), renewed).await;
    renewed.expect("the plugin's second certificate is used");
    let seen = seen.lock().unwrap();
    let (last, before) = seen.certificates.split_last().unwrap();
    assert_eq!(*last, second);
    assert!(!before.contains(&second));
}
