//! Responses to unusual bodies, as those of kube-apiserver.

use super::*;

#[tokio::test]
async fn null_is_a_body_that_says_nothing() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let item = format!("{FLUNDERS}/a");
    let before = get(&api, &item).await.expect(200).body;
    assert_eq!(
        json_patch(&api, &item, "null").await.expect(200).body,
        before
    );
    assert_eq!(json_patch(&api, &item, "[]").await.expect(200).body, before);
    let message = json_patch(&api, &item, "{}").await.expect(400).message();
    assert_eq!(
        message,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    );
    delete(&api, &item, "5").await.expect(400);
    delete(&api, &item, "null").await.expect(200);
    get(&api, &item).await.expect(404);
}

#[tokio::test]
async fn a_list_is_no_object_to_create() {
    let api = api().await;
    let list = r#"{"kind":"FlunderList","apiVersion":"wardle.example.com/v1alpha1","metadata":{},"items":[]}"#;
    let message = post(&api, FLUNDERS, list).await.expect(400).message();
    assert_eq!(
        message,
        "FlunderList in version \"v1alpha1\" cannot be handled as a Flunder: converting (v1alpha1.FlunderList) to \
         (wardle.Flunder): unknown conversion"
    );
    let unknown = r#"{"kind":"List","apiVersion":"v1","items":[]}"#;
    let message = post(&api, FLUNDERS, unknown).await.expect(400).message();
    assert_eq!(
        message,
        "List in version \"v1\" cannot be handled as a Flunder: no kind \"List\" is registered for version \"v1\" in \
         scheme \"apiloom\""
    );
}

#[tokio::test]
async fn a_content_type_that_is_none_is_refused() {
    let api = api().await;
    let body = r#"{"metadata":{"name":"a"}}"#;
    for content_type in [";;;", "application/json;;", "application/json; charset"] {
        let headers = [("content-type", content_type)];
        let answer = send(&api, "POST", FLUNDERS, &headers, body)
            .await
            .expect(415);
        assert_eq!(
            answer.at("/reason"),
            "UnsupportedMediaType",
            "{content_type}"
        );
    }
    let headers = [("content-type", "application/json; charset=utf-8;")];
    send(&api, "POST", FLUNDERS, &headers, body)
        .await
        .expect(201);
}

#[tokio::test]
async fn what_is_no_unicode_is_replaced() {
    let api = api().await;
    let body = r#"{"metadata":{"name":"a","annotations":{"n":"x\ud800y"}}}"#;
    let created = post(&api, FLUNDERS, body).await.expect(201);
    assert_eq!(created.at("/metadata/annotations/n"), "x\u{fffd}y");
    let mut request = Request::builder().method("POST").uri(FLUNDERS);
    request = request.header("content-type", "application/json");
    let body =
        Bytes::from_static(b"{\"metadata\":{\"name\":\"b\",\"annotations\":{\"n\":\"x\xffy\"}}}");
    let response = open_with(&api, request.body(Full::new(body)).unwrap()).await;
    assert_eq!(response.status(), 201);
    let read = get(&api, &format!("{FLUNDERS}/b")).await.expect(200);
    assert_eq!(read.at("/metadata/annotations/n"), "x\u{fffd}y");
}
