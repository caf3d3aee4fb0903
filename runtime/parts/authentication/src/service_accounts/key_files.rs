//! The keys of service accounts as they are in their files now, and the tokens that they have confirmed.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use apiloom_registry::auth::{BoxError, UserInfo};
use apiloom_server::server::follow_files;
use apiloom_server::{Config, ServerError};
use arc_swap::ArcSwapOption;
use rcgen::KeyPair;

use super::claims::Claims;
use super::keys::{PublicKey, PublishedKey, SigningKey};
use crate::confirmations::{Confirmations, hash};

/// The longest token that is known, in bytes: what is kept of one grows with its audiences, which the client has chosen.
const MAX_KNOWN_BYTES: usize = 8 * 1024;

/// The file of the key that signs.
#[derive(Debug)]
pub(super) enum SigningKeyFile {
    /// The one of a flag.
    Given(PathBuf),
    /// One in the data folder of a server, which is made at its first start.
    Own(Box<Config>),
}

impl SigningKeyFile {
    /// The name of the file in the data folder.
    const NAME: &str = "service-account.key";

    /// The path, and with it a key that is there. Blocks.
    fn path(&self) -> Result<PathBuf, ServerError> {
        match self {
            Self::Given(path) => Ok(path.clone()),
            Self::Own(config) => config.secret(Self::NAME, || {
                let key = KeyPair::generate().map_err(|_| ServerError::Random)?;
                Ok(key.serialize_pem())
            }),
        }
    }
}

/// Files with keys.
pub(crate) struct KeyFiles {
    signing: SigningKeyFile,
    /// Its path, once it is there: a key that is lost later is not replaced by another one, which would end all tokens.
    path: OnceLock<PathBuf>,
    others: Vec<PathBuf>,
    /// None before the files are read.
    keys: ArcSwapOption<Keys>,
}

impl fmt::Debug for KeyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFiles")
            .field("signing", &self.signing)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

impl KeyFiles {
    /// Those of these files: one with the key that signs, and others whose tokens are accepted too.
    pub(super) fn new(signing: SigningKeyFile, others: Vec<PathBuf>) -> Self {
        Self {
            signing,
            path: OnceLock::new(),
            others,
            keys: ArcSwapOption::empty(),
        }
    }

    /// Reads the files, and makes none: a key of the server itself is made when it starts.
    ///
    /// # Errors
    /// The first file that cannot be read or has no key.
    pub(crate) fn check(&self) -> Result<(), String> {
        for file in &self.others {
            PublicKey::read(file)?;
        }
        match &self.signing {
            SigningKeyFile::Given(file) => SigningKey::read(file).map(drop),
            SigningKeyFile::Own(_) => Ok(()),
        }
    }

    /// Reads the files, and makes the key of the server itself if it has none yet. Blocks.
    ///
    /// # Errors
    /// The first file that cannot be read or has no key. The keys stay as they were.
    pub(crate) fn read(&self) -> Result<(), String> {
        self.read_changes().map(|_| ())
    }

    /// Reads the files again when they have changed, for ever.
    pub(crate) async fn follow(self: &Arc<Self>) {
        let this = Arc::clone(self);
        follow_files("keys of service accounts", move || this.read_changes()).await;
    }

    fn read_changes(&self) -> Result<bool, String> {
        let path = match self.path.get() {
            Some(path) => path,
            None => {
                let path = self.signing.path().map_err(|error| error.to_string())?;
                self.path.get_or_init(|| path)
            }
        };
        let signing = SigningKey::read(path)?;
        let mut others = Vec::new();
        for file in &self.others {
            others.extend(PublicKey::read(file)?);
        }
        let read = Keys::new(signing, others);
        let known = self.keys.load();
        let is_changed = known
            .as_ref()
            .is_none_or(|known| !known.published().eq(read.published()));
        if is_changed {
            self.keys.store(Some(Arc::new(read)));
        }
        Ok(is_changed)
    }

    /// The keys; `None` before the files are read.
    pub(super) fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.load_full()
    }
}

/// Keys, and what they have confirmed.
pub(super) struct Keys {
    signing: SigningKey,
    others: Vec<PublicKey>,
    known: Confirmations<Arc<KnownToken>>,
}

/// A token whose signature is right.
#[derive(Debug)]
pub(super) struct KnownToken {
    pub(super) claims: Claims,
    pub(super) user: Arc<UserInfo>,
}

impl Keys {
    /// The keys, each once.
    fn new(signing: SigningKey, mut others: Vec<PublicKey>) -> Self {
        let mut seen = vec![signing.public.published.kid.clone()];
        others.retain(|key| {
            let kid = &key.published.kid;
            let is_new = !seen.contains(kid);
            seen.push(kid.clone());
            is_new
        });
        Self {
            signing,
            others,
            known: Confirmations::default(),
        }
    }

    /// The key that signs.
    pub(super) fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// All keys whose tokens are accepted, first that which signs.
    pub(super) fn all(&self) -> impl Iterator<Item = &PublicKey> {
        std::iter::once(&self.signing.public).chain(&self.others)
    }

    /// The keys as they are published.
    pub(super) fn published(&self) -> impl Iterator<Item = &PublishedKey> {
        self.all().map(|key| &key.published)
    }

    /// A token, if it is known; else that which `check` returns, which is known then unless it is long.
    ///
    /// # Errors
    /// Those of `check`.
    pub(super) fn known(
        &self,
        token: &[u8],
        check: impl FnOnce() -> Result<Option<KnownToken>, BoxError>,
    ) -> Result<Option<Arc<KnownToken>>, BoxError> {
        let hash = hash(token);
        let known = self.known.get(&hash);
        if known.is_some() {
            return Ok(known);
        }
        let Some(checked) = check()? else {
            return Ok(None);
        };
        let checked = Arc::new(checked);
        if token.len() <= MAX_KNOWN_BYTES {
            self.known.insert(hash, Arc::clone(&checked));
        }
        Ok(Some(checked))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::confirmations::MAX_KNOWN;

    #[test]
    fn keys_change_with_their_files() {
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service_accounts/test_keys");
        let folder = tempfile::tempdir().unwrap();
        let (signing, others) = (folder.path().join("new.pem"), folder.path().join("old.pem"));
        let copy = |name: &str, to: &Path| {
            std::fs::copy(keys.join(name), to).unwrap();
        };
        copy("p256-sec1.pem", &signing);
        copy("rsa-pkcs1.pub", &others);
        let files = KeyFiles::new(
            SigningKeyFile::Given(signing.clone()),
            vec![others.clone(), others.clone()],
        );
        assert!(files.keys().is_none());
        let read = || files.read_changes();
        let algorithms = || {
            let keys = files.keys().unwrap();
            keys.published().map(|key| key.alg).collect::<Vec<_>>()
        };
        assert_eq!(read(), Ok(true));
        assert_eq!(algorithms(), ["ES256", "RS256"]);
        assert_eq!(read(), Ok(false));
        // The key that signed is one of the others from now on.
        copy("p256-pkcs8.pem", &others);
        copy("p384-sec1.pem", &signing);
        assert_eq!(read(), Ok(true));
        assert_eq!(algorithms(), ["ES384", "ES256"]);
        std::fs::write(&signing, "text").unwrap();
        assert!(read().is_err());
        assert_eq!(algorithms(), ["ES384", "ES256"]);
    }

    #[test]
    fn a_server_has_a_key_of_its_own_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let files = || {
            let config = Config::new("zoo", data.clone());
            KeyFiles::new(SigningKeyFile::Own(Box::new(config)), Vec::new())
        };
        let kid = |files: &KeyFiles| files.keys().unwrap().signing().public.published.kid.clone();
        let first = files();
        first.check().unwrap();
        assert!(!data.exists(), "a check makes nothing");
        first.read().unwrap();
        let again = files();
        again.read().unwrap();
        assert_eq!(kid(&again), kid(&first), "it is kept");
        let path = data.join(SigningKeyFile::NAME);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            again.read().is_err(),
            "a lost key has no other in its place"
        );
        assert_eq!(kid(&again), kid(&first));
        // One that others can read is no secret.
        std::fs::write(&path, kept).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(&path, mode).unwrap();
        let refused = files().read().unwrap_err();
        assert!(refused.contains("chmod go-rwx"), "{refused}");
    }

    #[test]
    fn what_is_confirmed_is_checked_once_and_bounded() {
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service_accounts/test_keys");
        let keys = Keys::new(
            SigningKey::read(&keys.join("p256-sec1.pem")).unwrap(),
            Vec::new(),
        );
        let good = || {
            Ok(Some(KnownToken {
                claims: Claims::default(),
                user: Arc::default(),
            }))
        };
        let wrong = || Err("wrong".into());
        assert!(keys.known(b"a", wrong).is_err());
        assert!(keys.known(b"a", || Ok(None)).unwrap().is_none());
        assert!(keys.known(b"a", good).unwrap().is_some());
        assert!(keys.known(b"a", wrong).unwrap().is_some());
        for number in 0..2 * MAX_KNOWN {
            let token = number.to_string();
            assert!(keys.known(token.as_bytes(), good).unwrap().is_some());
            assert!(keys.known.len() <= MAX_KNOWN);
        }
        let long = vec![b'a'; MAX_KNOWN_BYTES + 1];
        assert!(keys.known(&long, good).unwrap().is_some());
        assert!(keys.known(&long, wrong).is_err());
    }
}
