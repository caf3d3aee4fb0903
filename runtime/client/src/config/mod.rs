//! Where the server is and who the client is: kubeconfig files, the files of a pod, and credentials that are renewed.

mod auth;
mod context;
mod error;
mod exec;
mod file;
mod kubeconfig;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::client::{Client, ClientBuilder};
use crate::transport::{HttpTransport, TlsOptions, without_userinfo};

use auth::{Auth, Authenticated};
pub use error::ConfigError;
pub use file::read_file;
pub use kubeconfig::Kubeconfig;
use source::{Credentials, Pem};

/// The folder with the credentials of a pod.
const POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

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

impl Client {
    /// A client of the server that the environment names.
    ///
    /// That is the kubeconfig files in the variable `KUBECONFIG`; without it the server of the pod in which the program runs; else
    /// the kubeconfig file `~/.kube/config`.
    ///
    /// # Errors
    /// If there is none, or it cannot be used.
    pub fn from_env() -> Result<Self, ConfigError> {
        Ok(Config::from_env()?.client()?.build()?)
    }
}

impl Config {
    /// The configuration that the environment names; see [`Client::from_env`].
    ///
    /// # Errors
    /// If there is none, or it cannot be used.
    pub fn from_env() -> Result<Self, ConfigError> {
        if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            let files: Vec<PathBuf> = std::env::split_paths(&list)
                .filter(|file| !file.as_os_str().is_empty())
                .collect();
            return Self::from_kubeconfig(&Kubeconfig::read(&files)?, None);
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            return Self::in_cluster();
        }
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let file = home.map(|home| home.join(".kube/config"));
        match file.filter(|file| file.exists()) {
            Some(file) => Self::from_kubeconfig(&Kubeconfig::read(&[file])?, None),
            None => Err(ConfigError::Missing(
                "no server is configured: KUBECONFIG is not set, this is no pod, and there is no ~/.kube/config".to_owned(),
            )),
        }
    }

    /// The server of the pod in which the program runs, with its service account.
    ///
    /// # Errors
    /// Outside of a pod.
    pub fn in_cluster() -> Result<Self, ConfigError> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                ConfigError::Missing(format!("this is no pod: the variable {name} is not set"))
            })
        };
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        Self::of_pod(&host, &port, Path::new(POD))
    }

    fn of_pod(host: &str, port: &str, folder: &Path) -> Result<Self, ConfigError> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let namespace = read_file(&folder.join("namespace"));
        let namespace = namespace.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        Ok(Self {
            url: format!("https://{host}:{port}"),
            namespace: namespace.unwrap_or_else(|_| "default".to_owned()),
            tls: TlsOptions::default(),
            authorities: Some(Pem::File(folder.join("ca.crt"))),
            credentials: Credentials::token_file(folder.join("token")),
        })
    }

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
