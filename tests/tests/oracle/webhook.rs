//! The conversion webhook that both servers call. It keeps nothing: what it does is in the objects that it is sent, so that both
//! are answered alike.
//!
//! Things of v1 have `spec.color`, those of v2 `spec.colour`. What else happens to an object on the way to v1 is said by its
//! `spec.in`, on the way to any other version by `spec.out`; those of the first object say it of the whole review too.

use apiloom_tests::https::{Body, HttpsServer, SignedBy, text};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

/// Stands in the cases for the strategy with this webhook.
pub(crate) const PLACEHOLDER: &str = "webhook";

/// A running webhook.
pub(crate) struct Webhook(HttpsServer);

impl Webhook {
    /// Starts it. Its certificate is its own authority, as `openssl req -x509` makes one.
    pub(crate) async fn start() -> Self {
        Self(HttpsServer::start(SignedBy::Itself, answer).await)
    }

    /// A definition whose conversion is the placeholder, with this webhook.
    pub(crate) fn put_into(&self, definition: &mut Value) {
        let conversion = &mut definition["spec"]["conversion"];
        if *conversion != PLACEHOLDER {
            return;
        }
        let config = json!({"url": format!("https://{}/convert", self.0.address), "caBundle": self.0.ca_bundle});
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": config});
        *conversion = json!({"strategy": "Webhook", "webhook": webhook});
    }
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut review: Value = serde_json::from_slice(&body).unwrap();
    let request = review["request"].take();
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let way = if to.ends_with("/v1") { "in" } else { "out" };
    let deed_of = |object: &Value| object["spec"][way].as_str().unwrap_or_default().to_owned();
    let mut converted: Vec<Value> = objects.iter().map(|object| convert(object, to)).collect();
    for object in &mut converted {
        let deed = deed_of(object);
        change(object, &deed, way);
    }
    let deed = deed_of(&objects[0]);
    match deed.as_str() {
        "status 500" => return text(500, "no paint"),
        "status 404" => {
            return text(
                404,
                r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "gone", "code": 404}"#,
            );
        }
        "no object" => converted.clear(),
        "two objects" => converted.push(converted[0].clone()),
        _ => {}
    }
    review["response"] = json!({
        "uid": request["uid"],
        "convertedObjects": converted,
        "result": {"status": "Success"},
    });
    let response = &mut review["response"];
    match deed.as_str() {
        "other uid of the review" => response["uid"] = json!("other"),
        "failure" => response["result"] = json!({"status": "Failure", "message": "no paint left"}),
        "silent failure" => response["result"] = json!({"status": "Failure"}),
        "no result" => response["result"] = json!({}),
        "no response" => *response = json!(null),
        "another kind" => review["kind"] = json!("Review"),
        "another version of the review" => {
            review["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
        }
        _ => {}
    }
    text(200, review.to_string())
}

/// The object in another version.
fn convert(object: &Value, to: &str) -> Value {
    let mut converted = object.clone();
    let (old, new) = if to.ends_with("/v1") {
        ("colour", "color")
    } else {
        ("color", "colour")
    };
    if let Some(spec) = converted["spec"].as_object_mut()
        && let Some(value) = spec.remove(old)
    {
        spec.insert(new.to_owned(), value);
    }
    converted["apiVersion"] = json!(to);
    converted
}

/// What a conversion may do, and what it may not.
fn change(object: &mut Value, deed: &str, way: &str) {
    let metadata = &mut object["metadata"];
    match deed {
        "labels" => {
            metadata["labels"]["way"] = json!(way);
            metadata["annotations"][format!("hook/{way}")] = json!("yes");
        }
        "no labels" => {
            let fields = metadata.as_object_mut().unwrap();
            fields.remove("labels");
            fields.insert("annotations".to_owned(), json!(null));
        }
        "metadata" => {
            metadata["generation"] = json!(77);
            metadata["finalizers"] = json!([]);
            metadata["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
            metadata["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
            metadata["resourceVersion"] = json!("1");
            metadata["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
            metadata["managedFields"] = json!([]);
            metadata["bogus"] = json!(1);
        }
        "name" => metadata["name"] = json!("other"),
        "no name" => drop(metadata.as_object_mut().unwrap().remove("name")),
        "namespace" => metadata["namespace"] = json!("other"),
        "uid" => metadata["uid"] = json!("other"),
        "a label of a number" => metadata["labels"] = json!({"a": 1}),
        "a null label" => metadata["labels"] = json!({"a": null}),
        "a bad label" => metadata["labels"] = json!({"a b": "x"}),
        "a list of labels" => metadata["labels"] = json!([]),
        "a bad annotation" => metadata["annotations"] = json!({"a b": "x"}),
        "a text of annotations" => metadata["annotations"] = json!("x"),
        "no metadata" => drop(object.as_object_mut().unwrap().remove("metadata")),
        "a list of metadata" => *metadata = json!([]),
        "the old version" => object["apiVersion"] = json!("example.com/v0"),
        "no version" => drop(object.as_object_mut().unwrap().remove("apiVersion")),
        "the kind" => object["kind"] = json!("Other"),
        "no kind" => drop(object.as_object_mut().unwrap().remove("kind")),
        "a number" => *object = json!(7),
        "null" => *object = json!(null),
        "drops the spec" => drop(object.as_object_mut().unwrap().remove("spec")),
        "adds fields" => {
            object["spec"]["unknown"] = json!({"a": 1});
            object["spec"]["both"] = json!(3);
            object["other"] = json!([1]);
        }
        "nulls" => {
            object["spec"]["size"] = json!(null);
            object["spec"]["shade"] = json!(null);
            object["spec"]["both"] = json!(null);
        }
        "a wrong type" => object["spec"]["both"] = json!("three"),
        "the status" => object["status"] = json!({"phase": way}),
        _ => {}
    }
}
