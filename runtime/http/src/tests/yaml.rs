//! YAML in every form and framing, byte for byte.

use super::*;

const YAML: &str = "application/yaml";
const TABLE: &str = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Creates a flunder with strings that need quotes.
async fn create_odd(api: &Api) -> Answer {
    let annotations = serde_json::json!({
        "z.io/block": "one\n  two\n\nthree\n",
        "a.io/chomped": "one\ntwo",
        "a.io/kept": "one\ntwo\n\n",
        "a.io/no-block": "one \ntwo",
        "empty": "",
        "number": "0644",
        "word": "no",
        "colon": "a: b",
        "json": "{\"a\":[1,\"<&>\"]}",
        "unicode": "gr\u{fc}n \u{1F600}\u{2028}",
        "time": "2026-11-22T22:20:07Z",
    });
    let body = serde_json::json!({
        "metadata": {"name": "odd", "annotations": annotations, "labels": {"on": "y"}, "finalizers": ["a.io/b", "a.io/c"]},
        "spec": {"reference": "items:\n- x"},
    });
    post(api, FLUNDERS, &body.to_string()).await.expect(201)
}

/// The metadata of that flunder, with this prefix on each line.
fn metadata(object: &Answer, begin: &str) -> String {
    let [uid, created, version] = ["uid", "creationTimestamp", "resourceVersion"].map(|field| {
        let value = object.at(&format!("/metadata/{field}"));
        value.as_str().unwrap().to_owned()
    });
    let owned = object.at("/metadata/managedFields/0/time");
    let owned = owned.as_str().unwrap();
    // A text that begins with a digit is plain if a letter shows that it is not a number.
    let digit = uid.starts_with(|c: char| c.is_ascii_digit());
    let uid = if digit { format!("\"{uid}\"") } else { uid };
    let lines = format!(
        r#"annotations:
  a.io/chomped: |-
    one
    two
  a.io/kept: |+
    one
    two

  a.io/no-block: "one \ntwo"
  colon: "a: b"
  empty: ""
  json: "{{\"a\":[1,\"<&>\"]}}"
  number: "0644"
  time: "2026-11-22T22:20:07Z"
  unicode: "grün 😀\u2028"
  word: "no"
  z.io/block: |
    one
      two

    three
creationTimestamp: "{created}"
finalizers:
- a.io/b
- a.io/c
generation: 1
labels:
  "on": "y"
managedFields:
- apiVersion: wardle.example.com/v1alpha1
  fieldsType: FieldsV1
  fieldsV1:
    f:metadata:
      f:annotations:
        ".": {{}}
        f:a.io/chomped: {{}}
        f:a.io/kept: {{}}
        f:a.io/no-block: {{}}
        f:colon: {{}}
        f:empty: {{}}
        f:json: {{}}
        f:number: {{}}
        f:time: {{}}
        f:unicode: {{}}
        f:word: {{}}
        f:z.io/block: {{}}
      f:finalizers:
        ".": {{}}
        "v:\"a.io/b\"": {{}}
        "v:\"a.io/c\"": {{}}
      f:labels:
        ".": {{}}
        f:on: {{}}
    f:spec:
      ".": {{}}
      f:reference: {{}}
  manager: unknown
  operation: Update
  time: "{owned}"
name: odd
namespace: default
resourceVersion: "{version}"
uid: {uid}
"#
    );
    let indented = |line: &str| match line {
        "\n" => line.to_owned(),
        _ => format!("{begin}{line}"),
    };
    lines.split_inclusive('\n').map(indented).collect()
}

async fn check(api: &Api, accept: &str, url: &str, expected: &str) {
    let answer = get_as(api, accept, url).await.expect(200);
    assert_eq!(answer.header("content-type"), YAML);
    assert_eq!(answer.body, expected, "{accept} {url}");
}

fn version(object: &Answer) -> String {
    object
        .at("/metadata/resourceVersion")
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn an_object() {
    let api = api().await;
    let odd = create_odd(&api).await;
    let url = format!("{FLUNDERS}/odd");
    let expected = format!(
        "apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata:\n{}spec:\n  reference: |-\n    items:\n    - x\n",
        metadata(&odd, "  ")
    );
    check(&api, YAML, &url, &expected).await;
    let expected = format!(
        "apiVersion: meta.k8s.io/v1\nkind: PartialObjectMetadata\nmetadata:\n{}",
        metadata(&odd, "  ")
    );
    check(&api, PARTIAL, &url, &expected).await;
    // The query has no effect on YAML.
    check(&api, PARTIAL, &format!("{url}?pretty=1"), &expected).await;
}

#[tokio::test]
async fn a_list() {
    let api = api().await;
    let list = |version: &str, items: &str| {
        format!(
            "apiVersion: wardle.example.com/v1alpha1\nitems:{items}kind: FlunderList\nmetadata:\n  resourceVersion: \"{version}\"\n"
        )
    };
    let empty = version(&get(&api, FLUNDERS).await);
    check(&api, YAML, FLUNDERS, &list(&empty, " []\n")).await;
    let odd = create_odd(&api).await;
    let item = format!(
        "\n- metadata:\n{}  spec:\n    reference: |-\n      items:\n      - x\n",
        metadata(&odd, "    ")
    );
    check(&api, YAML, FLUNDERS, &list(&version(&odd), &item)).await;
    let partial = format!(
        "apiVersion: meta.k8s.io/v1\nitems:\n- apiVersion: meta.k8s.io/v1\n  kind: PartialObjectMetadata\n  metadata:\n{}kind: PartialObjectMetadataList\nmetadata:\n  resourceVersion: \"{}\"\n",
        metadata(&odd, "    "),
        version(&odd)
    );
    check(&api, PARTIAL_LIST, FLUNDERS, &partial).await;
    let token = get(&api, &format!("{FLUNDERS}?limit=1")).await;
    assert_eq!(token.at("/metadata/continue"), Value::Null);
    create_flunder(&api, "plain").await;
    let page = get_as(&api, YAML, &format!("{FLUNDERS}?limit=1"))
        .await
        .expect(200);
    let (_, meta) = page
        .body
        .split_once("kind: FlunderList\nmetadata:\n  continue: ")
        .unwrap();
    let (_, rest) = meta.split_once("\n").unwrap();
    assert!(
        rest.starts_with("  remainingItemCount: 1\n  resourceVersion: \""),
        "{rest}"
    );
}

#[tokio::test]
async fn a_table() {
    let api = api().await;
    let table = |version: &str, rows: &str| {
        format!(
            r#"apiVersion: meta.k8s.io/v1
columnDefinitions:
- description: The name of the object, unique among the objects of its kind and namespace.
  format: name
  name: Name
  priority: 0
  type: string
- description: What it refers to.
  format: ""
  name: Reference
  priority: 0
  type: string
- description: How long ago the server created the object.
  format: ""
  name: Age
  priority: 0
  type: date
kind: Table
metadata:
  resourceVersion: "{version}"
rows:{rows}"#
        )
    };
    let empty = version(&get(&api, FLUNDERS).await);
    check(&api, TABLE, FLUNDERS, &table(&empty, " []\n")).await;
    let odd = create_odd(&api).await;
    let row = |url: String, object: String| {
        let (api, odd) = (&api, &odd);
        async move {
            let answer = get_as(api, TABLE, &url).await.expect(200).body;
            let (_, age) = answer.split_once("    - x\n  - ").unwrap();
            let (age, _) = age.split_once('\n').unwrap();
            let rows = format!(
                "\n- cells:\n  - odd\n  - |-\n    items:\n    - x\n  - {age}\n  object:{object}"
            );
            assert_eq!(answer, table(&version(odd), &rows), "{url}");
        }
    };
    let partial = format!(
        "\n    apiVersion: meta.k8s.io/v1\n    kind: PartialObjectMetadata\n    metadata:\n{}",
        metadata(&odd, "      ")
    );
    let object = format!(
        "\n    apiVersion: wardle.example.com/v1alpha1\n    kind: Flunder\n    metadata:\n{}    spec:\n      reference: |-\n        items:\n        - x\n",
        metadata(&odd, "      ")
    );
    for url in [FLUNDERS.to_owned(), format!("{FLUNDERS}/odd")] {
        row(url.clone(), partial.clone()).await;
        row(format!("{url}?includeObject=Object"), object.clone()).await;
        row(format!("{url}?includeObject=None"), " null\n".to_owned()).await;
    }
}

#[tokio::test]
async fn a_status() {
    let api = api().await;
    let missing = get_as(&api, YAML, &format!("{FLUNDERS}/a%3Cb"))
        .await
        .expect(404);
    assert_eq!(missing.header("content-type"), YAML);
    assert_eq!(
        missing.body,
        "apiVersion: v1\ncode: 404\ndetails:\n  group: wardle.example.com\n  kind: flunders\n  name: \"a<b\"\nkind: Status\nmessage: \"flunders.wardle.example.com \\\"a<b\\\" not found\"\nmetadata: {}\nreason: NotFound\nstatus: Failure\n"
    );
    let uid = create_flunder(&api, "a").await.at("/metadata/uid");
    let uid = String::from_utf8(apiloom_meta::codec::Encoder::yaml(&uid).to_vec()).unwrap();
    let url = format!("{FLUNDERS}/a");
    let deleted = send(&api, "DELETE", &url, &[("accept", YAML)], "")
        .await
        .expect(200);
    assert_eq!(
        deleted.body,
        format!(
            "apiVersion: v1\ndetails:\n  group: wardle.example.com\n  kind: flunders\n  name: a\n  uid: {uid}kind: Status\nmetadata: {{}}\nstatus: Success\n"
        )
    );
    let none = get_as(&api, "application/yaml;as=Table", FLUNDERS)
        .await
        .expect(406);
    assert_eq!(none.header("content-type"), "application/json");
    assert!(
        none.body.starts_with("{\n  \"kind\": \"Status\""),
        "{}",
        none.body
    );
}

#[tokio::test]
async fn a_watch_and_a_patch_have_none() {
    let api = api().await;
    let watch = get_as(&api, YAML, &format!("{FLUNDERS}?watch=1"))
        .await
        .expect(406);
    assert_eq!(watch.header("content-type"), YAML);
    assert_eq!(
        watch.body,
        "apiVersion: v1\ncode: 406\nkind: Status\nmessage: \"only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch\"\nmetadata: {}\nreason: NotAcceptable\nstatus: Failure\n"
    );
    // Errors of the options take precedence.
    get_as(&api, YAML, &format!("{FLUNDERS}?watch=1&labelSelector=!!"))
        .await
        .expect(400);
    let headers = [("accept", YAML), ("content-type", YAML)];
    let patch = send(&api, "PATCH", &format!("{FLUNDERS}/a"), &headers, "{}")
        .await
        .expect(415);
    assert_eq!(
        patch.body,
        "apiVersion: v1\ncode: 415\ndetails: {}\nkind: Status\nmessage: \"415: Unsupported Media Type\"\nmetadata: {}\nreason: UnsupportedMediaType\nstatus: Failure\n"
    );
}

/// Tens of megabytes; at most a piece and an object are encoded at a time.
#[tokio::test]
async fn a_long_list_is_made_while_it_is_read() {
    const PIECE_BYTES: usize = 64 * 1024;
    const OBJECTS: usize = 200;
    let api = api().await;
    let text = "a line of text\n".repeat(7000);
    for n in 0..OBJECTS {
        let metadata = serde_json::json!({"name": format!("f-{n:03}"), "annotations": {"a": text}});
        let body = serde_json::json!({"metadata": metadata}).to_string();
        post(&api, FLUNDERS, &body).await.expect(201);
    }
    let partial = PARTIAL_LIST.to_owned();
    let table = format!("{FLUNDERS}?includeObject=Object");
    for (accept, url) in [(YAML, FLUNDERS), (&partial, FLUNDERS), (TABLE, &table)] {
        let response = open(&api, "GET", url, &[("accept", accept)], "").await;
        let mut body = response.into_body();
        let (mut bytes, mut lines, mut pieces) = (0, 0, 0);
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES, "{accept}: {}", piece.len());
            bytes += piece.len();
            lines += piece.iter().filter(|byte| **byte == b'\n').count();
            pieces += 1;
        }
        assert!(bytes > 20_000_000, "{accept}: {bytes}");
        assert!(lines > OBJECTS * 7000, "{accept}: {lines}");
        assert!(pieces >= bytes / PIECE_BYTES, "{accept}: {pieces}");
    }
}
