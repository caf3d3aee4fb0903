//! Twice the schema and twice the document are twice the work, for rules in each place and for each kind of function.

use apiloom_schema::field::FieldPath;
use serde_json::{Map, Value as Json, json};

use super::cpu_time;
use crate::compile;

/// A schema with rules, and a document for which all of them are true, of a size.
type Make = fn(usize) -> (Json, Json);

/// The work that takes long enough to be measured, in nanoseconds of a processor.
const MEASURED: u64 = 15_000_000;

/// Largest number of items and values that the schemas allow, by which the costs of rules are estimated.
const MOST: usize = 100_000;

/// Largest size, of which four times as much is within the costs of a rule at run time.
const LARGEST: usize = 16_000;

/// The time of compiling the rules, and of evaluating them for a document and a change of it; the least of some attempts.
fn work(make: Make, size: usize) -> u64 {
    let (schema, document) = make(size);
    let schema = json!({"type": "object", "properties": {"v": schema}});
    let document = json!({"v": document});
    let once = || {
        let started = cpu_time();
        let compiled = compile(&schema, &FieldPath::root());
        assert_eq!(compiled.errors, [], "{size}");
        let rules = compiled.rules.unwrap();
        let [new, changed] = [None, Some(&document)].map(|old| rules.validate(&document, old));
        let took = cpu_time() - started;
        assert_eq!((new, changed), (vec![], vec![]), "{size}");
        took.as_nanos().try_into().unwrap()
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

fn fields(size: usize, make: impl Fn(usize) -> Json) -> Json {
    let fields: Map<_, _> = (0..size).map(|at| (format!("f{at}"), make(at))).collect();
    Json::Object(fields)
}

fn items(size: usize, make: impl Fn(usize) -> Json) -> Json {
    (0..size).map(make).collect()
}

fn rules(text: &str) -> Json {
    json!([{"rule": text}])
}

/// A list of integers in order, with a rule about it.
fn numbers(size: usize, rule: &str) -> (Json, Json) {
    let schema = json!({"type": "array", "maxItems": MOST, "items": {"type": "integer"}, "x-kubernetes-validations": rules(rule)});
    (schema, items(size, |at| json!(at)))
}

/// A long text, with a rule about it.
fn text(size: usize, rule: &str) -> (Json, Json) {
    let schema =
        json!({"type": "string", "maxLength": 50 * MOST, "x-kubernetes-validations": rules(rule)});
    (schema, json!("ab c".repeat(5 * size)))
}

/// A list with keys whose items have a rule.
fn keyed(size: usize, item: Json) -> (Json, Json) {
    let schema = json!({"type": "array", "maxItems": MOST / 10, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    (
        schema,
        items(size, |at| json!({"k": format!("k{at}"), "v": at})),
    )
}

const RULES: &[(&str, Make)] = &[
    ("rules of many properties", |size| {
        let property = |_| json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": rules("self != 'x'")});
        (
            json!({"type": "object", "properties": fields(size, property)}),
            fields(size, |at| json!(at.to_string())),
        )
    }),
    ("many rules of a value", |size| {
        let rule = |at: usize| json!({"rule": format!("self != {at}")});
        (
            json!({"type": "integer", "x-kubernetes-validations": items(size, rule)}),
            json!(-1),
        )
    }),
    ("rules of items", |size| {
        (
            json!({"type": "array", "maxItems": MOST, "items": {"type": "integer", "x-kubernetes-validations": rules("self >= 0")}}),
            items(size, |at| json!(at)),
        )
    }),
    ("rules of values", |size| {
        (
            json!({"type": "object", "maxProperties": MOST, "additionalProperties": {"type": "integer", "x-kubernetes-validations": rules("self >= 0")}}),
            fields(size, |at| json!(at)),
        )
    }),
    ("rules of items of items", |size| {
        let inner = json!({"type": "array", "maxItems": 10, "items": {"type": "integer", "x-kubernetes-validations": rules("self >= 0")}});
        (
            json!({"type": "array", "maxItems": MOST / 10, "items": inner}),
            items(size, |at| json!([at, at])),
        )
    }),
    ("rules of changed items", |size| {
        keyed(
            size,
            json!({"type": "object", "required": ["k", "v"], "properties": {"k": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}}, "x-kubernetes-validations": rules("self.v >= oldSelf.v")}),
        )
    }),
    ("a list and its old value", |size| {
        numbers(size, "self == oldSelf")
    }),
    ("a map and its old value", |size| {
        (
            json!({"type": "object", "maxProperties": MOST, "additionalProperties": {"type": "integer"}, "x-kubernetes-validations": rules("self == oldSelf")}),
            fields(size, |at| json!(at)),
        )
    }),
    ("all", |size| numbers(size, "self.all(x, x >= 0)")),
    ("exists_one", |size| {
        numbers(size, "self.exists_one(x, x == 1)")
    }),
    ("map", |size| numbers(size, "self.map(x, x + 1).size() > 0")),
    ("filter", |size| {
        numbers(size, "self.filter(x, x > 1).size() > 0")
    }),
    ("in", |size| numbers(size, "!(-1 in self)")),
    ("sum, min and max", |size| {
        numbers(size, "self.sum() >= self.max() && self.min() == 0")
    }),
    ("isSorted", |size| numbers(size, "self.isSorted()")),
    ("indexOf", |size| numbers(size, "self.indexOf(-1) == -1")),
    ("joined lists", |size| {
        numbers(size, "(self + self).size() > 0")
    }),
    ("keys of a map", |size| {
        (
            json!({"type": "object", "maxProperties": MOST, "additionalProperties": {"type": "integer"}, "x-kubernetes-validations": rules("self.all(k, k != '' && self[k] >= 0)")}),
            fields(size, |at| json!(at)),
        )
    }),
    ("contains", |size| text(size, "!self.contains('abz')")),
    ("matches", |size| text(size, "self.matches('^[a-c ]+$')")),
    ("find", |size| text(size, "self.find('z+') == ''")),
    ("findAll", |size| {
        text(size, "self.findAll('z+').size() == 0")
    }),
    ("lowerAscii", |size| text(size, "self.lowerAscii() == self")),
    ("replace", |size| {
        text(size, "self.replace('ab', 'ba') != self")
    }),
    ("split", |size| text(size, "self.split(' ').size() > 0")),
    ("substring", |size| text(size, "self.substring(1) != self")),
    // The text of a rule has a limit.
    ("a set of literals", |size| {
        let literals: Vec<_> = (0..size / 16).map(|at| format!("'v{at}'")).collect();
        let rule = format!("!(self in [{}])", literals.join(", "));
        (
            json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": rules(&rule)}),
            json!("x"),
        )
    }),
    ("alternatives", |size| {
        let terms: Vec<_> = (0..size / 16).map(|at| format!("self != {at}")).collect();
        (
            json!({"type": "integer", "x-kubernetes-validations": rules(&terms.join(" && "))}),
            json!(-1),
        )
    }),
];

#[test]
fn twice_the_rules_and_the_document_are_twice_the_work() {
    let mut failures = Vec::new();
    for (name, make) in RULES {
        let mut size = 500;
        let mut once = work(*make, size);
        while once < MEASURED && size < LARGEST {
            size *= 2;
            once = work(*make, size);
        }
        let twice = work(*make, 2 * size);
        println!("{name}: {size} take {once} ns, twice as much takes {twice} ns");
        // Quadratic work is four times as much, and twice in a row: others disturb a measurement now and then.
        if twice > 3 * once {
            let again = work(*make, 4 * size);
            if again > 3 * twice {
                failures.push(format!(
                    "{name}: {size}, twice and four times as much take {once}, {twice} and {again} ns"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The parts of a schema were searched for rules once for each level above them.
#[test]
fn a_deep_schema_is_searched_for_rules_once() {
    let wide = json!({"type": "string", "enum": items(100_000, |at| json!(at.to_string())), "x-kubernetes-validations": rules("self != 'x'")});
    let took = |levels: usize| {
        let nest = |inner, _| json!({"type": "object", "properties": {"p": inner}});
        let schema = (0..levels).fold(wide.clone(), nest);
        let once = || {
            let started = cpu_time();
            let compiled = compile(&schema, &FieldPath::root());
            let took = cpu_time() - started;
            assert_eq!(compiled.errors, []);
            took
        };
        (0..3).map(|_| once()).min().unwrap_or_default()
    };
    let (flat, deep) = (took(1), took(60));
    println!("one level takes {flat:?}, 60 take {deep:?}");
    assert!(
        deep < 4 * flat,
        "60 levels take {deep:?}, one takes {flat:?}"
    );
}
