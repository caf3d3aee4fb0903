//! One request: its parts, its attempts, and its answer.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use apiloom_meta::gvk::GroupResource;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::builder::Client;
use super::excerpt;
use super::failure::{self, MAX_FAILURE_BYTES};
use super::object::ApiResource;
use super::path::{check_path, push_parameter};
use crate::error::{DecodeError, Error};
use crate::transport::{Body, CollectError};

/// A request to a path of the server. Made by [`Client::request`]; awaiting it gives the bytes of the answer.
///
/// ```no_run
/// # use apiloom_client::{Client, Error};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let version: serde_json::Value = client.request(http::Method::GET, "/version").json().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a request is sent when it is awaited"]
pub struct RawRequest {
    pub(super) client: Client,
    method: Method,
    /// The path without the base path, or why there is none.
    path: Result<String, Error>,
    query: String,
    headers: HeaderMap,
    body: Bytes,
    timeout: Option<Duration>,
    /// The longest answer, and which setting says so; `None` for that of the client.
    limit: Option<(usize, &'static str)>,
    is_retried: bool,
    /// The resource that the request is about, for [`Client::on_write`].
    resource: Option<GroupResource>,
}

/// Without headers and body, which may be secret.
impl fmt::Debug for RawRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A request to a path of the server, such as `/version`, with this client's settings.
    ///
    /// The path may have a query. One that could mean another path to a proxy or to the server is refused when the request is
    /// sent: with a segment that is empty or dots, a space, or a character that URLs do not have.
    pub fn request(&self, method: Method, path: impl Into<String>) -> RawRequest {
        let mut path = path.into();
        let query = path.find('?').map(|at| path.split_off(at)[1..].to_owned());
        let query = query.unwrap_or_default();
        let checked = check_path(&path, &query).map(|()| path);
        let mut request = RawRequest::new(self.clone(), method, checked);
        request.query = query;
        request
    }
}

impl RawRequest {
    pub(super) fn new(client: Client, method: Method, path: Result<String, Error>) -> Self {
        Self {
            client,
            method,
            path,
            query: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            limit: None,
            is_retried: true,
            resource: None,
        }
    }

    /// Says which resource the request is about.
    pub(super) fn of(mut self, resource: &ApiResource) -> Self {
        // Most clients do not report writes.
        if self.client.settings().on_write.is_some() {
            self.resource = Some(resource.group_resource());
        }
        self
    }

    #[cfg(feature = "websocket")]
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Makes the request fail with this error when it is sent.
    pub(super) fn fail(mut self, error: Error) -> Self {
        if self.path.is_ok() {
            self.path = Err(error);
        }
        self
    }

    /// Adds a parameter to the query.
    pub fn query(mut self, name: &str, value: impl AsRef<str>) -> Self {
        push_parameter(&mut self.query, name, value.as_ref());
        self
    }

    /// Sets a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
                self
            }
            _ => self.fail(Error::Request(format!(
                "the header {name:?} has a malformed name or value"
            ))),
        }
    }

    /// Sets the header `Accept`. Default `application/json`.
    pub fn accept(mut self, media_types: &'static str) -> Self {
        let value = HeaderValue::from_static(media_types);
        self.headers.insert(header::ACCEPT, value);
        self
    }

    /// Sets the body and its media type.
    pub fn body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let value = HeaderValue::from_static(content_type);
        self.headers.insert(header::CONTENT_TYPE, value);
        self.body = body.into();
        self
    }

    /// Sets a body that is encoded as JSON.
    pub fn json_body(self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(json) => self.body("application/json", json),
            Err(error) => self.fail(Error::Request(format!("cannot encode the body: {error}"))),
        }
    }

    /// Sets how long an attempt may take, instead of the client's own timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the longest answer in bytes, instead of the client's
    /// [`max_response_bytes`](super::ClientBuilder::max_response_bytes): for lists and documents that are longer than an object.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limit = Some((bytes, "max_bytes of the request"));
        self
    }

    /// Limits the answer to these bytes of a list.
    pub(super) fn max_list_bytes(mut self, bytes: usize) -> Self {
        self.limit = Some((bytes, "max_list_bytes of the client"));
        self
    }

    /// Sends the request at most once, and not again by the rules of the client.
    pub fn without_retry(mut self) -> Self {
        self.is_retried = false;
        self
    }

    /// Sends the request and reads the whole answer.
    ///
    /// # Errors
    /// Those of a refusal, of the transport, and if the answer is longer than the client's limit.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        let of_client = self.client.settings().max_response_bytes;
        let (most, _) = self.limit.unwrap_or((of_client, ""));
        let client = self.client.clone();
        let written = self.resource.clone().filter(|_| self.method != Method::GET);
        let (_, bytes) = self.attempts(Reading::All(most)).await?;
        if let (Some(report), Some(resource)) = (&client.settings().on_write, written)
            && let Some(version) = resource_version(&bytes)
        {
            report(&resource, &version);
        }
        Ok(bytes)
    }

    /// Sends the request and decodes the answer.
    ///
    /// # Errors
    /// Those of [`RawRequest::bytes`], and if the answer is not of this form.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let (path, kind) = (self.shown_path(), std::any::type_name::<T>());
        let bytes = self.bytes().await?;
        decode(&bytes, &path, kind)
    }

    /// Sends the request and returns the answer before its body, for streams without an end.
    ///
    /// # Errors
    /// Those of a refusal and of the transport.
    pub async fn stream(self) -> Result<Response<Body>, Error> {
        let (response, _) = self.attempts(Reading::Headers).await?;
        Ok(response)
    }

    /// Path and query, for errors.
    pub(super) fn shown_path(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        if self.query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", self.query)
        }
    }

    async fn attempts(mut self, reading: Reading) -> Result<(Response<Body>, Bytes), Error> {
        let path = std::mem::replace(&mut self.path, Ok(String::new()))?;
        self.path = Ok(path);
        let settings = self.client.settings();
        let timeout = self.timeout.unwrap_or(settings.timeout);
        let mut retries = 0;
        loop {
            let result = self.counted_attempt(reading, timeout).await;
            let error = match result {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => Error::Timeout(timeout),
            };
            let wait = settings.retry.wait(&self.method, &error, retries);
            let Some(wait) = wait.filter(|_| self.is_retried) else {
                return Err(error);
            };
            retries += 1;
            tracing::debug!(path = self.path.as_deref().unwrap_or_default(), retries, ?wait, %error, "a request is sent again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends the request once, for a limited time, and counts it if the client has metrics.
    async fn counted_attempt(
        &self,
        reading: Reading,
        timeout: Duration,
    ) -> Result<Result<(Response<Body>, Bytes), Error>, Elapsed> {
        let mut code = None;
        let Some(metrics) = &self.client.settings().metrics else {
            return tokio::time::timeout(timeout, self.attempt(reading, &mut code)).await;
        };
        let began = Instant::now();
        let result = tokio::time::timeout(timeout, self.attempt(reading, &mut code)).await;
        metrics.record(&self.method, code, began.elapsed());
        result
    }

    /// Sends the request once. A refusal is an error. `code` gets the status of the response, if there is one.
    async fn attempt(
        &self,
        reading: Reading,
        code: &mut Option<StatusCode>,
    ) -> Result<(Response<Body>, Bytes), Error> {
        let settings = self.client.settings();
        let request = self.to_http()?;
        let asks_for_switch = request.headers().contains_key(header::UPGRADE);
        let response = self.client.transport().call(request).await?;
        *code = Some(response.status());
        for warning in failure::warnings(response.headers()) {
            (settings.warnings)(&warning);
        }
        let code = response.status();
        let is_switch = code == StatusCode::SWITCHING_PROTOCOLS && asks_for_switch;
        if !code.is_success() && !is_switch {
            let (parts, body) = response.into_parts();
            // A failure whose text breaks off, or is too long, is still this failure.
            let text = body.collect(MAX_FAILURE_BYTES).await.unwrap_or_default();
            let is_post = self.method == Method::POST;
            return Err(failure::failure(code, &parts.headers, &text, is_post));
        }
        match reading {
            Reading::Headers => Ok((response, Bytes::new())),
            Reading::All(most) => {
                let (parts, body) = response.into_parts();
                let bytes = body.collect(most).await;
                let bytes = bytes.map_err(|error| self.collect_error(error))?;
                Ok((Response::from_parts(parts, Body::empty()), bytes))
            }
        }
    }

    fn collect_error(&self, error: CollectError) -> Error {
        match error {
            CollectError::Transport(error) => error.into(),
            too_long @ CollectError::TooLong(_) => {
                let setting = self.limit.map(|(_, setting)| setting);
                let setting = setting.unwrap_or("max_response_bytes of the client");
                Error::Decode(Box::new(DecodeError {
                    path: self.shown_path(),
                    kind: "response".to_owned(),
                    name: String::new(),
                    reason: format!("{too_long} ({setting})"),
                    excerpt: String::new(),
                }))
            }
        }
    }

    fn to_http(&self) -> Result<Request<Body>, Error> {
        let settings = self.client.settings();
        let uri = format!("{}{}", settings.base_path, self.shown_path());
        let body = if self.body.is_empty() {
            Body::empty()
        } else {
            Body::from(self.body.clone())
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.parse().map_err(|error| {
            Error::Request(format!("{uri:?} is not the path of a request: {error}"))
        })?;
        let headers = request.headers_mut();
        headers.clone_from(&settings.headers);
        headers
            .entry(header::ACCEPT)
            .or_insert(HeaderValue::from_static("application/json"));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }
}

/// The `metadata.resourceVersion` of an answer.
fn resource_version(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Versioned {
        metadata: Version,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        resource_version: String,
    }
    let answer: Versioned = serde_json::from_slice(answer).ok()?;
    Some(answer.metadata.resource_version).filter(|version| !version.is_empty())
}

/// How far the answer is read.
#[derive(Clone, Copy)]
enum Reading {
    Headers,
    /// The whole body, up to this length.
    All(usize),
}

/// Decodes an answer, which may also be the Status of a failure.
pub(super) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    path: &str,
    kind: &str,
) -> Result<T, Error> {
    // Servers begin a Status with its kind; the text of an object is not searched.
    let begin = &bytes[..bytes.len().min(64)];
    if memchr::memmem::find(begin, b"\"Status\"").is_some()
        && let Some(failure) = failure::failure_in_success(bytes)
    {
        return Err(failure);
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Error::Decode(Box::new(decode_error(&error, bytes, path, kind))))
}

/// The error of a text that cannot be decoded, with the part of the text before the problem.
pub(super) fn decode_error(
    error: &serde_json::Error,
    bytes: &[u8],
    path: &str,
    kind: &str,
) -> DecodeError {
    let at = offset(bytes, error.line(), error.column());
    DecodeError {
        path: path.to_owned(),
        kind: kind.to_owned(),
        name: String::new(),
        reason: excerpt::reason(&error.to_string()),
        excerpt: excerpt::of(bytes, at),
    }
}

/// The position of a line and a column, both counted from 1.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let breaks = memchr::memchr_iter(b'\n', bytes);
    let start = match line {
        0 | 1 => 0,
        line => breaks.skip(line - 2).map(|at| at + 1).next().unwrap_or(0),
    };
    (start + column.saturating_sub(1)).min(bytes.len())
}

impl IntoFuture for RawRequest {
    type Output = Result<Bytes, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.bytes())
    }
}
