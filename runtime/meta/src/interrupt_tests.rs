//! Work of every kind ends soon when it is interrupted.

use serde_json::{Value, json};

use crate::codec::{Decoder, Format};
use crate::interrupt::Interrupt;
use crate::managed_fields::Ownership;
use crate::patch::Patch;
use crate::processor_time;
use crate::query::JsonQuery;
use crate::regexp::Pattern;
use crate::schema::Schema;

/// Number of items of the documents here.
const ITEMS: usize = 4_000;

fn schema() -> Schema {
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]+$"},
        "size": {"type": "integer", "default": 1},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true},
    }, "required": ["name"]});
    let items = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    Schema::of_custom_resource(&json!({"type": "object", "properties": {"items": items}})).unwrap()
}

fn document(first: usize) -> Value {
    let item =
        |at: usize| json!({"name": format!("n{at}"), "tags": ["a", "b"], "unknown": {"a": [at]}});
    json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "items": (first..first + ITEMS).map(item).collect::<Value>()})
}

/// Work on a copy of the first document, which it returns.
type Work = Box<dyn Fn(Value) -> Value>;

fn works() -> Vec<(&'static str, Work)> {
    let work = |name, work: Work| (name, work);
    let [one, other] = [document(0), document(ITEMS / 2)];
    let (json, yaml) = (one.to_string(), format!("# YAML\n{one}"));
    let test = json!({"op": "test", "path": "/items", "value": one["items"]});
    let replace = json!({"op": "replace", "path": "/items", "value": other["items"]});
    // Three tests: a patch copies the document before, which is not interrupted.
    let patch = json!([test, test, test, replace]);
    let applies = |parse: fn(&[u8]) -> Result<Patch, crate::patch::PatchError>, patch: &Value| {
        let patch = parse(patch.to_string().as_bytes()).unwrap();
        let schema = schema();
        Box::new(move |mut copy| {
            let _ = patch.apply(&schema, &mut copy);
            copy
        }) as Work
    };
    let with_schema = |work: fn(&Schema, &mut Value, &Value)| {
        let (schema, other) = (schema(), other.clone());
        Box::new(move |mut copy| {
            work(&schema, &mut copy, &other);
            copy
        }) as Work
    };
    let decoding = |body: String, format| {
        let schema = schema();
        Box::new(move |copy| {
            drop(Decoder::new(format).schema(&schema).decode(body.as_bytes()));
            copy
        }) as Work
    };
    vec![
        work("decoding JSON", decoding(json, Format::Json)),
        work("decoding YAML", decoding(yaml, Format::Yaml)),
        work("pruning", with_schema(|schema, one, _| schema.prune(one))),
        work(
            "defaulting",
            with_schema(|schema, one, _| {
                schema.default(one);
            }),
        ),
        work(
            "validation",
            with_schema(|schema, one, _| drop(schema.validate(one))),
        ),
        work(
            "validation of an update",
            with_schema(|schema, one, other| drop(schema.validate_update(other, one))),
        ),
        work(
            "the fields of an apply",
            with_schema(|schema, one, _| drop(Ownership::of(schema).present_named_fields(one))),
        ),
        work(
            "the check of an apply",
            with_schema(|schema, one, _| drop(Ownership::of(schema).check_applied(one))),
        ),
        work(
            "the merge of an apply",
            with_schema(|schema, one, other| {
                Ownership::of(schema)
                    .merge_applied(one.as_object_mut().unwrap(), other.as_object().unwrap());
            }),
        ),
        work(
            "changed fields",
            with_schema(|schema, one, other| {
                drop(Ownership::of(schema).changed_fields(one, other));
            }),
        ),
        work("test and replace", applies(Patch::parse_json, &patch)),
        work("a merge patch", applies(Patch::parse_merge, &other)),
        work("a search in steps", {
            let pattern = Pattern::new("a[ab]{50}c").unwrap();
            let text = "abb".repeat(20_000);
            Box::new(move |copy| {
                assert!(!pattern.is_match(&text));
                copy
            })
        }),
        work("all matches of a search in steps", {
            let pattern = Pattern::new("a[ab]{50}c").unwrap();
            let text = "abb".repeat(20_000);
            Box::new(move |copy| {
                assert_eq!(pattern.find(&text), None);
                copy
            })
        }),
        work("columns", {
            let query = JsonQuery::parse(".items[?(@.name==\"none\")].size").unwrap();
            Box::new(move |copy| {
                assert!(query.first(&copy).is_none());
                copy
            })
        }),
    ]
}

#[test]
fn what_is_interrupted_ends_soon() {
    let interrupted = Interrupt::default();
    interrupted.set();
    let mut failures = Vec::new();
    for (name, work) in works() {
        let copy = || document(0);
        let whole = processor_time::least_with(copy, &work);
        let part = processor_time::least_with(copy, |copy| interrupted.scope(|| work(copy)));
        println!("{name}: {whole} ns, interrupted {part} ns");
        if 2 * part > whole {
            failures.push(format!("{name}: {whole} ns, interrupted {part} ns"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
