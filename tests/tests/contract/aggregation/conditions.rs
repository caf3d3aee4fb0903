//! The condition Available with each of its reasons, the metrics about it, and the version of core on another server.

use apiloom::server::services::{ServiceError, ServicePort};
use apiloom_tests::https::{HttpsServer, SignedBy, text};

use super::pair::{Authority, Front, free_address};
use super::recorder::Recorder;
use super::*;

on_each_backend![
    each_reason_of_the_condition_is_written_and_counted,
    core_can_be_on_another_server,
    a_service_is_trusted_by_its_own_certificate,
];

const RECORDED: &str = "v1.rec.example.com";

async fn each_reason_of_the_condition_is_written_and_counted(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    let gauge = |value| format!("aggregator_unavailable_apiservice{{name=\"{RECORDED}\"}} {value}");
    until_counted(client, &gauge(0)).await;
    until_counted(client, "aggregator_unavailable_apiservice{name=\"v1.\"} 0").await;
    let path = format!("{SERVICES}/{RECORDED}");
    let service = ServicePort {
        namespace: "default".to_owned(),
        name: "recorder".to_owned(),
        port: 443,
    };
    let refused = free_address();
    let place = r#"service/recorder in "default""#;
    let outages = [
        (
            Err(ServiceError::NotFound(service.clone())),
            "ServiceNotFound",
            format!("{place} is not present"),
        ),
        (
            Err(ServiceError::Unavailable("no list".to_owned())),
            "ServiceAccessError",
            format!("{place} cannot be checked due to: no list"),
        ),
        (
            Err(ServiceError::PortNotFound(service.clone())),
            "ServicePortError",
            format!("{place} is not listening on port 443"),
        ),
        (
            Err(ServiceError::EndpointsNotFound(service.clone())),
            "EndpointsNotFound",
            format!("cannot find endpoints for {place}"),
        ),
        (
            Err(ServiceError::NoEndpoints(service.clone())),
            "MissingEndpoints",
            format!("endpoints for {place} have no addresses"),
        ),
        (
            Ok(refused),
            "FailedDiscoveryCheck",
            "failing or missing response from https://recorder.default.svc:443/apis/rec.example.com/v1: ".to_owned(),
        ),
    ];
    // A changed APIService is looked at at once; otherwise the next look is up to 30 s later.
    let look = async |priority: usize| {
        let patch = json!({"spec": {"versionPriority": priority}});
        assert_eq!(client.merge(&path, &patch).await.code, 200);
    };
    for (number, (outage, reason, message)) in outages.into_iter().enumerate() {
        front.services.set("recorder", outage);
        look(20 + number).await;
        let object = until_available(client, RECORDED, "False", reason).await;
        let told = object["status"]["conditions"][0]["message"].as_str();
        let told = told.unwrap();
        assert!(told.starts_with(&message), "{told}");
        assert!(!message.ends_with(": ") && told == message || message.ends_with(": "));
        until_counted(client, &gauge(1)).await;
        until_counted(
            client,
            &format!("aggregator_unavailable_apiservice_total{{name=\"{RECORDED}\",reason=\"{reason}\"}} 1"),
        )
        .await;
        front.services.set("recorder", Ok(recorder.address));
        look(40 + number).await;
        until_available(client, RECORDED, "True", "Passed").await;
        until_counted(client, &gauge(0)).await;
    }
    // Another server may write the condition while this one looks: what counts is the change that is written.
    front
        .services
        .set("recorder", Err(ServiceError::NotFound(service.clone())));
    look(60).await;
    until_available(client, RECORDED, "False", "ServiceNotFound").await;
    let held = front.services.hold().await;
    look(61).await;
    let started = Instant::now();
    while front.services.waiting() == 0 {
        assert!(started.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = json!({"status": {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]}});
    let written = client.merge(&format!("{path}/status"), &status).await;
    assert_eq!(written.code, 200, "{}", written.text());
    drop(held);
    until_counted(
        client,
        &format!("aggregator_unavailable_apiservice_total{{name=\"{RECORDED}\",reason=\"ServiceNotFound\"}} 3"),
    )
    .await;
    assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
    until(client, "/metrics", |answer| {
        !answer.text().contains(&gauge(0))
    })
    .await;
    front.stop().await;
}

async fn core_can_be_on_another_server(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    let path = format!("{SERVICES}/v1.");
    let patch = json!({
        "metadata": {"labels": null},
        "spec": {"caBundle": authority.bundle(), "service": {"namespace": "default", "name": "recorder"}},
    });
    let changed = client.merge(&path, &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    until_available(client, "v1.", "True", "Passed").await;
    until(client, "/api/v1/namespaces", |answer| {
        answer.header("x-recorded") == "1"
    })
    .await;
    assert!(!recorder.requests("/api/v1/namespaces").is_empty());
    let listed = client.get("/api").await.json();
    assert_eq!(listed["versions"], json!(["v1"]));
    // The other server has no resources there.
    let accept = [("accept", AGGREGATED)];
    let is_remote = |answer: &Answer| {
        answer.json()["items"][0]["versions"][0] == json!({"version": "v1", "freshness": "Current"})
    };
    let ask = async || client.call("GET", "/api", &accept, "").await;
    until_answered("/api", Duration::from_secs(60), ask, is_remote).await;
    // While that server is gone, the version stays listed.
    front.services.set("recorder", Ok(free_address()));
    let answer = client.get("/api/v1/namespaces").await;
    assert_eq!(answer.code, 503, "{}", answer.text());
    until_available(client, "v1.", "False", "FailedDiscoveryCheck").await;
    check_plain(
        &client.get("/api/v1/namespaces").await,
        503,
        "service unavailable",
    );
    assert_eq!(client.get("/api").await.json()["versions"], json!(["v1"]));
    // Taken back, this server serves it again, with its objects.
    let patch = json!({"spec": {"caBundle": null, "service": null}});
    let changed = client.merge(&path, &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    until_available(client, "v1.", "True", "Local").await;
    until(client, "/api/v1/namespaces/default", |answer| {
        answer.code == 200
    })
    .await;
    front.stop().await;
}

/// Go accepts a certificate that is one of the given roots, whether or not it is an authority's.
async fn a_service_is_trusted_by_its_own_certificate(on: Backend) {
    for signed_by in [SignedBy::ItselfAsAuthority, SignedBy::Itself] {
        let list =
            r#"{"kind":"APIResourceList","groupVersion":"rec.example.com/v1","resources":[]}"#;
        let server = HttpsServer::start(signed_by, move |_| async move { text(200, list) }).await;
        let stranger = HttpsServer::start(signed_by, move |_| async move { text(200, list) }).await;
        let authority = Authority::new();
        let services = [("hook", server.address), ("other", server.address)];
        let front = Front::start(on, &authority, &services).await;
        let client = &front.client;
        let service = |bundle: &str, name: &str| {
            let spec =
                json!({"caBundle": bundle, "service": {"namespace": "default", "name": name}});
            json!({"spec": spec})
        };
        let mut object = apiservice("rec.example.com", "hook", &authority);
        object["spec"]["caBundle"] = json!(server.ca_bundle);
        created(client, SERVICES, &object).await;
        until_available(client, RECORDED, "True", "Passed").await;
        let path = "/apis/rec.example.com/v1/things";
        until(client, path, |answer| answer.text() == list).await;
        // Another one's, and another name.
        for (bundle, name) in [(&stranger.ca_bundle, "hook"), (&server.ca_bundle, "other")] {
            let changed = service(bundle, name);
            let path = format!("{SERVICES}/{RECORDED}");
            assert_eq!(client.merge(&path, &changed).await.code, 200);
            let object = until_available(client, RECORDED, "False", "FailedDiscoveryCheck").await;
            let message = object["status"]["conditions"][0]["message"].as_str();
            assert!(message.unwrap().contains("certificate"), "{object}");
            let good = service(&server.ca_bundle, "hook");
            assert_eq!(client.merge(&path, &good).await.code, 200);
            until_available(client, RECORDED, "True", "Passed").await;
        }
        front.stop().await;
    }
}
