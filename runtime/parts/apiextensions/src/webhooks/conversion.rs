//! Conversion webhooks: ConversionReview of apiextensions.k8s.io, v1 and v1beta1.
//!
//! Here is what a webhook is sent, and whether its response is one. That the objects in it are those that were sent, in the
//! other version, is checked for all converters alike by the registry.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use apiloom_http::background;
use apiloom_http::observation::metrics::{ConversionFailure, ConversionMetrics};
use apiloom_kinds::apiextensions::v1::{WebhookClientConfig, WebhookConversion};
use apiloom_meta::GroupVersion;
use apiloom_meta::kind::{ConversionReport, ConversionResult, Converter};
use apiloom_server::services::{DEFAULT_SERVICE_PORT, ServicePort};
use apiloom_server::webhook::{WebhookAddress, WebhookClient};
use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Webhooks;

const GROUP: &str = "apiextensions.k8s.io";

/// How long a call may take, with its wait for a turn, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum size of a response that is read by a thread of its own.
const LARGE_BYTES: usize = 64 << 10;

/// The versions of ConversionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewVersion {
    V1,
    /// Neither the kind nor the uid of a response is compared, as in kube-apiserver.
    V1Beta1,
}

/// The converter of a definition with the strategy Webhook.
#[derive(Debug)]
pub(crate) struct ConversionWebhook {
    /// The name of the definition.
    name: String,
    /// Or why it cannot be called.
    webhook: Result<(WebhookClient, ReviewVersion), String>,
    metrics: Arc<OnceLock<ConversionMetrics>>,
}

impl ConversionWebhook {
    /// The webhook of a definition. If its configuration cannot be used, as that of another release, each conversion says so.
    pub(crate) fn of_definition(document: &Value, webhooks: &Webhooks) -> Self {
        Self {
            name: document["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            webhook: configured(&document["spec"]["conversion"]["webhook"], webhooks),
            metrics: Arc::clone(&webhooks.metrics),
        }
    }

    async fn call(
        &self,
        documents: &[Bytes],
        to: &GroupVersion,
    ) -> Result<Vec<Bytes>, (ConversionFailure, String)> {
        let of_call = |text: String| (ConversionFailure::Call, text);
        let (client, version) = self
            .webhook
            .as_ref()
            .map_err(|problem| of_call(problem.clone()))?;
        let uid = Uuid::new_v4().to_string();
        let request = request(*version, &uid, to, documents);
        let response = client.post(request, TIMEOUT).await;
        let response = response.map_err(|error| of_call(error.text))?;
        if response.len() < LARGE_BYTES {
            return converted(&response, *version, &uid);
        }
        let version = *version;
        let reading = background::spawn_blocking(move || converted(&response, version, &uid));
        let read = reading.await;
        read.unwrap_or_else(|error| Err(of_call(error.to_string())))
    }
}

#[async_trait]
impl Converter for ConversionWebhook {
    async fn convert(
        &self,
        documents: Vec<Bytes>,
        to: &GroupVersion,
    ) -> Result<Vec<Bytes>, String> {
        let began = Instant::now();
        let converted = self.call(&documents, to).await;
        converted.map_err(|(failure, text)| {
            self.count(began.elapsed(), Some(failure));
            text
        })
    }

    fn finished(&self, report: &ConversionReport<'_>) {
        let failure = match report.result {
            ConversionResult::Accepted => None,
            ConversionResult::WrongNumber => Some(ConversionFailure::PartialResponse),
            ConversionResult::InvalidObject => Some(ConversionFailure::InvalidObject),
            // It was counted with its cause.
            ConversionResult::Failed => return self.count_versions(report),
        };
        self.count(report.elapsed, failure);
        self.count_versions(report);
    }
}

impl ConversionWebhook {
    fn count(&self, elapsed: Duration, failure: Option<ConversionFailure>) {
        if let Some(metrics) = self.metrics.get() {
            metrics.called(elapsed, failure);
        }
    }

    fn count_versions(&self, report: &ConversionReport<'_>) {
        let is_success = report.result == ConversionResult::Accepted;
        if let Some(metrics) = self.metrics.get() {
            let versions = [report.from, &report.to.version];
            metrics.converted(&self.name, versions, is_success, report.elapsed);
        }
    }
}

fn configured(
    document: &Value,
    webhooks: &Webhooks,
) -> Result<(WebhookClient, ReviewVersion), String> {
    let webhook: WebhookConversion =
        serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    let mut versions = webhook.conversion_review_versions.iter();
    let version = versions.find_map(|version| match version.as_str() {
        "v1" => Some(ReviewVersion::V1),
        "v1beta1" => Some(ReviewVersion::V1Beta1),
        _ => None,
    });
    let version = version.ok_or("no supported conversion review versions")?;
    let config = webhook.client_config.unwrap_or_default();
    let client = WebhookClient::new(&address(config)?, Arc::clone(&webhooks.services))?;
    Ok((client, version))
}

fn address(config: WebhookClientConfig) -> Result<WebhookAddress, String> {
    let mut address = WebhookAddress {
        url: config.url,
        ca_bundle: config.ca_bundle,
        ..WebhookAddress::default()
    };
    if let Some(service) = config.service {
        let port = service.port.unwrap_or(i32::from(DEFAULT_SERVICE_PORT));
        address.path = service.path;
        address.service = Some(ServicePort {
            namespace: service.namespace,
            name: service.name,
            port: u16::try_from(port).map_err(|_| format!("port {port} is not valid"))?,
        });
    }
    Ok(address)
}

impl ReviewVersion {
    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// The document that is sent. Its empty response is that of kube-apiserver, which webhooks may fill in.
fn request(version: ReviewVersion, uid: &str, to: &GroupVersion, documents: &[Bytes]) -> Bytes {
    let size: usize = documents.iter().map(|document| document.len() + 1).sum();
    let mut head = String::with_capacity(512);
    let _ = write!(
        head,
        r#"{{"kind":"ConversionReview","apiVersion":"{GROUP}/{}","request":{{"uid":"{uid}","desiredAPIVersion":"{to}","objects":["#,
        version.name()
    );
    const TAIL: &str =
        r#"]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#;
    let mut text = Vec::with_capacity(head.len() + size + TAIL.len());
    text.extend_from_slice(head.as_bytes());
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(document);
    }
    text.extend_from_slice(TAIL.as_bytes());
    text.into()
}

/// A response. Fields may be null, as in Go.
#[derive(Deserialize)]
struct Review<'a> {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, rename = "apiVersion")]
    api_version: Option<String>,
    #[serde(default, borrow)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(default)]
    uid: Option<String>,
    #[serde(default, borrow)]
    converted_objects: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    result: Option<Outcome>,
}

#[derive(Default, Deserialize)]
struct Outcome {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// The objects of a response.
fn converted(
    body: &Bytes,
    version: ReviewVersion,
    expected_uid: &str,
) -> Result<Vec<Bytes>, (ConversionFailure, String)> {
    let review: Review<'_> = serde_json::from_slice(body).map_err(|error| {
        let text = format!("the response is not a ConversionReview: {error}");
        (ConversionFailure::Call, text)
    })?;
    let malformed = |text: String| Err((ConversionFailure::MalformedResponse, text));
    let (kind, api_version) = (review.kind.as_deref(), review.api_version.as_deref());
    let expected = format!("{GROUP}/{}", version.name());
    let is_strict = version == ReviewVersion::V1;
    if is_strict && (kind, api_version) != (Some("ConversionReview"), Some(expected.as_str())) {
        return malformed(format!(
            "expected webhook response of {expected}, Kind=ConversionReview, got {}, Kind={}",
            api_version.unwrap_or_default(),
            kind.unwrap_or_default()
        ));
    }
    let Some(response) = review.response else {
        return malformed("no response provided".to_owned());
    };
    let uid = response.uid.unwrap_or_default();
    if is_strict && uid != expected_uid {
        return malformed(format!(
            "expected response.uid={expected_uid:?}, got {uid:?}"
        ));
    }
    let outcome = response.result.unwrap_or_default();
    let status = outcome.status.unwrap_or_default();
    if status != "Success" {
        return malformed(match outcome.message {
            Some(message) if !message.is_empty() => message,
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    let objects = response.converted_objects.unwrap_or_default();
    let objects = objects.iter();
    Ok(objects
        .map(|object| body.slice_ref(object.get().as_bytes()))
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn to() -> GroupVersion {
        GroupVersion::new("ex.io", "v2")
    }

    fn read(version: ReviewVersion, response: &str) -> Result<Vec<String>, String> {
        let body = Bytes::from(response.to_owned());
        let converted = converted(&body, version, "u");
        let texts = |objects: Vec<Bytes>| {
            let objects = objects.iter();
            let texts = objects.map(|object| String::from_utf8_lossy(object).into_owned());
            texts.collect()
        };
        converted.map(texts).map_err(|(_, text)| text)
    }

    #[test]
    fn a_review_has_the_documents_in_order() {
        let documents = [Bytes::from_static(b"{\"a\":1}"), Bytes::from_static(b"{}")];
        let text = request(ReviewVersion::V1, "u", &to(), &documents);
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"ex.io/v2","objects":[{"a":1},{}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#
        );
        let text = request(ReviewVersion::V1Beta1, "u", &to(), &[]);
        let review: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1beta1");
        assert_eq!(review["request"]["objects"], json!([]));
    }

    fn review(api_version: &str, response: &Value) -> String {
        json!({"apiVersion": api_version, "kind": "ConversionReview", "response": response})
            .to_string()
    }

    #[test]
    fn the_objects_of_a_success_are_taken_as_they_are() {
        const V1: &str = "apiextensions.k8s.io/v1";
        let good = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":
            {"uid":"u","result":{"status":"Success"},"convertedObjects":[ {"b": 1e2} ,7]}}"#;
        assert_eq!(
            read(ReviewVersion::V1, good).unwrap(),
            ["{\"b\": 1e2}", "7"]
        );
        let without =
            json!({"uid": "u", "convertedObjects": null, "result": {"status": "Success"}});
        assert_eq!(
            read(ReviewVersion::V1, &review(V1, &without)).unwrap(),
            [""; 0]
        );
        // An older webhook names neither the kind nor the uid.
        let old = json!({"response": {"convertedObjects": [1], "result": {"status": "Success"}}});
        let old = old.to_string();
        assert_eq!(read(ReviewVersion::V1Beta1, &old).unwrap(), ["1"]);
        assert_eq!(
            read(ReviewVersion::V1, &old).unwrap_err(),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind="
        );
    }

    #[test]
    fn other_responses_are_refused_with_the_texts_of_kubernetes() {
        const V1: &str = "apiextensions.k8s.io/v1";
        let check = |text: String, expected: &str| {
            let error = read(ReviewVersion::V1, &text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("".to_owned(), "not a ConversionReview");
        check("[1".to_owned(), "not a ConversionReview");
        check("{}x".to_owned(), "not a ConversionReview");
        check("{}".to_owned(), "expected webhook response of");
        check(
            review("apiextensions.k8s.io/v1beta1", &json!({"uid": "u"})),
            "got apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
        );
        check(review(V1, &json!(null)), "no response provided");
        check(
            review(V1, &json!({"uid": "x"})),
            "expected response.uid=\"u\", got \"x\"",
        );
        check(review(V1, &json!({})), "got \"\"");
        check(
            review(V1, &json!({"uid": "u"})),
            "response.result.status was '', not 'Success'",
        );
        let refusal = json!({"uid": "u", "result": {"status": "Failure", "message": "no paint"}});
        check(review(V1, &refusal), "no paint");
        let silent = json!({"uid": "u", "result": {"status": "Failure", "message": ""}});
        check(
            review(V1, &silent),
            "response.result.status was 'Failure', not 'Success'",
        );
        let deep = format!(
            "{{\"response\":{{\"convertedObjects\":[{}",
            "[".repeat(1 << 20)
        );
        check(deep, "not a ConversionReview");
    }

    #[test]
    fn a_configuration_of_another_release_is_told_by_conversions() {
        let webhooks = Webhooks::new(Arc::new(apiloom_server::services::ClusterDns));
        let problem = |webhook: Value| configured(&webhook, &webhooks).unwrap_err();
        let url = json!({"url": "https://a/convert"});
        assert_eq!(
            problem(json!({"clientConfig": url, "conversionReviewVersions": ["v9"]})),
            "no supported conversion review versions"
        );
        let versions = json!(["v1"]);
        assert_eq!(
            problem(json!({"conversionReviewVersions": versions})),
            "webhook configuration must have either service or URL"
        );
        for url in ["http://a", "https://me:pw@a", "a", "https://"] {
            let config =
                json!({"clientConfig": {"url": url}, "conversionReviewVersions": versions});
            assert!(problem(config).contains("https://host[/path]"), "{url}");
        }
        let old = json!({"clientConfig": url, "conversionReviewVersions": ["v9", "v1beta1", "v1"]});
        let (_, version) = configured(&old, &webhooks).unwrap();
        assert_eq!(version, ReviewVersion::V1Beta1);
    }
}
