//! What answers of a webhook mean, and what is wrong with its flags.

use serde_json::Value;

use super::*;

fn users(audiences: &[&str]) -> WebhookUsers {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("webhook.kubeconfig");
    let kubeconfig = json!({
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1/review"}}],
        "users": [{"name": "a", "user": {"token": "secret"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let flags = TokenWebhook {
        config_file: Some(file),
        ..TokenWebhook::default()
    };
    let audiences: Vec<String> = audiences.iter().map(|one| (*one).to_owned()).collect();
    flags.authenticator(&audiences).unwrap().unwrap()
}

fn answer(status: &Value) -> Result<Option<Arc<Identity>>, String> {
    let review = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "status": status,
    });
    reviewed(review.to_string().as_bytes())
}

#[test]
fn an_answer_tells_a_user_or_none_or_an_error() {
    let user = json!({"username": "joan", "uid": "1", "groups": ["team"], "extra": {"a": ["b"], "c": null}});
    let identity = answer(&json!({"authenticated": true, "user": user})).unwrap();
    let identity = identity.unwrap();
    assert_eq!((&*identity.user.name, &*identity.user.uid), ("joan", "1"));
    assert_eq!(identity.user.groups, ["team"]);
    assert_eq!(identity.user.extra["a"], ["b"]);
    assert!(identity.user.extra["c"].is_empty());
    for refused in [
        json!({}),
        json!(null),
        json!({"authenticated": false, "user": user}),
    ] {
        assert!(answer(&refused).unwrap().is_none(), "{refused}");
    }
    let error = answer(&json!({"error": "the token is old"})).unwrap_err();
    assert_eq!(error, "the token is old");
    // With a user the error does not count.
    assert!(
        answer(&json!({"authenticated": true, "error": "x"}))
            .unwrap()
            .is_some()
    );
}

#[test]
fn other_documents_are_no_answers() {
    let error = reviewed(br#"{"kind": "Pod"}"#).unwrap_err();
    assert!(error.contains("no TokenReview"), "{error}");
    assert!(reviewed(b"{}").unwrap().is_none());
}

#[test]
fn a_token_is_for_the_audiences_that_the_webhook_names() {
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|one| (*one).to_owned())
            .collect::<Vec<_>>()
    };
    let check =
        |of_server: &[&str], of_token: &[&str], asked: &[&str], expected: Option<&[&str]>| {
            let users = users(of_server);
            let identity = Arc::new(Identity {
                user: Arc::default(),
                audiences: texts(of_token),
            });
            let asked = texts(asked);
            let known = users.authenticated(Ok(Some(Arc::clone(&identity))), &asked);
            assert_eq!(known.unwrap().is_some(), expected.is_some(), "{asked:?}");
            if let Some(expected) = expected {
                assert_eq!(users.meant(&identity, &asked), expected);
            }
        };
    check(&[], &[], &[], Some(&[]));
    check(&["api"], &[], &["api"], Some(&["api"]));
    check(&["api"], &["api", "x"], &["x", "y"], Some(&["x"]));
    check(&["api"], &[], &["x"], None);
    check(&["api"], &["x"], &["api"], None);
}

#[test]
fn what_is_kept_has_its_bytes_and_shows_no_secret() {
    let users = users(&[]);
    let text = format!("{users:?}");
    assert!(!text.contains("secret"), "{text}");
    let of = |groups: usize| {
        let user = apiloom_registry::auth::UserInfo {
            groups: vec!["group".to_owned(); groups],
            ..Default::default()
        };
        answer::bytes(&Ok(Some(Arc::new(Identity {
            user: Arc::new(user),
            audiences: Vec::new(),
        }))))
    };
    assert!(of(1_000) > of(0) + 20_000);
    assert!(MAX_KEPT_BYTES > of(100));
}

#[test]
fn wrong_flags_are_told() {
    let error = |file: &str, version: &str| {
        let flags = TokenWebhook {
            config_file: Some(file.into()),
            version: version.to_owned(),
            ..TokenWebhook::default()
        };
        flags.authenticator(&[]).unwrap_err()
    };
    let old = error("x", "v2");
    assert!(
        old.contains("unsupported authentication webhook version \"v2\""),
        "{old}"
    );
    let lost = error("/nowhere/webhook", "v1");
    assert!(
        lost.contains("--authentication-token-webhook-config-file /nowhere/webhook: "),
        "{lost}"
    );
    assert!(
        TokenWebhook::default()
            .authenticator(&[])
            .unwrap()
            .is_none()
    );
}
