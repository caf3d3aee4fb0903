//! Served paths, and the errors for others.

use apiloom_meta::{Resource as _, ResourceDef};
use apiloom_registry::CatalogChange;

use super::*;

async fn check(method: &str, url: &str, code: u16, body: &str) {
    let answer = send(&api().await, method, url, &[], "").await;
    assert_eq!(
        (answer.code.as_u16(), answer.body.as_str()),
        (code, body),
        "{method} {url}"
    );
}

#[tokio::test]
async fn paths_of_nobody_are_plain_text_404() {
    for url in [
        "/nothing",
        "/apis/other.io/v1/foos",
        "/apis/other.io",
        "//api/v1/namespaces",
        "/healthz/unknown",
    ] {
        let answer = get(&api().await, url).await;
        assert_eq!(
            (answer.code.as_u16(), answer.body.as_str()),
            (404, "404 page not found\n"),
            "{url}"
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn unknown_paths_inside_a_group_are_a_status() {
    let body = failure(
        "the server could not find the requested resource",
        "NotFound",
        Some("{}"),
        404,
    );
    for url in [
        "/apis/wardle.example.com/v1alpha1/others",
        "/apis/wardle.example.com/v9/flunders",
        "/apis/wardle.example.com/v9",
        "/api/v9",
        "/apis/wardle.example.com/v1alpha1/flunders/a",
        "/apis/wardle.example.com/v1alpha1/namespaces/default/fischers",
        "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders/a/scale",
        "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders//status",
        "/apis/wardle.example.com/v1alpha1/proxy/fischers/a",
    ] {
        check("GET", url, 404, &body).await;
    }
}

#[tokio::test]
async fn methods_that_a_path_does_not_take_are_405() {
    let body = failure(
        "the server does not allow this method on the requested resource",
        "MethodNotAllowed",
        Some("{}"),
        405,
    );
    for (method, url) in [
        ("HEAD", FLUNDERS),
        ("OPTIONS", FLUNDERS),
        ("PUT", FLUNDERS),
        ("PATCH", FLUNDERS),
        (
            "POST",
            "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders/a",
        ),
        ("DELETE", "/apis/wardle.example.com/v1alpha1/flunders"),
        ("POST", "/apis/wardle.example.com/v1alpha1/flunders"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default/finalize"),
    ] {
        check(method, url, 405, &body).await;
    }
}

#[tokio::test]
async fn a_verb_that_shares_its_route_is_refused_by_name() {
    check(
        "GET",
        "/apis/wardle.example.com/v1alpha1/fischers?watch=1",
        405,
        &failure(
            "watch is not supported on resources of kind \"fischers.wardle.example.com\"",
            "MethodNotAllowed",
            Some(r#"{"group":"wardle.example.com","kind":"fischers"}"#),
            405,
        ),
    )
    .await;
}

#[tokio::test]
async fn a_bad_timeout_is_a_bad_request() {
    check(
        "GET",
        "/api/v1/namespaces?timeout=zz",
        400,
        &failure(
            "invalid timeout specified in the request URL - time: invalid duration \"zz\"",
            "BadRequest",
            None,
            400,
        ),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_never_comes_ends_with_504() {
    let request = Request::post(format!("{FLUNDERS}?timeout=2s"));
    let never = http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >());
    let response = open_with(&api().await, request.body(never).unwrap()).await;
    assert_eq!(response.status(), 504);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        body,
        r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_gives_up_before_its_request_does() {
    let never = http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >());
    let response = open_with(&api().await, Request::post(FLUNDERS).body(never).unwrap()).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        String::from_utf8_lossy(&body),
        failure(
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
            "Timeout",
            Some("{}"),
            504
        )
    );
}

#[tokio::test]
async fn documents_are_served_beside_resources() {
    let api = api().await;
    for url in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/wardle.example.com",
        "/version",
        "/healthz",
        "/livez",
        "/readyz",
        "/openapi/v2",
        "/openapi/v3",
    ] {
        get(&api, url).await.expect(200);
    }
    let paths = get(&api, "/").await.at("/paths");
    let paths: Vec<&str> = paths
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for path in [
        "/apis/wardle.example.com/v1alpha1",
        "/healthz",
        "/openapi/v2",
        "/version",
        "/metrics",
    ] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
}

/// No document names a kind that is disabled by default, and its paths are unknown.
#[tokio::test]
async fn a_disabled_kind_is_in_no_document() {
    let check = async |disabled_by_default: bool| {
        let (api, registry) = api_and_registry(|registry| registry.kind::<Flunder>()).await;
        let trial = ResourceDef {
            kind: "Trial".into(),
            list_kind: "TrialList".into(),
            plural: "trials".into(),
            singular: "trial".into(),
            short_names: Vec::new(),
            disabled_by_default,
            ..Flunder::definition()
        };
        let change = CatalogChange::new().definition(trial);
        registry.change(change).await.unwrap();
        let mut texts = Vec::new();
        for path in [
            "/apis/wardle.example.com/v1alpha1",
            "/openapi/v2",
            "/openapi/v3/apis/wardle.example.com/v1alpha1",
            "/metrics",
        ] {
            texts.push(get(&api, path).await.expect(200).body);
        }
        let crds = crate::documents::crd::dump(&registry.catalog()).unwrap();
        texts.push(crds.to_string());
        let named = texts.iter().filter(|text| text.contains("trials"));
        let path = "/apis/wardle.example.com/v1alpha1/trials";
        (named.count(), get(&api, path).await.code.as_u16())
    };
    assert_eq!(check(false).await, (5, 200));
    assert_eq!(check(true).await, (0, 404));
}
