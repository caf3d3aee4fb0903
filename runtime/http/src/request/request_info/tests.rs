//! Parsing of URLs, as a table.

use super::*;

fn info(method: &str, url: &str) -> RequestInfo {
    RequestInfo::parse(
        &method.parse().expect("a method"),
        &url.parse().expect("a URL"),
    )
    .expect("resolves")
}

/// verb, group, version, namespace, resource, name, subresource
type Row<'a> = (
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
);

fn check(method: &str, url: &str, expected: Row<'_>) {
    let i = info(method, url);
    let got = (
        i.verb.as_str(),
        i.api_group.as_str(),
        i.api_version.as_str(),
        i.namespace.as_str(),
        i.resource.as_str(),
        i.name.as_str(),
        i.subresource.as_str(),
    );
    assert!(i.is_resource_request, "{method} {url}");
    assert_eq!(got, expected, "{method} {url}");
}

fn check_plain(method: &str, url: &str, verb: &str) {
    let i = info(method, url);
    assert!(!i.is_resource_request, "{method} {url}");
    assert_eq!(
        (i.verb.as_str(), i.resource.as_str(), i.parts.len()),
        (verb, "", 0),
        "{method} {url}"
    );
}

#[test]
fn short_and_foreign_paths_are_not_resource_requests() {
    check_plain("GET", "/", "get");
    check_plain("GET", "/api", "get");
    check_plain("GET", "/api/", "get");
    check_plain("GET", "/api/v1", "get");
    check_plain("GET", "/api/v1/", "get");
    check_plain("GET", "/apis/g.io", "get");
    check_plain("GET", "/apis/g.io/v1", "get");
    check_plain("POST", "/version/a/b/c", "post");
    check_plain("OPTIONS", "/healthz", "options");
}

#[test]
fn methods_become_verbs() {
    let item = |verb| (verb, "g.io", "v1", "n", "foos", "a", "");
    check("GET", "/apis/g.io/v1/namespaces/n/foos/a", item("get"));
    check("HEAD", "/apis/g.io/v1/namespaces/n/foos/a", item("get"));
    check("PUT", "/apis/g.io/v1/namespaces/n/foos/a", item("update"));
    check("PATCH", "/apis/g.io/v1/namespaces/n/foos/a", item("patch"));
    check(
        "DELETE",
        "/apis/g.io/v1/namespaces/n/foos/a",
        item("delete"),
    );
    check("POST", "/apis/g.io/v1/namespaces/n/foos/a", item("create"));
    check("OPTIONS", "/apis/g.io/v1/namespaces/n/foos/a", item(""));
}

#[test]
fn a_namespace_is_its_own_name_and_namespace() {
    check(
        "GET",
        "/api/v1/namespaces",
        ("list", "", "v1", "", "namespaces", "", ""),
    );
    check(
        "GET",
        "/api/v1/namespaces/x",
        ("get", "", "v1", "x", "namespaces", "x", ""),
    );
    check(
        "GET",
        "/api/v1/namespaces/x/",
        ("get", "", "v1", "x", "namespaces", "x", ""),
    );
    check(
        "GET",
        "/api/v1/namespaces/x/pods",
        ("list", "", "v1", "x", "pods", "", ""),
    );
}

#[test]
fn status_and_finalize_belong_to_the_namespace() {
    check(
        "GET",
        "/api/v1/namespaces/x/status",
        ("get", "", "v1", "x", "namespaces", "x", "status"),
    );
    check(
        "PUT",
        "/api/v1/namespaces/x/finalize",
        ("update", "", "v1", "x", "namespaces", "x", "finalize"),
    );
    check(
        "GET",
        "/api/v1/namespaces/x/pods/p/status",
        ("get", "", "v1", "x", "pods", "p", "status"),
    );
}

#[test]
fn a_get_without_a_name_is_a_list_or_a_watch() {
    let collection = |verb| (verb, "", "v1", "x", "pods", "", "");
    for (query, verb) in [
        ("", "list"),
        ("?watch=1", "watch"),
        ("?watch=true", "watch"),
        ("?watch=", "watch"),
        ("?watch", "watch"),
        ("?watch=0", "list"),
        ("?watch=false", "list"),
        ("?watch=FALSE", "list"),
        ("?limit=x", "list"),
        ("?limit=x&watch=1", "watch"),
        ("?limit=x&watch=0", "list"),
    ] {
        check(
            "GET",
            &format!("/api/v1/namespaces/x/pods{query}"),
            collection(verb),
        );
    }
}

#[test]
fn watch_is_ignored_where_there_is_a_name() {
    check(
        "GET",
        "/api/v1/namespaces/x/pods/p?watch=1",
        ("get", "", "v1", "x", "pods", "p", ""),
    );
}

#[test]
fn a_delete_without_a_name_is_a_deletecollection() {
    check(
        "DELETE",
        "/api/v1/namespaces/x/pods",
        ("deletecollection", "", "v1", "x", "pods", "", ""),
    );
}

#[test]
fn a_field_selector_gives_the_name_to_lists_and_watches() {
    check(
        "GET",
        "/api/v1/pods?fieldSelector=metadata.name%3Dp",
        ("list", "", "v1", "", "pods", "p", ""),
    );
    check(
        "GET",
        "/api/v1/pods?watch=1&fieldSelector=metadata.name=p",
        ("watch", "", "v1", "", "pods", "p", ""),
    );
    check(
        "GET",
        "/api/v1/pods?fieldSelector=metadata.name=a%2Fb",
        ("list", "", "v1", "", "pods", "", ""),
    );
    check(
        "GET",
        "/api/v1/pods?fieldSelector=metadata.name!=p",
        ("list", "", "v1", "", "pods", "", ""),
    );
    check(
        "GET",
        "/api/v1/pods?fieldSelector=metadata.name=p&limit=x",
        ("list", "", "v1", "", "pods", "", ""),
    );
    check(
        "DELETE",
        "/api/v1/pods?fieldSelector=metadata.name=p",
        ("deletecollection", "", "v1", "", "pods", "", ""),
    );
}

#[test]
fn the_legacy_watch_prefix_is_the_verb_watch() {
    check(
        "GET",
        "/api/v1/watch/namespaces/x/pods",
        ("watch", "", "v1", "x", "pods", "", ""),
    );
    check(
        "GET",
        "/api/v1/watch/namespaces/x/pods/p",
        ("watch", "", "v1", "x", "pods", "p", ""),
    );
    check(
        "GET",
        "/apis/g.io/v1/watch/foos?fieldSelector=metadata.name=p",
        ("watch", "g.io", "v1", "", "foos", "", ""),
    );
    check(
        "GET",
        "/api/v1/proxy/nodes/n/x",
        ("proxy", "", "v1", "", "nodes", "n", ""),
    );
}

#[test]
fn selectors_are_recorded_for_verbs_that_select() {
    for (method, url, recorded) in [
        (
            "GET",
            "/api/v1/pods?fieldSelector=a=b&labelSelector=c",
            true,
        ),
        (
            "DELETE",
            "/api/v1/pods?fieldSelector=a=b&labelSelector=c",
            true,
        ),
        (
            "GET",
            "/api/v1/namespaces/x/pods/p?fieldSelector=a=b&labelSelector=c",
            false,
        ),
        (
            "GET",
            "/api/v1/watch/pods?fieldSelector=a=b&labelSelector=c",
            false,
        ),
    ] {
        let i = info(method, url);
        let expected = if recorded { ("a=b", "c") } else { ("", "") };
        assert_eq!(
            (i.field_selector.as_str(), i.label_selector.as_str()),
            expected,
            "{method} {url}"
        );
    }
}

#[test]
fn the_decoded_path_decides() {
    check(
        "GET",
        "/api/v1/namespaces/x/pods%2Fp",
        ("get", "", "v1", "x", "pods", "p", ""),
    );
    check(
        "GET",
        "/api/v1/namespaces/x/pods/a%20b",
        ("get", "", "v1", "x", "pods", "a b", ""),
    );
    check(
        "GET",
        "/api/v1//pods",
        ("get", "", "v1", "", "", "pods", ""),
    );
}

#[test]
fn what_says_nothing_is_an_error() {
    let parse = |url: &str| RequestInfo::parse(&Method::GET, &url.parse().expect("a URL"));
    assert_eq!(
        parse("/api/v1/watch?x=1").expect_err("no kind").to_string(),
        "failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch?x=1"
    );
    assert_eq!(
        parse("/api/%zz"),
        Err(RequestInfoError::Escape("/api/%zz".to_owned()))
    );
}
