//! Rules for the authorities of conversion webhooks.

use apiloom_meta::{FieldError, FieldPath};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::apiextensions::v1::CustomResourceDefinition;

/// The error of the authorities of a webhook, if they are given and cannot be used.
pub(super) fn authorities_error(object: &CustomResourceDefinition) -> Option<FieldError> {
    let bundle = bundle(object).filter(|bundle| !bundle.is_empty())?;
    let why = authorities_problem(bundle)?;
    let path = FieldPath::new("spec").child("conversion");
    let path = path.child("webhookClientConfig").child("caBundle");
    Some(FieldError::invalid(&path, STANDARD.encode(bundle), &why))
}

fn bundle(object: &CustomResourceDefinition) -> Option<&[u8]> {
    let webhook = object.spec.conversion.as_ref()?.webhook.as_ref()?;
    webhook.client_config.as_ref()?.ca_bundle.as_deref()
}

/// Why no authority can be read from a `caBundle`. One certificate that can be read is enough.
fn authorities_problem(pem: &[u8]) -> Option<String> {
    let begin = "unable to load root certificates";
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .filter_map(Result::ok)
        .collect();
    let is_good =
        |certificate: &CertificateDer<'_>| x509_parser::parse_x509_certificate(certificate).is_ok();
    if certificates.iter().any(is_good) {
        return None;
    }
    Some(if certificates.is_empty() {
        format!("{begin}: unable to parse bytes as PEM block")
    } else {
        format!("{begin}: failed to parse certificate")
    })
}
