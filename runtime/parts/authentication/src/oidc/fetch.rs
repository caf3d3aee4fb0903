//! Documents of issuers, by HTTPS. Redirects are not followed.

use std::time::Duration;

use apiloom_client::transport::{Body, HttpTransport, TlsOptions, Transport as _};
use http::{HeaderMap, Request, StatusCode, Uri, header};

/// How long a document may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes of a document.
const MAX_BYTES: usize = 1 << 20;

/// How many bytes of an answer without success are told.
const TOLD_BYTES: usize = 512;

/// Reads documents of servers whose certificates these authorities have made.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    /// In PEM; those of the system without any.
    pub(super) authorities: Option<Vec<u8>>,
}

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Fetcher {
    /// Reads the document at a URL, with a token if one is given.
    ///
    /// # Errors
    /// Why there is none, without the token.
    pub(super) async fn get(&self, url: &str, token: Option<&str>) -> Result<Document, String> {
        let document = tokio::time::timeout(TIMEOUT, self.fetch(url, token)).await;
        let document = document.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        document.map_err(|why| format!("Get \"{url}\": {why}"))
    }

    async fn fetch(&self, url: &str, token: Option<&str>) -> Result<Document, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let authority = uri.authority().ok_or("the URL has no host")?;
        if uri.scheme_str() != Some("https") {
            return Err("only https is allowed".to_owned());
        }
        let origin = format!("https://{authority}");
        let tls = TlsOptions {
            authorities: self.authorities.clone(),
            ..TlsOptions::default()
        };
        // The certificates of the system are files.
        let made = tokio::task::spawn_blocking(move || {
            let builder = HttpTransport::builder(&origin).http1_only().tls(tls);
            builder.build().map_err(|error| error.to_string())
        });
        let transport = made.await.map_err(|error| error.to_string())??;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::get(path)
            .header(header::ACCEPT, "*/*")
            .header(
                header::USER_AGENT,
                concat!("apiloom/", env!("CARGO_PKG_VERSION")),
            )
            // It is read once.
            .header(header::CONNECTION, "close");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::empty());
        let request = request.map_err(|_| "the token is no value of a header".to_owned())?;
        let response = transport.call(request).await;
        let response = response.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body.collect(MAX_BYTES).await;
        if head.status != StatusCode::OK {
            let body = body.unwrap_or_default();
            let told = String::from_utf8_lossy(&body[..body.len().min(TOLD_BYTES)]).into_owned();
            return Err(format!("{}: {}", head.status, told.trim()));
        }
        Ok(Document {
            headers: head.headers,
            body: body.map_err(|error| error.to_string())?.into(),
        })
    }
}
