//! Requests on stored objects that would take long, such as patches, tables and conversions: they end soon after their deadline,
//! which takes a small part of what the same request takes without one.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::arena::{self, Load};
use crate::definitions::{Attacked, MUCH_ROOM};
use crate::interrupts::{SPENT, reset_when_busy, spent, until_idle};
use crate::process;
use crate::wire::{Answered, Call, OPEN, Target};

/// How long the interrupted requests may take.
const TIMEOUT: &str = "timeout=50ms";

/// A request takes at least so many times as much processor time as one that is interrupted.
const TIMES: u32 = 3;

const JSON: &str = "application/json";
pub(crate) const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// How often an interrupted request is sent.
const ATTEMPTS: usize = 3;

/// A request for the objects of a kind, which takes long.
struct Work {
    name: &'static str,
    /// The versions of the kind.
    versions: Value,
    /// The objects, without their type and name.
    objects: Vec<Value>,
    /// A patch of the first object, which prepares it.
    before: Option<Value>,
    /// Below `/apis/ex.io`, if it has no slash at its beginning; `KINDS` stands for the resource.
    path: &'static str,
    accept: &'static str,
    /// The type and the body of a patch; without one it is a GET.
    patch: Option<(&'static str, Value)>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            name: "",
            versions: json!([version("v1", &free())]),
            objects: Vec::new(),
            before: None,
            path: "v1/KINDS/o0",
            accept: JSON,
            patch: None,
        }
    }
}

/// A schema of any fields.
fn free() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn version(name: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
}

/// Versions of which the second one has a schema by which every value is looked at, and a default is missing in each item.
fn two_versions() -> Value {
    let item = json!({"type": "object", "properties": {"k": {"type": "integer"}, "d": {"type": "integer", "default": 1}}});
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}, "text": {"type": "string"}}});
    let mut second = version("v2", &spec);
    second["selectableFields"] = json!([{"jsonPath": ".spec.text"}]);
    json!([version("v1", &free()), second])
}

/// A version with columns that search a list.
fn searched(columns: usize) -> Value {
    let column = |at: usize| {
        let path = format!(".spec.items[?(@.k=={at})].k");
        json!({"name": format!("c{at}"), "type": "integer", "jsonPath": path})
    };
    let mut version = version("v1", &free());
    version["additionalPrinterColumns"] = (1..=columns).map(column).collect();
    json!([version])
}

fn items(count: usize) -> Value {
    json!({"spec": {"items": vec![json!({"k": 0}); count]}})
}

fn fields(count: usize) -> Value {
    (0..count).map(|at| (format!("k{at}"), json!(at))).collect()
}

/// How many items of a list with keys are applied.
const NAMED: usize = 14_000;

/// Items with keys, all of which have this value.
fn named(value: u8) -> Value {
    (0..NAMED)
        .map(|at| json!({"name": at.to_string(), "v": value}))
        .collect()
}

/// A version whose objects are lists of such items.
fn of_named() -> Value {
    let properties = json!({"name": {"type": "string"}, "v": {"type": "integer"}});
    let item = json!({"type": "object", "required": ["name"], "properties": properties});
    let spec = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    json!([version("v1", &spec)])
}

/// A patch that gives an object such items, with two owners.
fn owned() -> Value {
    let owned: Value = (0..NAMED)
        .map(|at| {
            (
                format!("k:{{\"name\":\"{at}\"}}"),
                json!({".": {}, "f:name": {}, "f:v": {}}),
            )
        })
        .collect();
    let entry = |manager| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "ex.io/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}})
    };
    let managed = ["one", "two"].map(entry);
    json!({"metadata": {"managedFields": managed}, "spec": named(0)})
}

fn patches() -> Vec<Work> {
    let moves = [["/spec/a", "/spec/b"], ["/spec/b", "/spec/a"]];
    let moves = moves.map(|[from, path]| json!({"op": "move", "from": from, "path": path}));
    let finalizers: Vec<_> = (0..70_000).map(|at| format!("ex.io/{at}")).collect();
    vec![
        Work {
            name: "a JSON patch",
            objects: vec![json!({"spec": {"a": vec![0; 4_900], "b": vec![0; 500_000]}})],
            patch: Some((
                JSON_PATCH,
                moves.iter().cycle().take(9_998).cloned().collect(),
            )),
            ..Work::default()
        },
        Work {
            name: "a merge patch",
            objects: vec![items(300_000)],
            patch: Some((MERGE_PATCH, json!({"spec": {"other": fields(10_000)}}))),
            ..Work::default()
        },
        Work {
            name: "a strategic merge patch",
            path: "/api/v1/namespaces/default",
            patch: Some((
                STRATEGIC_PATCH,
                json!({"metadata": {"finalizers": finalizers}}),
            )),
            ..Work::default()
        },
        Work {
            name: "an apply to a list with other owners",
            versions: of_named(),
            objects: vec![json!({"spec": []})],
            before: Some(owned()),
            path: "v1/KINDS/o0?fieldManager=m&force=true",
            patch: Some((APPLY, json!({"spec": named(1)}))),
            ..Work::default()
        },
    ]
}

fn reads() -> Vec<Work> {
    let table = |name, columns, objects, path| Work {
        name,
        versions: searched(columns),
        objects,
        path,
        accept: TABLE,
        ..Work::default()
    };
    let converted = |name, path| Work {
        name,
        versions: two_versions(),
        objects: vec![items(60_000); 8],
        path,
        ..Work::default()
    };
    vec![
        table(
            "the table of an object",
            60,
            vec![items(100_000)],
            "v1/KINDS/o0",
        ),
        table("a table of objects", 8, vec![items(60_000); 12], "v1/KINDS"),
        Work {
            objects: vec![items(300_000)],
            ..converted("an object in another version", "v2/KINDS/o0")
        },
        converted("objects in another version", "v2/KINDS"),
        converted("objects with a label", "v2/KINDS?labelSelector=of!=none"),
        converted(
            "objects with a field",
            "v2/KINDS?fieldSelector=spec.text!=x",
        ),
    ]
}

/// Prepares a request, and returns its path.
async fn prepare(attacked: &Attacked, target: &Target, number: usize, work: &Work) -> String {
    if work.path.starts_with('/') {
        return work.path.to_owned();
    }
    attacked.define_versions(number, &work.versions).await;
    let kinds = format!("kinds{number}");
    let complete = |(at, object): (usize, &Value)| {
        let mut object = object.clone();
        object["apiVersion"] = json!("ex.io/v1");
        object["kind"] = json!(format!("Kind{number}"));
        object["metadata"]["name"] = json!(format!("o{at}"));
        object
    };
    let objects: Vec<_> = work.objects.iter().enumerate().map(complete).collect();
    target
        .create_all(&format!("/apis/ex.io/v1/{kinds}"), &objects)
        .await;
    if let Some(before) = &work.before {
        let path = format!("/apis/ex.io/v1/{kinds}/o0");
        let body = Bytes::from(before.to_string());
        let patched = target
            .call(Call::new("PATCH", &path).with_body(MERGE_PATCH, body))
            .await
            .unwrap();
        assert_eq!(patched.code, 200, "{patched:?}");
    }
    format!("/apis/ex.io/{}", work.path.replace("KINDS", &kinds))
}

fn body(number: usize, (content_type, patch): &(&'static str, Value)) -> Bytes {
    let mut patch = patch.clone();
    if *content_type == APPLY {
        patch["apiVersion"] = json!("ex.io/v1");
        patch["kind"] = json!(format!("Kind{number}"));
    }
    Bytes::from(patch.to_string())
}

#[test]
fn patches_end_with_their_deadline() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(deadlines(patches()));
}

#[test]
fn tables_and_conversions_end_with_their_deadline() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(deadlines(reads()));
}

/// As [`spent`], the least of several. The server may do something else meanwhile, such as reading the objects of a kind some time
/// after it was defined.
async fn least_spent<'a>(
    pid: u32,
    target: &Target,
    call: impl Fn() -> Call<'a>,
) -> (Answered, Duration) {
    let mut least = spent(pid, target, call()).await;
    for _ in 1..ATTEMPTS {
        let next = spent(pid, target, call()).await;
        // An answer of another kind stays.
        if least.0.code == next.0.code && next.1 < least.1 || next.0.code != 504 {
            least = next;
        }
    }
    least
}

async fn deadlines(works: Vec<Work>) {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(dir.path(), MUCH_ROOM);
    let (pid, target) = (attacked.server.pid(), Target::of(&attacked.server));
    let mut failures = Vec::new();
    for (number, work) in works.iter().enumerate() {
        let path = prepare(&attacked, &target, number, work).await;
        until_idle(pid).await;
        let mark = if path.contains('?') { '&' } else { '?' };
        let timed = format!("{path}{mark}{TIMEOUT}");
        let call = |path| match &work.patch {
            Some(patch) => Call::new("PATCH", path).with_body(patch.0, body(number, patch)),
            None => Call::new("GET", path).with_header("accept", work.accept),
        };
        let (cut, short) = least_spent(pid, &target, || call(&timed)).await;
        let load = Load::now(pid, &[]);
        let (whole, long) = spent(pid, &target, call(&path)).await;
        println!(
            "{}: {cut:?} after {short:?}, {whole:?} after {long:?}",
            work.name
        );
        // On a busy machine it may come to its own deadline: its work was even more then, and how much is not known.
        let is_whole = whole.code == 200;
        assert!(
            is_whole || whole.code == 504 && load.explains_timeout(),
            "{}: {whole:?}",
            work.name
        );
        let most = if is_whole { long / TIMES } else { SPENT };
        if cut.code != 504 || short > most {
            failures.push(format!(
                "{}: {cut:?} after {short:?} of {long:?}",
                work.name
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The work on one object, which the connection cannot see to be unwanted while it polls it.
#[test]
fn the_table_of_an_object_ends_with_its_client() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(clients_that_leave());
}

async fn clients_that_leave() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(dir.path(), MUCH_ROOM);
    let (pid, target) = (attacked.server.pid(), Target::of(&attacked.server));
    let endless = Work {
        versions: searched(3_000),
        objects: vec![items(100_000)],
        ..Work::default()
    };
    let path = prepare(&attacked, &target, 0, &endless).await;
    until_idle(pid).await;
    let before = process::cpu(pid);
    let http2 = target.http2(OPEN).await.unwrap();
    let call = Call::new("GET", &path).with_header("accept", TABLE);
    reset_when_busy(pid, &http2, call).await;
    let cpu = process::cpu(pid) - before;
    println!("a client that left: server CPU {cpu:?}");
    assert!(cpu < SPENT, "{cpu:?}");
}
