//! Decoding of bodies.

use apiloom_meta::codec::Format;

use super::*;

async fn check(body: &str, expected: &str) {
    let f = fixture().await;
    let error = f
        .widgets
        .writes()
        .decode(
            &f.ctx,
            body.as_bytes(),
            Format::Json,
            FieldValidation::Strict,
        )
        .unwrap_err();
    assert_eq!(shown(&error), (Some("BadRequest"), expected));
}

#[tokio::test]
async fn a_missing_type_is_filled_in() {
    let f = fixture().await;
    let decoded = f
        .widgets
        .writes()
        .decode(
            &f.ctx,
            br#"{"metadata":{"name":"a"}}"#,
            Format::Json,
            FieldValidation::Warn,
        )
        .unwrap();
    assert_eq!(
        (decoded.api_version(), decoded.kind()),
        ("test.example.com/v1", "Widget")
    );
}

#[tokio::test]
async fn an_empty_body_is_refused() {
    let text = "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: \
                unexpected end of JSON input (<empty>)";
    check("", text).await;
}

#[tokio::test]
async fn another_kind_is_refused() {
    let text = "Gadget in version \"v1\" cannot be handled as a Widget: converting (v1.Gadget) to (test.Widget): unknown conversion";
    check(
        r#"{"apiVersion":"test.example.com/v1","kind":"Gadget"}"#,
        text,
    )
    .await;
}

#[tokio::test]
async fn an_unknown_kind_or_version_is_refused() {
    let text = "Widget in version \"v9\" cannot be handled as a Widget: no kind \"Widget\" is registered for version \
                \"test.example.com/v9\" in scheme \"apiloom\"";
    check(
        r#"{"apiVersion":"test.example.com/v9","kind":"Widget"}"#,
        text,
    )
    .await;
}

#[tokio::test]
async fn another_version_of_the_kind_is_refused() {
    let text = "the API version in the data (test.example.com/v1alpha1) does not match the expected API version (test.example.com/v1)";
    check(
        r#"{"apiVersion":"test.example.com/v1alpha1","kind":"Widget"}"#,
        text,
    )
    .await;
}

#[tokio::test]
async fn another_kind_is_reported_before_its_fields_types() {
    let text = "Gadget in version \"v1\" cannot be handled as a Widget: converting (v1.Gadget) to (test.Widget): unknown conversion";
    check(
        r#"{"apiVersion":"test.example.com/v1","kind":"Gadget","spec":"text"}"#,
        text,
    )
    .await;
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_refused() {
    let f = fixture().await;
    let body = br#"{"spec":{"color":5}}"#;
    let error = f
        .widgets
        .writes()
        .decode(&f.ctx, body, Format::Json, FieldValidation::Warn)
        .unwrap_err();
    let prefix = "Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ";
    assert!(error.message.starts_with(prefix), "{}", error.message);
}

#[tokio::test]
async fn strict_lists_unknown_and_duplicate_fields_in_order() {
    let text = "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"metadata.foo\", \
                duplicate field \"spec.color\", unknown field \"bogus\"";
    check(
        r#"{"metadata":{"foo":1},"spec":{"color":"a","color":"b"},"bogus":1}"#,
        text,
    )
    .await;
}

#[tokio::test]
async fn warn_tells_and_ignore_does_not() {
    let f = fixture().await;
    let body = br#"{"spec":{"zip":1},"bogus":1}"#;
    let decoded = f
        .widgets
        .writes()
        .decode(&f.ctx, body, Format::Json, FieldValidation::Warn)
        .unwrap();
    assert_eq!(at(&decoded, "/spec"), json!({}));
    assert_eq!(
        f.ctx.take_warnings(),
        ["unknown field \"spec.zip\"", "unknown field \"bogus\""]
    );
    f.widgets
        .writes()
        .decode(&f.ctx, body, Format::Json, FieldValidation::Ignore)
        .unwrap();
    assert!(f.ctx.take_warnings().is_empty());
}

#[tokio::test]
async fn what_is_no_object_with_a_type_is_refused() {
    let prefix = "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: ";
    let text = "json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                Kind string \"json:\\\"kind,omitempty\\\"\" } (5b5d)";
    check("[]", &format!("{prefix}{text}")).await;
    let text =
        "json: cannot unmarshal number into Go struct field .kind of type string ({\"kind\":5})";
    check(r#"{"kind":5}"#, &format!("{prefix}{text}")).await;
    let text = "invalid character 'x' looking for beginning of value ({\"metadata\":{\"name\":\"a\",\"label ...)";
    check(
        r#"{"metadata":{"name":"a","labels":x}}"#,
        &format!("{prefix}{text}"),
    )
    .await;
    let prefix = "the object provided is unrecognized (must be of type Widget): ";
    let text = "unexpected GroupVersion string: a/b/c ({\"apiVersion\":\"a/b/c\"})";
    check(r#"{"apiVersion":"a/b/c"}"#, &format!("{prefix}{text}")).await;
}
