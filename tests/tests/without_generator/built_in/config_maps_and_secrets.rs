//! core/v1 ConfigMap and Secret.

use serde_json::{Value, json};

use super::BuiltIns;

fn named(name: &str, fields: Value) -> Value {
    let mut object = json!({"metadata": {"name": name}});
    for (field, value) in fields.as_object().unwrap() {
        object[field] = value.clone();
    }
    object
}

#[tokio::test]
async fn a_config_map_has_text_and_bytes() {
    let server = BuiltIns::new().await;
    let fields = json!({"data": {"b": "2", "a": "1"}, "binaryData": {"c": "AAE="}});
    let created = server
        .object("POST", "configmaps", named("m", fields))
        .await;
    let expected = json!({
        "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "namespace": "default"},
        "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="},
    });
    assert_eq!(created, expected);
    let url = "/api/v1/namespaces/default/configmaps";
    let row = server.row(url).await;
    assert_eq!(
        (&row[0], &row[1]),
        (&json!(["Name", "m"]), &json!(["Data", 3]))
    );
    assert_eq!(row[2][0], "Age");
    server.stop().await;
}

#[tokio::test]
async fn keys_and_sizes_of_config_maps_are_checked() {
    let server = BuiltIns::new().await;
    let check = async |fields: Value, expected: &str| {
        let refused = server
            .refusal("POST", "configmaps", named("m", fields))
            .await;
        assert_eq!(refused, expected);
    };
    let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    check(
        json!({"data": {"a b": ""}}),
        &format!("data[a b]: Invalid value: \"a b\": {rule}"),
    )
    .await;
    check(
        json!({"binaryData": {"a/b": ""}}),
        &format!("binaryData[a/b]: Invalid value: \"a/b\": {rule}"),
    )
    .await;
    check(
        json!({"data": {"..": ""}}),
        "data[..]: Invalid value: \"..\": must not be '..'",
    )
    .await;
    check(
        json!({"data": {"..a": ""}}),
        "data[..a]: Invalid value: \"..a\": must not start with '..'",
    )
    .await;
    let twice = json!({"data": {"a": "1"}, "binaryData": {"a": ""}});
    check(
        twice,
        "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
    )
    .await;
    let half = "x".repeat(512 * 1024);
    let fits = json!({"data": {"a": half, "b": half}});
    server
        .object("POST", "configmaps", named("fits", fits))
        .await;
    let exceeds = json!({"data": {"a": half, "b": half, "c": "x"}});
    check(exceeds, "[]: Too long: may not be more than 1048576 bytes").await;
    server.stop().await;
}

#[tokio::test]
async fn immutable_data_stays_as_it_is() {
    let server = BuiltIns::new().await;
    let why = "Forbidden: field is immutable when `immutable` is set";
    for (plural, bag, value) in [
        ("configmaps", "data", "MQ=="),
        ("configmaps", "binaryData", "MQ=="),
        ("secrets", "data", "MQ=="),
    ] {
        let name = bag.to_lowercase();
        let url = format!("{plural}/{name}");
        server
            .object(
                "POST",
                plural,
                named(&name, json!({bag: {"a": value}, "immutable": true})),
            )
            .await;
        let changed = named(&name, json!({bag: {"a": "Mg=="}}));
        let refused = server.refusal("PUT", &url, changed).await;
        assert_eq!(refused, format!("[immutable: {why}, {bag}: {why}]"));
        // The metadata is not part of the data.
        let mut labelled = named(&name, json!({bag: {"a": value}, "immutable": true}));
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let labelled = server.object("PUT", &url, labelled).await;
        assert_eq!(labelled["metadata"]["labels"]["a"], "b");
    }
    server.stop().await;
}

#[tokio::test]
async fn text_of_a_secret_becomes_its_data() {
    let server = BuiltIns::new().await;
    let fields = json!({"data": {"a": "MQ==", "b": "MQ=="}, "stringData": {"b": "2", "c": "3"}});
    let created = server.object("POST", "secrets", named("s", fields)).await;
    let expected = json!({
        "kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "default"},
        "data": {"a": "MQ==", "b": "Mg==", "c": "Mw=="}, "type": "Opaque",
    });
    assert_eq!(created, expected);
    let got = server.object("GET", "secrets/s", Value::Null).await;
    assert_eq!(got, expected);
    let put = named("s", json!({"stringData": {"a": "x"}, "type": ""}));
    let updated = server.object("PUT", "secrets/s", put).await;
    assert_eq!(
        (&updated["data"], &updated["type"]),
        (&json!({"a": "eA=="}), &json!("Opaque"))
    );
    let row = server
        .row("/api/v1/namespaces/default/secrets?fieldSelector=type=Opaque")
        .await;
    assert_eq!(
        (&row[1], &row[2]),
        (&json!(["Type", "Opaque"]), &json!(["Data", 1]))
    );
    let (_, none) = server
        .send(
            "GET",
            "secrets?fieldSelector=type=kubernetes.io/tls",
            &Value::Null,
        )
        .await;
    assert_eq!(none["items"], json!([]));
    let (code, status) = server
        .send("POST", "secrets", &named("t", json!({"data": {"a": "?"}})))
        .await;
    assert_eq!(code, 400, "{status}");
    server.stop().await;
}

#[tokio::test]
async fn types_of_secrets_ask_for_their_data() {
    let server = BuiltIns::new().await;
    let check = async |name: &str, data: Value, expected: &str| {
        let secret = named("s", json!({"type": name, "stringData": data}));
        if expected.is_empty() {
            server.object("POST", "secrets?dryRun=All", secret).await;
        } else {
            assert_eq!(server.refusal("POST", "secrets", secret).await, expected);
        }
    };
    check("any/thing", json!({}), "").await;
    check(
        "kubernetes.io/tls",
        json!({}),
        "[data[tls.crt]: Required value, data[tls.key]: Required value]",
    )
    .await;
    check(
        "kubernetes.io/tls",
        json!({"tls.crt": "", "tls.key": ""}),
        "",
    )
    .await;
    check(
        "kubernetes.io/basic-auth",
        json!({}),
        "[data[%s][username]: Required value, data[%s][password]: Required value]",
    )
    .await;
    check("kubernetes.io/basic-auth", json!({"password": ""}), "").await;
    check(
        "kubernetes.io/ssh-auth",
        json!({"ssh-privatekey": ""}),
        "data[%s][ssh-privatekey]: Required value",
    )
    .await;
    check("kubernetes.io/ssh-auth", json!({"ssh-privatekey": "k"}), "").await;
    check(
        "kubernetes.io/dockercfg",
        json!({}),
        "data[.dockercfg]: Required value",
    )
    .await;
    check("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "{"}), "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input").await;
    check("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "[]"}), "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal array into Go value of type map[string]interface {}").await;
    check("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "hunter2"}), "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'h' looking for beginning of value").await;
    check(
        "kubernetes.io/dockerconfigjson",
        json!({".dockerconfigjson": "{}"}),
        "",
    )
    .await;
    check(
        "kubernetes.io/service-account-token",
        json!({}),
        "metadata.annotations[kubernetes.io/service-account.name]: Required value",
    )
    .await;
    let big = "x".repeat(1024 * 1024 + 1);
    check(
        "Opaque",
        json!({"a": big}),
        "data: Too long: may not be more than 1048576 bytes",
    )
    .await;
    check(
        "Opaque",
        json!({"..": ""}),
        "data[..]: Invalid value: \"..\": must not be '..'",
    )
    .await;

    server
        .object("POST", "secrets", named("s", json!({"type": "one"})))
        .await;
    let other = named("s", json!({"type": "two"}));
    let refused = server.refusal("PUT", "secrets/s", other).await;
    assert_eq!(refused, "type: Invalid value: \"two\": field is immutable");
    server.stop().await;
}
