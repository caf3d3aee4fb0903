//! The configuration of one context of a kubeconfig.

use super::Config;
use super::error::ConfigError;
use super::kubeconfig::Kubeconfig;
use super::source::{Credentials, pem};
use crate::transport::TlsOptions;

impl Config {
    /// The configuration of a context, or of the current one.
    ///
    /// # Errors
    /// If it does not exist, is malformed, or needs what is not supported (`proxy-url`, `auth-provider`).
    pub fn from_kubeconfig(
        kubeconfig: &Kubeconfig,
        context: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let malformed = |problem: String| Err(ConfigError::Malformed(problem));
        let name = context.unwrap_or(&kubeconfig.current_context);
        if name.is_empty() {
            return malformed("the kubeconfig has no current-context".to_owned());
        }
        let found = kubeconfig.contexts.iter().find(|known| known.name == name);
        let Some(context) = found.map(|found| &found.context) else {
            return malformed(format!("the kubeconfig has no context {name:?}"));
        };
        let wanted = &context.cluster;
        let found = kubeconfig
            .clusters
            .iter()
            .find(|known| known.name == *wanted);
        let Some(cluster) = found.map(|found| &found.cluster) else {
            return malformed(format!(
                "the kubeconfig has no cluster {wanted:?}, which the context {name:?} names"
            ));
        };
        if cluster.server.is_empty() {
            return malformed(format!(
                "the cluster {wanted:?} of the kubeconfig has no server"
            ));
        }
        if cluster.proxy_url.is_some() {
            return malformed(format!(
                "the cluster {wanted:?} has a proxy-url, which is not supported"
            ));
        }
        let wanted = &context.user;
        let found = kubeconfig.users.iter().find(|known| known.name == *wanted);
        let credentials = match found {
            Some(found) => Credentials::of(&found.user, wanted)?,
            None if wanted.is_empty() => Credentials::default(),
            None => {
                return malformed(format!(
                    "the kubeconfig has no user {wanted:?}, which the context {name:?} names"
                ));
            }
        };
        let namespace = Some(context.namespace.clone()).filter(|namespace| !namespace.is_empty());
        Ok(Config {
            url: cluster.server.clone(),
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            tls: TlsOptions {
                server_name: cluster.tls_server_name.clone(),
                accepts_any_certificate: cluster.insecure_skip_tls_verify,
                ..TlsOptions::default()
            },
            authorities: pem(
                "certificate-authority-data",
                &cluster.certificate_authority_data,
                &cluster.certificate_authority,
            )?,
            credentials,
        })
    }
}
