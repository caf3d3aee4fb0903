//! The filters that every request passes before the API.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use apiloom_tests::{Server, build};
use serde_json::Value;

/// The names of the filters of a server, as `print-chain` prints them.
fn chain() -> Vec<String> {
    let mut command = Command::new(build("wardle-server"));
    let output = command
        .args(["print-chain", "-o", "json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let filters = document["filters"].as_array().unwrap().iter();
    let names = filters.map(|filter| filter["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// A request with several faults gets the error of the first filter that refuses it, and `print-chain` prints them in this order.
#[tokio::test]
async fn faults_are_told_in_the_order_of_the_filters() {
    let server = Server::start(&["--storage-backend=memory"]);
    let administrator = server.client();
    let stranger = administrator.clone().with_token("wrong");
    let nobody = administrator.clone().anonymous();
    let path = "/apis/nothing.example.com/v1/things";
    let late = format!("{path}?timeout=zz");
    let other = [("impersonate-user", "somebody")];
    let cases = [
        (
            "authentication",
            (&stranger, late.as_str(), &other[..]),
            (401, "Unauthorized"),
        ),
        (
            "request-timeout",
            (&nobody, late.as_str(), &other[..]),
            (400, "invalid timeout specified in the request URL"),
        ),
        (
            "impersonation",
            (&nobody, path, &other[..]),
            (403, "cannot impersonate-on:user-info:list"),
        ),
        (
            "authorization",
            (&nobody, path, &[]),
            (403, "cannot list resource"),
        ),
        // No filter, but the sources behind them.
        ("", (&administrator, path, &[]), (404, "404 page not found")),
    ];
    let names = cases.map(|(filter, ..)| filter);
    let mut chain = chain();
    chain.retain(|name| names.contains(&name.as_str()));
    assert_eq!(chain, names[..4]);
    for (_, (client, path, headers), (code, text)) in cases {
        let answer = client.call("GET", path, headers, "").await;
        assert_eq!(answer.code, code, "{}", answer.text());
        assert!(answer.text().contains(text), "{}", answer.text());
        // The outermost filters apply to refusals too.
        assert!(!answer.header("audit-id").is_empty());
        assert_eq!(answer.header("cache-control"), "no-cache, private");
    }
    let headers = [("audit-id", "mine")];
    let answer = stranger.call("GET", path, &headers, "").await;
    assert_eq!(answer.header("audit-id"), "mine");
}

#[tokio::test]
async fn a_denial_is_not_to_be_sniffed() {
    let server = Server::start(&["--storage-backend=memory"]);
    let nobody = server.client().anonymous();
    for path in ["/metrics", "/apis/nothing.example.com/v1/things"] {
        let answer = nobody.get(path).await;
        assert_eq!(answer.code, 403);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

/// Errors do not repeat long input of the client.
#[tokio::test]
async fn what_is_repeated_of_a_request_is_cut() {
    let server = Server::start(&["--storage-backend=memory"]);
    let administrator = server.client();
    let nobody = administrator.clone().anonymous();
    // The character that grows most when it is escaped.
    let long = "%3C".repeat(15_000);
    let flunders = apiloom_tests::wardle::FLUNDERS;
    let cases = [
        (&nobody, format!("/{long}"), 403),
        (&nobody, format!("/apis/{long}/v1/things"), 403),
        (&nobody, format!("/apis/a.io/v1/{long}"), 403),
        (
            &nobody,
            format!("/apis/a.io/v1/namespaces/{long}/things/a"),
            403,
        ),
        (&nobody, format!("/apis/a.io/v1/things/{long}"), 403),
        (&nobody, format!("/apis/a.io/v1/things/a/{long}"), 403),
        (&nobody, format!("/%{long}"), 400),
        (&nobody, format!("/api/v1/watch?{long}"), 500),
        (&nobody, format!("/api?timeout={long}"), 400),
        (&administrator, format!("/{long}"), 404),
        (&administrator, format!("{flunders}/{long}"), 404),
        (&administrator, format!("{flunders}?limit={long}"), 400),
        (
            &administrator,
            format!("{flunders}?timeoutSeconds={long}"),
            400,
        ),
        (
            &administrator,
            format!("{flunders}?resourceVersion={long}"),
            400,
        ),
        (
            &administrator,
            format!("{flunders}?fieldSelector={long}"),
            400,
        ),
        (
            &administrator,
            format!("{flunders}?labelSelector={long}"),
            400,
        ),
        (&administrator, format!("{flunders}?continue={long}"), 400),
    ];
    let id = "x".repeat(10_000);
    for (client, path, code) in cases {
        let answer = client.call("GET", &path, &[("audit-id", &id)], "").await;
        let (path, text) = (&path[..40], answer.text());
        assert_eq!(answer.code, code, "{path} {text:.1000}");
        assert!(
            answer.body.len() < 32 * 1024,
            "{} bytes: {text:.300}",
            answer.body.len()
        );
        assert!(answer.header("audit-id").len() < 100);
    }
    let method = "X".repeat(10_000);
    let answer = nobody.call(&method, "/", &[], "").await;
    assert!(answer.body.len() < 4096, "{}", answer.body.len());
    let headers = [("impersonate-group", id.as_str())];
    let answer = nobody.call("GET", "/", &headers, "").await;
    assert_eq!(answer.code, 400);
    assert!(answer.body.len() < 4096, "{}", answer.body.len());
}
