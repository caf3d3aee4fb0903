//! Rules of `x-kubernetes-validations`: evaluated for kinds of Rust types and for those of documents.

use super::*;

/// A size with rules, as the macros print them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min is above max"}]))]
struct Range {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self >= oldSelf", "messageExpression": "'may not shrink'", "reason": "FieldValueForbidden"}]))]
    min: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Gauge {
    metadata: ObjectMeta,
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "!has(self.max) || self.max < 100", "message": "max is too large"}]))]
    spec: Range,
}

impl ApiType for Gauge {}
resource!(Gauge, "v1", "Gauge", "gauges", |def| ResourceDef {
    storage: true,
    ..def
});

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self.spec.size > 1"}]))]
struct Wrong {
    metadata: ObjectMeta,
}

impl ApiType for Wrong {}
resource!(Wrong, "v1", "Wrong", "wrongs", |def| ResourceDef {
    storage: true,
    ..def
});

/// The schema of gauges as a definition has it.
fn document() -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "!has(self.max) || self.max < 100", "message": "max is too large"},
            {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min is above max"}],
        "properties": {
            "min": {"type": "integer", "format": "int32", "x-kubernetes-validations": [
                {"rule": "self >= oldSelf", "messageExpression": "'may not shrink'", "reason": "FieldValueForbidden"}]},
            "max": {"type": "integer", "format": "int32"}}}}})
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Custom {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Range,
}

impl ApiType for Custom {}
resource!(Custom, "v1", "Custom", "customs", |def| ResourceDef {
    storage: true,
    schema: SchemaSource::Document(Arc::new(
        Schema::of_custom_resource(&document()).expect("a schema")
    )),
    ..def
});

/// An endpoint of a kind that every test has to itself.
async fn endpoint<K: Resource>() -> (Fixture, Arc<Endpoint>) {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<K>();
    let fixture = started(builder, store).await;
    let endpoint = fixture.registry.endpoint(GROUP, "v1", K::PLURAL).unwrap();
    (fixture, endpoint)
}

/// The texts of the causes of an Invalid error.
fn causes(error: &ApiError) -> Vec<String> {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| format!("{}: {}: {}", cause.field, cause.reason, cause.message))
        .collect()
}

async fn check<K: Resource>() {
    let (f, endpoint) = endpoint::<K>().await;
    let input = |spec: Value| object(json!({"metadata": {"name": "g"}, "spec": spec}));
    let create = async |spec: Value| {
        let writes = endpoint.writes();
        let options = CreateOptions::default();
        writes.create(&f.ctx, NS, input(spec), &options).await
    };
    let put = async |spec: Value| {
        let writes = endpoint.writes();
        let options = UpdateOptions::default();
        writes
            .update(
                WriteRequest::new(&f.ctx, NS, "g").with(&options),
                input(spec),
            )
            .await
    };
    let error = create(json!({"min": 200, "max": 150})).await.unwrap_err();
    assert_eq!(
        causes(&error),
        [
            "spec: FieldValueInvalid: Invalid value: max is too large",
            "spec: FieldValueInvalid: Invalid value: min is above max",
        ]
    );
    // Types are checked first, and rules are not evaluated then.
    let error = create(json!({"min": "x", "max": 150})).await.unwrap_err();
    if error.reason == Some(StatusReason::Invalid) {
        let found = causes(&error);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].ends_with("correct the existing errors to complete validation"));
    }
    create(json!({"min": 5, "max": 50})).await.unwrap();
    let error = put(json!({"min": 4, "max": 50})).await.unwrap_err();
    assert_eq!(
        causes(&error),
        ["spec.min: FieldValueForbidden: Forbidden: may not shrink"]
    );
    put(json!({"min": 6, "max": 50})).await.unwrap();
    // A field that is removed has no rule of its own.
    put(json!({"max": 50})).await.unwrap();
}

#[tokio::test]
async fn rules_of_a_type_are_evaluated() {
    check::<Gauge>().await;
}

#[tokio::test]
async fn rules_of_a_document_are_evaluated() {
    check::<Custom>().await;
}

#[tokio::test]
async fn a_rule_that_does_not_fit_the_type_is_a_problem_of_the_kind() {
    let mut builder = builder(&Memory::new());
    builder.kind::<Wrong>();
    let problems = builder.build().err().unwrap();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let text = "Wrong of test.example.com/v1: x-kubernetes-validations[0].rule: Invalid value: ";
    assert!(problems[0].starts_with(text), "{problems:#?}");
    assert!(
        problems[0].contains("undefined field 'spec'"),
        "{problems:#?}"
    );
}
