//! The configuration that the environment names: kubeconfig files, or the files of a pod.

use std::path::{Path, PathBuf};

use super::Config;
use super::error::ConfigError;
use super::file::read_file;
use super::kubeconfig::Kubeconfig;
use super::source::{Credentials, Pem};
use crate::client::Client;
use crate::transport::TlsOptions;

/// The folder with the credentials of a pod.
const POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

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

    pub(super) fn of_pod(host: &str, port: &str, folder: &Path) -> Result<Self, ConfigError> {
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
}
