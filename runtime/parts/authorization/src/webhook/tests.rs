//! Questions and answers of the webhook, to the byte where kube-apiserver's are known, and what is wrong with its flags.

use apiloom_registry::auth::Decision;

use super::*;

fn user() -> UserInfo {
    UserInfo {
        name: "joan".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["team".to_owned()],
        extra: [("a".to_owned(), vec!["b".to_owned()])].into(),
    }
}

#[test]
fn a_question_has_what_is_known_of_the_request() {
    let user = user();
    let of_path = Attributes::of_path(&user, "get", "/api/<x>");
    let text = |version: ReviewVersion, attributes: &Attributes<'_>| {
        String::from_utf8(version.review(attributes)).unwrap()
    };
    let rest = r#""extra":{"a":["b"]},"uid":"1"},"status":{"allowed":false}}"#;
    let begin = |version: &str| {
        format!(
            r#"{{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/{version}","metadata":{{}},"spec":{{"#
        )
    };
    let path =
        r#""nonResourceAttributes":{"path":"/api/\u003cx\u003e","verb":"get"},"user":"joan","#;
    assert_eq!(
        text(ReviewVersion::V1, &of_path),
        format!("{}{path}\"groups\":[\"team\"],{rest}", begin("v1"))
    );
    assert_eq!(
        text(ReviewVersion::V1Beta1, &of_path),
        format!("{}{path}\"group\":[\"team\"],{rest}", begin("v1beta1"))
    );
    let mut of_resource = of_path;
    of_resource.is_resource_request = true;
    of_resource.namespace = "zoo";
    of_resource.resource = "pods";
    of_resource.api_version = "v1";
    of_resource.subresource = "log";
    of_resource.name = "fido";
    let resource = r#""resourceAttributes":{"namespace":"zoo","verb":"get","version":"v1","resource":"pods","subresource":"log","name":"fido"},"user":"joan","#;
    assert_eq!(
        text(ReviewVersion::V1, &of_resource),
        format!("{}{resource}\"groups\":[\"team\"],{rest}", begin("v1"))
    );
    assert_eq!(
        chosen_bytes(&of_resource),
        "zoogetv1podslogfido/api/<x>".len()
    );
}

#[test]
fn an_answer_is_a_decision() {
    let decide = |status: &str| {
        let body = format!(r#"{{"kind":"SubjectAccessReview","status":{status}}}"#);
        let judgement = judged(body.as_bytes()).unwrap();
        review::decision(&Ok(Arc::new(judgement))).unwrap()
    };
    let check = |status: &str, expected: Decision| assert_eq!(decide(status), expected, "{status}");
    check(
        r#"{"allowed":true,"reason":"a"}"#,
        Decision::Allow("a".into()),
    );
    check(r#"{"denied":true,"reason":"b"}"#, Decision::deny("b"));
    check(r#"{"allowed":true,"denied":true}"#, Decision::deny(""));
    check(
        r#"{"allowed":false,"reason":"c"}"#,
        Decision::NoOpinion("c".into()),
    );
    check("null", Decision::no_opinion());
    let failed: JudgementResult = Err("out".into());
    assert_eq!(review::decision(&failed).unwrap_err().to_string(), "out");
}

#[test]
fn other_documents_are_no_answers() {
    let error = judged(br#"{"kind":"Status"}"#).unwrap_err();
    assert!(error.contains("no SubjectAccessReview"), "{error}");
}

#[test]
fn the_outcome_of_a_call_is_told() {
    let of = |text: &str, code| {
        Outcome::of(&WebhookError {
            text: text.to_owned(),
            code,
            is_transient: false,
        })
    };
    assert_eq!(
        of("Post \"x\": context deadline exceeded", None),
        Outcome::Timeout
    );
    assert_eq!(of("late", Some(504)), Outcome::Timeout);
    assert_eq!(of("refused", None), Outcome::Error);
    let metrics = WebhookMetrics::default();
    metrics.asked(Outcome::Success, Duration::from_millis(7));
    metrics.asked(Outcome::Timeout, Duration::from_secs(30));
    metrics.failed_open(Outcome::Timeout);
    let registry = apiloom_client::metrics::Registry::new();
    registry.register(metrics);
    let text = registry.text();
    for line in [
        r#"apiserver_authorization_webhook_evaluations_total{name="default",result="success"} 1"#,
        r#"apiserver_authorization_webhook_evaluations_total{name="default",result="timeout"} 1"#,
        r#"apiserver_authorization_webhook_evaluations_fail_open_total{name="default",result="timeout"} 1"#,
        r#"apiserver_authorization_webhook_duration_seconds_count{name="default",result="success"} 1"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn wrong_flags_are_told() {
    let error = |file: Option<&str>, version: &str| {
        let flags = AuthorizationWebhook {
            config_file: file.map(Into::into),
            version: version.to_owned(),
            ..AuthorizationWebhook::default()
        };
        flags.authorizer().unwrap_err()
    };
    assert_eq!(
        error(None, "v1"),
        "authorization-mode Webhook's authorization config file not passed: name it with --authorization-webhook-config-file"
    );
    let old = error(Some("x"), "v2");
    assert!(
        old.contains("unsupported webhook authorizer version \"v2\""),
        "{old}"
    );
    let lost = error(Some("/nowhere/webhook"), "v1");
    assert!(
        lost.starts_with("--authorization-webhook-config-file /nowhere/webhook: "),
        "{lost}"
    );
}

#[test]
fn kept_answers_have_their_bytes() {
    let of = |reason: usize| {
        review::bytes(&Ok(Arc::new(review::Judgement {
            reason: "a".repeat(reason),
            ..Default::default()
        })))
    };
    assert_eq!(of(1_000) - of(0), 1_000);
    assert!(review::bytes(&Err("1234".into())) == 4 && MAX_KEPT_BYTES > of(MAX_CHOSEN_BYTES));
}
