//! What a server does to every request before the API sees it: contract section 10.

#![allow(clippy::unwrap_used, reason = "tests")]

use apiloom_tests::Server;

/// A request with many faults is told of the first, in the order of the filters.
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
            &stranger,
            late.as_str(),
            &other[..],
            400,
            "invalid timeout specified in the request URL",
        ),
        (&stranger, path, &other[..], 401, "Unauthorized"),
        (
            &nobody,
            path,
            &other[..],
            400,
            "impersonation is not supported yet",
        ),
        (&nobody, path, &[], 403, "cannot list resource"),
        (&administrator, path, &[], 404, "404 page not found"),
    ];
    for (client, path, headers, code, text) in cases {
        let answer = client.call("GET", path, headers, "").await;
        assert_eq!(answer.code, code, "{}", answer.text());
        assert!(answer.text().contains(text), "{}", answer.text());
        // What goes around everything is around refusals too.
        assert!(!answer.header("audit-id").is_empty());
        assert_eq!(answer.header("cache-control"), "no-cache, private");
    }
    let headers = [("audit-id", "mine")];
    let answer = stranger.call("GET", path, &headers, "").await;
    assert_eq!(answer.header("audit-id"), "mine");
}
