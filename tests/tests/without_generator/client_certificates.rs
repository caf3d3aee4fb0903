//! Clients with certificates: which connections they get, and what an authenticator of the program makes of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use apiloom::server::Builder;
use apiloom::server::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
use apiloom_tests::{Access, Client, Kubectl};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{HandshakeKind, SupportedProtocolVersion, version};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{KETTLES, kettle, with_server_of};

/// A certificate with its key.
struct Identity {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: KeyPair,
}

impl Identity {
    /// A certificate that signs itself and has expired long ago.
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate_pem: certificate.pem(),
            certificate: certificate.into(),
            key,
        }
    }

    /// A copy of a kubeconfig, with this certificate besides the token or instead of it.
    fn kubeconfig(&self, original: &Path, keeps_token: bool) -> tempfile::TempPath {
        let text = std::fs::read_to_string(original).unwrap();
        let mut config: Value = serde_saphyr::from_str(&text).unwrap();
        let user = &mut config["users"][0]["user"];
        if !keeps_token {
            *user = json!({});
        }
        user["client-certificate-data"] = STANDARD.encode(&self.certificate_pem).into();
        user["client-key-data"] = STANDARD.encode(self.key.serialize_pem()).into();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config.to_string()).unwrap();
        file.into_temp_path()
    }

    /// How a client presents this chain, signed with the key of this identity, whether or not it is the right one.
    fn presents(&self, chain: Vec<CertificateDer<'static>>) -> Arc<SingleCertAndKey> {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
        Arc::new(CertifiedKey::new(chain, key).into())
    }
}

/// Knows one certificate, and keeps the lengths of the chains that it was asked about.
struct OneCertificate {
    certificate: CertificateDer<'static>,
    user: Arc<UserInfo>,
    /// Another certificate is an error.
    is_strict: bool,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Authenticator for OneCertificate {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let chain = &credentials.connection().certificates;
        self.asked.lock().unwrap().push(chain.len());
        Answer::Now(match chain.first() {
            Some(first) if *first == self.certificate => Ok(Some(Arc::clone(&self.user))),
            Some(_) if self.is_strict => Err("the certificate is unknown".into()),
            _ => Ok(None),
        })
    }
}

/// A server that knows `known`, as a user who may do everything.
struct Fixture {
    known: Identity,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            known: Identity::new("known"),
            asked: Arc::default(),
        }
    }

    fn configure(&self, is_strict: bool) -> impl FnOnce(Builder) -> Builder + use<> {
        let authenticator = OneCertificate {
            certificate: self.known.certificate.clone(),
            user: Arc::new(UserInfo {
                name: "known".to_owned(),
                groups: vec!["system:masters".to_owned()],
                ..UserInfo::default()
            }),
            is_strict,
            asked: Arc::clone(&self.asked),
        };
        move |builder| builder.authenticator(authenticator)
    }

    /// The lengths of the chains that the authenticator was asked about since the last call.
    fn asked(&self) -> Vec<usize> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// Sends a GET on a new connection. Returns the status line, and how the handshake went.
async fn get(
    url: &str,
    tls: &Arc<rustls::ClientConfig>,
    token: &str,
) -> std::io::Result<(String, HandshakeKind)> {
    let address = url.trim_start_matches("https://");
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::clone(tls));
    let mut stream = connector.connect(name, stream).await?;
    let authorization = if token.is_empty() {
        String::new()
    } else {
        format!("authorization: Bearer {token}\r\n")
    };
    let request =
        format!("GET {KETTLES} HTTP/1.1\r\nhost: x\r\n{authorization}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let line = answer.lines().next().unwrap_or_default().to_owned();
    Ok((line, stream.get_ref().1.handshake_kind().unwrap()))
}

const OK: &str = "HTTP/1.1 200 OK";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden";

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_reaches_the_authenticators_of_the_program() {
    let other = Identity::new("other");
    for (is_strict, code_of_other) in [(false, 403), (true, 401)] {
        let fixture = Fixture::new();
        with_server_of(fixture.configure(is_strict), async |admin, kubeconfig| {
            let of = |identity: &Identity, keeps_token| {
                Client::new(&identity.kubeconfig(&kubeconfig, keeps_token))
            };
            // Requests of one connection have the same certificate.
            let known = of(&fixture.known, false);
            for _ in 0..2 {
                assert_eq!(known.get(KETTLES).await.code, 200);
            }
            assert_eq!(fixture.asked(), [1, 1]);
            // A token that the server does not know is left to the certificate.
            assert_eq!(known.with_token("wrong").get(KETTLES).await.code, 200);
            assert_eq!(of(&other, false).get(KETTLES).await.code, code_of_other);
            assert_eq!(of(&other, true).get(KETTLES).await.code, 200);
            let wrong = of(&other, true).with_token("wrong");
            assert_eq!(wrong.get(KETTLES).await.code, 401);
            fixture.asked();
            assert_eq!(admin.get(KETTLES).await.code, 200);
            assert_eq!(fixture.asked(), [] as [usize; 0], "the token comes first");
            assert_eq!(admin.anonymous().get(KETTLES).await.code, 403);
            assert_eq!(fixture.asked(), [0]);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_authenticator_of_the_server_takes_a_certificate() {
    let admin = Identity::new("kubernetes-admin");
    with_server_of(
        |builder| builder,
        async |_, kubeconfig| {
            let client = Client::new(&admin.kubeconfig(&kubeconfig, false));
            let answer = client.get(KETTLES).await;
            assert_eq!(answer.code, 403);
            assert!(
                answer.text().contains("User \\\"system:anonymous\\\""),
                "{}",
                answer.text()
            );
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_without_its_key_fails_the_handshake() {
    let (fixture, thief) = (Fixture::new(), Identity::new("thief"));
    with_server_of(fixture.configure(false), async |_, kubeconfig| {
        for version in VERSIONS {
            let Access {
                url,
                token,
                mut tls,
            } = Access::of_versions(&kubeconfig, &[version]);
            // Without a certificate, the handshake is as before.
            let plain = Arc::new(tls.clone());
            assert_eq!(get(&url, &plain, "").await.unwrap().0, FORBIDDEN);
            assert_eq!(fixture.asked(), [0]);
            tls.client_auth_cert_resolver = thief.presents(vec![fixture.known.certificate.clone()]);
            // Not even with a good token.
            let error = get(&url, &Arc::new(tls), &token).await.unwrap_err();
            assert!(error.to_string().contains("DecryptError"), "{error}");
            assert_eq!(fixture.asked(), [] as [usize; 0]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_connection_has_the_certificate_of_its_session() {
    let fixture = Fixture::new();
    with_server_of(fixture.configure(false), async |_, kubeconfig| {
        let kubeconfig = fixture.known.kubeconfig(&kubeconfig, false);
        for version in VERSIONS {
            let Access { url, tls, .. } = Access::of_versions(&kubeconfig, &[version]);
            let tls = Arc::new(tls);
            let mut kinds = Vec::new();
            for _ in 0..3 {
                let (line, kind) = get(&url, &tls, "").await.unwrap();
                assert_eq!(line, OK);
                kinds.push(kind);
            }
            use HandshakeKind::{Full, Resumed};
            assert_eq!(kinds, [Full, Resumed, Resumed], "{version:?}");
            assert_eq!(fixture.asked(), [1, 1, 1]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_that_are_long_or_malformed_are_refused() {
    let (fixture, issuer) = (Fixture::new(), Identity::new("issuer"));
    // The name is in it twice.
    let large = Identity::new(&"x".repeat(7_500));
    with_server_of(fixture.configure(false), async |_, kubeconfig| {
        let known = &fixture.known;
        let chain = |issuers: usize| {
            let mut chain = vec![issuer.certificate.clone(); issuers + 1];
            chain[0] = known.certificate.clone();
            chain
        };
        let with = |more: &CertificateDer<'static>| vec![known.certificate.clone(), more.clone()];
        let cut = CertificateDer::from(issuer.certificate[..100].to_vec());
        let empty = CertificateDer::from(Vec::new());
        let noise = CertificateDer::from(vec![0x30; 50]);
        let huge = CertificateDer::from(vec![0x30; 60_000]);
        let two_large = [with(&large.certificate), vec![large.certificate.clone()]].concat();
        for version in VERSIONS {
            let access = Access::of_versions(&kubeconfig, &[version]);
            let present = async |chain| {
                let mut tls = access.tls.clone();
                tls.client_auth_cert_resolver = known.presents(chain);
                get(&access.url, &Arc::new(tls), "").await
            };
            for (chain, length) in [(chain(0), 1), (chain(9), 10), (with(&large.certificate), 2)] {
                assert_eq!(present(chain).await.unwrap().0, OK);
                assert_eq!(fixture.asked(), [length]);
            }
            for chain in [
                chain(10),
                two_large.clone(),
                vec![cut.clone()],
                with(&cut),
                with(&empty),
                with(&noise),
                with(&huge),
                vec![noise.clone()],
                vec![empty.clone()],
            ] {
                let length = chain.len();
                let got = present(chain).await;
                assert!(got.is_err(), "{length}: {got:?}");
            }
            assert_eq!(fixture.asked(), [] as [usize; 0]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_works_with_a_client_certificate() {
    let (fixture, other) = (Fixture::new(), Identity::new("other"));
    with_server_of(fixture.configure(true), async |_, original| {
        let run = async |identity: &Identity, args: &'static [&str], stdin: &str| {
            let (kubeconfig, stdin) = (identity.kubeconfig(&original, false), stdin.to_owned());
            let run = move || Kubectl::new("1.36", &kubeconfig).run(args, &stdin);
            tokio::task::spawn_blocking(run).await.unwrap()
        };
        let object = kettle(json!({"litres": 2})).to_string();
        let created = run(&fixture.known, &["create", "-f", "-"], &object).await;
        assert_eq!(
            created.stdout, "kettle.kitchen.example.com/small created\n",
            "{}",
            created.stderr
        );
        let got = run(&fixture.known, &["get", "kt", "-o", "name"], "").await;
        assert_eq!(got.stdout, "kettle.kitchen.example.com/small\n");
        let refused = run(&other, &["get", "kt"], "").await;
        assert_eq!(refused.code, 1);
        assert!(
            refused
                .stderr
                .contains("You must be logged in to the server"),
            "{}",
            refused.stderr
        );
    })
    .await;
}
