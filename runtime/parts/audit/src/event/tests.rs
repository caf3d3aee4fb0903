//! Events as JSON, to the byte.

use std::sync::Arc;

use apiloom_meta::Status;
use apiloom_meta::codec::Format;
use apiloom_registry::audit::{AuditLevel, AuditRecord, AuditRoom};
use http::HeaderValue;

use super::*;

fn head() -> RequestHead {
    let user = UserInfo {
        name: "joan".to_owned(),
        groups: vec!["team".to_owned()],
        ..UserInfo::default()
    };
    let begin = Begin {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: "Request",
        audit_id: "id",
    };
    let what = What {
        request_uri: "/api/v1/namespaces/zoo/pods?a=<b>",
        verb: "create",
        user: User::from(&user),
    };
    let source = Source {
        source_ips: &[[10, 0, 0, 1].into()],
        user_agent: "kubectl",
    };
    let object = Target {
        resource: "pods".into(),
        namespace: "zoo".into(),
        name: SmolStr::default(),
        group: SmolStr::default(),
        version: "v1".into(),
        subresource: SmolStr::default(),
    };
    let received = MicroTime::from_unix_micros(1_000_000);
    RequestHead::of(&begin, &what, &source, Some(object), received)
}

fn moment(stage: AuditStage, code: Option<StatusCode>) -> Moment {
    Moment {
        stage,
        code,
        at: MicroTime::from_unix_micros(2_500_000),
    }
}

fn record() -> AuditRecord {
    AuditRecord::new(AuditLevel::Request, false, AuditRoom::new(1 << 20))
}

fn text(notes: &AuditNotes, moment: Moment, is_short: bool) -> String {
    String::from_utf8(event(&head(), notes, moment, is_short)).unwrap()
}

const BEGIN: &str =
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"id","stage":"#;
const TIMES: &str = r#""requestReceivedTimestamp":"1970-01-01T00:00:01.000000Z","stageTimestamp":"1970-01-01T00:00:02.500000Z""#;

#[test]
fn an_event_has_the_fields_and_the_order_of_kube_apiserver() {
    let record = record();
    let received = text(
        &record.notes(),
        moment(AuditStage::RequestReceived, None),
        false,
    );
    let uri = r#""requestURI":"/api/v1/namespaces/zoo/pods?a=\u003cb\u003e","verb":"create","user":{"username":"joan","groups":["team"]},"#;
    let source = r#""sourceIPs":["10.0.0.1"],"userAgent":"kubectl","#;
    let object = r#""objectRef":{"resource":"pods","namespace":"zoo","apiVersion":"v1"},"#;
    assert_eq!(
        received,
        format!("{BEGIN}\"RequestReceived\",{uri}{source}{object}{TIMES}}}")
    );

    record.annotate("b", "2");
    record.annotate("a", "1");
    let jim = UserInfo {
        name: "jim".to_owned(),
        ..UserInfo::default()
    };
    record.impersonate(&Arc::new(jim), Some("impersonate:user-info".to_owned()));
    record.note_body(b"[ {\"op\": \"x\"}\n ]", Format::Json);
    record.note_status(&Status::of_message("no".to_owned()));
    record.notes().object.name = "fido".to_owned();
    let code = Some(StatusCode::FORBIDDEN);
    let done = moment(AuditStage::ResponseComplete, code);
    let other = r#""impersonatedUser":{"username":"jim"},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"#;
    let object =
        r#""objectRef":{"resource":"pods","namespace":"zoo","name":"fido","apiVersion":"v1"},"#;
    let status = r#""responseStatus":{"metadata":{},"message":"no","code":403},"#;
    let document = r#""requestObject":[{"op":"x"}],"#;
    let annotations = r#","annotations":{"a":"1","b":"2"}"#;
    let stage = "\"ResponseComplete\",";
    assert_eq!(
        text(&record.notes(), done, false),
        format!(
            "{BEGIN}{stage}{uri}{other}{source}{object}{status}{document}{TIMES}{annotations}}}"
        )
    );
    let annotations = r#","annotations":{"a":"1","audit.k8s.io/truncated":"true","b":"2"}"#;
    let short = text(&record.notes(), done, true);
    assert_eq!(
        short,
        format!("{BEGIN}{stage}{uri}{other}{source}{object}{status}{TIMES}{annotations}}}")
    );
    assert!(as_item(short.as_bytes()).starts_with(br#""level":"Request","#));
}

#[test]
fn a_response_that_never_began_is_told() {
    let record = record();
    let status = |stage, code| {
        let event = text(&record.notes(), moment(stage, code), false);
        let event: serde_json::Value = serde_json::from_str(&event).unwrap();
        event["responseStatus"].to_string()
    };
    let closed =
        r#"{"code":200,"message":"Connection closed early","metadata":{},"status":"Success"}"#;
    assert_eq!(status(AuditStage::ResponseComplete, None), closed);
    let panicked = r#"{"code":500,"message":"APIServer panic'd","metadata":{},"reason":"InternalError","status":"Failure"}"#;
    let code = Some(StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(status(AuditStage::Panic, code), panicked);
    let plain = r#"{"code":404,"metadata":{}}"#;
    let code = Some(StatusCode::NOT_FOUND);
    assert_eq!(status(AuditStage::ResponseComplete, code), plain);
}

#[test]
fn addresses_are_those_of_the_proxies_and_the_client() {
    let peer: IpAddr = "10.0.0.9".parse().unwrap();
    let check = |forwarded: &'static str, real: &'static str, expected: &[&str]| {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-forwarded-for", forwarded), ("x-real-ip", real)] {
            if !value.is_empty() {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        let addresses = addresses(&headers, Some(peer));
        let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        assert_eq!(shown, expected, "{forwarded} {real}");
    };
    check("", "", &["10.0.0.9"]);
    check("1.1.1.1, x, ::1", "", &["1.1.1.1", "::1", "10.0.0.9"]);
    check("1.1.1.1", "1.1.1.1", &["1.1.1.1", "10.0.0.9"]);
    check("1.1.1.1", "2.2.2.2", &["1.1.1.1", "2.2.2.2", "10.0.0.9"]);
    check("10.0.0.9", "", &["10.0.0.9"]);
    assert!(addresses(&HeaderMap::new(), None).is_empty());
}

#[test]
fn a_long_user_agent_is_cut() {
    let mut headers = HeaderMap::new();
    let long = "a".repeat(MAX_AGENT_BYTES + 1);
    headers.insert(header::USER_AGENT, long.parse().unwrap());
    let cut = format!("{}...TRUNCATED", &long[..MAX_AGENT_BYTES]);
    assert_eq!(agent(&headers), cut);
}
