//! The keys of an issuer, as its key set (RFC 7517) has them: read when a token needs one that is not known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::header::CACHE_CONTROL;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::fetch::{Document, Fetcher};

/// Keys are not read again within this time, though tokens ask for it.
const LEAST_AGE: Duration = Duration::from_secs(1);

const NOT_VERIFIED: &str = "failed to verify signature: failed to verify id token signature";

/// A key of an issuer.
struct Key {
    id: Option<String>,
    key: DecodingKey,
}

/// Keys as they were read.
struct Keys {
    all: Vec<Key>,
    /// Until then the issuer has no others, as it says.
    kept_until: Instant,
}

/// The keys of an issuer.
pub(super) struct KeySet {
    url: String,
    fetcher: Fetcher,
    keys: ArcSwapOption<Keys>,
    /// Held while keys are read, so that they are read once for all tokens that wait. When that failed last, and why.
    reading: Mutex<Option<(Instant, String)>>,
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeySet").field(&self.url).finish()
    }
}

impl KeySet {
    /// The keys at a URL.
    pub(super) fn new(url: String, fetcher: Fetcher) -> Self {
        Self {
            url,
            fetcher,
            keys: ArcSwapOption::empty(),
            reading: Mutex::new(None),
        }
    }

    /// Checks the signature of a token by the key that it names, or by all.
    ///
    /// # Errors
    /// If none of the keys has made it, and if they cannot be read.
    pub(super) async fn verify(
        &self,
        token: &[u8],
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> Result<(), String> {
        let known = self.keys.load_full();
        if known
            .as_ref()
            .is_some_and(|keys| keys.have_made(token, algorithm, id))
        {
            return Ok(());
        }
        if known
            .as_ref()
            .is_some_and(|keys| keys.kept_until > Instant::now())
        {
            return Err(NOT_VERIFIED.to_owned());
        }
        let read = self.read_after(known.as_ref()).await?;
        if read.have_made(token, algorithm, id) {
            return Ok(());
        }
        Err(NOT_VERIFIED.to_owned())
    }

    /// Keys that were read after these.
    async fn read_after(&self, known: Option<&Arc<Keys>>) -> Result<Arc<Keys>, String> {
        let asked = Instant::now();
        let mut failure = self.reading.lock().await;
        let present = self.keys.load_full();
        // Another token has waited for the same.
        if let Some(present) = present
            && known.is_none_or(|known| !Arc::ptr_eq(known, &present))
        {
            return Ok(present);
        }
        if let Some((at, why)) = &*failure
            && *at >= asked
        {
            return Err(why.clone());
        }
        let read = self.read().await;
        if let Err(why) = &read {
            *failure = Some((Instant::now(), why.clone()));
        }
        read
    }

    async fn read(&self) -> Result<Arc<Keys>, String> {
        let document = self.fetcher.get(&self.url, None).await;
        let document = document.map_err(|why| {
            format!("failed to verify signature: fetching keys oidc: get keys failed: {why}")
        })?;
        let read = Keys::parse(&document).map_err(|why| {
            format!("failed to verify signature: fetching keys oidc: failed to decode keys: {why}")
        })?;
        let read = Arc::new(read);
        self.keys.store(Some(Arc::clone(&read)));
        Ok(read)
    }
}

#[derive(Deserialize)]
struct KeyList {
    keys: Vec<Value>,
}

impl Keys {
    /// Keys of kinds that are not known, and broken ones, are left out.
    fn parse(document: &Document) -> Result<Self, serde_json::Error> {
        let listed: KeyList = serde_json::from_slice(&document.body)?;
        let all = listed.keys.into_iter().filter_map(|key| {
            let key: Jwk = serde_json::from_value(key).ok()?;
            Some(Key {
                key: DecodingKey::from_jwk(&key).ok()?,
                id: key.common.key_id,
            })
        });
        let age = max_age(document).unwrap_or_default().max(LEAST_AGE);
        let now = Instant::now();
        Ok(Self {
            all: all.collect(),
            kept_until: now.checked_add(age).unwrap_or(now),
        })
    }

    fn have_made(&self, token: &[u8], algorithm: Algorithm, id: Option<&str>) -> bool {
        // All but the signature is checked by the caller.
        let mut signature = Validation::new(algorithm);
        signature.required_spec_claims.clear();
        signature.validate_exp = false;
        signature.validate_aud = false;
        let named = |key: &&Key| id.is_none() || key.id.as_deref() == id;
        let mut keys = self.all.iter().filter(named);
        keys.any(|key| decode::<Value>(token, &key.key, &signature).is_ok())
    }
}

/// How long a document may be kept, as its server says.
fn max_age(document: &Document) -> Option<Duration> {
    let header = document.headers.get(CACHE_CONTROL)?.to_str().ok()?;
    let mut directives = header.split(',').map(str::trim);
    let seconds = directives.find_map(|one| one.strip_prefix("max-age="))?;
    // More than a day is a day: a key that is lost must not be believed for ever.
    let seconds: u64 = seconds.trim_matches('"').parse().ok()?;
    Some(Duration::from_secs(seconds.min(24 * 60 * 60)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use http::{HeaderMap, HeaderValue};
    use tokio::net::TcpListener;

    use super::*;

    /// An issuer that ends all connections.
    #[tokio::test]
    async fn an_issuer_that_fails_is_asked_once_for_all_tokens_that_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/keys", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
        let keys = KeySet::new(url, Fetcher { authorities: None });
        let verify = || keys.verify(b"a.b.c", Algorithm::RS256, None);
        for answer in join_all((0..50).map(|_| verify())).await {
            let why = answer.unwrap_err();
            assert!(why.contains("get keys failed"), "{why}");
        }
        let once = asked.load(Ordering::SeqCst);
        // Those that come later ask again.
        verify().await.unwrap_err();
        assert_eq!(asked.load(Ordering::SeqCst), 2 * once);
    }

    #[test]
    fn documents_are_kept_as_long_as_their_server_says() {
        let age = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            let document = Document {
                headers: HeaderMap::from_iter([(CACHE_CONTROL, value)]),
                body: Vec::new(),
            };
            max_age(&document).map(|age| age.as_secs())
        };
        assert_eq!(age("public, max-age=60, must-revalidate"), Some(60));
        assert_eq!(age("max-age=\"7\""), Some(7));
        assert_eq!(age("max-age=99999999999"), Some(24 * 60 * 60));
        for other in ["no-store", "max-age=", "max-age=-1", "s-maxage=7"] {
            assert_eq!(age(other), None, "{other}");
        }
    }

    #[test]
    fn keys_of_unknown_kinds_are_left_out() {
        let parse = |body: &str| {
            let document = Document {
                headers: HeaderMap::new(),
                body: body.as_bytes().to_vec(),
            };
            Keys::parse(&document).map(|keys| keys.all.len())
        };
        let known = r#"{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "a"}"#;
        let all = format!(r#"{{"keys": [{known}, {{"kty": "NEW"}}, {{"kty": "RSA"}}, 7]}}"#);
        assert_eq!(parse(&all).unwrap(), 1);
        assert!(parse("[1]").is_err() && parse("{}").is_err());
    }
}
