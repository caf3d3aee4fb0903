//! Queries that are built, and those that are parsed. What client-go answers is compared in `tests/oracle`.

use serde_json::{Value, json};

use super::*;
use crate::path::JsonPath;

fn query(step: QueryStep) -> JsonQuery {
    JsonQuery::new(JsonPath::new(["l"])).then(step)
}

#[track_caller]
fn check(query: &JsonQuery, value: Value, expected: Option<Value>) {
    let document = json!({ "l": value });
    let found = query.first(&document).and_then(QueryValue::as_value);
    assert_eq!(found.cloned(), expected, "{query}");
}

#[test]
fn steps_choose_among_items() {
    let list = || json!(["a", "b", "c"]);
    check(&query(QueryStep::Item(1)), list(), Some(json!("b")));
    check(&query(QueryStep::Item(-1)), list(), Some(json!("c")));
    check(&query(QueryStep::Item(3)), list(), None);
    check(&query(QueryStep::Item(-4)), list(), None);
    check(&query(QueryStep::Item(i64::MIN)), list(), None);
    check(&query(QueryStep::Item(0)), json!({"0": 1}), None);
    check(&query(QueryStep::Items), list(), Some(json!("a")));
    check(&query(QueryStep::Items), json!({"k": 1}), None);
    check(&query(QueryStep::Every), json!({"k": 1}), Some(json!(1)));
    check(&query(QueryStep::Every), json!([]), None);
    let name = query(QueryStep::Every).then(QueryStep::Field("n".into()));
    check(&name, json!([{"m": 1}, {"n": 2}]), Some(json!(2)));
    check(
        &query(QueryStep::Field("x.io/y".into())),
        json!({"x.io/y": "v"}),
        Some(json!("v")),
    );
}

#[test]
fn filters_compare_values_of_one_type() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let first_that = |comparison, other: Value, items: Value, expected: Option<i64>| {
        let filter = QueryFilter::compares(JsonPath::new(["n"]), comparison, other);
        let query = query(QueryStep::Where(filter)).then(QueryStep::Field("is".into()));
        check(&query, items, expected.map(Value::from));
    };
    let integers = || json!([{"is": 0}, {"n": 1, "is": 1}, {"n": 2, "is": 2}]);
    for (comparison, other, expected) in [
        (Equal, 2, Some(2)),
        (Equal, 3, None),
        (NotEqual, 1, Some(2)),
        (Less, 2, Some(1)),
        (LessOrEqual, 1, Some(1)),
        (Greater, 1, Some(2)),
        (GreaterOrEqual, 2, Some(2)),
        (Greater, 2, None),
    ] {
        first_that(comparison, json!(other), integers(), expected);
    }
    first_that(Equal, json!("x"), json!([{"n": "x", "is": 3}]), Some(3));
    first_that(Greater, json!(1.5), json!([{"n": 2.5, "is": 3}]), Some(3));
    first_that(Equal, json!(true), json!([{"n": true, "is": 3}]), Some(3));
    first_that(Less, json!(true), json!([{"n": false, "is": 3}]), None);
    // One that cannot be compared leaves nothing.
    let mixed = json!([{"n": 2, "is": 2}, {"n": 2.5, "is": 3}]);
    first_that(Equal, json!(2), mixed, None);
    let has = QueryFilter::exists(JsonPath::new(["n"]));
    check(
        &query(QueryStep::Where(has)),
        integers(),
        Some(json!({"n": 1, "is": 1})),
    );
    let itself = QueryFilter::compares(JsonPath::new([""; 0]), Equal, "b");
    check(
        &query(QueryStep::Where(itself.clone())),
        json!(["a", "b"]),
        Some(json!("b")),
    );
    check(&query(QueryStep::Where(itself)), json!("b"), None);
}

#[test]
fn queries_are_printed_as_jsonpath() {
    let filter = |path: &[&str], other: Value| {
        let path = JsonPath::new(path.iter().copied());
        QueryStep::Where(QueryFilter::compares(path, Comparison::NotEqual, other))
    };
    for (step, expected) in [
        (QueryStep::Field("a-b".into()), ".l.a-b"),
        (QueryStep::Field("x.io/y".into()), r".l['x\.io/y']"),
        (QueryStep::Item(-1), ".l[-1]"),
        (QueryStep::Items, ".l[*]"),
        (QueryStep::Every, ".l.*"),
        (filter(&["a", "b"], json!("c")), r#".l[?(@.a.b!="c")]"#),
        (filter(&[], json!(1.5)), ".l[?(@!=1.5)]"),
        (filter(&["a"], json!("\"")), ".l[?(@.a!='\"')]"),
        (
            QueryStep::Where(QueryFilter::exists(JsonPath::new(["a"]))),
            ".l[?(@.a)]",
        ),
    ] {
        assert_eq!(query(step).to_string(), expected);
    }
}

#[track_caller]
fn finds(path: &str, expected: &str) {
    let document = json!({
        "metadata": {"labels": {"app.io/name": "web", "a": "b"}},
        "spec": {"replicas": 3, "hosts": ["x", "y"], "map": {"k": {"v": 1}}, "text": "t", "half": 1.5, "none": null, "wide": 1e21},
        "status": {"conditions": [
            {"type": "Synced", "status": "False", "n": 1},
            {"type": "Ready (all)", "status": "True", "n": 2, "ok": true}]},
    });
    let query = JsonQuery::parse(path).unwrap_or_else(|error| panic!("{error}"));
    let found = query.first(&document).map(|found| match found {
        QueryValue::Value(Value::String(text)) => text.clone(),
        QueryValue::Value(value) => value.to_string(),
        QueryValue::Integer(integer) => integer.to_string(),
        QueryValue::Byte(byte) => byte.to_string(),
    });
    assert_eq!(
        found.as_deref(),
        Some(expected).filter(|it| *it != "-"),
        "{path}"
    );
    let printed = query.to_string();
    assert_eq!(JsonQuery::parse(&printed), Ok(query), "{path} as {printed}");
}

#[test]
fn the_paths_of_columns_are_evaluated() {
    for (path, expected) in [
        (".spec.replicas", "3"),
        ("$.spec.replicas", "3"),
        (r".metadata.labels.app\.io/name", "web"),
        (".metadata.labels['app.io/name']", "-"),
        (r".metadata.labels['app\.io/name']", "web"),
        ("['spec'].replicas", "3"),
        (".spec.hosts[0]", "x"),
        (".spec.hosts[-1]", "y"),
        (".spec.hosts[*]", "x"),
        (".spec.hosts[1:]", "y"),
        (".spec.hosts[::2]", "x"),
        (".spec.hosts[-1:]", "y"),
        (".spec.hosts[1:1]", "-"),
        (".spec.hosts[0:3]", "-"),
        (".spec.hosts[::0]", "-"),
        (".spec.hosts[]", "x"),
        (".spec.hosts[7]", "-"),
        (".spec.hosts", r#"["x","y"]"#),
        (".spec.map.*.v", "1"),
        (".spec.map", r#"{"k":{"v":1}}"#),
        (".spec['text','replicas']", "t"),
        (".spec['nothing','replicas']", "3"),
        (".spec.hosts[1,0]", "y"),
        ("..v", "1"),
        (".spec..v", "1"),
        (".spec.text.*", "116"),
        (".spec.half", "1.5"),
        (".spec.wide", "1e+21"),
        (".spec.none", "null"),
        (".spec.none.a", "-"),
        (".spec 5", "5"),
        (".spec.nothing \"text\"", "text"),
        (".spec true", "true"),
        (".spec word", "-"),
        (
            ".spec}{.nothing",
            r#"{"half":1.5,"hosts":["x","y"],"map":{"k":{"v":1}},"none":null,"replicas":3,"text":"t","wide":1e+21}"#,
        ),
        (".spec.text}{.spec.hosts[7]", "-"),
    ] {
        finds(path, expected);
    }
}

#[test]
fn the_filters_of_columns_are_evaluated() {
    for (filter, expected) in [
        (r#"[?(@.type=="Synced")].status"#, "False"),
        ("[?(@.type == 'Ready (all)')].status", "True"),
        ("[?( @.n >= 2 )].status", "True"),
        ("[?(@.n >= 1.5)].status", "-"),
        ("[?(@.ok==true)].status", "True"),
        ("[?(@.ok)].n", "2"),
        ("[?(@.n<-1)].n", "-"),
        ("[?(@.n=2)].n", "-"),
        ("[?(@.type[5])].n", "1"),
        ("[?(\"Synced\"==@.type)].n", "1"),
    ] {
        finds(&format!(".status.conditions{filter}"), expected);
    }
    finds(".spec.hosts[?(@=='y')]", "y");
}

#[test]
fn other_paths_are_errors() {
    for path in [
        "",
        "spec",
        ".a[",
        ".a['b'",
        ".a[b]",
        ".a[--1]",
        ".a[-]",
        ".a[1:2:3:4]",
        ".a[99999999999999999999]",
        ".a[?(@.b==)]",
        ".a[?(@.b=='c)]",
        ".a[?(@.b)",
        ".a {.b}",
        ".a....b",
        "..*",
        ".a\t",
        ".a\n",
        ".a 1.2.3",
        ".a 'b",
        r".a '\q'",
    ] {
        assert!(JsonQuery::parse(path).is_err(), "{path:?}");
    }
    let error = JsonQuery::parse(".a[b]").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"in brackets stands a number, a slice, `*` or a key in single quotes, at byte 4 of "{.a[b]}""#
    );
}

#[test]
fn a_query_ends_when_it_has_looked_at_enough_values() {
    let doubled = JsonQuery::parse(&format!(".a{}", "[0,0]".repeat(60))).unwrap();
    let nested = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let document = json!({"a": nested});
    assert_eq!(doubled.first_below(document.get("a"), 1_000), None);
    assert_eq!(doubled.first(&document), None);
    let filtered = JsonQuery::parse(".a[?(@...*...*)]").unwrap();
    assert_eq!(filtered.first_below(document.get("a"), 50), None);
    assert!(filtered.first_below(document.get("a"), 1_000_000).is_some());
}
