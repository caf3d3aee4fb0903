//! Adds credentials to requests, and renews them: tokens and certificates in files, and those of plugins.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::ConfigError;
use super::exec::{self, ExecStatus, Running};
use super::file::read_file;
use super::kubeconfig::Exec;
use super::source::{Credentials, Pem};
use crate::transport::{Body, HttpTransport, TlsOptions, Transport, TransportError};

/// How long what was read from files is used.
const FILES_ARE_GOOD_FOR: Duration = Duration::from_secs(60);

/// Shortest time between two reads that answers with 401 cause, and between two runs of a plugin whose credentials have
/// expired: a server that refuses everything, or a plugin with another clock, must not run a plugin for every request.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longest time for which a plugin that failed again and again is not run.
const LONGEST: Duration = Duration::from_secs(60);

/// A transport whose TLS options can be changed.
pub(super) trait RenewsTls: Transport {
    /// Makes new connections with these options.
    fn renew(&self, tls: &TlsOptions) -> Result<(), String>;
}

impl RenewsTls for HttpTransport {
    fn renew(&self, tls: &TlsOptions) -> Result<(), String> {
        // Without TLS there are no certificates.
        self.set_tls(tls).map_err(|error| error.to_string())
    }
}

/// The credentials of a configuration.
pub(super) struct Auth {
    credentials: Credentials,
    authorities: Option<Pem>,
    url: String,
    impersonation: HeaderMap,
    present: Mutex<Present>,
}

/// The credentials in use.
struct Present {
    authorization: Option<HeaderValue>,
    tls: TlsOptions,
    read: Option<Instant>,
    exec: Option<ExecStatus>,
    /// The run of the plugin that requests wait for, or had waited for when they were given up.
    running: Option<Running>,
    /// The last run of the plugin, if it failed.
    failed: Option<FailedRun>,
    /// Incremented when something changed.
    version: u64,
}

/// A run of a plugin that failed.
struct FailedRun {
    problem: String,
    at: Instant,
    /// How long the plugin is not run again; requests have the same error meanwhile.
    wait: Duration,
}

impl Auth {
    pub(super) fn new(
        credentials: Credentials,
        authorities: Option<Pem>,
        url: String,
        tls: TlsOptions,
    ) -> Result<Self, ConfigError> {
        let mut impersonation = HeaderMap::new();
        for (name, value) in &credentials.impersonation {
            let value = HeaderValue::try_from(value).map_err(|_| {
                ConfigError::Malformed(format!("the value of {name} cannot be sent"))
            })?;
            let name = HeaderName::try_from(name)
                .map_err(|_| ConfigError::Malformed(format!("{name} cannot be sent")))?;
            impersonation.append(name, value);
        }
        let authorization = match (&credentials.token, &credentials.basic) {
            (Some(token), _) => Some(bearer(token).map_err(ConfigError::Malformed)?),
            (None, Some((user, password))) => {
                let pair = STANDARD.encode(format!("{user}:{password}"));
                HeaderValue::try_from(format!("Basic {pair}"))
                    .ok()
                    .map(sensitive)
            }
            (None, None) => None,
        };
        Ok(Self {
            credentials,
            authorities,
            url,
            impersonation,
            present: Mutex::new(Present {
                authorization,
                tls,
                read: None,
                exec: None,
                running: None,
                failed: None,
                version: 0,
            }),
        })
    }

    /// The header for a request, and its version. `refused` is the version that the server answered with 401.
    async fn header(
        &self,
        transport: &impl RenewsTls,
        refused: Option<u64>,
    ) -> Result<(Option<HeaderValue>, u64), TransportError> {
        let mut present = self.present.lock().await;
        let is_refused = refused == Some(present.version);
        let age = present.read.map(|read| read.elapsed());
        let is_due = match (&self.credentials.exec, &present.exec) {
            (Some(_), Some(status)) if !is_refused => {
                status.is_expired() && age.is_none_or(|age| age >= SHORTEST)
            }
            _ => age.is_none_or(|age| {
                let most = if is_refused {
                    SHORTEST
                } else {
                    FILES_ARE_GOOD_FOR
                };
                age >= most
            }),
        };
        if is_due {
            self.renew(&mut present, transport).await?;
        }
        Ok((present.authorization.clone(), present.version))
    }

    async fn renew(
        &self,
        present: &mut Present,
        transport: &impl RenewsTls,
    ) -> Result<(), TransportError> {
        let mut tls = present.tls.clone();
        let mut authorization = present.authorization.clone();
        if let Some(path) = &self.credentials.token_file {
            let token = read_file(path).map(|token| String::from_utf8_lossy(&token).into_owned());
            match token {
                Ok(token) if !token.trim().is_empty() => {
                    let bearer = bearer(token.trim()).map_err(TransportError::unsent)?;
                    authorization = Some(bearer);
                }
                // The last token stays: it may be good for some time, and the file may come back.
                other if authorization.is_some() => {
                    let error = other.err().map(|error| error.to_string());
                    let error = error.unwrap_or_else(|| "it is empty".to_owned());
                    tracing::warn!("the token file {} cannot be read: {error}", path.display());
                }
                Ok(_) => {
                    let problem = format!("the token file {} is empty", path.display());
                    return Err(TransportError::unsent(problem));
                }
                Err(error) => {
                    let problem = format!("the token file {}: {error}", path.display());
                    return Err(TransportError::unsent(problem));
                }
            }
        }
        let files = self.credentials.read_certificate(&mut tls);
        let files = files.and_then(|()| {
            if let Some(authorities) = &self.authorities {
                tls.authorities = Some(authorities.read()?);
            }
            Ok(())
        });
        if let Err(error) = files {
            tracing::warn!("certificates are not read again: {error}");
            tls = present.tls.clone();
        }
        let mut status = None;
        if let Some(exec) = &self.credentials.exec {
            if let Some(failed) = &present.failed
                && failed.at.elapsed() < failed.wait
            {
                return Err(TransportError::unsent(&*failed.problem));
            }
            let printed = self.printed(exec, present, &tls).await;
            let printed = printed.map_err(|problem| present.fail(problem))?;
            if let Some(token) = &printed.token {
                authorization = Some(bearer(token).map_err(|problem| present.fail(problem))?);
            }
            if let (Some(certificate), Some(key)) =
                (&printed.client_certificate_data, &printed.client_key_data)
            {
                tls.certificate = Some(certificate.clone().into_bytes());
                tls.key = Some(key.clone().into_bytes());
            }
            status = Some(printed);
        }
        if tls != present.tls {
            match transport.renew(&tls) {
                Ok(()) => {
                    present.tls = tls;
                    present.version += 1;
                }
                // A file can be read while it is being written: the present ones stay until the next time.
                Err(error) if status.is_none() => {
                    tracing::warn!("new certificates are not used: {error}");
                }
                Err(error) => return Err(present.fail(error)),
            }
        }
        present.failed = None;
        if authorization != present.authorization {
            present.authorization = authorization;
            present.version += 1;
        }
        present.exec = status;
        present.read = Some(Instant::now());
        Ok(())
    }

    /// What the plugin prints.
    async fn printed(
        &self,
        exec: &Exec,
        present: &mut Present,
        tls: &TlsOptions,
    ) -> Result<ExecStatus, String> {
        loop {
            let is_new = present.running.is_none();
            let start = || exec::start(exec, &self.url, tls);
            // The wait may be given up here; then the next request waits for the same run.
            let printed = present.running.get_or_insert_with(start).clone().await;
            present.running = None;
            let is_old = |status: &ExecStatus| !is_new && status.is_expired();
            if !printed.as_ref().is_ok_and(is_old) {
                return printed;
            }
        }
    }
}

impl Present {
    /// Lets some time pass until the plugin is run again.
    fn fail(&mut self, problem: String) -> TransportError {
        let last = self.failed.take();
        let wait = last.map_or(SHORTEST, |last| (last.wait * 2).min(LONGEST));
        let at = Instant::now();
        let error = TransportError::unsent(&*problem);
        self.failed = Some(FailedRun { problem, at, wait });
        error
    }
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let value = value.map_err(|_| "the token has characters that cannot be sent".to_owned());
    value.map(sensitive)
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// A transport that sends credentials.
pub(super) struct Authenticated<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    transport: T,
    auth: Auth,
}

impl<T: RenewsTls> Authenticated<T> {
    pub(super) fn new(transport: T, auth: Auth) -> Self {
        let inner = Arc::new(Inner { transport, auth });
        Self { inner }
    }
}

impl<T: RenewsTls> Inner<T> {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, TransportError> {
        // A request that has its own credentials keeps them; it does not get more rights than others by that.
        if request.headers().contains_key(header::AUTHORIZATION) {
            for (name, value) in &self.auth.impersonation {
                request.headers_mut().append(name, value.clone());
            }
            return self.transport.call(request).await;
        }
        let (authorization, version) = self.auth.header(&self.transport, None).await?;
        let (parts, body) = request.into_parts();
        let with = |authorization: Option<HeaderValue>, body: Body| {
            let mut request = Request::new(body);
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = parts.uri.clone();
            *request.extensions_mut() = parts.extensions.clone();
            *request.headers_mut() = parts.headers.clone();
            let headers = request.headers_mut();
            for (name, value) in &self.auth.impersonation {
                headers.append(name, value.clone());
            }
            if let Some(authorization) = authorization {
                headers.insert(header::AUTHORIZATION, authorization);
            }
            request
        };
        if body.size_hint().exact().is_none() {
            return self.transport.call(with(authorization, body)).await;
        }
        let body = body
            .collect(usize::MAX)
            .await
            .map_err(TransportError::new)?;
        let copy = |body: &Bytes| {
            if body.is_empty() {
                Body::empty()
            } else {
                Body::from(body.clone())
            }
        };
        let first = with(authorization, copy(&body));
        let response = self.transport.call(first).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // Nothing was done for a user who is unknown: the request is sent again if there are other credentials by now.
        let renewed = self.auth.header(&self.transport, Some(version)).await;
        let (authorization, next) = match renewed {
            Ok(renewed) => renewed,
            // The server's answer says more than that there are no other credentials.
            Err(error) => {
                tracing::warn!("credentials that the server refuses cannot be renewed: {error}");
                return Ok(response);
            }
        };
        if next == version {
            return Ok(response);
        }
        drop(response);
        self.transport.call(with(authorization, copy(&body))).await
    }
}

impl<T: RenewsTls> Transport for Authenticated<T> {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.send(request).await })
    }
}
