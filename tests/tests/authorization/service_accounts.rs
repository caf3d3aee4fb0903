//! Service accounts as users: their tokens from the request to the end, by the wire and by kubectl.

use std::path::{Path, PathBuf};

use apiloom_tests::{Client, Kubectl, Server, created};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};

const ISSUER: &str = "https://issuer.test:6443";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A server that issues tokens, and its files.
struct Fixture {
    server: Server,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_key(
            &folder.path().join("key.pem"),
            &KeyPair::generate().unwrap(),
        );
        let server = start(folder.path(), args);
        Self { server, folder }
    }

    fn administrator(&self) -> Client {
        self.server.client()
    }
}

fn write_key(path: &Path, key: &KeyPair) {
    std::fs::write(path, key.serialize_pem()).unwrap();
}

fn start(folder: &Path, args: &[&str]) -> Server {
    let key = format!(
        "--service-account-signing-key-file={}",
        folder.join("key.pem").display()
    );
    let issuer = format!("--service-account-issuer={ISSUER}");
    let own = ["--authorization-mode=RBAC", &issuer, &key];
    let args: Vec<&str> = own.into_iter().chain(args.iter().copied()).collect();
    Server::start_in(&folder.join("data"), &args)
}

async fn account(client: &Client, name: &str) -> Value {
    created(client, ACCOUNTS, &json!({"metadata": {"name": name}})).await
}

fn path_of(account: &str) -> String {
    format!("{ACCOUNTS}/{account}/token")
}

async fn token(client: &Client, account: &str, spec: Value) -> String {
    let request = json!({"spec": spec});
    let answer = created(client, &path_of(account), &request).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// A part of a token, unchecked.
fn part(token: &str, at: usize) -> Value {
    let part = token.split('.').nth(at).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The code of a request with a token.
async fn code(administrator: &Client, token: &str, path: &str) -> u16 {
    let client = administrator.clone().with_token(token);
    client.get(path).await.code
}

async fn status(client: &Client, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    created(client, REVIEWS, &review).await["status"].take()
}

#[tokio::test]
async fn a_token_is_the_account_for_a_time() {
    let fixture = Fixture::new(&["--storage-backend=memory"]);
    let administrator = fixture.administrator();
    administrator.until_ready().await;
    let uid = account(&administrator, "till").await["metadata"]["uid"].take();
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    });
    let mut answer = created(&administrator, &path_of("till"), &request).await;
    let issued = answer["status"]["token"]
        .take()
        .as_str()
        .unwrap()
        .to_owned();
    let metadata = &mut answer["metadata"];
    let made = metadata["creationTimestamp"].take();
    assert!(made.as_str().unwrap().ends_with('Z'), "{made}");
    let ends = answer["status"]["expirationTimestamp"].take();
    assert!(ends.as_str().unwrap() > made.as_str().unwrap());
    answer["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    assert_eq!(
        answer,
        json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": "till", "namespace": "default", "creationTimestamp": null},
            "spec": {"audiences": [ISSUER], "expirationSeconds": 600, "boundObjectRef": null},
            "status": {"token": null, "expirationTimestamp": null},
        })
    );

    let claims = part(&issued, 1);
    assert_eq!(
        claims["exp"].as_i64(),
        claims["iat"].as_i64().map(|at| at + 600)
    );
    assert_eq!(claims["nbf"], claims["iat"]);
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(claims["aud"], json!([ISSUER]));
    assert_eq!(claims["sub"], "system:serviceaccount:default:till");
    assert_eq!(
        claims["kubernetes.io"],
        json!({"namespace": "default", "serviceaccount": {"name": "till", "uid": uid}})
    );
    let jti = claims["jti"].as_str().unwrap();
    let mut fields: Vec<_> = part(&issued, 0)
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    fields.sort();
    assert_eq!(fields, ["alg", "kid"]);

    let me = administrator.clone().with_token(&issued);
    let mut review = created(&me, WHO_AM_I, &json!({})).await;
    assert_eq!(
        review["status"]["userInfo"].take(),
        json!({
            "username": "system:serviceaccount:default:till",
            "uid": uid,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={jti}")]},
        })
    );
    assert_eq!(
        me.get("/api/v1/namespaces/default/configmaps").await.code,
        403
    );
    let role = json!({
        "metadata": {"name": "readers"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    });
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    created(&administrator, &format!("{RBAC}/roles"), &role).await;
    let binding = json!({
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers"},
        "subjects": [{"kind": "ServiceAccount", "name": "till"}],
    });
    created(&administrator, &format!("{RBAC}/rolebindings"), &binding).await;
    assert_eq!(
        me.get("/api/v1/namespaces/default/configmaps").await.code,
        200
    );
    // A token gives no right to further ones.
    let refused = me.post(&path_of("till"), &json!({})).await;
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .text()
            .contains(r#"cannot create resource \"serviceaccounts/token\""#),
        "{}",
        refused.text()
    );

    // Another bit in any part.
    for at in [3, issued.len() / 2, issued.len() - 5] {
        let other = if &issued[at..=at] == "A" { "B" } else { "A" };
        let forged = format!("{}{other}{}", &issued[..at], &issued[at + 1..]);
        assert_eq!(code(&administrator, &forged, WHO_AM_I).await, 401, "{at}");
    }
    // A token of no signature, and one whose key the client has made up.
    let [header, body, _] = &issued.split('.').collect::<Vec<_>>()[..] else {
        panic!("a token has three parts");
    };
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    assert_eq!(
        code(&administrator, &format!("{none}.{body}."), "/api").await,
        401
    );
    assert_eq!(
        code(&administrator, &format!("{header}.{body}."), "/api").await,
        401
    );
    let hmac = jsonwebtoken::encode(
        &jsonwebtoken::Header::default(),
        &claims,
        &jsonwebtoken::EncodingKey::from_secret(b"key"),
    );
    assert_eq!(code(&administrator, &hmac.unwrap(), "/api").await, 401);
    assert_eq!(code(&administrator, &issued, "/api").await, 200);

    // The account goes, and comes again as another one.
    administrator
        .delete(&format!("{ACCOUNTS}/till"), &json!({}))
        .await;
    assert_eq!(code(&administrator, &issued, "/api").await, 401);
    let gone = status(&administrator, &issued, &[]).await;
    assert_eq!(gone["error"], r#"serviceaccounts "till" not found"#);
    account(&administrator, "till").await;
    assert_eq!(code(&administrator, &issued, "/api").await, 401);
}

#[tokio::test]
async fn a_token_ends_with_the_secret_that_it_is_bound_to() {
    let fixture = Fixture::new(&["--storage-backend=memory"]);
    let administrator = fixture.administrator();
    account(&administrator, "till").await;
    let secret = json!({"metadata": {"name": "drawer"}});
    let uid = created(&administrator, SECRETS, &secret).await["metadata"]["uid"].take();
    let bound = |uid: &Value| json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "drawer", "uid": uid}});
    let issued = token(&administrator, "till", bound(&uid)).await;
    assert_eq!(
        part(&issued, 1)["kubernetes.io"]["secret"],
        json!({"name": "drawer", "uid": uid})
    );
    assert_eq!(code(&administrator, &issued, "/api").await, 200);
    administrator
        .delete(&format!("{SECRETS}/drawer"), &json!({}))
        .await;
    assert_eq!(code(&administrator, &issued, "/api").await, 401);
    let why = status(&administrator, &issued, &[]).await;
    assert_eq!(why["error"], "service account token has been invalidated");

    let refused = async |spec: Value, expected: (u16, &str)| {
        let answer = administrator
            .post(&path_of("till"), &json!({"spec": spec}))
            .await;
        let status = answer.json();
        assert_eq!((answer.code, status["message"].as_str().unwrap()), expected);
    };
    refused(bound(&uid), (404, r#"secrets "drawer" not found"#)).await;
    let again = created(&administrator, SECRETS, &secret).await;
    assert_ne!(again["metadata"]["uid"], uid);
    let text = format!(
        r#"Operation cannot be fulfilled on Secret "drawer": the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated"#,
        uid.as_str().unwrap()
    );
    refused(bound(&uid), (409, &text)).await;
    let other =
        json!({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}});
    let text = "cannot bind token to object of type apps/v1, Kind=Deployment";
    refused(other, (400, text)).await;
}

#[tokio::test]
async fn tokens_have_bounds() {
    let fixture = Fixture::new(&[
        "--storage-backend=memory",
        "--service-account-max-token-expiration=2h",
    ]);
    let administrator = fixture.administrator();
    account(&administrator, "till").await;
    let post = async |body: Value| administrator.post(&path_of("till"), &body).await;
    let refused = async |body: Value, expected: &str| {
        let answer = post(body).await;
        assert_eq!(answer.code, 422, "{}", answer.text());
        let text = format!(r#"TokenRequest.authentication.k8s.io "" is invalid: {expected}"#);
        assert_eq!(answer.json()["message"], text);
    };
    let seconds = |seconds: i64| json!({"spec": {"expirationSeconds": seconds}});
    refused(
        seconds(599),
        "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
    )
    .await;
    refused(
        seconds((1 << 32) + 1),
        "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
    )
    .await;
    let other = post(json!({"metadata": {"name": "other"}})).await;
    assert_eq!(other.code, 400, "{}", other.text());
    let other = post(json!({"metadata": {"namespace": "other"}})).await;
    assert_eq!(other.code, 400, "{}", other.text());
    let answer = post(seconds(1 << 32)).await;
    assert_eq!(answer.code, 201);
    assert_eq!(
        answer.header("warning"),
        r#"299 - "requested expiration of 4294967296 seconds shortened to 7200 seconds""#
    );
    assert_eq!(answer.json()["spec"]["expirationSeconds"], 7200);
    let answer = post(json!({})).await;
    assert_eq!(answer.json()["spec"]["expirationSeconds"], 3600);
    let nowhere = administrator.post(&path_of("none"), &json!({})).await;
    assert_eq!(nowhere.code, 404);
    assert_eq!(
        nowhere.json()["message"],
        r#"serviceaccounts "none" not found"#
    );
}

#[tokio::test]
async fn a_token_is_for_its_audiences() {
    let fixture = Fixture::new(&["--storage-backend=memory", "--api-audiences=api,shop"]);
    let administrator = fixture.administrator();
    account(&administrator, "till").await;
    let own = token(&administrator, "till", json!({})).await;
    assert_eq!(part(&own, 1)["aud"], json!(["api", "shop"]));
    let foreign = token(
        &administrator,
        "till",
        json!({"audiences": ["vault", "bank"]}),
    )
    .await;
    assert_eq!(code(&administrator, &own, "/api").await, 200);
    assert_eq!(code(&administrator, &foreign, "/api").await, 401);

    let audiences = async |token: &str, asked: &[&str]| {
        let status = status(&administrator, token, asked).await;
        assert_eq!(status["authenticated"], true, "{status}");
        status["audiences"].clone()
    };
    assert_eq!(audiences(&own, &[]).await, json!(["api", "shop"]));
    assert_eq!(audiences(&own, &["shop", "vault"]).await, json!(["shop"]));
    assert_eq!(
        audiences(&foreign, &["shop", "vault"]).await,
        json!(["vault"])
    );
    // The administrator's token names none, so it is for this server.
    let of_admin = administrator.token().to_owned();
    assert_eq!(audiences(&of_admin, &[]).await, json!(["api", "shop"]));
    assert_eq!(
        audiences(&of_admin, &["api", "vault"]).await,
        json!(["api"])
    );

    let refused = async |token: &str, asked: &[&str], error: &str| {
        let status = status(&administrator, token, asked).await;
        assert_eq!(status, json!({"user": {}, "error": error}));
    };
    let text =
        r#"token audiences ["vault" "bank"] is invalid for the target audiences ["api" "shop"]"#;
    refused(&foreign, &[], text).await;
    let text = r#"token audiences ["api" "shop"] is invalid for the target audiences ["vault"]"#;
    refused(&own, &["vault"], text).await;
    refused(&of_admin, &["vault"], "invalid bearer token").await;
    refused("unknown", &[], "invalid bearer token").await;
    refused("a\nb", &[], "invalid bearer token").await;
    let empty = administrator.post(REVIEWS, &json!({"spec": {}})).await;
    assert_eq!(empty.code, 400);
    assert_eq!(
        empty.json()["message"],
        "token is required for TokenReview in authentication"
    );
}

/// What a token is worth elsewhere: others check it by the documents of the issuer, which all accounts may read.
#[tokio::test]
async fn others_check_tokens_by_the_documents_of_the_issuer() {
    let fixture = Fixture::new(&["--storage-backend=memory"]);
    let administrator = fixture.administrator();
    administrator.until_ready().await;
    account(&administrator, "till").await;
    let issued = token(&administrator, "till", json!({"audiences": ["vault"]})).await;
    let own = token(&administrator, "till", json!({})).await;
    let me = administrator.clone().with_token(&own);
    let document = me.get("/.well-known/openid-configuration").await;
    assert_eq!(document.code, 200);
    assert_eq!(document.header("content-type"), "application/json");
    assert_eq!(document.header("cache-control"), "public, max-age=3600");
    assert_eq!(
        document.text(),
        r#"{"issuer":"https://issuer.test:6443","jwks_uri":"https://issuer.test:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
    );
    let keys = me.get("/openid/v1/jwks").await;
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    let keys: JwkSet = serde_json::from_value(keys.json()).unwrap();
    let header = jsonwebtoken::decode_header(&issued).unwrap();
    let key = keys.find(&header.kid.unwrap()).unwrap();
    let mut expected = Validation::new(header.alg);
    expected.set_audience(&["vault"]);
    expected.set_issuer(&[ISSUER]);
    let key = DecodingKey::from_jwk(key).unwrap();
    jsonwebtoken::decode::<Value>(&issued, &key, &expected).unwrap();
    let none = administrator.clone().anonymous();
    assert_eq!(none.get("/openid/v1/jwks").await.code, 403);
    let post = administrator.post("/openid/v1/jwks", &json!({})).await;
    assert_eq!(post.code, 405);
}

/// A change of keys as an administrator makes it, with restarts.
#[tokio::test]
async fn tokens_outlive_restarts_and_a_change_of_keys() {
    let fixture = Fixture::new(&[]);
    let administrator = fixture.administrator();
    account(&administrator, "till").await;
    let first = token(&administrator, "till", json!({})).await;
    let Fixture { server, folder } = fixture;
    server.stop();
    let (key, old) = (folder.path().join("key.pem"), folder.path().join("old.pem"));
    let server = start(folder.path(), &[]);
    let administrator = server.client();
    assert_eq!(code(&administrator, &first, "/api").await, 200);
    server.stop();

    std::fs::rename(&key, &old).unwrap();
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    write_key(&key, &rsa);
    let flag = format!("--service-account-key-file={}", old.display());
    let server = start(folder.path(), &[&flag]);
    let administrator = server.client();
    let second = token(&administrator, "till", json!({})).await;
    assert_eq!(part(&second, 0)["alg"], "RS256");
    for token in [&first, &second] {
        assert_eq!(code(&administrator, token, "/api").await, 200);
    }
    server.stop();

    let server = start(folder.path(), &[]);
    let administrator = server.client();
    assert_eq!(code(&administrator, &second, "/api").await, 200);
    assert_eq!(code(&administrator, &first, "/api").await, 401);
    let why = status(&administrator, &first, &[]).await;
    assert_eq!(why["error"], "invalid signature, no keys found");
}

#[test]
fn kubectl_creates_and_uses_tokens() {
    let fixture = Fixture::new(&["--storage-backend=memory"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(fixture.administrator().until_ready());
    for release in Kubectl::RELEASES {
        let kubeconfig: PathBuf = fixture.folder.path().join(format!("{release}.kubeconfig"));
        std::fs::copy(fixture.server.kubeconfig(), &kubeconfig).unwrap();
        let kubectl = Kubectl::new(release, &kubeconfig);
        let run = |args: &[&str]| {
            let output = kubectl.run(args, "");
            assert_eq!(output.code, 0, "{args:?}: {}", output.stderr);
            output.stdout
        };
        run(&["create", "serviceaccount", "robot"]);
        run(&["create", "secret", "generic", "drawer"]);
        let issued = run(&[
            "create",
            "token",
            "robot",
            "--duration=20m",
            "--audience=vault",
            "--bound-object-kind=Secret",
            "--bound-object-name=drawer",
        ]);
        let claims = part(issued.trim(), 1);
        assert_eq!(
            claims["exp"].as_i64(),
            claims["iat"].as_i64().map(|at| at + 1200)
        );
        assert_eq!(claims["aud"], json!(["vault"]));
        assert_eq!(claims["kubernetes.io"]["secret"]["name"], "drawer");
        let own = run(&["create", "token", "robot"]);
        run(&["config", "set-credentials", "robot", "--token", own.trim()]);
        let text = run(&["--user=robot", "auth", "whoami"]);
        for part in ["system:serviceaccount:default:robot", "JTI="] {
            assert!(text.contains(part), "{text}");
        }
        let shown = run(&["create", "token", "robot", "-o", "yaml"]);
        assert!(shown.contains("kind: TokenRequest"), "{shown}");
        run(&["delete", "serviceaccount/robot", "secret/drawer"]);
    }
}

/// Problems of the flags are told together, before anything is opened.
#[test]
fn wrong_flags_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let binary = apiloom_tests::build("wardle-server");
    let run = |args: &[&str]| {
        let output = std::process::Command::new(&binary)
            .current_dir(folder.path())
            .args(["--data-dir=data", "--secure-port=0"])
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(!folder.path().join("data").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        run(&[
            "--service-account-signing-key-file=none.pem",
            "--service-account-max-token-expiration=59m",
            "--service-account-jwks-uri=http://a.b",
        ]),
        "error: --service-account-signing-key-file needs --service-account-issuer\n\
         error: --service-account-max-token-expiration must be between 1 hour and 2^32 seconds\n\
         error: --service-account-jwks-uri is no URL of https\n"
    );
    assert_eq!(
        run(&["--service-account-issuer=a: b"]),
        "error: --service-account-issuer \"a: b\" has a colon and is no URL\n"
    );
    let text = run(&[
        "--service-account-issuer=a",
        "--service-account-signing-key-file=none.pem",
    ]);
    assert!(
        text.contains("cannot read the keys of service accounts none.pem: "),
        "{text}"
    );
}
