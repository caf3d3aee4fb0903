//! Credentials and certificates where they come from: a text, a file, a program.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::ConfigError;
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
            Self::File(path) => std::fs::read(path).map_err(|error| ConfigError::File {
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
    pub(super) impersonation: Vec<(&'static str, String)>,
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
        let impersonated = |name, value: &Option<String>| Some((name, value.clone()?));
        let mut impersonation: Vec<_> = [
            impersonated("impersonate-user", &user.impersonated),
            impersonated("impersonate-uid", &user.impersonated_uid),
        ]
        .into_iter()
        .flatten()
        .collect();
        let groups = user.impersonated_groups.iter();
        impersonation.extend(groups.map(|group| ("impersonate-group", group.clone())));
        Ok(Self {
            certificate: pem(
                "client-certificate-data",
                &user.client_certificate_data,
                &user.client_certificate,
            )?,
            key: pem("client-key-data", &user.client_key_data, &user.client_key)?,
            token: user.token.clone().filter(|token| !token.is_empty()),
            token_file: user.token_file.clone(),
            basic,
            exec: user.exec.clone(),
            impersonation,
        })
    }
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
