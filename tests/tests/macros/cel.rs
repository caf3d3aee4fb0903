//! Rules in CEL: their form in the schema, and their evaluation by the server.

use apiloom::meta::kind::Resource as _;
use apiloom::meta::schema::Schema;
use apiloom::prelude::*;
use apiloom::server::{self, Config};
use serde_json::{Value, json};

use super::served::Server;

/// A band of frequencies.
#[apiloom::resource(
    group = "cel.example.com",
    version = "v1",
    cluster,
    cel(
        "self.metadata.name != self.spec.title",
        message = "the title repeats the name"
    )
)]
pub struct Band {
    pub metadata: ObjectMeta,
    pub spec: BandSpec,
}

#[apiloom::api(
    cel(
        "self.lowEnd <= self.highEnd",
        message_expression = "'above ' + self.title",
        path = low_end,
        reason = forbidden
    ),
    cel = "self.title != 'x'"
)]
pub struct BandSpec {
    #[api(
        cel("self >= 0", message = "negative"),
        cel("self >= oldSelf.orValue(0)", optional_old)
    )]
    pub low_end: i32,
    pub high_end: i32,
    #[api(len = ..=20)]
    pub title: String,
    #[api(items = ..=4, each(cel("self != 'bad'", message = "is bad")))]
    pub tags: Vec<String>,
}

/// A kind with a rule about a field that does not exist.
#[apiloom::resource(
    group = "cel.example.com",
    version = "v1",
    cluster,
    cel("self.spec.size > 1")
)]
pub struct Wrong {
    pub metadata: ObjectMeta,
}

#[test]
fn rules_are_keywords_of_the_schema() {
    let schema = Schema::for_resource::<Band>().unwrap();
    let document = schema.with_validations().unwrap();
    let rules = |pointer: &str| {
        let at = document.pointer(pointer).unwrap();
        at["x-kubernetes-validations"].clone()
    };
    assert_eq!(
        rules(""),
        json!([{"rule": "self.metadata.name != self.spec.title", "message": "the title repeats the name"}])
    );
    assert_eq!(
        rules("/properties/spec"),
        json!([
            {"rule": "self.lowEnd <= self.highEnd", "messageExpression": "'above ' + self.title",
                "reason": "FieldValueForbidden", "fieldPath": ".lowEnd"},
            {"rule": "self.title != 'x'"}
        ])
    );
    assert_eq!(
        rules("/properties/spec/properties/lowEnd"),
        json!([
            {"rule": "self >= 0", "message": "negative"},
            {"rule": "self >= oldSelf.orValue(0)", "optionalOldSelf": true}
        ])
    );
    assert_eq!(
        rules("/properties/spec/properties/tags/items"),
        json!([{"rule": "self != 'bad'", "message": "is bad"}])
    );
    assert_eq!(
        schema
            .to_crd()
            .schema
            .pointer("/properties/spec/x-kubernetes-validations"),
        Some(&rules("/properties/spec"))
    );
}

#[tokio::test]
async fn rules_are_evaluated_by_the_server() {
    let server = Server::start(|builder| builder.kind::<Band>()).await;
    let band = |spec: Value| json!({"apiVersion": "cel.example.com/v1", "kind": "Band", "metadata": {"name": "b"}, "spec": spec});
    let url = "/apis/cel.example.com/v1/bands";
    let spec = json!({"lowEnd": 5, "highEnd": 3, "title": "b", "tags": ["good", "bad"]});
    let (code, status) = server.post(url, &band(spec)).await;
    assert_eq!(code, 422, "{status}");
    let causes = status["details"]["causes"].as_array().unwrap();
    let shown = |cause: &Value| {
        let part = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", part("field"), part("message"))
    };
    let causes: Vec<String> = causes.iter().map(shown).collect();
    assert_eq!(
        causes,
        [
            "<nil>: Invalid value: the title repeats the name",
            "spec.lowEnd: Forbidden: above b",
            "spec.tags[1]: Invalid value: \"bad\": is bad",
        ]
    );
    let spec = json!({"lowEnd": 1, "highEnd": 3, "title": "t", "tags": []});
    let (code, created) = server.post(url, &band(spec)).await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test]
async fn a_rule_that_does_not_fit_is_a_problem_of_the_build_and_of_the_documents() {
    let builder = || server::builder(Config::new("cel", "")).lazy_kind::<Wrong>();
    let problem = builder().dump().unwrap_err().to_string();
    assert!(problem.contains("undefined field 'spec'"), "{problem}");
    assert!(problem.contains(Wrong::KIND), "{problem}");
}
