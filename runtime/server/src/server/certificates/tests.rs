//! Certificates at the start of a server: which are kept, replaced or refused.

use std::fs;

use super::*;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Folder {
    _dir: tempfile::TempDir,
    config: Config,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::new("srv", dir.path());
        fs::create_dir(&config.cert_dir).unwrap();
        Self { _dir: dir, config }
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.config.cert_dir.join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn put(&self, file: &str, content: &str) {
        private_file::write(&self.path(file), content).unwrap();
    }

    /// The files of a server with another start time, or another address.
    fn made(&self, at: &str, bind_address: IpAddr) {
        let key_pem = KeyPair::generate().unwrap().serialize_pem();
        let chain_pem = make(&key_pem, &names(bind_address), at.parse().unwrap()).unwrap();
        self.put("apiserver.key", &key_pem);
        self.put("apiserver.crt", &chain_pem);
    }

    fn load(&self) -> Result<String, String> {
        let loaded = load_or_make(&self.config).map_err(|error| error.to_string());
        loaded.map(|loaded| loaded.authority_pem)
    }

    /// Whether the next start keeps the certificate. The key is always kept.
    fn keeps(&self) -> bool {
        let (certificate, key) = (self.read("apiserver.crt"), self.read("apiserver.key"));
        let served = self.load().unwrap();
        assert_eq!(served, self.read("apiserver.crt"));
        assert_eq!(key, self.read("apiserver.key"));
        let fault = Certificate::of_pem(&served)
            .unwrap()
            .fault(&names(self.config.bind_address));
        assert!(served == certificate || fault.is_none(), "{fault:?}");
        served == certificate
    }
}

fn today() -> String {
    jiff::Timestamp::now().to_string()
}

#[test]
fn a_certificate_of_ours_is_kept_as_long_as_it_is_good() {
    let folder = Folder::new();
    folder.load().unwrap();
    assert!(folder.keeps());
    folder.made(&today(), LOCAL);
    assert!(folder.keeps());
}

#[test]
fn a_certificate_of_ours_that_expires_is_made_anew() {
    for at in ["2001-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] {
        let folder = Folder::new();
        folder.made(at, LOCAL);
        assert!(!folder.keeps(), "{at}");
        assert!(folder.keeps());
    }
}

#[test]
fn a_certificate_of_ours_for_another_address_is_made_anew() {
    let mut folder = Folder::new();
    folder.made(&today(), LOCAL);
    folder.config.bind_address = "192.0.2.7".parse().unwrap();
    assert!(!folder.keeps());
    assert!(folder.keeps());
    // A certificate with additional names is kept.
    folder.config.bind_address = LOCAL;
    assert!(folder.keeps());
    folder.config.bind_address = "0.0.0.0".parse().unwrap();
    assert!(folder.keeps());
}

#[test]
fn a_certificate_of_the_users_is_never_changed() {
    let folder = Folder::new();
    let key = KeyPair::generate().unwrap();
    let mut certificate = CertificateParams::new(vec!["example.com".to_owned()]).unwrap();
    certificate.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let pem = certificate.self_signed(&key).unwrap().pem();
    folder.put("apiserver.key", &key.serialize_pem());
    folder.put("apiserver.crt", &pem);
    assert_eq!(folder.load().unwrap(), pem);
    assert_eq!(folder.read("apiserver.crt"), pem);
}

#[test]
fn a_certificate_without_its_key_is_refused_and_stays() {
    let folder = Folder::new();
    folder.made(&today(), LOCAL);
    let before = folder.read("apiserver.crt");
    fs::remove_file(folder.path("apiserver.key")).unwrap();
    let error = folder.load().unwrap_err();
    assert!(
        error.contains("apiserver.key is missing") && !error.contains('\n'),
        "{error}"
    );
    assert_eq!(folder.read("apiserver.crt"), before);
    assert!(!folder.path("apiserver.key").exists());
}

#[test]
fn a_key_without_a_certificate_is_used() {
    let folder = Folder::new();
    folder.made(&today(), LOCAL);
    let key = folder.read("apiserver.key");
    fs::remove_file(folder.path("apiserver.crt")).unwrap();
    folder.load().unwrap();
    assert_eq!(folder.read("apiserver.key"), key);
    // A malformed certificate is an error, and is not replaced.
    folder.put("apiserver.key", "a note");
    fs::remove_file(folder.path("apiserver.crt")).unwrap();
    folder.load().unwrap_err();
    assert_eq!(folder.read("apiserver.key"), "a note");
}

#[test]
fn a_certificate_of_another_key_is_refused() {
    let folder = Folder::new();
    folder.made(&today(), LOCAL);
    folder.put(
        "apiserver.key",
        &KeyPair::generate().unwrap().serialize_pem(),
    );
    let error = folder.load().unwrap_err();
    assert!(error.contains("is not for the private key"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.made(&today(), LOCAL);
    let readable = fs::Permissions::from_mode(0o644);
    fs::set_permissions(folder.path("apiserver.key"), readable.clone()).unwrap();
    let error = folder.load().unwrap_err();
    assert!(
        error.contains("apiserver.key") && error.contains("chmod go-rwx"),
        "{error}"
    );
    // A certificate is not secret.
    fs::set_permissions(
        folder.path("apiserver.key"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    fs::set_permissions(folder.path("apiserver.crt"), readable).unwrap();
    assert!(folder.keeps());
}
