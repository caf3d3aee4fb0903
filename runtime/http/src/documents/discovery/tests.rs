//! Discovery documents, legacy and aggregated.

use apiloom_meta::StatusReason;
use http::Method;
use http::StatusCode;

use super::*;
use crate::testing::{body, discover, get, header, request, scale, wardle, wardle_defs};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery() -> Discovery {
    let defs = wardle_defs();
    Discovery::of(&wardle(&defs), "127.0.0.1:6443")
}

fn check(path: &str, expected: &str) {
    let response = discover(&discovery(), &get(path, &[])).unwrap().unwrap();
    assert_eq!(header(&response, "content-type"), "application/json");
    assert_eq!(body(response), format!("{expected}\n"), "{path}");
}

#[test]
fn api_versions_have_no_api_version() {
    let expected = r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.1:6443"}]}"#;
    check("/api", expected);
    check("/api/", expected);
}

#[test]
fn groups_are_listed_without_core() {
    check(
        "/apis?timeout=32s",
        r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"wardle.example.com","versions":[{"groupVersion":"wardle.example.com/v1beta1","version":"v1beta1"},{"groupVersion":"wardle.example.com/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"wardle.example.com/v1beta1","version":"v1beta1"}}]}"#,
    );
}

#[test]
fn one_group_says_what_it_is() {
    check(
        "/apis/wardle.example.com/",
        r#"{"kind":"APIGroup","apiVersion":"v1","name":"wardle.example.com","versions":[{"groupVersion":"wardle.example.com/v1beta1","version":"v1beta1"},{"groupVersion":"wardle.example.com/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"wardle.example.com/v1beta1","version":"v1beta1"}}"#,
    );
}

#[test]
fn core_resources_have_no_api_version_and_namespaces_have_finalize() {
    check(
        "/api/v1",
        r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"storageVersionHash":"Q3oi5N2YM8M="},{"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]},{"name":"namespaces/status","singularName":"","namespaced":false,"kind":"Namespace","verbs":["get","patch","update"]}]}"#,
    );
}

#[test]
fn resources_keep_their_order_and_sort_their_verbs() {
    check(
        "/apis/wardle.example.com/v1alpha1",
        r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wardle.example.com/v1alpha1","resources":[{"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["fl"],"categories":["all"],"storageVersionHash":"UHqNx5H3K7A="},{"name":"flunders/status","singularName":"","namespaced":true,"kind":"Flunder","verbs":["get","patch","update"]},{"name":"fischers","singularName":"fischer","namespaced":false,"kind":"Fischer","verbs":["create","delete","get","list","update","watch"],"storageVersionHash":"YS5qRiSxzNM="}]}"#,
    );
}

#[test]
fn a_subresource_of_another_kind_says_which() {
    let mut defs = wardle_defs();
    defs[1].subresources = vec![scale()];
    let groups = wardle(&defs);
    let legacy = documents::legacy(&groups, "");
    let text = std::str::from_utf8(&legacy["/apis/wardle.example.com/v1alpha1"].json).unwrap();
    let expected = r#"{"name":"fischers/scale","singularName":"","namespaced":false,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","update"]}"#;
    assert!(text.contains(expected), "{text}");
    let [_, (_, rest)] = documents::aggregated(&groups);
    let text = std::str::from_utf8(&rest).unwrap();
    let expected = r#"{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","update"]}"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_version_that_is_not_stored_has_the_hash_of_the_one_that_is() {
    let documents = documents::legacy(&wardle(&wardle_defs()), "");
    assert!(
        std::str::from_utf8(&documents["/apis/wardle.example.com/v1beta1"].json)
            .unwrap()
            .contains("UHqNx5H3K7A=")
    );
}

#[test]
fn aggregated_lists_core_and_the_rest_apart() {
    let check = |path: &str, expected: &str| {
        let response = discover(&discovery(), &get(path, &[("accept", V2)]))
            .unwrap()
            .unwrap();
        assert_eq!(header(&response, "content-type"), V2);
        assert_eq!(header(&response, "vary"), "Accept");
        assert_eq!(header(&response, "cache-control"), "public");
        let etag = header(&response, "etag").to_owned();
        let text = body(response);
        assert_eq!(
            etag,
            format!(
                "\"{}\"",
                crate::response::static_doc::sha512_hex(text.as_bytes())
            )
        );
        assert_eq!(text, format!("{expected}\n"));
    };
    check(
        "/api",
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"subresources":[{"subresource":"finalize","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["update"]},{"subresource":"status","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]}]}"#,
    );
    check(
        "/apis",
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"wardle.example.com"},"versions":[{"version":"v1beta1","resources":[{"resource":"flunders","responseKind":{"group":"","version":"","kind":"Flunder"},"scope":"Namespaced","singularResource":"flunder","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["fl"],"categories":["all"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"","kind":"Flunder"},"verbs":["get","patch","update"]}]}],"freshness":"Current"},{"version":"v1alpha1","resources":[{"resource":"flunders","responseKind":{"group":"","version":"","kind":"Flunder"},"scope":"Namespaced","singularResource":"flunder","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["fl"],"categories":["all"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"","kind":"Flunder"},"verbs":["get","patch","update"]}]},{"resource":"fischers","responseKind":{"group":"","version":"","kind":"Fischer"},"scope":"Cluster","singularResource":"fischer","verbs":["create","delete","get","list","update","watch"]}],"freshness":"Current"}]}]}"#,
    );
}

#[test]
fn a_registry_is_discovered() {
    let info = ServerInfo {
        address: "127.0.0.1:6443".into(),
        version: "0.1.0".into(),
    };
    let discovery =
        Discovery::new(&crate::testing::bare_registry().catalog(), &info).with_paths(["/version"]);
    let text = |path: &str| body(discover(&discovery, &get(path, &[])).unwrap().unwrap());
    assert_eq!(
        text("/api/v1"),
        String::from_utf8(
            documents::legacy(&wardle(&wardle_defs()), "")["/api/v1"]
                .json
                .to_vec()
        )
        .unwrap()
    );
    assert_eq!(
        text("/apis"),
        "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[]}\n"
    );
    let paths = "{\n  \"paths\": [\n    \"/api\",\n    \"/api/v1\",\n    \"/apis\",\n    \"/version\"\n  ]\n}";
    assert_eq!(text("/"), paths);
}

#[test]
fn documents_are_printed_for_people_and_as_yaml() {
    let text = |accept: &str| {
        body(
            discover(
                &discovery(),
                &get("/apis/wardle.example.com?pretty=1", &[("accept", accept)]),
            )
            .unwrap()
            .unwrap(),
        )
    };
    assert!(
        text("application/json")
            .starts_with("{\n  \"kind\": \"APIGroup\",\n  \"apiVersion\": \"v1\",\n")
    );
    assert!(text("application/json").ends_with("  }\n}"));
    assert!(text("application/yaml").starts_with(
        "apiVersion: v1\nkind: APIGroup\nname: wardle.example.com\npreferredVersion:\n"
    ));
}

/// The content of a message as `number:text`, and of messages in it as `number{..}`, in the order in which they were sent.
fn told(mut bytes: &[u8]) -> Option<String> {
    let mut fields = Vec::new();
    while let [key, rest @ ..] = bytes {
        let number = key >> 3;
        let (field, rest) = match (key & 7, rest) {
            (0, [value, rest @ ..]) => (format!("{number}={value}"), rest),
            // Up to 16,383 bytes.
            (2, [low, high, rest @ ..]) if low & 0x80 != 0 => {
                let length = usize::from(low & 0x7f) | usize::from(*high) << 7;
                (part(number, rest.get(..length)?), &rest[length..])
            }
            (2, [length, rest @ ..]) => {
                let length = usize::from(*length);
                (part(number, rest.get(..length)?), &rest[length..])
            }
            _ => return None,
        };
        fields.push(field);
        bytes = rest;
    }
    Some(fields.join(" "))
}

fn part(number: u8, bytes: &[u8]) -> String {
    let is_text = |byte: &u8| (b' '..=b'~').contains(byte);
    match told(bytes) {
        _ if bytes.is_empty() => format!("{number}:"),
        Some(message) if !bytes.iter().all(is_text) => format!("{number}{{{message}}}"),
        _ => format!("{number}:{}", String::from_utf8_lossy(bytes)),
    }
}

#[test]
fn documents_are_messages_with_the_numbers_of_kubernetes() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let check = |path: &str, accept: &str, expected: &str| {
        let response = discover(&discovery(), &get(path, &[("accept", accept)]));
        let response = response.unwrap().unwrap();
        assert_eq!(header(&response, "content-type"), accept);
        let body = crate::testing::bytes(response);
        let envelope = body.strip_prefix(b"k8s\0").expect("the prefix");
        assert_eq!(told(envelope).as_deref(), Some(expected), "{path}");
    };
    check(
        "/api",
        PROTOBUF,
        "1{1: 2:APIVersions} 2{1:v1 2{1:0.0.0.0/0 2:127.0.0.1:6443}} 3: 4:",
    );
    let group = "1:wardle.example.com 2{1:wardle.example.com/v1beta1 2:v1beta1} 2{1:wardle.example.com/v1alpha1 2:v1alpha1} 3{1:wardle.example.com/v1beta1 2:v1beta1}";
    check(
        "/apis",
        PROTOBUF,
        &format!("1{{1:v1 2:APIGroupList}} 2{{1{{{group}}}}} 3: 4:"),
    );
    check(
        "/apis/wardle.example.com",
        PROTOBUF,
        &format!("1{{1:v1 2:APIGroup}} 2{{{group}}} 3: 4:"),
    );
    // The verbs are a message of their own.
    check(
        "/api/v1",
        PROTOBUF,
        "1{1: 2:APIResourceList} 2{1:v1 2{1:namespaces 2=0 3:Namespace 4{1:create 1:delete 1:get 1:list 1:patch 1:update 1:watch} 5:ns 6:namespace 10:Q3oi5N2YM8M=} 2{1:namespaces/finalize 2=0 3:Namespace 4{1:update} 6:} 2{1:namespaces/status 2=0 3:Namespace 4{1:get 1:patch 1:update} 6:}} 3: 4:",
    );
    check(
        "/api",
        &format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
        "1{1:apidiscovery.k8s.io/v2 2:APIGroupDiscoveryList} 2{1: 2{1: 2{1:v1 2{1:namespaces 2{1: 2: 3:Namespace} 3:Cluster 4:namespace 5:create 5:delete 5:get 5:list 5:patch 5:update 5:watch 6:ns 8{1:finalize 2{1: 2: 3:Namespace} 4:update} 8{1:status 2{1: 2: 3:Namespace} 4:get 4:patch 4:update}} 3:Current}}} 3: 4:",
    );
}

#[test]
fn a_known_etag_is_not_sent_again() {
    let discovery = discovery();
    let first = discover(&discovery, &get("/apis", &[("accept", V2)]))
        .unwrap()
        .unwrap();
    let etag = header(&first, "etag").to_owned();
    let second = discover(
        &discovery,
        &get("/apis", &[("accept", V2), ("if-none-match", &etag)]),
    )
    .unwrap()
    .unwrap();
    assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(header(&second, "etag"), etag);
    assert_eq!(body(second), "");
}

#[test]
fn accept_chooses_the_form() {
    let check = |path: &str, accept: &str, expected: Option<&str>| {
        let response = discover(&discovery(), &get(path, &[("accept", accept)])).unwrap();
        let got = response.as_ref().map(|r| header(r, "content-type")).ok();
        assert_eq!(got, expected, "{path} {accept}");
    };
    let v2_shuffled = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;charset=utf-8;profile=nopeer";
    let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let json = Some("application/json");
    check("/apis", v2_shuffled, Some(V2));
    check(
        "/apis",
        &format!("{V2},{v2beta1},application/json"),
        Some(V2),
    );
    check("/apis", &format!("{v2beta1},application/json"), json);
    check("/apis", v2beta1, None);
    check("/apis", "*/*", json);
    let protobuf = "application/vnd.kubernetes.protobuf";
    check(
        "/apis",
        &format!("{protobuf},application/json"),
        Some(protobuf),
    );
    check("/apis", "application/json;q=0.5,*/*;q=0.1", json);
    let v2_protobuf = format!("{protobuf};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    check("/apis", &format!("{v2_protobuf},{V2}"), Some(&v2_protobuf));
    check(
        "/apis/wardle.example.com",
        &format!("{v2_protobuf},{protobuf}"),
        Some(protobuf),
    );
    check("/apis/wardle.example.com", V2, None);
    check(
        "/apis/wardle.example.com",
        &format!("{V2},application/json"),
        json,
    );
}

#[test]
fn unknown_paths_are_left_to_others() {
    for path in [
        "/apis/nope",
        "/apis/wardle.example.com/v9",
        "/api/v1/namespaces",
        "/apis//",
        "/ap",
        "/healthz",
    ] {
        assert!(discover(&discovery(), &get(path, &[])).is_none(), "{path}");
    }
}

#[test]
fn only_get_is_allowed() {
    for (method, path) in [
        (Method::HEAD, "/apis"),
        (Method::POST, "/api/v1"),
        (Method::OPTIONS, "/"),
    ] {
        let error = discover(&discovery(), &request(method, path, &[]))
            .unwrap()
            .unwrap_err();
        assert_eq!(error.reason, Some(StatusReason::MethodNotAllowed));
    }
}
