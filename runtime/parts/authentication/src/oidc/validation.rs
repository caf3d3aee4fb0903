//! What is wrong with a configuration of issuers: the rules of kube-apiserver.

use std::collections::BTreeSet;

use apiloom_meta::field::{FieldError, FieldPath, go_quote};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::config::{Configuration, IssuerAddress};
use super::expressions::Expressions;

/// Most issuers of a configuration.
const MAX_ISSUERS: usize = 64;

/// Checks a configuration, and returns the compiled expressions of its issuers. The issuers of service accounts are not those of other users.
///
/// # Errors
/// All that is wrong.
pub(super) fn check(
    configuration: &Configuration,
    disallowed: &[String],
) -> Result<Vec<Expressions>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let root = FieldPath::new("jwt");
    let issuers = &configuration.jwt;
    if issuers.len() > MAX_ISSUERS {
        return Err(vec![FieldError::too_many(
            &root,
            issuers.len(),
            MAX_ISSUERS,
        )]);
    }
    let (mut urls, mut discovery_urls) = (BTreeSet::new(), BTreeSet::new());
    let mut compiled = Vec::new();
    for (index, one) in issuers.iter().enumerate() {
        let path = root.index(index);
        let at = path.child("issuer");
        check_address(&one.issuer, &at, disallowed, &mut errors);
        compiled.push(Expressions::compile(one, &path, &mut errors));
        let url = &one.issuer.url;
        if !urls.insert(url) {
            errors.push(FieldError::duplicate(&at.child("url"), url));
        }
        let discovery = one.issuer.discovery_url.as_deref().unwrap_or_default();
        if !discovery.is_empty() && !discovery_urls.insert(discovery) {
            errors.push(FieldError::duplicate(&at.child("discoveryURL"), discovery));
        }
    }
    if let Some(anonymous) = &configuration.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let path = FieldPath::new("anonymous").child("conditions");
        let paths: Vec<&str> = anonymous.conditions.iter().map(|one| &*one.path).collect();
        let why = "enabled should be set to true when conditions are defined";
        errors.push(FieldError::invalid(&path, paths, why));
    }
    if errors.is_empty() {
        Ok(compiled)
    } else {
        Err(errors)
    }
}

fn check_address(
    address: &IssuerAddress,
    path: &FieldPath,
    disallowed: &[String],
    errors: &mut Vec<FieldError>,
) {
    let url = path.child("url");
    if address.url.is_empty() {
        errors.push(FieldError::required(&url, ""));
    } else {
        check_url(&address.url, &url, disallowed, errors);
    }
    let discovery = address.discovery_url.as_deref().unwrap_or_default();
    if !discovery.is_empty() {
        let path = path.child("discoveryURL");
        let is_same = discovery.trim_end_matches('/') == address.url.trim_end_matches('/');
        if !address.url.is_empty() && is_same {
            let why = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(&path, discovery, why));
        }
        check_url(discovery, &path, &[], errors);
    }
    check_audiences(address, path, errors);
    if !address.certificate_authority.is_empty()
        && let Err(why) = check_authorities(&address.certificate_authority)
    {
        let path = path.child("certificateAuthority");
        errors.push(FieldError::invalid(&path, "<omitted>", &why));
    }
    let egress = &address.egress_selector_type;
    if !egress.is_empty() {
        let why = "this server has no egress selectors: remove it";
        errors.push(FieldError::invalid(
            &path.child("egressSelectorType"),
            egress,
            why,
        ));
    }
}

/// Checks the URL of an issuer or of its discovery document.
fn check_url(url: &str, path: &FieldPath, disallowed: &[String], errors: &mut Vec<FieldError>) {
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, url, why));
    if disallowed.iter().any(|one| one == url) {
        let mut all: Vec<&str> = disallowed.iter().map(String::as_str).collect();
        all.sort_unstable();
        let all = all.join(" ");
        invalid(&format!(
            "URL must not overlap with disallowed issuers: [{all}]"
        ));
    }
    let (before, fragment) = url.split_once('#').unwrap_or((url, ""));
    if let Err(why) = before.parse::<http::Uri>() {
        invalid(&format!("parse {}: {why}", go_quote(url)));
        return;
    }
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let (scheme, rest) = before.split_once("://").unwrap_or(("", before));
    if !scheme.eq_ignore_ascii_case("https") {
        invalid("URL scheme must be https");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        invalid("URL must not contain a username or password");
    }
    if !query.is_empty() {
        invalid("URL must not contain a query");
    }
    if !fragment.is_empty() {
        invalid("URL must not contain a fragment");
    }
}

fn check_audiences(address: &IssuerAddress, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (at, policy) = (path.child("audiences"), path.child("audienceMatchPolicy"));
    let mut seen = BTreeSet::new();
    for (index, audience) in address.audiences.iter().enumerate() {
        let at = at.index(index);
        if audience.is_empty() {
            errors.push(FieldError::required(&at, ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&at, audience));
        }
    }
    let given = &*address.audience_match_policy;
    let why = match (address.audiences.len(), given) {
        (0, _) => {
            let why = format!("at least one {} is required", at.as_str());
            errors.push(FieldError::required(&at, &why));
            return;
        }
        (_, "MatchAny") | (1, "") => return,
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        (_, _) => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(FieldError::invalid(&policy, given, why));
}

/// Checks certificates of authorities in PEM.
fn check_authorities(pem: &str) -> Result<(), String> {
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        X509Certificate::from_der(&certificate).map_err(|error| error.to_string())?;
        found += 1;
    }
    if found == 0 {
        return Err("data does not contain any valid RSA or ECDSA certificates".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
