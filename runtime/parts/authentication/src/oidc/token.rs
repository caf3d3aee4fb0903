//! Tokens of issuers: what they say before it is known whether that is true, and the checks of what they say.

use apiloom_meta::field::go_quote;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde::Deserialize;
use serde_json::Value;

use super::claims::Claims;
use crate::audiences::quoted;

/// By so many seconds the beginning of a token may be late.
const LEEWAY: f64 = 60.0;

/// Algorithms of signatures that a token may have, by their names; HMAC and none are no signatures of an issuer.
pub(super) const ALGORITHMS: [(&str, Algorithm); 8] = [
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
];

/// A token that is not verified yet.
#[derive(Debug)]
pub(super) struct UnverifiedToken<'a> {
    pub(super) text: &'a [u8],
    pub(super) claims: Claims,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    alg: String,
    kid: Option<String>,
}

/// The algorithm and the key of a signature, as the token names them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) algorithm: Algorithm,
    pub(super) key: Option<String>,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token; `None` for other tokens.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        let mut parts = text.split(|byte| *byte == b'.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let claims = serde_json::from_slice(&payload).ok()?;
        Some(Self { text, claims })
    }

    /// The issuer that it names.
    pub(super) fn issuer(&self) -> &str {
        match self.claims.get("iss") {
            // As it once was.
            Some(Value::String(issuer)) if issuer == "accounts.google.com" => {
                "https://accounts.google.com"
            }
            Some(Value::String(issuer)) => issuer,
            _ => "",
        }
    }

    /// The algorithm and the key of its signature.
    ///
    /// # Errors
    /// If it is none of those that are allowed.
    pub(super) fn signature(&self, allowed: &[&str]) -> Result<Signature, String> {
        let header = self.text.split(|byte| *byte == b'.').next();
        let header = header.and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
        let header: Option<Header> = header.and_then(|header| serde_json::from_slice(&header).ok());
        let header = header.ok_or("oidc: malformed jwt: its header cannot be read")?;
        let mut algorithms = ALGORITHMS.iter().filter(|(name, _)| allowed.contains(name));
        let Some((_, algorithm)) = algorithms.find(|(name, _)| *name == header.alg) else {
            return Err(format!(
                "oidc: id token signed with unsupported algorithm, expected {} got {}",
                quoted(allowed),
                go_quote(&header.alg)
            ));
        };
        Ok(Signature {
            algorithm: *algorithm,
            key: header.kid.filter(|id| !id.is_empty()),
        })
    }

    /// Checks the issuer, the audiences and the times.
    ///
    /// # Errors
    /// The first that is wrong, in the words of kube-apiserver.
    pub(super) fn check(&self, issuer: &str, audiences: &[String], now: f64) -> Result<(), String> {
        if self.issuer() != issuer {
            return Err(format!(
                "oidc: id token issued by a different provider, expected {} got {}",
                go_quote(issuer),
                go_quote(self.issuer())
            ));
        }
        if let [only] = audiences
            && !self.audiences().contains(&&**only)
        {
            return Err(format!(
                "oidc: expected audience {} got {}",
                go_quote(only),
                quoted(&self.audiences())
            ));
        }
        let expiry = self.time("exp")?.unwrap_or_default();
        if expiry < now {
            return Err(format!(
                "oidc: token is expired (Token Expiry: {expiry} seconds since 1970)"
            ));
        }
        if let Some(begin) = self.time("nbf")?
            && now + LEEWAY < begin
        {
            return Err(format!(
                "oidc: current time {now} before the nbf (not before) time: {begin}, in seconds since 1970"
            ));
        }
        Ok(())
    }

    /// Checks that it is for one of several audiences.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn check_audiences(&self, audiences: &[String]) -> Result<(), String> {
        let named = self.audiences();
        if audiences.iter().any(|one| named.contains(&&**one)) {
            return Ok(());
        }
        let mut wanted: Vec<&str> = audiences.iter().map(String::as_str).collect();
        wanted.sort_unstable();
        Err(format!(
            "oidc: expected audience in {} got {}",
            quoted(&wanted),
            quoted(&named)
        ))
    }

    /// When it ends, in seconds since 1970.
    pub(super) fn expiry(&self) -> f64 {
        self.time("exp").ok().flatten().unwrap_or_default()
    }

    fn audiences(&self) -> Vec<&str> {
        match self.claims.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn time(&self, claim: &str) -> Result<Option<f64>, String> {
        match self.claims.get(claim) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(format!(
                "oidc: failed to unmarshal claims: {claim} is no number"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
