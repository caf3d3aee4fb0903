//! The server behind the tenant's webhooks and APIServices: it breaks every promise of HTTP and of Kubernetes, one at a time.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiloom_tests::https::{self, SignedBy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::random::Random;

/// The service of APIServices, in the namespace `default`; the certificate has its name.
pub(super) const SERVICE: &str = "hook";

/// Bytes of an answer without an end after which it gives up.
const ENDLESS: usize = 64 << 20;

/// How long it says nothing.
const SILENCE: Duration = Duration::from_secs(20);

/// The server, which ends with the runtime.
pub(super) struct Rogue {
    pub(super) address: SocketAddr,
    /// Its own certificate in base64, which is its authority.
    pub(super) bundle: String,
    services: tempfile::NamedTempFile,
}

impl Rogue {
    pub(super) async fn start(seed: u64) -> Self {
        let (mut tls, bundle) = https::identity(SignedBy::Itself);
        // What it breaks is HTTP/1.1.
        tls.alpn_protocols.clear();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let random = Arc::new(Mutex::new(Random(seed)));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), tcp, Arc::clone(&random)));
            }
        });
        let mut services = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        writeln!(services, "default/{SERVICE}: https://{address}").unwrap();
        Self {
            address,
            bundle,
            services,
        }
    }

    /// The flag of a server that finds it.
    pub(super) fn resolver(&self) -> String {
        format!("--service-resolver={}", self.services.path().display())
    }
}

async fn serve(acceptor: TlsAcceptor, tcp: TcpStream, random: Arc<Mutex<Random>>) {
    let Ok(mut stream) = acceptor.accept(tcp).await else {
        return;
    };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let choice = random.lock().unwrap().below(14);
    // The other side may be gone at any time.
    let _ = answer(&mut stream, &head, choice).await;
    let _ = stream.shutdown().await;
}

async fn answer(
    stream: &mut TlsStream<TcpStream>,
    head: &str,
    choice: usize,
) -> std::io::Result<()> {
    let json = |body: String| whole("application/json", body.into_bytes());
    let bytes = match choice {
        0 => {
            tokio::time::sleep(SILENCE).await;
            return Ok(());
        }
        1 => return drip(stream).await,
        2 => return without_end(stream, "").await,
        3 => return without_end(stream, "content-encoding: gzip\r\n").await,
        4 => format!("HTTP/1.1 200 OK\r\nx-huge: {}\r\n\r\n", "a".repeat(2 << 20)).into_bytes(),
        5 => b"this is no HTTP\r\n\r\n".to_vec(),
        6 => json("[".repeat(500_000)),
        7 => json(format!(
            "{{\"kind\":\"APIResourceList\",\"groupVersion\":\"{}\",\"resources\":[{}]}}",
            head.split(' ').nth(1).unwrap_or_default(),
            vec![r#"{"name":"things","kind":"Thing","verbs":["get","list"]}"#; 50_000].join(",")
        )),
        8 => b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".to_vec(),
        9 => b"HTTP/1.1 301 Moved Permanently\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n"
            .to_vec(),
        10 => b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".repeat(10_000),
        11 => json(format!(
            "{{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"response\":{{\"uid\":\"\",\"result\":{{\"status\":\"Success\"}},\
             \"convertedObjects\":[{}]}}}}",
            vec![r#"{"apiVersion":"a/v1","kind":"A","metadata":{"name":"a"}}"#; 50_000].join(",")
        )),
        12 => json(format!(
            "{{\"swagger\":\"2.0\",\"definitions\":{{\"a\":{{\"description\":\"{}\"}}}}}}",
            "x".repeat(6 << 20)
        )),
        _ => return Ok(()),
    };
    stream.write_all(&bytes).await?;
    stream.flush().await
}

fn whole(content_type: &str, body: Vec<u8>) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

/// An answer byte by byte.
async fn drip(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    let answer = whole("application/json", vec![b' '; 100]);
    for byte in answer {
        stream.write_all(&[byte]).await?;
        stream.flush().await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// A body of pieces, without an end: of blanks, or of what gzip makes of very many of them.
async fn without_end(stream: &mut TlsStream<TcpStream>, header: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{header}transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let blanks = vec![b' '; 64 * 1024];
    let piece = if header.is_empty() {
        blanks
    } else {
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..64 {
            coder.write_all(&blanks)?;
        }
        coder.finish()?
    };
    let mut sent = 0;
    while sent < ENDLESS {
        stream
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .await?;
        stream.write_all(&piece).await?;
        stream.write_all(b"\r\n").await?;
        sent += piece.len();
    }
    Ok(())
}
