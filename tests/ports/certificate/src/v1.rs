//! cert-manager.io/v1.

use std::collections::BTreeMap;

use apiloom::prelude::*;

mod keystores;
mod status;

pub use keystores::{JksKeystore, Keystores, Pkcs12Keystore, Pkcs12Profile, SecretKey};
pub use status::{
    AcmeStatus, AriStatus, CertificateCondition, CertificateStatus, ConditionHolds, RenewalWindow,
};

/// Certificate asks for an X.509 certificate that is kept in a Secret and renewed in time.
#[apiloom::resource(group = "cert-manager.io", version = "v1", namespaced, status,
    shortname = ["cert", "certs"], category = "cert-manager",
    printcolumn(condition = "Ready"), printcolumn(name = "Secret", path = spec.secret_name),
    printcolumn(name = "Issuer", path = spec.issuer_ref.name, wide),
    printcolumn(name = "Status", json_path = ".status.conditions[?(@.type==\"Ready\")].message", wide),
    printcolumn(name = "Expiration", path = status.not_after, type = "string", wide),
    selectable(spec.issuer_ref.group, spec.issuer_ref.kind, spec.issuer_ref.name))]
pub struct Certificate {
    pub metadata: ObjectMeta,
    /// The certificate that is wanted.
    pub spec: Option<CertificateSpec>,
    /// The certificate that there is.
    pub status: Option<CertificateStatus>,
}

/// CertificateSpec is what a certificate shall say, where it is kept, and who issues it.
#[apiloom::api]
pub struct CertificateSpec {
    /// Attributes of the subject, besides its common name.
    #[api(conflicts(literal_subject))]
    pub subject: Option<Subject>,
    /// The whole subject as one text, in the order that LDAP needs.
    pub literal_subject: Option<String>,
    /// The common name of the subject.
    #[api(conflicts(literal_subject))]
    pub common_name: Option<String>,
    /// How long the certificate shall be valid; 90 days when left out.
    pub duration: Option<String>,
    /// How long before its end the certificate is renewed; a third of its time when left out.
    #[api(conflicts(renew_before_percentage))]
    pub renew_before: Option<String>,
    /// The same as a share of the certificate's time that is left, in percent.
    pub renew_before_percentage: Option<i32>,
    /// When the certificate may be renewed.
    pub renewal: Option<Renewal>,
    /// DNS names that the certificate is for.
    #[api(list = atomic)]
    pub dns_names: Vec<String>,
    /// IP addresses that the certificate is for.
    #[api(list = atomic)]
    pub ip_addresses: Vec<String>,
    /// URIs that the certificate is for.
    #[api(list = atomic)]
    pub uris: Vec<String>,
    /// Names of other kinds that the certificate is for.
    #[api(list = atomic)]
    pub other_names: Vec<OtherName>,
    /// Email addresses that the certificate is for.
    #[api(list = atomic)]
    pub email_addresses: Vec<String>,
    /// The Secret that holds the key and the certificate, in the same namespace.
    pub secret_name: String,
    /// Labels and annotations of that Secret.
    pub secret_template: Option<SecretTemplate>,
    /// Further formats of the key and the certificate in that Secret.
    pub keystores: Option<Keystores>,
    /// Who issues the certificate.
    pub issuer_ref: IssuerReference,
    /// Whether others may be certified with it.
    #[api(json = "isCA")]
    pub is_ca: Option<bool>,
    /// What its key may be used for; signatures and encipherment of keys when left out.
    #[api(list = atomic)]
    pub usages: Vec<KeyUsage>,
    /// How the private key is made and written.
    pub private_key: Option<PrivateKey>,
    /// How the request is signed; it must fit the key.
    pub signature_algorithm: Option<SignatureAlgorithm>,
    /// Whether the usages also stand in the request itself; they do when left out.
    pub encode_usages_in_request: Option<bool>,
    /// How many past requests are kept.
    pub revision_history_limit: Option<i32>,
    /// Further files in the Secret.
    #[api(list = atomic)]
    pub additional_output_formats: Vec<OutputFormat>,
    /// Names that a certifier may and may not certify.
    pub name_constraints: Option<NameConstraints>,
}

/// Subject is the full name of the holder.
#[apiloom::api]
pub struct Subject {
    /// Organizations.
    #[api(list = atomic)]
    pub organizations: Vec<String>,
    /// Countries.
    #[api(list = atomic)]
    pub countries: Vec<String>,
    /// Units of the organization.
    #[api(list = atomic)]
    pub organizational_units: Vec<String>,
    /// Cities.
    #[api(list = atomic)]
    pub localities: Vec<String>,
    /// States or provinces.
    #[api(list = atomic)]
    pub provinces: Vec<String>,
    /// Streets.
    #[api(list = atomic)]
    pub street_addresses: Vec<String>,
    /// Postal codes.
    #[api(list = atomic)]
    pub postal_codes: Vec<String>,
    /// The serial number of the subject, not of the certificate.
    pub serial_number: Option<String>,
}

/// Renewal says when a certificate may be renewed.
#[apiloom::api]
pub struct Renewal {
    /// Whether it is renewed at all.
    pub policy: Option<RenewalPolicy>,
    /// The times at which it may be.
    #[api(list = atomic)]
    pub windows: Vec<MaintenanceWindow>,
}

/// RenewalPolicy is whether a certificate is renewed by itself.
#[apiloom::api]
pub enum RenewalPolicy {
    RenewBefore,
    Disabled,
}

/// MaintenanceWindow is a time that comes again and again.
#[apiloom::api]
pub struct MaintenanceWindow {
    /// The time zone of the schedule; UTC when left out.
    #[api(len = 1..)]
    pub timezone: Option<String>,
    /// How long the window is open.
    #[api(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$")]
    pub window_duration: String,
    /// When the window opens, as a line of a crontab.
    #[api(len = 1..)]
    pub cron: String,
}

/// OtherName is a name of a kind that has no field of its own.
#[apiloom::api]
pub struct OtherName {
    /// The kind of name, as dotted numbers.
    pub oid: Option<String>,
    /// The name.
    #[api(json = "utf8Value")]
    pub utf8_value: Option<String>,
}

/// SecretTemplate is what the Secret gets besides its data.
#[apiloom::api]
pub struct SecretTemplate {
    /// Annotations of the Secret.
    pub annotations: BTreeMap<String, String>,
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
}

/// IssuerReference names an issuer.
#[apiloom::api]
pub struct IssuerReference {
    /// Its name.
    pub name: String,
    /// Its kind; Issuer when left out.
    pub kind: Option<String>,
    /// The group of its kind; this one when left out.
    pub group: Option<String>,
}

/// KeyUsage is one thing that a key may be used for.
#[apiloom::api]
pub enum KeyUsage {
    #[api(json = "signing")]
    Signing,
    #[api(json = "digital signature")]
    DigitalSignature,
    #[api(json = "content commitment")]
    ContentCommitment,
    #[api(json = "key encipherment")]
    KeyEncipherment,
    #[api(json = "key agreement")]
    KeyAgreement,
    #[api(json = "data encipherment")]
    DataEncipherment,
    #[api(json = "cert sign")]
    CertSign,
    #[api(json = "crl sign")]
    CrlSign,
    #[api(json = "encipher only")]
    EncipherOnly,
    #[api(json = "decipher only")]
    DecipherOnly,
    #[api(json = "any")]
    Any,
    #[api(json = "server auth")]
    ServerAuth,
    #[api(json = "client auth")]
    ClientAuth,
    #[api(json = "code signing")]
    CodeSigning,
    #[api(json = "email protection")]
    EmailProtection,
    #[api(json = "s/mime")]
    Smime,
    #[api(json = "ipsec end system")]
    IpsecEndSystem,
    #[api(json = "ipsec tunnel")]
    IpsecTunnel,
    #[api(json = "ipsec user")]
    IpsecUser,
    #[api(json = "timestamping")]
    Timestamping,
    #[api(json = "ocsp signing")]
    OcspSigning,
    #[api(json = "microsoft sgc")]
    MicrosoftSgc,
    #[api(json = "netscape sgc")]
    NetscapeSgc,
}

/// PrivateKey is how the private key is made and written.
#[apiloom::api]
pub struct PrivateKey {
    /// Whether every new certificate gets a new key.
    pub rotation_policy: Option<RotationPolicy>,
    /// How the key is written.
    pub encoding: Option<KeyEncoding>,
    /// What kind of key it is.
    pub algorithm: Option<KeyAlgorithm>,
    /// Bits of the key; what the algorithm has as its usual size when left out.
    pub size: Option<i64>,
}

/// RotationPolicy is when a new private key is made.
#[apiloom::api]
pub enum RotationPolicy {
    Never,
    Always,
}

/// KeyEncoding is how a private key is written.
#[apiloom::api]
pub enum KeyEncoding {
    #[api(json = "PKCS1")]
    Pkcs1,
    #[api(json = "PKCS8")]
    Pkcs8,
}

/// KeyAlgorithm is a kind of private key.
#[apiloom::api]
pub enum KeyAlgorithm {
    #[api(json = "RSA")]
    Rsa,
    #[api(json = "ECDSA")]
    Ecdsa,
    Ed25519,
}

/// SignatureAlgorithm is how a request is signed.
#[apiloom::api]
pub enum SignatureAlgorithm {
    #[api(json = "SHA256WithRSA")]
    Sha256WithRsa,
    #[api(json = "SHA384WithRSA")]
    Sha384WithRsa,
    #[api(json = "SHA512WithRSA")]
    Sha512WithRsa,
    #[api(json = "ECDSAWithSHA256")]
    EcdsaWithSha256,
    #[api(json = "ECDSAWithSHA384")]
    EcdsaWithSha384,
    #[api(json = "ECDSAWithSHA512")]
    EcdsaWithSha512,
    PureEd25519,
}

/// OutputFormat is a further file in the Secret.
#[apiloom::api]
pub struct OutputFormat {
    /// What is written to it.
    pub r#type: OutputFormatType,
}

/// OutputFormatType is what a further file holds.
#[apiloom::api]
pub enum OutputFormatType {
    #[api(json = "DER")]
    Der,
    #[api(json = "CombinedPEM")]
    CombinedPem,
}

/// NameConstraints bounds the names that a certifier may certify.
#[apiloom::api]
pub struct NameConstraints {
    /// Whether a reader that does not know them must refuse the certificate.
    pub critical: Option<bool>,
    /// Names that may be certified.
    pub permitted: Option<NameConstraintItem>,
    /// Names that may not, even if they are permitted.
    pub excluded: Option<NameConstraintItem>,
}

/// NameConstraintItem is a choice of names.
#[apiloom::api]
pub struct NameConstraintItem {
    /// DNS names below these domains.
    #[api(list = atomic)]
    pub dns_domains: Vec<String>,
    /// IP addresses in these ranges.
    #[api(list = atomic)]
    pub ip_ranges: Vec<String>,
    /// These email addresses.
    #[api(list = atomic)]
    pub email_addresses: Vec<String>,
    /// URIs of these domains.
    #[api(list = atomic)]
    pub uri_domains: Vec<String>,
}
