//! The formats and forms of requests and responses.

use serde_json::json;

use crate::*;

on_each_backend![
    c_015_json_unless_another_format_is_asked_for,
    c_019_an_error_is_a_status_in_every_form,
    c_020_the_status_of_a_delete_is_a_status_in_every_form,
    c_021_the_type_of_a_table_has_no_parameters,
    c_022_browsers_and_curl_get_indented_json,
    c_023_markup_is_escaped_in_json,
    c_024_items_of_a_list_have_no_kind,
    c_025_the_format_of_a_body_is_that_of_its_header,
    c_026_a_kind_without_merge_keys_has_no_strategic_merge_patch,
    c_027_a_body_has_at_most_3_mib,
    c_028_large_responses_are_compressed_for_clients_that_ask,
    c_031_a_body_may_omit_its_kind,
    c_032_a_watch_as_a_table_defines_its_columns_once,
    c_033_rows_of_a_table_have_the_object_that_is_asked_for,
    c_071_the_manager_of_fields_is_the_user_agent,
    c_072_owners_are_named_once,
    c_078_a_wrong_uid_is_a_conflict_of_a_put_and_a_change_of_a_patch,
];

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

async fn get_as(client: &Client, path: &str, accept: &str) -> Answer {
    client.call("GET", path, &[("accept", accept)], "").await
}

/// A GET by a user agent.
async fn get_by(client: &Client, path: &str, agent: &str) -> String {
    let answer = client.call("GET", path, &[("user-agent", agent)], "").await;
    assert_eq!(answer.code, 200);
    answer.text()
}

async fn c_015_json_unless_another_format_is_asked_for(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    check(&client.get(&item).await, 200, &object);
    for accept in ["*/*", "application/json", "text/html, */*;q=0.1", ""] {
        check(&get_as(&client, &item, accept).await, 200, &object);
    }
    for accept in ["application/*", "text/html"] {
        let answer = get_as(&client, &item, accept).await;
        assert_eq!(answer.code, 406, "{accept}");
        let status = answer.json();
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"),
            "{message}"
        );
        assert_eq!(
            (&status["reason"], &status["details"]),
            (&json!("NotAcceptable"), &json!({}))
        );
    }
}

async fn c_019_an_error_is_a_status_in_every_form(on: Backend) {
    let (_server, client) = server(on);
    let message = r#"flunders.wardle.example.com "missing" not found"#;
    for accept in [TABLE, METADATA] {
        let answer = get_as(&client, &format!("{FLUNDERS}/missing"), accept).await;
        check_failure(&answer, 404, "NotFound", message, about("missing"));
    }
}

async fn c_020_the_status_of_a_delete_is_a_status_in_every_form(on: Backend) {
    let (_server, client) = server(on);
    for (name, accept) in [("a", TABLE), ("b", METADATA)] {
        let uid = created(&client, FLUNDERS, &flunder(name)).await["metadata"]["uid"].clone();
        let item = format!("{FLUNDERS}/{name}");
        let answer = client
            .call("DELETE", &item, &[("accept", accept)], "")
            .await;
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": name, "group": "wardle.example.com", "kind": "flunders", "uid": uid},
        });
        check(&answer, 200, &status);
    }
}

async fn c_021_the_type_of_a_table_has_no_parameters(on: Backend) {
    let (_server, client) = server(on);
    let answer = get_as(&client, FLUNDERS, TABLE).await;
    assert_eq!(answer.json()["kind"], "Table");
    assert_eq!(answer.header_all("content-type"), ["application/json"]);
}

async fn c_022_browsers_and_curl_get_indented_json(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let compact = get_by(&client, &item, "kubectl/v1.36.0").await;
    assert!(compact.starts_with("{\"kind\":\"Flunder\",") && compact.ends_with("}\n"));
    assert_eq!(compact.lines().count(), 1);
    let object: Value = serde_json::from_str(&compact).unwrap();
    for agent in ["curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11; Linux x86_64)"] {
        let indented = get_by(&client, &item, agent).await;
        assert!(
            indented.starts_with("{\n  \"kind\": \"Flunder\",\n") && indented.ends_with("\n}"),
            "{agent}: {indented:?}"
        );
        assert_eq!(serde_json::from_str::<Value>(&indented).unwrap(), object);
        let path = format!("{item}?pretty=false");
        assert_eq!(get_by(&client, &path, agent).await, compact, "{agent}");
    }
    let asked = get_by(&client, &format!("{item}?pretty=true"), "kubectl/v1").await;
    assert!(asked.starts_with("{\n  \"kind\"") && asked.ends_with("\n}"));
    // A list is indented as one document; a stream never is.
    let list = get_by(&client, FLUNDERS, "curl/8").await;
    assert!(list.starts_with("{\n  \"kind\": \"FlunderList\",\n") && list.ends_with("\n}"));
    let mut watch = client
        .watch(&format!("{FLUNDERS}?watch=1&pretty=true"))
        .await;
    assert_eq!(watch.event().await["object"], object);
}

async fn c_023_markup_is_escaped_in_json(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    let text = "<a href='x'>&\u{2028}\u{2029}";
    object["metadata"]["annotations"] = json!({"text": text});
    created(&client, FLUNDERS, &object).await;
    let answer = client.get(&format!("{FLUNDERS}/a")).await;
    assert_eq!(answer.json()["metadata"]["annotations"]["text"], text);
    let written = r#""text":"\u003ca href='x'\u003e\u0026\u2028\u2029""#;
    assert!(answer.text().contains(written), "{}", answer.text());
    let list = client.get(FLUNDERS).await.text();
    assert!(list.contains(written), "{list}");
    let mut watch = client.watch(&format!("{FLUNDERS}?watch=1")).await;
    let line = watch.line().await.unwrap();
    assert!(line.contains(written), "{line}");
}

async fn c_024_items_of_a_list_have_no_kind(on: Backend) {
    let (_server, client) = server(on);
    let mut object = created(&client, FLUNDERS, &flunder("a")).await;
    let fields = object.as_object_mut().unwrap();
    fields.retain(|key, _| key != "kind" && key != "apiVersion");
    let list = json!({
        "kind": "FlunderList", "apiVersion": "wardle.example.com/v1alpha1",
        "metadata": {"resourceVersion": "$RV"}, "items": [object],
    });
    check(&client.get(FLUNDERS).await, 200, &list);
}

async fn c_025_the_format_of_a_body_is_that_of_its_header(on: Backend) {
    let (_server, client) = server(on);
    let post = async |name: &str, headers: &[(&str, &str)]| {
        client
            .call("POST", FLUNDERS, headers, flunder(name).to_string())
            .await
    };
    let answer = post("a", &[("content-type", "text/plain")]).await;
    let status = answer.json();
    let message = status["message"].as_str().unwrap();
    assert_eq!(
        (answer.code, &status["reason"]),
        (415, &json!("UnsupportedMediaType"))
    );
    let listed = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert!(message.starts_with(listed), "{message}");
    assert_eq!(post("b", &[]).await.code, 201);
    let charset = [("content-type", "application/json; charset=iso-8859-1")];
    assert_eq!(post("c", &charset).await.code, 201);
    let yaml = "metadata:\n  name: d\n---\nmetadata:\n  name: ignored\n";
    let headers = [("content-type", "application/yaml")];
    let answer = client.call("POST", FLUNDERS, &headers, yaml).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(names(&client.get(FLUNDERS).await.json()), ["b", "c", "d"]);
}

async fn c_026_a_kind_without_merge_keys_has_no_strategic_merge_patch(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let answer = client.strategic(&item, &json!({})).await;
    let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    check_failure(&answer, 415, "UnsupportedMediaType", message, json!(null));
    // What no kind takes.
    let headers = [("content-type", "application/json")];
    let answer = client.call("PATCH", &item, &headers, "{}").await;
    let message = "415: Unsupported Media Type";
    check_failure(&answer, 415, "UnsupportedMediaType", message, json!({}));
}

async fn c_027_a_body_has_at_most_3_mib(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let body = " ".repeat(3 * 1024 * 1024 + 1);
    for (method, path, kind) in [
        ("POST", FLUNDERS, "application/json"),
        ("PUT", &item, "application/json"),
        ("PATCH", &item, "application/merge-patch+json"),
        ("DELETE", &item, "application/json"),
    ] {
        let headers = [("content-type", kind)];
        let answer = client.call(method, path, &headers, body.clone()).await;
        let message = "Request entity too large: limit is 3145728";
        check_failure(&answer, 413, "RequestEntityTooLarge", message, json!(null));
    }
    // One byte less is read.
    let mut body = flunder("b").to_string();
    body.push_str(&" ".repeat(3 * 1024 * 1024 - body.len()));
    let headers = [("content-type", "application/json")];
    assert_eq!(
        client.call("POST", FLUNDERS, &headers, body).await.code,
        201
    );
}

async fn c_028_large_responses_are_compressed_for_clients_that_ask(on: Backend) {
    let (_server, client) = server(on);
    let item = format!("{FLUNDERS}/a");
    let gzip = [("accept-encoding", "gzip")];
    created(&client, FLUNDERS, &flunder("a")).await;
    let small = client.call("GET", &item, &gzip, "").await;
    assert_eq!((small.code, small.header("content-encoding")), (200, ""));
    let text = "x".repeat(140_000);
    let patch = json!({"metadata": {"annotations": {"text": text}}});
    let object = client.merge(&item, &patch).await.json();
    for path in [FLUNDERS, &item] {
        let plain = client.get(path).await;
        assert_eq!(plain.header("content-encoding"), "", "{path}");
        let packed = client.call("GET", path, &gzip, "").await;
        assert_eq!(packed.header("content-encoding"), "gzip", "{path}");
        assert_eq!(packed.header("vary"), "Accept-Encoding", "{path}");
        assert!(packed.body.len() < plain.body.len() / 10, "{path}");
        assert_eq!(packed.body[..2], [0x1f, 0x8b], "{path}");
    }
    // A stream is not.
    let mut watch = client.watch(&format!("{FLUNDERS}?watch=1")).await;
    assert_eq!(watch.header("content-encoding"), "");
    assert_eq!(watch.event().await["object"], object);
}

async fn c_031_a_body_may_omit_its_kind(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("Flunder"), &json!("wardle.example.com/v1alpha1"))
    );
    let body = json!({"metadata": {"name": "a", "labels": {"b": "c"}}});
    let answer = client.put(&format!("{FLUNDERS}/a"), &body).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["kind"], "Flunder");
}

async fn c_032_a_watch_as_a_table_defines_its_columns_once(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    created(&client, FLUNDERS, &flunder("b")).await;
    let path = format!(
        "{FLUNDERS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let mut watch = client.watch_as(&path, TABLE).await;
    let first = watch.next().await.unwrap();
    let columns = first["object"]["columnDefinitions"].as_array().unwrap();
    let count = columns.len();
    assert_eq!(columns[0]["format"], "name");
    let second = watch.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], json!(null));
    for (event, name) in [(&first, "a"), (&second, "b")] {
        assert_eq!(event["type"], "ADDED");
        let rows = event["object"]["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["cells"][0]), (1, &json!(name)));
        assert_eq!(rows[0]["cells"].as_array().unwrap().len(), count);
    }
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let table = &bookmark["object"];
    assert_eq!(
        (&table["kind"], &table["columnDefinitions"]),
        (&json!("Table"), &json!(null))
    );
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    let metadata = &rows[0]["object"]["metadata"];
    assert_eq!(
        (&rows[0]["object"]["kind"], &metadata["annotations"]),
        (
            &json!("PartialObjectMetadata"),
            &json!({"k8s.io/initial-events-end": "true"})
        )
    );
    assert_eq!(
        metadata["resourceVersion"],
        table["metadata"]["resourceVersion"]
    );
}

async fn c_033_rows_of_a_table_have_the_object_that_is_asked_for(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let row = async |query: &str| {
        let path = format!("{FLUNDERS}?includeObject={query}");
        let table = get_as(&client, &path, TABLE).await.json();
        assert!(table["rows"][0].as_object().unwrap().contains_key("object"));
        table["rows"][0]["object"].clone()
    };
    assert_eq!(row("None").await, json!(null));
    assert_eq!(row("Object").await, object);
    let metadata = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
    });
    assert_eq!(row("Metadata").await, metadata);
    assert_eq!(row("").await, metadata);
    let answer = get_as(&client, &format!("{FLUNDERS}?includeObject=Bad"), TABLE).await;
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Bad\": must be 'Metadata', 'Object', 'None', or empty";
    check_failure(&answer, 400, "BadRequest", message, json!(null));
}

async fn c_071_the_manager_of_fields_is_the_user_agent(on: Backend) {
    let (_server, client) = server(on);
    let long = "m".repeat(200);
    for (name, agent, query, manager) in [
        ("a", "kubectl/v1.36 (linux/amd64)", "", "kubectl"),
        ("b", "tool", "", "tool"),
        ("c", "", "", "unknown"),
        ("d", &*long, "", &long[..128]),
        ("e", "tool/1", "?fieldManager=me", "me"),
    ] {
        let mut object = flunder(name);
        object["metadata"]["labels"] = json!({"a": "b"});
        let headers = [("content-type", "application/json"), ("user-agent", agent)];
        let path = format!("{FLUNDERS}{query}");
        let answer = client
            .call("POST", &path, &headers, object.to_string())
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        let entry = &answer.json()["metadata"]["managedFields"][0];
        assert_eq!(
            (&entry["manager"], &entry["operation"]),
            (&json!(manager), &json!("Update"))
        );
    }
}

async fn c_072_owners_are_named_once(on: Backend) {
    let (_server, client) = server(on);
    let owner = json!({"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u1"});
    let other = json!({"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u2"});
    let mut object = flunder("a");
    object["metadata"]["ownerReferences"] = json!([owner, other, owner]);
    let warning = r#"299 - ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1""#;
    let answers = [
        client.post(FLUNDERS, &object).await,
        client.put(&format!("{FLUNDERS}/a"), &object).await,
    ];
    for answer in answers {
        assert!(answer.code < 300, "{}", answer.text());
        assert_eq!(answer.header_all("warning"), [warning]);
        assert_eq!(
            answer.json()["metadata"]["ownerReferences"],
            json!([owner, other])
        );
    }
}

async fn c_078_a_wrong_uid_is_a_conflict_of_a_put_and_a_change_of_a_patch(on: Backend) {
    let (server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let mut other = flunder("a");
    other["metadata"]["uid"] = json!("other");
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let message = format!(
        r#"Operation cannot be fulfilled on flunders.wardle.example.com "a": StorageError: invalid object, Code: 4, Key: {}/registry/wardle.example.com/flunders/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}"#,
        server.prefix(),
    );
    let answer = client.put(&item, &other).await;
    check_failure(&answer, 409, "Conflict", &message, about("a"));
    let answer = client
        .merge(&item, &json!({"metadata": {"uid": "other"}}))
        .await;
    let body = r#"Invalid value: "other": field is immutable"#;
    let message = format!(r#"Flunder.wardle.example.com "a" is invalid: metadata.uid: {body}"#);
    let details = invalid("a", &[("FieldValueInvalid", body, "metadata.uid")]);
    check_failure(&answer, 422, "Invalid", &message, details);
    check(&client.get(&item).await, 200, &object);
}
