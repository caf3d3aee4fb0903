//! Credentials and certificates where they come from: a text, a file, a program.

use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::ConfigError;
use super::file::read_file;
use super::kubeconfig::{Exec, User};
use crate::transport::TlsOptions;

/// Certificates or a key.
#[derive(Clone)]
pub(super) enum Pem {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Pem {
    pub(super) fn read(&self) -> Result<Vec<u8>, ConfigError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => read_file(path).map_err(|error| ConfigError::File {
                path: path.clone(),
                error,
            }),
        }
    }
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("<text>"),
            Self::File(path) => path.fmt(f),
        }
    }
}

/// As whom requests are sent.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    pub(super) certificate: Option<Pem>,
    pub(super) key: Option<Pem>,
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    /// User and password.
    pub(super) basic: Option<(String, String)>,
    pub(super) exec: Option<Exec>,
    /// Headers that name another user.
    pub(super) impersonation: Vec<(String, String)>,
}

/// Without the secrets.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("has_certificate", &self.certificate.is_some())
            .field("has_token", &self.token.is_some())
            .field("token_file", &self.token_file)
            .field("exec", &self.exec.as_ref().map(|exec| &exec.command))
            .finish_non_exhaustive()
    }
}

impl Credentials {
    pub(super) fn token_file(path: PathBuf) -> Self {
        Self {
            token_file: Some(path),
            ..Self::default()
        }
    }

    /// Puts the certificate and the key into options of TLS.
    pub(super) fn read_certificate(&self, tls: &mut TlsOptions) -> Result<(), ConfigError> {
        if let Some(certificate) = &self.certificate {
            tls.certificate = Some(certificate.read()?);
        }
        if let Some(key) = &self.key {
            tls.key = Some(key.read()?);
        }
        Ok(())
    }

    pub(super) fn of(user: &User, name: &str) -> Result<Self, ConfigError> {
        if user.auth_provider.is_some() {
            return Err(ConfigError::Malformed(format!(
                "the user {name:?} has an auth-provider, which is not supported: use a plugin (exec)"
            )));
        }
        let basic = user.username.clone().map(|username| {
            let password = user.password.clone().unwrap_or_default();
            (username, password)
        });
        Ok(Self {
            certificate: pem(
                "client-certificate-data",
                &user.client_certificate_data,
                &user.client_certificate,
            )?,
            key: pem("client-key-data", &user.client_key_data, &user.client_key)?,
            token: user.token.clone(),
            token_file: user.token_file.clone(),
            basic,
            exec: user.exec.clone(),
            impersonation: impersonation(user, name)?,
        })
    }
}

/// The headers that name another user.
fn impersonation(user: &User, name: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let mut headers = Vec::new();
    let mut add = |header: &str, value: &String| headers.push((header.to_owned(), value.clone()));
    if let Some(uid) = &user.impersonated_uid {
        add("impersonate-uid", uid);
    }
    for group in &user.impersonated_groups {
        add("impersonate-group", group);
    }
    for (key, values) in &user.impersonated_extra {
        let header = format!("impersonate-extra-{}", escaped(key));
        for value in values {
            add(&header, value);
        }
    }
    match &user.impersonated {
        Some(impersonated) => add("impersonate-user", impersonated),
        None if headers.is_empty() => {}
        // A server would ignore them, and the requests would have the rights of the user itself.
        None => {
            return Err(ConfigError::Malformed(format!(
                "the user {name:?} of the kubeconfig has as-uid, as-groups or as-user-extra without as: name the other user there"
            )));
        }
    }
    Ok(headers)
}

/// A key as a part of a header's name; the server decodes it.
fn escaped(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Data in base64 takes precedence over a file.
pub(super) fn pem(
    field: &str,
    data: &Option<String>,
    file: &Option<PathBuf>,
) -> Result<Option<Pem>, ConfigError> {
    match data.as_deref().filter(|data| !data.is_empty()) {
        Some(data) => match STANDARD.decode(data.trim()) {
            Ok(text) => Ok(Some(Pem::Text(text))),
            Err(_) => Err(ConfigError::Malformed(format!("{field} is not base64"))),
        },
        None => Ok(file.clone().map(Pem::File)),
    }
}
