//! What others need to check tokens: the document of the issuer and its keys, as OpenID Connect Discovery 1.0 has them. Both follow the
//! keys, and may be kept by clients for an hour.

use std::sync::Arc;

use apiloom_server::Builder;
use apiloom_server::http::{PathRequest, PathResponse};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use serde::Serialize;
use serde_json::json;

use super::key_files::KeyFiles;
use super::keys::PublishedKey;

/// The path of the document.
const DOCUMENT: &str = "/.well-known/openid-configuration";
/// The path of the keys.
const KEYS: &str = "/openid/v1/jwks";

/// The document of an issuer, in the order of fields of kube-apiserver.
#[derive(Serialize)]
struct IssuerDocument<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: Vec<&'static str>,
}

/// Serves the documents of an issuer that is a URL of HTTPS; those of another one could not be found. Keys are at `jwks_uri`, by default at
/// the host of the issuer.
pub(super) fn serve(
    builder: Builder,
    issuer: &str,
    jwks_uri: Option<&str>,
    keys: &Arc<KeyFiles>,
) -> Builder {
    let Some(default) = keys_beside(issuer) else {
        tracing::info!(
            issuer,
            "the issuer is no https URL, and has no documents for others"
        );
        return builder;
    };
    let jwks_uri = jwks_uri.map_or(default, str::to_owned);
    let (issuer, of_document, of_keys) = (issuer.to_owned(), Arc::clone(keys), Arc::clone(keys));
    builder
        .path(DOCUMENT, move |request: PathRequest| {
            let published = published(&of_document);
            let mut algorithms: Vec<_> = published.iter().map(|key| key.alg).collect();
            algorithms.sort_unstable();
            algorithms.dedup();
            let document = IssuerDocument {
                issuer: &issuer,
                jwks_uri: &jwks_uri,
                response_types_supported: ["id_token"],
                subject_types_supported: ["public"],
                id_token_signing_alg_values_supported: algorithms,
            };
            let response = respond(&request, "application/json", &document);
            async { response }
        })
        .path(KEYS, move |request: PathRequest| {
            let keys = json!({ "keys": published(&of_keys) });
            let response = respond(&request, "application/jwk-set+json", &keys);
            async { response }
        })
}

fn published(keys: &KeyFiles) -> Vec<PublishedKey> {
    let keys = keys.keys();
    keys.map_or_else(Vec::new, |keys| keys.published().cloned().collect())
}

/// The place of the keys at the host of an issuer; `None` for an issuer that is no URL of HTTPS, or that has a query.
fn keys_beside(issuer: &str) -> Option<String> {
    let uri: Uri = issuer.parse().ok()?;
    let host = uri.authority()?;
    let is_good = uri.scheme_str() == Some("https") && uri.query().is_none();
    (is_good && !issuer.contains('#')).then(|| format!("https://{host}{KEYS}"))
}

fn respond(request: &PathRequest, media_type: &'static str, body: &impl Serialize) -> PathResponse {
    if request.method != Method::GET && request.method != Method::HEAD {
        let mut response = Response::new("405: Method Not Allowed".to_owned());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return response.into();
    }
    // The documents are lists and texts, which can be written.
    let body = serde_json::to_string(body).unwrap_or_default();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=3600"),
    );
    response.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_at_the_host_of_an_issuer() {
        let check = |issuer, expected: Option<&str>| {
            assert_eq!(keys_beside(issuer).as_deref(), expected, "{issuer}");
        };
        let found = Some("https://api.example.com:6443/openid/v1/jwks");
        check("https://api.example.com:6443", found);
        check("https://api.example.com:6443/shop", found);
        check("http://api.example.com", None);
        check("https://api.example.com?a=b", None);
        check("https://api.example.com#a", None);
        check("kubernetes/serviceaccount", None);
        check("api", None);
    }
}
