//! Users by the tokens of issuers of OpenID Connect, in the process of the test: by flags, by a file, and when the issuer is not what it
//! should be.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use apiloom_tests::https::{Body, HttpsServer, SignedBy, text};
use apiloom_tests::{Client, Kubectl, Server, created};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Request, Response};
use hyper::body::Incoming;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A key of an issuer.
struct Key {
    id: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Key {
    fn new(id: &'static str, algorithm: Algorithm) -> Self {
        let key = match algorithm {
            Algorithm::ES256 => {
                let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
                EncodingKey::from_ec_der(pair.serialized_der())
            }
            _ => {
                let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
                // The key of PKCS#1 in that of PKCS#8.
                EncodingKey::from_rsa_der(&pair.serialized_der()[26..])
            }
        };
        Self { id, algorithm, key }
    }

    fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(key).unwrap()
    }

    /// A token with these claims.
    fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }
}

/// Documents by their paths, and how often each was asked for.
#[derive(Default)]
struct Documents {
    /// A document, and its `Cache-Control`.
    all: Vec<(String, (String, String))>,
    asked: Vec<String>,
    /// The token of the last request that had one.
    token: Option<String>,
}

/// A running issuer; it ends when this is dropped.
struct Issuer {
    url: String,
    /// In PEM.
    authority: String,
    documents: Arc<Mutex<Documents>>,
    _server: HttpsServer,
}

impl Issuer {
    /// One that does not say who it is yet.
    async fn silent() -> Self {
        Self::signed(SignedBy::Authority).await
    }

    /// The same with another certificate.
    async fn signed(signed_by: SignedBy) -> Self {
        let documents = Arc::new(Mutex::new(Documents::default()));
        let answering = Arc::clone(&documents);
        let server = HttpsServer::start(signed_by, move |request| {
            let response = answer(&answering, &request);
            async move { response }
        });
        let server = server.await;
        Self {
            url: format!("https://{}", server.address),
            authority: String::from_utf8(STANDARD.decode(&server.ca_bundle).unwrap()).unwrap(),
            documents,
            _server: server,
        }
    }

    /// One with keys.
    async fn start(keys: &[&Key]) -> Self {
        let issuer = Self::silent().await;
        issuer.speak();
        issuer.publish(keys, "");
        issuer
    }

    fn put(&self, path: &str, document: &str, cached: &str) {
        let mut documents = self.documents.lock().unwrap();
        documents.all.retain(|(known, _)| known != path);
        let document = (document.to_owned(), cached.to_owned());
        documents.all.push((path.to_owned(), document));
    }

    /// Says who it is from now on.
    fn speak(&self) {
        let document = json!({"issuer": self.url, "jwks_uri": format!("{}/keys", self.url)});
        self.put(
            "/.well-known/openid-configuration",
            &document.to_string(),
            "",
        );
    }

    /// Has these keys from now on.
    fn publish(&self, keys: &[&Key], cached: &str) {
        let mut all: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        // One of a kind that is not known.
        all.push(json!({"kty": "NEW", "kid": "new"}));
        self.put("/keys", &json!({"keys": all}).to_string(), cached);
    }

    /// How often a document was asked for.
    fn asked(&self, path: &str) -> usize {
        let documents = self.documents.lock().unwrap();
        documents.asked.iter().filter(|one| *one == path).count()
    }

    /// The claims of a token of this issuer, and others.
    fn claims(&self, more: &Value) -> Value {
        let mut claims =
            json!({"iss": self.url, "aud": "me", "sub": "ann", "exp": in_seconds(600)});
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }
}

fn in_seconds(seconds: i64) -> i64 {
    jsonwebtoken::get_current_timestamp() as i64 + seconds
}

fn answer(documents: &Mutex<Documents>, request: &Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let mut documents = documents.lock().unwrap();
    documents.asked.push(path.clone());
    if let Some(token) = request.headers().get("authorization") {
        documents.token = Some(token.to_str().unwrap().to_owned());
    }
    let found = documents.all.iter().find(|(known, _)| *known == path);
    let Some((_, (document, cached))) = found else {
        return text(503, "not yet");
    };
    let mut response = text(200, document.clone());
    if !cached.is_empty() {
        let headers = response.headers_mut();
        headers.insert("cache-control", cached.parse().unwrap());
    }
    response
}

/// A server whose users are those of an issuer, by flags.
fn start_by_flags(folder: &Path, issuer: &Issuer, more: &[&str]) -> Server {
    let authority = folder.join("ca.pem");
    std::fs::write(&authority, &issuer.authority).unwrap();
    let authority = format!("--oidc-ca-file={}", authority.display());
    let url = format!("--oidc-issuer-url={}", issuer.url);
    let own = [
        "--storage-backend=memory",
        "--authorization-mode=AlwaysAllow",
        "--oidc-client-id=me",
        "--oidc-username-prefix=u:",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=g:",
        &authority,
        &url,
    ];
    let args: Vec<&str> = own.into_iter().chain(more.iter().copied()).collect();
    Server::start(&args)
}

/// A server whose users are those of a file.
fn start_by_file(file: &Path, configuration: &Value) -> Server {
    write(file, configuration);
    let flag = format!("--authentication-config={}", file.display());
    Server::start(&[
        "--storage-backend=memory",
        "--authorization-mode=AlwaysAllow",
        &flag,
    ])
}

fn write(file: &Path, configuration: &Value) {
    let mut document = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
    });
    for (name, value) in configuration.as_object().unwrap() {
        document[name] = value.clone();
    }
    std::fs::write(file, document.to_string()).unwrap();
}

/// The user of a token, or the code of the answer.
async fn user(client: &Client, token: &str) -> Result<Value, u16> {
    let client = client.clone().with_token(token);
    let answer = client.post(WHO_AM_I, &json!({})).await;
    if answer.code == 201 {
        return Ok(answer.json()["status"]["userInfo"].take());
    }
    Err(answer.code)
}

/// What a review says of a token.
async fn review(administrator: &Client, token: &str) -> Value {
    let review = json!({"spec": {"token": token}});
    created(administrator, REVIEWS, &review).await["status"].take()
}

/// Asks again until the token is that of a user.
async fn until_known(administrator: &Client, token: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(user) = user(administrator, token).await {
            return user;
        }
        if Instant::now() > end {
            panic!(
                "the token is never known: {}",
                review(administrator, token).await
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn tokens_of_an_issuer_of_flags_are_users() {
    let key = Key::new("k1", Algorithm::RS256);
    let issuer = Issuer::start(&[&key]).await;
    let folder = tempfile::tempdir().unwrap();
    let server = start_by_flags(folder.path(), &issuer, &["--oidc-required-claim=hd=a.test"]);
    let administrator = server.client();
    administrator.until_ready().await;
    let claims = |more: Value| {
        let mut claims = issuer.claims(&json!({"hd": "a.test"}));
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    let token = key.sign(&claims(json!({"groups": ["dev", "ops"], "jti": "7"})));
    let expected = json!({
        "username": "u:ann",
        "groups": ["g:dev", "g:ops", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=7"]},
    });
    assert_eq!(until_known(&administrator, &token).await, expected);
    assert_eq!(
        review(&administrator, &token).await,
        json!({"authenticated": true, "user": expected})
    );
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let shown = kubectl.run(&["auth", "whoami", "--token", &token], "");
    assert!(shown.stdout.contains("u:ann"), "{shown:?}");

    // None of these is a user, and each says why to an administrator.
    let other = Key::new("k1", Algorithm::RS256);
    let unknown = Key::new("k2", Algorithm::RS256);
    let elliptic = Key::new("k1", Algorithm::ES256);
    let not_verified = "failed to verify signature: failed to verify id token signature";
    let symmetric = {
        // The public key of the issuer as the secret of another algorithm.
        let secret = EncodingKey::from_secret(key.public()["n"].as_str().unwrap().as_bytes());
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("k1".to_owned());
        jsonwebtoken::encode(&header, &claims(json!({})), &secret).unwrap()
    };
    let unsigned = {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({"alg": "none", "kid": "k1"}));
        format!("{header}.{}.", part(claims(json!({}))))
    };
    let changed = {
        let parts: Vec<&str> = token.split('.').collect();
        let claims = claims(json!({"sub": "admin"})).to_string();
        format!(
            "{}.{}.{}",
            parts[0],
            URL_SAFE_NO_PAD.encode(claims),
            parts[2]
        )
    };
    for (token, why) in [
        (key.sign(&claims(json!({"aud": "you"}))), "oidc: expected audience \"me\" got [\"you\"]".to_owned()),
        (key.sign(&claims(json!({"exp": in_seconds(-5)}))), "oidc: token is expired (Token Expiry: ".to_owned()),
        (key.sign(&claims(json!({"nbf": in_seconds(120)}))), "oidc: current time ".to_owned()),
        (key.sign(&claims(json!({"sub": 7}))), "oidc: parse username claims \"sub\": json: cannot unmarshal number into Go value of type string".to_owned()),
        (key.sign(&claims(json!({"hd": "b"}))), "oidc: required claim hd value does not match. Got = b, want = a.test".to_owned()),
        (key.sign(&claims(json!({"groups": 7}))), "oidc: parse groups claim \"groups\": json: cannot unmarshal number into Go value of type string".to_owned()),
        (other.sign(&claims(json!({}))), not_verified.to_owned()),
        (unknown.sign(&claims(json!({}))), not_verified.to_owned()),
        (changed, not_verified.to_owned()),
        (elliptic.sign(&claims(json!({}))), "oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"ES256\"".to_owned()),
        (symmetric, "oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"HS256\"".to_owned()),
        (unsigned, "oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"none\"".to_owned()),
    ] {
        assert_eq!(user(&administrator, &token).await, Err(401), "{why}");
        let status = review(&administrator, &token).await;
        assert_eq!(status["authenticated"], json!(null), "{status}");
        let error = status["error"].as_str().unwrap();
        assert!(error.contains(&why), "{error}: {why}");
    }
    // Tokens of other issuers are none of it.
    let foreign = key.sign(&claims(json!({"iss": "https://other.test"})));
    assert_eq!(user(&administrator, &foreign).await, Err(401));
    let status = review(&administrator, &foreign).await;
    assert_eq!(status["error"], "invalid bearer token");
    // Neither tokens nor claims are logged.
    let log = server.log();
    for secret in [&*token, token.rsplit('.').next().unwrap()] {
        assert!(!log.contains(secret));
    }
}

#[tokio::test]
async fn a_new_key_is_found_and_bad_tokens_do_not_ask_for_keys_again_and_again() {
    let (old, new) = (
        Key::new("old", Algorithm::RS256),
        Key::new("new", Algorithm::RS256),
    );
    let issuer = Issuer::start(&[&old]).await;
    let folder = tempfile::tempdir().unwrap();
    let server = start_by_flags(folder.path(), &issuer, &[]);
    let administrator = server.client();
    administrator.until_ready().await;
    until_known(&administrator, &old.sign(&issuer.claims(&json!({})))).await;
    assert_eq!(issuer.asked("/keys"), 1);

    // While the issuer says for how long its keys are good, no token makes the server ask for them.
    issuer.publish(&[&new], "public, max-age=3600");
    let of_new = new.sign(&issuer.claims(&json!({})));
    until_known(&administrator, &of_new).await;
    let asked = issuer.asked("/keys");
    assert!(asked >= 2);
    for index in 0..50 {
        let bad = old.sign(&issuer.claims(&json!({"sub": index.to_string()})));
        assert_eq!(user(&administrator, &bad).await, Err(401));
    }
    assert_eq!(issuer.asked("/keys"), asked);
    assert_eq!(issuer.asked("/.well-known/openid-configuration"), 1);
}

#[tokio::test]
async fn an_issuer_that_is_away_keeps_its_users_out_and_no_others() {
    let key = Key::new("k", Algorithm::RS256);
    let issuer = Issuer::silent().await;
    let folder = tempfile::tempdir().unwrap();
    let server = start_by_flags(folder.path(), &issuer, &[]);
    let administrator = server.client();
    administrator.until_ready().await;
    let token = key.sign(&issuer.claims(&json!({})));
    assert_eq!(user(&administrator, &token).await, Err(401));
    let status = review(&administrator, &token).await;
    assert_eq!(status["error"], "oidc: authenticator not initialized");
    // It says that it is another one, then who it is.
    let lie = json!({"issuer": "https://other.test", "jwks_uri": format!("{}/keys", issuer.url)});
    issuer.publish(&[&key], "");
    issuer.put("/.well-known/openid-configuration", &lie.to_string(), "");
    while issuer.asked("/.well-known/openid-configuration") < 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(user(&administrator, &token).await, Err(401));
    issuer.speak();
    assert_eq!(
        until_known(&administrator, &token).await["username"],
        "u:ann"
    );
}

/// The configuration of an issuer with expressions.
fn with_expressions(issuer: &Issuer) -> Value {
    json!({
        "issuer": {
            "url": issuer.url,
            "certificateAuthority": issuer.authority,
            "audiences": ["me", "us"],
            "audienceMatchPolicy": "MatchAny",
        },
        "claimValidationRules": [
            {"expression": "claims.exp - claims.iat <= 3600.0", "message": "it lives too long"},
        ],
        "claimMappings": {
            "username": {"expression": "'ext:' + claims.sub"},
            "groups": {"expression": "claims.roles.split(',')"},
            "uid": {"claim": "sub"},
            "extra": [{"key": "a.test/tenant", "valueExpression": "claims.a__dot__test__slash__tenant"}],
        },
        "userValidationRules": [
            {"expression": "!user.username.startsWith('ext:system:')", "message": "reserved"},
        ],
    })
}

#[tokio::test]
async fn tokens_of_several_issuers_of_a_file_are_users() {
    let (rsa, elliptic) = (
        Key::new("r", Algorithm::PS256),
        Key::new("e", Algorithm::ES256),
    );
    let (first, second) = (
        Issuer::start(&[&elliptic]).await,
        Issuer::start(&[&rsa]).await,
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authentication.yaml");
    let plain = json!({
        "issuer": {"url": second.url, "certificateAuthority": second.authority, "audiences": ["me"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": "second:"}},
    });
    let configuration = json!({
        "jwt": [with_expressions(&first), plain],
        "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]},
    });
    let server = start_by_file(&file, &configuration);
    let administrator = server.client();
    administrator.until_ready().await;
    let claims = |more: &Value| {
        let mut all = first.claims(&json!({
            "aud": "us", "roles": "dev,ops", "iat": in_seconds(-10), "a.test/tenant": ["t"],
        }));
        for (name, value) in more.as_object().unwrap() {
            all[name] = value.clone();
        }
        elliptic.sign(&all)
    };
    assert_eq!(
        until_known(&administrator, &claims(&json!({}))).await,
        json!({
            "username": "ext:ann",
            "uid": "ann",
            "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"a.test/tenant": ["t"]},
        })
    );
    for (more, why) in [
        (
            json!({"iat": in_seconds(-7200)}),
            "validation expression 'claims.exp - claims.iat <= 3600.0' failed: it lives too long",
        ),
        (json!({"sub": "system:admin"}), "failed: reserved"),
        (
            json!({"aud": ["you"]}),
            "oidc: expected audience in [\"me\" \"us\"] got [\"you\"]",
        ),
        (
            json!({"roles": 7}),
            "oidc: error evaluating group claim expression",
        ),
    ] {
        let token = claims(&more);
        assert_eq!(user(&administrator, &token).await, Err(401), "{why}");
        let error = review(&administrator, &token).await["error"].take();
        assert!(error.as_str().unwrap().contains(why), "{error}: {why}");
    }
    let of_second = until_known(&administrator, &rsa.sign(&second.claims(&json!({})))).await;
    assert_eq!(of_second["username"], "second:ann");
    // The key of one issuer makes no users of the other.
    assert_eq!(
        user(&administrator, &rsa.sign(&first.claims(&json!({})))).await,
        Err(401)
    );

    // Without credentials only some paths are answered, those of a user all.
    let nameless = administrator.clone().anonymous();
    for (path, code) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/livez/ping", 401),
        ("/version", 401),
        ("/api", 401),
    ] {
        assert_eq!(nameless.get(path).await.code, code, "{path}");
    }
    assert_eq!(administrator.get("/version").await.code, 200);
}

#[tokio::test]
async fn a_changed_file_is_read_again_and_a_bad_one_changes_nothing() {
    let key = Key::new("k", Algorithm::ES256);
    let (first, second) = (Issuer::start(&[&key]).await, Issuer::start(&[&key]).await);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authentication.yaml");
    let of = |issuer: &Issuer| {
        json!({
            "issuer": {"url": issuer.url, "certificateAuthority": issuer.authority, "audiences": ["me"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        })
    };
    let server = start_by_file(&file, &json!({"jwt": [of(&first)]}));
    let administrator = server.client();
    administrator.until_ready().await;
    let token = |issuer: &Issuer, sub: &str| key.sign(&issuer.claims(&json!({"sub": sub})));
    until_known(&administrator, &token(&first, "a")).await;
    assert_eq!(user(&administrator, &token(&second, "a")).await, Err(401));

    // Issuers that are as before are not asked again.
    write(&file, &json!({"jwt": [of(&first), of(&second)]}));
    until_known(&administrator, &token(&second, "b")).await;
    until_known(&administrator, &token(&first, "b")).await;
    assert_eq!(first.asked("/.well-known/openid-configuration"), 1);
    assert_eq!(reloads(&administrator, "success").await, 1);

    let mut wrong = of(&first);
    wrong["claimMappings"] = json!({"username": {"expression": "nothing.sub"}});
    write(&file, &json!({"jwt": [wrong]}));
    while reloads(&administrator, "failure").await < 1 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = server.log();
    assert!(log.contains("undeclared reference to 'nothing'"), "{log}");
    until_known(&administrator, &token(&second, "c")).await;

    write(&file, &json!({"jwt": [of(&second)]}));
    while reloads(&administrator, "success").await < 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(user(&administrator, &token(&first, "d")).await, Err(401));
    until_known(&administrator, &token(&second, "d")).await;
}

/// How often the file was read again.
async fn reloads(client: &Client, status: &str) -> u64 {
    let series = format!(
        "apiserver_authentication_config_controller_automatic_reloads_total{{status=\"{status}\"}} "
    );
    let metrics = client.get("/metrics").await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
    line.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn groups_that_are_elsewhere_are_fetched() {
    let key = Key::new("k", Algorithm::RS256);
    let issuer = Issuer::start(&[&key]).await;
    let folder = tempfile::tempdir().unwrap();
    let server = start_by_flags(folder.path(), &issuer, &[]);
    let administrator = server.client();
    administrator.until_ready().await;
    let pointing = |sub: &str, path: &str| {
        key.sign(&issuer.claims(&json!({
            "sub": sub,
            "_claim_names": {"groups": "src"},
            "_claim_sources": {"src": {
                "endpoint": format!("{}{path}", issuer.url),
                "access_token": "s3cret",
            }},
        })))
    };
    let groups = key.sign(&issuer.claims(&json!({"groups": ["far"]})));
    issuer.put("/groups", &groups, "");
    let found = until_known(&administrator, &pointing("a", "/groups")).await;
    assert_eq!(found["groups"], json!(["g:far", "system:authenticated"]));
    assert_eq!(
        issuer.documents.lock().unwrap().token.as_deref(),
        Some("Bearer s3cret")
    );
    let of_other = key.sign(&issuer.claims(&json!({"groups": ["far"], "aud": "you"})));
    issuer.put("/other", &of_other, "");
    issuer.put("/none", &key.sign(&issuer.claims(&json!({}))), "");
    issuer.put("/text", "text", "");
    for (path, why) in [
        (
            "/other",
            "verify distributed claim token: oidc: expected audience",
        ),
        ("/none", "did not contain claim: groups"),
        ("/text", "malformed token"),
        ("/away", "503 Service Unavailable: not yet"),
    ] {
        let token = pointing(path, path);
        assert_eq!(user(&administrator, &token).await, Err(401), "{path}");
        let error = review(&administrator, &token).await["error"].take();
        let error = error.as_str().unwrap();
        assert!(error.contains(why), "{error}: {why}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(!server.log().contains("s3cret"));
}

#[tokio::test]
async fn an_issuer_may_be_its_own_authority_and_no_other_one() {
    let key = Key::new("k", Algorithm::ES256);
    for signed_by in [SignedBy::Itself, SignedBy::ItselfAsAuthority] {
        let issuer = Issuer::signed(signed_by).await;
        issuer.speak();
        issuer.publish(&[&key], "");
        let folder = tempfile::tempdir().unwrap();
        let flag = "--oidc-signing-algs=ES256";
        let server = start_by_flags(folder.path(), &issuer, &[flag]);
        let administrator = server.client();
        administrator.until_ready().await;
        let token = key.sign(&issuer.claims(&json!({})));
        assert_eq!(
            until_known(&administrator, &token).await["username"],
            "u:ann"
        );
    }

    // One whose certificate another authority has made is asked for nothing.
    let mut issuer = Issuer::start(&[&key]).await;
    issuer.authority = Issuer::silent().await.authority;
    let folder = tempfile::tempdir().unwrap();
    let server = start_by_flags(folder.path(), &issuer, &["--oidc-signing-algs=ES256"]);
    let administrator = server.client();
    administrator.until_ready().await;
    while !server.log().contains("an issuer of tokens is not ready") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let token = key.sign(&issuer.claims(&json!({})));
    assert_eq!(user(&administrator, &token).await, Err(401));
    assert_eq!(issuer.asked("/.well-known/openid-configuration"), 0);
}
