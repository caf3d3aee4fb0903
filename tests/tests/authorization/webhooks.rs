//! Webhooks that review tokens and permissions, in the process of the test: what they answer counts, for as long as it is kept, and a server
//! whose webhook does not answer goes on.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use apiloom_tests::https::{Body, HttpsServer, SignedBy, text};
use apiloom_tests::{Client, Kubectl, Server, build, created};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a webhook answers to a question: a code, and the document.
type Answer = fn(&Value) -> (u16, Value);

/// A running webhook; it ends when this is dropped.
struct Webhook {
    /// A kubeconfig that names it.
    kubeconfig: String,
    /// The questions so far.
    asked: Arc<Mutex<Vec<Value>>>,
    /// How it answers.
    answer: Arc<Mutex<Answer>>,
    _server: HttpsServer,
}

impl Webhook {
    async fn start(answer: Answer) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(answer));
        let (asked_there, answer_there) = (Arc::clone(&asked), Arc::clone(&answer));
        let server = HttpsServer::start(SignedBy::Authority, move |request| {
            reply(Arc::clone(&asked_there), Arc::clone(&answer_there), request)
        });
        let server = server.await;
        let url = format!("https://{}/review", server.address);
        Self {
            kubeconfig: kubeconfig(&url, &server.ca_bundle),
            asked,
            answer,
            _server: server,
        }
    }

    /// Answers so from now on.
    fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// The flag that names it.
    fn flag(&self, folder: &Path, name: &str) -> String {
        let file = folder.join(name);
        std::fs::write(&file, &self.kubeconfig).unwrap();
        format!("--{name}={}", file.display())
    }
}

fn kubeconfig(url: &str, authority: &str) -> String {
    let cluster = json!({"server": url, "certificate-authority-data": authority});
    json!({
        "clusters": [{"name": "hook", "cluster": cluster}],
        "users": [{"name": "server", "user": {"token": "of-the-server"}}],
        "contexts": [{"name": "hook", "context": {"cluster": "hook", "user": "server"}}],
        "current-context": "hook",
    })
    .to_string()
}

async fn reply(
    asked: Arc<Mutex<Vec<Value>>>,
    answer: Arc<Mutex<Answer>>,
    request: Request<Incoming>,
) -> Response<Body> {
    let uri = request.uri().to_string();
    assert!(uri.ends_with("/review?timeout=30s"), "{uri}");
    assert_eq!(request.headers()["authorization"], "Bearer of-the-server");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question: Value = serde_json::from_slice(&body).unwrap();
    let (code, document) = answer.lock().unwrap()(&question);
    asked.lock().unwrap().push(question);
    text(code, document.to_string())
}

/// Tokens are names, but those of `x`, which are old.
fn users(question: &Value) -> (u16, Value) {
    let mut answer = question.clone();
    let token = question["spec"]["token"].as_str().unwrap();
    answer["status"] = match token {
        "none" => json!({"authenticated": false}),
        token if token.starts_with('x') => json!({"error": "the token is old"}),
        token => json!({"authenticated": true, "user": {"username": token, "groups": ["team"]}}),
    };
    (200, answer)
}

fn out(_: &Value) -> (u16, Value) {
    (503, json!("out"))
}

async fn user(server: &Client, token: &str) -> Result<Value, u16> {
    let answer = server
        .clone()
        .with_token(token)
        .post(WHO_AM_I, &json!({}))
        .await;
    if answer.code == 201 {
        return Ok(answer.json()["status"]["userInfo"].take());
    }
    Err(answer.code)
}

#[tokio::test]
async fn tokens_are_those_of_the_users_that_a_webhook_names() {
    let webhook = Webhook::start(users).await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[
        "--storage-backend=memory",
        "--authorization-mode=AlwaysAllow",
        "--authentication-token-webhook-version=v1",
        &webhook.flag(folder.path(), "authentication-token-webhook-config-file"),
    ]);
    let administrator = server.client();
    administrator.until_ready().await;
    let joan = json!({"username": "joan", "groups": ["team", "system:authenticated"]});
    assert_eq!(user(&administrator, "joan").await, Ok(joan.clone()));
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let shown = kubectl.run(&["auth", "whoami", "--token", "joan"], "");
    assert!(shown.stdout.contains("joan"), "{shown:?}");
    // The token of the administrator is not asked about, and an answer is kept.
    let question = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": {"token": "joan"},
        "status": {"user": {}},
    });
    assert_eq!(webhook.asked(), [question]);

    // That a token is of no user is kept too; an error is not.
    for _ in 0..2 {
        assert_eq!(user(&administrator, "none").await, Err(401));
    }
    assert_eq!(webhook.asked().len(), 2);
    for _ in 0..2 {
        assert_eq!(user(&administrator, "x1").await, Err(401));
    }
    assert_eq!(webhook.asked().len(), 4);
    let review = json!({"spec": {"token": "x2"}});
    let status = created(&administrator, TOKEN_REVIEWS, &review).await["status"].take();
    assert_eq!(status, json!({"user": {}, "error": "the token is old"}));

    // Without the webhook those are known that are kept, and the others are when it is back.
    webhook.answer(out);
    assert_eq!(user(&administrator, "joan").await, Ok(joan));
    assert_eq!(user(&administrator, "jim").await, Err(401));
    let review = json!({"spec": {"token": "jim"}});
    let status = created(&administrator, TOKEN_REVIEWS, &review).await["status"].take();
    let error = status["error"].as_str().unwrap();
    assert_eq!(
        error,
        "the server is currently unable to handle the request"
    );
    webhook.answer(users);
    assert!(user(&administrator, "jim").await.is_ok());
}

#[tokio::test]
async fn a_question_of_several_requests_is_asked_once() {
    let webhook = Webhook::start(users).await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[
        "--storage-backend=memory",
        "--authorization-mode=AlwaysAllow",
        "--authentication-token-webhook-cache-ttl=10m",
        &webhook.flag(folder.path(), "authentication-token-webhook-config-file"),
    ]);
    let administrator = server.client();
    administrator.until_ready().await;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let client = administrator.clone();
            tokio::spawn(async move { user(&client, "joan").await })
        })
        .collect();
    for one in asking {
        assert!(one.await.unwrap().is_ok());
    }
    let asked = webhook.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["apiVersion"], "authentication.k8s.io/v1beta1");
}

/// Maps may be read, secrets not; what else there is the next one decides.
fn permissions(question: &Value) -> (u16, Value) {
    let resource = question.pointer("/spec/resourceAttributes/resource");
    let status = match resource.and_then(Value::as_str) {
        Some("configmaps") => json!({"allowed": true, "reason": "maps are for all"}),
        Some("secrets") => json!({"allowed": false, "denied": true, "reason": "secrets are not"}),
        Some("events") => json!({"allowed": true, "denied": true}),
        _ => json!({"allowed": false, "reason": "ask another"}),
    };
    let (kind, version) = (&question["kind"], &question["apiVersion"]);
    (
        200,
        json!({"kind": kind, "apiVersion": version, "status": status}),
    )
}

#[tokio::test]
async fn requests_are_allowed_as_a_webhook_says() {
    let webhook = Webhook::start(permissions).await;
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "joan,joan,1,team\n").unwrap();
    let server = Server::start(&[
        "--storage-backend=memory",
        "--authorization-mode=Webhook,RBAC",
        "--authorization-webhook-version=v1",
        &format!("--token-auth-file={}", tokens.display()),
        &webhook.flag(folder.path(), "authorization-webhook-config-file"),
    ]);
    let administrator = server.client();
    administrator.until_ready().await;
    let joan = administrator.clone().with_token("joan");
    for _ in 0..2 {
        assert_eq!(joan.get(MAPS).await.code, 200);
    }
    // Each question once; those of the administrator are decided before.
    let question = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "list",
                "version": "v1",
                "resource": "configmaps",
            },
            "user": "joan",
            "groups": ["team", "system:authenticated"],
            "uid": "1",
        },
        "status": {"allowed": false},
    });
    assert_eq!(webhook.asked(), [question]);
    let forbidden = |answer: &Value| answer["message"].as_str().unwrap().to_owned();
    let answer = joan.get("/api/v1/namespaces/default/secrets").await;
    assert_eq!(answer.code, 403);
    assert_eq!(
        forbidden(&answer.json()),
        "secrets is forbidden: User \"joan\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\": secrets are not"
    );
    // Both is a denial.
    assert_eq!(joan.get("/api/v1/events").await.code, 403);
    // No opinion of the webhook: roles decide, and all reasons are told.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let answer = joan.get(accounts).await;
    assert_eq!(answer.code, 403);
    assert!(forbidden(&answer.json()).ends_with("in the namespace \"default\": ask another"));
    let binding = json!({
        "metadata": {"name": "joan"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joan"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    created(&administrator, bindings, &binding).await;
    assert_eq!(joan.get(accounts).await.code, 200);
    // A path is asked about too, and the health is for those whom the webhook lets.
    assert_eq!(joan.get("/metrics").await.code, 403);
    let path = webhook.asked().pop().unwrap();
    assert_eq!(
        path["spec"]["nonResourceAttributes"],
        json!({"path": "/metrics", "verb": "get"})
    );
    // A list of what is allowed says that it is not all.
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = joan
        .post(reviews, &json!({"spec": {"namespace": "default"}}))
        .await;
    let status = &rules.json()["status"];
    assert_eq!(status["incomplete"], true);
    assert_eq!(
        status["evaluationError"],
        "webhook authorizer does not support user rule resolution"
    );

    // Without the webhook roles decide; what they do not allow fails.
    webhook.answer(out);
    assert_eq!(
        joan.get("/api/v1/namespaces/other/serviceaccounts")
            .await
            .code,
        200
    );
    let answer = joan.get("/api/v1/namespaces/other/secrets").await;
    assert_eq!(
        (answer.code, &*answer.text()),
        (
            500,
            "Internal Server Error: \"/api/v1/namespaces/other/secrets\": the server is currently unable to handle the request\n"
        )
    );
    let metrics = administrator.get("/metrics").await;
    let metrics = metrics.text();
    for line in [
        r#"apiserver_authorization_webhook_evaluations_total{name="default",result="success"}"#,
        r#"apiserver_authorization_webhook_evaluations_total{name="default",result="error"} 2"#,
        r#"apiserver_authorization_webhook_evaluations_fail_open_total{name="default",result="error"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn wrong_flags_of_webhooks_are_told_together() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hook");
    std::fs::write(
        &file,
        kubeconfig("https://127.0.0.1:1", &STANDARD.encode("no certificate")),
    )
    .unwrap();
    let refused = Command::new(build("wardle-server"))
        .args(["--storage-backend=memory", "--secure-port=0"])
        .args([
            "--authorization-mode=RBAC",
            "--authentication-token-webhook-config-file=/nowhere",
        ])
        .arg(format!(
            "--authorization-webhook-config-file={}",
            file.display()
        ))
        .arg(format!("--data-dir={}", folder.path().display()))
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let told = String::from_utf8(refused.stderr).unwrap();
    for part in [
        "cannot specify --authorization-webhook-config-file without mode Webhook",
        "--authentication-token-webhook-config-file /nowhere: ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
