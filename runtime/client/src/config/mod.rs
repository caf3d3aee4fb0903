//! Where the server is and who the client is: kubeconfig files, the files of a pod, and credentials that are renewed.

mod auth;
mod context;
mod environment;
mod error;
mod exec;
mod file;
mod kubeconfig;
mod source;

use std::fmt;

use crate::client::{Client, ClientBuilder};
use crate::transport::{HttpTransport, TlsOptions, without_userinfo};

use auth::{Auth, Authenticated};
pub use error::ConfigError;
pub use file::read_file;
pub use kubeconfig::Kubeconfig;
use source::{Credentials, Pem};

/// Where a server is, and as whom its client acts.
///
/// ```no_run
/// # async fn example() -> Result<(), apiloom_client::config::ConfigError> {
/// use apiloom_client::config::{Config, Kubeconfig};
///
/// let kubeconfig = Kubeconfig::read(&["admin.kubeconfig".into()])?;
/// let client = Config::from_kubeconfig(&kubeconfig, None)?.client()?.build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Config {
    /// URL of the server; its path comes before that of every request.
    pub url: String,
    /// The namespace of [`Client::default_namespaced`].
    pub namespace: String,
    tls: TlsOptions,
    authorities: Option<Pem>,
    credentials: Credentials,
}

/// Without the secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &without_userinfo(&self.url))
            .field("namespace", &self.namespace)
            .field("tls", &self.tls)
            .field("authorities", &self.authorities)
            .field("credentials", &self.credentials)
            .finish()
    }
}

impl Config {
    /// Begins a client with this configuration. Nothing is sent yet, and no plugin is run.
    ///
    /// # Errors
    /// If a file cannot be read, or the URL or a certificate is malformed.
    pub fn client(&self) -> Result<ClientBuilder, ConfigError> {
        let mut tls = self.tls.clone();
        if let Some(authorities) = &self.authorities {
            tls.authorities = Some(authorities.read()?);
        }
        self.credentials.read_certificate(&mut tls)?;
        let transport = HttpTransport::builder(&self.url).tls(tls.clone()).build()?;
        let auth = Auth::new(
            self.credentials.clone(),
            self.authorities.clone(),
            self.url.clone(),
            tls,
        )?;
        let transport = Authenticated::new(transport, auth);
        let path = self
            .url
            .split_once("://")
            .map_or(&*self.url, |(_, rest)| rest);
        let path = path.find('/').map_or("", |at| &path[at..]);
        Ok(Client::builder(transport)
            .base_path(path)
            .default_namespace(self.namespace.clone()))
    }
}

#[cfg(test)]
mod tests;
