//! Metrics of requests.

use super::*;

/// The value of the series whose line contains all these texts.
async fn value(api: &Api, name: &str, labels: &[&str]) -> Option<String> {
    let text = get(api, "/metrics").await.expect(200).body;
    let line = text.lines().find(|line| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    })?;
    line.rsplit(' ').next().map(str::to_owned)
}

#[tokio::test]
async fn requests_are_counted_by_what_they_did() {
    let api = api().await;
    create_flunder(&api, "a").await;
    create_flunder(&api, "b").await;
    get(&api, &format!("{FLUNDERS}/missing")).await.expect(404);
    get(&api, FLUNDERS).await.expect(200);
    let check = async |labels: &[&str], expected: &str| {
        assert_eq!(
            value(&api, "apiserver_request_total", labels)
                .await
                .as_deref(),
            Some(expected),
            "{labels:?}"
        );
    };
    check(
        &[
            "verb=\"POST\"",
            "resource=\"flunders\"",
            "scope=\"resource\"",
            "code=\"201\"",
        ],
        "2",
    )
    .await;
    check(
        &["verb=\"GET\"", "resource=\"flunders\"", "code=\"404\""],
        "1",
    )
    .await;
    check(
        &[
            "verb=\"LIST\"",
            "resource=\"flunders\"",
            "scope=\"namespace\"",
            "code=\"200\"",
        ],
        "1",
    )
    .await;
}

#[tokio::test]
async fn what_clients_make_up_is_not_counted() {
    let api = api().await;
    get(&api, "/apis/wardle.example.com/v1alpha1/made-up")
        .await
        .expect(404);
    get(&api, "/made-up").await.expect(404);
    let text = get(&api, "/metrics").await.expect(200).body;
    assert!(!text.contains("made-up"), "{text}");
}

#[tokio::test]
async fn requests_that_are_refused_in_self_defense_are_counted() {
    let api = api().await;
    let refuse = async |method: &str, uri: &str| {
        let request = testing::request(method.parse().unwrap(), uri, &[]);
        api.count_refused(&testing::call(&api, &request).await.unwrap());
    };
    refuse("GET", FLUNDERS).await;
    refuse("GET", FLUNDERS).await;
    refuse("POST", &format!("{FLUNDERS}?dryRun=All")).await;
    refuse("GET", "/version").await;
    refuse("GET", "/made-up").await;
    refuse("BREW", "/apis/wardle.example.com/v1alpha1/made-up").await;
    let text = get(&api, "/metrics").await.expect(200).body;
    let flunders =
        r#"group="wardle.example.com",version="v1alpha1",resource="flunders",subresource="""#;
    let end = r#"component="apiserver",code="429""#;
    let nothing = r#"group="",version="",resource="""#;
    for expected in [
        "# TYPE apiserver_request_terminations_total counter".to_owned(),
        format!(
            r#"apiserver_request_terminations_total{{verb="LIST",{flunders},scope="namespace",{end}}} 2"#
        ),
        format!(
            r#"apiserver_request_terminations_total{{verb="POST",{flunders},scope="resource",{end}}} 1"#
        ),
        format!(
            r#"apiserver_request_terminations_total{{verb="GET",{nothing},subresource="/version",scope="",{end}}} 1"#
        ),
        format!(
            r#"apiserver_request_terminations_total{{verb="other",{nothing},subresource="",scope="",{end}}} 1"#
        ),
        format!(
            r#"apiserver_request_total{{verb="LIST",dry_run="",{flunders},scope="namespace",{end}}} 2"#
        ),
        format!(
            r#"apiserver_request_total{{verb="POST",dry_run="All",{flunders},scope="resource",{end}}} 1"#
        ),
    ] {
        assert!(
            text.lines().any(|line| line == expected),
            "{expected}\nis missing in\n{text}"
        );
    }
    assert!(!text.contains("made-up"), "{text}");
}

#[tokio::test]
async fn a_watch_is_counted_when_it_ends() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let labels = ["verb=\"WATCH\"", "resource=\"flunders\""];
    let mut response = open(&api, "GET", &format!("{FLUNDERS}?watch=1"), &[], "").await;
    response.body_mut().frame().await.unwrap().unwrap();
    let gauge = "apiserver_longrunning_requests";
    assert_eq!(value(&api, gauge, &labels).await.as_deref(), Some("1"));
    assert_eq!(value(&api, "apiserver_request_total", &labels).await, None);
    drop(response);
    assert_eq!(value(&api, gauge, &labels).await.as_deref(), Some("0"));
    assert_eq!(
        value(&api, "apiserver_request_total", &labels)
            .await
            .as_deref(),
        Some("1")
    );
    let events = value(&api, "apiserver_watch_events_total", &labels[1..]).await;
    assert_eq!(events.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_deprecated_version_that_is_asked_for_is_noted() {
    let api = api().await;
    get(&api, FISCHERS).await.expect(200);
    let labels = ["resource=\"fischers\"", "removed_release=\"1.10\""];
    let noted = value(&api, "apiserver_requested_deprecated_apis", &labels).await;
    assert_eq!(noted.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_time_runs_out_is_counted() {
    let api = api().await;
    let request = Request::post(format!("{FLUNDERS}?timeout=2s"));
    let never = http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >());
    let response = open_with(&api, request.body(never).unwrap()).await;
    assert_eq!(response.status(), 504);
    let labels = ["verb=\"POST\"", "resource=\"flunders\"", "code=\"504\""];
    for name in [
        "apiserver_request_total",
        "apiserver_request_terminations_total",
    ] {
        let count = value(&api, name, &labels).await;
        assert_eq!(count.as_deref(), Some("1"), "{name}");
    }
    let running = "apiserver_current_inflight_requests";
    let running = value(&api, running, &["mutating"]).await;
    assert_eq!(running.as_deref(), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_reads_is_cut_off_at_its_deadline() {
    let api = api().await;
    let reference = "r".repeat(100_000);
    for name in ["a", "b", "c"] {
        let body =
            format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"reference":"{reference}"}}}}"#);
        post(&api, FLUNDERS, &body).await.expect(201);
    }
    let mut response = open(&api, "GET", &format!("{FLUNDERS}?timeout=5s"), &[], "").await;
    assert_eq!(response.status(), 200);
    response.body_mut().frame().await.unwrap().unwrap();
    let labels = ["verb=\"LIST\"", "resource=\"flunders\"", "code=\"200\""];
    assert_eq!(value(&api, "apiserver_request_total", &labels).await, None);
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    let total = value(&api, "apiserver_request_total", &labels).await;
    assert_eq!(total.as_deref(), Some("1"), "it is over without being read");
    assert!(response.body_mut().frame().await.unwrap().is_err());
}
