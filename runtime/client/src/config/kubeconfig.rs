//! Kubeconfig files: their form, and how several become one.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ConfigError;

/// The content of one or several kubeconfig files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    pub(super) current_context: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) clusters: Vec<NamedCluster>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) users: Vec<NamedUser>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) contexts: Vec<NamedContext>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedCluster {
    pub(super) name: String,
    #[serde(default)]
    pub(super) cluster: Cluster,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedUser {
    pub(super) name: String,
    #[serde(default)]
    pub(super) user: User,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedContext {
    pub(super) name: String,
    #[serde(default)]
    pub(super) context: Context,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: Option<PathBuf>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) proxy_url: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) client_key_data: Option<String>,
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) exec: Option<Exec>,
    pub(super) auth_provider: Option<serde_json::Value>,
    #[serde(rename = "as")]
    pub(super) impersonated: Option<String>,
    #[serde(rename = "as-uid")]
    pub(super) impersonated_uid: Option<String>,
    #[serde(rename = "as-groups")]
    pub(super) impersonated_groups: Vec<String>,
}

/// Without the secrets.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").finish_non_exhaustive()
    }
}

/// A program that prints credentials.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exec {
    pub(super) api_version: String,
    pub(super) command: PathBuf,
    #[serde(deserialize_with = "or_empty")]
    pub(super) args: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) env: Vec<Variable>,
    pub(super) interactive_mode: String,
    pub(super) provide_cluster_info: bool,
    pub(super) install_hint: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
}

/// A list that may be `null`, as Go writes empty ones.
fn or_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Kubeconfig {
    /// Reads files and merges them: of clusters, users and contexts with one name the first one counts, and the first current
    /// context. Files that do not exist are left out, as kubectl does. Paths in a file are relative to its folder.
    ///
    /// # Errors
    /// If a file cannot be read or is malformed, or none exists.
    pub fn read(files: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut all: Option<Self> = None;
        for file in files {
            let text = match std::fs::read_to_string(file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let path = file.clone();
                    return Err(ConfigError::File { path, error });
                }
            };
            let folder = file.parent().unwrap_or(Path::new(""));
            let next = Self::parse(&text, folder)
                .map_err(|error| ConfigError::Malformed(format!("{}: {error}", file.display())))?;
            all.get_or_insert_default().merge(next);
        }
        all.ok_or_else(|| {
            let names: Vec<_> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            ConfigError::Missing(format!("no kubeconfig file exists: {}", names.join(", ")))
        })
    }

    /// Parses the text of one file.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // The message of the parser may show a line, and a line may be a secret.
        let mut config: Self = serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location().map(|at| format!(" at line {}", at.line()));
            let place = place.unwrap_or_default();
            ConfigError::Malformed(format!("the kubeconfig is malformed{place}"))
        })?;
        let absolute = |path: &mut Option<PathBuf>| {
            if let Some(path) = path {
                *path = folder.join(&*path);
            }
        };
        for cluster in &mut config.clusters {
            absolute(&mut cluster.cluster.certificate_authority);
        }
        for NamedUser { user, .. } in &mut config.users {
            absolute(&mut user.client_certificate);
            absolute(&mut user.client_key);
            absolute(&mut user.token_file);
            // A command without a folder is looked for in PATH.
            if let Some(exec) = &mut user.exec
                && exec.command.components().count() > 1
            {
                exec.command = folder.join(&exec.command);
            }
        }
        Ok(config)
    }

    fn merge(&mut self, other: Self) {
        if self.current_context.is_empty() {
            self.current_context = other.current_context;
        }
        for cluster in other.clusters {
            if self.clusters.iter().all(|known| known.name != cluster.name) {
                self.clusters.push(cluster);
            }
        }
        for user in other.users {
            if self.users.iter().all(|known| known.name != user.name) {
                self.users.push(user);
            }
        }
        for context in other.contexts {
            if self.contexts.iter().all(|known| known.name != context.name) {
                self.contexts.push(context);
            }
        }
    }
}
