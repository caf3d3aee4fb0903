//! Certificates of servers, each with what Go says of it (`tests/certificates/table.jsonl`): our client, by a kubeconfig, accepts the
//! same.

use std::sync::Arc;

use apiloom_client::Error;
use apiloom_client::config::{Config, Kubeconfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const TABLE: &str = include_str!("../../certificates/table.jsonl");

/// What webpki decides otherwise, and has no setting for.
const DIFFERENCES: [(&str, &str); 2] = [
    // A server's certificate that another authority has signed is refused if it is an authority itself.
    ("leaf: an authority", "CaUsedAsEndEntity"),
    // How many intermediates a root allows is not read.
    ("root: a path that is too long", "accepted"),
];

/// A server, and a client that trusts `roots` and expects the name `server`.
#[derive(Deserialize)]
struct Row {
    name: String,
    server: String,
    /// Go's error; empty if it accepts the server.
    refused: String,
    roots: String,
    chain: String,
    key: String,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLE
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

/// TLS with the chain and the key of a row, whether or not a server would take them.
fn tls(row: &Row) -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(row.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(row.key.as_bytes()).unwrap();
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let shown = CertifiedKey::new(chain.map(Result::unwrap).collect(), key);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    TlsAcceptor::from(Arc::new(config))
}

/// Sends a request to the server of a row, by a kubeconfig.
async fn get(row: &Row) -> Result<Value, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tls(row);
    let serving = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        // A client that does not trust the certificate leaves here.
        let Ok(mut stream) = acceptor.accept(tcp).await else {
            return;
        };
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let cluster = json!({
        "server": format!("https://127.0.0.1:{port}"),
        "tls-server-name": row.server,
        "certificate-authority-data": STANDARD.encode(&row.roots),
    });
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    let config = Kubeconfig::read(&[file.path().to_owned()]).unwrap();
    let config = Config::from_kubeconfig(&config, None).unwrap();
    let client = config.client().unwrap().build().unwrap();
    let answer = client
        .request(http::Method::GET, "/version")
        .without_retry();
    let answer = answer.json().await;
    serving.abort();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_accepts_the_servers_that_go_accepts() {
    let (mut wrong, mut different) = (String::new(), 0);
    for row in rows() {
        let found = match get(&row).await {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        let is_refused = found != "accepted";
        if is_refused && !found.to_lowercase().contains("certificate") {
            wrong += &format!("{}: {found}\n", row.name);
        }
        if is_refused != row.refused.is_empty() {
            continue;
        }
        let mut known = DIFFERENCES.iter();
        if known.any(|(name, text)| *name == row.name && found.contains(text)) {
            different += 1;
        } else {
            wrong += &format!("{}: {found}; Go: {:?}\n", row.name, row.refused);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(different, DIFFERENCES.len());
}
