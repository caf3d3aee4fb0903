//! Kubeconfig files: their form, and how several become one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ConfigError;
use super::file::read_file_or_pipe;
use crate::transport::without_userinfo;

/// The content of one or several kubeconfig files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    #[serde(deserialize_with = "or_empty")]
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
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) cluster: Cluster,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedUser {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) user: User,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedContext {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) context: Context,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Context {
    #[serde(deserialize_with = "or_empty")]
    pub(super) cluster: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) user: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) namespace: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    #[serde(deserialize_with = "or_empty")]
    pub(super) server: String,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) tls_server_name: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) insecure_skip_tls_verify: bool,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) certificate_authority: Option<PathBuf>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) certificate_authority_data: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) proxy_url: Option<String>,
}

/// Without the users and passwords of URLs.
impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &without_userinfo(&self.server))
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    #[serde(deserialize_with = "unless_empty")]
    pub(super) client_certificate: Option<PathBuf>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) client_certificate_data: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) client_key: Option<PathBuf>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) client_key_data: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    #[serde(deserialize_with = "unless_empty")]
    pub(super) token_file: Option<PathBuf>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) username: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    pub(super) password: Option<String>,
    pub(super) exec: Option<Exec>,
    pub(super) auth_provider: Option<serde_json::Value>,
    #[serde(rename = "as")]
    #[serde(deserialize_with = "unless_empty")]
    pub(super) impersonated: Option<String>,
    #[serde(rename = "as-uid")]
    #[serde(deserialize_with = "unless_empty")]
    pub(super) impersonated_uid: Option<String>,
    #[serde(rename = "as-groups")]
    #[serde(deserialize_with = "or_empty")]
    pub(super) impersonated_groups: Vec<String>,
    #[serde(rename = "as-user-extra")]
    #[serde(deserialize_with = "or_empty")]
    pub(super) impersonated_extra: BTreeMap<String, Vec<String>>,
}

/// Without the secrets.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").finish_non_exhaustive()
    }
}

/// A program that prints credentials.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exec {
    #[serde(deserialize_with = "or_empty")]
    pub(super) api_version: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) command: PathBuf,
    #[serde(deserialize_with = "or_empty")]
    pub(super) args: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) env: Vec<Variable>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) interactive_mode: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) provide_cluster_info: bool,
    #[serde(deserialize_with = "or_empty")]
    pub(super) install_hint: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Variable {
    #[serde(deserialize_with = "or_empty")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) value: String,
}

/// A value that may be `null`, as Go writes and reads empty ones.
fn or_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A text that is not set if it is empty, as in Go.
fn unless_empty<'de, D: serde::Deserializer<'de>, T: From<String>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(T::from))
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
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
            let text = match read_file_or_pipe(file).and_then(text_of) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
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
