//! Conversion webhooks of CustomResourceDefinitions.

use std::time::{Duration, Instant};

use apiloom_tests::https::SignedBy;
use serde_json::json;

use crate::custom::*;
use crate::webhook::{Reply, Webhook};
use crate::*;

on_each_backend![
    c_175_a_webhook_may_change_labels_and_annotations_alone,
    labels_that_a_webhook_adds_are_those_of_the_version,
    objects_are_converted_by_a_webhook,
    another_storage_version_is_converted_by_its_readers,
    what_a_webhook_does_wrong_is_told,
    a_webhook_that_does_not_answer_holds_up_its_own_requests_alone,
    a_changed_configuration_applies_to_the_next_request,
    a_service_is_found_by_the_map,
    a_webhook_is_trusted_by_its_own_certificate,
    an_empty_line_is_no_authority,
    a_definition_with_malformed_authorities_waits_for_better_ones,
    calls_of_webhooks_are_counted,
    a_definition_is_deleted_although_its_webhook_fails,
];

/// Foos in another version, where they have a colour.
const SECOND: &str = "/apis/ex.io/v2/namespaces/default/foos";

/// How errors of a conversion from the first version begin.
const BEGIN: &str = "conversion webhook for ex.io/v1, Kind=Foo";

/// Foos of two versions, v1 is stored, which this webhook converts.
fn definition_of(config: &Value) -> Value {
    let mut foos = definition(
        "foos",
        "Foo",
        &json!({
            "color": {"type": "string"},
            "size": {"type": "string", "default": "m"},
        }),
    );
    let mut second = foos["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let spec = &mut second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    *spec = json!({"colour": {"type": "string", "maxLength": 10}, "size": {"type": "string"}, "extra": {"type": "integer", "default": 7}});
    foos["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    foos["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": config}});
    foos
}

fn by_url(webhook: &Webhook) -> Value {
    json!({"url": webhook.url(), "caBundle": webhook.ca_bundle})
}

/// A server with foos that a webhook converts.
async fn with_webhook(on: Backend) -> (Cluster, Client, Webhook) {
    let (cluster, client) = server(on);
    let webhook = Webhook::start().await;
    establish(&client, &definition_of(&by_url(&webhook))).await;
    (cluster, client, webhook)
}

fn foo2(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "ex.io/v2", "kind": "Foo", "metadata": {"name": name}, "spec": spec})
}

/// Asserts that a conversion failed.
#[track_caller]
fn check_failed(answer: &Answer, why: &str) {
    let body = answer.json();
    assert_eq!(
        (
            answer.code,
            body["reason"].as_str(),
            body["message"].as_str()
        ),
        (500, None, Some(format!("{BEGIN} {why}").as_str())),
    );
}

async fn c_175_a_webhook_may_change_labels_and_annotations_alone(on: Backend) {
    let (_server, client, webhook) = with_webhook(on).await;
    let mut first = foo("a", &json!({"color": "red"}));
    first["metadata"]["labels"] = json!({"kept": "no"});
    first["metadata"]["annotations"] = json!({"old": "x"});
    first["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    let stored = created(&client, FOOS, &first).await;
    webhook.reply(Reply::change(|review| {
        let metadata = &mut review["response"]["convertedObjects"][0]["metadata"];
        metadata["labels"] = json!({"painted": "yes"});
        metadata.as_object_mut().unwrap().remove("annotations");
        metadata["generation"] = json!(77);
        metadata["finalizers"] = json!([]);
        metadata["creationTimestamp"] = json!(null);
        metadata["resourceVersion"] = json!("1");
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
        metadata["managedFields"] = json!([]);
        metadata["bogus"] = json!(1);
    }));
    let shown = client.get(&format!("{SECOND}/a")).await.json();
    let mut expected = stored["metadata"].clone();
    expected["labels"] = json!({"painted": "yes"});
    expected.as_object_mut().unwrap().remove("annotations");
    assert_eq!(shown["metadata"], expected);
    assert_eq!(shown["apiVersion"], "ex.io/v2");
    // Defaults are those of the stored version alone.
    assert_eq!(shown["spec"], json!({"colour": "red", "size": "m"}));
    assert_eq!(client.get(SECOND).await.json()["items"][0], shown);

    // A write in the other version may not change more either.
    let mut changed = shown.clone();
    changed["spec"]["colour"] = json!("blue");
    assert_eq!(client.put(&format!("{SECOND}/a"), &changed).await.code, 200);
    webhook.reply(Reply::Convert);
    let stored = client.get(&format!("{FOOS}/a")).await.json();
    assert_eq!(stored["metadata"]["finalizers"], json!(["ex.io/hold"]));
    assert_eq!(stored["metadata"]["uid"], shown["metadata"]["uid"]);
    assert_eq!(stored["spec"], json!({"color": "blue", "size": "m"}));

    for (field, value, why) in [
        (
            "name",
            json!("b"),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            "namespace",
            json!("other"),
            "returned invalid object: must have the same namespace: default != other",
        ),
        (
            "labels",
            json!({"painted": 1}),
            "returned invalid metadata: metadata.labels[painted] must be a string, but is int64 in converted object",
        ),
        (
            "labels",
            json!([]),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            "annotations",
            json!({"a b": "x"}),
            "returned invalid metadata: metadata.annotation: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ] {
        webhook.reply(Reply::change(move |review| {
            review["response"]["convertedObjects"][0]["metadata"][field] = value.clone();
        }));
        check_failed(&client.get(&format!("{SECOND}/a")).await, why);
    }
    webhook.reply(Reply::change(|review| {
        let object = &mut review["response"]["convertedObjects"][0];
        object.as_object_mut().unwrap().remove("metadata");
    }));
    check_failed(
        &client.get(&format!("{SECOND}/a")).await,
        "returned invalid object: must have the same name: a != ",
    );
}

async fn labels_that_a_webhook_adds_are_those_of_the_version(on: Backend) {
    let (_server, client, webhook) = with_webhook(on).await;
    webhook.reply(Reply::change(|review| {
        let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
        let to = to.replace('/', "-");
        let objects = review["response"]["convertedObjects"].as_array_mut();
        for object in objects.unwrap() {
            object["metadata"]["labels"]["to"] = json!(to);
            object["metadata"]["annotations"][&to] = json!("yes");
        }
    }));
    let made = created(&client, SECOND, &foo2("a", &json!({"colour": "red"}))).await;
    let metadata = |object: &Value| {
        let metadata = &object["metadata"];
        (metadata["labels"].clone(), metadata["annotations"].clone())
    };
    let stored = client.get(&format!("{FOOS}/a")).await.json();
    assert_eq!(
        metadata(&stored),
        (json!({"to": "ex.io-v1"}), json!({"ex.io-v1": "yes"}))
    );
    let shown = (
        json!({"to": "ex.io-v2"}),
        json!({"ex.io-v1": "yes", "ex.io-v2": "yes"}),
    );
    assert_eq!(metadata(&made), shown);
    for (path, label, expected) in [
        (FOOS, "ex.io-v1", &["a"][..]),
        (FOOS, "ex.io-v2", &[]),
        (SECOND, "ex.io-v1", &[]),
        (SECOND, "ex.io-v2", &["a"]),
    ] {
        let path = format!("{path}?labelSelector=to%3D{label}");
        let selected = client.get(&path).await.json();
        assert_eq!(names(&selected), expected, "{path} {label}");
    }
    // An update, and a delete that only marks the object, are written in the other version too.
    let held = json!({"metadata": {"finalizers": ["ex.io/hold"]}, "spec": {"colour": "blue"}});
    let patched = client.merge(&format!("{SECOND}/a"), &held).await;
    assert_eq!(metadata(&patched.json()), shown, "{}", patched.text());
    let marked = client.delete(&format!("{SECOND}/a"), &json!(null)).await;
    assert_eq!(metadata(&marked.json()), shown, "{}", marked.text());
    let stored = client.get(&format!("{FOOS}/a")).await.json();
    assert_eq!(stored["metadata"]["labels"], json!({"to": "ex.io-v1"}));
    assert!(stored["metadata"]["deletionTimestamp"].is_string());
}

async fn objects_are_converted_by_a_webhook(on: Backend) {
    let (_server, client, webhook) = with_webhook(on).await;
    let made = created(&client, SECOND, &foo2("b", &json!({"colour": "red"}))).await;
    assert_eq!(made["apiVersion"], "ex.io/v2");
    assert_eq!(made["spec"], json!({"colour": "red", "size": "m"}));
    created(&client, FOOS, &foo("a", &json!({"color": "tin"}))).await;
    // Writes are validated in the version of the request.
    let long = client
        .post(SECOND, &foo2("c", &json!({"colour": "ultramarine"})))
        .await;
    assert_eq!(long.code, 422, "{}", long.text());
    created(&client, FOOS, &foo("c", &json!({"color": "ultramarine"}))).await;
    webhook.calls();

    let listed = client.get(SECOND).await.json();
    assert_eq!(names(&listed), ["a", "b", "c"]);
    assert_eq!(
        webhook.names(),
        [["a", "b", "c"]],
        "a list is one review, in its order"
    );
    assert_eq!(listed["items"][2]["spec"]["colour"], "ultramarine");
    let page = client.get(&format!("{SECOND}?limit=2")).await.json();
    assert_eq!(names(&page), ["a", "b"]);
    assert_eq!(webhook.names(), [["a", "b"]]);
    let stored = client.get(FOOS).await.json();
    assert_eq!(stored["items"][0]["spec"]["color"], "tin");
    assert_eq!(webhook.names(), [[""; 0]; 0], "nothing to convert");
    let table = client
        .call(
            "GET",
            SECOND,
            &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")],
            "",
        )
        .await
        .json();
    assert_eq!(table["rows"].as_array().unwrap().len(), 3);
    let selected = client
        .get(&format!("{SECOND}?fieldSelector=metadata.name%3Db"))
        .await
        .json();
    assert_eq!(names(&selected), ["b"]);
    let calls = webhook.calls();
    let last = &calls.last().unwrap()["request"];
    assert_eq!(last["desiredAPIVersion"], "ex.io/v2");
    assert_eq!(last["objects"].as_array().unwrap().len(), 1);
    assert!(is_uid(last["uid"].as_str().unwrap()));

    let revision = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = client
        .watch(&format!("{SECOND}?watch=1&resourceVersion={revision}"))
        .await;
    let patched = client
        .merge(&format!("{SECOND}/b"), &json!({"spec": {"colour": "blue"}}))
        .await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    let event = watch.event().await;
    assert_eq!(
        (&event["type"], &event["object"]),
        (&json!("MODIFIED"), &patched.json())
    );
    let scaled = client
        .merge(
            &format!("{SECOND}/b/status"),
            &json!({"status": {"replicas": 2}}),
        )
        .await;
    assert_eq!(scaled.code, 200, "{}", scaled.text());
    assert_eq!(watch.event().await["object"]["status"]["replicas"], 2);

    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = async |path: &str, object: &Value, manager: &str| {
        let path = format!("{path}/d?fieldManager={manager}");
        client
            .call("PATCH", &path, &apply, object.to_string())
            .await
    };
    let one = applied(SECOND, &foo2("d", &json!({"colour": "red"})), "one").await;
    assert_eq!(one.code, 201, "{}", one.text());
    let two = applied(FOOS, &foo("d", &json!({"color": "blue"})), "two").await;
    assert_eq!(two.code, 409, "{}", two.text());
    let two = applied(FOOS, &foo("d", &json!({"size": "l"})), "two").await;
    assert_eq!(two.code, 200, "{}", two.text());
    let one = applied(SECOND, &foo2("d", &json!({"colour": "green"})), "one").await;
    assert_eq!(one.json()["spec"], json!({"colour": "green", "size": "l"}));
    // Entries are sorted by their times, in seconds.
    let mut owners: Vec<(Value, Value)> = one.json()["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["manager"].clone(), entry["apiVersion"].clone()))
        .collect();
    owners.sort_by_key(|(manager, _)| manager.to_string());
    assert_eq!(
        owners,
        [
            (json!("one"), json!("ex.io/v2")),
            (json!("two"), json!("ex.io/v1"))
        ]
    );

    let deleted = client.delete(&format!("{SECOND}/b"), &json!(null)).await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    assert_eq!(client.delete(SECOND, &json!(null)).await.code, 200);
    assert_eq!(names(&client.get(FOOS).await.json()), [""; 0]);
}

async fn another_storage_version_is_converted_by_its_readers(on: Backend) {
    let (cluster, client, webhook) = with_webhook(on).await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    created(&client, FOOS, &foo("b", &json!({"color": "blue"}))).await;
    let writer = cluster.server().client();
    let hash = |resources: &Answer| resources.json()["resources"][0]["storageVersionHash"].clone();
    let before = hash(&writer.get(GROUP).await);
    assert!(before.is_string());
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let mut watch = client.watch(&format!("{SECOND}?watch=1")).await;
    watch.event().await;
    watch.event().await;
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    assert_eq!(
        changed.json()["status"]["storedVersions"],
        json!(["v1", "v2"])
    );
    assert_eq!(watch.next().await, None, "the watch of a changed kind ends");
    // What is written from now on is stored in the other version. Of two servers, the one that takes the writes may know it later.
    until(&writer, GROUP, |answer| hash(answer) != before).await;
    let put = client
        .merge(&format!("{FOOS}/b"), &json!({"spec": {"size": "l"}}))
        .await;
    assert_eq!(put.code, 200, "{}", put.text());
    webhook.calls();
    for (path, field) in [(FOOS, "color"), (SECOND, "colour")] {
        let listed = client.get(path).await.json();
        assert_eq!(names(&listed), ["a", "b"]);
        assert_eq!(listed["items"][0]["spec"][field], "red");
        assert_eq!(listed["items"][1]["spec"][field], "blue");
    }
    // The server's own controllers read the kind too, in its storage version.
    let (to_first, to_second): (Vec<Value>, Vec<Value>) = webhook
        .calls()
        .into_iter()
        .partition(|call| call["request"]["desiredAPIVersion"] == "ex.io/v1");
    let names = |call: &Value| -> Vec<Value> {
        let objects = call["request"]["objects"].as_array().unwrap().iter();
        objects
            .map(|object| object["metadata"]["name"].clone())
            .collect()
    };
    let to_first: Vec<_> = to_first.iter().map(names).collect();
    assert_eq!(to_first, [["b"]], "only those of another version are sent");
    assert!(to_second.iter().map(names).any(|names| names == ["a"]));
    let mut watch = client.watch(&format!("{FOOS}?watch=1")).await;
    let colors = [watch.event().await, watch.event().await];
    let colors = colors.map(|event| event["object"]["spec"]["color"].clone());
    assert_eq!(colors, ["red", "blue"]);
}

async fn what_a_webhook_does_wrong_is_told(on: Backend) {
    let (_server, client, webhook) = with_webhook(on).await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    let one = format!("{SECOND}/a");
    let object = |change: fn(&mut Value)| {
        Reply::change(move |review| change(&mut review["response"]["convertedObjects"][0]))
    };
    let response =
        |change: fn(&mut Value)| Reply::change(move |review| change(&mut review["response"]));
    let elsewhere = format!("{}/elsewhere", webhook.url());
    for (reply, why) in [
        (
            object(|it| it["kind"] = json!("Bar")),
            "returned invalid object at index 0: invalid kind (expected Foo, received Bar)",
        ),
        (
            object(|it| it["apiVersion"] = json!("ex.io/v1")),
            "returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v1)",
        ),
        (
            object(|it| it["metadata"]["uid"] = json!("")),
            "returned invalid object: must have the same UID: $UID != ",
        ),
        (
            object(|it| it["apiVersion"] = json!(null)),
            "returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received )",
        ),
        (
            response(|it| it["convertedObjects"] = json!([])),
            "returned 0 objects, expected 1",
        ),
        (
            response(|it| it["convertedObjects"] = json!([{}, {}])),
            "returned 2 objects, expected 1",
        ),
        (
            response(|it| it["uid"] = json!("1")),
            "failed: expected response.uid=\"$CALL\", got \"1\"",
        ),
        (
            response(|it| *it = json!(null)),
            "failed: no response provided",
        ),
        (
            response(|it| it["result"] = json!({"status": "Failure", "message": "no paint left"})),
            "failed: no paint left",
        ),
        (
            response(|it| it["result"] = json!({})),
            "failed: response.result.status was '', not 'Success'",
        ),
        (
            Reply::change(|it| it["kind"] = json!("Review")),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Review",
        ),
        (
            Reply::Text(200, "no JSON"),
            "failed: the response is not a ConversionReview: expected ident at line 1 column 2",
        ),
        (
            Reply::Text(404, "404 page not found"),
            "failed: the server could not find the requested resource",
        ),
        (
            Reply::Text(500, "out of paint"),
            "failed: an error on the server (\"out of paint\") has prevented the request from succeeding",
        ),
        (
            Reply::Redirect(elsewhere),
            "failed: the server redirects (code 307), which is not followed",
        ),
    ] {
        webhook.calls();
        webhook.reply(reply);
        let answer = client.get(&one).await;
        let call = webhook.calls();
        assert_eq!(call.len(), 1, "no call is repeated");
        let object = &call[0]["request"]["objects"][0];
        let why = why.replace("$UID", object["metadata"]["uid"].as_str().unwrap());
        let why = why.replace("$CALL", call[0]["request"]["uid"].as_str().unwrap());
        check_failed(&answer, &why);
    }
    // A response without an end is read up to a limit.
    webhook.reply(Reply::Endless);
    let answer = client.get(&one).await;
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the response is longer than"), "{message}");

    // One wrong object of a list fails the whole list, also a page, and ends a watch.
    created(&client, FOOS, &foo("b", &json!({}))).await;
    webhook.reply(Reply::change(|review| {
        let objects = review["response"]["convertedObjects"]
            .as_array_mut()
            .unwrap();
        let last = objects.last_mut().unwrap();
        if last["metadata"]["name"] == "b" {
            last["metadata"]["name"] = json!("c");
        }
    }));
    let why = "returned invalid converted object at index 1: must have the same name: b != c";
    check_failed(&client.get(SECOND).await, why);
    check_failed(&client.get(&format!("{SECOND}?limit=2")).await, why);
    let mut watch = client.watch(&format!("{SECOND}?watch=1")).await;
    assert_eq!(watch.event().await["object"]["metadata"]["name"], "a");
    let error = watch.next().await.unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(
        error["object"]["message"],
        format!("{BEGIN} returned invalid object: must have the same name: b != c")
    );
    assert_eq!(watch.next().await, None);

    // Writes fail too, and change nothing.
    webhook.reply(Reply::Text(503, ""));
    let why = "failed: the server is currently unable to handle the request";
    let failed = client.post(SECOND, &foo2("d", &json!({}))).await;
    assert_eq!(failed.code, 500, "{}", failed.text());
    assert_eq!(
        failed.json()["message"],
        format!("conversion webhook for ex.io/v2, Kind=Foo {why}")
    );
    check_failed(
        &client.merge(&one, &json!({"spec": {"colour": "x"}})).await,
        why,
    );
    assert_eq!(names(&client.get(FOOS).await.json()), ["a", "b"]);
    let deleted = client.delete(&format!("{FOOS}/a"), &json!(null)).await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    // The definition goes with its objects, without the webhook.
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    until(&client, &path("foos"), |answer| answer.code == 404).await;
}

async fn a_webhook_that_does_not_answer_holds_up_its_own_requests_alone(on: Backend) {
    let (mut cluster, client, webhook) = with_webhook(on).await;
    establish(&client, &definition("bars", "Bar", &json!({}))).await;
    let mut large = foo("a", &json!({"color": "red"}));
    large["metadata"]["annotations"] = json!({"large": "x".repeat(100_000)});
    created(&client, FOOS, &large).await;
    webhook.reply(Reply::Hang);
    webhook.calls();
    let hanging: Vec<_> = (0..150)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                if number % 3 == 0 {
                    return client.get(&format!("{SECOND}?timeoutSeconds=20")).await;
                }
                let patch = json!({"spec": {"colour": "blue"}});
                client
                    .merge(&format!("{SECOND}/a?timeout=20s"), &patch)
                    .await
            })
        })
        .collect();
    let started = Instant::now();
    while webhook.number_of_calls() < 32 {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "nobody asks the webhook"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The other version and other kinds, large objects too, do not wait. The requests that hang fill the streams of their
    // connection.
    let client = cluster.client();
    let begun = Instant::now();
    assert_eq!(client.get(&format!("{FOOS}/a")).await.code, 200);
    let bars = "/apis/ex.io/v1/namespaces/default/bars";
    let mut bar = json!({"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": {"name": "b"}});
    bar["metadata"]["annotations"] = json!({"large": "x".repeat(100_000)});
    created(&client, bars, &bar).await;
    created(&client, FLUNDERS, &flunder("f")).await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    // A request ends at its own deadline.
    let short = client.get(&format!("{SECOND}/a?timeout=1s")).await;
    assert_eq!(short.code, 504, "{}", short.text());
    let mut watch = client.watch(&format!("{SECOND}?watch=1")).await;
    for hanging in &hanging {
        hanging.abort();
    }
    // A server that stops ends watches; requests in flight have their time.
    drop(hanging);
    let begun = Instant::now();
    let stopping = std::thread::spawn(move || cluster.stop());
    assert_eq!(watch.next().await, None);
    tokio::task::block_in_place(|| stopping.join().unwrap());
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

async fn a_changed_configuration_applies_to_the_next_request(on: Backend) {
    let (_server, client, first) = with_webhook(on).await;
    let second = Webhook::start().await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    let one = format!("{SECOND}/a");
    assert_eq!(client.get(&one).await.code, 200);
    let config = async |config: Value| {
        let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": config}]);
        let changed = client.json_patch(&path("foos"), &patch).await;
        assert_eq!(changed.code, 200, "{}", changed.text());
    };
    // The other webhook has another authority.
    config(json!({"url": second.url(), "caBundle": first.ca_bundle})).await;
    let distrusted = until(&client, &one, |answer| answer.code == 500).await;
    let message = distrusted.json()["message"].as_str().unwrap().to_owned();
    let post = format!(
        "{BEGIN} failed: Post \"{}?timeout=30s\": cannot connect",
        second.url()
    );
    assert!(
        message.starts_with(&post) && message.contains("certificate"),
        "{message}"
    );
    first.calls();
    second.calls();
    config(by_url(&second)).await;
    until(&client, &one, |answer| answer.code == 200).await;
    assert!(first.calls().is_empty() && !second.calls().is_empty());
    // A certificate for another name.
    let other = second.url().replace("127.0.0.1", "127.0.0.2");
    config(json!({"url": other, "caBundle": second.ca_bundle})).await;
    until(&client, &one, |answer| answer.code == 500).await;
    let gone = second.url();
    drop(second);
    config(json!({"url": gone, "caBundle": first.ca_bundle})).await;
    let refused = until(&client, &one, |answer| answer.text().contains("refused")).await;
    assert_eq!(refused.code, 500);
    config(by_url(&first)).await;
    until(&client, &one, |answer| answer.code == 200).await;
}

async fn a_service_is_found_by_the_map(on: Backend) {
    let webhook = Webhook::start().await;
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("services.yaml");
    let text = format!("default/hook:8443: https://{}\n", webhook.address);
    std::fs::write(&map, text).unwrap();
    let flag = format!("--service-resolver={}", map.display());
    let cluster = Cluster::start_with(on, &[&flag]);
    let client = cluster.client();
    let service = |port: Value| {
        let service =
            json!({"namespace": "default", "name": "hook", "path": "/convert", "port": port});
        json!({"service": service, "caBundle": webhook.ca_bundle})
    };
    establish(&client, &definition_of(&service(json!(8443)))).await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    let one = format!("{SECOND}/a");
    let shown = client.get(&one).await;
    assert_eq!(shown.json()["spec"]["colour"], "red", "{}", shown.text());
    let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": service(json!(null))}]);
    assert_eq!(client.json_patch(&path("foos"), &patch).await.code, 200);
    let unknown = until(&client, &one, |answer| answer.code == 500).await;
    check_failed(
        &unknown,
        "failed: Post \"https://hook.default.svc:443/convert?timeout=30s\": no service port 443 found for service \"hook\" in namespace \"default\"",
    );
}

/// Go accepts a certificate that is one of the given roots, whether or not it is an authority's.
async fn a_webhook_is_trusted_by_its_own_certificate(on: Backend) {
    let (_server, client) = server(on);
    let first = Webhook::start_signed_by(SignedBy::ItselfAsAuthority).await;
    let second = Webhook::start_signed_by(SignedBy::Itself).await;
    establish(&client, &definition_of(&by_url(&first))).await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    let one = format!("{SECOND}/a");
    let config = async |config: Value| {
        let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": config}]);
        let patched = client.json_patch(&path("foos"), &patch).await;
        assert_eq!(patched.code, 200, "{}", patched.text());
    };
    until(&client, &one, |answer| answer.code == 200).await;
    // Another one's, and one of another name.
    config(json!({"url": first.url(), "caBundle": second.ca_bundle})).await;
    let refused = until(&client, &one, |answer| answer.code == 500).await;
    assert!(refused.text().contains("certificate"), "{}", refused.text());
    config(by_url(&second)).await;
    until(&client, &one, |answer| answer.code == 200).await;
    let other = second.url().replace("127.0.0.1", "127.0.0.2");
    config(json!({"url": other, "caBundle": second.ca_bundle})).await;
    until(&client, &one, |answer| answer.code == 500).await;
    config(by_url(&first)).await;
    until(&client, &one, |answer| answer.code == 200).await;
}

async fn an_empty_line_is_no_authority(on: Backend) {
    let (_server, client) = server(on);
    let webhook = Webhook::start().await;
    let config = json!({"url": webhook.url(), "caBundle": "Cg=="});
    created(&client, CRDS, &definition_of(&config)).await;
    until(&client, &path("foos"), |answer| {
        let found = condition(&answer.json(), "Established");
        found == Some(("False".to_owned(), "InvalidCABundle".to_owned()))
    })
    .await;
    let patch = |bundle: &str| json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}]);
    let good = patch(&webhook.ca_bundle);
    let mended = client.json_patch(&path("foos"), &good).await;
    assert_eq!(mended.code, 200, "{}", mended.text());
    until(&client, &path("foos"), |answer| {
        is_true(&answer.json(), "Established")
    })
    .await;
    let refused = client.json_patch(&path("foos"), &patch("Cg==")).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let message = "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"Cg==\": unable to load root certificates: unable to \
        parse bytes as PEM block";
    let found = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(found.ends_with(message), "{found}");
}

async fn a_definition_with_malformed_authorities_waits_for_better_ones(on: Backend) {
    let (_server, client) = server(on);
    let webhook = Webhook::start().await;
    // "nonsense".
    let config = json!({"url": webhook.url(), "caBundle": "bm9uc2Vuc2U="});
    created(&client, CRDS, &definition_of(&config)).await;
    let waiting = until(&client, &path("foos"), |answer| {
        let definition = answer.json();
        condition(&definition, "Established")
            == Some(("False".to_owned(), "InvalidCABundle".to_owned()))
    })
    .await;
    assert!(is_true(&waiting.json(), "NamesAccepted"));
    let patch = |bundle: &str| json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}]);
    let mended = client
        .json_patch(&path("foos"), &patch(&webhook.ca_bundle))
        .await;
    assert_eq!(mended.code, 200, "{}", mended.text());
    until(&client, &path("foos"), |answer| {
        is_true(&answer.json(), "Established")
    })
    .await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    until(&client, &format!("{SECOND}/a"), |answer| answer.code == 200).await;
    let refused = client
        .json_patch(&path("foos"), &patch("bm9uc2Vuc2U="))
        .await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let message = "CustomResourceDefinition.apiextensions.k8s.io \"foos.ex.io\" is invalid: \
        spec.conversion.webhookClientConfig.caBundle: Invalid value: \"bm9uc2Vuc2U=\": unable to load root certificates: \
        unable to parse bytes as PEM block";
    assert_eq!(refused.json()["message"], message);
    let refused = client
        .json_patch(&path("foos"), &json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig/url", "value": "http://a/?b#c"}]))
        .await;
    let causes = refused.json()["details"]["causes"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!((refused.code, causes), (422, 3), "{}", refused.text());
}

async fn calls_of_webhooks_are_counted(on: Backend) {
    let (_server, client, webhook) = with_webhook(on).await;
    // One object for each call: with the watch cache, a conversion is shared by the readers of an unchanged object.
    for name in ["a", "b", "c"] {
        created(&client, FOOS, &foo(name, &json!({"color": "red"}))).await;
    }
    assert_eq!(client.get(&format!("{SECOND}/a")).await.code, 200);
    webhook.reply(Reply::change(|review| {
        review["response"]["convertedObjects"] = json!([]);
    }));
    assert_eq!(client.get(&format!("{SECOND}/b")).await.code, 500);
    webhook.reply(Reply::Text(500, ""));
    assert_eq!(client.get(&format!("{SECOND}/c")).await.code, 500);
    let metrics = client.get("/metrics").await.text();
    for line in [
        "apiserver_conversion_webhook_request_total{result=\"success\",failure_type=\"\"} 1",
        "apiserver_conversion_webhook_request_total{result=\"failure\",failure_type=\"conversion_webhook_partial_response_failure\"} 1",
        "apiserver_conversion_webhook_request_total{result=\"failure\",failure_type=\"conversion_webhook_call_failure\"} 1",
        "apiserver_conversion_webhook_duration_seconds_count{result=\"success\",failure_type=\"\"} 1",
        "apiserver_crd_conversion_webhook_duration_seconds_count{crd_name=\"foos.ex.io\",from_version=\"v1\",to_version=\"v2\",succeeded=\"true\"} 1",
        "apiserver_crd_conversion_webhook_duration_seconds_count{crd_name=\"foos.ex.io\",from_version=\"v1\",to_version=\"v2\",succeeded=\"false\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
}

/// Objects without finalizers need no conversion to be deleted with their definition.
async fn a_definition_is_deleted_although_its_webhook_fails(on: Backend) {
    let (cluster, client, webhook) = with_webhook(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    let held = json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "held", "finalizers": ["ex.io/held"]}});
    created(&client, FOOS, &held).await;
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let writer = cluster.server().client();
    let hash = |resources: &Answer| resources.json()["resources"][0]["storageVersionHash"].clone();
    let before = hash(&writer.get(GROUP).await);
    assert_eq!(client.json_patch(&path("foos"), &patch).await.code, 200);
    until(&writer, GROUP, |answer| hash(answer) != before).await;
    webhook.reply(Reply::Text(500, "gone"));
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    // One with a finalizer is kept, and the condition says why.
    until(&client, &path("foos"), |answer| {
        let terminating = condition(&answer.json(), "Terminating");
        terminating.is_some_and(|(_, reason)| reason == "InstanceDeletionFailed")
    })
    .await;
    let held = format!("{FOOS}/held");
    until(&client, &format!("{FOOS}/a"), |answer| answer.code == 404).await;
    webhook.reply(Reply::Convert);
    let patch = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    let freed = client.json_patch(&held, &patch).await;
    assert_eq!(freed.code, 200, "{}", freed.text());
    until(&client, &path("foos"), |answer| answer.code == 404).await;
}
