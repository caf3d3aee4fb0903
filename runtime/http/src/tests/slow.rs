//! Responses that are read slowly or never, and those that are expensive to encode.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use http_body::Body as _;
use serde_json::json;

use super::*;

/// Creates flunders with annotations of this size.
async fn create_large(api: &Api, objects: usize, bytes: usize) {
    for n in 0..objects {
        let annotations = json!({"a": "x".repeat(bytes)});
        let body = json!({"metadata": {"name": format!("f-{n:03}"), "annotations": annotations}});
        post(api, FLUNDERS, &body.to_string()).await.expect(201);
    }
}

/// The frames of the first line of a watch.
async fn first_line(body: &mut Body) -> Vec<Bytes> {
    let mut frames: Vec<Bytes> = Vec::new();
    while !frames.last().is_some_and(|frame| frame.ends_with(b"\n")) {
        frames.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    frames
}

#[tokio::test]
async fn watchers_of_large_objects_share_their_bytes() {
    const LARGE: usize = 100_000;
    let api = api().await;
    create_large(&api, 1, LARGE).await;
    let object = get(&api, &format!("{FLUNDERS}/f-000"))
        .await
        .expect(200)
        .body;
    let expected = format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object.trim_end());
    let mut shared = Vec::new();
    for _ in 0..2 {
        let mut body = open(&api, "GET", &format!("{FLUNDERS}?watch=1"), &[], "")
            .await
            .into_body();
        let frames = first_line(&mut body).await;
        assert!(frames.concat() == expected.as_bytes());
        let large = frames.into_iter().find(|frame| frame.len() > LARGE);
        shared.push(large.expect("the object is a frame of its own"));
    }
    assert_eq!(shared[0].as_ptr(), shared[1].as_ptr());
}

#[tokio::test]
async fn answers_of_a_large_object_share_its_bytes() {
    const LARGE: usize = 200_000;
    let api = api().await;
    create_large(&api, 1, LARGE).await;
    get(&api, FLUNDERS).await.expect(200);
    let url = format!("{FLUNDERS}/f-000?resourceVersion=0");
    let whole = get(&api, &url).await.expect(200);
    assert!(whole.body.ends_with("}\n"));
    let mut shared = Vec::new();
    for _ in 0..2 {
        let mut body = open(&api, "GET", &url, &[], "").await.into_body();
        assert_eq!(body.size_hint().exact(), Some(whole.body.len() as u64));
        shared.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert!(shared[0].len() > LARGE);
    assert_eq!(shared[0].as_ptr(), shared[1].as_ptr());
    let gzip = open(&api, "GET", &url, &[("accept-encoding", "gzip")], "").await;
    let packed = gzip.into_body().collect().await.unwrap().to_bytes();
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*packed), &mut unpacked)
        .unwrap();
    assert!(unpacked == whole.body);
}

#[tokio::test]
async fn large_and_small_events_that_are_ready_together_stay_in_order() {
    let api = api().await;
    let sizes = [10, 20_000, 10, 30_000, 40_000, 10];
    let mut expected = String::new();
    for (n, bytes) in sizes.into_iter().enumerate() {
        let annotations = json!({"a": "x".repeat(bytes)});
        let body = json!({"metadata": {"name": format!("f-{n}"), "annotations": annotations}});
        let object = post(&api, FLUNDERS, &body.to_string())
            .await
            .expect(201)
            .body;
        expected += &format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object.trim_end());
    }
    get(&api, FLUNDERS).await.expect(200);
    let url = format!("{FLUNDERS}?watch=1&timeoutSeconds=1");
    let body = open(&api, "GET", &url, &[], "").await.into_body();
    let events = body.collect().await.unwrap().to_bytes();
    assert!(events == expected.as_bytes());
}

#[tokio::test]
async fn short_rows_of_large_objects_take_turns() {
    let api = api().await;
    create_large(&api, 20, 200_000).await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let url = format!("{FLUNDERS}?includeObject=None");
    let mut answer = pin!(open(&api, "GET", &url, &accept, ""));
    let mut turns = 1;
    let response = loop {
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(response) => break response,
            Poll::Pending => turns += 1,
        }
        tokio::task::yield_now().await;
    };
    let table = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        table.windows(7).filter(|at| *at == b"\"cells\"").count(),
        20
    );
    assert!(turns >= 8, "{turns}");
}
