//! Discovery, OpenAPI, version and health.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};

use crate::*;

on_each_backend![
    c_034_only_some_discovery_documents_have_an_api_version,
    c_035_aggregated_discovery_has_an_etag,
    c_036_old_aggregated_discovery_is_gone,
    c_037_etags_are_those_of_the_content,
    c_038_the_hash_of_the_storage_version_is_that_of_its_name,
    c_039_verbs_are_sorted,
    c_041_documents_of_openapi_v3_are_found_by_their_hash,
    c_042_openapi_v2_is_json_or_protobuf,
    c_043_the_version_is_readable_by_all,
    c_044_readyz_lists_its_checks,
    c_045_checks_can_be_excluded,
];

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

async fn get_as(client: &Client, path: &str, accept: &str) -> Answer {
    client.call("GET", path, &[("accept", accept)], "").await
}

fn upper_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

async fn c_034_only_some_discovery_documents_have_an_api_version(on: Backend) {
    let (_server, client) = server(on);
    for (path, kind, has_version) in [
        ("/api", "APIVersions", false),
        ("/api/", "APIVersions", false),
        ("/apis", "APIGroupList", true),
        ("/apis/", "APIGroupList", true),
        ("/api/v1", "APIResourceList", false),
        ("/apis/wardle.example.com", "APIGroup", true),
        ("/apis/wardle.example.com/v1alpha1", "APIResourceList", true),
    ] {
        let document = client.get(path).await.json();
        assert_eq!(document["kind"], kind, "{path}");
        let version = document.get("apiVersion");
        assert_eq!(version, has_version.then_some(&json!("v1")), "{path}");
    }
    let groups = client.get("/apis").await.json();
    assert!(groups["groups"][0].get("kind").is_none());
}

async fn c_035_aggregated_discovery_has_an_etag(on: Backend) {
    let (_server, client) = server(on);
    for path in ["/api", "/apis"] {
        let answer = get_as(&client, path, AGGREGATED).await;
        assert_eq!(answer.code, 200);
        assert_eq!(answer.json()["kind"], "APIGroupDiscoveryList");
        assert_eq!(answer.header("content-type"), AGGREGATED);
        assert_eq!(answer.header("vary"), "Accept");
        assert_eq!(answer.header("cache-control"), "public");
        let etag = answer.header("etag");
        let digits = etag.trim_matches('"');
        assert_eq!((etag.len(), digits.len()), (130, 128), "{etag}");
        let is_hex = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
        assert!(digits.chars().all(is_hex), "{etag}");
        let headers = [("accept", AGGREGATED), ("if-none-match", etag)];
        let again = client.call("GET", path, &headers, "").await;
        assert_eq!((again.code, &*again.text()), (304, ""));
        assert_eq!(again.header("etag"), etag);
        let headers = [("accept", AGGREGATED), ("if-none-match", "\"00\"")];
        assert_eq!(client.call("GET", path, &headers, "").await.code, 200);
    }
}

async fn c_036_old_aggregated_discovery_is_gone(on: Backend) {
    let (_server, client) = server(on);
    let answer = get_as(&client, "/apis", BETA).await;
    assert_eq!(answer.code, 406);
    assert_eq!(answer.json()["reason"], "NotAcceptable");
    let answer = get_as(&client, "/apis", &format!("{BETA},application/json")).await;
    assert_eq!(answer.json()["kind"], "APIGroupList");
    let both = format!("{AGGREGATED},{BETA},application/json");
    let answer = get_as(&client, "/apis", &both).await;
    assert_eq!(answer.json()["kind"], "APIGroupDiscoveryList");
}

async fn c_037_etags_are_those_of_the_content(on: Backend) {
    let (mut server, client) = server(on);
    let paths = ["/api", "/apis"];
    let tags = async |client: &Client| {
        let mut tags = Vec::new();
        for path in paths {
            let answer = get_as(client, path, AGGREGATED).await;
            tags.push((answer.header("etag").to_owned(), answer.body));
        }
        tags
    };
    let before = tags(&client).await;
    server.stop();
    server.start_again();
    assert_eq!(tags(&server.client()).await, before);
    let (_replica, other) = another(&server, &server.client());
    assert_eq!(tags(&other).await, before);
}

async fn c_038_the_hash_of_the_storage_version_is_that_of_its_name(on: Backend) {
    let (_server, client) = server(on);
    for (list, resource, name) in [
        ("/api/v1", "namespaces", "/v1/Namespace"),
        (
            "/apis/wardle.example.com/v1alpha1",
            "flunders",
            "wardle.example.com/v1alpha1/Flunder",
        ),
        // Another version of the same stored kind.
        (
            "/apis/wardle.example.com/v1beta1",
            "flunders",
            "wardle.example.com/v1alpha1/Flunder",
        ),
    ] {
        let resources = client.get(list).await.json();
        let resources = resources["resources"].as_array().unwrap().clone();
        let entry = resources.iter().find(|entry| entry["name"] == resource);
        let hash = STANDARD.encode(&Sha256::digest(name)[..8]);
        assert_eq!(entry.unwrap()["storageVersionHash"], *hash, "{name}");
        let below = resources.iter().filter(|entry| {
            let name = entry["name"].as_str().unwrap();
            name.contains('/')
        });
        for entry in below {
            assert!(entry.get("storageVersionHash").is_none(), "{entry}");
            assert_eq!(entry["singularName"], "");
        }
    }
}

async fn c_039_verbs_are_sorted(on: Backend) {
    let (_server, client) = server(on);
    let list = client.get("/apis/wardle.example.com/v1alpha1").await.json();
    for entry in list["resources"].as_array().unwrap() {
        let verbs: Vec<&str> = entry["verbs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|verb| verb.as_str().unwrap())
            .collect();
        let expected: &[&str] = match entry["name"].as_str().unwrap().split_once('/') {
            None => &[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ],
            Some(_) => &["get", "patch", "update"],
        };
        assert_eq!(verbs, expected, "{}", entry["name"]);
    }
    let list = client.get("/api/v1").await.json();
    let namespaces = list["resources"].as_array().unwrap();
    let namespaces = namespaces
        .iter()
        .find(|entry| entry["name"] == "namespaces");
    let verbs = &namespaces.unwrap()["verbs"];
    let expected = json!([
        "create", "delete", "get", "list", "patch", "update", "watch"
    ]);
    assert_eq!(*verbs, expected);
}

async fn c_041_documents_of_openapi_v3_are_found_by_their_hash(on: Backend) {
    let (_server, client) = server(on);
    let index = client.get("/openapi/v3").await.json();
    let path = "apis/wardle.example.com/v1alpha1";
    let url = index["paths"][path]["serverRelativeURL"].as_str().unwrap();
    let (base, hash) = url.split_once("?hash=").unwrap();
    assert_eq!(base, format!("/openapi/v3/{path}"));
    let answer = client.get(url).await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.json()["openapi"], "3.0.0");
    assert_eq!(answer.header("cache-control"), "public, immutable");
    assert_eq!(hash, upper_hex(&Sha512::digest(&answer.body)));
    let expires = httpdate::parse_http_date(answer.header("expires")).unwrap();
    let date = httpdate::parse_http_date(answer.header("date")).unwrap();
    let year = std::time::Duration::from_secs(365 * 24 * 60 * 60);
    let lasts = expires.duration_since(date).unwrap();
    assert!(lasts.abs_diff(year).as_secs() <= 2, "{lasts:?}");
    let wrong = client.get(&format!("{base}?hash=00")).await;
    assert_eq!((wrong.code, wrong.header("location")), (301, url));
    let plain = client.get(base).await;
    assert_eq!(plain.header("cache-control"), "no-cache, private");
    let etag = format!("\"{hash}\"");
    assert_eq!(plain.header("etag"), etag);
    let headers = [("if-none-match", &*etag)];
    assert_eq!(client.call("GET", base, &headers, "").await.code, 304);
    let missing = client.get("/openapi/v3/apis/nothing.example.com/v1").await;
    assert_eq!((missing.code, &*missing.text()), (404, ""));
}

async fn c_042_openapi_v2_is_json_or_protobuf(on: Backend) {
    let (_server, client) = server(on);
    let path = "/openapi/v2";
    for accept in ["application/json", "*/*"] {
        let answer = get_as(&client, path, accept).await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.json()["swagger"], "2.0");
    }
    let new = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for accept in [new, old] {
        let answer = get_as(&client, path, accept).await;
        assert_eq!((answer.code, answer.header("content-type")), (200, new));
        // Field 1 of the document, of 3 bytes: the version.
        assert_eq!(answer.body[..5], *b"\x0a\x032.0", "{accept}");
    }
    let refused = get_as(&client, path, "text/html").await;
    assert_eq!((refused.code, &*refused.text()), (406, ""));
}

async fn c_043_the_version_is_readable_by_all(on: Backend) {
    let (_server, client) = server(on);
    let answer = client.anonymous().get("/version").await;
    assert_eq!(answer.code, 200);
    assert!(answer.text().starts_with("{\n  \"major\": "));
    let version = answer.json();
    let git = version["gitVersion"].as_str().unwrap();
    let core = git.strip_prefix('v').unwrap().split(['+', '-']).next();
    let numbers: Vec<u32> = core
        .unwrap()
        .split('.')
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), 3, "{git}");
    assert_eq!(version["major"], numbers[0].to_string());
    assert_eq!(version["minor"], numbers[1].to_string());
}

/// The lines of a health document, and its status code.
async fn health(client: &Client, path: &str) -> (u16, Vec<String>) {
    let answer = client.get(path).await;
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let lines = answer.text().lines().map(str::to_owned).collect();
    (answer.code, lines)
}

async fn c_044_readyz_lists_its_checks(on: Backend) {
    let (_server, client) = server(on);
    let client = client.anonymous();
    for name in ["healthz", "livez", "readyz"] {
        let (code, lines) = health(&client, &format!("/{name}")).await;
        assert_eq!((code, lines), (200, vec!["ok".to_owned()]));
        let (code, lines) = health(&client, &format!("/{name}?verbose")).await;
        let (last, checks) = lines.split_last().unwrap();
        assert_eq!((code, &**last), (200, &*format!("{name} check passed")));
        assert_eq!(checks[..2], ["[+]ping ok", "[+]log ok"]);
        let listed = |line: &String| line.starts_with("[+]") && line.ends_with(" ok");
        assert!(checks.iter().all(listed), "{checks:?}");
        let (code, lines) = health(&client, &format!("/{name}/ping")).await;
        assert_eq!((code, lines), (200, vec!["ok".to_owned()]));
    }
    assert_eq!(client.get("/readyz/nothing").await.code, 404);
}

async fn c_045_checks_can_be_excluded(on: Backend) {
    let (_server, client) = server(on);
    let path = "/readyz?verbose&exclude=ping&exclude=nothing&exclude=none";
    let (code, lines) = health(&client, path).await;
    assert_eq!(code, 200);
    assert_eq!(lines[0], "[+]ping excluded: ok");
    let warning = r#"warn: some health checks cannot be excluded: no matches for "none","nothing""#;
    assert!(lines.iter().any(|line| line == warning), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "readyz check passed");
}
