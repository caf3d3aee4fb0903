//! Metrics: counters and their text formats.

use std::time::Duration;

use super::*;
use crate::testing::{body, get, header};

fn metrics() -> Metrics {
    Metrics::new(&ServerInfo {
        address: String::new(),
        version: "0.1.0".into(),
    })
}

fn labels() -> RequestLabels {
    RequestLabels {
        verb: "list",
        group: "wardle.example.com".into(),
        version: "v1alpha1".into(),
        resource: "flunders".into(),
        scope: "namespace",
        ..RequestLabels::default()
    }
}

fn outcome(code: u16) -> RequestOutcome {
    RequestOutcome {
        code,
        ..RequestOutcome::default()
    }
}

fn text(metrics: &Metrics) -> String {
    body(metrics.respond_to(&get("/metrics", &[])).unwrap())
}

fn check(metrics: &Metrics, lines: &[&str]) {
    let text = text(metrics);
    for line in lines {
        assert!(
            text.lines().any(|known| known == *line),
            "{line}\nis missing in\n{text}"
        );
    }
}

const LIST: &str = r#"verb="LIST",dry_run="",group="wardle.example.com",version="v1alpha1",resource="flunders",subresource="",scope="namespace",component="apiserver""#;

#[test]
fn requests_are_counted_timed_and_measured() {
    let metrics = metrics();
    let slow = RequestOutcome {
        duration: Duration::from_millis(30),
        response_bytes: 5000,
        ..outcome(200)
    };
    metrics.request(labels(), &slow);
    metrics.request(
        labels(),
        &RequestOutcome {
            duration: Duration::from_millis(3),
            response_bytes: 10,
            ..outcome(200)
        },
    );
    check(
        &metrics,
        &[
            "# TYPE apiserver_request_total counter",
            "# TYPE apiserver_request_duration_seconds histogram",
            &format!("apiserver_request_total{{{LIST},code=\"200\"}} 2"),
            &format!("apiserver_request_duration_seconds_count{{{LIST}}} 2"),
            &format!("apiserver_request_duration_seconds_bucket{{le=\"0.025\",{LIST}}} 1"),
            &format!("apiserver_request_duration_seconds_bucket{{le=\"+Inf\",{LIST}}} 2"),
            &format!(
                "apiserver_response_sizes_sum{{{}}} 5010.0",
                LIST.replace("dry_run=\"\",", "")
            ),
        ],
    );
}

#[test]
fn dry_runs_and_made_up_verbs_are_told_apart() {
    let metrics = metrics();
    metrics.request(
        RequestLabels {
            verb: "create",
            dry_run: true,
            ..labels()
        },
        &outcome(201),
    );
    metrics.request(
        RequestLabels {
            verb: "BREW",
            ..labels()
        },
        &outcome(405),
    );
    metrics.request(
        RequestLabels {
            verb: "MASH",
            ..labels()
        },
        &outcome(405),
    );
    let text = text(&metrics);
    assert!(text.contains("apiserver_request_total{verb=\"POST\",dry_run=\"All\","));
    assert!(text.contains("apiserver_request_total{verb=\"other\",dry_run=\"\","));
    assert!(text.contains("code=\"405\"} 2"));
    assert!(
        !text.contains("apiserver_response_sizes_count"),
        "writes have no response sizes"
    );
}

#[test]
fn running_requests_end_when_they_are_dropped() {
    let metrics = metrics();
    let watch = r#"apiserver_longrunning_requests{verb="WATCH",group="wardle.example.com",version="v1alpha1",resource="flunders",subresource="",scope="namespace",component="apiserver"}"#;
    let watching = metrics.begin_long_running(&RequestLabels {
        verb: "watch",
        ..labels()
    });
    let writing = metrics.begin(RequestKind::Mutating);
    let mutating = r#"apiserver_current_inflight_requests{request_kind="mutating"}"#;
    let reading = r#"apiserver_current_inflight_requests{request_kind="readOnly"} 0"#;
    check(
        &metrics,
        &[&format!("{watch} 1"), &format!("{mutating} 1"), reading],
    );
    drop((watching, writing));
    check(&metrics, &[&format!("{watch} 0"), &format!("{mutating} 0")]);
}

#[test]
fn other_counts_have_upstreams_names() {
    let metrics = metrics();
    metrics
        .watch_events("wardle.example.com", "v1alpha1", "flunders")
        .sent();
    metrics.requested_deprecated(&labels(), "1.10");
    let with_body = RequestOutcome {
        request_bytes: Some(100),
        ..outcome(201)
    };
    metrics.request(
        RequestLabels {
            verb: "create",
            ..labels()
        },
        &with_body,
    );
    let flunders = GroupResource::new("wardle.example.com", "flunders");
    metrics.set_objects(&flunders, Some(9));
    metrics.set_objects(&flunders, Some(7));
    metrics.set_objects(&GroupResource::new("", "namespaces"), Some(4));
    metrics.set_objects(&GroupResource::new("", "pods"), None);
    check(
        &metrics,
        &[
            "# TYPE apiserver_watch_events_total counter",
            r#"apiserver_watch_events_total{group="wardle.example.com",version="v1alpha1",resource="flunders"} 1"#,
            r#"apiserver_requested_deprecated_apis{group="wardle.example.com",version="v1alpha1",resource="flunders",subresource="",removed_release="1.10"} 1"#,
            r#"apiserver_request_body_size_bytes_count{group="wardle.example.com",resource="flunders",verb="POST"} 1"#,
            r#"apiserver_resource_objects{group="wardle.example.com",resource="flunders"} 7"#,
            r#"apiserver_resource_objects{group="",resource="pods"} -1"#,
            r#"apiserver_storage_objects{resource="flunders.wardle.example.com"} 7"#,
            r#"apiserver_storage_objects{resource="namespaces"} 4"#,
        ],
    );
    let text = text(&metrics);
    assert!(
        text.contains("kubernetes_build_info{build_date=\"\",compiler=\"rustc\",git_commit=\"\",")
    );
    assert!(text.contains("git_version=\"v1.36.0+apiloom.0.1.0\""));
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_is_described() {
    let text = text(&metrics());
    for name in [
        "cpu_seconds_total",
        "start_time_seconds",
        "resident_memory_bytes",
        "virtual_memory_bytes",
        "open_fds",
        "max_fds",
    ] {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("process_{name} ")));
        assert!(
            value.is_some_and(|value| value.parse::<f64>().is_ok_and(|v| v >= 0.0)),
            "{name}: {value:?}"
        );
    }
    assert!(text.contains("# TYPE process_cpu_seconds_total counter"));
}

#[test]
fn scrapers_get_the_format_they_ask_for() {
    let check = |accept: &str, content_type: &str| {
        let metrics = metrics();
        metrics.request(labels(), &outcome(200));
        let response = metrics
            .respond_to(&get("/metrics", &[("accept", accept)]))
            .unwrap();
        assert_eq!(header(&response, "content-type"), content_type, "{accept}");
        let open = content_type == exposition::OPEN_METRICS;
        let text = body(response);
        assert_eq!(text.ends_with("# EOF\n"), open);
        assert_eq!(text.contains("# TYPE apiserver_request counter"), open);
    };
    check(
        "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        exposition::OPEN_METRICS,
    );
    check("text/plain;version=0.0.4", exposition::TEXT);
    check("*/*", exposition::TEXT);
    check("", exposition::TEXT);
    assert!(metrics().respond_to(&get("/metrics/", &[])).is_none());
}

#[test]
fn labels_of_clients_do_not_grow_without_end() {
    let metrics = Metrics::with_series(&ServerInfo::default(), 10);
    for number in 0..110 {
        let name = format!("name{number}");
        let labels = RequestLabels {
            verb: "create",
            resource: (&name).into(),
            ..labels()
        };
        metrics.request(labels.clone(), &outcome(404));
        metrics.refused(&labels, 429);
        metrics.terminated(&labels, 504);
        drop(metrics.begin_long_running(&labels));
        metrics.watch_events("g", "v1", &name).sent();
        metrics.requested_deprecated(&labels, "1.0");
        let conversions = metrics.conversions();
        conversions.converted(&name, ["v1", "v2"], true, Duration::ZERO);
        metrics.set_objects(&GroupResource::new("g", &name), Some(1));
    }
    let text = text(&metrics);
    assert!(
        text.contains("name9\"") && !text.contains("name50"),
        "{text}"
    );
    // Series that are removed make room.
    metrics.forget_objects(&GroupResource::new("g", "name0"));
    metrics.set_objects(&GroupResource::new("g", "name50"), Some(3));
    check(
        &metrics,
        &[
            "apiserver_resource_objects{group=\"g\",resource=\"name50\"} 3",
            "apiserver_storage_objects{resource=\"name50.g\"} 3",
        ],
    );
    assert!(text.lines().any(
        |line| line.starts_with("apiserver_request_total{verb=\"other\"") && line.ends_with(" 105")
    ));
}

#[test]
fn paths_that_lead_nowhere_are_not_named() {
    let metrics = metrics();
    for path in ["/openapi/v3/apis/x/v1", "/nope"] {
        metrics.request(
            RequestLabels {
                verb: "get",
                subresource: path.into(),
                ..RequestLabels::default()
            },
            &outcome(404),
        );
    }
    let text = text(&metrics);
    assert!(text.contains(
        "resource=\"\",subresource=\"\",scope=\"\",component=\"apiserver\",code=\"404\"} 2"
    ));
    assert!(!text.contains("nope") && !text.contains("apiserver_request_body_size_bytes_count"));
}

#[test]
fn metrics_of_controllers_are_in_both_formats() {
    let metrics = metrics();
    let queue = apiloom_client::controller::WorkQueue::<u8>::new();
    queue.register_metrics(metrics.of_controllers(), "a_total b");
    queue.add(1);
    let old = text(&metrics);
    let accept = [("accept", "application/openmetrics-text")];
    let open = metrics.respond_to(&get("/metrics", &accept)).unwrap();
    let open = body(open);
    let common = r#"workqueue_adds_total{name="a_total b"} 1"#;
    for (text, lines) in [
        (&old, ["# TYPE workqueue_adds_total counter", common]),
        (&open, ["# TYPE workqueue_adds counter", common]),
    ] {
        for line in lines {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
        let mut families: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        families.sort_unstable();
        assert!(
            families.is_sorted_by(|one, other| one < other),
            "{families:?}"
        );
    }
    assert!(open.ends_with("\n# EOF\n"));
    assert_eq!(open.matches("# EOF").count(), 1);
    drop(queue);
    assert!(!text(&metrics).contains("workqueue"));
}
