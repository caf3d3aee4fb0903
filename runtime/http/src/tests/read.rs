//! GET of items and collections, in every representation.

use apiloom_meta::codec::{Decoder, Encoder, Format, Indenter};
use http_body::Body as _;
use serde_json::json;

use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn an_object_prints_kind_version_and_metadata_first() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let answer = get(&api, &format!("{FLUNDERS}/a?watch=1"))
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let (uid, created) = (
        answer.at("/metadata/uid"),
        answer.at("/metadata/creationTimestamp"),
    );
    let version = answer.at("/metadata/resourceVersion");
    let owned = answer.at("/metadata/managedFields/0/time");
    assert_eq!(
        answer.body,
        format!(
            "{{\"kind\":\"Flunder\",\"apiVersion\":\"wardle.example.com/v1alpha1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"default\",\"uid\":{uid},\"resourceVersion\":{version},\"generation\":1,\"creationTimestamp\":{created},\"managedFields\":[{{\"manager\":\"unknown\",\"operation\":\"Update\",\"apiVersion\":\"wardle.example.com/v1alpha1\",\"time\":{owned},\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{{\"f:spec\":{{\".\":{{}},\"f:reference\":{{}}}}}}}}]}},\"spec\":{{\"reference\":\"r-a\"}}}}\n"
        )
    );
}

#[tokio::test]
async fn a_missing_object_is_not_found() {
    let answer = get_as(&api().await, TABLE, &format!("{FLUNDERS}/a%3Cb"))
        .await
        .expect(404);
    assert_eq!(
        answer.body,
        failure(
            "flunders.wardle.example.com \"a<b\" not found",
            "NotFound",
            Some(r#"{"name":"a\u003cb","group":"wardle.example.com","kind":"flunders"}"#),
            404
        )
    );
}

#[tokio::test]
async fn a_list_says_once_what_its_items_are() {
    let api = api().await;
    let empty = get(&api, FLUNDERS).await.expect(200);
    let version = empty.at("/metadata/resourceVersion");
    assert_eq!(
        empty.body,
        format!(
            "{{\"kind\":\"FlunderList\",\"apiVersion\":\"wardle.example.com/v1alpha1\",\"metadata\":{{\"resourceVersion\":{version}}},\"items\":[]}}\n"
        )
    );
    create_flunder(&api, "b").await;
    create_flunder(&api, "a").await;
    let list = get(&api, "/apis/wardle.example.com/v1alpha1/flunders")
        .await
        .expect(200);
    assert_eq!(list.at("/items/0/metadata/name"), "a");
    assert_eq!(list.at("/items/1/metadata/name"), "b");
    assert_eq!(list.at("/items/0/kind"), Value::Null);
    assert_eq!(list.at("/items/0/apiVersion"), Value::Null);
}

#[tokio::test]
async fn large_objects_are_listed_as_they_are_got() {
    let api = api().await;
    let mut items = Vec::new();
    for (name, len) in [
        ("a", 10),
        ("b", 20_000),
        ("c", 300_000),
        ("d", 16_000),
        ("e", 20_000),
    ] {
        let text = "x".repeat(len);
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"reference":"{text}"}}}}"#);
        post(&api, FLUNDERS, &body).await.expect(201);
        let got = get(&api, &format!("{FLUNDERS}/{name}")).await.expect(200);
        let item = got
            .body
            .trim_end()
            .split_once(r#""metadata""#)
            .expect("it has metadata")
            .1;
        items.push(format!(r#"{{"metadata"{item}"#));
    }
    let list = get(&api, FLUNDERS).await.expect(200);
    let (_, listed) = list.body.split_once(r#""items":["#).expect("a list");
    assert!(
        listed == format!("{}]}}\n", items.join(",")),
        "the items differ"
    );
}

#[tokio::test]
async fn a_long_list_is_the_same_in_pieces() {
    let api = api().await;
    let reference = "x".repeat(1000);
    for n in 0..600 {
        let body =
            format!(r#"{{"metadata":{{"name":"f-{n:03}"}},"spec":{{"reference":"{reference}"}}}}"#);
        post(&api, FLUNDERS, &body).await.expect(201);
    }
    let plain = get(&api, FLUNDERS).await.expect(200);
    assert_eq!(plain.json()["items"].as_array().map(Vec::len), Some(600));
    assert!(plain.body.ends_with("]}\n"));
    assert_eq!(plain.header("content-encoding"), "");
    let response = open(&api, "GET", FLUNDERS, &[("accept-encoding", "gzip")], "").await;
    assert_eq!(testing::header(&response, "content-encoding"), "gzip");
    assert_eq!(testing::header(&response, "vary"), "Accept-Encoding");
    let packed = response.into_body().collect().await.unwrap().to_bytes();
    let mut unpacked = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::GzDecoder::new(packed.as_ref()),
        &mut unpacked,
    )
    .unwrap();
    assert_eq!(unpacked, plain.body);
    let pretty = get(&api, &format!("{FLUNDERS}?pretty=1")).await.expect(200);
    assert!(pretty.body.starts_with("{\n  \"kind\""), "{}", pretty.body);
    assert!(pretty.body.as_bytes() == Indenter::indent(plain.body.as_bytes()));
}

#[tokio::test]
async fn yaml_lists_are_made_while_they_are_read_and_say_what_json_says() {
    const PIECE: usize = 64 * 1024;
    let api = api().await;
    let targets = [
        "",
        ";as=Table;v=v1;g=meta.k8s.io",
        ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ];
    let mut made = 0;
    for objects in [0, 1, 600] {
        for n in made..objects {
            let reference = format!("line {n}\nitems: []\n{}", "x".repeat(1000));
            let body =
                json!({"metadata": {"name": format!("f-{n:03}"), "annotations": {"a": reference}}});
            post(&api, FLUNDERS, &body.to_string()).await.expect(201);
        }
        made = objects;
        for target in targets {
            let url = format!("{FLUNDERS}?limit=599");
            let json = get_as(&api, &format!("application/json{target}"), &url).await;
            let accept = format!("application/yaml{target}");
            let response = open(&api, "GET", &url, &[("accept", &accept)], "").await;
            assert_eq!(
                testing::header(&response, "content-type"),
                "application/yaml"
            );
            // Ages in seconds differ between two responses.
            let is_table = target.contains("Table");
            let is_long = objects == 600;
            assert_eq!(
                response.body().size_hint().exact().is_none(),
                is_long,
                "{target}"
            );
            let mut body = response.into_body();
            let mut whole = Vec::new();
            while let Some(frame) = body.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                assert!(!is_long || data.len() <= PIECE, "{target}: {}", data.len());
                whole.extend_from_slice(&data);
            }
            let json = json.expect(200).json();
            let expected = Encoder::yaml(&json);
            if !is_table {
                assert!(whole == expected, "{target} {objects}");
            }
            let value: Value = Decoder::new(Format::Yaml).value(&whole).unwrap();
            let items = if is_table { "rows" } else { "items" };
            let count = value[items].as_array().map(Vec::len);
            assert_eq!(count, Some(objects.min(599)), "{target}");
        }
    }
}

#[tokio::test]
async fn pages_follow_each_other_by_a_token() {
    let api = api().await;
    for name in ["a", "b", "c"] {
        create_flunder(&api, name).await;
    }
    let first = get(&api, &format!("{FLUNDERS}?limit=2")).await.expect(200);
    assert_eq!(first.at("/metadata/remainingItemCount"), 1);
    let token = first.at("/metadata/continue");
    let second = get(
        &api,
        &format!("{FLUNDERS}?limit=2&continue={}", token.as_str().unwrap()),
    )
    .await
    .expect(200);
    assert_eq!(second.at("/items/0/metadata/name"), "c");
    assert_eq!(second.at("/metadata/continue"), Value::Null);
}

#[tokio::test]
async fn people_get_indented_json_without_a_newline() {
    let api = api().await;
    create_flunder(&api, "a").await;
    for url in [FLUNDERS.to_owned(), format!("{FLUNDERS}/a")] {
        let pretty = send(&api, "GET", &url, &[("user-agent", "curl/8")], "")
            .await
            .expect(200);
        let compact = get(&api, &url).await.expect(200);
        assert!(
            pretty.body.starts_with("{\n  \"kind\": \"Flunder") && pretty.body.ends_with('}'),
            "{}",
            pretty.body
        );
        assert_eq!(pretty.json(), compact.json());
    }
}

#[tokio::test]
async fn yaml_is_json_in_another_dress() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let answer = get_as(&api, "application/yaml", &format!("{FLUNDERS}/a"))
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), "application/yaml");
    assert!(
        answer
            .body
            .starts_with("apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata:\n"),
        "{}",
        answer.body
    );
    let list = get_as(&api, "application/yaml", FLUNDERS).await.expect(200);
    assert!(list.body.contains("kind: FlunderList\n"), "{}", list.body);
}

#[tokio::test]
async fn a_table_shows_declared_columns_and_metadata() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let answer = get_as(&api, TABLE, FLUNDERS).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let (rv, row) = (answer.at("/metadata/resourceVersion"), answer.at("/rows/0"));
    assert!(answer.body.starts_with(&format!("{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":{rv}}},\"columnDefinitions\":[{{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":")), "{}", answer.body);
    let names: Vec<Value> = (0..3)
        .map(|n| answer.at(&format!("/columnDefinitions/{n}/name")))
        .collect();
    assert_eq!(names, ["Name", "Reference", "Age"]);
    assert_eq!(
        row["cells"].as_array().map(|cells| cells[..2].to_vec()),
        Some(vec!["a".into(), "r-a".into()])
    );
    assert_eq!(
        (&row["object"]["kind"], &row["object"]["apiVersion"]),
        (&"PartialObjectMetadata".into(), &"meta.k8s.io/v1".into())
    );
    assert_eq!(row["object"]["spec"], Value::Null);
}

#[tokio::test]
async fn include_object_says_what_a_row_holds() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let row = async |include: &str| {
        get_as(
            &api,
            TABLE,
            &format!("{FLUNDERS}/a?includeObject={include}"),
        )
        .await
        .expect(200)
        .at("/rows/0")
    };
    let none = row("None").await;
    assert!(none.as_object().unwrap().contains_key("object") && none["object"].is_null());
    assert_eq!(row("Object").await["object"]["spec"]["reference"], "r-a");
    assert_eq!(
        get_as(&api, TABLE, &format!("{FLUNDERS}?includeObject=Bad"))
            .await
            .expect(400)
            .message(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Bad\": must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[tokio::test]
async fn a_kind_without_columns_shows_when_it_was_created() {
    let api = api().await;
    let created = post(&api, FISCHERS, r#"{"metadata":{"name":"f"}}"#)
        .await
        .expect(201)
        .at("/metadata/creationTimestamp");
    let answer = get_as(&api, TABLE, FISCHERS).await.expect(200);
    assert_eq!(
        answer.at("/rows/0/cells"),
        Value::from(vec![Value::from("f"), created])
    );
    assert_eq!(answer.at("/columnDefinitions/1/name"), "Created At");
}

#[tokio::test]
async fn metadata_alone_of_an_object_and_a_list() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let item = get_as(&api, PARTIAL, &format!("{FLUNDERS}/a"))
        .await
        .expect(200);
    assert!(item.body.starts_with("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\","), "{}", item.body);
    let list = get_as(&api, PARTIAL_LIST, FLUNDERS).await.expect(200);
    assert_eq!(
        (list.at("/kind"), list.at("/items/0/kind")),
        (
            "PartialObjectMetadataList".into(),
            "PartialObjectMetadata".into()
        )
    );
    assert_eq!(
        get_as(&api, PARTIAL, FLUNDERS).await.expect(406).message(),
        "you requested PartialObjectMetadata, but the requested object is a list (FlunderList)"
    );
    assert_eq!(
        get_as(&api, PARTIAL_LIST, &format!("{FLUNDERS}/a"))
            .await
            .expect(406)
            .message(),
        "you requested PartialObjectMetadataList, but the requested object is not a list (Flunder)"
    );
}

#[tokio::test]
async fn what_is_not_offered_is_not_acceptable() {
    let api = api().await;
    let by_router = get_as(&api, "text/html", FLUNDERS).await.expect(406);
    assert_eq!(
        by_router.message(),
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
    // A kind without a Protobuf message has only its metadata in Protobuf.
    for accept in [
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ] {
        let by_handler = get_as(&api, accept, FLUNDERS).await.expect(406);
        assert_eq!(
            by_handler.body,
            "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf\",\n  \"reason\": \"NotAcceptable\",\n  \"code\": 406\n}"
        );
    }
}

#[tokio::test]
async fn a_resource_version_that_is_none_is_told_per_verb() {
    let api = api().await;
    create_flunder(&api, "a").await;
    get(&api, &format!("{FLUNDERS}/a?resourceVersion=zz"))
        .await
        .expect(500);
    get(&api, &format!("{FLUNDERS}?watch=1&resourceVersion=zz"))
        .await
        .expect(500);
    get(&api, &format!("{FLUNDERS}?resourceVersion=zz"))
        .await
        .expect(400);
    let future = get(
        &api,
        &format!("{FLUNDERS}?resourceVersion=9007199254740991&resourceVersionMatch=Exact"),
    )
    .await
    .expect(504);
    assert_eq!(future.header("retry-after"), "1");
}

use super::super::testing;
