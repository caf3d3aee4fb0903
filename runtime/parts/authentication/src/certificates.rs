//! Users by client certificates of the authorities in a file: the name is the common name of the subject, and the groups are its
//! organizations, as in kube-apiserver. The file is read again when it changes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apiloom_registry::auth::{
    Answer, Authentication, Authenticator, BoxError, Credentials, UserInfo,
};
use apiloom_server::server::follow_files;
use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{Context, SHA256, digest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, crypto};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer as _;

use crate::confirmations::{Confirmations, Hash, finish};
use crate::users::CREDENTIAL_ID;

/// The attribute of a subject that is the uid of the user.
const UID: &str = "1.3.6.1.4.1.57683.2";

/// Authenticates by certificates.
pub(crate) struct ClientCertificates {
    path: PathBuf,
    /// None before the file is read.
    authorities: ArcSwapOption<Authorities>,
}

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificates")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The authorities of a file, and what they have confirmed.
struct Authorities {
    text: Vec<u8>,
    roots: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
    known: Confirmations<Known>,
}

/// The user of a chain, until one of its certificates ends.
#[derive(Clone)]
struct Known {
    user: Option<Arc<UserInfo>>,
    until: u64,
}

impl ClientCertificates {
    /// One that knows no authorities before they are read.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            authorities: ArcSwapOption::empty(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, that has no certificate, or one that is wrong. The authorities stay as they were.
    pub(crate) fn read(&self) -> Result<(), String> {
        self.read_changes().map(|_| ())
    }

    /// Reads the file again when it has changed, for ever. One that is wrong is logged.
    pub(crate) async fn follow(self: &Arc<Self>) {
        let this = Arc::clone(self);
        follow_files("client authorities", move || this.read_changes()).await;
    }

    /// The common name of a chain that the authorities confirm; empty if it has none.
    ///
    /// # Errors
    /// A chain that they do not confirm.
    pub(crate) fn common_name(&self, chain: &[CertificateDer<'_>]) -> Result<String, BoxError> {
        let authorities = self.authorities.load();
        let authorities = authorities.as_ref().ok_or("the authorities are not read")?;
        let user = authorities.user(chain, SystemTime::now())?;
        Ok(user.map_or_else(String::new, |user| user.name.clone()))
    }

    /// Reads the file; returns whether it has changed.
    fn read_changes(&self) -> Result<bool, String> {
        let read = Authorities::read(&self.path)?;
        let known = self.authorities.load();
        let is_changed = known.as_ref().is_none_or(|known| known.text != read.text);
        if is_changed {
            self.authorities.store(Some(Arc::new(read)));
        }
        Ok(is_changed)
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let chain = &credentials.connection().certificates;
        let authorities = self.authorities.load();
        Answer::Now(match &*authorities {
            Some(authorities) if !chain.is_empty() => authorities.user(chain, SystemTime::now()),
            _ => Ok(None),
        })
    }
}

impl Authorities {
    fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read(path);
        let text =
            text.map_err(|error| format!("cannot read the client authorities {shown}: {error}"))?;
        Self::new(text).map_err(|why| format!("the client authorities {shown}: {why}"))
    }

    fn new(text: Vec<u8>) -> Result<Self, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let roots: Vec<CertificateDer<'static>> = read.map_err(|error| error.to_string())?;
        if roots.is_empty() {
            return Err("the file has no certificate".to_owned());
        }
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone()).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
        Ok(Self {
            verifier: verifier.build().map_err(|error| error.to_string())?,
            text,
            roots,
            known: Confirmations::default(),
        })
    }

    /// The user of a chain.
    ///
    /// # Errors
    /// A chain that the authorities do not confirm.
    fn user(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Authentication {
        let seconds = now.duration_since(UNIX_EPOCH)?.as_secs();
        let hash = hash(chain);
        let known = self.known.get(&hash);
        if let Some(known) = known.filter(|known| seconds < known.until) {
            return Ok(known.user);
        }
        let known = self.check(
            chain,
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
        )?;
        self.known.insert(hash, known.clone());
        Ok(known.user)
    }

    fn check(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<Known, BoxError> {
        let [own, intermediates @ ..] = chain else {
            return Err("there is no certificate".into());
        };
        let (_, certificate) = X509Certificate::from_der(own)?;
        let (from, until) = seconds(&certificate);
        let refused =
            |why: String| format!("the client certificate {}: {why}", subject(&certificate));
        if self.roots.iter().any(|root| root.as_ref() == own.as_ref()) {
            // As Go, which accepts a root that is shown as it is; its times count.
            if !(from..=until).contains(&now.as_secs()) {
                return Err(refused("it is not valid at this time".to_owned()).into());
            }
        } else {
            let checked = self.verifier.verify_client_cert(own, intermediates, now);
            checked.map_err(|error| refused(error.to_string()))?;
        }
        let ends = intermediates.iter().filter_map(|one| {
            let (_, one) = X509Certificate::from_der(one).ok()?;
            Some(seconds(&one).1)
        });
        Ok(Known {
            user: user(own, &certificate),
            until: ends.fold(until, u64::min),
        })
    }
}

/// The digest of a chain.
fn hash(chain: &[CertificateDer<'_>]) -> Hash {
    let mut context = Context::new(&SHA256);
    for certificate in chain {
        // The length ends a certificate, so that no other chain has the same bytes.
        context.update(&certificate.len().to_be_bytes());
        context.update(certificate);
    }
    finish(context)
}

/// The first and the last second of a certificate.
fn seconds(certificate: &X509Certificate<'_>) -> (u64, u64) {
    let validity = certificate.validity();
    let seconds = |seconds: i64| u64::try_from(seconds).unwrap_or_default();
    (
        seconds(validity.not_before.timestamp()),
        seconds(validity.not_after.timestamp()),
    )
}

/// The subject, for messages.
fn subject(certificate: &X509Certificate<'_>) -> String {
    format!("{:?}", certificate.subject().to_string())
}

/// The user of a certificate that is confirmed; `None` without a common name.
fn user(der: &CertificateDer<'_>, certificate: &X509Certificate<'_>) -> Option<Arc<UserInfo>> {
    let (mut name, mut uid, mut groups) = (String::new(), String::new(), Vec::new());
    for attribute in certificate.subject().iter_attributes() {
        let Ok(value) = attribute.as_str() else {
            continue;
        };
        let kind = attribute.attr_type();
        if *kind == OID_X509_COMMON_NAME {
            // Of several the last one counts, as in Go.
            value.clone_into(&mut name);
        } else if *kind == OID_X509_ORGANIZATION_NAME {
            groups.push(value.to_owned());
        } else if kind.to_id_string() == UID {
            value.clone_into(&mut uid);
        }
    }
    if name.is_empty() {
        return None;
    }
    let hash: String = digest(&SHA256, der)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let extra = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hash}")])];
    Some(Arc::new(UserInfo {
        name,
        uid,
        groups,
        extra: extra.into(),
    }))
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
        IsCa, Issuer, KeyPair,
    };

    use super::*;
    use crate::confirmations::MAX_KNOWN;

    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn authority(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    fn client(
        authority: &Authority,
        subject: &[(DnType, &str)],
        usage: ExtendedKeyUsagePurpose,
    ) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        certificate.der().clone()
    }

    fn authorities(authority: &Authority) -> Authorities {
        Authorities::new(authority.pem.clone().into_bytes()).unwrap()
    }

    #[test]
    fn a_certificate_of_an_authority_names_its_user() {
        let authority = authority("clients");
        let subject = [
            (DnType::CommonName, "alice"),
            (DnType::OrganizationName, "team"),
        ];
        let certificate = client(&authority, &subject, ExtendedKeyUsagePurpose::ClientAuth);
        let authorities = authorities(&authority);
        let now = SystemTime::now();
        let chain = [certificate];
        for _ in 0..2 {
            let user = authorities.user(&chain, now).unwrap().unwrap();
            assert_eq!(user.name, "alice");
            assert_eq!(user.groups, ["team"]);
            let id = &user.extra[CREDENTIAL_ID][0];
            assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
        }
        assert_eq!(authorities.known.len(), 1);
        // What is known ends with the certificate.
        let late = now + Duration::from_secs(3000 * 365 * 24 * 3600);
        assert!(authorities.user(&chain, late).is_err());
    }

    #[test]
    fn only_certificates_of_the_authorities_for_clients_count() {
        let (own, other) = (authority("clients"), authority("clients"));
        let subject = [(DnType::CommonName, "alice")];
        let authorities = authorities(&own);
        let check = |certificate: CertificateDer<'static>, expected: Option<&str>| {
            let user = authorities.user(&[certificate], SystemTime::now());
            assert_eq!(
                user.ok().flatten().map(|user| user.name.clone()).as_deref(),
                expected
            );
        };
        check(
            client(&own, &subject, ExtendedKeyUsagePurpose::ClientAuth),
            Some("alice"),
        );
        check(
            client(&own, &subject, ExtendedKeyUsagePurpose::ServerAuth),
            None,
        );
        check(
            client(&other, &subject, ExtendedKeyUsagePurpose::ClientAuth),
            None,
        );
        check(client(&own, &[], ExtendedKeyUsagePurpose::ClientAuth), None);
        assert!(
            authorities
                .user(&[CertificateDer::from(vec![1, 2, 3])], SystemTime::now())
                .is_err()
        );
        // Go accepts a root that is shown as it is.
        check(authorities.roots[0].clone(), Some("clients"));
    }

    #[test]
    fn known_certificates_are_bounded() {
        let authority = authority("clients");
        let authorities = authorities(&authority);
        for number in 0..MAX_KNOWN {
            let known = Known {
                user: None,
                until: u64::MAX,
            };
            let number = CertificateDer::from(number.to_be_bytes().to_vec());
            authorities.known.insert(hash(&[number]), known);
        }
        let subject = [(DnType::CommonName, "alice")];
        let certificate = client(&authority, &subject, ExtendedKeyUsagePurpose::ClientAuth);
        assert!(authorities.user(&[certificate], SystemTime::now()).is_ok());
        assert_eq!(authorities.known.len(), 1);
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_a_bad_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let (first, second) = (authority("first"), authority("second"));
        std::fs::write(&path, &first.pem).unwrap();
        let certificates = ClientCertificates::new(path.clone());
        let subject = [(DnType::CommonName, "alice")];
        let of_second = client(&second, &subject, ExtendedKeyUsagePurpose::ClientAuth);
        let is_known = || {
            let authorities = certificates.authorities.load();
            let chain = std::slice::from_ref(&of_second);
            authorities
                .as_ref()
                .unwrap()
                .user(chain, SystemTime::now())
                .is_ok()
        };
        assert_eq!(certificates.read_changes(), Ok(true));
        assert!(!is_known());
        assert_eq!(certificates.read_changes(), Ok(false));
        std::fs::write(&path, &second.pem).unwrap();
        assert_eq!(certificates.read_changes(), Ok(true));
        assert!(is_known());
        std::fs::write(&path, "nothing").unwrap();
        let error = certificates.read_changes().unwrap_err();
        assert!(error.ends_with("the file has no certificate"), "{error}");
        assert!(is_known());
    }
}
