//! `admin.kubeconfig` and its bearer token, generated at the first start and kept.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use apiloom_meta::codec::{self, Format};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use serde_json::json;

use super::{Config, ServerError, private_file};

/// Minimum length of a token; a shorter one could be guessed.
const MIN_TOKEN_CHARS: usize = 16;

/// The administrator's token: 256 random bits, in `DATA_DIR/admin.token`. The file's owner may replace the token.
pub(super) fn load_or_make_token(config: &Config) -> Result<String, ServerError> {
    let path = config.data_dir.join("admin.token");
    let present = || Ok(private_file::read_secret(&path)?.map(|text| text.trim().to_owned()));
    match present()? {
        None => {
            let token = random_token()?;
            if private_file::write_new(&path, &token)? {
                return Ok(token);
            }
            // Another process has created it in the meantime.
            checked(present()?.unwrap_or_default(), &path)
        }
        // An empty file must not become an empty token, which any client could present.
        Some(token) if token.is_empty() => {
            let token = random_token()?;
            private_file::write(&path, &token)?;
            Ok(token)
        }
        Some(token) => checked(token, &path),
    }
}

pub(super) fn random_token() -> Result<String, ServerError> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| ServerError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Validates a token: refuses one that no client could send, or that is easy to guess. It is not replaced, since a
/// user wrote it.
fn checked(token: String, path: &Path) -> Result<String, ServerError> {
    if token.len() >= MIN_TOKEN_CHARS && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    Err(ServerError::File {
        path: path.to_owned(),
        reason: format!(
            "holds no token, which is at least {MIN_TOKEN_CHARS} ASCII characters without spaces; remove it, and a new one is made"
        ),
    })
}

/// The URL by which clients on this machine reach a server bound to this address.
pub(super) fn server_url(bound: SocketAddr) -> String {
    let address = SocketAddr::new(reachable(bound.ip()), bound.port());
    format!("https://{address}")
}

/// The address by which clients on this machine reach a server bound to this one.
pub(super) fn reachable(bound: IpAddr) -> IpAddr {
    match bound {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Checks that the file that the configuration names for the kubeconfig can be written: it is new, empty or this server's.
///
/// # Errors
/// A file that has something else, or whose folder does not exist.
pub(super) fn check(config: &Config) -> Result<(), ServerError> {
    let Some(path) = &config.kubeconfig else {
        return Ok(());
    };
    let refuse = |reason: &str| {
        let (path, reason) = (path.clone(), reason.to_owned());
        Err(ServerError::File { path, reason })
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return refuse("its folder does not exist; make it, or choose another one");
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return refuse("is not a file; choose another one"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Ok(_) | Err(_) => {}
    }
    let text = private_file::read(path)?.unwrap_or_default();
    if is_own(&text, &config.name) {
        return Ok(());
    }
    refuse(
        "is no kubeconfig of this server alone, so it is not overwritten; remove it, or choose another file",
    )
}

/// Whether a file is empty, or a kubeconfig with the entries of a server of this name and no others.
fn is_own(text: &str, name: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let document = codec::Decoder::new(Format::Yaml)
        .value(text.as_bytes())
        .unwrap_or_default();
    let has_one = |list: &str, name: &str| {
        let entries = document[list].as_array();
        entries.is_some_and(|entries| entries.len() == 1 && entries[0]["name"] == name)
    };
    let user = user_name(name);
    has_one("clusters", name) && has_one("contexts", name) && has_one("users", &user)
}

/// The name of the administrator in the kubeconfig.
fn user_name(name: &str) -> String {
    format!("{name}-admin")
}

/// Writes the file that the configuration names, or `DATA_DIR/admin.kubeconfig` (mode 0600), and returns its absolute path.
pub(super) fn write(
    config: &Config,
    url: &str,
    authority_pem: &str,
    token: &str,
) -> Result<PathBuf, ServerError> {
    check(config)?;
    let path = match &config.kubeconfig {
        // The file that a symbolic link leads to is written, and the link stays.
        Some(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
        None => config.data_dir.join("admin.kubeconfig"),
    };
    let name = &config.name;
    let authority = STANDARD.encode(authority_pem);
    let user = user_name(name);
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": name, "cluster": { "server": url, "certificate-authority-data": authority } }],
        "users": [{ "name": user, "user": { "token": token } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": user } }],
        "current-context": name,
    });
    let yaml = codec::Encoder::yaml(&document);
    let content = String::from_utf8_lossy(&yaml);
    // It contains the token, so a file that others can read is replaced, too.
    if !private_file::is_private(&path) || private_file::read(&path)?.as_deref() != Some(&*content)
    {
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
        let value = codec::Decoder::new(codec::Format::Yaml)
            .value(&text)
            .unwrap();
        assert_eq!(value["current-context"], "a: \"b\" #c");
        assert_eq!(value["clusters"][0]["cluster"]["server"], "https://[::1]:1");
        assert_eq!(value["users"][0]["user"]["token"], "t0ken");
    }

    fn put(dir: &Path, content: impl AsRef<[u8]>) {
        let path = dir.join("admin.token");
        std::fs::write(&path, content).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    #[test]
    fn a_token_is_made_once_and_an_emptied_file_is_not_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("srv", dir.path());
        let first = load_or_make_token(&config).unwrap();
        assert_eq!(first.len(), 43);
        assert_eq!(load_or_make_token(&config).unwrap(), first);
        for empty in ["", "\n", " \r\n"] {
            put(dir.path(), empty);
            let made = load_or_make_token(&config).unwrap();
            assert_eq!(made.len(), 43);
            assert_eq!(load_or_make_token(&config).unwrap(), made);
        }
    }

    /// Tokens written by a user.
    #[test]
    fn a_token_of_the_users_is_kept_or_refused_but_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("srv", dir.path());
        let own = "a-token-of-my-own";
        for good in [own.to_owned(), format!("{own}\n"), format!(" {own}\r\n")] {
            put(dir.path(), &good);
            assert_eq!(load_or_make_token(&config).unwrap(), own);
        }
        for bad in [
            "short",
            "two words are no token",
            "schlüssel-schlüssel",
            "\u{feff}a-token-of-my-own",
        ] {
            put(dir.path(), bad);
            let error = load_or_make_token(&config).unwrap_err().to_string();
            assert!(error.contains("admin.token: holds no token"), "{error}");
            assert_eq!(
                std::fs::read_to_string(dir.path().join("admin.token")).unwrap(),
                bad
            );
        }
        put(dir.path(), b"\xff\xfe");
        let error = load_or_make_token(&config).unwrap_err().to_string();
        assert!(error.contains("admin.token: cannot be read"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_kubeconfig_is_written_where_asked_but_not_over_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new("srv", dir.path().join("data"));
        let given = dir.path().join("given");
        config.kubeconfig = Some(given.clone());
        let write = |config: &Config| write(config, "https://[::1]:1", "PEM", "t0ken");
        let read = || std::fs::read_to_string(&given).unwrap();
        // New, then its own, then an empty one such as `mktemp` makes.
        for content in [None, Some(String::new()), Some("\n".to_owned())] {
            if let Some(content) = content {
                std::fs::write(&given, content).unwrap();
                std::fs::set_permissions(&given, std::fs::Permissions::from_mode(0o644)).unwrap();
            }
            let path = write(&config).unwrap();
            assert_eq!(path, given.canonicalize().unwrap());
            let mode = std::fs::metadata(&given).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(read().contains("t0ken"));
            write(&config).unwrap();
        }
        assert!(!config.data_dir.exists());
        // Through a link, which stays.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&given, &link).unwrap();
        config.kubeconfig = Some(link.clone());
        std::fs::write(&given, "").unwrap();
        write(&config).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(read().contains("t0ken"));

        config.kubeconfig = Some(given.clone());
        let own = read();
        let of_another = own.replace("srv", "other");
        let two = own.replacen("clusters:\n", "clusters:\n- name: second\n", 1);
        assert_ne!(two, own);
        for other in ["a note", "{}", &of_another, &two] {
            std::fs::write(&given, other).unwrap();
            let error = write(&config).unwrap_err().to_string();
            assert!(
                error.contains("is no kubeconfig of this server alone"),
                "{error}"
            );
            assert_eq!(read(), other);
        }
        let refused = |path: std::path::PathBuf, expected: &str| {
            let config = Config {
                kubeconfig: Some(path),
                ..config.clone()
            };
            let error = check(&config).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(dir.path().to_owned(), "is not a file");
        refused(dir.path().join("none/file"), "its folder does not exist");
    }

    /// The kubeconfig contains the token.
    #[cfg(unix)]
    #[test]
    fn a_kubeconfig_that_others_can_read_is_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("srv", dir.path());
        let written = || write(&config, "https://[::1]:1", "PEM", "t0ken").unwrap();
        let path = written();
        let mode = |path: &Path| {
            std::fs::symlink_metadata(path)
                .unwrap()
                .permissions()
                .mode()
        };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        written();
        assert_eq!(mode(&path) & 0o777, 0o600);
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        written();
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }
}
