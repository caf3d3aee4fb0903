//! Secret.

use apiloom_macros::resource;
use apiloom_meta::{ObjectMeta, SortedMap};

/// Secret holds data that only some may read. Its values are not encrypted, and are not shown by `Debug`.
#[resource(group = "", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), generation = none, selectable(secret_type), strategic_merge_patch,
    printcolumn(name = "Type", path = secret_type, doc = "What the data is for."),
    printcolumn(name = "Data", with = Secret::entries, doc = "The number of entries."))]
#[derive(Default)]
pub struct Secret {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// If true, data cannot be changed, and neither can this field. Unset means false.
    #[api(proto = 5)]
    pub immutable: Option<bool>,
    /// The entries. A key consists of letters, digits, '-', '_' and '.'. The values are base64 in JSON, together at most
    /// 1 MiB of bytes.
    #[api(proto = 2, sensitive)]
    pub data: SortedMap<String, Vec<u8>>,
    /// Entries as text, for writes only: they are added to data, and win over entries of the same key there. They are
    /// never read back.
    #[api(proto = 4, sensitive)]
    pub string_data: SortedMap<String, String>,
    /// What the data is for. It cannot be changed, and defaults to Opaque, which is any data.
    #[api(proto(number = 3, omit_empty), json = "type", default = String::from(Secret::OPAQUE))]
    pub secret_type: String,
}

impl Secret {
    /// Type of secrets with any data; the default.
    pub const OPAQUE: &str = "Opaque";
    /// Type of tokens of service accounts. The name of the account is in the annotation [`Secret::SERVICE_ACCOUNT_NAME`].
    pub const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
    /// Type of credentials for container registries, in the form of `~/.dockercfg`.
    pub const DOCKERCFG: &str = "kubernetes.io/dockercfg";
    /// Type of credentials for container registries, in the form of `~/.docker/config.json`.
    pub const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";
    /// Type of a user name and a password.
    pub const BASIC_AUTH: &str = "kubernetes.io/basic-auth";
    /// Type of a private key for SSH.
    pub const SSH_AUTH: &str = "kubernetes.io/ssh-auth";
    /// Type of a certificate and its private key for TLS.
    pub const TLS: &str = "kubernetes.io/tls";
    /// Annotation with the name of a token's service account.
    pub const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

    /// The number of entries.
    fn entries(&self) -> i64 {
        i64::try_from(self.data.len()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value_of_a_secret() {
        let mut secret = Secret {
            secret_type: Secret::OPAQUE.to_owned(),
            ..Secret::default()
        };
        secret.metadata.name = Some("db".to_owned());
        let value = b"hunter2".to_vec();
        secret.data.insert("password".to_owned(), value.clone());
        let text = "hunter2".to_owned();
        secret.string_data.insert("password".to_owned(), text);
        let shown = format!("{secret:?} {secret:#?}");
        assert!(shown.contains("data: <redacted>"), "{shown}");
        assert!(shown.contains("string_data: <redacted>"), "{shown}");
        assert!(shown.contains("secret_type: \"Opaque\""), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!shown.contains(&format!("{value:?}")), "{shown}");
    }
}
