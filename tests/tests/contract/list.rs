//! List: pages, resource versions, selectors, order.

use apiloom_tests::is_cached;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::*;

on_each_backend![
    c_111_pages_show_one_state_while_writes_happen,
    c_112_a_token_is_unpadded_base64url_of_version_revision_and_start,
    c_113_what_remains_is_counted_without_selectors_only,
    c_114_any_state_ignores_the_limit,
    c_115_continue_excludes_a_resource_version_and_a_match,
    c_116_a_token_of_a_forgotten_state_is_exchanged_for_one_that_works,
    c_117_an_exact_state_is_gone_when_forgotten_and_too_large_in_the_future,
    c_118_a_list_shows_every_write_acknowledged_before_it,
    c_119_a_state_that_does_not_come_is_told_with_a_time_to_retry,
    c_120_pages_of_rare_objects_are_full_until_the_end,
    c_121_items_come_in_the_order_of_their_keys,
    c_122_selectors_that_do_not_parse_are_told_in_upstreams_words,
    c_123_fields_that_cannot_be_selected_are_refused,
    limits_are_whole_numbers_and_none_is_no_limit,
    pages_of_a_state_at_least_so_new_show_one_state,
    a_list_by_name_is_a_list_of_one_or_none,
];

/// A list of flunders of the default namespace, whose response must be 200.
async fn list(client: &Client, query: &str) -> Value {
    list_at(client, FLUNDERS, query).await
}

async fn list_at(client: &Client, path: &str, query: &str) -> Value {
    let answer = client.get(&format!("{path}?{query}")).await;
    assert_eq!(answer.code, 200, "{query}: {}", answer.text());
    answer.json()
}

async fn create_all(client: &Client, names: &[&str]) {
    for name in names {
        created(client, FLUNDERS, &flunder(name)).await;
    }
}

/// Follows continue tokens from the first page to the last.
async fn pages(client: &Client, path: &str, query: &str) -> Vec<Value> {
    let first = list_at(client, path, query).await;
    pages_after(client, path, query, first).await
}

async fn pages_after(client: &Client, path: &str, query: &str, first: Value) -> Vec<Value> {
    let mut pages = vec![first];
    while let Some(token) = token(&pages[pages.len() - 1]) {
        assert!(pages.len() < 100, "pages without end");
        let next = format!("{query}&continue={}", encoded(&token));
        pages.push(list_at(client, path, &next).await);
    }
    pages
}

fn token(list: &Value) -> Option<String> {
    let token = list["metadata"].get("continue")?.as_str().unwrap();
    Some(token.to_owned())
}

fn decoded(token: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(token).unwrap()).unwrap()
}

/// Asserts the error for a state that does not exist yet.
#[track_caller]
fn check_too_large(answer: &Answer, requested: u64) {
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    let start = format!("Timeout: Too large resource version: {requested}, current: ");
    let current = message.strip_prefix(&start).expect(&message);
    assert!(current.parse::<u64>().unwrap() < requested, "{message}");
    let cause =
        json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    let details = json!({"causes": [cause], "retryAfterSeconds": 1});
    check_failure(answer, 504, "Timeout", &message, details);
    assert_eq!(answer.header("retry-after"), "1");
}

async fn c_111_pages_show_one_state_while_writes_happen(on: Backend) {
    let (_cluster, client) = server(on);
    for index in 0..40 {
        created(&client, FLUNDERS, &flunder(&format!("f{index:02}"))).await;
    }
    let before = list(&client, "").await;
    let first = list(&client, "limit=6").await;
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&first)
        ))
        .await;
    let mut items = first["items"].as_array().unwrap().clone();
    let mut written = Vec::new();
    let mut next = token(&first);
    let mut round = 0;
    while let Some(token) = next {
        // Creates and deletes objects after and before the page.
        let disturb = async {
            let mut written = Vec::new();
            for name in [format!("f{round:02}x"), format!("f{:02}x", 39 - round)] {
                written.push(created(&client, FLUNDERS, &flunder(&name)).await);
            }
            for name in [
                format!("f{:02}", 2 * round),
                format!("f{:02}", 38 - 2 * round),
            ] {
                let path = format!("{FLUNDERS}/{name}");
                let patch = json!({"metadata": {"labels": {"round": round.to_string()}}});
                written.push(client.merge(&path, &patch).await.json());
            }
            for name in [2 * round + 1, 39 - 2 * round] {
                let path = format!("{FLUNDERS}/f{name:02}");
                assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
            }
            written
        };
        let path = format!("limit=6&continue={}", encoded(&token));
        let (during, page) = tokio::join!(disturb, list(&client, &path));
        written.extend(during);
        assert_eq!(revision(&page), revision(&first), "one state");
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        next = self::token(&page);
        round += 1;
    }
    assert_eq!(round, 6, "pages of 6 of 40");
    assert_eq!(json!(items), before["items"]);
    // A watch from that revision delivers the changes that the pages do not show.
    for object in written {
        let version = &object["metadata"]["resourceVersion"];
        while watch.event().await["object"]["metadata"]["resourceVersion"] != *version {}
    }
}

async fn c_112_a_token_is_unpadded_base64url_of_version_revision_and_start(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "b", "c"]).await;
    for (path, start) in [(FLUNDERS, "b"), (ALL_FLUNDERS, "default/b")] {
        let first = list_at(&client, path, "limit=2").await;
        let rv = revision(&first);
        let token = token(&first).unwrap();
        assert!(!token.contains('='), "{token}");
        let expected = format!(r#"{{"v":"meta.k8s.io/v1","rv":{rv},"start":"{start}\u0000"}}"#);
        assert_eq!(decoded(&token), expected);
        for start in [start.to_owned(), format!("/{start}")] {
            let other = json!({"v": "meta.k8s.io/v1", "rv": rv, "start": format!("{start}\0")});
            let other = URL_SAFE_NO_PAD.encode(other.to_string());
            let rest = list_at(&client, path, &format!("continue={other}")).await;
            assert_eq!(names(&rest), ["c"], "{start}");
            assert_eq!(revision(&rest), rv);
        }
    }
    let refused = async |token: &str, why: &str| {
        let path = format!("{FLUNDERS}?continue={}", encoded(token));
        let message = format!("invalid continue token: continue key is not valid: {why}");
        let answer = client.get(&path).await;
        check_failure(&answer, 400, "BadRequest", &message, json!(null));
    };
    refused("a!b", "illegal base64 data at input byte 1").await;
    for (token, why) in [
        (
            json!({"v": "meta.k8s.io/v1", "rv": 0, "start": "a\0"}),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            json!({"v": "meta.k8s.io/v1", "rv": 1, "start": ""}),
            "encoded start key empty (version meta.k8s.io/v1)",
        ),
        (
            json!({"v": "meta.k8s.io/v1", "rv": 1, "start": "../a"}),
            "../a",
        ),
        (
            json!({"v": "v0", "rv": 1, "start": "a"}),
            "server does not recognize this encoded version v0",
        ),
    ] {
        refused(&URL_SAFE_NO_PAD.encode(token.to_string()), why).await;
    }
}

async fn c_113_what_remains_is_counted_without_selectors_only(on: Backend) {
    let (_cluster, client) = server(on);
    for name in ["a", "b", "c", "d", "e"] {
        let mut object = flunder(name);
        object["metadata"]["labels"] = json!({"tier": "front"});
        created(&client, FLUNDERS, &object).await;
    }
    let remaining = |page: &Value| page["metadata"].get("remainingItemCount").cloned();
    for path in [FLUNDERS, ALL_FLUNDERS] {
        let pages = pages(&client, path, "limit=2").await;
        let counts: Vec<_> = pages.iter().map(remaining).collect();
        assert_eq!(counts, [Some(json!(3)), Some(json!(1)), None]);
    }
    for selector in [
        "labelSelector=tier",
        "fieldSelector=metadata.namespace%3Ddefault",
    ] {
        let pages = pages(&client, FLUNDERS, &format!("limit=2&{selector}")).await;
        let counts: Vec<_> = pages.iter().map(remaining).collect();
        assert_eq!(counts, [None, None, None], "{selector}");
    }
    // Exactly as many as the limit: nothing remains and no page follows.
    let whole = list(&client, "limit=5").await;
    assert_eq!(names(&whole).len(), 5);
    assert_eq!((remaining(&whole), token(&whole)), (None, None));
}

async fn c_114_any_state_ignores_the_limit(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "b", "c", "d"]).await;
    // Any state is accepted from here on: this revision exists now.
    let whole = list(&client, "").await;
    for query in [
        "resourceVersion=0&limit=2",
        "resourceVersion=0&limit=2&resourceVersionMatch=NotOlderThan",
        "resourceVersion=0",
    ] {
        let any = list(&client, query).await;
        assert_eq!(any["items"], whole["items"], "{query}");
        assert_eq!(token(&any), None);
        assert!(revision(&any) >= revision(&whole));
    }
    let token = token(&list(&client, "limit=1").await).unwrap();
    let rest = format!("resourceVersion=0&limit=1&continue={}", encoded(&token));
    let rest = list(&client, &rest).await;
    assert_eq!(names(&rest), ["b", "c", "d"]);
    assert_eq!(self::token(&rest), None);
}

async fn c_115_continue_excludes_a_resource_version_and_a_match(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "b"]).await;
    let first = list(&client, "limit=1").await;
    let token = encoded(&token(&first).unwrap());
    let refused = async |query: &str| client.get(&format!("{FLUNDERS}?{query}")).await;
    let version = revision(&first);
    let answer = refused(&format!("continue={token}&resourceVersion={version}")).await;
    let message = "specifying resource version is not allowed when using continue";
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    let continued = format!("continue={token}&resourceVersion=0&resourceVersionMatch=NotOlderThan");
    let of_match = "resourceVersionMatch";
    for (query, cause) in [
        (
            continued.as_str(),
            forbidden(
                "resourceVersionMatch is forbidden when continue is provided",
                of_match,
            ),
        ),
        // The other rows of the table of combinations.
        (
            "resourceVersionMatch=Exact",
            forbidden(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
                of_match,
            ),
        ),
        (
            "resourceVersionMatch=Foo&resourceVersion=1",
            unsupported(
                r#""Foo": supported values: "Exact", "NotOlderThan", """#,
                of_match,
            ),
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            forbidden(
                r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#,
                of_match,
            ),
        ),
        (
            "sendInitialEvents=true",
            forbidden(
                "sendInitialEvents is forbidden for list",
                "sendInitialEvents",
            ),
        ),
    ] {
        check_options(&refused(query).await, &[cause]);
    }
}

async fn c_116_a_token_of_a_forgotten_state_is_exchanged_for_one_that_works(on: Backend) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    create_all(&client, &["a", "b", "c", "d", "e"]).await;
    let first = list(&client, "limit=2").await;
    let old = token(&first).unwrap();
    for name in ["b", "d"] {
        let path = format!("{FLUNDERS}/{name}");
        assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
    }
    let newest = created(&client, FLUNDERS, &flunder("f")).await;
    cluster.forget(revision(&newest)).await;
    let client = cluster.client();
    let answer = client
        .get(&format!("{FLUNDERS}?limit=2&continue={}", encoded(&old)))
        .await;
    let new = answer.json()["metadata"]["continue"]
        .as_str()
        .unwrap()
        .to_owned();
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the remainder of \
         the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {"continue": new}, "status": "Failure",
        "message": message, "reason": "Expired", "code": 410,
    });
    check(&answer, 410, &expected);
    let rest = r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"b\u0000"}"#;
    assert_eq!(decoded(&new), rest);
    let rest = list(&client, &format!("limit=2&continue={}", encoded(&new))).await;
    let pages = pages_after(&client, FLUNDERS, "limit=2", rest).await;
    assert_eq!(pages.len(), 2);
    assert_eq!(names(&pages[0]), ["c", "e"]);
    assert_eq!(names(&pages[1]), ["f"]);
    assert!(revision(&pages[0]) >= revision(&newest));
    assert_eq!(revision(&pages[0]), revision(&pages[1]), "one state again");
}

async fn c_117_an_exact_state_is_gone_when_forgotten_and_too_large_in_the_future(on: Backend) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let old = created(&client, FLUNDERS, &flunder("a")).await;
    let new = created(&client, FLUNDERS, &flunder("b")).await;
    let exact = |revision: u64| format!("resourceVersion={revision}&resourceVersionMatch=Exact");
    let legacy = |revision: u64| format!("resourceVersion={revision}&limit=5");
    // While the revision is kept, its state does not change.
    for query in [exact(revision(&old)), legacy(revision(&old))] {
        let then = list(&client, &query).await;
        assert_eq!((names(&then), revision(&then)), (vec!["a"], revision(&old)));
    }
    cluster.forget(revision(&new)).await;
    let client = cluster.client();
    let message = "The resourceVersion for the provided list is too old.";
    for query in [exact(revision(&old)), legacy(revision(&old))] {
        let answer = client.get(&format!("{FLUNDERS}?{query}")).await;
        check_failure(&answer, 410, "Expired", message, json!(null));
    }
    let then = list(&client, &exact(revision(&new))).await;
    assert_eq!(names(&then), ["a", "b"]);
    let future = revision(&new) + 1_000_000;
    for query in [exact(future), legacy(future)] {
        check_too_large(&client.get(&format!("{FLUNDERS}?{query}")).await, future);
    }
}

async fn c_118_a_list_shows_every_write_acknowledged_before_it(on: Backend) {
    let (cluster, client) = server(on);
    let (_replica, reader) = another(&cluster, &client);
    for round in 0..30 {
        let name = format!("f{round:02}");
        let object = created(&client, FLUNDERS, &flunder(&name)).await;
        let path = [FLUNDERS, ALL_FLUNDERS][round % 2];
        let query = ["", "limit=500", "labelSelector=%21none"][round % 3];
        let list = list_at(&reader, path, query).await;
        assert_eq!(names(&list).len(), round + 1);
        assert_eq!(names(&list).last(), Some(&name.as_str()));
        assert!(revision(&list) >= revision(&object));
        // There are no changes of fischers; their list still has the current revision.
        let idle = list_at(&reader, FISCHERS, query).await;
        assert!(revision(&idle) >= revision(&object), "idle resources too");
        assert_eq!(
            reader.get(&format!("{FLUNDERS}/{name}")).await.json(),
            object
        );
    }
}

async fn c_119_a_state_that_does_not_come_is_told_with_a_time_to_retry(on: Backend) {
    let (_cluster, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let future = revision(&object) + 1_000_000;
    let paths = [
        "",
        "&resourceVersionMatch=NotOlderThan",
        "&resourceVersionMatch=NotOlderThan&limit=1",
    ]
    .map(|rest| format!("{FLUNDERS}?resourceVersion={future}{rest}"));
    let asked = paths.iter().map(|path| client.get(path));
    for answer in futures_util::future::join_all(asked).await {
        check_too_large(&answer, future);
    }
    check_too_large(
        &client
            .get(&format!("{FLUNDERS}/a?resourceVersion={future}"))
            .await,
        future,
    );
    // A change that arrives during the wait is shown.
    if is_cached() {
        let soon = revision(&list(&client, "").await) + 1;
        let query = format!("resourceVersion={soon}&resourceVersionMatch=NotOlderThan");
        let object = flunder("b");
        let (listed, _) = tokio::join!(list(&client, &query), created(&client, FLUNDERS, &object));
        assert!(revision(&listed) >= soon);
    }
}

async fn c_120_pages_of_rare_objects_are_full_until_the_end(on: Backend) {
    let (_cluster, client) = server(on);
    let mut rare = Vec::new();
    for index in 0..100 {
        let mut object = flunder(&format!("f{index:02}"));
        if index % 9 == 4 {
            object["metadata"]["labels"] = json!({"rare": "yes"});
            object["spec"] = json!({"reference": "x", "referenceType": "Fischer"});
            rare.push(format!("f{index:02}"));
        }
        created(&client, FLUNDERS, &object).await;
    }
    assert_eq!(rare.len(), 11);
    for selector in [
        "labelSelector=rare%3Dyes",
        "fieldSelector=spec.referenceType%3DFischer",
    ] {
        let pages = pages(&client, FLUNDERS, &format!("limit=3&{selector}")).await;
        let sizes: Vec<usize> = pages.iter().map(|page| names(page).len()).collect();
        assert_eq!(sizes, [3, 3, 3, 2], "{selector}");
        let found: Vec<&str> = pages.iter().flat_map(names).collect();
        assert_eq!(found, rare, "{selector}");
        assert!(
            pages
                .iter()
                .all(|page| revision(page) == revision(&pages[0]))
        );
    }
    // The other version returns the same.
    let pages = pages(&client, FLUNDERS_BETA, "limit=4&labelSelector=rare").await;
    let found: Vec<&str> = pages.iter().flat_map(names).collect();
    assert_eq!(found, rare);
}

async fn c_121_items_come_in_the_order_of_their_keys(on: Backend) {
    let (_cluster, client) = server(on);
    let mut keys = Vec::new();
    // A dash and a full stop sort before the slash after a namespace, digits and letters after it.
    for namespace in ["n", "n-a", "na", "n0"] {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        created(&client, "/api/v1/namespaces", &object).await;
        let path = format!("/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders");
        for name in ["b", "a", "a-b", "a.b", "a0", "10", "9"] {
            created(&client, &path, &flunder(name)).await;
            keys.push(format!("{namespace}/{name}"));
        }
    }
    keys.sort();
    assert!(keys[0].starts_with("n-a/"), "a dash comes before a slash");
    let key = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        format!("{}/{}", text("namespace"), text("name"))
    };
    let keys_of = |list: &Value| {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(key)
            .collect::<Vec<_>>()
    };
    let now = revision(&list_at(&client, ALL_FLUNDERS, "").await);
    for query in [
        String::new(),
        "resourceVersion=0".to_owned(),
        format!("resourceVersion={now}"),
        format!("resourceVersion={now}&resourceVersionMatch=Exact"),
        "labelSelector=%21none".to_owned(),
    ] {
        assert_eq!(
            keys_of(&list_at(&client, ALL_FLUNDERS, &query).await),
            keys,
            "{query}"
        );
    }
    let pages = pages(&client, ALL_FLUNDERS, "limit=4").await;
    assert_eq!(pages.iter().flat_map(keys_of).collect::<Vec<_>>(), keys);
    for query in ["", "&resourceVersion=0"] {
        let mut watch = client
            .watch(&format!("{ALL_FLUNDERS}?watch=1{query}"))
            .await;
        for expected in &keys {
            assert_eq!(key(&watch.event().await["object"]), *expected, "{query}");
        }
    }
}

async fn c_122_selectors_that_do_not_parse_are_told_in_upstreams_words(on: Backend) {
    let (_cluster, client) = server(on);
    let long = "x".repeat(64);
    let too_long = format!("a={long}");
    let name_part = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let label_value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
        and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
        for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let labels = [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("a===b", "unable to parse requirement: found '=', expected: identifier".to_owned()),
        ("a in", "unable to parse requirement: found '' expected: '('".to_owned()),
        ("a notin (x", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a,,b", "found ',', expected: identifier after ','".to_owned()),
        (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        (
            "a>b",
            r#"unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer"#
                .to_owned(),
        ),
        ("-x", format!(r#"unable to parse requirement: <nil>: Invalid value: "-x": {name_part}"#)),
        (
            &too_long,
            format!(r#"unable to parse requirement: values[0][a]: Invalid value: "{long}": must be no more than 63 bytes"#),
        ),
        ("a=-b", format!(r#"unable to parse requirement: values[0][a]: Invalid value: "-b": {label_value}"#)),
    ];
    let fields = [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "metadata.name>a",
            "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'",
        ),
        (
            r"metadata.name=\y",
            r"invalid field selector: invalid escape sequence: \y",
        ),
    ];
    let labels = labels
        .iter()
        .map(|(text, message)| ("labelSelector", *text, message.as_str()));
    let fields = fields
        .iter()
        .map(|(text, message)| ("fieldSelector", *text, *message));
    for (parameter, text, message) in labels.chain(fields) {
        let query = format!("{parameter}={}", encoded(text));
        for path in [
            format!("{FLUNDERS}?{query}"),
            format!("{FLUNDERS}?watch=1&{query}"),
        ] {
            let answer = client.get(&path).await;
            check_failure(&answer, 400, "BadRequest", message, json!(null));
        }
        let answer = client
            .delete(&format!("{FLUNDERS}?{query}"), &json!(null))
            .await;
        check_failure(&answer, 400, "BadRequest", message, json!(null));
    }
    // Unusual values that are valid.
    let mut object = flunder("a");
    object["metadata"]["labels"] = json!({"in": "", "n": "5"});
    created(&client, FLUNDERS, &object).await;
    for (parameter, text, found) in [
        ("labelSelector", "in", 1),
        ("labelSelector", "in in ()", 1),
        ("labelSelector", " n > 4 , n<6 ", 1),
        ("labelSelector", "n notin (5,6)", 0),
        ("labelSelector", "other!=x,!more", 1),
        ("labelSelector", "in=", 1),
        ("fieldSelector", ",metadata.name==a,", 1),
        ("fieldSelector", "metadata.namespace!=default", 0),
        ("fieldSelector", "spec.referenceType=", 1),
        ("fieldSelector", "metadata.namespace=elsewhere", 0),
    ] {
        let list = list(&client, &format!("{parameter}={}", encoded(text))).await;
        assert_eq!(names(&list).len(), found, "{text}");
    }
}

async fn c_123_fields_that_cannot_be_selected_are_refused(on: Backend) {
    let (_cluster, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let refused = |answer: Answer, field: &str| {
        let message = format!("field label not supported: {field}");
        check_failure(&answer, 400, "BadRequest", &message, json!(null));
    };
    for field in ["spec.zip", "spec", "metadata.uid", "status.phase"] {
        for selector in [format!("{field}=x"), format!("metadata.name=a,{field}!=x")] {
            let query = format!("fieldSelector={}", encoded(&selector));
            refused(client.get(&format!("{FLUNDERS}?{query}")).await, field);
            refused(
                client.get(&format!("{FLUNDERS}?watch=1&{query}")).await,
                field,
            );
            let path = format!("{FLUNDERS}?{query}");
            refused(client.delete(&path, &json!(null)).await, field);
        }
    }
    // Cluster-scoped kinds have no namespace to select by.
    let path = format!("{FISCHERS}?fieldSelector=metadata.namespace%3Ddefault");
    refused(client.get(&path).await, "metadata.namespace");
    assert_eq!(
        names(&list(&client, "").await),
        ["a"],
        "nothing was deleted"
    );
}

async fn limits_are_whole_numbers_and_none_is_no_limit(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "b", "c"]).await;
    for limit in ["0", "-1", "3", "500"] {
        let list = list(&client, &format!("limit={limit}")).await;
        assert_eq!((names(&list).len(), token(&list)), (3, None), "{limit}");
    }
    for limit in ["x", "1.5", ""] {
        let answer = client.get(&format!("{FLUNDERS}?limit={limit}")).await;
        assert_eq!(answer.code, 400, "{}", answer.text());
        assert_eq!(answer.json()["reason"], "BadRequest");
    }
}

async fn pages_of_a_state_at_least_so_new_show_one_state(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "b", "c"]).await;
    let now = revision(&list(&client, "").await);
    let query = format!("limit=2&resourceVersionMatch=NotOlderThan&resourceVersion={now}");
    let first = list(&client, &query).await;
    assert_eq!(names(&first), ["a", "b"], "the limit is kept");
    assert!(revision(&first) >= now);
    create_all(&client, &["d"]).await;
    let pages = pages_after(&client, FLUNDERS, "limit=2", first).await;
    assert_eq!(
        names(&pages[1]),
        ["c"],
        "what came later is not in this state"
    );
    assert_eq!((pages.len(), revision(&pages[1])), (2, revision(&pages[0])));
}

async fn a_list_by_name_is_a_list_of_one_or_none(on: Backend) {
    let (_cluster, client) = server(on);
    create_all(&client, &["a", "ab", "b"]).await;
    let before = revision(&list(&client, "").await);
    let removed = client.delete(&format!("{FLUNDERS}/a"), &json!(null)).await;
    assert_eq!(removed.code, 200);
    let by_name = |name: &str| format!("fieldSelector=metadata.name%3D{name}");
    for (path, name, expected) in [
        (FLUNDERS, "ab", vec!["ab"]),
        (ALL_FLUNDERS, "ab", vec!["ab"]),
        (FLUNDERS_BETA, "ab", vec!["ab"]),
        (FLUNDERS, "a", vec![]),
        (ALL_FLUNDERS, "a", vec![]),
    ] {
        for more in [
            "",
            "&limit=1",
            "&resourceVersion=0&limit=1",
            "&labelSelector=%21x",
        ] {
            let query = by_name(name) + more;
            let list = list_at(&client, path, &query).await;
            assert_eq!(names(&list), expected, "{path} {name}{more}");
            assert!(list["kind"] == "FlunderList" && revision(&list) > before);
        }
    }
    // At a past revision it shows the past state, and at a future one an error.
    let exact = format!(
        "{}&resourceVersionMatch=Exact&resourceVersion={before}",
        by_name("a")
    );
    let then = list(&client, &exact).await;
    assert_eq!((names(&then), revision(&then)), (vec!["a"], before));
    let future = before + 1_000_000;
    let path = format!("{FLUNDERS}?{}&resourceVersion={future}", by_name("a"));
    check_too_large(&client.get(&path).await, future);
}
