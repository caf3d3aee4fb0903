//! `admin.kubeconfig` and the bearer token in it: made at the first start, kept by later ones.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use apiloom_meta::codec;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use serde_json::json;

use super::{Config, ServerError, private_file};

/// The administrator's token: 256 random bits, kept in `DATA_DIR/admin.token`.
pub(super) fn load_or_make_token(config: &Config) -> Result<String, ServerError> {
    let path = config.data_dir.join("admin.token");
    if let Some(token) = private_file::read(&path)? {
        let token = token.trim();
        // An emptied file must not become an empty token that anybody could present.
        if token.len() >= 16 {
            return Ok(token.to_owned());
        }
    }
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| ServerError::Random)?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    private_file::write(&path, &token)?;
    Ok(token)
}

/// The address that clients on this machine use for a server listening on `bound`.
pub(super) fn server_url(bound: SocketAddr) -> String {
    let host = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("https://{host}:{}", bound.port())
}

/// Writes `DATA_DIR/admin.kubeconfig` (mode 0600) and gives its absolute path.
pub(super) fn write(
    config: &Config,
    url: &str,
    authority_pem: &str,
    token: &str,
) -> Result<PathBuf, ServerError> {
    let path = config.data_dir.join("admin.kubeconfig");
    let name = &config.name;
    let authority = STANDARD.encode(authority_pem);
    let user = format!("{name}-admin");
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": name, "cluster": { "server": url, "certificate-authority-data": authority } }],
        "users": [{ "name": user, "user": { "token": token } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": user } }],
        "current-context": name,
    });
    let yaml = codec::encode_yaml(&document);
    let content = String::from_utf8_lossy(&yaml);
    if private_file::read(&path)?.as_deref() != Some(&*content) {
        private_file::write_derived(&path, &content)?;
    }
    Ok(path.canonicalize().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_an_address_that_clients_can_dial() {
        let check =
            |bound: &str, expected: &str| assert_eq!(server_url(bound.parse().unwrap()), expected);
        check("127.0.0.1:6443", "https://127.0.0.1:6443");
        check("0.0.0.0:1", "https://127.0.0.1:1");
        check("[::]:1", "https://[::1]:1");
        check("[::1]:1", "https://[::1]:1");
    }

    #[test]
    fn any_name_makes_a_well_formed_kubeconfig() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("a: \"b\" #c", dir.path());
        let path = write(&config, "https://[::1]:1", "PEM", "t0ken").unwrap();
        let text = std::fs::read(path).unwrap();
        let value = codec::decode_value(&text, codec::Format::Yaml).unwrap();
        assert_eq!(value["current-context"], "a: \"b\" #c");
        assert_eq!(value["clusters"][0]["cluster"]["server"], "https://[::1]:1");
        assert_eq!(value["users"][0]["user"]["token"], "t0ken");
    }

    #[test]
    fn a_token_is_made_once_and_an_emptied_file_is_not_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("srv", dir.path());
        let first = load_or_make_token(&config).unwrap();
        assert_eq!(first.len(), 43);
        assert_eq!(load_or_make_token(&config).unwrap(), first);
        std::fs::write(dir.path().join("admin.token"), "").unwrap();
        assert_eq!(load_or_make_token(&config).unwrap().len(), 43);
    }
}
