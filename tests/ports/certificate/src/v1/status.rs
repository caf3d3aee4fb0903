//! What is known of a certificate.

use apiloom::prelude::*;

/// CertificateStatus is the state of a certificate.
#[apiloom::api]
pub struct CertificateStatus {
    /// Observations, one of each type; `Ready` and `Issuing` are known.
    #[api(list = map(r#type))]
    pub conditions: Vec<CertificateCondition>,
    /// When the last attempt failed, as long as none succeeded since.
    pub last_failure_time: Option<Time>,
    /// From when on the certificate is valid.
    pub not_before: Option<Time>,
    /// Until when it is.
    pub not_after: Option<Time>,
    /// When it is going to be renewed.
    pub renewal_time: Option<Time>,
    /// Number of the request that it came from.
    pub revision: Option<i64>,
    /// The Secret with the key of the next request.
    pub next_private_key_secret_name: Option<String>,
    /// How many attempts failed in a row.
    pub failed_issuance_attempts: Option<i64>,
    /// What an ACME server said.
    pub acme: Option<AcmeStatus>,
}

/// CertificateCondition is one observation.
#[apiloom::api]
pub struct CertificateCondition {
    /// What is observed.
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionHolds,
    /// Since when.
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// The generation that was observed.
    pub observed_generation: Option<i64>,
}

/// ConditionHolds is whether a condition holds.
#[apiloom::api]
pub enum ConditionHolds {
    True,
    False,
    Unknown,
}

/// AcmeStatus is what an ACME server said.
#[apiloom::api]
pub struct AcmeStatus {
    /// When it would like the certificate to be renewed.
    pub ari: Option<AriStatus>,
}

/// AriStatus is the renewal that an ACME server suggests.
#[apiloom::api]
pub struct AriStatus {
    /// The time of the renewal.
    pub suggested_window: Option<RenewalWindow>,
    /// A page that explains it.
    #[api(json = "explanationURL")]
    pub explanation_url: Option<String>,
    /// When the server was asked last.
    pub last_checked: Option<Time>,
    /// When it is asked next.
    pub next_check: Option<Time>,
    /// What went wrong when it was asked last.
    pub last_error: Option<String>,
}

/// RenewalWindow is a span of time.
#[apiloom::api]
pub struct RenewalWindow {
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
}
